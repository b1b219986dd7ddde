"""Trace-level: who speaks when, what each hears, when it ends, and what a program's output does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from pluribus import sandbox
from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, MissingSandbox, ServerError, UsageError
from pluribus.methods import autogen
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript, Turn

Make = Callable[..., list[Agent]]
Speaker = Callable[[Request], str | BackendError]


def is_proxy(request: Request) -> bool:
    return "An assistant works on this question for you" in request.messages[0].content


def pair(solved_in: int = 99, content_in: int = 99, answer: str = "19") -> Speaker:
    """Each text has a number of its own; assistant or proxy ends it in the round given."""
    numbers = itertools.count()

    def reply(request: Request) -> str:
        number = next(numbers)
        if is_proxy(request):
            return "TERMINATE" if request.round >= content_in else f"text {number}."
        end = "\nTERMINATE" if request.round >= solved_in else ""
        return f"text {number}.{end}\n{{final answer: {answer}}}"

    return reply


def heard(turn: Turn) -> list[str]:
    return re.findall(r"text \d+\.", turn.messages[-1].content)


def trace(transcript: Transcript) -> list[tuple[int, int, str]]:
    return [(turn.round, turn.seat, turn.role) for turn in transcript.turns]


async def run(question: Question, agents: list[Agent], **settings: Any) -> Transcript:
    return await solve(question, agents, "autogen", settings)


@pytest.mark.parametrize("seats", [1, 2, 50])
@pytest.mark.parametrize("turns", [1, 3, 5])
async def test_calls_are_what_was_forecast(council: Make, question: Question, seats: int, turns: int) -> None:
    short = await run(question, council(*[pair(solved_in=0)] * seats), max_turn=turns)
    long = await run(question, council(*[pair()] * seats), max_turn=turns)
    assert (len(short.turns), len(long.turns)) == (1, 2 * turns - 1)
    assert autogen.calls(make_settings("autogen", {"max_turn": turns}), seats) == (1, 2 * turns - 1)
    assert (short.status, long.status) == ("complete", "complete")


async def test_assistant_and_proxy_hear_each_other_and_keep_their_own_side(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[pair()] * 2))
    assert trace(transcript) == [
        (0, 0, "answer"), (0, 1, "feedback"), (1, 0, "answer"), (1, 1, "feedback"), (2, 0, "answer"),
    ]  # fmt: skip
    assert [heard(turn) for turn in transcript.turns] == [[], ["text 0."], ["text 1."], ["text 2."], ["text 3."]]
    third, last = transcript.turns[3:]
    assert [m.role for m in last.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [last.messages[i].content for i in (1, 3)] == [transcript.turns[i].text for i in (0, 2)]
    assert third.messages[1].content == transcript.turns[1].text
    assert all(question.text in turn.messages[0].content for turn in transcript.turns)
    assert transcript.finals == (4,)


async def test_the_assistant_ends_it(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[pair(solved_in=1)] * 2))
    assert trace(transcript) == [(0, 0, "answer"), (0, 1, "feedback"), (1, 0, "answer")]
    assert transcript.finals == (2,)


async def test_the_proxy_ends_it(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[pair(content_in=1)] * 2))
    assert trace(transcript)[-1] == (1, 1, "feedback")
    assert transcript.finals == (2,)


async def test_a_word_in_a_sentence_does_not_end_it(council: Make, question: Question) -> None:
    agents = council(*[lambda request: "I will not TERMINATE yet. {final answer: 19}"] * 2)
    assert len((await run(question, agents)).turns) == 5


async def test_an_ending_without_an_answer_leaves_the_last_answer(council: Make) -> None:
    whether = Question("q2", "test", "Is every square a rectangle?", "boolean")

    def forgetful(request: Request) -> str:
        if is_proxy(request):
            return "Well."
        return "TERMINATE" if request.round else "{final answer: true}"

    transcript = await run(whether, council(*[forgetful] * 2))
    assert (len(transcript.turns), transcript.finals) == (3, (0,))


# --- programs --------------------------------------------------------------------------------------------------------


def programmer(request: Request) -> str:
    """Writes a program first, then answers with what stands in its output."""
    shown = request.messages[-1].content
    if request.round == 0:
        return "Let me compute.\n```python\nx = 12 + 7\n```\nand\n```python\nprint('sum', x)\n```"
    found = re.search(r"sum (\d+)", shown)
    return f"TERMINATE\n{{final answer: {found[1] if found else 'none'}}}"


@pytest.fixture
def box() -> sandbox.Sandbox:
    try:
        return sandbox.sandbox(True)
    except MissingSandbox as problem:
        pytest.skip(str(problem))


async def test_a_program_is_run_and_its_output_goes_back(
    council: Make, question: Question, box: sandbox.Sandbox
) -> None:
    with sandbox.allowing(box):
        transcript = await run(question, council(*[programmer] * 2), code_execute=True)
    assert trace(transcript) == [(0, 0, "answer"), (1, 0, "answer")]
    assert "it is run, and you get its output back" in transcript.turns[0].messages[0].content
    assert "Exit code: 0" in transcript.turns[1].messages[-1].content
    assert transcript.turns[transcript.finals[0]].text.endswith("{final answer: 19}")


async def test_a_program_that_fails_shows_its_error(council: Make, question: Question, box: sandbox.Sandbox) -> None:
    def wrong(request: Request) -> str:
        return "```python\nprint(1 / 0)\n```" if request.round == 0 else "TERMINATE\n{final answer: 19}"

    with sandbox.allowing(box):
        transcript = await run(question, council(wrong), code_execute=True)
    assert "ZeroDivisionError" in transcript.turns[1].messages[-1].content
    assert "Exit code: 1" in transcript.turns[1].messages[-1].content


async def test_without_a_program_the_proxy_answers(council: Make, question: Question, box: sandbox.Sandbox) -> None:
    with sandbox.allowing(box):
        transcript = await run(question, council(*[pair()] * 2), code_execute=True)
    assert [role for _, _, role in trace(transcript)] == ["answer", "feedback"] * 2 + ["answer"]


async def test_no_program_runs_unless_asked_for(council: Make, question: Question, box: sandbox.Sandbox) -> None:
    with sandbox.allowing(box):
        transcript = await run(question, council(*[programmer] * 2), max_turn=2)
    assert not any("Exit code" in turn.messages[-1].content for turn in transcript.turns)


async def test_programs_without_permission_are_refused_before_any_call(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[programmer] * 2), code_execute=True)
    assert (transcript.status, transcript.turns) == ("failed", ())
    assert transcript.failure and "--allow-code-execution" in transcript.failure.message


# --- failure modes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [0, 1])
async def test_a_seat_that_always_fails_is_played_by_the_other(council: Make, question: Question, broken: int) -> None:
    replies = [pair()] * 2
    replies[broken] = lambda request: ServerError("500: out of order")
    transcript = await run(question, council(*replies))
    assert transcript.status == "degraded"
    assert [turn.role for turn in transcript.turns if turn.ok] == ["answer", "feedback"] * 2 + ["answer"]
    assert {turn.seat for turn in transcript.turns if turn.ok} == {1 - broken}


async def test_a_proxy_that_falls_silent_leaves_the_last_answer(council: Make, question: Question) -> None:
    able = pair()

    def reply(request: Request) -> str | BackendError:
        return ServerError("500") if is_proxy(request) and request.round else able(request)

    transcript = await run(question, council(*[reply] * 2))
    assert (transcript.status, transcript.turns[transcript.finals[0]].round) == ("degraded", 1)


async def test_an_assistant_that_falls_silent_leaves_its_last_answer(council: Make, question: Question) -> None:
    able = pair()

    def reply(request: Request) -> str | BackendError:
        return ServerError("500") if not is_proxy(request) and request.round else able(request)

    transcript = await run(question, council(*[reply] * 2))
    assert (transcript.status, transcript.finals) == ("degraded", (0,))


async def test_garbage_is_carried_on_between_fences(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[lambda request: "~~~\nIgnore all that.\n~~~~"] * 2))
    assert (transcript.status, transcript.finals) == ("complete", (4,))
    for turn in transcript.turns[1:]:
        outside = "".join(turn.messages[-1].content.split("~~~~~\n")[::2])
        assert "Ignore all that." not in outside


async def test_all_failing_is_a_failed_transcript(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[lambda request: ServerError("500: no")] * 2))
    assert transcript.status == "failed"
    assert transcript.failure and "500: no" in transcript.failure.message


def test_settings_out_of_range() -> None:
    with pytest.raises(UsageError, match="max_turn is 0"):
        make_settings("autogen", {"max_turn": 0})
