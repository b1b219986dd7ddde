"""`pluribus export` and `pluribus import`: a run out of one workspace and into another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.cli._panels import panels
from pluribus.panel import Panel, answers, credits, right_Q_A
from pluribus.store import Store
from pluribus.types import Label

Run = Callable[..., Any]


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    return str(pluribus("run", council(), "--json").object["run"])


def test_what_was_exported_comes_back_whole(pluribus: Run, name: str, tmp_path: Path) -> None:
    said = pluribus("export", name, "--out", tmp_path / "run.jsonl.gz")
    assert (said.code, said.out) == (0, f"{tmp_path}/run.jsonl.gz: 12 attempts\n")
    other = tmp_path / "other"
    assert pluribus("import", tmp_path / "run.jsonl.gz", "--home", other).out == f"imported {name}: 12 attempts\n"
    assert pluribus("show", name, "--home", other, "--json").object == pluribus("show", name, "--json").object
    assert pluribus("show", tmp_path / "run.jsonl.gz", "--home", tmp_path / "empty", "--json").object["run"] == name
    assert "12 of them were here already" in pluribus("import", tmp_path / "run.jsonl.gz").out


def test_parquet_is_three_tables(pluribus: Run, name: str, tmp_path: Path) -> None:
    import pyarrow.parquet

    said = pluribus("export", name, "--format", "parquet", "--out", tmp_path / "tables")
    assert [Path(line).name for line in said.out.split()] == ["attempts.parquet", "turns.parquet", "decisions.parquet"]
    assert pyarrow.parquet.read_metadata(tmp_path / "tables" / "turns.parquet").num_rows == 36


def test_a_replay_file_runs_again_with_the_same_decisions(pluribus: Run, name: str, data: Path, tmp_path: Path) -> None:
    said = pluribus("export", name, "--format", "replay", "--out", tmp_path / "outputs.jsonl")
    models = ",".join(said.out.split())
    again = pluribus("run", "--task", "jsonl", "--data", data, "--agent-models", models, "--json")
    assert again.code == 0
    first = pluribus("show", name, "--json").object
    assert again.object["council"]["value"] == first["council"]["value"]
    assert [s["value"] for s in again.object["alone"]] == [s["value"] for s in first["alone"]]


def test_a_changed_file_is_refused(pluribus: Run, name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    pluribus("export", name, "--out", file)
    file.write_text(file.read_text("utf-8").replace("make it plain", "make it plainer", 1), "utf-8")
    assert "run.jsonl:2: the line was changed" in pluribus("import", file).complaint()


# --- forms of other codes --------------------------------------------------------------------------------------------


def there_and_back(
    pluribus: Run, name: str, format: str, folder: Path, home: Path | None = None
) -> tuple[Panel, Panel]:
    """The run as it is, and as its file of this form is read again."""
    said = pluribus("export", name, "--format", format, "--out", folder)
    assert said.code == 0, said
    (file,) = [line.rpartition(": ")[0] for line in said.out.splitlines()]
    (run,), (again,) = panels([name], None), panels([file], None)
    return run, again


def texts(panel: Panel, round: int) -> list[list[str | None]]:
    return [[word and word.text for word in item.words[round]] for item in panel.items]


def same_decisions(run: Panel, again: Panel) -> None:
    assert [(i.question_id, i.key, i.decided) for i in again.items] == [
        (i.question_id, i.key, i.decided) for i in run.items
    ]
    assert credits(again).tolist() == credits(run).tolist()


@pytest.mark.parametrize("format", ["agent-scaling", "agentark"])
def test_a_vote_comes_back_with_its_answers_and_verdicts(pluribus: Run, name: str, format: str, tmp_path: Path) -> None:
    run, again = there_and_back(pluribus, name, format, tmp_path / "there")
    same_decisions(run, again)
    assert answers(again) == answers(run)
    assert right_Q_A(again).tolist() == right_Q_A(run).tolist()
    assert texts(again, 0) == texts(run, 0)  # what K* is made of


def test_a_debate_comes_back_with_its_rounds(pluribus: Run, council: Run, tmp_path: Path) -> None:
    entries = {"method": "debate", "settings": {"debate_rounds": 2, "topology": "sparse"}}
    name = pluribus("run", council(**entries), "--json").object["run"]
    run, again = there_and_back(pluribus, name, "agent-scaling", tmp_path / "there")
    assert again.name == "jsonl_debate_12__MIXED3_N=3_R=2_SPARSE"
    same_decisions(run, again)
    for round in range(3):
        assert answers(again, round) == answers(run, round)
        assert right_Q_A(again, round).tolist() == right_Q_A(run, round).tolist()
        assert texts(again, round) == texts(run, round)
    said = pluribus("export", name, "--format", "agentark", "--out", tmp_path / "ark.jsonl")
    assert "left out: rounds before the last: 2" in said.err


def test_folders_get_the_names_of_the_other_code(pluribus: Run, council: Run, tmp_path: Path) -> None:
    entries = {"models": ["scripted/number"], "num_agents": 2, "personas": "general", "baseline_b": True}
    name = pluribus("run", council(**entries), "--json").object["run"]
    written = {}
    for format in ("agent-scaling", "agentark"):
        said = pluribus("export", name, "--format", format, "--out", tmp_path / "out")
        written[format] = Path(said.out.rpartition(": ")[0]).relative_to(tmp_path / "out").as_posix()
    assert written == {
        "agent-scaling": "jsonl_vote_12__number_N=2_R=0_BASEB_SINGLEP.jsonl",
        "agentark": "results/jsonl/number/vote_infer.jsonl",
    }


def test_failed_attempts_are_said_and_come_back_as_such(pluribus: Run, lines: Run, data: Path, tmp_path: Path) -> None:
    outputs = lines([{"question_id": f"q{i}", "model": "m", "text": f"The answer is {i + 1}."} for i in range(10)])
    asking = ("--task", "jsonl", "--data", data, "--agent-models", f"replay/{outputs}#m", "--num-agents", "1")
    name = pluribus("run", *asking, "--json").object["run"]
    for format in ("agent-scaling", "agentark"):
        said = pluribus("export", name, "--format", format, "--out", tmp_path / f"{format}.jsonl.gz")
        assert "left out: failed attempts: 2" in said.err
        (again,) = panels([str(tmp_path / f"{format}.jsonl.gz")], None)
        assert [item.failed for item in again.items] == [False] * 10 + [True] * 2
        assert credits(again).tolist()[:10] == [1.0] * 10


# --- with labels -----------------------------------------------------------------------------------------------------


def test_labels_go_along_and_are_there_after_an_import(pluribus: Run, name: str, tmp_path: Path) -> None:
    pluribus("label", name, "--judge", "scripted/number", "--audit", "5")
    pluribus("export", name, "--out", tmp_path / "run.jsonl.gz")
    pluribus("import", tmp_path / "run.jsonl.gz", "--home", tmp_path / "other")
    with Store.open() as here, Store.open(tmp_path / "other") as there:
        ids = [id for id, _ in here.run_attempts(here.run(name).id)]
        labels = here.records("label", Label, ids)
        assert sum(one.judge is not None for several in labels.values() for one in several) == 5
        assert there.records("label", Label, ids) == labels


def test_every_labelled_answer_comes_back_with_its_label(pluribus: Run, council: Run, tmp_path: Path) -> None:
    entries = {"method": "debate", "settings": {"debate_rounds": 1}}
    name = pluribus("run", council(**entries), "--json").object["run"]
    run, again = there_and_back(pluribus, name, "agentark-labeled", tmp_path / "labeled.jsonl")
    for round in range(2):
        assert right_Q_A(again, round).tolist() == right_Q_A(run, round).tolist()
        assert answers(again, round) == answers(run, round)
        assert texts(again, round) == texts(run, round)


def test_without_keys_stored_labels_are_written_and_without_both_nothing_is(
    pluribus: Run, council: Run, lines: Run, tmp_path: Path
) -> None:
    data = lines([{"id": f"k{i}", "question": f"{i} + 1?", "kind": "number"} for i in range(2)], "open.jsonl")
    name = pluribus("run", council(data=str(data)), "--json").object["run"]
    exporting = ("export", name, "--format", "agentark-labeled", "--out", tmp_path / "l.jsonl")
    said = pluribus(*exporting).complaint()
    assert f"no answer of run {name} is labelled, and no key decides; label it with: pluribus label {name}" in said
    assert not (tmp_path / "l.jsonl").exists()
    found = pluribus("label", name, "--judge", "scripted/number", "--json").object
    assert pluribus(*exporting).out == f"{tmp_path}/l.jsonl: 6 labelled answers of 2 questions\n"
    marks = [
        mark for line in (tmp_path / "l.jsonl").read_text("utf-8").splitlines() for mark in json.loads(line)["labels"]
    ]
    assert (marks.count(True), marks.count(False)) == (found["right"], found["wrong"])
    (tmp_path / "folder").mkdir()
    assert "is a folder" in pluribus(*exporting[:-1], tmp_path / "folder").complaint()
