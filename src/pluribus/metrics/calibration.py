"""Is a stated confidence true, and what is gained by leaving the unsure questions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """Questions kept from the surest down; equal confidences are kept together."""

    threshold: tuple[float, ...]
    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    """1 − accuracy on the kept part."""
    area: float
    """Area under risk over coverage, in [0, 1]; lower is better."""


def expected_calibration_error(confidence_Q: Sequence[float], right_Q: Sequence[float], bins: int = 10) -> float:
    raise NotImplementedError


def risk_coverage(confidence_Q: Sequence[float], right_Q: Sequence[float]) -> RiskCoverage:
    raise NotImplementedError
