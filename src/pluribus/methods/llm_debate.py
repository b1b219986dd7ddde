"""A debate that one agent closes: rounds in which everybody reads everybody, then an aggregator's one answer.

Source: Du et al. 2023, arXiv 2305.14325, as AgentArk runs it (Yang et al. 2026, arXiv 2602.03955): the paper votes on
the last answers, here an aggregator reads all of them. Rounds are synchronous: in round r an agent reads the question,
its own answer and the others' answers of round r−1.

Differences: a seat that fails is missing from its round and its last answer stands; an agent alone reviews itself. The
first seat aggregates; when it fails the next in line does, after the last the answers are voted on.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.methods import first_to_close, missing, require
from pluribus.prompts import Peer
from pluribus.types import Outcome, Question, Turn

AGENTS = 3
PROMPTS = ("answer", "debate_revise", "debate_alone", "aggregate")


@dataclass(frozen=True, slots=True)
class Settings:
    num_rounds: int = 2
    """Rounds of the debate, the first answers included, at least 1."""

    def __post_init__(self) -> None:
        if self.num_rounds < 1:
            raise ValueError(f"num_rounds is {self.num_rounds}; the first answers are round 1, so say 1 or more")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    n = n_agents * settings.num_rounds + 1
    return n, n


def asks(settings: Settings) -> tuple[int, int]:
    """(samples per seat, rounds): what recorded outputs must hold."""
    return 1, settings.num_rounds + 1


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    turns: list[Turn] = []
    standing: dict[int, Turn] = {}
    for round in range(settings.num_rounds):
        said = await gather(*(_turn(agent, round, standing, agents) for agent in agents))
        turns += said
        standing |= {turn.seat: turn for turn in said if turn.ok}
        require(list(standing.values()), turns)
    finals = tuple(standing[seat] for seat in sorted(standing))
    peers = [Peer(agents[turn.seat].name, turn.text) for turn in finals]
    closing, closed = await first_to_close(
        agents, lambda agent: agent.speak("aggregate", round=settings.num_rounds, role="aggregate", peers=peers)
    )
    turns += closing
    return Outcome(tuple(turns), (closed,) if closed else finals, missing(turns))


async def _turn(agent: Agent, round: int, standing: Mapping[int, Turn], agents: Sequence[Agent]) -> Turn:
    own = standing.get(agent.index)
    if own is None:
        return await agent.speak("answer", round=round)
    peers = [Peer(agents[seat].name, standing[seat].text) for seat in sorted(standing) if seat != agent.index]
    if not peers:
        return await agent.speak("debate_alone", round=round, own=own.text)
    return await agent.speak("debate_revise", round=round, own=own.text, peers=peers)
