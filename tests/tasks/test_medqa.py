from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.tasks import load_task

ROW: dict[str, Any] = {
    "question": "Next step?",
    "options": {"A": "wait", "B": "operate", "C": "ask", "D": "leave"},
    "answer": "operate",
    "answer_idx": "B",
    "meta_info": "step1",
    "metamap_phrases": ["next step"],
}


def test_the_published_form(one: Any) -> None:
    question, key = one("medqa", ROW)
    assert (question.choices, key.answer) == (("wait", "operate", "ask", "leave"), "B")
    assert question.metadata == {"step": "step1"}


def test_options_as_a_list_of_keys_and_values(one: Any) -> None:
    options = [{"key": letter, "value": text} for letter, text in ROW["options"].items()]
    assert one("medqa", {**ROW, "options": options})[0].choices == tuple(ROW["options"].values())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"answer_idx": "E"}, "'answer_idx' must be a letter from A to D, found \"E\""),
        ({"answer": "wait"}, "'answer_idx' is B, \"operate\", but 'answer' says \"wait\""),
        ({"options": {"A": "x", "C": "y"}}, "by their letters A, B, …, found A, C"),
        ({"options": {}}, "found none"),
        ({"options": "A B C D"}, "must be a list of objects"),
        ({"options": {**ROW["options"], "D": ""}}, "'D' is empty"),
    ],
)
def test_a_broken_row_is_named(refused: Any, change: dict[str, Any], why: str) -> None:
    assert why in refused("medqa", ROW, {**ROW, **change})


def test_another_datasets_file_is_refused_as_such(write: Any) -> None:
    row = {"question": "How far?", "options": ["A)1", "B)2"], "correct": "A"}
    with pytest.raises(DataError, match=r"data\.jsonl:1: no form that task 'medqa' reads, found the fields 'question'"):
        load_task("medqa", data=write(row))


def test_the_real_file_loads_whole(shared_data: Path) -> None:
    pairs = load_task("medqa", data=shared_data / "benchmarks/medqa/usmle_test_4options.jsonl.gz").pairs
    assert len(pairs) == 1273
    assert all(key and key.answer in "ABCD" and len(question.choices) == 4 for question, key in pairs)
    assert [key.answer for _, key in pairs[:5] if key] == ["B", "D", "B", "D", "B"]
