"""Mixture of agents: layers of proposers, each reading all that the layer before proposed, and an aggregator.

Source: Wang et al. 2024, arXiv 2406.04692. The first layer answers; from the second on every proposer writes the one
answer it stands by after reading the layer before, as the aggregator does at the end.

Seats: proposer i is seat i modulo their number (a seat that comes again draws another sample); the aggregator is the
seat after the proposers, or the first when there is none. Seats beyond stand in for an aggregator that fails; after
them the last layer is voted on. Differences: every layer has the same proposers; a layer in which everybody fails is
passed over.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.methods import first_to_close, missing, require
from pluribus.prompts import Peer
from pluribus.types import Outcome, Question, Turn

AGENTS = 3
PROMPTS = ("answer", "aggregate")


@dataclass(frozen=True, slots=True)
class Settings:
    layers: int = 2
    """Layers of proposers before the aggregator, at least 1."""
    proposers: int = 3
    """Proposers in each layer, at least 1."""

    def __post_init__(self) -> None:
        if self.layers < 1:
            raise ValueError(f"layers is {self.layers}; at least 1 layer proposes")
        if self.proposers < 1:
            raise ValueError(f"proposers is {self.proposers}; at least 1 agent proposes in each layer")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    n = settings.layers * settings.proposers + 1
    return n, n


def asks(settings: Settings) -> tuple[int, int]:
    """(samples per seat, rounds): what recorded outputs must hold."""
    return 1, settings.layers + 1


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    turns: list[Turn] = []
    standing: list[Turn] = []
    for layer in range(settings.layers):
        said = await gather(*(_propose(agents, place, layer, standing) for place in range(settings.proposers)))
        turns += said
        standing = [turn for turn in said if turn.ok] or standing
    require(standing, turns)
    peers = _peers(agents, standing)
    closing, closed = await first_to_close(
        agents,
        lambda agent: agent.speak("aggregate", round=settings.layers, role="aggregate", peers=peers),
        first=settings.proposers if settings.proposers < len(agents) else 0,
    )
    turns += closing
    return Outcome(tuple(turns), (closed,) if closed else tuple(standing), missing(turns))


async def _propose(agents: Sequence[Agent], place: int, layer: int, before: Sequence[Turn]) -> Turn:
    agent = agents[place % len(agents)]
    # A multiple of the seats: a twin's draw would otherwise come a second time.
    sample = place - place % len(agents)
    if not before:
        return await agent.speak("answer", round=layer, sample=sample)
    return await agent.speak("aggregate", round=layer, sample=sample, peers=_peers(agents, before))


def _peers(agents: Sequence[Agent], turns: Sequence[Turn]) -> list[Peer]:
    """What was proposed, by its author's name; several proposals of one seat are told apart by number."""
    seats = [turn.seat for turn in turns]
    return [
        Peer(
            agents[turn.seat].name
            + (f", version {seats[: place + 1].count(turn.seat)}" * (seats.count(turn.seat) > 1)),
            turn.text,
        )
        for place, turn in enumerate(turns)
    ]
