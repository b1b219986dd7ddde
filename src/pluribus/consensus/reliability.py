"""How far each voter can be believed: from labelled questions, or from agreement alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reliability:
    accuracy: tuple[float, ...]
    """Of each voter, shrunk, in (0, 1)."""
    weights: tuple[float, ...]
    """Vote weights: log odds against chance, finite, at least 0; 0 for a voter at or below chance."""
    answered: tuple[int, ...]
    """Votes each estimate rests on."""
    options: float
    """Answers a question has, as the weights count them: above 1."""


def from_labels(
    answers_Q_A: Sequence[Sequence[str | None]], right_Q: Sequence[str | None], *, options: float | None = None
) -> Reliability:
    """Accuracies and weights from questions whose right answers are known."""
    raise NotImplementedError


def from_agreement(answers_Q_A: Sequence[Sequence[str | None]], *, options: float | None = None) -> Reliability:
    """The same without labels."""
    raise NotImplementedError
