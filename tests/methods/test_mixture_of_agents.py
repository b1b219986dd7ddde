"""Mixture of agents: which seat proposes where, what each layer reads, and who aggregates."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, ConfigError, ServerError
from pluribus.methods import mixture_of_agents
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript, Turn

Make = Callable[..., list[Agent]]
Script = Callable[[Request], str | BackendError]


def speaker(seat: int) -> Script:
    return lambda request: (
        f"words of seat {seat} draw {request.sample} in layer {request.round} {{final answer: {seat}}}"
    )


def heard(turn: Turn) -> set[tuple[int, int, int]]:
    """(seat, draw, layer) of the words that stand in what a turn was asked."""
    text = "".join(message.content for message in turn.messages)
    return {
        (s, d, r)
        for s in range(9) for d in range(9) for r in range(9)
        if f"words of seat {s} draw {d} in layer {r} " in text
    }  # fmt: skip


def finals(transcript: Transcript) -> list[tuple[int, str]]:
    return [(transcript.turns[i].seat, transcript.turns[i].role) for i in transcript.finals]


@pytest.mark.parametrize(("n", "layers", "proposers"), [(1, 1, 1), (3, 2, 3), (2, 3, 5), (50, 2, 4)])
async def test_calls_are_what_was_forecast(
    council: Make, question: Question, n: int, layers: int, proposers: int
) -> None:
    agents = council(*map(speaker, range(n)))
    values = {"layers": layers, "proposers": proposers}
    transcript = await solve(question, agents, "mixture_of_agents", values)
    made = sum(len(agent.backend.seen) for agent in agents)  # type: ignore[attr-defined,misc]  # scripted
    assert mixture_of_agents.calls(make_settings("mixture_of_agents", values), n) == (made, made)
    assert made == layers * proposers + 1
    assert transcript.status == "complete"


async def test_each_layer_reads_all_of_the_layer_before(council: Make, question: Question) -> None:
    transcript = await solve(question, council(*map(speaker, range(3))), "mixture_of_agents", {"layers": 3})
    for turn in transcript.turns:
        assert heard(turn) == ({(s, 0, turn.round - 1) for s in range(3)} if turn.round else set())
    assert [(t.round, t.seat, t.role) for t in transcript.turns] == [
        *((layer, seat, "answer") for layer in range(3) for seat in range(3)), (3, 0, "aggregate"),
    ]  # fmt: skip
    assert finals(transcript) == [(0, "aggregate")]


async def test_the_seat_after_the_proposers_aggregates(council: Make, question: Question) -> None:
    agents = council(*map(speaker, range(5)))
    transcript = await solve(question, agents, "mixture_of_agents", {"proposers": 3, "layers": 1})
    assert [t.seat for t in transcript.turns] == [0, 1, 2, 3]


async def test_fewer_seats_than_proposers_draw_again(council: Make, question: Question) -> None:
    transcript = await solve(
        question, council(*map(speaker, range(2))), "mixture_of_agents", {"proposers": 5, "layers": 1}
    )
    assert [(t.seat, t.sample) for t in transcript.turns[:5]] == [(0, 0), (1, 0), (0, 2), (1, 2), (0, 4)]
    shown = transcript.turns[-1].messages[-1].content
    assert heard(transcript.turns[-1]) == {(0, 0, 0), (1, 0, 0), (0, 2, 0), (1, 2, 0), (0, 4, 0)}
    assert [name in shown for name in ("agent 1, version 3", "agent 2, version 2", "agent 2, version 3")] == [
        True, True, False,
    ]  # fmt: skip


async def test_a_failed_proposer_is_missing_from_its_layer_only(council: Make, question: Question) -> None:
    def late(request: Request) -> str | BackendError:
        return speaker(1)(request) if request.round else ServerError("500: late")

    transcript = await solve(question, council(speaker(0), late, speaker(2)), "mixture_of_agents", {})
    assert heard(transcript.turns[3]) == {(0, 0, 0), (2, 0, 0)}
    assert heard(transcript.turns[-1]) == {(s, 0, 1) for s in range(3)}
    assert transcript.failure and transcript.failure.message == "seat 2 in round 0: 500: late"


async def test_a_layer_in_which_everybody_fails_is_passed_over(council: Make, question: Question) -> None:
    def rests(seat: int) -> Script:
        return lambda request: ServerError("500") if request.round == 1 else speaker(seat)(request)

    transcript = await solve(question, council(*map(rests, range(3))), "mixture_of_agents", {"layers": 2})
    assert heard(transcript.turns[-1]) == {(s, 0, 0) for s in range(3)}
    assert (transcript.status, finals(transcript)) == ("degraded", [(0, "aggregate")])


async def test_a_failing_aggregator_and_then_the_vote(council: Make, question: Question) -> None:
    def closes_not(seat: int) -> Script:
        return lambda request: ServerError("500") if request.round == 2 else speaker(seat)(request)

    one = await solve(question, council(closes_not(0), speaker(1), speaker(2)), "mixture_of_agents", {})
    assert finals(one) == [(1, "aggregate")]
    none = await solve(question, council(*map(closes_not, range(3))), "mixture_of_agents", {})
    assert (none.status, finals(none)) == ("degraded", [(0, "answer"), (1, "answer"), (2, "answer")])
    assert {none.turns[i].round for i in none.finals} == {1}
    dead = await solve(question, council(lambda request: ServerError("500: no")), "mixture_of_agents", {})
    assert (dead.status, len(dead.turns)) == ("failed", 6)


@pytest.mark.parametrize("name", ["layers", "proposers"])
def test_settings_name_value_and_range(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is 0; at least 1"):
        make_settings("mixture_of_agents", {name: 0})
