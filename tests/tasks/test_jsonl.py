"""The user's own questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError, UnknownName, UsageError
from pluribus.tasks import LoadedTask, load_task
from pluribus.types import Question


def loaded(folder: Path, *rows: dict[str, Any], skip_bad: bool = False) -> LoadedTask:
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return load_task("jsonl", data=path, skip_bad=skip_bad)


def one(folder: Path, **row: Any) -> tuple[Question, str | None]:
    ((question, key),) = loaded(folder, {"question": "What?", **row}).pairs
    return question, None if key is None else key.answer


@pytest.mark.parametrize("answer", ["57,500", "-5", "3.14", "0", "+7", "1,234,567.89", "$18", "50%", ".5"])
def test_number_answers_stand_as_published(tmp_path: Path, answer: str) -> None:
    question, kept = one(tmp_path, answer=answer)
    assert (question.kind, kept) == ("number", answer)


@pytest.mark.parametrize(
    ("row", "kind", "answer"),
    [
        ({"answer": 42}, "number", "42"),
        ({"answer": -2.5}, "number", "-2.5"),
        ({"answer": 12345678901234567890}, "number", "12345678901234567890"),
        ({"answer": True}, "boolean", "true"),
        ({"answer": False}, "boolean", "false"),
        ({"answer": "No", "kind": "boolean"}, "boolean", "false"),
        ({"answer": "Lisbon"}, "text", "Lisbon"),
        ({"answer": "12 cats"}, "text", "12 cats"),
        ({"answer": "5", "kind": "text"}, "text", "5"),
        ({"answer": "1/2", "kind": "number"}, "number", "1/2"),
        ({"answer": r"\frac{1}{9}", "kind": "latex"}, "latex", r"\frac{1}{9}"),
        ({}, "text", None),
        ({"answer": None, "kind": "number"}, "number", None),
        ({"answer": "B", "choices": ["x", "y"]}, "choice", "B"),
        ({"answer": "b", "choices": ["x", "y"]}, "choice", "B"),
        ({"answer": "y", "choices": ["x", "y"]}, "choice", "B"),
        ({"answer": 4, "choices": [3, 4]}, "choice", "B"),
        ({"answer": "A", "choices": ["B", "A"]}, "choice", "A"),
        ({"answer": "C", "choices": ["same", "same", "other"]}, "choice", "C"),
        ({"choices": ["x", "y"]}, "choice", None),
        ({"answer": "up", "labels": ["up", "down"]}, "label", "up"),
        ({"answer": "UP", "labels": ["up", "down"]}, "label", "up"),
    ],
)
def test_kind_and_key_follow_from_what_is_there(
    tmp_path: Path, row: dict[str, Any], kind: str, answer: str | None
) -> None:
    question, kept = one(tmp_path, **row)
    assert (question.kind, kept) == (kind, answer)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"anser": "4"}, "unknown field 'anser'; there are: id, question, answer"),
        ({"kind": "essay"}, 'unknown kind "essay"; there are: number, choice'),
        ({"kind": "choice"}, "kind 'choice' has no 'choices'"),
        ({"kind": "label"}, "kind 'label' has no 'labels'"),
        ({"kind": "number", "choices": ["x", "y"]}, "kind 'number' does not go with 'choices'"),
        ({"choices": ["x", "y"], "labels": ["u", "v"]}, "'choices' or 'labels', not both"),
        ({"choices": ["x"]}, "'choices' needs two or more"),
        ({"choices": ["x", "x"]}, "'choices' needs two or more different"),
        ({"choices": "x, y"}, "'choices' must be a list of texts"),
        ({"choices": [str(n) for n in range(27)]}, "27 entries, but there are 26 letters"),
        ({"choices": ["x", "y"], "answer": "C"}, "letter from A to B or an option's exact text"),
        ({"choices": ["x", "y"], "answer": 1}, "letter from A to B or an option's exact text"),
        ({"choices": ["x", "x", "y"], "answer": "x"}, "letter from A to C or an option's exact text"),
        ({"labels": ["up", "down"], "answer": "left"}, "one of the labels up, down"),
        ({"kind": "boolean", "answer": "maybe"}, "true, false, yes or no"),
        ({"kind": "number", "answer": "many"}, 'must hold a number, found "many"'),
        ({"kind": "number", "answer": True}, "must be text or a number, found true"),
        ({"answer": ["4"]}, "must be text or a number"),
        ({"answer": " "}, "must be text or a number"),
        ({"metadata": "x"}, "'metadata' must be an object"),
        ({"context": 7}, "'context' must be text"),
        ({"id": ["x"]}, "'id' must be text or a whole number"),
        ({"id": ""}, "'id' must be text or a whole number"),
        ({"question": ""}, "'question' is empty"),
    ],
)
def test_a_wrong_line_says_what_is_wrong_and_where(tmp_path: Path, row: dict[str, Any], why: str) -> None:
    with pytest.raises(DataError) as caught:
        loaded(tmp_path, {"question": "Fine?"}, {"question": "What?", **row})
    assert "mine.jsonl:2: " in str(caught.value)
    assert why in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_everything_given_arrives(tmp_path: Path) -> None:
    question, answer = one(tmp_path, id=7, context="Ann has 3.", answer="3", metadata={"level": [1, {"a": None}]})
    assert question == Question(
        "7", "jsonl", "What?", "number", context="Ann has 3.", metadata={"level": [1, {"a": None}]}
    )
    assert answer == "3"


def test_a_question_holds_nothing_of_its_key(tmp_path: Path) -> None:
    question, _ = one(tmp_path, answer="the secret word")
    assert "secret" not in repr(question)


def test_an_id_does_not_change_when_the_key_is_added(tmp_path: Path) -> None:
    with_key, _ = one(tmp_path, answer="Lisbon")
    without, _ = one(tmp_path)
    assert with_key.id == without.id
    assert one(tmp_path, context="In 1755.")[0].id != without.id


def test_an_id_that_comes_twice_is_an_error_that_names_both_lines(tmp_path: Path) -> None:
    rows = ({"id": "a", "question": "One?"}, {"id": "a", "question": "Two?"}, {"id": "b", "question": "Three?"})
    with pytest.raises(DataError, match=r"mine\.jsonl:2: the id 'a' stands already at .*mine\.jsonl:1"):
        loaded(tmp_path, *rows)
    assert [question.id for question, _ in loaded(tmp_path, *rows, skip_bad=True).pairs] == ["a", "b"]


def test_the_same_question_twice_without_an_id_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"mine\.jsonl:2: the same question without an id stands already"):
        loaded(tmp_path, {"question": "One?"}, {"question": "One?"})


def test_no_file_no_subset(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="got no file; pass --data FILE"):
        load_task("jsonl")
    with pytest.raises(UsageError, match="task 'jsonl' has no subsets"):
        load_task("jsonl:mine", data=tmp_path / "mine.jsonl")
    with pytest.raises(UnknownName, match="unknown split of jsonl 'test'"):
        load_task("jsonl", "test", data=tmp_path / "mine.jsonl")


@pytest.mark.parametrize(
    ("folder", "n", "kind"),
    [
        ("gsm8k_4models", 1319, "number"),
        ("gsm8k_24runs", 1319, "number"),
        ("aqua_30runs", 254, "choice"),
        ("svamp_18runs", 1000, "number"),
        ("strategyqa_18runs", 2290, "boolean"),
        ("mmlu_pro_logic_medicine_29models", 352, "choice"),
        ("mmlu_pro_sample_29models", 2800, "choice"),
        ("math_l5_43models", 721, "number"),
        ("math100_8samples", 100, "latex"),
    ],
)
def test_recorded_questions_load_whole(shared_data: Path, folder: str, n: int, kind: str) -> None:
    path = shared_data / "recorded" / folder / "questions.jsonl.gz"
    found = load_task("jsonl", data=path).pairs
    assert (len(found), {question.kind for question, _ in found}) == (n, {kind})
    assert all(key is not None and key.answer for _, key in found)
