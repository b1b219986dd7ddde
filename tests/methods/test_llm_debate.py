"""A closed debate: who read whom in which round, what the aggregator read, and who closes when it fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, ConfigError, ServerError
from pluribus.methods import llm_debate
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript, Turn

Make = Callable[..., list[Agent]]
Script = Callable[[Request], str | BackendError]


def speaker(seat: int) -> Script:
    """Says a text that names seat and round, so that a reader of it can be recognised."""
    return lambda request: f"words of seat {seat} in round {request.round} {{final answer: {seat}}}"


def heard(turn: Turn, n: int = 9) -> set[tuple[int, int]]:
    """(seat, round) pairs whose words stand in what a turn was asked."""
    text = "".join(message.content for message in turn.messages)
    return {(s, r) for s in range(n) for r in range(9) if f"words of seat {s} in round {r} " in text}


def finals(transcript: Transcript) -> list[tuple[int, str]]:
    return [(transcript.turns[i].seat, transcript.turns[i].role) for i in transcript.finals]


@pytest.mark.parametrize(("n", "rounds"), [(1, 1), (3, 2), (2, 4), (50, 2)])
async def test_calls_are_what_was_forecast(council: Make, question: Question, n: int, rounds: int) -> None:
    agents = council(*(speaker(seat) for seat in range(n)))
    transcript = await solve(question, agents, "llm_debate", {"num_rounds": rounds})
    made = sum(len(agent.backend.seen) for agent in agents)  # type: ignore[attr-defined,misc]  # scripted
    assert llm_debate.calls(make_settings("llm_debate", {"num_rounds": rounds}), n) == (made, made)
    assert made == n * rounds + 1 == len(transcript.turns)
    assert transcript.status == "complete"


async def test_everybody_reads_everybody_of_the_round_before_and_the_aggregator_all_last_answers(
    council: Make, question: Question
) -> None:
    transcript = await solve(question, council(*map(speaker, range(3))), "llm_debate", {"num_rounds": 3})
    for turn in transcript.turns:
        assert heard(turn) == ({(s, turn.round - 1) for s in range(3)} if turn.round else set())
        assert question.text in turn.messages[-1].content
    closing = transcript.turns[-1]
    assert (closing.round, closing.seat, closing.role) == (3, 0, "aggregate")
    assert finals(transcript) == [(0, "aggregate")]


async def test_an_agent_alone_reviews_itself_and_closes(council: Make, question: Question) -> None:
    transcript = await solve(question, council(speaker(0)), "llm_debate", {"num_rounds": 2})
    assert [(t.round, heard(t)) for t in transcript.turns] == [(0, set()), (1, {(0, 0)}), (2, {(0, 1)})]
    assert "Others" not in transcript.turns[1].messages[-1].content


async def test_a_failing_aggregator_is_followed_by_the_next_in_line(council: Make, question: Question) -> None:
    def closes_not(request: Request) -> str | BackendError:
        return ServerError("500: tired") if request.round == 2 else speaker(0)(request)

    transcript = await solve(question, council(closes_not, speaker(1), speaker(2)), "llm_debate", {})
    assert [(t.seat, t.ok) for t in transcript.turns[6:]] == [(0, False), (1, True)]
    assert finals(transcript) == [(1, "aggregate")]
    assert transcript.failure and transcript.failure.message == "seat 1 in round 2: 500: tired"


async def test_without_an_aggregator_the_last_answers_are_voted_on(council: Make, question: Question) -> None:
    def closes_not(seat: int) -> Script:
        return lambda request: ServerError("500") if request.round == 2 else speaker(seat)(request)

    transcript = await solve(question, council(*map(closes_not, range(3))), "llm_debate", {})
    assert (transcript.status, finals(transcript)) == ("degraded", [(0, "answer"), (1, "answer"), (2, "answer")])
    assert {transcript.turns[i].round for i in transcript.finals} == {1}


async def test_a_seat_that_fails_late_is_read_with_its_last_answer(council: Make, question: Question) -> None:
    def fails_in_round_one(request: Request) -> str | BackendError:
        return ServerError("500") if request.round == 1 else speaker(1)(request)

    transcript = await solve(question, council(speaker(0), fails_in_round_one), "llm_debate", {"num_rounds": 2})
    assert heard(transcript.turns[-1]) == {(0, 1), (1, 0)}
    assert transcript.status == "degraded"


async def test_a_seat_that_always_fails_is_missing_and_all_failing_is_a_failure(
    council: Make, question: Question
) -> None:
    def broken(request: Request) -> BackendError:
        return ServerError("500: out of order")

    transcript = await solve(question, council(speaker(0), broken, speaker(2)), "llm_debate", {})
    assert heard(transcript.turns[-1]) == {(0, 1), (2, 1)}
    assert "Others" not in transcript.turns[4].messages[-1].content, "who has no answer is asked the question again"
    dead = await solve(question, council(broken, broken), "llm_debate", {})
    assert (dead.status, dead.finals, len(dead.turns)) == ("failed", (), 2)


async def test_garbage_is_carried_but_is_no_answer(council: Make, question: Question) -> None:
    transcript = await solve(question, council(speaker(0), lambda request: "\x00 ~~~ {{{"), "llm_debate", {})
    assert (transcript.status, finals(transcript)) == ("complete", [(0, "aggregate")])
    assert "\n~~~~\n\x00 ~~~ {{{\n~~~~" in transcript.turns[-1].messages[-1].content


def test_settings_name_value_and_range() -> None:
    with pytest.raises(ConfigError, match=r"num_rounds is 0; .* say 1 or more"):
        make_settings("llm_debate", {"num_rounds": 0})
