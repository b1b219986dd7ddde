"""Multi-agent debate: everybody answers, then in each round everybody reads others' last answers and revises.

Source: Du et al. 2023, arXiv 2305.14325; topologies of Agent-Scaling (Yang et al. 2026, arXiv 2602.03794).
Rounds are synchronous: in round r an agent reads the question, its own answer and the others' answers of round r−1.

- `decentralized`: everybody reads everybody.
- `sparse`: everybody reads the two neighbours on a ring.
- `centralized`: the hub (the first seat) reads all, the others read the hub; the decision is the hub's.

Differences: a seat that fails is missing from its round and its last answer stands; an agent alone reviews itself.
A debate may end early: `stop_on_consensus` when all agree, `stop` when the standing answers agree so clearly that, were
they independent draws, the leading one would be the most probable with probability 1 − eps. After the first round they
are no such draws, for the seats have read each other: then it is a threshold of agreement, not a probability of being
right. Under `centralized` the hub must be of the leading opinion too, for its answer is the decision.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.consensus.stopping import Stopping, Voters, doubt, wave
from pluribus.consensus.stopping import settled as clear
from pluribus.consensus.topology import HUB, heard
from pluribus.consensus.votes import plurality
from pluribus.methods import LATER, missing, require
from pluribus.methods._waves import check, note
from pluribus.prompts import Peer
from pluribus.types import Outcome, Question, Turn

AGENTS = 5
PROMPTS = ("answer", "debate_revise", "debate_alone")


@dataclass(frozen=True, slots=True)
class Settings:
    debate_rounds: int = 5
    """Rounds after the first answers, at least 0."""
    topology: Literal["decentralized", "sparse", "centralized"] = "decentralized"
    stop_on_consensus: bool = False
    """End as soon as all answers are equal: fewer calls, and no chance to leave a wrong consensus."""
    stop: Literal["none", "beta", "dirichlet"] = field(default="none", metadata=LATER)
    """The rule of `consensus.stopping` that ends it between two rounds, on the answers that stand."""
    stop_eps: float = field(default=0.05, metadata=LATER)
    """The doubt that is small enough, in (0, 1)."""
    stop_shadow: bool = field(default=False, metadata=LATER)
    """Hold all rounds, and note what stopping would have done."""

    def __post_init__(self) -> None:
        if self.debate_rounds < 0:
            raise ValueError(f"debate_rounds is {self.debate_rounds}; it counts the rounds after the first, 0 or more")
        check(self.stop, self.stop_eps, self.stop_shadow)


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    """At least one round where it may end early: under `stop` only a council that is large enough to settle it can."""
    most = n_agents * (1 + settings.debate_rounds)
    stops = settings.stop != "none" and not settings.stop_shadow
    enough = stops and wave([], Voters((1.0,) * 2 * n_agents), _stopping(settings)) <= n_agents
    return (n_agents if settings.stop_on_consensus or enough else most), most


def asks(settings: Settings) -> tuple[int, int]:
    """(samples per seat, rounds): what recorded outputs must hold."""
    return 1, 1 + settings.debate_rounds


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    turns: list[Turn] = []
    standing: dict[int, Turn] = {}
    settled = False
    notes: dict[str, Any] = {}
    for round in range(1 + settings.debate_rounds):
        said = await gather(
            *(_turn(agent, round, standing, heard(settings.topology, seat, len(agents)), agents)
              for seat, agent in enumerate(agents))
        )  # fmt: skip
        turns += said
        standing |= {turn.seat: turn for turn in said if turn.ok}
        require(list(standing.values()), turns)
        if settings.stop != "none" and not settled:
            settled, notes = _look(question, standing, agents, settings, len(turns))
        if settled and not settings.stop_shadow:
            break
        if settings.stop_on_consensus and _agreed(question, standing, len(agents)):
            break
    return Outcome(tuple(turns), _finals(settings.topology, standing), missing(turns), notes)


async def _turn(
    agent: Agent, round: int, standing: Mapping[int, Turn], speakers: Sequence[int], agents: Sequence[Agent]
) -> Turn:
    own = standing.get(agent.index)
    peers = [Peer(agents[seat].name, standing[seat].text) for seat in speakers if seat in standing]
    if own is None:
        return await agent.speak("answer", round=round)
    if not peers:
        return await agent.speak("debate_alone", round=round, own=own.text)
    return await agent.speak("debate_revise", round=round, own=own.text, peers=peers)


def _agreed(question: Question, standing: Mapping[int, Turn], n: int) -> bool:
    said = {read(question, turn.text) for turn in standing.values()}
    return len(standing) == n and len(said) == 1 and None not in said


def _look(
    question: Question, standing: Mapping[int, Turn], agents: Sequence[Agent], settings: Settings, made: int
) -> tuple[bool, dict[str, Any]]:
    """Whether the standing answers settle it after so many calls, and the notes about it."""
    said = [standing.get(agent.index) for agent in agents]
    votes = [read(question, turn.text) if turn else None for turn in said]
    weights = tuple(agent.seat.weight for agent in agents)
    more = Voters(weights * 2)  # twice as many: all asked once is not all asked
    leader = plurality(votes, weights).winner
    answer = votes[HUB] if settings.topology == "centralized" and said[HUB] else leader
    settled = clear(votes, more, _stopping(settings)) and answer == leader
    risk = doubt(votes, more, _stopping(settings)) if settled else None
    of = len(agents) * (1 + settings.debate_rounds)
    about = (settings.stop, settings.stop_eps, settings.stop_shadow, made, of, answer, risk)
    return settled, {"stopping": note(*about)}


def _stopping(settings: Settings) -> Stopping:
    return Stopping(settings.stop, settings.stop_eps)


def _finals(topology: str, standing: Mapping[int, Turn]) -> tuple[Turn, ...]:
    if topology == "centralized" and HUB in standing:
        return (standing[HUB],)
    return tuple(standing[seat] for seat in sorted(standing))
