"""How sure one can be of a decision: the council's support turned into a chance of being right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Calibration:
    """Support → chance of being right."""

    kind: Literal["isotonic", "platt"]
    points: tuple[tuple[float, float], ...] = ()
    """isotonic: (support, confidence), both ascending; between them a straight line."""
    slope: float | None = None
    intercept: float | None = None
    """platt: confidence = 1 / (1 + exp(−(slope · support + intercept)))."""
    n: int = 0
    """Questions it was fitted on."""


def support(counts: Mapping[str, float], total: float) -> float:
    """The leader's part of all weight, abstainers' included, in [0, 1]; 0 when nobody answered."""
    raise NotImplementedError


def fit(support_Q: Sequence[float], right_Q: Sequence[float], kind: str = "isotonic") -> Calibration:
    """Fits on questions whose right answers are known."""
    raise NotImplementedError


def confidence(calibration: Calibration, support: float) -> float:
    """The chance of being right, in (0, 1)."""
    raise NotImplementedError
