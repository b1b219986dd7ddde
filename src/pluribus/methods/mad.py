"""A debate of two sides before a moderator: in each round both speak, then the moderator says whether it is settled.

Source: Liang et al. 2023, arXiv 2305.19118. The affirmative side answers, the negative side disagrees, and both go on
in turn with their whole conversation before them ("tit for tat"). After each round the moderator gives a verdict: is
the right answer clear, which side gave it, what is it. An unsettled debate is closed by a judge in two calls over all
that was said: first the list of the answers given, then the choice.

Seats: the first is the affirmative, the second the negative side, the third moderates, the fourth judges (the
moderator, when there is none); fewer seats take several parts, seats beyond four stand in for a moderator or judge that
fails, and after the last the sides' last answers are voted on. The decision stands in the words of the side that gave
it, else in the verdict's. Differences: a verdict that names neither a readable answer nor the side of one settles
nothing; a side that fails is missing from its round and its last words stand; the judge reads all rounds, where the
authors' code shows it the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as made
from typing import Literal

from pydantic import BaseModel

from pluribus.agents import Agent
from pluribus.answers import canonical, read
from pluribus.methods import first_to_close, missing, require
from pluribus.methods._line import first_to_judge
from pluribus.prompts import Peer
from pluribus.replies import Reply, ask, fields
from pluribus.types import Message, Outcome, Question, Turn

AGENTS = 3
PROMPTS = ("mad_affirmative", "mad_negative", "mad_reply", "mad_moderate", "mad_candidates", "mad_judge")
SIDES = ("affirmative", "negative")
MODERATOR, JUDGE = 2, 3


@dataclass(frozen=True, slots=True)
class Settings:
    max_round: int = 3
    """Rounds of the debate at most, at least 1."""

    def __post_init__(self) -> None:
        if self.max_round < 1:
            raise ValueError(f"max_round is {self.max_round}; the debate has at least 1 round")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return 3, 3 * settings.max_round + 2


class Verdict(BaseModel):
    """What the moderator says after a round."""

    reason: str = ""
    settled: bool
    side: Literal["affirmative", "negative", "none"] = "none"
    answer: str = ""


@dataclass(frozen=True, slots=True)
class _Debate:
    """What was said so far in one debate; its lists grow."""

    question: Question
    agents: Sequence[Agent]
    turns: list[Turn] = made(default_factory=list)
    """All calls in order."""
    speeches: dict[str, list[Turn]] = made(default_factory=lambda: {side: [] for side in SIDES})
    """side → its speeches that came, the last one stands."""
    verdicts: list[Turn] = made(default_factory=list)
    """The moderator's readable ones."""


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    debate = _Debate(question, agents)
    for round in range(settings.max_round):
        for side in SIDES:
            await _speak(debate, side, round)
        require([said[-1] for said in debate.speeches.values() if said], debate.turns)
        final = await _moderate(debate, round)
        if final is not None:
            break
    else:
        final = await _judge(debate, settings.max_round)
    last = tuple(said[-1] for said in debate.speeches.values() if said)
    return Outcome(tuple(debate.turns), last if final is None else (final,), missing(debate.turns))


async def _speak(debate: _Debate, side: str, round: int) -> None:
    """A side's speech: it opens, answers the opening, or goes on with its own conversation."""
    place = SIDES.index(side)
    agent, own, heard = debate.agents[place % len(debate.agents)], debate.speeches[side], _heard(debate, side)
    if not heard:
        turn = await agent.speak("mad_affirmative", round=round, sample=round * len(debate.agents))
    elif not own:
        turn = await agent.speak("mad_negative", round=round, peers=heard)
    else:
        turn = await agent.speak("mad_reply", round=round, peers=heard, after=_heard_and_said(own[-1]))
    debate.turns.append(turn)
    if turn.ok:
        own.append(turn)


def _heard(debate: _Debate, side: str) -> list[Peer]:
    """The other side's last words."""
    (other,) = (name for name in SIDES if name != side)
    return [Peer(f"The {other} side", said[-1].text) for said in [debate.speeches[other]] if said]


def _heard_and_said(turn: Turn) -> tuple[Message, ...]:
    """The conversation up to and with this turn."""
    return (*turn.messages, Message("assistant", turn.text))


async def _moderate(debate: _Debate, round: int) -> Turn | None:
    """The turn that stands as the answer when the moderator finds the debate settled."""
    peers = [Peer(f"The {side} side", said[-1].text) for side, said in debate.speeches.items() if said]

    async def moderate(agent: Agent) -> Reply[Verdict]:
        own = [turn for turn in debate.verdicts if turn.seat == agent.index]
        after = _heard_and_said(own[-1]) if own else ()
        return await ask(agent, "mad_moderate", fields(Verdict), role="verdict", round=round, peers=peers, after=after)

    reply = await first_to_judge(debate.agents, moderate, first=MODERATOR % len(debate.agents))
    debate.turns.extend(reply.turns)
    if reply.value is None:
        return None
    debate.verdicts.append(reply.turn)
    return _settled(debate, reply.value, reply.turn)


def _settled(debate: _Debate, verdict: Verdict, turn: Turn) -> Turn | None:
    """The words in which the verdict's answer stands: those of the side it names, of the other, or its own.

    A verdict without an answer of its own takes that of the side it names.
    """
    if not verdict.settled:
        return None
    question = debate.question
    answer = read(question, verdict.answer) or canonical(question, verdict.answer)
    named = sorted(SIDES, key=lambda side: side != verdict.side)
    last = [(side, debate.speeches[side][-1]) for side in named if debate.speeches[side]]
    for side, speech in last:
        said = read(question, speech.text)
        if said is not None and (said == answer or (answer is None and side == verdict.side)):
            return speech
    return turn if answer is not None and read(question, turn.text) == answer else None


async def _judge(debate: _Debate, round: int) -> Turn | None:
    """The judge's choice, after a list of what there is to choose from."""
    peers = [
        Peer(f"The {side} side in round {turn.round + 1}", turn.text)
        for turn, side in sorted(
            ((turn, side) for side, said in debate.speeches.items() for turn in said), key=lambda pair: pair[0].round
        )
    ]
    listed: list[Turn] = []

    async def choose(agent: Agent) -> Turn:
        candidates = await agent.speak("mad_candidates", round=round, role="candidates", peers=peers)
        listed.append(candidates)
        if not candidates.ok:
            return candidates
        return await agent.speak("mad_judge", round=round, role="aggregate", after=_heard_and_said(candidates))

    turns, closed = await first_to_close(
        debate.agents, choose, first=JUDGE if len(debate.agents) > JUDGE else MODERATOR % len(debate.agents)
    )
    for first, last in zip(listed, turns, strict=True):
        debate.turns.extend([first] if first is last else [first, last])
    return closed
