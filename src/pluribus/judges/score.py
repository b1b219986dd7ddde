"""Rates one answer against criteria, from 0 to 10; the score is a tenth of that, in [0, 1].

Source: the rubric judge of Zheng et al. 2023, arXiv 2306.05685 (single-answer grading, reason before grade). Several
samples of one judge are averaged, after the expected rating of Liu et al. 2023, arXiv 2303.16634 (G-Eval).

Each candidate is judged in calls of its own, so the others can not move its score. A reply without a readable rating
from 0 to 10 is asked for once more; then that sample is none, and the score is the mean of the others.

From round 1 on the judge reads what the others said of the candidate and may keep or change its rating (prompt
`score_again`); a candidate on which no other judge gave a verdict is rated as in round 0. Every round takes draws of
its own. In the zoo's dialect both prompts are the same: its models were never trained to read judges, so there a
second round is a second, independent draw.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.judges import Candidate, Juror, Opinion
from pluribus.judges._asking import at_least_one, averaged, draws, opinions, seated
from pluribus.prompts import Peer
from pluribus.replies import REPAIR, Reply, ask, rating

PROMPTS = ("score",)
AGAIN = ("score_again", REPAIR)
"""The prompts with which it judges again."""
MODEL = "chat"
RANGE = (0.0, 1.0)
REREADS = True
LOW, HIGH = 0.0, 10.0
CRITERIA = "Is the final answer right, and does each step follow? After that, whether it is complete and clear."


@dataclass(frozen=True, slots=True)
class Settings:
    criteria: str = CRITERIA
    """What counts, as the model reads it: a rubric of one's own, or of a task."""
    samples: int = 1
    """Ratings drawn of each candidate, at least 1; their mean is the score."""

    def __post_init__(self) -> None:
        at_least_one(self.samples)
        if not self.criteria.strip():
            raise ValueError("criteria is empty; say what counts, or leave it out for the built-in ones")


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate; `samples` holds each sample's score in [0, 1], None where it was not read."""
    return list(await gather(*(_opinion(juror, place, one) for place, one in enumerate(candidates))))


async def _opinion(juror: Juror, place: int, candidate: Candidate) -> Opinion:
    agent, settings = seated(juror), juror.settings
    heard = opinions(agent.words, juror, place)
    replies = await gather(
        *(
            judge(agent, candidate.text, criteria=settings.criteria, round=juror.round, sample=draw, heard=heard)
            for draw in draws(juror, settings.samples)
        )
    )
    return averaged(replies, [None if reply.value is None else reply.value / HIGH for reply in replies])


async def judge(
    agent: Agent,
    candidate: str,
    *,
    criteria: str = CRITERIA,
    round: int = 0,
    sample: int = 0,
    heard: str | None = None,
) -> Reply[float]:
    """How good the judge finds the candidate, in [0, 10]; the value is None when it gave no readable rating.

    Args:
        heard: what other judges said of it, already between fences; None: it is judged alone.
    """
    prompt = "score" if heard is None else "score_again"
    return await ask(
        agent, prompt, rating("score", LOW, HIGH), role="score", round=round, sample=sample,
        peers=[Peer("answer", candidate)], criteria=criteria, opinions=heard or "",
    )  # fmt: skip
