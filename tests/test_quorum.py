"""Who is waited for, who is late, and what becomes of them."""

from __future__ import annotations

import asyncio

import pytest

from pluribus.agents import Agent
from pluribus.backends.scripted import Scripted
from pluribus.errors import ConfigError
from pluribus.prompts import dialect
from pluribus.quorum import Late, gather_quorum
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Seat, Turn


async def seat(seconds: float, said: str = "here") -> str:
    await asyncio.sleep(seconds)
    return said


async def test_all_in_time_are_in_order() -> None:
    said = await gather_quorum([seat(0.02, "a"), seat(0, "b"), seat(0.01, "c")], quorum=1, deadline_s=5)
    assert said == ["a", "b", "c"]


async def test_after_the_deadline_a_quorum_is_enough() -> None:
    start = asyncio.get_running_loop().time()
    said = await gather_quorum([seat(0), seat(60), seat(0)], quorum=2, deadline_s=0.05)
    assert [isinstance(one, Late) for one in said] == [False, True, False]
    assert 0.05 <= asyncio.get_running_loop().time() - start < 0.5


async def test_without_a_quorum_the_deadline_waits() -> None:
    said = await gather_quorum([seat(0.05, "a"), seat(60), seat(0.1, "c")], quorum=2, deadline_s=0.01)
    assert said[::2] == ["a", "c"]
    assert isinstance(said[1], Late)
    assert said[1].waited_s >= 0.1


async def test_a_result_that_does_not_count_makes_no_quorum() -> None:
    said = await gather_quorum(
        [seat(0, "failed"), seat(0.05), seat(60)], quorum=1, deadline_s=0.01, counts=lambda text: text == "here"
    )
    assert said[:2] == ["failed", "here"]


async def test_all_done_and_no_quorum_ends_too() -> None:
    said = await gather_quorum([seat(0, "failed"), seat(0.01, "failed")], 2, 0.001, counts=lambda _: False)
    assert said == ["failed", "failed"]


async def test_the_late_are_cancelled_and_have_let_go() -> None:
    let_go = []

    async def holder() -> str:
        try:
            return await seat(60)
        finally:
            await asyncio.sleep(0)
            let_go.append(True)

    await gather_quorum([seat(0), holder()], quorum=1, deadline_s=0.01)
    assert let_go == [True]


async def test_an_exception_ends_it_and_cancels_the_rest() -> None:
    async def broken() -> str:
        raise RuntimeError("boom")

    before = asyncio.all_tasks()
    with pytest.raises(RuntimeError, match="boom"):
        await gather_quorum([seat(60), broken()], quorum=1, deadline_s=5)
    assert asyncio.all_tasks() == before


async def test_a_cancelled_wait_cancels_all() -> None:
    before = asyncio.all_tasks()
    waiting = asyncio.create_task(gather_quorum([seat(60), seat(60)], quorum=1, deadline_s=5))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("quorum", [0, 3])
async def test_an_impossible_quorum_is_refused(quorum: int) -> None:
    with pytest.raises(ValueError, match=f"quorum is {quorum}, expected 1 to 2"):
        await gather_quorum([seat(0), seat(0)], quorum, 1)


# --- a vote that goes on without its late seats -------------------------------------------------------------------


def sitting(*latencies_s: float) -> list[Agent]:
    return [
        Agent(
            Seat(i, f"agent {i + 1}", f"scripted/seat{i}"),
            Scripted(lambda request: "{final answer: 4}", model=f"scripted/seat{i}", latency_s=latency_s),
            dialect("standard"),
        )
        for i, latency_s in enumerate(latencies_s)
    ]


async def test_the_late_seat_of_a_vote_is_recorded_as_late(question: Question) -> None:
    heard: list[Turn] = []
    agents = sitting(0, 60, 0)
    transcript = await solve(question, agents, "vote", {"quorum": 2, "deadline_s": 0.05}, observe=heard.append)
    assert transcript.status == "degraded"
    assert transcript.finals == (0, 2)
    late = transcript.turns[1]
    assert late.failure is not None
    assert late.failure.kind == "late"
    assert late.messages == agents[1].backend.seen[0].messages  # type: ignore[attr-defined]  # Scripted has it
    assert late in heard
    assert transcript.failure is not None
    assert "seat 2 in round 0: no answer after" in transcript.failure.message


async def test_in_time_everybody_votes(question: Question) -> None:
    transcript = await solve(question, sitting(0, 0.02, 0), "vote", {"quorum": 1, "deadline_s": 5.0})
    assert (transcript.status, len(transcript.finals)) == ("complete", 3)


async def test_more_than_there_are_can_not_be_a_quorum(question: Question) -> None:
    transcript = await solve(question, sitting(0, 0), "vote", {"quorum": 3, "deadline_s": 1.0})
    assert transcript.failure is not None
    assert "quorum is 3 of 2 seats" in transcript.failure.message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"quorum": 2}, "give both or neither"),
        ({"deadline_s": 2.0}, "give both or neither"),
        ({"quorum": 0, "deadline_s": 1.0}, "quorum is 0"),
        ({"quorum": 1, "deadline_s": -1.0}, "deadline_s is -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_settings("vote", settings)
