"""Independent agents answer once each; the decision counts their votes.

Source: the voting solver of Agent-Scaling (Yang et al. 2026, arXiv 2602.03794). Difference: a
council may go on without its late seats (`quorum` and `deadline_s`); by itself it waits for everybody.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.methods import in_time, independent
from pluribus.types import Outcome, Question

AGENTS = 5
PROMPTS = ("answer",)


@dataclass(frozen=True, slots=True)
class Settings:
    quorum: int | None = None
    """Answers that are enough once the deadline is over, at least 1; who is missing then is recorded as late."""
    deadline_s: float | None = None
    """Seconds during which everybody is waited for."""

    def __post_init__(self) -> None:
        if (self.quorum is None) != (self.deadline_s is None):
            raise ValueError(f"quorum is {self.quorum} and deadline_s is {self.deadline_s}; give both or neither")
        if self.quorum is not None and self.quorum < 1:
            raise ValueError(f"quorum is {self.quorum}; at least 1 answer is needed to go on")
        if self.deadline_s is not None and self.deadline_s < 0:
            raise ValueError(f"deadline_s is {self.deadline_s}; it counts seconds, 0 or more")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return n_agents, n_agents


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    if settings.quorum is None or settings.deadline_s is None:
        return independent(await gather(*(agent.speak("answer") for agent in agents)))
    return independent(await in_time(agents, "answer", settings.quorum, settings.deadline_s))
