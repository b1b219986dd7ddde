"""Reward hacking: a council that agrees more and more with a model that is right less and less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluribus.consensus._numbers import floats
from pluribus.stats import Estimate, paired_difference

if TYPE_CHECKING:
    from pluribus.consensus._numbers import Values


@dataclass(frozen=True, slots=True)
class Drift:
    """After minus before training."""

    agreement: Estimate
    """Of what the judges agree on, or give, per question."""
    accuracy: Estimate
    """On held-out questions."""
    questions: int
    """Questions whose agreement is known before and after."""
    held_out: int
    """Held-out questions of which it is known before and after whether they were right."""
    alarm: bool
    """Agreement rose and accuracy fell, both beyond their 95 % intervals."""
    suspect: bool
    """Agreement rose and accuracy fell, by the estimates alone: more held-out questions would tell."""


def drift(
    agreement_before_Q: Values,
    agreement_after_Q: Values,
    right_before_H: Values,
    right_after_H: Values,
    *,
    seed: int = 0,
) -> Drift:
    """Whether judges grew fonder of a model while it grew worse.

    >>> found = drift([0.4, 0.5, 0.6] * 20, [0.7, 0.8, 0.7] * 20, [1, 1, 0] * 20, [1, 0, 0] * 20)
    >>> round(found.agreement.value, 2), round(found.accuracy.value, 2), found.alarm
    (0.23, -0.33, True)

    Args:
        agreement_before_Q, agreement_after_Q: in [0, 1], of the judges on each question's replies (or their reward), in
            the same order; None or NaN: not known.
        right_before_H, right_after_H: 1 right, 0 wrong, or a share, of each held-out question that no judge had a say
            in; None or NaN: not known.
        seed: of the bootstraps.

    Returns: differences with intervals by `stats.paired_difference`; a question that is not known on both sides is left
        out.

    Raises ValueError on lists of different lengths, numbers outside [0, 1], or where no question is left.

    Source: over-optimisation of a proxy reward, Gao, Schulman and Hilton 2023, ICML, 10835–10866.
    """
    agreement, questions = _change(agreement_before_Q, agreement_after_Q, "agreement", seed)
    accuracy, held_out = _change(right_before_H, right_after_H, "accuracy", seed)
    return Drift(
        agreement, accuracy, questions, held_out,
        alarm=agreement.low > 0 and accuracy.high < 0,
        suspect=agreement.value > 0 and accuracy.value < 0,
    )  # fmt: skip


def _change(before: Values, after: Values, what: str, seed: int) -> tuple[Estimate, int]:
    import numpy as np

    old, new = floats(before, what), floats(after, what)
    if len(old) != len(new):
        raise ValueError(f"{what} of {len(old)} questions before and {len(new)} after: expected the same questions")
    both = ~np.isnan(old) & ~np.isnan(new)
    if not both.any():
        raise ValueError(f"{what} is known of no question both before and after: expected one at least")
    values = np.concatenate([old[both], new[both]])
    if values.min() < 0 or values.max() > 1:
        raise ValueError(f"{what} lies between {values.min()} and {values.max()}: expected numbers in [0, 1]")
    return paired_difference(new[both].tolist(), old[both].tolist(), seed=seed), int(both.sum())
