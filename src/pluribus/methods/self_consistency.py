"""Self-consistency: several samples of one agent's reasoning; the most frequent answer wins.

Source: Wang et al. 2022, arXiv 2203.11171. Differences: zero-shot chain of thought; `aggregator=llm` lets the agent
read its samples and write the one answer, where the paper only votes.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pluribus.agents import Agent
from pluribus.methods import independent, missing
from pluribus.prompts import Peer
from pluribus.types import Outcome, Question

AGENTS = 1
PROMPTS = ("cot", "aggregate")


@dataclass(frozen=True, slots=True)
class Settings:
    parallel_num: int = 5
    """Samples drawn, at least 1."""
    aggregator: Literal["vote", "llm"] = "vote"

    def __post_init__(self) -> None:
        if self.parallel_num < 1:
            raise ValueError(f"parallel_num is {self.parallel_num}; draw at least 1 sample")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    n = settings.parallel_num + (settings.aggregator == "llm")
    return n, n


def asks(settings: Settings) -> tuple[int, int]:
    """(samples per seat, rounds): what recorded outputs must hold."""
    return settings.parallel_num, 1 + (settings.aggregator == "llm")


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    agent = agents[0]
    samples = await gather(*(agent.speak("cot", sample=i) for i in range(settings.parallel_num)))
    voted = independent(samples)
    if settings.aggregator == "vote":
        return voted
    peers = [Peer(f"sample {i}", turn.text) for i, turn in enumerate(voted.finals, 1)]
    summary = await agent.speak("aggregate", round=1, role="aggregate", peers=peers)
    turns = (*samples, summary)
    return Outcome(turns, (summary,) if summary.ok else voted.finals, missing(turns))
