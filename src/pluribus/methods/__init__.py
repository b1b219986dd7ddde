"""One file per protocol.

A member has a docstring with source and differences, `Settings` (a frozen dataclass), `AGENTS` (how many seats it
takes when nobody says), `PROMPTS` (the prompts it uses), `calls(settings, n_agents) -> (least, most)` and
`async solve(question, agents, settings, seed) -> Outcome`. Where recorded outputs can stand for its calls it has
`asks(settings) -> (samples per seat, rounds)`; where it runs programs that models wrote, `runs_programs(settings)`.
It knows nothing of tasks, keys, stores, batching, retries or budgets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from pluribus.agents import Agent
from pluribus.errors import ConfigError, ProtocolError
from pluribus.prompts import render
from pluribus.quorum import gather_quorum
from pluribus.types import Failure, Outcome, Question, Turn

LATER: Mapping[str, bool] = MappingProxyType({"later": True})
"""Metadata of a setting that a method got after its first release: at its default it stays out of an attempt's id, so
what was stored before is known again."""


class Method(Protocol):
    Settings: type[Any]
    AGENTS: int
    PROMPTS: tuple[str, ...]

    def calls(self, settings: Any, n_agents: int) -> tuple[int, int]: ...

    async def solve(self, question: Question, agents: Sequence[Agent], settings: Any, seed: int) -> Outcome: ...


def independent(turns: Sequence[Turn]) -> Outcome:
    """The outcome of turns that all stand as answers; failed ones make it degraded, none left is an error."""
    finals = tuple(turn for turn in turns if turn.ok)
    require(finals, turns)
    return Outcome(tuple(turns), finals, missing(turns))


def require(standing: Sequence[Turn], turns: Sequence[Turn]) -> None:
    """Raises ProtocolError with the first reason when no turn stands."""
    if not standing:
        first = next((turn.failure for turn in turns if turn.failure), None)
        raise ProtocolError(f"every seat failed; the first said: {first.message if first else 'nothing'}")


def missing(turns: Sequence[Turn]) -> str | None:
    """Who failed (seats counted from 1, as people see them), in which round and why, or None.

    A reply that could not be read in the form asked for is missing too, unless it was asked again and then read.
    """
    reasons = [(turn, _reason(turn, turns)) for turn in turns if turn.failure is not None or turn.unread is not None]
    return "; ".join(f"seat {t.seat + 1} in round {t.round}: {reason}" for t, reason in reasons if reason) or None


def _reason(turn: Turn, turns: Sequence[Turn]) -> str | None:
    if turn.failure is not None:
        return turn.failure.message
    return None if any(_repeats(other, turn) for other in turns) else f"unreadable {turn.role}: {turn.unread}"


def _repeats(later: Turn, turn: Turn) -> bool:
    """Whether `later` asks for `turn`'s reply again."""
    heard = len(turn.messages)
    return later.seat == turn.seat and len(later.messages) > heard and later.messages[:heard] == turn.messages


async def first_to_close(
    agents: Sequence[Agent], say: Callable[[Agent], Awaitable[Turn]], first: int = 0
) -> tuple[list[Turn], Turn | None]:
    """An aggregator's turn; when it fails, the next agent in line is asked, each at most once.

    Args:
        say: how an agent closes.
        first: index of the one that is asked first; after the last comes agent 0.

    Returns: all turns, and the one that stands; None when everybody failed, and the caller falls back to the vote.
    """
    turns: list[Turn] = []
    for place in range(len(agents)):
        turns.append(await say(agents[(first + place) % len(agents)]))
        if turns[-1].ok:
            return turns, turns[-1]
    return turns, None


async def in_time(agents: Sequence[Agent], prompt: str, quorum: int, deadline_s: float) -> list[Turn]:
    """One turn of every agent, but after the deadline a quorum of answers is enough; who is missing then is late.

    Args:
        quorum: answers needed to go on, in [1, len(agents)]; a failed turn is none.
        deadline_s: seconds; with fewer answers than the quorum it waits on.
    """
    if quorum > len(agents):
        raise ConfigError(f"quorum is {quorum} of {len(agents)} seats", hint="name a quorum the council can reach")
    said = await gather_quorum(
        [agent.speak(prompt) for agent in agents], quorum, deadline_s, counts=lambda turn: turn.ok
    )
    return [
        turn if isinstance(turn, Turn) else _late(agent, prompt, turn.waited_s)
        for agent, turn in zip(agents, said, strict=True)
    ]


def _late(agent: Agent, prompt: str, waited_s: float) -> Turn:
    """The failed turn of a seat that was asked and not waited for any longer."""
    assert agent.question is not None
    messages = render(agent.words, prompt, agent.question, system=agent.seat.system)
    late = Failure("late", f"no answer after {waited_s:.3g} s, when the quorum went on", retryable=True)
    turn = Turn(0, agent.index, "answer", messages, failure=late, sample=agent.seat.sample)
    if agent.observe is not None:
        agent.observe(turn)
    return turn
