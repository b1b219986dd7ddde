"""The numbers behind the stopping rules: how likely it is that the leader of a vote is not its winner.

Everything is exact or a quadrature; nothing is sampled. `pluribus.consensus.stopping` says what the rules mean.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNSEEN = 1
"""Pseudo-count of all answers that nobody gave yet, together."""
_NODES = 256
"""Of the trapezoidal rule under `dirichlet`; its error falls faster than any power of their number."""
_NODES_PAIR, _NODES_SHARE = 12, 6
"""Gauss nodes over the odds of two answers and over their common share: exact for up to 23 and 11 votes to come."""
_TINY = 1e-9
"""Sums of weights that differ by less, relative to all weights, are equal: 0.1 + 0.2 ties with 0.3."""


def beta_doubt(first: float, second: float) -> float:
    """P(p < 1/2), p ~ Beta(first + 1, second + 1): the second of two answers is the more likely one.

    I_½(a, b) = 2^−(a+b) / (a B(a, b)) · Σ_n (a+b)_n / (a+1)_n 2^−n, with a = first + 1 ≥ b = second + 1; else
    1 − I_½(b, a), for the first term may be too small for a number.

    >>> round(beta_doubt(4, 0), 12) == 1 / 32
    True

    Args:
        first, second: votes, ≥ 0; effective votes need not be whole.
    """
    if first < second:
        return 1 - beta_doubt(second, first)
    a, b = first + 1, second + 1
    term = math.exp(math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b) - (a + b) * math.log(2))
    total, n = 0.0, 0
    while term > 1e-17 * total:
        total += term
        term *= (a + b + n) / (a + 1 + n) / 2
        n += 1
    return total


@lru_cache(maxsize=2**17)
def dirichlet_doubt(votes: tuple[float, ...]) -> float:
    """1 − P(p₁ is the largest), p ~ Dirichlet(v + 1) over the answers seen.

    With independent G_i ~ Gamma(v_i + 1), p_i = G_i / ΣG, so P = ∫ f₁(x) Π_{i>1} F_i(x) dx, summed over equal steps of
    log x. Fewer than three answers: `beta_doubt`, which is the same.

    >>> round(dirichlet_doubt((4, 1, 1)), 4)
    0.1872

    Args:
        votes: of answer 1, then of the others, the most first; effective votes need not be whole.
    """
    import numpy as np

    if len(votes) < 3:
        return beta_doubt(votes[0], sum(votes[1:]))
    a = votes[0] + 1
    low, high, nine = (math.lgamma(a) - 42) / a, math.log(a + 9 * math.sqrt(a) + 40), a - 9 * math.sqrt(a)
    low = max(low, math.log(nine)) if nine > 0 else low  # nine standard deviations leave nothing out
    t = np.linspace(low, high, _NODES)
    x = np.exp(t)
    density = np.exp(a * t - x - math.lgamma(a)) * (high - low) / (_NODES - 1)
    below = np.ones_like(x)
    for v, times in Counter(votes[1:]).items():
        below *= _gamma_cdf(v + 1, x) ** times
    return float(np.clip((density * (1 - below)).sum(), 0, 1))


def _gamma_cdf(a: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(G ≤ x), G ~ Gamma(a, 1), a > 0: from the fractional part of a upwards."""
    import numpy as np

    whole = math.ceil(a) - 1
    base = a - whole
    cdf = -np.expm1(-x) if base == 1 else _gamma_series(base, np.minimum(x, 100))
    log_x, log_term = np.log(x), base * np.log(x) - x - math.lgamma(base + 1)
    for j in range(whole):  # logarithms, for the first terms of many votes are too small for a number
        cdf = cdf - np.exp(log_term)
        log_term = log_term + log_x - math.log(base + j + 1)
    return np.clip(cdf, 0, 1)


