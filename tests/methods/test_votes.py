"""single, cot, vote and self_consistency: calls, samples and what the aggregator reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, RateLimited, ServerError
from pluribus.load import load
from pluribus.solve import make_settings, solve
from pluribus.types import Question

Make = Callable[..., list[Agent]]


def by_sample(request: Request) -> str:
    return f"draw {request.sample} {{final answer: {request.sample}}}"


@pytest.mark.parametrize(
    ("method", "settings", "seats"),
    [
        ("single", {}, 1), ("cot", {}, 1), ("vote", {}, 1), ("vote", {}, 5),
        ("self_consistency", {"parallel_num": 1}, 1), ("self_consistency", {"parallel_num": 7}, 1),
        ("self_consistency", {"parallel_num": 3, "aggregator": "llm"}, 1),
    ],
)  # fmt: skip
async def test_calls_are_what_was_forecast(
    council: Make, question: Question, method: str, settings: dict[str, object], seats: int
) -> None:
    agents = council(*[by_sample] * seats)
    await solve(question, agents, method, settings)
    made = sum(len(agent.backend.seen) for agent in agents)  # type: ignore[attr-defined]
    assert load("methods", method).calls(make_settings(method, settings), seats) == (made, made)


async def test_self_consistency_draws_different_samples_of_one_agent(council: Make, question: Question) -> None:
    transcript = await solve(question, council(by_sample), "self_consistency", {"parallel_num": 4})
    assert [transcript.turns[i].text[:6] for i in transcript.finals] == ["draw 0", "draw 1", "draw 2", "draw 3"]
    assert len({turn.messages for turn in transcript.turns}) == 1


async def test_the_aggregator_reads_all_samples_and_its_turn_is_the_answer(council: Make, question: Question) -> None:
    settings = {"parallel_num": 3, "aggregator": "llm"}
    transcript = await solve(question, council(by_sample), "self_consistency", settings)
    (final,) = (transcript.turns[i] for i in transcript.finals)
    assert final.role == "aggregate"
    assert all(f"draw {i} " in final.messages[-1].content for i in range(3))


async def test_a_failing_aggregator_falls_back_to_the_vote(council: Make, question: Question) -> None:
    def reply(request: Request) -> str | BackendError:
        return RateLimited("429") if request.round == 1 else by_sample(request)

    settings = {"parallel_num": 3, "aggregator": "llm"}
    transcript = await solve(question, council(reply), "self_consistency", settings)
    assert (transcript.status, len(transcript.finals)) == ("degraded", 3)


async def test_a_vote_goes_on_without_the_seat_that_fails(council: Make, question: Question) -> None:
    transcript = await solve(question, council(by_sample, lambda r: ServerError("500: down"), by_sample), "vote", {})
    assert (transcript.status, len(transcript.turns), transcript.finals) == ("degraded", 3, (0, 2))


def test_every_method_keeps_the_contract() -> None:
    from pluribus.load import names
    from pluribus.prompts import dialect

    for name in names("methods"):
        module = load("methods", name)
        assert module.__doc__ and module.AGENTS >= 1
        least, most = module.calls(module.Settings(), module.AGENTS)
        assert 1 <= least <= most
        for words in ("standard", "zoo"):
            assert set(module.PROMPTS) <= set(dialect(words).texts), (name, words)
