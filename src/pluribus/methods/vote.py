"""Independent agents answer once each; the decision counts their votes.

Source: the voting solver of Agent-Scaling (Yang et al. 2026, arXiv 2602.03794). Difference: a
council may go on without its late seats (`quorum` and `deadline_s`), and it may stop asking once more votes will hardly
change the winner (`stop`); by itself it asks and waits for everybody.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pluribus.agents import Agent
from pluribus.consensus.stopping import Stopping, Voters, wave
from pluribus.methods import LATER, in_time, independent
from pluribus.methods._waves import Stop, cheapest, check, in_waves
from pluribus.types import Outcome, Question

AGENTS = 5
PROMPTS = ("answer",)


@dataclass(frozen=True, slots=True)
class Settings:
    quorum: int | None = None
    """Answers that are enough once the deadline is over, at least 1; who is missing then is recorded as late."""
    deadline_s: float | None = None
    """Seconds during which everybody is waited for."""
    stop: Stop = field(default="none", metadata=LATER)
    """The rule of `consensus.stopping` that ends the asking; seats vote with their weights."""
    stop_eps: float = field(default=0.05, metadata=LATER)
    """The doubt that is small enough, in (0, 1)."""
    stop_window: int = field(default=5, metadata=LATER)
    """Equal answers that end it under the rule `window`, at least 2."""
    stop_shadow: bool = field(default=False, metadata=LATER)
    """Ask everybody, and note what stopping would have done."""
    stop_order: Literal["seats", "cost"] = field(default="seats", metadata=LATER)
    """Who is asked first: as the seats stand, or the cheapest model."""

    def __post_init__(self) -> None:
        if (self.quorum is None) != (self.deadline_s is None):
            raise ValueError(f"quorum is {self.quorum} and deadline_s is {self.deadline_s}; give both or neither")
        if self.quorum is not None and self.quorum < 1:
            raise ValueError(f"quorum is {self.quorum}; at least 1 answer is needed to go on")
        if self.deadline_s is not None and self.deadline_s < 0:
            raise ValueError(f"deadline_s is {self.deadline_s}; it counts seconds, 0 or more")
        check(self.stop, self.stop_eps, self.stop_shadow, self.stop_window)
        if self.stop != "none" and self.quorum is not None:
            raise ValueError(f"stop is {self.stop} and quorum is {self.quorum}; who is late or who is spared, not both")
        if self.stop == "none" and self.stop_order != "seats":
            raise ValueError(f"stop_order is {self.stop_order} and stop is none; name the rule that ends the asking")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    """At least the first wave, of seats that weigh the same; at most everybody."""
    if settings.stop == "none" or settings.stop_shadow:
        return n_agents, n_agents
    return wave([], Voters((1.0,) * n_agents), _stopping(settings)), n_agents


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    if settings.stop != "none":
        order = cheapest(agents) if settings.stop_order == "cost" else range(len(agents))
        weights = [agent.seat.weight for agent in agents]
        turns, note = await in_waves(
            question, lambda i: agents[i].speak("answer"), order, weights, _stopping(settings), settings.stop_shadow
        )
        return replace(independent(turns), notes={"stopping": note})
    if settings.quorum is None or settings.deadline_s is None:
        return independent(await gather(*(agent.speak("answer") for agent in agents)))
    return independent(await in_time(agents, "answer", settings.quorum, settings.deadline_s))


def _stopping(settings: Settings) -> Stopping:
    return Stopping(settings.stop, settings.stop_eps, settings.stop_window)
