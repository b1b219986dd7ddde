"""Intervals and paired tests. Every random number comes from the caller's seed.

Formulas are written out or exact integer arithmetic; only the bootstrap uses numpy, and imports it when called.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CELLS = 4_000_000
"""Random numbers drawn at once by the bootstrap."""
_FEW = 10
"""With fewer questions on which two systems differ, the bootstrap's interval is too narrow."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """Discordant pairs of two systems on the same questions, and the exact two-sided p-value."""

    only_first: int
    only_second: int
    p: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its bootstrap interval, and the two-sided p-value of "it is 0"."""

    value: float
    low: float
    high: float
    p: float


def wilson(successes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion.

    (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n), with p = successes / n.

    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]

    Args:
        successes: in [0, n]; fractional credits may be summed into it.
        n: trials, at least 1.
        confidence: in (0, 1).

    Source: Wilson 1927, J. Am. Stat. Assoc. 22, 209–212.
    """
    _check(successes, n, confidence)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = successes / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(max(0.0, p * (1 - p)) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low, high = (middle - half) / scale, (middle + half) / scale
    return (0.0 if successes == 0 else low, 1.0 if successes == n else high)


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion: it covers with at least the stated confidence.

    Its ends are the α/2 quantile of Beta(k, n − k + 1) and the 1 − α/2 quantile of Beta(k + 1, n − k).

    >>> [round(end, 4) for end in clopper_pearson(8, 10)]
    [0.4439, 0.9748]

    Args: as for `wilson`; successes is whole.

    Source: Clopper and Pearson 1934, Biometrika 26, 404–413.
    """
    _check(successes, n, confidence)
    outside = (1 - confidence) / 2
    low = 0.0 if successes == 0 else _beta_quantile(outside, successes, n - successes + 1)
    high = 1.0 if successes == n else _beta_quantile(1 - outside, successes + 1, n - successes)
    return low, high


def mcnemar(first: Sequence[float], second: Sequence[float]) -> McNemar:
    """Exact paired test of two systems' right and wrong answers to the same questions.

    p = min(1, 2 P[X ≤ min(b, c)]), X ~ Binomial(b + c, ½), over the b + c questions where exactly one is right.

    >>> mcnemar([1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 1])
    McNemar(only_first=4, only_second=0, p=0.125)

    Args:
        first, second: 0 or 1 per question, in the same order.

    Source: McNemar 1947, Psychometrika 12, 153–157; the exact form.
    """
    _check_pairs(first, second)
    if not {*first, *second} <= {0, 1}:
        raise ValueError("McNemar's test takes 0 and 1 only; settle fractional ties first")
    only_first = sum(a > b for a, b in zip(first, second, strict=True))
    only_second = sum(a < b for a, b in zip(first, second, strict=True))
    return McNemar(only_first, only_second, _two_sided(min(only_first, only_second), only_first + only_second))


def paired_bootstrap(
    first: Sequence[float], second: Sequence[float], *, resamples: int = 10_000, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """Mean of first − second over the same questions, by resampling questions.

    The interval is the percentile interval; p = (1 + #{|d* − d| ≥ |d|}) / (1 + resamples), the resampled means moved
    to the null hypothesis.

    >>> paired_bootstrap([1, 1, 1, 0], [0, 1, 0, 0]).value
    0.5

    Args:
        first, second: credits per question, in the same order.
        resamples: at least 1.
        confidence: in (0, 1).

    Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapters 13 and 16.
    """
    _check_pairs(first, second)
    differences = [a - b for a, b in zip(first, second, strict=True)]
    return _bootstrap(differences, [1] * len(differences), resamples, confidence, seed)


def paired_difference(first: Sequence[float], second: Sequence[float], *, seed: int = 0) -> Estimate:
    """`paired_bootstrap`, and where fewer than 10 questions differ no narrower than they allow.

    Then the interval holds [A₋ − B₊, A₊ − B₋] too, A and B the Clopper–Pearson intervals of the shares of questions on
    which the first is ahead and behind: two systems that agree on 50 questions may still differ on the next.

    >>> same = paired_difference([1, 0] * 25, [1, 0] * 25)
    >>> same.value, round(same.low, 4), round(same.high, 4)
    (0.0, -0.0711, 0.0711)

    Args: as for `paired_bootstrap`; credits in [0, 1]. The p-value is the bootstrap's.
    """
    found = paired_bootstrap(first, second, seed=seed)
    ahead = sum(a > b for a, b in zip(first, second, strict=True))
    behind = sum(a < b for a, b in zip(first, second, strict=True))
    if ahead + behind >= _FEW:
        return found
    (least, most), (fewest, worst) = (clopper_pearson(count, len(first)) for count in (ahead, behind))
    return Estimate(found.value, min(found.low, least - worst), max(found.high, most - fewest), found.p)


def cluster_bootstrap(
    values: Sequence[float],
    clusters: Sequence[object],
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Mean of values that come in clusters, such as several samples of one question, by resampling whole clusters.

    >>> cluster_bootstrap([1, 1, 0, 0], ["q1", "q1", "q2", "q2"]).value
    0.5

    Args:
        values: credits, or differences of two systems' credits.
        clusters: one name per value; equal names are one cluster.
        resamples, confidence, seed: as for `paired_bootstrap`.

    Source: Davison and Hinkley 1997, Bootstrap Methods and their Application, section 3.8.
    """
    if len(values) != len(clusters) or not values:
        raise ValueError(f"{len(values)} values and {len(clusters)} clusters: give one cluster per value, at least one")
    members: dict[object, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    sums = [math.fsum(part) for part in members.values()]
    return _bootstrap(sums, [len(part) for part in members.values()], resamples, confidence, seed)


def holm(pvalues: Sequence[float]) -> list[float]:
    """p-values adjusted for several tests, by Holm's step-down method; same order.

    The i-th smallest of m becomes max_{j ≤ i} min(1, (m − j + 1) p_(j)).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    Source: Holm 1979, Scand. J. Statist. 6, 65–70.
    """
    if not all(0 <= p <= 1 for p in pvalues):
        raise ValueError(f"p-values lie in [0, 1]: {list(pvalues)}")
    adjusted = [0.0] * len(pvalues)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(pvalues)), key=lambda i: pvalues[i])):
        highest = max(highest, min(1.0, (len(pvalues) - rank) * pvalues[index]))
        adjusted[index] = highest
    return adjusted


