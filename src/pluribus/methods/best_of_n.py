"""Best of n: samples of one agent, each rated by a judge; the best rated one is the answer.

Source: best-of-n sampling with a judge in the place of the verifier of Cobbe et al. 2021, arXiv 2110.14168; the judge
is `judges/score`.

Seats: the first draws the samples, the last judges; one agent does both. Ties go to the answer that more samples give,
then to the earliest. Differences: the judge is a prompted model, not a trained one. A sample without a readable rating
can not win; when the judge rates none, the next seat in line judges all, and after the last the samples are voted on.
"""

from __future__ import annotations

from asyncio import gather
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.judges import score
from pluribus.methods import missing, require
from pluribus.types import Outcome, Question, Turn

AGENTS = 1
PROMPTS = ("cot", *score.PROMPTS)


@dataclass(frozen=True, slots=True)
class Settings:
    n: int = 4
    """Samples drawn, at least 1."""

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n is {self.n}; draw at least 1 sample")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return 2 * settings.n, 2 * settings.n


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    samples = await gather(*(agents[0].speak("cot", sample=i) for i in range(settings.n)))
    standing = [turn for turn in samples if turn.ok]
    require(standing, samples)
    rated, scores = await _rate(agents, standing)
    turns = (*samples, *rated)
    finals = tuple(standing) if not scores else (standing[_best(question, standing, scores)],)
    notes = {"scores": [scores.get(place) for place in range(len(standing))]}
    return Outcome(turns, finals, missing(turns), notes)


async def _rate(agents: Sequence[Agent], candidates: Sequence[Turn]) -> tuple[list[Turn], dict[int, float]]:
    """All turns of the judges, and the ratings by the candidate's place, all of one judge."""
    turns: list[Turn] = []
    for judge in (agents[-1], *agents[:-1]):
        replies = await gather(
            *(score.judge(judge, turn.text, round=1, sample=place) for place, turn in enumerate(candidates))
        )
        turns += [turn for reply in replies for turn in reply.turns]
        scores = {place: reply.value for place, reply in enumerate(replies) if reply.value is not None}
        if scores:
            return turns, scores
    return turns, {}


def _best(question: Question, candidates: Sequence[Turn], scores: dict[int, float]) -> int:
    """Place of the best rated candidate; of equally good ones that with most votes, then the first."""
    answers = [read(question, turn.text) for turn in candidates]
    votes = Counter(answer for answer in answers if answer is not None)
    return max(scores, key=lambda place: (scores[place], votes[answers[place] or ""], -place))
