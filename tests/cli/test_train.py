"""`pluribus train`: flags over a file, the plan, and what is refused before anything is read. The trainings themselves
are in tests/training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.tasks.sums import problem

Run = Callable[..., Any]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(_row("train", i)) + "\n" for i in range(4)), "utf-8")
    return file


def _row(split: str, index: int) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": f"{problem(split, index).text}\n\nThink step by step."}],
        "completion": [{"role": "assistant", "content": "{final answer: 1}"}],
        "task": "sums",
    }


def test_the_plan_says_what_would_be_trained_and_leaves_nothing_behind(
    pluribus: Run, rows: Path, tmp_path: Path
) -> None:
    file = tmp_path / "sft.yaml"
    file.write_text(f"kind: sft\nmodel: zoo/qwen\ndata: {rows}\nout: {tmp_path / 'student'}\nepochs: 4\n", "utf-8")
    done = pluribus("train", "sft", "--config", file, "--plan", "--batch-size", 2, "--json")
    assert done.code == 0, done.err
    assert (done.object["rows"], done.object["steps"], done.object["config"]["batch_size"]) == (4, 8, 2)
    assert 0 < done.object["memory_gb"]["total"] < 5
    assert not (tmp_path / "student").exists()


@pytest.mark.parametrize(("batch", "accumulation", "epochs"), [(3, 1, 1), (3, 1, 2), (1, 3, 2), (3, 2, 1.5), (8, 1, 1)])
def test_the_plan_counts_the_steps_that_are_made(
    pluribus: Run, rows: Path, tmp_path: Path, batch: int, accumulation: int, epochs: float
) -> None:
    said = {"batch_size": batch, "accumulation": accumulation, "epochs": epochs, "logging_steps": 100}
    flags = [part for name, value in said.items() for part in (f"--{name.replace('_', '-')}", value)]
    wishes = ("train", "sft", "--model", "zoo/qwen", "--data", rows, "--out", tmp_path / "student", *flags, "--json")
    planned = pluribus(*wishes, "--plan").object["steps"]
    done = pluribus(*wishes).object
    assert planned == done["steps"] and done["loss"] is not None, "no step was logged, and its loss is known"
    about = json.loads((tmp_path / "student" / "training.json").read_text("utf-8"))["about"]
    assert about["checked_against"] == ["sums@test"] and about["data"]["learned"] == about["data"]["rows"] == 4


def test_an_empty_text_and_a_space_are_what_they_say(pluribus: Run, tmp_path: Path) -> None:
    file = tmp_path / "steps.jsonl"
    file.write_text('{"prompt": "1 + 1?", "completions": ["2."], "labels": [true]}\n', "utf-8")
    said = ["train", "prm", "--model", "zoo/qwen", "--data", file, "--out", tmp_path / "o", "--plan", "--json"]
    done = pluribus(*said, "--set", "prm.separator=", "--set", "prm.join= ")
    assert done.code == 0, done.err
    assert done.object["config"]["prm"] == {"separator": "", "join": " "}
    assert "the rows name no task, and were held against no test set; name one with --check-against" in done.err
    wrong = pluribus(*said, "--set", "max_steps=")
    assert "max_steps is ''; input should be a valid integer" in wrong.complaint()


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (["sft"], "--model is missing"),
        (["sft", "--model", "zoo/qwen"], "--data is missing"),
        (["sft", "--model", "zoo/qwen", "--data", "nope.jsonl"], "--out is missing"),
        (["sft", "--model", "zoo/qwen", "--data", "nope.jsonl", "--out", "o"], "nope.jsonl: can not be read"),
        (["sft", "--beta", "1"], "--beta is for pluribus train dpo, found sft"),
        (["dpo", "--fix-llm"], "--fix-llm is for pluribus train prm, found dpo"),
        (["sft", "--load-in-4bit", "--load-in-8bit"], "exclude each other"),
        (["sft", "--config", "nope.yaml"], "nope.yaml: No such file"),
        (["rl"], "rl"),
    ],
)
def test_what_is_wrong_in_itself_is_one_line(pluribus: Run, said: list[str], complaint: str) -> None:
    done = pluribus("train", *said)
    assert done.code == 2 and complaint in done.err and len(done.err.strip().splitlines()) == 1, done.err


def test_a_model_that_is_asked_over_the_network_can_not_be_trained(pluribus: Run, rows: Path, tmp_path: Path) -> None:
    done = pluribus("train", "sft", "--model", "gpt-4o", "--data", rows, "--out", tmp_path / "o")
    assert done.code == 2 and "is asked over the network and can not be trained here" in done.err


def test_a_row_that_holds_a_test_question_is_refused_whatever_stands_around_it(
    pluribus: Run, rows: Path, tmp_path: Path
) -> None:
    with rows.open("a", encoding="utf-8") as file:
        file.write(json.dumps(_row("test", 7)) + "\n")
    done = pluribus("train", "sft", "--model", "zoo/qwen", "--data", rows, "--out", tmp_path / "o")
    assert done.code == 2 and "1 of 5 rows hold a question of sums@test, the first is row 5" in done.err
    assert not (tmp_path / "o").exists()


def test_a_file_of_another_kind_is_named(pluribus: Run, rows: Path, tmp_path: Path) -> None:
    file = tmp_path / "prm.yaml"
    file.write_text("kind: prm\n", "utf-8")
    done = pluribus("train", "sft", "--config", file)
    assert done.code == 2 and "is a training of kind prm; say: pluribus train prm" in done.err
