"""Chain of thought: one agent, asked to reason step by step, once.

Source: Wei et al. 2022, arXiv 2201.11903. Difference: zero-shot, no worked examples in the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.methods import independent
from pluribus.types import Outcome, Question

AGENTS = 1
PROMPTS = ("cot",)


@dataclass(frozen=True, slots=True)
class Settings:
    pass


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return 1, 1


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    return independent([await agents[0].speak("cot")])
