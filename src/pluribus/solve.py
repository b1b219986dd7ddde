"""question → transcript: one method run by one council on one question. No key, no task, no store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pluribus.agents import Agent
from pluribus.codec import content_id, plain
from pluribus.errors import ConfigError, PluribusError, failure
from pluribus.load import fill, load
from pluribus.prompts import dialect, fingerprint
from pluribus.types import Attempt, Failure, Outcome, Question, Seat, Status, Transcript, Turn


def make_settings(method: str, values: Mapping[str, Any]) -> Any:
    """A method's Settings from plain values; an unknown name or a wrong type is a ConfigError that lists the fields.

    >>> make_settings("debate", {"debate_rounds": 2}).topology
    'decentralized'
    """
    try:
        return fill(load("methods", method).Settings, method, values)
    except ValueError as problem:
        raise ConfigError(f"method {method}: {problem}") from None


def make_attempt(question: Question, method: str, settings: Any, seats: Sequence[Seat], seed: int) -> Attempt:
    """What is about to be asked, with its id: the hash of question, method, settings, words, seats and seed."""
    module = load("methods", method)
    words = {name: fingerprint(dialect(name), module.PROMPTS) for name in sorted({seat.dialect for seat in seats})}
    asked = {
        "question": question,
        "method": method,
        "settings": _distinguishing(settings),
        "prompts": words,
        "agents": tuple(seats),
        "seed": seed,
    }
    values = plain({f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)})
    return Attempt(content_id(asked), question.id, method, values, tuple(seats), seed)


def _distinguishing(settings: Any) -> dict[str, Any]:
    """The settings that enter an attempt's id: all but those marked `methods.LATER` that are at their default."""
    kept = [
        f
        for f in dataclasses.fields(settings)
        if not (f.metadata.get("later") and getattr(settings, f.name) == f.default)
    ]
    return {f.name: getattr(settings, f.name) for f in kept}


async def solve(
    question: Question,
    agents: Sequence[Agent],
    method: str = "vote",
    settings: Any = None,
    *,
    seed: int = 0,
    observe: Callable[[Turn], None] | None = None,
) -> Transcript:
    """Runs the method once. What can go wrong on purpose ends in a failed transcript that keeps every turn.

    Args:
        settings: the method's own Settings, or plain values for them.
        observe: is handed each turn as it happens.
    """
    if settings is None or isinstance(settings, Mapping):
        settings = make_settings(method, settings or {})
    attempt = make_attempt(question, method, settings, [agent.seat for agent in agents], seed)
    return await solve_attempt(question, agents, attempt, settings, observe)


async def solve_attempt(
    question: Question,
    agents: Sequence[Agent],
    attempt: Attempt,
    settings: Any,
    observe: Callable[[Turn], None] | None = None,
) -> Transcript:
    """`solve` for an attempt whose id is known already."""
    heard: list[Turn] = []

    def keep(turn: Turn) -> None:
        heard.append(turn)
        if observe is not None:
            observe(turn)

    seated = [agent.at(question, attempt.seed, keep) for agent in agents]
    module = load("methods", attempt.method)
    try:
        outcome: Outcome = await module.solve(question, seated, settings, attempt.seed)
    except PluribusError as error:
        return Transcript(attempt, tuple(heard), (), "failed", failure(error))
    return _transcript(attempt, outcome)


def _transcript(attempt: Attempt, outcome: Outcome) -> Transcript:
    place = {id(turn): index for index, turn in enumerate(outcome.turns)}
    finals = tuple(place[id(turn)] for turn in outcome.finals)
    missing = None if outcome.degraded is None else Failure("degraded", outcome.degraded)
    status: Status = "complete" if missing is None else "degraded"
    return Transcript(attempt, outcome.turns, finals, status, missing, plain(outcome.notes))
