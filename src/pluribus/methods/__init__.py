"""One file per protocol.

A member has a docstring with source and differences, `Settings` (a frozen dataclass), `AGENTS` (how many seats it
takes when nobody says), `PROMPTS` (the prompts it uses), `calls(settings, n_agents) -> (least, most)` and
`async solve(question, agents, settings, seed) -> Outcome`. It knows nothing of tasks, keys, stores, batching,
retries or budgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pluribus.agents import Agent
from pluribus.errors import ConfigError, ProtocolError
from pluribus.prompts import render
from pluribus.quorum import gather_quorum
from pluribus.types import Failure, Outcome, Question, Turn


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
    """Who failed (seats counted from 1, as people see them), in which round and why, or None."""
    failed = [f"seat {t.seat + 1} in round {t.round}: {t.failure.message}" for t in turns if t.failure is not None]
    return "; ".join(failed) or None


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
