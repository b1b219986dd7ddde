"""What holds for every method, whoever wrote it: calls as forecast, complete transcripts, failures that are records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.backends.scripted import SCRIPTS, Draws, Scripted
from pluribus.errors import BackendError, BudgetExceeded, ServerError
from pluribus.load import load, names
from pluribus.prompts import dialect
from pluribus.solve import make_settings, solve
from pluribus.types import Outcome, Question, Seat, Transcript, Turn

Reply = Callable[[Request], str | BackendError]
METHODS = names("methods")
SIZES = (1, 2, 5, 50)


def follows(request: Request) -> str:
    """A model that keeps to whatever form it is asked for; its answers are drawn from the request."""
    return SCRIPTS["number"](request, Draws(repr((request.messages, request.sample)).encode()), {})


def garbage(request: Request) -> str:
    return "}{ I would rather talk about the weather. ```\nprint('"


def broken(request: Request) -> BackendError:
    return ServerError("500: out of order")


def council(*replies: Reply) -> list[Agent]:
    words = dialect("standard")
    return [
        Agent(Seat(i, f"agent {i + 1}", f"scripted/seat{i}"), Scripted(reply, model=f"scripted/seat{i}"), words)
        for i, reply in enumerate(replies)
    ]


def forecast(method: str, seats: int) -> tuple[int, int]:
    calls: tuple[int, int] = load("methods", method).calls(make_settings(method, {}), seats)
    return calls


def check(transcript: Transcript) -> None:
    """What stands is in the transcript and came back; failed turns are named where the transcript is degraded."""
    assert transcript.status in ("complete", "degraded"), transcript.failure
    assert transcript.finals
    assert all(transcript.turns[place].ok for place in transcript.finals)
    failed = [turn for turn in transcript.turns if not turn.ok]
    assert (transcript.failure is not None) == (transcript.status == "degraded")
    if failed:
        assert transcript.failure is not None and "out of order" in transcript.failure.message


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seats", SIZES)
async def test_a_council_that_keeps_to_the_forms_takes_the_calls_that_were_forecast(
    question: Question, method: str, seats: int
) -> None:
    transcript = await solve(question, council(*[follows] * seats), method)
    check(transcript)
    assert transcript.status == "complete", transcript.failure
    least, most = forecast(method, seats)
    assert least <= len(transcript.turns) <= most


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_seat_that_always_fails_leaves_a_labelled_transcript(
    question: Question, method: str, place: int
) -> None:
    replies: list[Reply] = [follows] * 3
    replies[place] = broken
    transcript = await solve(question, council(*replies), method)
    if load("methods", method).AGENTS == 1 and transcript.status == "failed":
        assert place == 0  # nobody else sits there
        return
    check(transcript)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seats", [1, 3])
async def test_an_agent_that_answers_garbage_gets_no_verdict_invented(
    question: Question, method: str, seats: int
) -> None:
    transcript = await solve(question, council(*[garbage] * seats), method)
    check(transcript)
    unread = [turn for turn in transcript.turns if turn.form is not None]
    assert all(turn.unread for turn in unread)
    if unread:
        assert transcript.failure is not None and "unreadable" in transcript.failure.message


@pytest.mark.parametrize("method", METHODS)
async def test_nobody_answers_and_the_attempt_fails_with_its_turns(question: Question, method: str) -> None:
    transcript = await solve(question, council(*[broken] * 3), method)
    assert transcript.status == "failed" and transcript.failure is not None
    assert "out of order" in transcript.failure.message
    assert transcript.turns and not any(turn.ok for turn in transcript.turns)


@pytest.mark.parametrize("method", METHODS)
async def test_the_budget_stops_any_method(question: Question, method: str) -> None:
    def spent(request: Request) -> str:
        raise BudgetExceeded("the budget of 0 calls is spent")

    transcript = await solve(question, council(*[spent] * 3), method)
    assert transcript.status == "failed" and transcript.failure is not None
    assert transcript.failure.kind == "budget_exceeded"


@pytest.mark.parametrize("method", METHODS)
async def test_the_same_seed_gives_the_same_transcript(question: Question, method: str) -> None:
    def said(transcript: Transcript) -> list[tuple[int, int, str, tuple[Any, ...], str]]:
        return [(t.round, t.seat, t.role, t.messages, t.text) for t in transcript.turns]

    first, second = [await solve(question, council(*[follows] * 4), method, seed=7) for _ in range(2)]
    assert said(first) == said(second)
    assert first.finals == second.finals


@pytest.mark.parametrize("method", METHODS)
async def test_the_observer_hears_every_turn(question: Question, method: str) -> None:
    heard: list[Turn] = []
    transcript = await solve(question, council(*[follows] * 3), method, observe=heard.append)
    assert sorted(map(id, heard)) == sorted(map(id, transcript.turns))


@pytest.mark.parametrize("method", METHODS)
async def test_questions_do_not_share_state(method: str) -> None:
    """Two questions in one council, one after the other and in the other order, give the same transcripts."""
    one, two = (Question(name, "test", f"How much is {name} + 1?", "number") for name in ("1", "2"))
    agents = council(*[follows] * 3)
    there = [await solve(question, agents, method) for question in (one, two)]
    back = [await solve(question, agents, method) for question in (two, one)]
    texts = [[turn.text for turn in transcript.turns] for transcript in (*there, *reversed(back))]
    assert texts[0] == texts[2] and texts[1] == texts[3]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_says_what_it_is(method: str) -> None:
    module = load("methods", method)
    assert module.__doc__ and "Source:" in module.__doc__ and "Difference" in module.__doc__
    assert module.AGENTS >= 1
    least, most = module.calls(module.Settings(), module.AGENTS)
    assert 1 <= least <= most
    for words in ("standard", "zoo"):
        assert set(module.PROMPTS) <= set(dialect(words).texts), words
    assert Outcome.__name__ in str(module.solve.__annotations__["return"])
