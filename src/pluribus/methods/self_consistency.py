"""Self-consistency: several samples of one agent's reasoning; the most frequent answer wins.

Source: Wang et al. 2022, arXiv 2203.11171. Differences: zero-shot chain of thought; `aggregator=llm` lets the agent
read its samples and write the one answer, where the paper only votes; `stop` draws no more samples once they will
hardly change the winner (Adaptive-Consistency, Early-Stopping Self-Consistency and others; see `consensus.stopping`).
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pluribus.agents import Agent
from pluribus.consensus.stopping import Stopping, Voters, wave
from pluribus.methods import LATER, independent, missing
from pluribus.methods._waves import Stop, check, in_waves
from pluribus.prompts import Peer
from pluribus.types import Outcome, Question, Turn

AGENTS = 1
PROMPTS = ("cot", "aggregate")


@dataclass(frozen=True, slots=True)
class Settings:
    parallel_num: int = 5
    """Samples drawn, at least 1; with `stop` at most so many."""
    aggregator: Literal["vote", "llm"] = "vote"
    stop: Stop = field(default="none", metadata=LATER)
    """The rule of `consensus.stopping` that ends the sampling."""
    stop_eps: float = field(default=0.05, metadata=LATER)
    """The doubt that is small enough, in (0, 1)."""
    stop_window: int = field(default=5, metadata=LATER)
    """Equal answers that end it under the rule `window`, at least 2."""
    stop_shadow: bool = field(default=False, metadata=LATER)
    """Draw all samples, and note what stopping would have done."""

    def __post_init__(self) -> None:
        if self.parallel_num < 1:
            raise ValueError(f"parallel_num is {self.parallel_num}; draw at least 1 sample")
        check(self.stop, self.stop_eps, self.stop_shadow, self.stop_window)


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    """At least the first wave of samples, at most all of them."""
    n, more = settings.parallel_num, int(settings.aggregator == "llm")
    stops = settings.stop != "none" and not settings.stop_shadow
    least = wave([], Voters((1.0,) * n), _stopping(settings)) if stops else n
    return least + more, n + more


def asks(settings: Settings) -> tuple[int, int]:
    """(samples per seat, rounds): what recorded outputs must hold."""
    return settings.parallel_num, 1 + (settings.aggregator == "llm")


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    agent = agents[0]
    samples, notes = await _samples(question, agent, settings)
    voted = replace(independent(samples), notes=notes)
    if settings.aggregator == "vote":
        return voted
    peers = [Peer(f"sample {i}", turn.text) for i, turn in enumerate(voted.finals, 1)]
    summary = await agent.speak("aggregate", round=1, role="aggregate", peers=peers)
    turns = (*samples, summary)
    return Outcome(turns, (summary,) if summary.ok else voted.finals, missing(turns), notes)


async def _samples(question: Question, agent: Agent, settings: Settings) -> tuple[list[Turn], dict[str, Any]]:
    """The samples drawn, and the notes about stopping."""
    n = settings.parallel_num
    if settings.stop == "none":
        return list(await gather(*(agent.speak("cot", sample=i) for i in range(n)))), {}
    samples, note = await in_waves(
        question,
        lambda i: agent.speak("cot", sample=i),
        range(n),
        (1.0,) * n,
        _stopping(settings),
        settings.stop_shadow,
    )
    return samples, {"stopping": note}


def _stopping(settings: Settings) -> Stopping:
    return Stopping(settings.stop, settings.stop_eps, settings.stop_window)
