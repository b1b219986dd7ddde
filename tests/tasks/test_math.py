"""MATH in each form it is published in, its subjects and levels, and its keys."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pluribus.answers import canonical
from pluribus.errors import DataError, UnknownName, UsageError
from pluribus.tasks import load_task
from pluribus.types import Key, Question

ROWS: tuple[dict[str, Any], ...] = (
    {"problem": "Half?", "level": "Level 1", "type": "Algebra", "solution": r"No $\boxed{2}$, so $\boxed{\frac12}$."},
    {"problem": "Which?", "level": "Level 5", "type": "Counting & Probability", "solution": r"So $\fbox{\text{(C)}}$."},
    {"problem": "How many?", "level": "Level ?", "type": "Precalculus", "solution": r"So $\boxed 3$."},
)
OF_500 = {
    "problem": "What percent?", "solution": r"So \boxed{50\%}.", "answer": r"50\%", "subject": "Number Theory",
    "level": 5, "unique_id": "test/number_theory/1.json",
}  # fmt: skip


def jsonl(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def loaded(name: str, path: Path) -> list[tuple[Question, Key | None]]:
    return list(load_task(name, data=path).pairs)


def test_the_key_is_what_the_last_box_of_the_solution_holds(tmp_path: Path) -> None:
    found = loaded("math", jsonl(tmp_path, *ROWS))
    assert [key.answer for _, key in found if key] == [r"\frac12", r"\text{(C)}", "3"]
    assert {(question.kind, question.task) for question, _ in found} == {("latex", "math")}
    assert dict(found[1][0].metadata) == {"subject": "counting_and_probability", "level": 5}
    assert dict(found[2][0].metadata) == {"subject": "precalculus", "level": None}


def test_one_file_is_one_object_in_the_authors_folders(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    path.write_text(json.dumps(ROWS[0], indent=4), "utf-8")
    ((question, key),) = loaded("math", path)
    assert (question.text, key and key.answer) == ("Half?", r"\frac12")


def test_rows_with_an_answer_of_their_own(tmp_path: Path) -> None:
    ((question, key),) = loaded("math:500", jsonl(tmp_path, OF_500))
    assert (question.id, key and key.answer) == ("test/number_theory/1.json", r"50\%")
    assert canonical(question, r"50\%") == canonical(question, "50") == "50"


def test_rows_of_problem_and_answer_only(tmp_path: Path) -> None:
    found = loaded("math", jsonl(tmp_path, {"problem": "a?", "answer": 27.0}, {"problem": "b?", "answer": "204"}))
    assert [key.answer for _, key in found if key] == ["27", "204"]


@pytest.mark.parametrize(
    ("name", "asked"),
    [("math:algebra", ["Half?"]), ("math:level5", ["Which?"]), ("math:precalculus", ["How many?"])],
)
def test_subjects_and_levels(tmp_path: Path, name: str, asked: list[str]) -> None:
    assert [question.text for question, _ in loaded(name, jsonl(tmp_path, *ROWS))] == asked


def test_an_unknown_subset_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"'level6'.*did you mean 'level"):
        load_task("math:level6")


def test_the_500_are_test_problems() -> None:
    with pytest.raises(UsageError, match="only 'test'"):
        load_task("math:500", "train")


def test_a_solution_without_a_box_names_the_line(tmp_path: Path) -> None:
    bad = {**ROWS[0], "solution": "So it is 5."}
    with pytest.raises(DataError, match=r"data\.jsonl:2: .*boxed"):
        loaded("math", jsonl(tmp_path, ROWS[1], bad))


def test_without_network_the_hint_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UsageError, match=r"EleutherAI/hendrycks_math.*--data FILE"):
        load_task("math:algebra")


def test_the_published_test_split(shared_data: Path) -> None:
    found = loaded("math", shared_data / "benchmarks" / "math" / "math5000_test.jsonl.gz")
    subjects = Counter(question.metadata["subject"] for question, _ in found)
    assert len(found) == 5000
    assert subjects["algebra"] == 1187
    assert subjects["geometry"] == 479
    assert len(loaded("math:level5", shared_data / "benchmarks" / "math" / "math5000_test.jsonl.gz")) == 1324


def test_the_500_have_the_keys_of_their_boxes(shared_data: Path) -> None:
    """The published answers and the boxes of the solutions, which are written with other spaces, are the same."""
    path = shared_data / "benchmarks" / "math" / "math500_test.jsonl.gz"
    found = loaded("math:500", path)
    assert len(found) == 500
    assert all(key is not None and canonical(question, key.answer or "") is not None for question, key in found)


@pytest.mark.parametrize(("name", "first"), [("aime24.jsonl", "204"), ("amc23.jsonl", "27")])
def test_competitions_of_problem_and_answer(shared_data: Path, name: str, first: str) -> None:
    found = loaded("math", shared_data / "benchmarks" / "math" / name)
    assert found[0][1] is not None
    assert found[0][1].answer == first
