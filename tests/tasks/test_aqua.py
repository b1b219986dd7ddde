from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.tasks import load_task

ROW = {
    "question": "How far?",
    "options": ["A)21", "B)3 A) 4", "C) none", "D)D)7", "E)None of these"],
    "rationale": "",
    "correct": "D",
}


def test_options_lose_their_own_letters_and_nothing_else(one: Any) -> None:
    question, key = one("aqua", ROW)
    assert question.choices == ("21", "3 A) 4", "none", "7", "None of these")
    assert (question.kind, question.text, key.answer) == ("choice", "How far?", "D")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"options": ["A)1", "C)2", "C)3", "D)4", "E)5"]}, "option B must be 'B\\)' and a text, found \"C\\)2\""),
        ({"options": ["A)1", "B)", "C)3", "D)4", "E)5"]}, "option B must be"),
        ({"options": ["A)1", "B)2"]}, "must hold five options, found 2"),
        ({"correct": "F"}, "'correct' must be a letter from A to E, found \"F\""),
        ({"question": " "}, "'question' is empty"),
    ],
)
def test_a_broken_row_is_named(refused: Any, change: dict[str, Any], why: str) -> None:
    assert re.search(why, refused("aqua", ROW, {**ROW, **change}))


@pytest.mark.parametrize("file", ["test", "dev"])
def test_real_files_load_whole(shared_data: Path, file: str) -> None:
    pairs = load_task("aqua", data=shared_data / f"benchmarks/aqua/{file}.json.gz").pairs
    assert len(pairs) == 254
    assert all(key and key.answer in "ABCDE" and len(question.choices) == 5 for question, key in pairs)
    assert not any(choice.startswith(("A)", "B)")) for question, _ in pairs for choice in question.choices)


def test_keys_are_those_of_the_recorded_runs(
    shared_data: Path, recorded: Callable[[str], list[dict[str, Any]]]
) -> None:
    """One key differs: none of that question's options is right, and the recording's authors chose another."""
    pairs = load_task("aqua", data=shared_data / "benchmarks/aqua/test.json.gz").pairs
    rows = recorded("aqua_30runs")
    assert [row["question"].startswith(q.text) for (q, _), row in zip(pairs, rows, strict=True)] == [True] * 254
    other = [q.text for (q, key), row in zip(pairs, rows, strict=True) if key and key.answer != row["answer"]]
    assert [text.split()[0] for text in other] == ["Winson"]
