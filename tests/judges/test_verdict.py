"""The aspect judge: direct, or in two calls; what it reads and what counts as no verdict."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, ServerError
from pluribus.judges import verdict
from pluribus.prompts import dialect
from pluribus.types import Question

Make = Callable[..., list[Agent]]


@pytest.mark.parametrize(("said", "value"), [("{verdict: true}", True), ('{"reason": "r", "verdict": false}', False)])
async def test_direct_it_is_one_call(council: Make, question: Question, said: str, value: bool) -> None:
    agents = council(lambda request: said)
    reply = await verdict.judge(agents[0].at(question, 0), "It is 19.", aspect="the units", round=1, sample=3)
    assert reply.value is value
    (turn,) = reply.turns
    assert (turn.role, turn.form, turn.round, turn.sample) == ("verdict", "verdict", 1, 3)
    text = turn.messages[-1].content
    assert question.text in text and "Examine the units." in text and "~~~\nIt is 19.\n~~~" in text


async def test_reason_first_thinks_in_free_text_and_concludes_from_it(council: Make, question: Question) -> None:
    def reply(request: Request) -> str:
        return "12 + 7 is 19, so it holds." if request.schema is None else "{verdict: true}"

    agents = council(reply)
    judged = await verdict.judge(
        agents[0].at(question, 0), "It is 19.", aspect="the sums", reason_first=True, round=2, sample=5
    )
    thought, concluded = judged.turns
    assert judged.value is True
    assert [(t.role, t.form, t.round, t.sample) for t in judged.turns] == [
        ("reason", None, 2, 5), ("verdict", "verdict", 2, 5),
    ]  # fmt: skip
    assert "Examine the sums." in thought.messages[-1].content
    assert "~~~\n12 + 7 is 19, so it holds.\n~~~" in concluded.messages[-1].content
    assert "~~~\nIt is 19.\n~~~" in concluded.messages[-1].content


async def test_a_failed_thought_ends_the_judgement(council: Make, question: Question) -> None:
    agents = council(lambda request: ServerError("500: ill"))
    reply = await verdict.judge(agents[0].at(question, 0), "19", reason_first=True)
    assert (reply.value, len(reply.turns)) == (None, 1)


async def test_a_failed_conclusion_keeps_the_thought(council: Make, question: Question) -> None:
    def reply(request: Request) -> str | BackendError:
        return "It holds." if request.schema is None else ServerError("500: ill")

    judged = await verdict.judge(council(reply)[0].at(question, 0), "19", reason_first=True)
    assert (judged.value, [turn.ok for turn in judged.turns]) == (None, [True, False])


@pytest.mark.parametrize("said", ["I approve.", "{verdict: partly}", "{verdict: true or false}"])
async def test_an_unreadable_verdict_is_none(council: Make, question: Question, said: str) -> None:
    agents = council(lambda request: said)
    reply = await verdict.judge(agents[0].at(question, 0), "19")
    assert (reply.value, len(reply.turns)) == (None, 2)
    assert reply.turn.unread


def test_its_prompts_are_there() -> None:
    assert set(verdict.PROMPTS) <= set(dialect("standard").texts)
