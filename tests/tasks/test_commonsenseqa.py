from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pluribus.tasks import load_task

LABELS, TEXTS = list("ABCDE"), ["bank", "library", "store", "mall", "york"]
OWN: dict[str, Any] = {
    "id": "i1",
    "answerKey": "D",
    "question": {
        "stem": "Where?",
        "question_concept": "door",
        "choices": [{"label": label, "text": text} for label, text in zip(LABELS, TEXTS, strict=True)],
    },
}
HUB: dict[str, Any] = {
    "id": "i1",
    "question": "Where?",
    "question_concept": "door",
    "choices": {"label": LABELS, "text": TEXTS},
    "answerKey": "D",
}


@pytest.mark.parametrize("row", [OWN, HUB])
def test_both_forms_give_the_same_question(one: Any, row: dict[str, Any]) -> None:
    question, key = one("commonsenseqa", row)
    assert (question.id, question.text, question.choices, key.answer) == ("i1", "Where?", tuple(TEXTS), "D")


def test_parquet_of_the_hub(one: Any, parquet: Any) -> None:
    assert one("commonsenseqa", parquet(HUB))[1].answer == "D"


def test_test_answers_are_withheld(one: Any) -> None:
    assert one("commonsenseqa", {**HUB, "answerKey": ""})[1] is None
    assert one("commonsenseqa", {name: OWN[name] for name in ("id", "question")})[1] is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"answerKey": "F"}, "'answerKey' must be one of the labels A, B, C, D, E, found 'F'"),
        ({"question": {"stem": "Where?", "choices": ["bank"]}}, "'choices' must be a list of objects"),
        ({"question": {"choices": OWN["question"]["choices"]}}, "there is no field 'stem'"),
    ],
)
def test_a_broken_row_is_named(refused: Any, change: dict[str, Any], why: str) -> None:
    assert why in refused("commonsenseqa", OWN, {**OWN, "id": "i2", **change})


def test_options_and_labels_of_different_number_are_refused(refused: Any) -> None:
    bad = {**HUB, "id": "i2", "choices": {"label": LABELS[:4], "text": TEXTS}}
    assert "there are 5 options, but 4 labels" in refused("commonsenseqa", HUB, bad)


def test_the_real_file_loads_whole(shared_data: Path) -> None:
    pairs = load_task("commonsenseqa", data=shared_data / "benchmarks/commonsenseqa/dev.jsonl.gz").pairs
    assert len(pairs) == 1221
    assert all(key and len(question.choices) == 5 for question, key in pairs)
    assert [key.answer for _, key in pairs[:5] if key] == ["A", "A", "B", "A", "A"]
