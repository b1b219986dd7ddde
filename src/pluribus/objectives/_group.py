"""The samples of one prompt, checked once."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_MOST = 1e200
"""Sums of numbers up to here are numbers."""


@dataclass(frozen=True, slots=True)
class Group:
    """n independent samples of one prompt. Any sequences or arrays may be given; tuples are kept.

    >>> Group([1, 0, 0], answers=["4", "5", None]).rewards
    (1.0, 0.0, 0.0)

    Raises ValueError, naming the sample, on an empty group, unequal lengths, and values that are not as said below.
    """

    rewards: Sequence[float]
    """Finite, from −1e200 to 1e200, as are scores and weights; whole numbers and booleans become floats."""
    answers: Sequence[str | None] | None = None
    """Canonical strings, so that equal answers are equal strings; None abstains. The empty string is an answer."""
    scores: Sequence[float] | None = None
    """What a reward model says, finite; the highest is picked."""
    weights: Sequence[float] | None = None
    """Votes of each sample, finite and above 0."""

    def __post_init__(self) -> None:
        rewards = _finite("reward", self.rewards)
        if not rewards:
            raise ValueError("the group has no samples: expected at least one reward")
        answers, scores, weights = _answers(self.answers), _given("score", self.scores), _weights(self.weights)
        for name, column in (("answers", answers), ("scores", scores), ("weights", weights)):
            if column is not None and len(column) != len(rewards):
                raise ValueError(f"{len(column)} {name} for {len(rewards)} rewards: expected one per sample")
        for name, value in (("rewards", rewards), ("answers", answers), ("scores", scores), ("weights", weights)):
            object.__setattr__(self, name, value)  # the only way into a frozen record


def _listed(name: str, values: Any) -> list[Any]:
    """The values as plain Python objects; arrays give up theirs."""
    found = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(found, Sequence) or isinstance(found, (str, bytes)):
        raise ValueError(f"{name}s are {found!r}: expected a sequence with one {name} per sample")
    return [value.item() if getattr(value, "shape", None) == () else value for value in found]


def _finite(name: str, values: Any) -> tuple[float, ...]:
    found = _listed(name, values)
    for index, value in enumerate(found):
        if not isinstance(value, numbers.Real) or not value <= _MOST or value < -_MOST:
            raise ValueError(f"{name} of sample {index} is {value!r}: expected a finite number from -1e200 to 1e200")
    return tuple(map(float, found))


def _given(name: str, values: Any) -> tuple[float, ...] | None:
    return None if values is None else _finite(name, values)


def _weights(values: Any) -> tuple[float, ...] | None:
    weights = _given("weight", values)
    for index, weight in enumerate(weights or ()):
        if weight <= 0:
            raise ValueError(f"weight of sample {index} is {weight!r}: expected a finite number above 0")
    return weights


def _answers(values: Any) -> tuple[str | None, ...] | None:
    if values is None:
        return None
    found = _listed("answer", values)
    for index, answer in enumerate(found):
        if answer is not None and not isinstance(answer, str):
            raise ValueError(
                f"answer of sample {index} is {answer!r} ({type(answer).__name__}): expected a string or None"
            )
    return tuple(None if answer is None else str.__str__(answer) for answer in found)  # of subclasses the string alone
