"""Small statistics of what may be unknown: NaN in arrays, None in tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pluribus import stats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

Number = TypeVar("Number", int, float)

_LEAST = 3
"""Pairs of a correlation."""
_FLAT = 1e-12
"""Relative differences that are rounding."""


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Linear correlation.

    Σ (x − x̄)(y − ȳ) / √(Σ (x − x̄)² Σ (y − ȳ)²).

    >>> round(pearson([1, 2, 3], [2, 4, 7]), 4)
    0.9934

    Returns: in [−1, 1]; None with fewer than three pairs, or where one side is constant.
    """
    import numpy as np

    pairs = np.array([first, second], dtype=np.float64)
    if pairs.shape[1] < _LEAST:
        return None
    x, y = pairs - pairs.mean(axis=1, keepdims=True)
    if (np.ptp(pairs, axis=1) <= _FLAT * np.abs(pairs).max(axis=1)).any():
        return None
    return float(np.clip(x @ y / math.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Rank correlation: `pearson` of the ranks, equal values sharing their mean rank.

    >>> spearman([1, 2, 3, 4], [1, 4, 9, 16]), spearman([1, 2, 3], [3, 3, 1])
    (1.0, -0.8660254037844387)

    Returns: as `pearson`.

    Source: Spearman 1904, Am. J. Psychol. 15, 72–101.
    """
    return pearson(_ranks(first), _ranks(second))


def _ranks(values: Sequence[float]) -> list[float]:
    """
    >>> _ranks([10.0, 30.0, 10.0])
    [1.5, 3.0, 1.5]
    """
    import numpy as np

    _, which, counts = np.unique(np.round(values, 12), return_inverse=True, return_counts=True)
    ranks: list[float] = (np.cumsum(counts) - (counts - 1) / 2)[which].tolist()
    return ranks


def unknown(right_Q_A: Floats) -> Bools:
    nan: Bools = right_Q_A != right_Q_A
    return nan


def above_diagonal(value_A_A: Floats) -> Floats:
    """One value per two agents."""
    import numpy as np

    above: Floats = value_A_A[np.triu_indices(len(value_A_A), 1)]
    return above


def kappa(given: Sequence[Sequence[str | None]]) -> float | None:
    from pluribus.consensus.agreement import fleiss_kappa, shared_codes

    return fleiss_kappa(shared_codes(given))


def share(credit_Q: Floats) -> tuple[float | None, float | None, float | None]:
    """Mean of what is known, with its Wilson interval."""
    known = credit_Q[~unknown(credit_Q)]
    if not len(known):
        return None, None, None
    low, high = stats.wilson(float(known.sum()), len(known))
    return float(known.mean()), low, high


def accuracies(right_Q_A: Floats) -> Floats:
    """(agents,): share right of what is known; NaN: nothing is."""
    import numpy as np

    known = ~np.isnan(right_Q_A)
    counts = known.sum(axis=0)
    return np.where(counts > 0, np.nan_to_num(right_Q_A).sum(axis=0) / np.maximum(counts, 1), np.nan)


def or_none(value: float) -> float | None:
    """
    >>> or_none(0.5), or_none(math.nan)
    (0.5, None)
    """
    return None if math.isnan(value) else float(value)


def average(values: Iterable[float | None]) -> float | None:
    """
    >>> average([1.0, None, 0.5]), average([None])
    (0.75, None)
    """
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def mean(values: Floats) -> float | None:
    return average(or_none(value) for value in values.tolist())


def total(values: Sequence[Number | None]) -> Number | None:
    """None: one of them is unknown, or there is none."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(values) else None
