from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.tasks import load_task

OPTIONS = ["a marsh", "a tundra", "the plains", "a desert"]
OWN = {
    "id": "9-1",
    "question": {
        "stem": "Fog is around",
        "choices": [{"text": t, "label": x} for x, t in zip("ABCD", OPTIONS, strict=True)],
    },
    "answerKey": "A",
}
HUB = {
    "id": "9-1",
    "question_stem": "Fog is around",
    "choices": {"text": OPTIONS, "label": list("ABCD")},
    "answerKey": "A",
}
ADAPTERS = {
    "instruction": "Please choose the correct answer to the question: Fog is around\n\nAnswer1: a marsh Answer2: a "
    "tundra Answer3: the plains Answer4: a desert\n\nAnswer format: answer1/answer2/answer3/answer4",
    "input": "",
    "output": "the correct answer is answer1",
    "answer": "answer1",
}


@pytest.mark.parametrize("row", [OWN, HUB, ADAPTERS])
def test_all_forms_give_the_same_question(one: Any, row: dict[str, Any]) -> None:
    question, key = one("openbookqa", row)
    assert (question.text, question.choices, key.answer) == ("Fog is around", tuple(OPTIONS), "A")


def test_an_answer_is_never_withheld(write: Any) -> None:
    with pytest.raises(DataError, match=r"data\.jsonl:1: field 'answerKey' is empty"):
        load_task("openbookqa", data=write({**HUB, "answerKey": ""}))


def test_the_real_file_loads_whole(shared_data: Path) -> None:
    path = shared_data / "benchmarks/openbookqa/openbookqa_test.llmadapters.json.gz"
    pairs = load_task("openbookqa", data=path).pairs
    assert len(pairs) == 500
    assert all(key and len(question.choices) == 4 for question, key in pairs)
