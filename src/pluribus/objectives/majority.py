"""majority@k: of k samples the answer with most votes counts; tied answers are worth their mean.

All subsets at once. Take each of n samples with chance k / n: given its size the subset is uniform, so U_k is the
coefficient of x^k in a product over the answer classes, over the chance of size k. With b_a(u) the binomial chance of u
votes for a, v the winning number of votes, and z for each other class that has v too,

    U_k = Σ_v ∫₀¹ dz [x^k] Σ_a r_a b_a(v) x^v Π_{b≠a} (Σ_{u<v} b_b(u) x^u + z b_b(v) x^v) · (abstentions) / b_n(k)

for ∫ z^t dz = 1 / (1 + t) shares the win with t others. Gauss–Legendre makes the integral exact; Σ_a is the ε part of
the product of dual numbers L + z H + ε r H. No term exceeds 1, and none is negative but for its reward, so n may be
large. Taking one vote away changes one factor: products of all before it and of all after it are kept. O(n k² log k).

Derived for this project; no earlier publication of it was found. `loo` is that of Tang et al. 2025, arXiv 2503.19595.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indexes = NDArray[np.int64]

_CELLS = 1_000_000
"""Coefficients kept at once: 8 MB."""


@dataclass(frozen=True, slots=True)
class Majority:
    """The reward of the answer with most votes among k samples; 0 when all abstain.

    >>> aabc = Majority((0, 0, 1, 2), (1.0, 0.0, 0.0))
    >>> round(aabc.value(3), 9), aabc.loo1(3).round(9).tolist()
    (0.666666667, [0.333333333, 0.333333333, -0.083333333, -0.083333333])

    Args:
        class_of: (n,), each sample's answer class 0 … A − 1; −1 abstains.
        rewards: (A,), of the classes.
    """

    class_of: Sequence[int]
    rewards: Sequence[float]

    def value(self, k: int) -> float:
        n = len(self.class_of)
        if k == n:
            return _of_all(self)
        return _product(_urn(self, k)) / float(_binomial(n, k, n)[k])

    def loo1(self, k: int) -> Floats:
        """A_i = U_k − ((n − k) U_k^{−i} + k U_{k−1}^{−i}) / n."""
        import numpy as np

        n = len(self.class_of)
        if k == n:
            return np.take(_loo(self), self.class_of)
        value, below_C, same_C = _without_each(self, k)
        return np.take(value - ((n - k) * same_C + k * below_C) / n, self.class_of)

    def urloo(self, k: int) -> Floats:
        """A_i = U_k − U_k^{−i}."""
        import numpy as np

        value, _, same_C = _without_each(self, k)
        return np.take(value - same_C, self.class_of)


def policy_value(probabilities: Sequence[float], rewards: Sequence[float], k: int, abstain: float = 0.0) -> float:
    """J_k of a known policy: the expected reward of the majority of k independent samples, without sampling.

    The same product with Poisson chances of mean k p_a for binomial ones.

    >>> round(policy_value([0.6, 0.4], [1.0, 0.0], 3), 9)  # 0.6³ + 3 · 0.6² · 0.4
    0.648

    Args:
        probabilities: (A,), of the answers, each in [0, 1].
        rewards: (A,), of the answers, finite.
        k: samples that vote, at least 1.
        abstain: chance of no answer, in [0, 1]; all probabilities with it add up to 1.

    Raises ValueError outside these ranges.
    """
    _check_policy(probabilities, rewards, k, abstain)
    most = [k if p > 0 else 0 for p in probabilities]
    chances = [_poisson(k * p, k) for p in probabilities]
    urn = _Urn(k, most, list(map(float, rewards)), chances, (), _poisson(k * abstain, k), None)
    return _product(urn) / float(_poisson(float(k), k)[k])


# --- all n samples: nothing to choose -------------------------------------------------------------------------------


def _of_all(group: Majority) -> float:
    counts = _counts(group)
    leaders = [r for c, r in zip(counts, group.rewards, strict=True) if c == max(counts)]
    return math.fsum(leaders) / len(leaders) if leaders else 0.0


def _loo(group: Majority) -> Floats:
    """h(Y) − h(Y without one vote) for each class, and 0 at the end for abstentions."""
    import numpy as np

    counts, rewards = np.array(_counts(group)), np.array(group.rewards)
    out = np.zeros(len(counts) + 1)
    top = counts.max(initial=0)
    lead, next_ = np.flatnonzero(counts == top), np.flatnonzero(counts == top - 1)
    if len(lead) > 1:
        out[lead] = (rewards[lead] - rewards[lead].mean()) / (len(lead) - 1)
    elif len(lead) == 1 and top == 1:
        out[lead] = rewards[lead]
    elif len(lead) == 1 and len(next_):
        out[lead] = (rewards[lead] - rewards[next_]).mean() * len(next_) / (1 + len(next_))
    return out


def _counts(group: Majority) -> list[int]:
    found = Counter(group.class_of)
    return [found[name] for name in range(len(group.rewards))]


# --- all subsets of k < n -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Urn:
    """The factors of the product: chances of 0, 1, … votes, at most k."""

    k: int
    counts: Sequence[int]
    """Most votes of each class."""
    rewards: Sequence[float]
    chances: Sequence[Floats]
    fewer: Sequence[Floats]
    """The same of a class with one vote less."""
    silent: Floats
    """Chances of 0, 1, … abstentions."""
    fewer_silent: Floats | None
    """None: nobody abstains."""


def _urn(group: Majority, k: int) -> _Urn:
    n, counts = len(group.class_of), _counts(group)
    silent = n - sum(counts)
    table = {c: _binomial(c, k, n) for c in {*counts, *(c - 1 for c in counts), silent, max(0, silent - 1)}}
    chances, fewer = [table[c] for c in counts], [table[c - 1] for c in counts]
    return _Urn(k, counts, group.rewards, chances, fewer, table[silent], table[silent - 1] if silent else None)


def _binomial(c: int, k: int, n: int) -> Floats:
    """Chances that 0, 1, … of c samples are taken, each with chance k / n, 0 < k < n; cut off above k."""
    import numpy as np

    u = np.arange(min(c, k) + 1)
    ways = np.array([math.log(math.comb(c, times)) for times in range(len(u))])
    chances: Floats = np.exp(ways + u * math.log(k / n) + (c - u) * math.log((n - k) / n))
    return chances


def _poisson(mean: float, k: int) -> Floats:
    import numpy as np

    if mean == 0:
        return np.ones(1)
    return np.exp([u * math.log(mean) - mean - math.lgamma(u + 1) for u in range(k + 1)])


def _without_each(group: Majority, k: int) -> tuple[float, Floats, Floats]:
    """U_k, and for each class (abstentions last) U_{k−1} and U_k of the samples without one of its votes."""
    n = len(group.class_of)
    value, without_C_2 = _products(_urn(group, k))
    below, same = _binomial(n - 1, k, n)[[k - 1, k]]
    return value / _binomial(n, k, n)[k], without_C_2[:, 0] / below, without_C_2[:, 1] / same


# --- the product ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Pairs of a winning count v and a point z of the integral over ties, by rising v."""

    v: Indexes
    z: Floats
    weight: Floats

    def rows(self, votes: int) -> slice:
        """Where v = votes."""
        import numpy as np

        return slice(*np.searchsorted(self.v, [votes, votes + 1]).tolist())


