from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pluribus.tasks import load_task
from pluribus.tasks.mmlu_pro import FAMILY, SUBSETS

ROW: dict[str, Any] = {
    "question_id": 70,
    "question": "Which?",
    "options": ["v", "w", "x", "y", "z"],
    "answer": "D",
    "answer_index": 3,
    "cot_content": "",
    "category": "computer science",
    "src": "ori_mmlu",
}


def right(question: Any, key: Any) -> str:
    return str(question.choices["ABCDEFGHIJ".index(key.answer)])


def test_the_hubs_rows(one: Any, parquet: Any) -> None:
    question, key = one("mmlu_pro", parquet(ROW))
    assert (question.id, right(question, key)) == ("mmlu_pro/70", "y")
    assert question.metadata == {"category": "computer_science", "src": "ori_mmlu"}


@pytest.mark.parametrize(
    ("options", "answer", "kept", "letter"),
    [
        (["v", "w", "x", "N/A", "N/A"], "C", ("v", "w", "x"), "C"),
        (["v", "N/A", "x", "y", "N/A"], "D", ("v", "x", "y"), "C"),
        (["v", "w", "N/A"], "C", ("v", "w", "N/A"), "C"),
    ],
)
def test_fillers_go_and_the_letter_stays_with_its_option(
    one: Any, options: list[str], answer: str, kept: tuple[str, ...], letter: str
) -> None:
    row = {**ROW, "options": options, "answer": answer, "answer_index": "ABCDE".index(answer)}
    question, key = one("mmlu_pro", row)
    assert (question.choices, key.answer) == (kept, letter)


def test_a_category_takes_its_own_questions_only(write: Any) -> None:
    rows = [{**ROW, "question_id": n, "category": name} for n, name in enumerate(("health", "law", "Health"))]
    loaded = load_task("mmlu_pro:health", data=write(*rows))
    assert (loaded.task, loaded.family, len(loaded.pairs)) == ("mmlu_pro:health", "medicine", 2)
    assert len(load_task("MMLU-Pro", data=write(*rows)).pairs) == 3


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"answer": "F"}, "'answer' must be a letter from A to E"),
        ({"answer_index": 2}, "'answer' is D, but 'answer_index' 2"),
        ({"category": "medicine"}, "'category' must be one of biology"),
        ({"options": ["N/A", "v"], "answer": "B", "answer_index": 1}, "two or more options"),
    ],
)
def test_a_broken_row_is_named(refused: Any, change: dict[str, Any], why: str) -> None:
    assert why in refused("mmlu_pro", ROW, {**ROW, "question_id": 71, **change})


def test_families() -> None:
    assert {name: FAMILY(name) for name in ("health", "math", "law")} == {
        "health": "medicine",
        "math": "mathematics",
        "law": "general",
    }
    assert {FAMILY(name) for name in SUBSETS} == {"medicine", "mathematics", "general"}


def test_the_recorded_questions_are_read_by_category(shared_data: Path) -> None:
    path = shared_data / "recorded/mmlu_pro_sample_29models/questions.jsonl.gz"
    assert len(load_task("mmlu_pro", data=path).pairs) == 2800
    assert [len(load_task(f"mmlu_pro:{name}", data=path).pairs) for name in SUBSETS] == [200] * 14
