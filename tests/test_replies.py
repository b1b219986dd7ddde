"""Replies in a form: what is read, what is refused, and when it is asked again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BadForm, BudgetExceeded, ServerError
from pluribus.replies import (
    Form,
    ask,
    choice,
    confidence,
    fields,
    objects,
    ranking,
    rating,
    ratings,
    verdict,
)
from pluribus.types import Message, Question

Make = Callable[..., list[Agent]]


class Plan(BaseModel):
    title: str
    steps: list[str]
    kind: Literal["short", "long"] = "short"


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"score": 7}', 7.0),
        ('{"reason": "it is {exact}", "Score": "7.5"}', 7.5),
        ('```json\n{\n  "reason": "fine",\n  "score": 7\n}\n```', 7.0),
        ('{"reason": "line one\nline two, \\sqrt{2} and \\frac{1}{2}", "score": 7}', 7.0),
        ("Step 1: {x: 3}. So {score: 7}", 7.0),
        ("{score: 3} no, wait: {score: 7}", 7.0),
        ('{"score": 3} or rather {"score": 7}', 7.0),
        ("The score: see below.\nScore: 7/10", 7.0),
        ("**Score:** 7", 7.0),
        ("### Score: **7.**", 7.0),
        ("Score:\n7 out of 10", 7.0),
        ("Score: 7, since step 2 is missing", 7.0),
        ('{score: "7"}', 7.0),
        ("{score: .5}", 0.5),
        ("<think>maybe {score: 2}</think> {score: 7}", 7.0),
    ],
)
def test_ratings_that_are_read(text: str, score: float) -> None:
    assert rating().read(text) == score


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("It is quite good.", "it does not say score; expected {score: …}"),
        ("", "it does not say score"),
        ("{score: 11}", "score is 11; expected a number from 0 to 10"),
        ("{score: -1}", "score is -1; expected"),
        ("{score: −1}", "score is -1; expected"),
        ("{score: high}", "score is 'high'; expected a number"),
        ("{score: 7-8}", "score is '7-8'"),
        ("Score: 7 or 8", "score is '7 or 8'"),
        ("{score: 7,5}", "score is '7,5'"),
        ("{score: 1e3}", "score is '1e3'"),
        ("Score: 8/100", "score is '8/100'"),
        ("Score: 8%", "score is '8%'"),
        ('{"score": true}', "score is 'True'"),
        ('{"score": null}', "score is 'null'"),
        ('{"score": NaN}', "score is 'nan'"),
        ('{"score": [7]}', "score is '[7]'"),
        ("<think> {score: 7}", "it does not say score"),
    ],
)
def test_ratings_that_are_refused(text: str, problem: str) -> None:
    with pytest.raises(BadForm) as refused:
        rating().read(text)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        (verdict(), '{"reason": "2 + 2 is 4", "verdict": true}', True),
        (verdict(), "Verdict: **No**", False),
        (verdict(), "{verdict: 'Incorrect'}", False),
        (choice(["1", "2"]), '{"choice": 2}', "2"),
        (choice(["1", "2"]), "Choice: Answer 2.", "2"),
        (ranking(["1", "2", "3"]), '{"ranking": [3, 1, 2]}', ("3", "1", "2")),
        (ranking(["1", "2", "3"]), '{"ranking": "3 > 1 > 2"}', ("3", "1", "2")),
        (ranking(["1", "2", "3"]), "Ranking: Answer 3 > Answer 1 > Answer 2", ("3", "1", "2")),
        (ranking(["1", "2", "3"]), "{ranking: [3] [1] [2]}", ("3", "1", "2")),
        (ranking(["1"]), "{ranking: 1}", ("1",)),
        (ratings(3), "{final answer: 4} {ratings: 5, 1, 2.5}", (5.0, 1.0, 2.5)),
        (ratings(2), '{"ratings": ["5/5", 1]}', (5.0, 1.0)),
        (ratings(1), "{ratings: 4}", (4.0,)),
        (confidence(), "{confidence: 1}", 1.0),
        (confidence(), "Confidence: 0.85 (85%)", 0.85),
        (confidence(), "{confidence: 85 %}", 0.85),
        (confidence(), "Confidence: 85/100", 0.85),
    ],
)
def test_other_forms_that_are_read(form: Form[Any], text: str, value: Any) -> None:
    assert form.read(text) == value
    assert form.problem(text) is None


@pytest.mark.parametrize(
    ("form", "text", "problem"),
    [
        (verdict(), "{verdict: partly}", "verdict is 'partly'; expected true or false"),
        (verdict(), '{"verdict": 1}', "verdict is '1'; expected true or false"),
        (choice(["1", "2"]), "{choice: 3}", "choice is '3'; expected one of 1, 2"),
        (choice(["1", "2"]), "{choice: 1 or 2}", "choice is '1 or 2'"),
        (ranking(["1", "2", "3"]), "{ranking: 1, 2}", "ranking is '1, 2'; expected each of 1, 2, 3 once"),
        (ranking(["1", "2", "3"]), "{ranking: 1, 2, 2}", "expected each of 1, 2, 3 once"),
        (ranking(["1", "2"]), "{ranking: 1, 4}", "ranking is '4'; expected one of 1, 2"),
        (ratings(3), "{ratings: 5, 1}", "ratings holds 2 numbers; expected 3, one for each text"),
        (ratings(2), "{ratings: 5, 6}", "ratings is 6; expected a number from 1 to 5"),
        (confidence(), "{confidence: 85}", "confidence is 85; expected a number from 0 to 1"),
        (confidence(), "{confidence: 120%}", "confidence is 120"),
        (confidence(), "{confidence: 1/2}", "confidence is '1/2'"),
        (fields(Plan), "no JSON", "there is no JSON object with the fields title, steps, kind"),
        (fields(Plan), '{"other": 1}', "there is no JSON object with the fields"),
        (fields(Plan), '{"title": "t"}', "steps: field required"),
        (fields(Plan), '{"title": "t", "steps": [1]}', "steps.0: input should be a valid string"),
        (fields(Plan), '{"title": "t", "steps": [], "kind": "odd"}', "kind: input should be 'short' or 'long'"),
        (fields(Plan), '<think>{"title": "t", "steps": []}', "there is no JSON object"),
    ],
)
def test_other_forms_that_are_refused(form: Form[Any], text: str, problem: str) -> None:
    assert problem in (form.problem(text) or "")


def test_the_last_object_that_holds_is_read() -> None:
    text = '{"title": "a", "steps": []} {"title": "b", "steps": ["s"]} {"title": "c"} {"z": 1}'
    assert fields(Plan).read(text).title == "b"


def test_a_model_of_defaults_is_not_found_in_any_object() -> None:
    class Loose(BaseModel):
        note: str = ""

    assert fields(Loose).problem('{"z": 1} {}') is not None


@pytest.mark.parametrize(
    "form", [rating(), verdict(), choice(["1", "2"]), ranking(["1", "2"]), fields(Plan)], ids=lambda form: form.name
)
def test_schemas_are_closed_and_require_every_field(form: Form[Any]) -> None:
    assert form.schema is not None
    assert form.schema["required"] == list(form.schema["properties"])
    assert form.schema["additionalProperties"] is False


def test_a_field_called_title_stays_in_the_schema() -> None:
    schema = fields(Plan).schema
    assert schema is not None
    assert list(schema["properties"]) == ["title", "steps", "kind"]
    assert "title" not in schema and "default" not in schema["properties"]["kind"]


def test_forms_inside_free_text_have_no_schema() -> None:
    assert ratings(2).schema is confidence().schema is None


# A backspace or form feed before a letter is what JSON makes of LaTeX's \beta and \frac.
WORDS = st.text(st.characters(exclude_characters="\b\f"))


@given(st.dictionaries(WORDS, WORDS | st.integers() | st.none() | st.lists(WORDS)), st.text(alphabet="ab \n"))
def test_an_object_is_found_as_it_was_written(value: dict[str, Any], around: str) -> None:
    assert objects(around + json.dumps(value, ensure_ascii=False) + around) == [value]


@given(st.text())
def test_no_text_breaks_a_reader(text: str) -> None:
    for form in (rating(), verdict(), ranking(["1", "2"]), ratings(2), confidence(), fields(Plan)):
        form.problem(text)


@pytest.mark.parametrize(
    "unit", ["a ", "\n", "score: ", "{", '{"a":', '{"score', "{score: ", "* ", ". ", "{score: 1", "\\", "<think>"]
)
def test_no_long_reply_holds_up_the_reader(unit: str) -> None:
    """A reader that backtracks takes hours for a text of this length."""
    for form in (rating(), fields(Plan)):
        assert form.problem(unit * 50_000) is not None


# --- asking ----------------------------------------------------------------------------------------------------------


def sitting(council: Make, question: Question, *texts: str | Exception) -> Agent:
    """One agent that sits at the question and says the texts in order."""
    said = iter(texts)

    def reply(request: Request) -> Any:
        text = next(said)
        if isinstance(text, BudgetExceeded):
            raise text
        return text

    (agent,) = council(reply)
    return replace(agent.at(question, 0), question=question)


async def test_a_readable_reply_is_one_turn(council: Make, question: Question) -> None:
    agent = sitting(council, question, "{score: 8}")
    reply = await ask(agent, "score", rating(), role="score", round=3, sample=2, peers=(), criteria="all")
    assert reply.value == 8
    (turn,) = reply.turns
    assert (turn.round, turn.sample, turn.role, turn.form, turn.unread) == (3, 2, "score", "rating", None)
    (request,) = agent.backend.seen  # type: ignore[attr-defined]
    assert request.schema == rating().schema


async def test_an_unreadable_reply_is_asked_for_once_more_with_its_problem(council: Make, question: Question) -> None:
    agent = sitting(council, question, "fine", "{score: 8}", "never asked")
    reply = await ask(agent, "score", rating(), role="score", criteria="all")
    first, again = reply.turns
    assert reply.value == 8 and reply.turn is again
    assert first.unread == "it does not say score; expected {score: …}"
    assert again.messages[: len(first.messages)] == first.messages
    assert again.messages[len(first.messages)] == Message("assistant", "fine")
    assert "it does not say score; expected {score: …}" in again.messages[-1].content
    assert (again.role, again.form, again.unread) == ("score", "rating", None)


async def test_a_second_unreadable_reply_is_a_recorded_failure(council: Make, question: Question) -> None:
    agent = sitting(council, question, "fine", "{score: 12}", "never asked")
    reply = await ask(agent, "score", rating(), role="score", criteria="all")
    assert (reply.value, len(reply.turns)) == (None, 2)
    assert reply.turn.unread == "score is 12; expected a number from 0 to 10"
    assert reply.turn.ok, "it came, but says nothing that can be read"


async def test_a_failed_call_is_not_asked_again(council: Make, question: Question) -> None:
    agent = sitting(council, question, ServerError("500: ill"), "never asked")
    reply = await ask(agent, "score", rating(), role="score", criteria="all")
    assert (reply.value, len(reply.turns), reply.turn.ok) == (None, 1, False)


async def test_a_failed_second_call_keeps_both_turns(council: Make, question: Question) -> None:
    agent = sitting(council, question, "fine", ServerError("500: ill"))
    reply = await ask(agent, "score", rating(), role="score", criteria="all")
    assert (reply.value, [turn.ok for turn in reply.turns]) == (None, [True, False])


async def test_a_spent_budget_ends_it(council: Make, question: Question) -> None:
    agent = sitting(council, question, "fine", BudgetExceeded("spent"))
    with pytest.raises(BudgetExceeded):
        await ask(agent, "score", rating(), role="score", criteria="all")


async def test_false_zero_and_empty_are_values(council: Make, question: Question) -> None:
    denied = await ask(sitting(council, question, "{verdict: no}"), "verify", verdict(), role="verdict", aspect="it")
    nothing = await ask(sitting(council, question, "{score: 0}"), "score", rating(), role="score", criteria="all")
    assert (denied.value, nothing.value) == (False, 0)
    assert len(denied.turns) == len(nothing.turns) == 1
