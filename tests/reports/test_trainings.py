"""Trainings in a report: what is read of a folder, what is said and drawn of it, and that it is what was logged."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pluribus.cli import main
from pluribus.errors import ConfigError, DataError
from pluribus.panel import Panel
from pluribus.reports import Material, training_facts, training_figures
from pluribus.reports.page import Facts, Items, Lead, html
from pluribus.reports.plots import Plot
from pluribus.reports.sections import page
from pluribus.reports.trainings import Training, read
from pluribus.training._grpo_watch import COLLAPSE, WORDS

Log = Sequence[dict[str, Any]]
GRPO = {"objective": "majority", "k": 3, "k_end": 4, "kl": 0.01, "eval_steps": 2}


def sampled(step: int, **entries: Any) -> dict[str, Any]:
    """What one step of GRPO logs."""
    k = 3 if step < 3 else 4
    return {
        "loss": 0.001, "learning_rate": 1e-5, "completions/mean_length": 40.0 + step, "completions/clipped_ratio": 0.0,
        "reward": 0.5, "k": float(k), f"pass@{k}": 0.75, f"maj@{k}": 0.625, "accuracy": 0.5, "unanswered": 0.0,
        "agreement": 0.75, "answers": 2.0, "kstar": 2.0 - step / 10, "sample_entropy": 0.5, "zero_advantages": 0.25,
        "kl": 0.0001, "epoch": step / 4, "step": step, **entries,
    }  # fmt: skip


LOOKED = [
    {"eval_accuracy": 0.5, "eval_pass@3": 0.75, "eval_maj@3": 0.5, "eval_runtime": 2.0, "epoch": 0, "step": 0},
    sampled(1),
    sampled(2),
    {"eval_accuracy": 0.5, "eval_pass@3": 0.75, "eval_maj@3": 0.5, "epoch": 0.5, "step": 2},
    {"eval_change": 0.0, "eval_change_low": -0.1, "eval_change_high": 0.1, "epoch": 0.5, "step": 2},
    sampled(3, **{COLLAPSE: 1.0}),
    sampled(4),
    {"eval_accuracy": 0.75, "eval_pass@4": 1.0, "eval_maj@4": 0.75, "epoch": 1.0, "step": 4},
    {"eval_change": 0.25, "eval_change_low": 0.05, "eval_change_high": 0.45, "epoch": 1.0, "step": 4},
    {"train_runtime": 9.0, "train_loss": 0.001, "epoch": 1.0, "step": 4},
    {"eval_accuracy": 0.75, "eval_pass@4": 1.0, "eval_maj@4": 0.75, "epoch": 1.0, "step": 4},
]


@pytest.fixture
def trained(tmp_path: Path) -> Callable[..., str]:
    """A folder as `pluribus train` leaves it; `log` None: it is not finished."""

    def make(name: str, log: Log | None = LOOKED, kind: str = "grpo", **wishes: Any) -> str:
        folder = tmp_path / name
        folder.mkdir()
        own = {"grpo": GRPO, "eval_data": "/far/held.jsonl"} if kind == "grpo" else {}
        config = {
            "kind": kind,
            "model": "zoo/qwen",
            "data": "/far/p.jsonl",
            "out": name,
            "max_steps": 4,
            **own,
            **wishes,
        }
        record: dict[str, Any] = {"fingerprint": "abc", "state": "running", "config": config}
        if log is not None:
            data = {"file": "p.jsonl", "sha256": "0", "rows": 64, "learned": 60}
            result = {"steps": 4, "rows": 60, "loss": 0.001, "seconds": 9.0, "resumed_from": 0, "evaluation": {}}
            record |= {"state": "done", "kind": kind, "result": {**result, "log": log}}
            record |= {"about": {"base": "zoo/qwen", "base_name": "qwen", "data": data}}
        (folder / "training.json").write_text(json.dumps(record), "utf-8")
        return str(folder)

    return make


def one(source: str) -> Training:
    (found,) = read([source])
    return found


def drawn(*found: Training) -> dict[str, Plot]:
    return {plot.name: plot for plot in training_figures.figures(found)}


def line(plot: Plot, place: int = 0) -> list[tuple[float, float]]:
    return [(point.x, point.y) for point in plot.series[place].points]


# --- reading ---------------------------------------------------------------------------------------------------------


def test_of_one_that_runs_the_last_whole_checkpoint_is_read(trained: Callable[..., str]) -> None:
    source = trained("student", None, max_steps=40)
    assert (one(source).steps, one(source).log) == (None, ())
    states = {9: {"global_step": 9, "max_steps": 40, "log_history": [sampled(9)]}, 10: {"global_step": 10}}
    states[10] |= {"max_steps": 40, "log_history": [sampled(9), sampled(10)]}
    for step, state in states.items():
        checkpoint = Path(source, "checkpoints", f"checkpoint-{step}")
        checkpoint.mkdir(parents=True)
        (checkpoint / "trainer_state.json").write_text(json.dumps(state), "utf-8")
    (checkpoint.with_name("checkpoint-11")).mkdir()
    (checkpoint.with_name("checkpoint-11") / "trainer_state.json").write_text('{"half": ', "utf-8")
    found = one(source)
    assert (found.done, found.steps, len(found.log)) == (False, 10, 2)
    assert "not finished; its last checkpoint is at step 10 of 40;" in training_facts.said(found)


def test_a_folder_counts_once_and_names_tell_folders_apart(trained: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    first, second = trained("student"), trained("more/student")
    found = read([first, f"{first}/training.json", second, trained("other")])
    assert [training.name for training in found] == [first, second, "other"]


def test_what_pluribus_train_did_not_write_is_an_error(trained: Callable[..., str]) -> None:
    for text, said in (("{", "can not be read"), ("[1]", "no record of pluribus train"), ("{}", "has no config")):
        source = trained(f"broken{len(text)}")
        Path(source, "training.json").write_text(text, "utf-8")
        with pytest.raises(DataError, match=said):
            read([source])
    with pytest.raises(ConfigError, match="objective"):
        read([trained("odd", grpo={"objective": "luck"})])


def test_nothing_of_it_imports_torch() -> None:
    code = "import sys, pluribus.reports.sections; print({'torch', 'transformers', 'trl'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


# --- what is said ----------------------------------------------------------------------------------------------------


def test_one_training_in_words(trained: Callable[..., str]) -> None:
    lead, alarms, facts = training_facts.head([one(trained("student"))])
    assert lead == Lead(
        "Finished after 4 steps; held-out accuracy 50.0 % at first, 75.0 % at the end, a change of +25.0 [+5.0, +45.0] "
        "points.",
        "loses",
    )
    assert alarms == Items((f"Alarm at step 3: {WORDS[COLLAPSE]}.",))
    assert isinstance(facts, Facts)
    told = dict(facts.pairs)
    assert (told["Objective"], told["Data"], told["Alarms"]) == (
        "majority, k = 3 to 4",
        "p.jsonl",
        "collapse at step 3",
    )
    assert (told["Rows"], told["Rows learned from"], told["Change, points"]) == ("64", "60", "+25.0 [+5.0, +45.0]")


def test_of_several_what_is_the_same_is_said_once(trained: Callable[..., str]) -> None:
    found = [one(trained("a")), one(trained("b", seed=1))]
    said, facts, table = training_facts.head(found)
    assert isinstance(said, Items)
    assert [text.partition(":")[0] for text in said.texts] == ["a", "b"]
    assert all(WORDS[COLLAPSE] in text for text in said.texts)
    assert isinstance(facts, Facts)
    assert {"Objective", "Estimator"} <= dict(facts.pairs).keys()
    assert [column.head for column in table.used] == ["training", "seed", "source"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ([{"train_runtime": 1.0, "train_loss": 0.5, "step": 4}], "nothing was logged on the way: logging_steps is 10"),
        (None, "there is none yet"),
        ([{"loss": 0.5, "step": 2}, {"loss": 0.25, "step": 4}], "loss 0.500 at first, 0.250 at the end"),
    ],
)
def test_a_training_without_a_log_says_why(trained: Callable[..., str], log: Log | None, said: str) -> None:
    assert said in training_facts.said(one(trained("student", log, kind="sft")))


# --- what is drawn ---------------------------------------------------------------------------------------------------


def test_each_figure_shows_what_was_logged(trained: Callable[..., str]) -> None:
    plots = drawn(one(trained("student")))
    assert list(plots) == [
        "grpo-held-out", "grpo-change", "grpo-accuracy", "grpo-diversity", "grpo-entropy", "grpo-length", "grpo-idle",
        "grpo-kl", "grpo-k",
    ]  # fmt: skip
    assert line(plots["grpo-length"]) == [(1, 41), (2, 42), (3, 43), (4, 44)]
    assert [(p.x, p.y, p.low, p.high) for p in plots["grpo-change"].series[0].points] == [
        (2, 0.0, -0.1, 0.1), (4, 0.25, 0.05, 0.45),
    ]  # fmt: skip
    samples, passed, voted = plots["grpo-accuracy"].series
    assert (samples.label, passed.label, voted.label) == ("one sample", "pass@k, k = 3 to 4", "maj@k, k = 3 to 4")
    assert line(plots["grpo-accuracy"], 1) == [(1, 0.75), (2, 0.75), (3, 0.75), (4, 0.75)]
    assert line(plots["grpo-held-out"]) == [(0, 0.5), (2, 0.5), (4, 0.75)], "a look that was logged twice counts once"
    assert [(rule.at, rule.label) for rule in plots["grpo-diversity"].rules] == [(3, "alarm at step 3")]
    assert not plots["grpo-length"].rules


def test_the_reward_is_drawn_where_it_is_not_the_accuracy(trained: Callable[..., str]) -> None:
    own = [sampled(step, reward=0.9, own_label_right=0.5, step_score=0.1, steps_per_reply=3.0) for step in (1, 2)]
    plots = drawn(one(trained("own", own)))
    assert {"grpo-reward", "grpo-own-label", "grpo-step-score", "grpo-steps"} <= plots.keys()
    assert line(plots["grpo-reward"]) == [(1, 0.9), (2, 0.9)]


def test_several_trainings_share_figures_and_keep_their_looks(trained: Callable[..., str]) -> None:
    short = [sampled(step) for step in (1, 2)]
    found = [one(trained("a", short)), one(trained("b")), one(trained("c", short))]
    plots = drawn(*found)
    assert [series.label for series in plots["grpo-accuracy-pass-k"].series] == [
        "a, k = 3",
        "b, k = 3 to 4",
        "c, k = 3",
    ]
    (held_out,) = plots["grpo-held-out-one-sample"].series
    assert held_out.style == plots["grpo-length"].series[1].style, "b looks alike in every figure"
    assert len({series.style for series in plots["grpo-length"].series}) == 3
    assert plots["grpo-diversity-k-of-the-texts"].rules[0].label == "b: alarm at step 3"
    assert plots["grpo-change"].title == "Change on held-out questions: b", "who it is where there is no legend"


def test_too_many_lines_are_split_over_figures_on_the_same_axes(trained: Callable[..., str]) -> None:
    logs = [[{"loss": 0.1 * place, "step": step} for step in (1, 2 + place)] for place in range(1, 10)]
    plots = drawn(*(one(trained(f"s{place}", log, kind="sft")) for place, log in enumerate(logs)))
    assert {name: len(plot.series) for name, plot in plots.items()} == {
        "sft-loss-training-rows-part-1": 8, "sft-loss-training-rows-part-2": 1,
    }  # fmt: skip
    first, second = plots.values()
    assert (first.x.limits, first.y.limits) == (second.x.limits, second.y.limits)
    assert first.x.limits is not None and first.x.limits[1] > 11


def test_many_values_are_dots_beside_a_line_that_says_what_it_is(trained: Callable[..., str]) -> None:
    values = [math.sin(step) for step in range(60)]
    log = [{"loss": value, "step": step} for step, value in enumerate(values, 1)]
    (plot,) = drawn(one(trained("long", log, kind="sft"))).values()
    (series,) = plot.series
    assert [point.y for point in series.points] == values
    assert series.curve is not None
    assert series.curve.y[10] == pytest.approx(sum(values[8:13]) / 5)
    assert series.curve.y[0] == pytest.approx(sum(values[:3]) / 3)
    assert series.label.endswith("(line: mean of 5)")
    assert "Dots are the values as they were logged" in plot.about
    (crowd,) = drawn(one(trained("crowd", [{"loss": 1.0, "step": step} for step in range(1500)], kind="sft"))).values()
    assert (len(crowd.series[0].points), crowd.series[0].label[-14:]) == (750, ", 1 of 2 drawn")
    (few,) = drawn(one(trained("few", log[:40], kind="sft"))).values()
    assert few.series[0].curve is None
    assert "mean" not in few.about + few.series[0].label


def test_what_is_no_number_is_counted_and_not_drawn(trained: Callable[..., str]) -> None:
    log = [{"loss": value, "step": step} for step, value in enumerate((0.5, math.nan, 0.25), 1)]
    (plot,) = drawn(one(trained("student", log, kind="sft"))).values()
    assert line(plot) == [(1, 0.5), (3, 0.25)]
    assert plot.about.endswith("Not drawn, being no number: 1 value.")


def test_the_table_has_what_was_measured_on_held_out_rows(trained: Callable[..., str]) -> None:
    log = [{"loss": 0.5, "step": 2}, {"loss": 0.25, "step": 4}, {"eval_auroc": 0.8, "eval_runtime": 1.0, "step": 4}]
    table = training_figures.table([one(trained("marks", log, kind="prm"))])
    assert table is not None
    assert [(row["key"], row["first"], row["last"], row["n"]) for row in table.rows] == [
        ("eval_auroc", 0.8, 0.8, 1), ("loss", 0.5, 0.25, 2),
    ]  # fmt: skip


# --- the page --------------------------------------------------------------------------------------------------------


def test_a_page_of_trainings_alone(
    trained: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = [{"loss": 0.5, "step": 2}, {"loss": 0.25, "step": 4}]
    out, home = tmp_path / "out", tmp_path / "home"
    sources = [trained("<b>&", log, kind="sft"), trained("plain", log, kind="sft", seed=1)]
    assert main(["report", *sources, "--out", str(out), "--home", str(home), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["councils"]) == (None, [])
    assert [(one["run"], one["kind"], one["seed"]) for one in said["trainings"]] == [
        ("<b>&", "sft", 0),
        ("plain", "sft", 1),
    ]
    assert not home.exists(), "trainings need no workspace"
    text = (out / "report.html").read_text("utf-8")
    assert "<h2>Training on demonstrations</h2>" in text
    assert "<b>" not in text
    for name in ("figures/sft-loss-training-rows.png", "figures/sft-loss-training-rows.csv", "tables/logged-sft.csv"):
        assert (out / name).is_file()
        assert name in text
    with (out / "figures/sft-loss-training-rows.csv").open(encoding="utf-8", newline="") as file:
        points = [(row["run"], row["x"], row["y"]) for row in csv.DictReader(file)]
    assert points == [(name, x, y) for name in ("<b>&", "plain") for x, y in (("2", "0.5"), ("4", "0.25"))]


def test_trainings_stand_beside_runs(
    trained: Callable[..., str], panel: Callable[..., Panel], measured: Callable[..., Any]
) -> None:
    log = [{"loss": 0.5, "step": 2}, {"loss": 0.25, "step": 4}]
    councils = measured(panel([[["0", "0"]], [["1", "2"]]]))
    made = page(Material("t", councils, "hashing", trainings=read([trained("student", log, kind="sft")])))
    names = [section.name for section in made.sections]
    assert names.index("verdict") < names.index("training-sft") < names.index("council-by-council")
    assert made.subtitle == "1 council on sums; 1 training"
    assert html(made).count('id="sft-loss"') == 1


def test_a_folder_with_neither_says_what_was_looked_for(
    trained: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["report", str(tmp_path / "empty")]) == 2
    assert "holds no run of any format known here, and no training (training.json)" in capsys.readouterr().err
    below = trained("empty/student", [], kind="sft")
    assert main(["report", str(tmp_path / "empty")]) == 2
    assert f"name the trainings in it: {below}" in " ".join(capsys.readouterr().err.split())
