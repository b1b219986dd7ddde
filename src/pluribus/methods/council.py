"""A council: everybody answers, everybody ranks the others' answers blind, a chair writes the one answer.

Source: the protocol of llm-council (Karpathy 2025, github.com/karpathy/llm-council): first opinions, blind review,
final response of a chair. Answers are numbered without names, in an order shuffled for each reader by the seed; the
chair reads all answers with their mean ranks.

Differences: nobody ranks its own answer, and the order is another for each reader. A member whose ranking can not be
read ranks nothing. One agent alone ranks nothing either: it answers, and closes as chair. A chair that fails is
followed by the next in line, and after the last the answers are voted on.
"""

from __future__ import annotations

import random
from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pluribus.agents import Agent
from pluribus.methods import first_to_close, missing, require
from pluribus.prompts import Peer
from pluribus.replies import Reply, ask, ranking
from pluribus.types import Outcome, Question, Turn

AGENTS = 4
PROMPTS = ("answer", "rank", "council_chair")


@dataclass(frozen=True, slots=True)
class Settings:
    chair: Literal["first", "last", "best_ranked"] = "first"
    """Which seat writes: the first, the last, or the one whose answer has the best mean rank (the first of equals)."""


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    n = 2 * n_agents + 1 if n_agents > 1 else 2
    return n, n


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    answers = await gather(*(agent.speak("answer") for agent in agents))
    standing = {turn.seat: turn for turn in answers if turn.ok}
    require(list(standing.values()), answers)
    rankings = await gather(*(_rank(agent, standing, f"{seed}:{question.id}:{agent.index}") for agent in agents))
    ranked = _mean_ranks([order for _, order in rankings if order is not None])
    fields = {
        "peers": [Peer(agents[seat].name, turn.text) for seat, turn in standing.items()],
        "rankings": _told(agents, standing, ranked),
    }
    closing, closed = await first_to_close(
        agents,
        lambda agent: agent.speak("council_chair", round=2, role="aggregate", **fields),  # type: ignore[arg-type]  # one dict of fields of two types
        first=_chair(settings.chair, ranked, len(agents)),
    )
    turns = (*answers, *(turn for reply, _ in rankings if reply for turn in reply.turns), *closing)
    notes = {"mean_ranks": [ranked[agent.index][0] if agent.index in ranked else None for agent in agents]}
    return Outcome(turns, (closed,) if closed else tuple(standing.values()), missing(turns), notes)


async def _rank(
    agent: Agent, standing: Mapping[int, Turn], seed: str
) -> tuple[Reply[tuple[str, ...]] | None, list[int] | None]:
    """The reader's reply, and the seats in its order, best first; it is not asked when there is nothing to rank."""
    seats = [seat for seat in standing if seat != agent.index]
    if not seats:
        return None, None
    random.Random(seed).shuffle(seats)
    shown = {str(number): seat for number, seat in enumerate(seats, 1)}
    peers = [Peer(number, standing[seat].text) for number, seat in shown.items()]
    reply = await ask(agent, "rank", ranking(list(shown)), role="ranking", round=1, peers=peers)
    return reply, None if reply.value is None else [shown[number] for number in reply.value]


def _mean_ranks(orders: Sequence[Sequence[int]]) -> dict[int, tuple[float, int]]:
    """Seat → (mean rank of its answer, 1 the best, and how many ranked it); who was ranked by nobody is not there.

    >>> _mean_ranks([[1, 2], [2, 0], [0, 1]])
    {0: (1.5, 2), 1: (1.5, 2), 2: (1.5, 2)}
    """
    ranks: dict[int, list[int]] = {}
    for order in orders:
        for rank, seat in enumerate(order, 1):
            ranks.setdefault(seat, []).append(rank)
    return {seat: (sum(given) / len(given), len(given)) for seat, given in sorted(ranks.items())}


def _told(agents: Sequence[Agent], standing: Mapping[int, Turn], ranked: Mapping[int, tuple[float, int]]) -> str:
    """The ranking in words, the best first."""
    if not ranked:
        return "The answers were not ranked."
    order = sorted((seat for seat in standing if seat in ranked), key=lambda seat: ranked[seat][0])
    lines = [f"{agents[seat].name}: {ranked[seat][0]:.2f}, ranked by {ranked[seat][1]}" for seat in order]
    return "Mean rank of each answer among the others, 1 the best:\n" + "\n".join(lines)


def _chair(chair: str, ranked: Mapping[int, tuple[float, int]], n: int) -> int:
    if chair == "best_ranked" and ranked:
        return min(ranked, key=lambda seat: ranked[seat][0])
    return n - 1 if chair == "last" else 0
