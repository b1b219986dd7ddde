"""When to stop asking: more votes can not, or will hardly, change the winner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RULES = ("unassailable", "beta", "dirichlet", "window", "predictive")


@dataclass(frozen=True, slots=True)
class Stopping:
    rule: str = "beta"
    eps: float = 0.05
    """The doubt that is small enough, in (0, 1)."""
    window: int = 5
    """Equal answers in a row of the rule `window`, at least 2."""


@dataclass(frozen=True, slots=True)
class Voters:
    """All who could be asked, in the order of asking."""

    weights: tuple[float, ...]
    accuracies: tuple[float, ...] | None = None
    """How often each is right, in (0, 1), where it is known."""


@dataclass(frozen=True, slots=True)
class Halt:
    asked: int
    answer: str | None
    """The leader then, under the tie rule `first`; None: nobody answered."""
    doubt: float | None
    """Estimated chance that the leader is not the winner, in [0, 1]; None: the rule gives none, or nothing stopped it."""


def settled(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> bool:
    """Whether the votes of the first `len(votes)` voters are enough."""
    raise NotImplementedError


def wave(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> int:
    """How many to ask next, at once: no vote fewer could settle it. 0: enough."""
    raise NotImplementedError


def halt(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> Halt:
    """Where the rule stops in a full sequence of votes, one per voter."""
    raise NotImplementedError


def cheapest_first(costs: Sequence[float], weights: Sequence[float]) -> tuple[int, ...]:
    """The order of asking: indices by cost, the heavier first among equal costs."""
    raise NotImplementedError
