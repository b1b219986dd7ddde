"""Weighted majority@k: of k samples the answer with most weight counts; tied answers are worth their mean.

There is no closed form over sums of weights. All subsets of k are counted where there are few; else random subsets,
which is unbiased.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

COUNTED = 100_000
"""Up to so many subsets are all counted."""
DRAWN = 10_000
"""Random subsets where there are more."""
SAME = 1e-9
"""Sums of weights that differ by no more, relatively, tie: 0.1 + 0.2 and 0.3."""
_CELLS = 500_000
"""Memberships worked on at once."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """The reward of the answer with most weight among k samples; 0 when all abstain.

    >>> Weighted((0, 1, 1), (1.0, 0.0), weights=(3.0, 1.0, 1.0)).loo1(3).tolist()
    [1.0, 0.0, 0.0]

    Args:
        class_of: (n,), each sample's answer class 0 … A − 1; −1 abstains.
        rewards: (A,), of the classes.
        weights: (n,), above 0.
        seed: of the random subsets, where there are more than `COUNTED`.
    """

    class_of: Sequence[int]
    rewards: Sequence[float]
    weights: Sequence[float]
    seed: int = 0

    def value(self, k: int) -> float:
        total, count = 0.0, 0
        for members in _subsets(self, k):
            total, count = total + float(_worth(self, _sums(self, members)).sum()), count + len(members)
        return total / count

    def loo1(self, k: int) -> Floats:
        """A_i = mean over subsets S of [i in S] (h(S) − h(S without i))."""
        import numpy as np

        total, count = np.zeros(len(self.class_of)), 0
        for members in _subsets(self, k):
            total, count = total + _gains(self, members), count + len(members)
        return total / count

    def urloo(self, k: int) -> Floats:
        """A_i = (n / (n − k)) Cov([i in S], h(S)) over subsets S; of random subsets the unbiased sample covariance."""
        import numpy as np

        n = len(self.class_of)
        times, with_i, total, count = np.zeros(n), np.zeros(n), 0.0, 0
        for members in _subsets(self, k):
            worth = _worth(self, _sums(self, members))
            times, with_i = times + members.sum(axis=0), with_i + members.T @ worth
            total, count = total + float(worth.sum()), count + len(members)
        freedom = count - (comb(n, k) > COUNTED)
        return n / (n - k) * (with_i - times * total / count) / freedom


def _subsets(group: Weighted, k: int) -> Iterator[Bools]:
    """(subsets, n), True for members; in blocks. The stream of random numbers does not depend on the blocks."""
    import numpy as np

    n = len(group.class_of)
    rows = max(1, _CELLS // n)
    if comb(n, k) <= COUNTED:
        every = combinations(range(n), k)
        while block := list(islice(every, rows)):
            yield _members(np.array(block), n)
        return
    rng = np.random.default_rng(group.seed)
    for at in range(0, DRAWN, rows):
        drawn = rng.random((min(rows, DRAWN - at), n))
        yield _members(np.argpartition(drawn, k - 1, axis=1)[:, :k], n)


def _members(picked: NDArray[np.int64], n: int) -> Bools:
    import numpy as np

    out = np.zeros((len(picked), n), dtype=np.bool_)
    np.put_along_axis(out, picked, True, axis=1)
    return out


def _sums(group: Weighted, members: Bools) -> Floats:
    """(subsets, classes): weight of each answer."""
    import numpy as np

    votes = np.zeros((len(group.class_of), len(group.rewards) + 1))
    votes[np.arange(len(votes)), group.class_of] = group.weights  # the last column is of those who abstain
    return members @ votes[:, :-1]


def _worth(group: Weighted, sums: Floats) -> Floats:
    """h of each subset."""
    import numpy as np

    if not group.rewards:
        return np.zeros(len(sums))
    lead = (sums >= sums.max(axis=1, keepdims=True) * (1 - SAME)) & (sums > 0)
    worth: Floats = lead @ np.array(group.rewards) / np.maximum(lead.sum(axis=1), 1)
    return worth


def _gains(group: Weighted, members: Bools) -> Floats:
    """Σ over subsets S with i of h(S) − h(S without i)."""
    import numpy as np

    class_of, weights = np.array(group.class_of), np.array(group.weights)
    sums, out = _sums(group, members), np.zeros(members.shape[1])
    worth = _worth(group, sums)
    for i in np.flatnonzero(class_of >= 0):
        held = members[:, i]
        others = np.flatnonzero(class_of == class_of[i])
        others = others[others != i]
        less = sums[held]
        # summed again, not subtracted: a sum that should be 0 must not win by its rounding
        less[:, class_of[i]] = members[np.ix_(held, others)] @ weights[others]
        out[i] = (worth[held] - _worth(group, less)).sum()
    return out
