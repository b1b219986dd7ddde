"""One file per kind of judge: it reads a verdict out of a model's reply or says why there is none; it never guesses.

A member has

- `Settings`, a frozen dataclass of what can be varied, checked in `__post_init__` (ValueError);
- `PROMPTS`, the prompts it uses; empty: it asks no chat model;
- `MODEL`, what a seat's model is to be: `chat`, `scorer` (a classification head) or `none`;
- `HEAD` (default `reward`), of a `scorer`: the option `head` its model gets;
- `RANGE`, the bounds its scores keep, (0, 1), or None where they have none;
- `REREADS` (default False): in a later round it reads the others' reasons and judges again; the others are not asked;
- `AGAIN` (default none): the prompts it uses then;
- `COMPARES` (default False): a candidate's score depends on the candidates it is judged beside;
- `async judge_all(juror, candidates) -> list[Opinion]`: one opinion per candidate of one question, in their order. A
  call that fails, or a reply that can not be read, is an opinion without a score, never an exception, never 0. An
  exhausted budget (BudgetExceeded) passes through: it ends the whole work.

`score` and `verdict` have also `judge(agent, candidate, …) -> Reply`, one question to one agent, for methods.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pluribus.agents import Agent
from pluribus.types import Failure, Question, Turn

ModelKind = Literal["chat", "scorer", "none"]
Check = Callable[[Question, str], Awaitable[bool | None]]
"""A task's own checker: question, reply → right, not right, or None where it can not decide."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One reply to be judged."""

    attempt_id: str
    turn: int
    text: str
    answer: str | None = None
    """Read out of the text, canonical; None: no readable answer."""
    recorded: Mapping[str, float] = field(default_factory=dict)
    """Scores that were recorded with a replayed reply, by name."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What another judge said of the same candidate, for a judge that judges again."""

    name: str
    """As the reader sees it: `judge 1`, never a model's name."""
    score: float | None
    """On the common scale, in [0, 1]."""
    reason: str | None


@dataclass(frozen=True, slots=True)
class Juror:
    """A judge that sits at one question."""

    name: str
    question: Question
    settings: Any
    """The kind's own Settings."""
    agent: Agent | None = None
    """Bound to the question; None for a kind that asks no model."""
    round: int = 0
    heard: Sequence[Sequence[Heard]] = ()
    """For each candidate what the other judges said; empty in round 0."""
    check: Check | None = None
    """None: the task has no checker here."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Opinion:
    """What came of judging one candidate. Exactly one of `score` and `failure` is there."""

    score: float | None
    samples: tuple[float | None, ...] = ()
    reason: str | None = None
    turns: tuple[Turn, ...] = ()
    failure: Failure | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
