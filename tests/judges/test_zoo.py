"""The embedded models as judges: they can be read, and right replies come out above wrong ones."""

from __future__ import annotations

import random
from asyncio import gather
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import torch

from pluribus.agents import Agent, plan, seats
from pluribus.backends import connect, parse
from pluribus.judges import Candidate, Juror, Opinion, logprob, pairwise, score, verdict
from pluribus.prompts import dialect
from pluribus.types import Question
from pluribus.zoo.cases import take

CASES = [take(task, "test", index) for task in ("sums", "briefs") for index in range(6)]
SAMPLING = {"temperature": 0.0, "max_tokens": 160}
Bench = Callable[[Any, Any], Any]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Models this small lose more by waiting for a second thread than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["gemma", "qwen"])
async def agent(request: pytest.FixtureRequest) -> AsyncIterator[Agent]:
    spec = parse(f"zoo/{request.param}")
    (seat,) = seats(plan([spec], 1), sampling=SAMPLING)
    backend = connect(spec)
    yield Agent(seat, backend, dialect(seat.dialect))
    await backend.close()


async def opinions(kind: Any, settings: Any, agent: Agent) -> list[tuple[Opinion, Opinion]]:
    """What the member says of a right and of a wrong reply to each question."""

    async def of(place: int) -> tuple[Opinion, Opinion]:
        case, rng = CASES[place], random.Random(place)
        question = Question(f"q{place}", case.task, case.question, "text")
        texts = (case.right("plain", rng).text, case.mistake("plain", rng, {}).text)
        replies = [Candidate("run", turn, text) for turn, text in enumerate(texts)]
        right, wrong = await kind.judge_all(Juror("judge", question, settings, agent.at(question, 0)), replies)
        return right, wrong

    return await gather(*(of(place) for place in range(len(CASES))))


def mean(said: list[Opinion]) -> float:
    scores = [one.score for one in said if one.score is not None]
    return sum(scores) / len(scores)


@pytest.mark.parametrize(
    ("kind", "settings"), [(score, score.Settings()), (verdict, verdict.Settings()), (pairwise, pairwise.Settings())]
)
async def test_right_replies_are_scored_above_wrong_ones(agent: Agent, kind: Any, settings: Any) -> None:
    said = await opinions(kind, settings, agent)
    read = [one.failure is None for pair in said for one in pair]
    assert sum(read) >= 0.9 * len(read), [one.failure for pair in said for one in pair]
    assert mean([right for right, _ in said]) > mean([wrong for _, wrong in said]) + 0.2


async def test_one_word_is_none_the_zoo_says_and_no_verdict_is_made_of_noise(agent: Agent) -> None:
    said = await opinions(logprob, logprob.Settings("p_true"), agent)
    unread = [one.failure for pair in said for one in pair if one.failure]
    assert len(unread) == 2 * len(CASES) and all("of the first word of" in failure.message for failure in unread)


async def test_likelihoods_are_probabilities(agent: Agent) -> None:
    said = await opinions(logprob, logprob.Settings("likelihood"), agent)
    for pair in said:
        for one in pair:
            assert one.score is not None and 0 < one.score <= 1, one.failure
    assert mean([right for right, _ in said]) > mean([wrong for _, wrong in said])
