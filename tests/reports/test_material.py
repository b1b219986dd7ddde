"""What a report measures and says: lines, verdicts, planted truths, and sections that come and go with the data."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.planted import Process, panels, store

from pluribus.cli import main
from pluribus.embedders import open_embedder
from pluribus.panel import Panel
from pluribus.reports import Material, measure
from pluribus.reports.figured import accuracy_by_agents
from pluribus.reports.fits import aligned, few_against_many, fitted
from pluribus.reports.material import conditions
from pluribus.reports.moved import counted
from pluribus.reports.page import Lead, Page
from pluribus.reports.plots import offsets
from pluribus.reports.sections import page, summary

Make = Callable[..., Any]
PanelOf = Callable[..., Panel]


def sections(made: Page) -> set[str]:
    return {section.name for section in made.sections}


def names(made: Page) -> set[str]:
    return {drawing.plot.name for drawing in made.drawings}


# --- lines -----------------------------------------------------------------------------------------------------------


def test_a_line_is_models_personas_and_method(panel: PanelOf) -> None:
    said = [[["1", "2"]]] * 2
    pair = ["vllm/a/one", "vllm/two@http://host/v1"]
    found = [
        panel(said, models=pair),
        panel(said, personas=["doctor", "nurse"]),
        panel(said, personas=["neutral", "neutral"]),
        panel(said, personas=["doctor", "doctor"]),
        panel([[["1", "2"], ["1", "1"]]], method="debate", settings={"topology": "sparse"}),
        panel([[["1", "2"], ["1", "1"]]], method="debate", settings={"topology": "centralized"}),
    ]
    assert conditions(found, {}) == [
        "one + two · no personas · vote",
        "m · personas · vote",
        "m · neutral text for personas · vote",
        "m · one persona for all · vote",
        "m · no personas · debate, 2 rounds, topology sparse",
        "m · no personas · debate, 2 rounds, topology centralized",
    ]


def test_a_sweep_names_its_own_lines(panel: PanelOf) -> None:
    said = [[["1", "2"]]] * 2
    cells = [panel(said, name=f"r{t}{n}", personas=["neutral"] * 2) for t in (0, 1) for n in (2, 4)]
    fixed = {"task": "sums", "method": "vote", "models": "mixed", "persona": "baseline_a"}
    places = {
        cell.source: {**fixed, "num_agents": n, "sampling.temperature": float(t)}
        for cell, (t, n) in zip(cells, [(0, 2), (0, 4), (1, 2), (1, 4)], strict=True)
    }
    lines = conditions(cells, places)
    assert lines[:2] == ["mixed · neutral text for personas · vote, temperature 0.0"] * 2
    assert lines[2:] == ["mixed · neutral text for personas · vote, temperature 1.0"] * 2


# --- sections --------------------------------------------------------------------------------------------------------


def test_where_a_recording_lies_names_no_line(panel: PanelOf) -> None:
    told = [panel([[["0", "0"]]], name=stem, settings={"files": [f"/logs/{stem}.jsonl"]}) for stem in ("a", "b")]
    assert set(conditions(told, {})) == {"m · no personas · vote"}


def test_the_points_of_many_lines_stay_inside_the_axes(panel: PanelOf, measured: Make) -> None:
    sizes = [panel([[["0"] * n]], name=f"{m}{n}", models=[f"vllm/{m}"] * n) for m in "abcdef" for n in (2, 4)]
    (drawn,) = accuracy_by_agents(measured(*sizes), {})
    low, high = drawn.x.limits or (0.0, 0.0)
    most = 2 ** max(offsets(len(drawn.series)))
    assert low < 2 / most < 4 * most < high


def test_one_council_beside_its_controls_is_told_in_its_own_words(panel: PanelOf, measured: Make) -> None:
    said = [[["0", "1"]], [["1", "1"]], [["2", "0"]]]
    council = panel(said, models=["vllm/a", "vllm/b"], name="mixed")
    draws = panel(said, models=["vllm/a"] * 2, name="draws")
    told = summary(measured(council, draws))
    assert "of 1 council" not in told
    assert told.endswith("1 more is one model's self-consistency, the control.")


def test_one_vote_has_no_rounds_and_no_curves(panel: PanelOf, measured: Make) -> None:
    said = [[[str(q), str(q) if q % 3 else "9"]] for q in range(8)]
    made = page(Material("t", measured(panel(said)), "hashing"))
    assert {"run", "verdict", "numbers", "compared", "ceiling", "seat-by-seat", "provenance"} <= sections(made)
    assert sections(made).isdisjoint({"debate", "scaling", "rewards"})
    assert names(made) == {"delta-kstar-1", "differences"}


def test_a_debate_has_rounds_and_who_moved_whom(panel: PanelOf, measured: Make) -> None:
    said = [[["0", "5"], ["0", "0"]], [["1", "1"], ["1", "1"]], [["7", "2"], ["2", "2"]]]
    made = page(Material("t", measured(panel(said, method="debate")), "hashing"))
    assert {"round-accuracy", "round-agreement", "round-kstar"} <= names(made)
    (moves,) = [grid for grid in made.grids if grid.name == "moves"]
    (to_first, to_second) = sorted(moves.rows, key=lambda row: row["listener"])
    assert (to_first["listener"], to_first["speaker"], to_first["adopted"]) == ("agent 1", "agent 2", 1.0)
    assert (to_second["adopted"], to_second["corrected"], to_second["kept"]) == (1.0, 1.0, 1.0)


def test_questions_without_a_key_have_diversity_and_no_verdict(panel: PanelOf, measured: Make) -> None:
    whole = panel([[[str(q), "8"]] for q in range(4)])
    keyless = Panel(
        whole.name, whole.source, whole.task, whole.method, whole.members, tuple(map(_keyless, whole.items))
    )
    made = page(Material("t", measured(keyless), "hashing"))
    assert sections(made).isdisjoint({"compared", "ceiling", "scaling"})
    assert "seat-by-seat" in sections(made)
    (grid,) = [grid for grid in made.grids if grid.name == "omissions"]
    assert {"questions without a key"} <= {row["reason"] for row in grid.rows}


def _keyless(item: Any) -> Any:
    from dataclasses import replace

    words = tuple(tuple(word and replace(word, correct=None) for word in row) for row in item.words)
    return replace(item, key=None, credit=None, words=words)


def test_what_is_left_out_is_counted(panel: PanelOf, measured: Make) -> None:
    said = [[[str(q), None if q else "0"]] for q in range(4)]
    left = panel(said, omitted={"lines cut off": 3})
    made = page(Material("t", measured(left), "hashing", omitted={"cells that are planned": 2}))
    (grid,) = [grid for grid in made.grids if grid.name == "omissions"]
    counts = {row["reason"]: row["count"] for row in grid.rows}
    assert counts["lines cut off"] == 3
    assert counts["cells that are planned"] == 2
    assert counts["answers missing from a round"] == 3


def test_who_hears_whom_follows_the_topology(panel: PanelOf, measured: Make) -> None:
    said = [[["1", "0", "2"], ["2", "2", "2"]]]
    for topology, speakers in (("decentralized", [0, 0, 1]), ("centralized", [0, 0, 1])):
        (council,) = measured(panel(said, method="debate", settings={"topology": topology}))
        ((_, found),) = counted([council])
        assert found.adopted_A_A[0].tolist() == speakers
        assert found.adopted_A_A[1].sum() == (1 if topology == "decentralized" else 0), "a spoke reads the hub alone"


# --- curves ----------------------------------------------------------------------------------------------------------


def test_curves_need_three_places_and_align_questions(panel: PanelOf, measured: Make) -> None:
    said = {n: [[["x"] * (n - 1) + [str(q)] if q < n else [str(q)] * n] for q in range(6)] for n in (2, 4, 8)}
    cells = [panel(said[n], name=f"v{n}", personas=[f"p{i}" for i in range(n)]) for n in (2, 4, 8)]
    two, three = measured(*cells[:2]), measured(*cells)
    assert fitted(two)["agents"] == ()
    (curve,) = fitted(three)["agents"]
    assert curve.line == "m · personas · vote"
    assert [cell.x for cell in curve.fit.cells] == [2, 4, 8]
    assert {"accuracy-agents", "accuracy-tokens"} <= names(page(Material("t", three, "hashing")))
    late = Panel("late", "run late", "sums", "vote", cells[0].members, cells[0].items[3:])
    table = aligned([cells[0], late])
    assert table.shape == (6, 2)
    assert (table[3:, 0] == table[3:, 1]).all()
    assert (table[:3, 1] != table[:3, 1]).all(), "not asked is not known"


def test_two_diverse_agents_against_many_equal_ones(panel: PanelOf, measured: Make) -> None:
    few = panel([[[str(q), str(q)]] for q in range(30)], name="few", models=["vllm/a", "vllm/b"])
    many = panel([[["w"] * 4] for q in range(30)], name="many", models=["vllm/a"] * 4)
    (match,) = few_against_many(measured(few, many))
    assert (match.small, match.large, match.matches) == ("few", "many", True)
    assert few_against_many(measured(many)) == []


# --- planted ---------------------------------------------------------------------------------------------------------


def read(home: Path, out: Path, *names: str) -> str:
    assert main(["report", *names, "--home", str(home), "--out", str(out), "--embedder", "hashing"]) == 0
    return (out / "report.html").read_text("utf-8")


def test_copies_do_not_pay_and_the_page_says_so(tmp_path: Path) -> None:
    process = Process((0.7,) * 3, questions=120, samples=3, tau=1.0, copies=True, seed=3)
    stored = store(tmp_path / "home", process, tmp_path / "files")
    text = read(tmp_path / "home", tmp_path / "out", stored.council)
    lead = re.search(r'<p class="lead (\w+)">(.*?)</p>', text, re.DOTALL)
    assert lead
    assert lead[1] == "loses"
    assert "does not pay" in lead[2]


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_planted_beta_and_correlation_lie_in_the_reported_intervals(tmp_path: Path, rho: float) -> None:
    process = Process((0.6, 0.7, 0.65), rho=rho, questions=400, seed=5)
    stored = store(tmp_path / "home", process, tmp_path / "files")
    text = read(tmp_path / "home", tmp_path / "out", stored.council)
    assert _low(text, "all wrong, %") <= 100 * process.beta <= _high(text, "all wrong, %")
    assert _low(text, "error correlation") <= process.phi <= _high(text, "error correlation")


def _cell(text: str, head: str) -> tuple[float, float]:
    """Ends of the interval under a head of the table of councils."""
    table = text[text.index('<div class="table" id="cells">') :]
    heads = re.findall(r"<th scope=\"col\".*?>.*?<button.*?>(.*?)</button>", table[: table.index("</thead>")])
    body = table[table.index("<tbody>") : table.index("</tbody>")]
    shown = re.findall(r"<t[hd].*?>(.*?)</t[hd]>", body)[heads.index(head)]
    low, high = re.findall(r"[−\d.]+", shown.partition("[")[2])
    return float(low.replace("−", "-")), float(high.replace("−", "-"))


def _low(text: str, head: str) -> float:
    return _cell(text, head)[0]


def _high(text: str, head: str) -> float:
    return _cell(text, head)[1]


def test_a_council_that_pays_is_told_from_its_controls() -> None:
    process = Process((0.6,) * 5, rho=0.0, tau=0.6, questions=400, samples=5, seed=2)
    council, controls = panels(process)
    embed = open_embedder("hashing[dimensions=64]")
    every = [council, *controls]
    found = measure(every, embed, embedder="hashing", controls=lambda panel: every)
    said = summary(found)
    assert said.startswith("1 of 1 council pays at equal spend after Holm's correction")
    assert "5 more are one model's self-consistency, the control." in said
    (lead,) = [p for s in page(Material("t", found, "hashing")).sections for p in s.parts if isinstance(p, Lead)]
    assert (lead.tone, lead.text) == ("pays", said)
    alone = summary(found[1:])
    assert alone.startswith("All 5 are one model's self-consistency")
