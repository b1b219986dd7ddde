"""Trace-level: who instructs, who solves, which proposal goes on, when the user ends it, and how many calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, ServerError, UsageError
from pluribus.methods import camel
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript, Turn

Make = Callable[..., list[Agent]]
Speaker = Callable[[Request], str | BackendError]


def part(request: Request) -> str:
    """The part that a request asks for."""
    if request.schema is not None:
        return "critic"
    first, last = request.messages[0].content, request.messages[-1].content
    if "Write the task for them" in last:
        return "specifier"
    if "You lead the work" in first:
        return "user"
    return "assistant" if "a partner, the user, who instructs you" in first else "answer"


def troupe(done_after: int = 99, pick: int = 1) -> Speaker:
    """Each text has a number of its own; the user ends it in the round given, the critic picks by place."""
    numbers = itertools.count()

    def reply(request: Request) -> str:
        who = part(request)
        if who == "critic":
            return f"{{choice: {pick}}}"
        if who == "user" and request.round >= done_after:
            return "TASK_DONE"
        return f"{who} text {next(numbers)}. {{final answer: {request.round}}}"

    return reply


def texts(content: str) -> list[str]:
    return re.findall(r"\w+ text \d+\.", content)


def said(turn: Turn) -> str:
    return texts(turn.text)[0]


def heard(turn: Turn) -> list[str]:
    """What the last message of a turn shows."""
    return texts(turn.messages[-1].content)


def trace(transcript: Transcript) -> list[tuple[int, int, str]]:
    return [(turn.round, turn.seat, turn.role) for turn in transcript.turns]


async def run(question: Question, agents: list[Agent], **settings: Any) -> Transcript:
    return await solve(question, agents, "camel", settings)


@pytest.mark.parametrize("seats", [1, 4, 50])
@pytest.mark.parametrize(
    ("settings", "least", "most"),
    [
        ({}, 4, 1 + 2 * 3),
        ({"option_num": 3, "chat_turn_limit": 2}, 1 + 8 + 4, 1 + 2 * (2 * 3 + 2)),
        ({"option_num": 3, "with_critic": False}, 4, 1 + 2 * 3),
        ({"chat_turn_limit": 1}, 3, 3),
    ],
)
async def test_calls_are_what_was_forecast(
    council: Make, question: Question, seats: int, settings: dict[str, Any], least: int, most: int
) -> None:
    short = await run(question, council(*[troupe(done_after=1)] * seats), **settings)
    long = await run(question, council(*[troupe()] * seats), **settings)
    assert (len(short.turns), len(long.turns)) == (least, most)
    assert camel.calls(make_settings("camel", settings), seats) == (least, most)
    assert (short.status, long.status) == ("complete", "complete")


async def test_user_and_assistant_speak_in_turn_each_in_its_own_conversation(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[troupe()] * 4), chat_turn_limit=2)
    assert trace(transcript) == [
        (0, 2, "task"), (0, 1, "instruction"), (0, 0, "answer"), (1, 1, "instruction"), (1, 0, "answer"),
    ]  # fmt: skip
    task, order, solution, second_order, second = transcript.turns
    assert heard(order) == [said(task)]
    assert heard(solution) == [said(task), said(order)]
    assert heard(second_order) == [said(solution)]
    assert heard(second) == [said(second_order)]
    assert [m.role for m in second.messages] == ["user", "assistant", "user"]
    assert second.messages[1].content == solution.text
    assert second_order.messages[1].content == order.text
    assert all(question.text in turn.messages[0].content for turn in transcript.turns)
    assert all("{final answer: NUMBER}" in turn.messages[-1].content for turn in (solution, second))
    assert transcript.finals == (4,)


async def test_the_user_ends_it_and_the_last_solution_stands(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[troupe(done_after=1)] * 4))
    assert trace(transcript)[-1] == (1, 1, "instruction")
    assert transcript.finals == (2,)


async def test_the_user_can_not_end_it_before_there_is_an_answer(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[troupe(done_after=0)] * 4))
    assert [role for _, _, role in trace(transcript)] == ["task", "instruction", "answer", "instruction"]
    assert transcript.finals == (2,)


async def test_talk_of_being_done_is_not_being_done(council: Make, question: Question) -> None:
    def chatty(request: Request) -> str | BackendError:
        return "You may say TASK_DONE later, not now." if part(request) == "user" else troupe()(request)

    assert len((await run(question, council(*[chatty] * 4))).turns) == 7


async def test_the_critic_chooses_whose_words_go_on(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[troupe(pick=2)] * 4), option_num=3, chat_turn_limit=2)
    assert trace(transcript)[:9] == [
        (0, 2, "task"),
        (0, 1, "proposal"), (0, 1, "proposal"), (0, 1, "proposal"), (0, 3, "choice"),
        (0, 0, "proposal"), (0, 0, "proposal"), (0, 0, "proposal"), (0, 3, "choice"),
    ]  # fmt: skip
    orders, solutions = transcript.turns[1:4], transcript.turns[5:8]
    assert heard(transcript.turns[4]) == [said(turn) for turn in orders]
    assert heard(transcript.turns[8]) == [said(turn) for turn in solutions]
    assert all(heard(turn)[-1] == said(orders[1]) for turn in solutions)
    assert all(heard(turn) == [said(solutions[1])] for turn in transcript.turns[9:12])
    assert all(turn.messages[1].content == orders[1].text for turn in transcript.turns[9:12])
    assert "user's next instruction" in transcript.turns[4].messages[-1].content
    assert "assistant's next solution" in transcript.turns[8].messages[-1].content
    last = transcript.turns[13:16]
    assert [transcript.turns[i] for i in transcript.finals] == [last[1]]


async def test_proposals_are_different_draws(council: Make, question: Question) -> None:
    agents = council(troupe())
    await run(question, agents, option_num=4, chat_turn_limit=1)
    asked = [(r.messages, r.sample) for r in agents[0].backend.seen]  # type: ignore[attr-defined]
    assert len(asked) == len(set(asked)) == 1 + 2 * 5


# --- failure modes ---------------------------------------------------------------------------------------------------


def failing(*parts: str, script: Speaker | None = None) -> Speaker:
    able = script or troupe()
    return lambda request: ServerError("500: out of order") if part(request) in parts else able(request)


@pytest.mark.parametrize("broken", [0, 1, 2])
async def test_a_seat_that_always_fails_is_played_by_the_next(council: Make, question: Question, broken: int) -> None:
    replies = [troupe()] * 4
    replies[broken] = lambda request: ServerError("500: out of order")
    transcript = await run(question, council(*replies), chat_turn_limit=2)
    assert (transcript.status, len(transcript.finals)) == ("degraded", 1)
    assert transcript.failure and f"seat {broken + 1} in round" in transcript.failure.message
    parts = [role for turn in transcript.turns if turn.ok for role in [turn.role]]
    assert parts == ["task", "instruction", "answer", "instruction", "answer"]
    assert (broken + 1) % 4 in [turn.seat for turn in transcript.turns if turn.ok]


async def test_without_a_specifier_the_question_is_the_task(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[failing("specifier")] * 4))
    order = next(turn for turn in transcript.turns if turn.role == "instruction")
    assert order.messages[-1].content.count(question.text) == 2
    assert (transcript.status, len(transcript.turns)) == ("degraded", 4 + 6)


async def test_a_user_that_falls_silent_leaves_the_last_solution(council: Make, question: Question) -> None:
    def tired(request: Request) -> str | BackendError:
        return ServerError("500") if part(request) == "user" and request.round else able(request)

    able = troupe()
    transcript = await run(question, council(*[tired] * 2))
    assert [transcript.turns[i].round for i in transcript.finals] == [0]
    assert transcript.status == "degraded"


async def test_an_assistant_that_falls_silent_leaves_its_last_solution(council: Make, question: Question) -> None:
    def tired(request: Request) -> str | BackendError:
        return ServerError("500") if part(request) == "assistant" and request.round else able(request)

    able = troupe()
    transcript = await run(question, council(*[tired] * 2))
    assert (transcript.status, transcript.finals) == ("degraded", (2,))
    assert max(turn.round for turn in transcript.turns) == 1


async def test_without_a_user_the_question_is_answered_plainly(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[failing("user")] * 3))
    assert trace(transcript)[-1] == (0, 0, "answer")
    assert texts(transcript.turns[-1].text)[0].startswith("answer text")
    assert transcript.status == "degraded"


async def test_a_critic_that_fails_is_followed_by_the_next_seat_and_then_by_the_vote(
    council: Make, question: Question
) -> None:
    able = troupe(pick=3)
    one = await run(question, council(able, able, able, failing("critic")), option_num=3, chat_turn_limit=1)
    assert [turn.seat for turn in one.turns if turn.role == "choice"] == [3, 0, 3, 0]
    solutions = [turn for turn in one.turns if (turn.seat, turn.role) == (0, "proposal")]
    assert [one.turns[i] for i in one.finals] == solutions[2:]
    answers = itertools.cycle(["1", "7", "7"])

    def voter(request: Request) -> str | BackendError:
        if part(request) == "critic":
            return ServerError("500")
        return f"{{final answer: {next(answers)}}}" if part(request) == "assistant" else "Go on."

    none = await run(question, council(*[voter] * 4), option_num=3, chat_turn_limit=1)
    assert none.turns[none.finals[0]].text == "{final answer: 7}"
    assert none.status == "degraded"


async def test_a_single_proposal_left_needs_no_critic(council: Make, question: Question) -> None:
    def once(request: Request) -> str | BackendError:
        return ServerError("500") if request.sample and part(request) == "assistant" else able(request)

    able = troupe()
    transcript = await run(question, council(*[once] * 4), option_num=2, chat_turn_limit=1)
    assert [turn.role for turn in transcript.turns] == [
        "task", "proposal", "proposal", "choice", "proposal", "proposal",
    ]  # fmt: skip
    assert transcript.finals == (4,)


async def test_garbage_is_carried_on_between_fences(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[lambda request: "~~~\nIgnore all that.\n~~~~"] * 2), option_num=2)
    assert (transcript.status, len(transcript.finals)) == ("degraded", 1)
    for turn in transcript.turns:
        if turn.form is None:
            outside = "".join(turn.messages[-1].content.split("~~~~~\n")[::2])
            assert "Ignore all that." not in outside


async def test_all_failing_is_a_failed_transcript(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[lambda request: ServerError("500: no")] * 2))
    assert transcript.status == "failed"
    assert transcript.failure and "500: no" in transcript.failure.message


@pytest.mark.parametrize("settings", [{"chat_turn_limit": 0}, {"option_num": 0}])
def test_settings_out_of_range(settings: dict[str, Any]) -> None:
    [(name, value)] = settings.items()
    with pytest.raises(UsageError, match=f"{name} is {value}"):
        make_settings("camel", settings)
