"""Finds the first wrong step of an answer; the score is the share of the steps that stand before it, in [0, 1].

1 where no step is wrong. The form of ProcessBench: the judge reads the question and the numbered steps, no key, and
names the first wrong one or none. A reply that names neither is asked for once more; then there is no verdict.

`locate` asks about steps that are cut already: what labels of steps are made from. The zoo's models were never trained
to name a step, and are seldom read.

Source: Zheng et al. 2024, arXiv 2412.06559; judges of steps before it: Lightman et al. 2023, arXiv 2305.20050.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.judges import Candidate, Juror, Opinion
from pluribus.judges._asking import at_least_one, averaged, draws, seated
from pluribus.prompts import Peer
from pluribus.replies import Reply, ask, choice
from pluribus.steps import CUTS, Cut, split_steps
from pluribus.types import Failure

PROMPTS = ("first_error",)
MODEL = "chat"
RANGE = (0.0, 1.0)
REREADS = False
NONE = "none"
"""What the judge says where no step is wrong."""


@dataclass(frozen=True, slots=True)
class Settings:
    cut: Cut = "auto"
    """How an answer is cut into steps."""
    samples: int = 1
    """Times it is asked about each candidate, at least 1; the mean is the score."""

    def __post_init__(self) -> None:
        at_least_one(self.samples)
        if self.cut not in CUTS:
            raise ValueError(f"cut is {self.cut!r}; expected one of {', '.join(CUTS)}")


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate; `samples` holds the share of good steps that each verdict comes to."""
    return list(await gather(*(_opinion(juror, one) for one in candidates)))


async def _opinion(juror: Juror, candidate: Candidate) -> Opinion:
    agent, settings = seated(juror), juror.settings
    steps = split_steps(candidate.text, settings.cut)
    if not steps:
        return Opinion(None, failure=Failure("bad_form", "the answer has no step"))
    numbers = draws(juror, settings.samples)
    replies = await gather(*(locate(agent, steps, round=juror.round, sample=draw) for draw in numbers))
    said = [None if reply.value is None else marks(reply.value, len(steps)) for reply in replies]
    return averaged(replies, [None if one is None else sum(one) / len(one) for one in said])


async def locate(agent: Agent, steps: Sequence[str], *, round: int = 0, sample: int = 0) -> Reply[str]:
    """The number of the first wrong step, from "1" on, or NONE; the value is None when it named neither.

    Args:
        steps: of one answer to the agent's question, at least one.
    """
    numbered = "\n".join(f"[{number}] {step}" for number, step in enumerate(steps, 1))
    form = choice([NONE, *(str(number) for number in range(1, len(steps) + 1))], "first_error")
    peers = [Peer("the solver", numbered)]
    return await ask(agent, "first_error", form, role="first_error", round=round, sample=sample, peers=peers)


def marks(said: str, count: int) -> list[bool]:
    """Whether each of `count` steps is good: all before the first wrong one.

    >>> marks("2", 3), marks(NONE, 2)
    ([True, False, False], [True, True])
    """
    good = count if said == NONE else int(said) - 1
    return [place < good for place in range(count)]
