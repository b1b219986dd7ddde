"""The council: blind ranking in an order of each reader's own, mean ranks, and who takes the chair."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, ServerError
from pluribus.methods import council as method
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript, Turn

Make = Callable[..., list[Agent]]
Script = Callable[[Request], str | BackendError]


def shown(text: str) -> list[int]:
    """Seats in the order in which a reader sees their answers."""
    return [int(seat) for seat in re.findall(r"words of seat (\d+) ", text)]


def member(seat: int, *preference: int) -> Script:
    """Answers with its seat; ranks the seats by the order of preference, whatever number they stand under."""

    def reply(request: Request) -> str:
        if request.round == 1:
            seats = shown(request.messages[-1].content)
            liked = sorted(seats, key=lambda s: preference.index(s) if s in preference else s)
            return json.dumps({"reason": "r", "ranking": [str(seats.index(s) + 1) for s in liked]})
        return f"words of seat {seat} in round {request.round} {{final answer: {seat}}}"

    return reply


def finals(transcript: Transcript) -> list[tuple[int, str]]:
    return [(transcript.turns[i].seat, transcript.turns[i].role) for i in transcript.finals]


def of(transcript: Transcript, role: str) -> list[Turn]:
    return [turn for turn in transcript.turns if turn.role == role]


@pytest.mark.parametrize(("n", "calls"), [(1, 2), (2, 5), (4, 9), (50, 101)])
async def test_calls_are_what_was_forecast(council: Make, question: Question, n: int, calls: int) -> None:
    agents = council(*map(member, range(n)))
    transcript = await solve(question, agents, "council", {})
    made = sum(len(agent.backend.seen) for agent in agents)  # type: ignore[attr-defined,misc]  # scripted
    assert method.calls(make_settings("council", {}), n) == (made, made) == (calls, calls)
    assert transcript.status == "complete"


async def test_everybody_ranks_the_others_answers_without_their_names(council: Make, question: Question) -> None:
    transcript = await solve(question, council(*map(member, range(4))), "council", {})
    assert [(t.round, t.seat, t.role) for t in transcript.turns] == [
        *((0, seat, "answer") for seat in range(4)), *((1, seat, "ranking") for seat in range(4)), (2, 0, "aggregate"),
    ]  # fmt: skip
    for turn in of(transcript, "ranking"):
        text = turn.messages[-1].content
        assert question.text in text
        assert sorted(shown(text)) == [seat for seat in range(4) if seat != turn.seat]
        assert "agent" not in text
        assert all(f"Answer {number}:" in text for number in (1, 2, 3))


async def test_the_order_is_shuffled_for_each_reader_by_the_seed(council: Make, question: Question) -> None:
    async def orders(seed: int) -> list[list[int]]:
        transcript = await solve(question, council(*map(member, range(5))), "council", {}, seed=seed)
        return [shown(turn.messages[-1].content) for turn in of(transcript, "ranking")]

    assert await orders(3) == await orders(3)
    assert await orders(3) != await orders(4)
    shuffles = {tuple(sorted(order).index(seat) for seat in order) for order in await orders(3)}
    assert len(shuffles) > 2, "not one shuffle for all readers"


async def test_mean_ranks_belong_to_seats_not_to_numbers(council: Make, question: Question) -> None:
    agents = council(member(0, 2, 1, 3), member(1, 2, 0, 3), member(2, 1, 3, 0), member(3, 2, 1, 0))
    transcript = await solve(question, agents, "council", {})
    # seat 0: 2nd, 3rd, 3rd; seat 1: 2nd, 1st, 2nd; seat 2: 1st three times; seat 3: 3rd, 3rd, 2nd
    assert transcript.notes["mean_ranks"] == pytest.approx([8 / 3, 5 / 3, 1.0, 8 / 3])
    told = transcript.turns[-1].messages[-1].content
    assert "agent 3: 1.00, ranked by 3\nagent 2: 1.67, ranked by 3\nagent 1: 2.67, ranked by 3\nagent 4: 2.67" in told
    assert shown(told) == [0, 1, 2, 3] and question.text in told


@pytest.mark.parametrize(("chair", "seat"), [("first", 0), ("last", 3), ("best_ranked", 2)])
async def test_the_chair(council: Make, question: Question, chair: str, seat: int) -> None:
    agents = council(member(0, 2, 1, 3), member(1, 2, 0, 3), member(2, 1, 3, 0), member(3, 2, 1, 0))
    transcript = await solve(question, agents, "council", {"chair": chair})
    assert finals(transcript) == [(seat, "aggregate")]


async def test_one_agent_alone_answers_and_closes(council: Make, question: Question) -> None:
    transcript = await solve(question, council(member(0)), "council", {"chair": "best_ranked"})
    assert [turn.role for turn in transcript.turns] == ["answer", "aggregate"]
    assert "The answers were not ranked." in transcript.turns[-1].messages[-1].content


async def test_a_ranking_that_can_not_be_read_counts_nothing(council: Make, question: Question) -> None:
    def confused(request: Request) -> str | BackendError:
        return "{ranking: 1, 1}" if request.round == 1 else member(1)(request)

    agents = council(member(0, 2, 1), confused, member(2, 1, 0))
    transcript = await solve(question, agents, "council", {})
    assert len(of(transcript, "ranking")) == 4, "asked once more"
    assert transcript.notes["mean_ranks"] == [2.0, 1.5, 1.0]
    assert transcript.failure and "seat 2 in round 1: unreadable ranking" in transcript.failure.message
    assert finals(transcript) == [(0, "aggregate")]


async def test_a_member_that_always_fails_is_not_ranked(council: Make, question: Question) -> None:
    agents = council(member(0), lambda request: ServerError("500: ill"), member(2))
    transcript = await solve(question, agents, "council", {"chair": "best_ranked"})
    assert (transcript.status, transcript.notes["mean_ranks"]) == ("degraded", [1.0, None, 1.0])
    assert shown(transcript.turns[-1].messages[-1].content) == [0, 2]
    assert finals(transcript) == [(0, "aggregate")]


async def test_a_failing_chair_is_followed_by_the_next_and_then_by_the_vote(council: Make, question: Question) -> None:
    def closes_not(seat: int) -> Script:
        return lambda request: ServerError("500") if request.round == 2 else member(seat)(request)

    one = await solve(question, council(member(0), member(1), closes_not(2)), "council", {"chair": "last"})
    assert finals(one) == [(0, "aggregate")]
    none = await solve(question, council(*map(closes_not, range(3))), "council", {})
    assert (none.status, finals(none)) == ("degraded", [(0, "answer"), (1, "answer"), (2, "answer")])
    dead = await solve(question, council(*[lambda request: ServerError("500: no")] * 2), "council", {})
    assert (dead.status, len(dead.turns)) == ("failed", 2)
