from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.answers import same
from pluribus.tasks import load_task

ROW = {"ID": "chal-1", "Body": "Ann has 3 cats.", "Question": "How many cats?", "Answer": 3.0, "Type": "Addition"}


def test_the_story_and_its_question_become_one_text(one: Any) -> None:
    question, key = one("svamp", ROW)
    assert (question.id, question.text, question.kind) == ("chal-1", "Ann has 3 cats. How many cats?", "number")
    assert (key.answer, question.metadata) == ("3", {"type": "Addition"})
    assert "Answer" not in str(question) and "Equation" not in str(question)


@pytest.mark.parametrize(
    ("answer", "written"), [(51.0, "51"), ("51.0", "51"), (0.5, "0.5"), (-2, "-2"), (1e6, "1000000")]
)
def test_keys_are_written_as_people_write_numbers(one: Any, answer: Any, written: str) -> None:
    assert one("svamp", {**ROW, "Answer": answer})[1].answer == written


@pytest.mark.parametrize("answer", ["many", None, True, [3], "", "1e3"])
def test_an_answer_that_is_no_number_is_named(refused: Any, answer: Any) -> None:
    assert "'Answer' must be a number" in refused("svamp", ROW, {**ROW, "ID": "chal-2", "Answer": answer})


def test_a_missing_column_is_named(refused: Any) -> None:
    assert "no field 'Body'" in refused("svamp", ROW, {"ID": "x", "Question": "How many?", "Answer": 1})


def test_the_hubs_rows(one: Any, parquet: Any) -> None:
    row = {**ROW, "Answer": "145.0", "Equation": "( 1 + 144 )", "question_concat": "…"}
    assert one("svamp", parquet(row))[1].answer == "145"


def test_the_real_file_and_the_recorded_runs_agree(
    shared_data: Path, recorded: Callable[[str], list[dict[str, Any]]]
) -> None:
    pairs = load_task("svamp", data=shared_data / "benchmarks/svamp/SVAMP.json.gz").pairs
    rows = recorded("svamp_18runs")
    assert len(pairs) == len(rows) == 1000
    assert all(key and same(q, key.answer or "", row["answer"]) for (q, key), row in zip(pairs, rows, strict=True))
    assert [q.text for q, _ in pairs] == [row["question"] for row in rows]
