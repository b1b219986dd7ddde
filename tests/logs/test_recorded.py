"""The project's own recorded outputs, read as the replay backend reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.logs import reader_of, recorded
from pluribus.logs._panels import panel_of_recording
from pluribus.panel import answers, right_Q_A

Lines = Callable[..., Path]
QUESTIONS = [{"id": "a", "question": "2 + 2?", "answer": "4"}, {"id": "b", "question": "Where?", "choices": ["x", "y"]}]


def said(question: str, model: str, text: str, **more: Any) -> dict[str, Any]:
    return {"question_id": question, "model": model, "text": text, **more}


def test_models_and_samples_side_by_side(lines: Lines) -> None:
    lines(QUESTIONS, "set/questions.jsonl")
    path = lines(
        [said("a", "m", "The answer is 4.", usage={"prompt_tokens": 3, "completion_tokens": 4}),
         said("a", "m", "The answer is 5.", sample=1, recorded_answer="4"), said("b", "n", "(B)")],
        "set/outputs.jsonl",
    )  # fmt: skip
    assert reader_of(path) is recorded
    panel = panel_of_recording(recorded.read(path)[0])
    assert (panel.name, [m.name for m in panel.members]) == ("set", ["m #1", "m #2", "n"])
    assert answers(panel) == [["4", "5", None], [None, None, "B"]]  # the text is read, as replay does
    assert right_Q_A(panel)[0].tolist()[:2] == [1, 0]
    assert panel.items[0].words[0][0].tokens == 7  # type: ignore[union-attr]


def test_outputs_without_questions_beside_them_are_not_recognised(lines: Lines) -> None:
    assert reader_of(lines([said("a", "m", "4")], "outputs.jsonl")) is None


def test_what_is_left_out_is_counted(lines: Lines) -> None:
    lines(QUESTIONS, "questions.jsonl")
    path = lines([said("a", "m", "4"), said("a", "m", "5"), said("z", "m", "5")], "outputs.jsonl")
    assert recorded.read(path)[0].omitted == {recorded.DUPLICATES: 1, recorded.NOT_ASKED: 1}


@pytest.mark.parametrize(
    ("questions", "outputs", "message"),
    [(QUESTIONS, [said("a", "m", "4"), said("a", "m", "4") | {"model": 3}], r"outputs\.jsonl:2: 'model' is 3"),
     (QUESTIONS, [said("z", "m", "4")], "no output of a question in questions.jsonl"),
     ([{"question": "?"}], [said("a", "m", "4")], r"questions\.jsonl:1: a question without 'id'")],
)  # fmt: skip
def test_a_malformed_file_is_an_error(lines: Lines, questions: list[Any], outputs: list[Any], message: str) -> None:
    lines(questions, "questions.jsonl")
    with pytest.raises(DataError, match=message):
        recorded.read(lines(outputs, "outputs.jsonl"))
