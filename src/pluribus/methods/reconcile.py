"""Reconcile: everybody answers with a confidence, reads the others in groups, revises; a weighted vote decides.

Source: Chen et al. 2023, arXiv 2309.13007 (section 3 and its confidence recalibration). In each round of discussion an
agent reads the question, its own answer, and the others' with their confidences, those with equal answers together. It
ends when all agree, or after the last round. Confidences count in the vote by steps: 1 counts 1.0, from 0.9 on 0.8,
from 0.8 on 0.5, above 0.6 0.3, all else 0.1.

Differences: no demonstrations of convincing explanations, which the paper takes from a training set. A confidence that
nobody could read counts as the lowest step, as in the authors' code, and the transcript says so. A seat that fails is
missing from its round and its last answer stands; the others may agree without it. An agent alone agrees with itself
as soon as it gives a readable answer.
"""

from __future__ import annotations

from asyncio import gather
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.consensus.agreement import unanimous
from pluribus.consensus.votes import plurality
from pluribus.methods import missing, require
from pluribus.prompts import Peer
from pluribus.replies import Reply, ask, confidence
from pluribus.types import Outcome, Question, Turn

AGENTS = 3
PROMPTS = ("reconcile_answer", "reconcile_revise")
STEPS = ((1.0, 1.0), (0.9, 0.8), (0.8, 0.5))
"""(least confidence, weight); below the last comes MIDDLE, above 0.6, and then LEAST."""
MIDDLE, LEAST = 0.3, 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    rounds: int = 3
    """Rounds of discussion after the first answers, at most; at least 0."""

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise ValueError(f"rounds is {self.rounds}; it counts the rounds of discussion, 0 or more")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return n_agents, n_agents * (1 + settings.rounds)


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What a seat holds."""

    turn: Turn
    answer: str | None
    confidence: float | None
    """In [0, 1]; None: it gave none that could be read."""


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    turns: list[Turn] = []
    held: dict[int, _Opinion] = {}
    for round in range(1 + settings.rounds):
        replies = await gather(*(_turn(agent, round, held, agents) for agent in agents))
        turns += [turn for reply in replies for turn in reply.turns]
        said = {agent.index: _opinion(question, reply) for agent, reply in zip(agents, replies, strict=True)}
        held |= {seat: opinion for seat, opinion in said.items() if opinion}
        require([opinion.turn for opinion in held.values()], turns)
        if unanimous([opinion.answer for opinion in held.values()]):
            break
    opinions = [held[seat] for seat in sorted(held)]
    vote = plurality([o.answer for o in opinions], [weight(o.confidence) for o in opinions])
    finals = tuple(o.turn for o in opinions if o.answer == vote.winner)
    return Outcome(tuple(turns), finals, missing(turns), {"weighted_votes": dict(vote.counts)})


def weight(confidence: float | None) -> float:
    """What a confidence counts in the vote.

    >>> [weight(p) for p in (1.0, 0.95, 0.85, 0.7, 0.6, None)]
    [1.0, 0.8, 0.5, 0.3, 0.1, 0.1]

    Args:
        confidence: in [0, 1]; None: none could be read.
    Source: Chen et al. 2023, arXiv 2309.13007, recalibration of the confidences.
    """
    if confidence is None:
        return LEAST
    steps = [counts for least, counts in STEPS if confidence >= least]
    return steps[0] if steps else MIDDLE if confidence > 0.6 else LEAST


async def _turn(agent: Agent, round: int, held: Mapping[int, _Opinion], agents: Sequence[Agent]) -> Reply[float]:
    own = held.get(agent.index)
    others = {seat: opinion for seat, opinion in held.items() if seat != agent.index}
    if own is None or not others:
        sample = round * len(agents)
        return await ask(agent, "reconcile_answer", confidence(), role="answer", round=round, sample=sample)
    peers = _grouped(agents, others)
    return await ask(
        agent, "reconcile_revise", confidence(), role="answer", round=round, own=own.turn.text, peers=peers
    )


def _opinion(question: Question, reply: Reply[float]) -> _Opinion | None:
    """What the reply says: of two the last answer, in the words of the first that gave it."""
    said = [(turn, read(question, turn.text)) for turn in reply.turns if turn.ok]
    if not said:
        return None
    answer = next((answer for _, answer in reversed(said) if answer is not None), None)
    return _Opinion(next(turn for turn, read in said if read == answer), answer, reply.value)


def _grouped(agents: Sequence[Agent], others: Mapping[int, _Opinion]) -> list[Peer]:
    """The others' words, equal answers together, larger groups first; no answer agrees with nobody."""
    sizes = Counter(opinion.answer for opinion in others.values() if opinion.answer is not None)
    groups = [answer for answer, _ in sizes.most_common()]
    in_groups = [
        (f"Group {number}, {agents[seat].name}", opinion)
        for number, answer in enumerate(groups, 1)
        for seat, opinion in sorted(others.items())
        if opinion.answer == answer
    ]
    alone = [(f"Without a readable answer, {agents[s].name}", o) for s, o in sorted(others.items()) if o.answer is None]
    return [Peer(f"{name} ({_sure(opinion.confidence)})", opinion.turn.text) for name, opinion in in_groups + alone]


def _sure(confidence: float | None) -> str:
    return "confidence not said" if confidence is None else f"confidence {confidence:.2f}"
