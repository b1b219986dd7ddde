"""One agent answers once: the baseline every council is measured against, also called `vanilla`.

Source: zero-shot prompting as in Kojima et al. 2022, arXiv 2205.11916, without its trigger sentence. Differences: none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.methods import independent
from pluribus.types import Outcome, Question

AGENTS = 1
PROMPTS = ("answer",)


@dataclass(frozen=True, slots=True)
class Settings:
    pass


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return 1, 1


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    return independent([await agents[0].speak("answer")])
