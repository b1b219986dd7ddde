"""Answers read out of real models' recorded outputs, against the verdicts their sources published."""

from __future__ import annotations

import gzip
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pluribus.answers import canonical, read
from pluribus.types import Question

PUBLISHED = {"6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) as file:
        yield from (json.loads(line) for line in file)


def _questions(folder: Path) -> tuple[dict[str, Question], dict[str, str]]:
    asked, keys = {}, {}
    for row in _rows(folder / "questions.jsonl.gz"):
        asked[row["id"]] = Question(row["id"], "t", row["question"], row["kind"], tuple(row.get("choices", ())))
        keys[row["id"]] = row["answer"]
    return asked, keys


def _agreement(folder: Path, styles: tuple[str, ...] = ("",)) -> float:
    """Share of equal answers among the rows where both the source's parser and ours found one of the kind."""
    asked, _ = _questions(folder)
    equal = both = 0
    for row in _rows(folder / "outputs.jsonl.gz"):
        recorded = row["recorded_answer"]
        if recorded is None or not row["model"].endswith(styles):
            continue
        question = asked[row["question_id"]]
        theirs, ours = canonical(question, str(recorded)), read(question, row["text"])
        if theirs is not None and ours is not None:
            both += 1
            equal += theirs == ours
    assert both > 1000
    return equal / both


def test_four_gsm8k_models_are_scored_as_published(shared_data: Path) -> None:
    folder = shared_data / "recorded" / "gsm8k_4models"
    asked, keys = _questions(folder)
    right = dict.fromkeys(PUBLISHED, 0)
    for row in _rows(folder / "outputs.jsonl.gz"):
        question = asked[row["question_id"]]
        correct = read(question, row["text"]) == canonical(question, keys[question.id])
        assert correct == row["recorded_correct"], row
        right[row["model"]] += correct
    assert right == PUBLISHED


@pytest.mark.parametrize(
    ("name", "styles"),
    [
        ("gsm8k_24runs", ("COT", "LtM")),
        ("svamp_18runs", ("COT", "LtM")),
        ("aqua_30runs", ("COT", "LtM", "standard")),
        ("strategyqa_18runs", ("",)),
        ("mmlu_pro_logic_medicine_29models", ("",)),
        ("math_l5_43models", ("",)),
    ],
)
def test_reads_what_the_source_read(shared_data: Path, name: str, styles: tuple[str, ...]) -> None:
    assert _agreement(shared_data / "recorded" / name, styles) > 0.99


@pytest.fixture(scope="module")
def extraction() -> SimpleNamespace:
    """The benchmark that counts agreement run by run."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "extraction.py")))


@pytest.mark.parametrize(("name", "runs", "programs"), [("math100_8samples", 1, 0), ("aqua_30runs", 18, 12 * 254)])
def test_each_run_has_the_published_verdicts(
    shared_data: Path, extraction: SimpleNamespace, name: str, runs: int, programs: int
) -> None:
    found, skipped = extraction.measure(shared_data / "recorded" / name)
    assert (len(found), skipped) == (runs, programs)
    assert {model: run.clear for model, run in found.items() if run.clear < 0.99} == {}


def test_eight_samples_of_a_model_on_math_are_scored_as_published(
    shared_data: Path, extraction: SimpleNamespace
) -> None:
    """Formulas, all but one: the source missed that `10{,}000` is 10000."""
    asked, keys = extraction.questions(shared_data / "recorded" / "math100_8samples")
    missed = []
    for row in _rows(shared_data / "recorded" / "math100_8samples" / "outputs.jsonl.gz"):
        question = asked[row["question_id"]]
        if (read(question, row["text"]) == keys[question.id]) != row["recorded_correct"]:
            missed.append((question.id, row["recorded_pred"]))
    assert missed == [("math100-72", "10000")]