def questions_needed(discordance: float, effect: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Questions that McNemar's two-sided test needs to see a difference of two systems on the same questions.

    n with δ n − (z_{1−α/2} √ψ + z_power √(ψ − δ²)) √n − 1 = 0, rounded up: Connor's sample size, and the 1 is the
    continuity correction, which makes room for the exact test.

    >>> questions_needed(0.20, 0.04)
    1029

    Args:
        discordance: ψ, share of questions where exactly one of the two is right, in (0, 1].
        effect: δ, difference of the accuracies, not 0, and no larger than ψ; its sign does not matter.
        power: chance to see the difference, in (0, 1).
        alpha: level of the test, in (0, 1).

    Raises:
        ValueError: an effect of 0, or larger than the discordance allows.

    Source: Connor 1987, Biometrics 43, 207–211; Miettinen 1968, Biometrics 24, 339–352.
    """
    size = abs(effect)
    if not 0 < discordance <= 1 or not 0 < size <= discordance:
        raise ValueError(f"effect {effect} at discordance {discordance}: expected 0 < |effect| ≤ discordance ≤ 1")
    if not (0 < power < 1 and 0 < alpha < 1):
        raise ValueError(f"power {power} and alpha {alpha}: both lie in (0, 1)")
    normal = NormalDist()
    spread = normal.inv_cdf(1 - alpha / 2) * math.sqrt(discordance)
    spread += normal.inv_cdf(power) * math.sqrt(discordance - size * size)
    root = (spread + math.sqrt(spread * spread + 4 * size)) / (2 * size)
    return math.ceil(root * root)


def _check(successes: float, n: int, confidence: float) -> None:
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials: expected 0 ≤ successes ≤ n and n ≥ 1")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} is not in (0, 1)")


def _check_pairs(first: Sequence[float], second: Sequence[float]) -> None:
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} credits: give both systems' on the same questions")


def _two_sided(fewer: int, n: int) -> float:
    """min(1, 2 P[X ≤ fewer]) for X ~ Binomial(n, ½), exact."""
    ways, total = 1, 0
    for k in range(fewer + 1):
        total += ways
        ways = ways * (n - k) // (k + 1)
    return float(min(Fraction(1), Fraction(2 * total, 2**n)))


def _beta_quantile(share: float, a: float, b: float) -> float:
    """x with I_x(a, b) = share, by bisection to the last bit."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if _beta_cdf(middle, a, b) < share:
            low = middle
        else:
            high = middle
    return middle


def _beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), on the side where its continued fraction converges fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_cdf(1 - x, b, a)
    log_front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) / (a * _beta_fraction(x, a, b))


def _beta_fraction(x: float, a: float, b: float) -> float:
    """1 + d₁/(1 + d₂/(1 + …)), DLMF 8.17.22, from the inside out; terms grow with √(a + b)."""
    terms = 60 + 4 * math.isqrt(int(a + b))
    value = 1.0
    for m in range(terms, 0, -1):
        half, odd = divmod(m, 2)
        if odd:
            d = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            d = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        value = 1 + d / value
    return value


def _bootstrap(sums: Sequence[float], counts: Sequence[int], resamples: int, confidence: float, seed: int) -> Estimate:
    """Bootstrap of Σ sums / Σ counts over clusters. Clusters that are equal are drawn together, as one multinomial."""
    import numpy as np

    if resamples < 1 or not 0 < confidence < 1:
        raise ValueError(f"{resamples} resamples at confidence {confidence}: expected at least 1, and in (0, 1)")
    kinds, times = np.unique(np.column_stack([sums, counts]), axis=0, return_counts=True)
    value = math.fsum(sums) / sum(counts)
    means = _resampled_means(kinds, times, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    extreme = int(np.count_nonzero(np.abs(means - value) >= abs(value) - 1e-12))
    return Estimate(value, float(low), float(high), (1 + extreme) / (1 + resamples))


def _resampled_means(
    kinds: NDArray[np.float64], times: NDArray[Any], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    import numpy as np

    n = int(times.sum())
    at_once = max(1, _CELLS // len(kinds))
    parts = []
    for start in range(0, resamples, at_once):
        drawn = rng.multinomial(n, times / n, size=min(at_once, resamples - start))
        totals = drawn @ kinds
        parts.append(totals[:, 0] / totals[:, 1])
    return np.concatenate(parts)