@lru_cache(maxsize=64)
def _nodes(k: int, most: int, classes: int) -> _Nodes:
    """At most min(k // v, classes) − 1 others tie at v: Gauss–Legendre takes half as many points."""
    import numpy as np

    parts = [np.zeros((3, 0))]
    for votes in range(1, most + 1):
        x, weight = np.polynomial.legendre.leggauss((min(k // votes, classes) - 1) // 2 + 1)
        parts.append(np.array([np.full(len(x), votes), (1 + x) / 2, weight / 2]))
    v, z, weight = np.concatenate(parts, axis=1)
    return _Nodes(v.astype(np.int64), z, weight)


def _blocks(urn: _Urn) -> Iterator[_Nodes]:
    """As many nodes at once as memory allows."""
    nodes = _nodes(urn.k, min(urn.k, max(urn.counts, default=0)), len(urn.counts))
    step = max(1, _CELLS // (2 * (len(urn.counts) + 2) * (urn.k + 1)))
    for at in range(0, len(nodes.v), step):
        part = slice(at, at + step)
        yield _Nodes(nodes.v[part], nodes.z[part], nodes.weight[part])


def _product(urn: _Urn) -> float:
    """Coefficient of ε x^k."""
    total = 0.0
    for nodes in _blocks(urn):
        state = _abstentions(urn.silent, nodes, urn.k)
        for chances, reward in zip(urn.chances, urn.rewards, strict=True):
            state = _times(state, chances, reward, nodes)
        total += float(nodes.weight @ state[1, :, urn.k])
    return total


def _products(urn: _Urn) -> tuple[float, Floats]:
    """Coefficient of ε x^k, and those of ε x^{k−1} and ε x^k with one vote less, shape (A + 1, 2); abstentions last."""
    import numpy as np

    total, without_C_2 = 0.0, np.zeros((len(urn.counts) + 1, 2))
    for nodes in _blocks(urn):
        part, without = _products_at(urn, nodes)
        total, without_C_2 = total + part, without_C_2 + without
    return total, without_C_2


def _products_at(urn: _Urn, nodes: _Nodes) -> tuple[float, Floats]:
    """Products of all factors after a class are made first, those of all before it on the way."""
    import numpy as np

    n_c, k = len(urn.counts), urn.k
    after = [_one(nodes, k)]
    for chances, reward in zip(reversed(urn.chances), reversed(urn.rewards), strict=True):
        after.append(_times(after[-1], chances, reward, nodes))
    after.reverse()
    out, seen = np.zeros((n_c + 1, 2)), dict[tuple[int, float], int]()
    if urn.fewer_silent is not None:
        out[-1] = nodes.weight @ _last_two(_abstentions(urn.fewer_silent, nodes, k), after[0], np.ones(1), 0.0, nodes)
    before = _abstentions(urn.silent, nodes, k)
    total = nodes.weight @ _last_two(before, after[0], np.ones(1), 0.0, nodes)
    for c, (count, reward) in enumerate(zip(urn.counts, urn.rewards, strict=True)):
        same = seen.setdefault((count, reward), c)
        if same == c:
            out[c] = nodes.weight @ _last_two(before, after[c + 1], urn.fewer[c], reward, nodes)
        out[c] = out[same]
        before = _times(before, urn.chances[c], reward, nodes)
    return float(total[1]), out


def _one(nodes: _Nodes, k: int) -> Floats:
    """1, as dual polynomials: (main and ε part, nodes, powers of x up to k)."""
    import numpy as np

    state = np.zeros((2, len(nodes.v), k + 1))
    state[0, :, 0] = 1.0
    return state


def _abstentions(silent: Floats, nodes: _Nodes, k: int) -> Floats:
    state = _one(nodes, k)
    state[0, :, : len(silent)] = silent
    return state


def _times(state: Floats, chances: Floats, reward: float, nodes: _Nodes) -> Floats:
    """Times Σ_{u<v} b(u) x^u + (z + ε r) b(v) x^v."""
    import numpy as np

    out = np.zeros_like(state)
    for u, chance in enumerate(chances.tolist()):
        ties, ends = nodes.rows(u), state.shape[2] - u
        over = slice(ties.stop, None)
        out[:, over, u:] += chance * state[:, over, :ends]
        if ties.stop > ties.start:
            out[:, ties, u:] += (chance * nodes.z[ties])[:, None] * state[:, ties, :ends]
            out[1, ties, u:] += reward * chance * state[0, ties, :ends]
    return out


def _last_two(before: Floats, after: Floats, chances: Floats, reward: float, nodes: _Nodes) -> Floats:
    """ε parts at x^{k−1} and x^k of before · (factor of the chances) · after: (nodes, 2)."""
    import numpy as np

    k = before.shape[2] - 1
    out = np.zeros((len(nodes.v), 2))
    pairs = {power: _at(before, after, power) for power in range(max(0, k - len(chances)), k + 1)}
    for u, chance in enumerate(chances.tolist()):
        ties = nodes.rows(u)
        for column, power in enumerate((k - 1 - u, k - u)):
            if power >= 0:
                main, eps = pairs[power]
                out[ties.stop :, column] += chance * eps[ties.stop :]
                out[ties, column] += chance * (nodes.z[ties] * eps[ties] + reward * main[ties])
    return out


def _at(first: Floats, second: Floats, power: int) -> tuple[Floats, Floats]:
    """Main and ε part of the product at one power of x."""
    import numpy as np

    ahead, back = first[:, :, : power + 1], second[:, :, power::-1]
    main, eps, other = (
        np.einsum("vx,vx->v", ahead[i], back[j]) for i, j in ((0, 0), (0, 1), (1, 0))
    )  # fmt: skip
    return main, eps + other


def _check_policy(probabilities: Sequence[float], rewards: Sequence[float], k: int, abstain: float) -> None:
    if len(probabilities) != len(rewards):
        raise ValueError(f"{len(probabilities)} probabilities for {len(rewards)} rewards: expected one per answer")
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or int(k) < 1:
        raise ValueError(f"k is {k!r}: expected a whole number of at least 1")
    for index, p in enumerate([*probabilities, abstain]):
        if not p >= 0:
            name = f"answer {index}" if index < len(probabilities) else "abstaining"
            raise ValueError(f"probability of {name} is {p!r}: expected a number of at least 0")
    for index, reward in enumerate(rewards):
        if not math.isfinite(reward):
            raise ValueError(f"reward of answer {index} is {reward!r}: expected a finite number")
    total = math.fsum([*probabilities, abstain])
    if not math.isclose(total, 1.0, abs_tol=1e-9):
        raise ValueError(f"the probabilities add up to {total}: expected 1 with that of abstaining")
