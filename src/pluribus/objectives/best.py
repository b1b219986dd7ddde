"""pass@k, max@k and best-of-k: of k samples the one that ranks highest counts.

Samples are ranked by the reward itself (pass@k, max@k), or by a reward model's score (best-of-k). Of k samples drawn
without replacement from n, the one of rank j, from below, is the highest in C(j − 1, k − 1) of C(n, k) cases. Samples
of equal rank are picked with equal chance: weights are averaged over blocks of equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indexes = NDArray[np.int64]


def share_with_one(n: int, c: int, k: int) -> float:
    """Share of the k-subsets of n samples that hold at least one of c marked ones: in whole numbers, divided once.

    1 − C(n − c, k) / C(n, k).

    >>> share_with_one(5, 2, 3), share_with_one(10**5, 1, 10)
    (0.9, 0.0001)

    Source: Chen et al. 2021, arXiv 2107.03374, section 2.1.
    """
    return (comb(n, k) - comb(n - c, k)) / comb(n, k)


@dataclass(frozen=True, slots=True)
class Best:
    """The reward of the highest-ranked of k samples.

    U_k = Σ_j w_j g_j, with g the rewards from the lowest rank up and w_j = C(j − 1, k − 1) / C(n, k).

    >>> three = Best([0.0, 1.0, 3.0], ranked_by=[0.0, 1.0, 3.0])
    >>> round(three.value(2), 9), three.loo1(2).round(9).tolist()
    (2.333333333, [0.0, 0.333333333, 1.666666667])

    Args:
        rewards: (n,), finite.
        ranked_by: (n,), finite; equal values rank equally.

    Source: Walder and Karkhanis 2025, arXiv 2505.15201; the blocks of equals and the form of `loo1` were derived here.
    """

    rewards: Sequence[float]
    ranked_by: Sequence[float]

    def value(self, k: int) -> float:
        n, rewards = len(self.rewards), set(self.rewards)
        if self.ranked_by == self.rewards and rewards <= {0.0, 1.0}:
            return share_with_one(n, int(sum(self.rewards)), k)
        blocks = _blocks(self)
        return float(blocks.means(_top(n, k)) @ blocks.totals)

    def loo1(self, k: int) -> Floats:
        """What i adds to the subsets that hold it, with d_j = C(j − 2, k − 2) / C(n, k).

        A_i = Σ_{j below i} d_{j+1} (g_i − g_j), for whoever ranks above i drops out. Equals of ranks f … l count half,
        so to say: each pair of m equals has Σ_{f<j≤l} d_j (l + 1 − j) / (m (m − 1)).
        """
        import numpy as np

        n = len(self.rewards)
        if k == 1:
            return np.array(self.rewards) / n
        blocks, d = _blocks(self), _second(n, k)
        next_d = blocks.means(np.append(d[1:], 0.0))
        inner = d * (blocks.sizes[blocks.of] - blocks.place) * (blocks.place > 0)
        pair = blocks.sums(inner) / np.maximum(blocks.sizes * (blocks.sizes - 1), 1)
        gain_if_one = _before(next_d * blocks.sizes) + pair * blocks.sizes
        lost = _before(next_d * blocks.totals) + pair * blocks.totals
        return blocks.in_order(gain_if_one[blocks.of] * blocks.g - lost[blocks.of])

    def urloo(self, k: int) -> Floats:
        """A_i = U_k − U_k^{−i}; without i, whoever ranks above it moves down by one."""
        import numpy as np

        n = len(self.rewards)
        blocks, w = _blocks(self), _top(n - 1, k)
        stays, moves = np.append(w, 0.0), np.append(0.0, w)
        below = _before(blocks.means(stays) * blocks.totals)
        above = _before((blocks.means(moves) * blocks.totals)[::-1])[::-1]
        is_last = blocks.place == blocks.sizes[blocks.of] - 1
        equal = blocks.sums(np.where(is_last, 0.0, stays)) / np.maximum(blocks.sizes - 1, 1)
        without = (below + above + equal * blocks.totals)[blocks.of] - equal[blocks.of] * blocks.g
        value = blocks.means(_top(n, k)) @ blocks.totals
        return blocks.in_order(value - without)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Samples from the lowest rank up, and the blocks of equals among them."""

    order: Indexes
    g: Floats
    """Rewards in this order."""
    starts: Indexes
    sizes: Indexes
    of: Indexes
    """Each sample's block."""
    place: Indexes
    """Each sample's place in its block, from 0."""
    totals: Floats
    """Rewards of each block, summed."""

    def sums(self, x: Floats) -> Floats:
        import numpy as np

        return np.add.reduceat(x, self.starts)

    def means(self, x: Floats) -> Floats:
        return self.sums(x) / self.sizes

    def in_order(self, x: Floats) -> Floats:
        """From the order of ranks to the order of the samples."""
        import numpy as np

        out = np.empty_like(x)
        out[self.order] = x
        return out


def _blocks(best: Best) -> _Blocks:
    import numpy as np

    ranked_by = np.array(best.ranked_by)
    order = np.argsort(ranked_by, kind="stable")
    g, ranked_by = np.array(best.rewards)[order], ranked_by[order]
    starts = np.flatnonzero(np.append(True, ranked_by[1:] != ranked_by[:-1]))
    sizes = np.diff(np.append(starts, len(g)))
    of = np.repeat(np.arange(len(starts)), sizes)
    return _Blocks(order, g, starts, sizes, of, np.arange(len(g)) - starts[of], np.add.reduceat(g, starts))


def _before(x: Floats) -> Floats:
    """Sums of all earlier ones."""
    import numpy as np

    return np.append(0.0, np.cumsum(x)[:-1])


def _top(n: int, k: int) -> Floats:
    """w_j = C(j − 1, k − 1) / C(n, k) for ranks j = 1 … n, from the highest down: w_{j−1} = w_j (j − k) / (j − 1)."""
    import numpy as np

    j = np.arange(n, 1, -1)
    return k / n * np.cumprod(np.append(1.0, np.maximum(j - k, 0) / (j - 1)))[::-1]


def _second(n: int, k: int) -> Floats:
    """d_j = C(j − 2, k − 2) / C(n, k) for ranks j = 1 … n, n ≥ k ≥ 2; d_1 = 0 and d_{j−1} = d_j (j − k) / (j − 2)."""
    import numpy as np

    j = np.arange(n, 2, -1)
    down = k * (k - 1) / (n * (n - 1)) * np.cumprod(np.append(1.0, np.maximum(j - k, 0) / (j - 2)))
    return np.append(0.0, down[::-1])