def _gamma_series(a: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """x^a e^−x Σ_n x^n / Γ(a + n + 1), 0 < x ≤ 100: positive terms only."""
    import numpy as np

    term = np.exp(a * np.log(x) - x - math.lgamma(a + 1))
    total = term.copy()
    n = 0
    while n < x.max() or term.max() > 1e-17:
        n += 1
        term = term * x / (a + n)
        total += term
    return total


@lru_cache(maxsize=2**17)
def urn_doubt(counts: tuple[int, ...], abstained: int, remaining: int) -> float:
    """P(the leader does not end alone in front), votes of equal weight drawn as from Hoppe's urn.

    The votes to come are Dirichlet-multinomial with the votes so far as pseudo-counts, 1 for all unseen answers
    together (taken as one rival), and the abstentions as a class that can not win. With y_i new votes of class i,

    P(y) ∝ Π_i Γ(y_i + α_i) / (y_i! Γ(α_i)),  Σ y_i = remaining,

    a product of polynomials: for each y₁ those of the rivals are cut where they would reach the leader.

    >>> round(urn_doubt((2, 1), 0, 1), 12)  # the next one joins the second: 1 of 4
    0.25

    Args:
        counts: votes of each answer, the most first.
        abstained, remaining: voters, ≥ 0.
    """
    import numpy as np

    lead = counts[0] - sum(counts[1:2])
    if lead > remaining or remaining == 0:
        return 0.0 if lead > remaining else 1.0
    total = sum(counts) + abstained + UNSEEN
    y = np.arange(remaining + 1)
    room = counts[0] + y[:, None] - y
    product = np.zeros((remaining + 1, remaining + 1))
    product[:, 0] = 1
    if abstained:
        product[:] = _gains(abstained, total, remaining)
    rivals = Counter([(votes, votes) for votes in counts[1:]] + [(0, UNSEEN)])
    for (votes, alpha), times in rivals.items():
        kept = np.where(room > votes, _gains(alpha, total, remaining), 0.0)
        for _ in range(times):
            product = _times(product, kept)
    won = _gains(counts[0], total, remaining) @ product[y, remaining - y]
    return float(np.clip(1 - won / _gains(total, total, remaining)[-1], 0, 1))


def _gains(alpha: float, total: float, remaining: int) -> NDArray[np.float64]:
    """Negative-binomial weights of 0 … remaining new votes; tilted so that all classes together expect `remaining`."""
    import numpy as np

    tilt = remaining / (remaining + total)
    y = np.arange(remaining)
    steps = np.log((alpha + y) / (y + 1) * tilt)
    weights: NDArray[np.float64] = np.exp(np.concatenate(([0.0], np.cumsum(steps))) + alpha * math.log1p(-tilt))
    return weights


def _times(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row by row the product of two polynomials, without the powers that are too high to matter."""
    import numpy as np

    n = a.shape[1]
    size = 1 << (2 * n - 1).bit_length()
    product: NDArray[np.float64] = np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[:, :n]
    return product


@lru_cache(maxsize=64)
def cells(weights: tuple[float, ...], most: int) -> tuple[tuple[int, ...], float]:
    """Weights as whole numbers of one unit, and the unit.

    Exact where a unit with at most `most` of them in all exists (a twelfth or a larger part of the lightest weight);
    else the unit is that part of the sum of the weights and each weight is rounded to it.

    >>> cells((1.0, 1.5, 0.5), 100)
    ((2, 3, 1), 0.5)
    """
    total, lightest = math.fsum(weights), min(weight for weight in weights if weight)
    for part in range(1, 13):
        unit = lightest / part
        whole = [round(weight / unit) for weight in weights]
        if sum(whole) > most:
            break
        if all(abs(n * unit - weight) <= _TINY * total for n, weight in zip(whole, weights, strict=True)):
            return tuple(whole), unit
    unit = total / most
    return tuple(round(weight / unit) for weight in weights), unit


@lru_cache(maxsize=2**14)
def pair_doubt(lead: float, todo: tuple[int, ...], alphas: tuple[int, int, int]) -> float:
    """P(lead + Σ_i w_i d_i ≤ 0): d_i is +1, −1 or 0 as voter i joins the leader, the rival or neither.

    The shares (p₊, p₋, p₀) ~ Dirichlet(alphas) are summed over Gauss–Jacobi nodes; given them, the distribution of the
    sum is built up voter by voter.

    >>> round(pair_doubt(1.0, (1,), (2, 1, 1)), 12)
    0.25

    Args:
        lead: in units of `todo`.
        todo: weights of the voters to come, whole.
        alphas: of leader, rival and all else; only the last may be 0.
    """
    import numpy as np

    if lead > sum(todo) + _TINY:
        return 0.0
    first, second, rest = alphas
    odds, odds_weight = _beta_nodes(first, second, min(_NODES_PAIR, len(todo) // 2 + 1))
    share, share_weight = _beta_nodes(first + second, rest, min(_NODES_SHARE, len(todo) // 2 + 1))
    up, down = np.outer(share, odds).ravel(), np.outer(share, 1 - odds).ravel()
    tails = _tails(todo, [up] * len(todo), [down] * len(todo))
    return float(np.clip(np.outer(share_weight, odds_weight).ravel() @ tails[:, _place(lead, todo)], 0, 1))


def table_doubt(lead: float, weights: tuple[int, ...], asked: int, alphas: tuple[int, int, int]) -> float:
    """`pair_doubt` of a vote under way, out of a table that all its states and all votes of the same weights share.

    >>> round(table_doubt(1.0, (1, 1, 1), 2, (2, 1, 1)), 6)
    0.25

    Args:
        lead, weights: whole units; the first `asked` voters have voted.
        alphas: as for `pair_doubt`.
    """
    import numpy as np

    if asked == len(weights) or lead > sum(weights[asked:]) + _TINY:
        return float(lead <= _TINY)
    first, second, rest = alphas
    shares_odds = np.outer(
        _share_weights(first + second, rest, len(weights)), _beta_weights(first, second, len(weights))
    )
    caught = _tables(weights)[asked][:, _place(lead, weights[asked:])]
    return float(np.clip(shares_odds.ravel() @ caught, 0, 1))


@lru_cache(maxsize=2)
def _tables(weights: tuple[int, ...]) -> list[NDArray[np.float32]]:
    """`_tails` of the voters from each place on, at the nodes of every (share, odds)."""
    import numpy as np

    odds = _legendre(len(weights))[0]
    share = np.append(odds, 1.0)
    up, down = np.outer(share, odds).ravel()[:, None], np.outer(share, 1 - odds).ravel()[:, None]
    mass = np.ones((len(up), 1))
    tables = []
    for weight in reversed(weights):
        mass = _joined(mass, weight, up, down)
        tables.append(np.cumsum(mass, axis=1).astype(np.float32))
    return tables[::-1]


def _joined(
    mass: NDArray[np.float64], weight: int, up: NDArray[np.float64], down: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The distribution of the sum with one more voter: wider by its weight on both sides."""
    import numpy as np

    width = mass.shape[1]
    new = np.zeros((len(mass), width + 2 * weight))
    new[:, weight : weight + width] = mass * (1 - up - down)
    new[:, 2 * weight :] += mass * up
    new[:, :width] += mass * down
    return new


@lru_cache(maxsize=64)
def _legendre(voters: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes in (0, 1) and weights: exact for what so many voters can bring about, or enough for their sharpest peak."""
    import numpy as np

    x, w = np.polynomial.legendre.leggauss(min(voters // 2 + 1, math.ceil(2.5 * math.sqrt(voters))))
    return (x + 1) / 2, w / 2


@lru_cache(maxsize=2**12)
def _beta_weights(a: int, b: int, voters: int) -> NDArray[np.float64]:
    """Weights of the nodes under Beta(a, b)."""
    import numpy as np

    x, w = _legendre(voters)
    density = w * np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x))
    weights: NDArray[np.float64] = density / density.sum()
    return weights


def _share_weights(a: int, b: int, voters: int) -> NDArray[np.float64]:
    """The same with a last node at 1, which is all there is where nothing else was said: b = 0."""
    import numpy as np

    if b == 0:
        return np.append(np.zeros(len(_legendre(voters)[0])), 1.0)
    return np.append(_beta_weights(a, b, voters), 0.0)


def _beta_nodes(a: float, b: float, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss–Jacobi nodes in (0, 1) and weights of Beta(a, b): eigenvalues of its recurrence (Golub and Welsch)."""
    import numpy as np

    if b == 0:
        return np.ones(1), np.ones(1)
    k = np.arange(1, n)
    both = 2 * k + a + b - 2
    middle = np.concatenate(([a / (a + b)], 0.5 + 0.5 * ((a - 1) ** 2 - (b - 1) ** 2) / (both * (both + 2))))
    with np.errstate(invalid="ignore"):
        ratio = np.where(k == 1, 1.0, (k + a + b - 2) / (both - 1))
    beside = np.sqrt(k * (k + b - 1) * (k + a - 1) * ratio / (both + 1)) / both
    values, vectors = np.linalg.eigh(np.diag(middle) + np.diag(beside, 1) + np.diag(beside, -1))
    return values, vectors[0] ** 2


def _tails(
    todo: Sequence[int], up: Sequence[NDArray[np.float64]], down: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """(cases, 2 · sum + 1): P(Σ w_i d_i ≤ −sum … sum) in each case, d_i = ±1 with the voter's up and down chances."""
    import numpy as np

    mass = np.ones((len(up[0]) if len(up) else 1, 1))
    for weight, plus, minus in zip(todo, up, down, strict=True):
        mass = _joined(mass, weight, plus[:, None], minus[:, None])
    return np.cumsum(mass, axis=1)


def _place(lead: float, todo: Sequence[int]) -> int:
    """Column of `_tails` for a lead that is caught, 0 where it is as long as can be."""
    return min(2 * sum(todo), max(0, sum(todo) + math.floor(-lead + _TINY * max(1.0, lead))))


@lru_cache(maxsize=2**9)
def _truth_tails(todo: tuple[int, ...], accuracies: tuple[float, ...], options: int) -> NDArray[np.float64]:
    """`_tails` of leader against rival where the leader is right, the rival is right, and neither is."""
    import numpy as np

    right = [np.array([p, q, q]) for p, q in _chances(accuracies, options)]
    wrong = [np.array([q, p, q]) for p, q in _chances(accuracies, options)]
    return _tails(todo, right, wrong)


def _chances(accuracies: Sequence[float], options: int) -> list[tuple[float, float]]:
    """(chance to name the right answer, chance to name one particular wrong one) of each voter."""
    return [(p, (1 - p) / (options - 1)) for p in accuracies]


def truth_doubt(
    leads: Sequence[float],
    beliefs: Sequence[float],
    unseen: int,
    todo: tuple[int, ...],
    accuracies: tuple[float, ...],
    options: int,
) -> float:
    """Bound on P(some rival catches the leader), voters of known accuracy: Σ_j Σ_t P(t is right) P(j catches up | t).

    Args:
        leads: before each seen rival and, last, before an unseen one, in units of `todo`.
        beliefs: that the leader is right, then each seen rival, then one particular unseen answer.
        unseen: how many unseen answers there are, ≥ 0.
        todo, accuracies: weights (whole) and accuracies of the voters to come.
        options: how many answers there are, ≥ 2.
    """
    if not todo:
        return float(any(lead <= _TINY for lead in (leads if unseen else leads[:-1])))
    tails = _truth_tails(todo, accuracies, options)
    others, doubt = options > 2, 0.0  # of two answers one is right; the rounding of 1 − leader − rival is no third
    for place, lead in enumerate(leads):
        times = unseen if place == len(leads) - 1 else 1
        if not times or lead > sum(todo) + _TINY:
            continue
        leader, rival = beliefs[0], beliefs[place + 1]
        caught = tails[:, _place(lead, todo)]
        neither = others * max(0.0, 1 - leader - rival)
        doubt += times * float(leader * caught[0] + rival * caught[1] + neither * caught[2])
    return min(doubt, 1.0)
