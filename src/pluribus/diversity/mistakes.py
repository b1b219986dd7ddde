"""Whether a council's members err together: correlated errors, double faults, and the questions that nobody gets right.

`right_Q_A` is (questions, agents): 1 right, 0 wrong, NaN unknown or nothing said. A pair is measured on the questions
where both are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluribus.stats import Estimate, clopper_pearson

Floats = NDArray[np.float64]
Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]

_CELLS = 4_000_000
"""Numbers in memory at once in the bootstrap."""


@dataclass(frozen=True, slots=True)
class MeanCorrelation(Estimate):
    """The mean over pairs, its bootstrap interval over questions, and the p-value of "it is 0"."""

    pairs: int
    """Pairs in the mean."""
    undefined: int
    """Pairs left out: one of the two never errs, always errs, or shares no question with the other."""


@dataclass(frozen=True, slots=True)
class AllWrong:
    """How often nobody is right."""

    beta: float
    """Share of questions on which no agent is right: no rule that picks one of the answers exceeds 1 − beta."""
    low: float
    high: float
    """Clopper–Pearson interval of beta, 95 %."""
    n: int
    """Questions with at least one known answer."""
    oracle: float
    """1 − beta: share of questions on which some agent is right."""


def error_correlation(right_Q_A: ArrayLike) -> Floats:
    """Phi coefficient of every two agents' errors.

    φ_ij = (n n_ij − n_i n_j) / √(n_i (n − n_i) n_j (n − n_j)): n questions where both are known, n_i and n_j errors
    there, n_ij of both.

    >>> error_correlation([[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]]).round(3).tolist()
    [[1.0, 0.577, -1.0], [0.577, 1.0, -0.577], [-1.0, -0.577, 1.0]]

    Returns: (agents, agents), in [−1, 1]; NaN where one of the two never or always errs.

    Source: Kuncheva and Whitaker 2003, Machine Learning 51, 181–207.
    """
    known, wrong = _parts(right_Q_A)
    own = wrong.T @ known
    return _phi(known.T @ known, own, own.T, wrong.T @ wrong)


def mean_error_correlation(right_Q_A: ArrayLike, *, resamples: int = 1_000, seed: int = 0) -> MeanCorrelation | None:
    """Mean of `error_correlation` over the pairs where it is defined, with a 95 % interval over questions.

    mean_{i<j} φ_ij; percentile interval of resampled questions, a resample's mean over the pairs defined in it;
    p = (1 + #{|m* − m| ≥ |m|}) / (1 + resamples), the resampled means moved to the null hypothesis.

    >>> mean_error_correlation([[1, 1], [0, 0], [1, 1], [0, 1]], resamples=100).value.__round__(3)
    0.577

    Args:
        resamples: at least 1.
        seed: of the resampling.

    Returns: None where no pair is defined. Copies have 1, independent agents 0 within the interval.

    Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13.
    """
    if resamples < 1:
        raise ValueError(f"{resamples} resamples; expected at least 1")
    known, wrong = _parts(right_Q_A)
    pairs = np.triu_indices(known.shape[1], 1)
    phi = error_correlation(right_Q_A)[pairs]
    defined = ~np.isnan(phi)
    if not defined.any():
        return None
    value = float(phi[defined].mean())
    means = _resampled(known, wrong, pairs, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [0.025, 0.975]) if means.size else (-1.0, 1.0)
    extreme = int(np.count_nonzero(np.abs(means - value) >= abs(value) - 1e-12))
    p = (1 + extreme) / (1 + len(means))
    return MeanCorrelation(value, float(low), float(high), p, int(defined.sum()), int((~defined).sum()))


def double_fault(right_Q_A: ArrayLike) -> Floats:
    """Share of questions on which both of two agents err.

    n_ij / n over the n questions where both are known.

    >>> double_fault([[1, 1], [0, 0], [1, 0], [0, 0]]).tolist()
    [[0.5, 0.5], [0.5, 0.75]]

    Returns: (agents, agents), in [0, 1]; the diagonal is each agent's error rate; NaN without a shared question.

    Source: Giacinto and Roli 2001, Image Vis. Comput. 19, 699–707.
    """
    known, wrong = _parts(right_Q_A)
    shared = known.T @ known
    return np.where(shared > 0, (wrong.T @ wrong) / np.maximum(shared, 1), np.nan)


def oracle(right_Q_A: ArrayLike) -> AllWrong | None:
    """The all-wrong rate beta, its exact interval, and what is left for a perfect chooser.

    beta = #{q: no agent right} / n; a known answer of one agent is enough for a question to count.

    >>> oracle([[1, 0], [0, 0], [0, 1], [0, 0]]).beta
    0.5

    Returns: None where nothing is known.

    Source: Clopper and Pearson 1934, Biometrika 26, 404–413.
    """
    known, wrong = _parts(right_Q_A)
    counts = known.any(axis=1)
    n = int(counts.sum())
    if n == 0:
        return None
    lost = int((wrong == known).all(axis=1)[counts].sum())
    low, high = clopper_pearson(lost, n)
    return AllWrong(lost / n, low, high, n, 1 - lost / n)


def _parts(right_Q_A: ArrayLike) -> tuple[Floats, Floats]:
    """Known and wrong, each 0 or 1."""
    right = np.asarray(right_Q_A, dtype=np.float64)
    if right.ndim != 2:
        raise ValueError(f"right answers are of shape {right.shape}; expected (questions, agents)")
    odd = right[~np.isnan(right) & (right != 0) & (right != 1)]
    if odd.size:
        raise ValueError(f"right answers hold {odd[0]}; expected 1 (right), 0 (wrong) or NaN (unknown)")
    return (~np.isnan(right)).astype(np.float64), (right == 0).astype(np.float64)


def _phi(n: Floats, first: Floats, second: Floats, both: Floats) -> Floats:
    """From counts; NaN where undefined."""
    spread = first * (n - first) * second * (n - second)
    there = spread > 0
    return np.where(there, (n * both - first * second) / np.sqrt(np.where(there, spread, 1.0)), np.nan)


def _resampled(
    known: Floats,
    wrong: Floats,
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Mean phi of each resample. Questions with the same pattern are drawn together, as one multinomial."""
    kinds, times = np.unique(known + 2 * wrong, axis=0, return_counts=True)
    known, wrong = (kinds > 0).astype(np.float64), (kinds == 3).astype(np.float64)
    n = int(times.sum())
    at_once = max(1, _CELLS // max(1, len(kinds)))
    parts = []
    for start in range(0, resamples, at_once):
        drawn = rng.multinomial(n, times / n, size=min(at_once, resamples - start)).astype(np.float64)
        total, defined = np.zeros(len(drawn)), np.zeros(len(drawn))
        for i, j in _spans(pairs, max(1, _CELLS // (4 * max(len(kinds), len(drawn))))):
            phi = _phi(*(drawn @ part for part in _shared(known, wrong, i, j)))
            total += np.nansum(phi, axis=1)
            defined += (~np.isnan(phi)).sum(axis=1)
        parts.append(total[defined > 0] / defined[defined > 0])
    return np.concatenate(parts)


def _spans(pairs: Pairs, step: int) -> Iterator[Pairs]:
    for start in range(0, len(pairs[0]), step):
        yield pairs[0][start : start + step], pairs[1][start : start + step]


def _shared(known: Floats, wrong: Floats, i: NDArray[np.intp], j: NDArray[np.intp]) -> tuple[Floats, ...]:
    """(kinds, pairs): both known, first wrong, second wrong, both wrong."""
    both = known[:, i] * known[:, j]
    return both, wrong[:, i] * known[:, j], known[:, i] * wrong[:, j], wrong[:, i] * wrong[:, j]
