"""Arrays in which NaN is "there is none", and correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Values = Sequence[float | None] | NDArray[Any]

ROUNDING = 4 * 2.0**-52
"""Numbers that differ by no more than this part of the largest of them differ by rounding alone."""
_LEAST = 3
"""Pairs of a correlation."""


def floats(values: Values, what: str) -> Floats:
    """One number each, None as NaN; ValueError on an infinite one."""
    import numpy as np

    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"{what} of shape {found.shape}: expected one number each, or None")
    infinite = np.flatnonzero(np.isinf(found))
    if len(infinite):
        raise ValueError(f"{what} {infinite[0]} is {found[infinite[0]]}: expected a finite number, or None for none")
    return found


def flat(values: Floats) -> bool:
    """Whether all are equal, but for rounding."""
    if not len(values):
        return True
    low, high = float(values.min()), float(values.max())
    return high - low <= ROUNDING * max(abs(low), abs(high))


def pearson(first: Floats, second: Floats) -> float | None:
    """Linear correlation, in [−1, 1]; None with fewer than three pairs, or where one side is constant.

    >>> import numpy as np
    >>> round(pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 7.0])), 4)
    0.9934
    """
    import numpy as np

    if len(first) < _LEAST or flat(first) or flat(second):
        return None
    x, y = (values - values.mean() for values in (first, second))
    return float(np.clip(x @ y / math.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def ranks(values: Floats) -> Floats:
    """From 1; values that are equal to 12 digits share their mean rank.

    >>> import numpy as np
    >>> ranks(np.array([10.0, 30.0, 10.0])).tolist()
    [1.5, 3.0, 1.5]
    """
    import numpy as np

    _, which, counts = np.unique(np.round(values, 12), return_inverse=True, return_counts=True)
    found: Floats = (np.cumsum(counts) - (counts - 1) / 2)[which.reshape(-1)]
    return found
