"""Many judges' scores → one reward each, and how far the judges disagree.

Every judge's scores are first put on a common scale in [0, 1], so that a lenient judge, or one that counts to 10, has
no more say than its weight. Then, over the judges that gave a verdict,

    r_i = Σ_j w_j s_ij / Σ_j w_j,    v_i = Σ_j w_j (s_ij − r_i)² / Σ_j w_j.

A missing verdict is NaN (None where a list is taken), and is never 0. Sums over judges are taken in order of size:
the order of the judges changes no bit of a result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal, get_args

from pluribus.consensus._numbers import ROUNDING, flat, floats, pearson, ranks
from pluribus.consensus.reliability import Reliability, from_agreement, from_labels
from pluribus.errors import UnknownName
from pluribus.types import RewardStatus

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from pluribus.consensus._numbers import Floats, Values

    Table = Sequence[Sequence[float | None] | NDArray[Any]] | NDArray[Any]
    Weights = Sequence[float] | NDArray[Any]

Normalise = Literal["zscore", "minmax", "rank", "none"]
NORMALISE: tuple[Normalise, ...] = get_args(Normalise)

_PLAIN = 300
"""Scores between 2^−300 and 2^300 can be squared as they are."""
_FEW = 2
"""Verdicts that can disagree."""


# --- one judge on the common scale -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """How one judge's scores become numbers in [0, 1]."""

    how: Normalise
    n: int
    """Scores it was fitted on."""
    center: float = 0.0
    """zscore: their mean; minmax: the least."""
    spread: float = 1.0
    """zscore: their standard deviation (population); minmax: greatest minus least. 0: none beyond rounding."""
    points: tuple[float, ...] = ()
    """rank: the scores, sorted."""
    exponent: int = 0
    """Scores, center and spread are in units of 2^−exponent: not 0 only where scores are too large or too small to be
    squared."""
    rest: float = 0.0
    """What rounding took from the mean; matters where scores are far from 0 and close together."""


def fit_scale(scores_N: Values, how: Normalise) -> Scale:
    """Learns one judge's scale from its scores.

    zscore: mean and standard deviation; minmax: least and greatest; rank: all of them; none: nothing.

    >>> fit_scale([1, 2, None, 3, 2], "zscore")
    Scale(how='zscore', n=4, center=2.0, spread=0.7071067811865476, points=(), exponent=0, rest=0.0)

    Args:
        scores_N: finite, in the judge's own unit; None or NaN: no verdict. For `none` in [0, 1].
        how: zscore, minmax, rank or none.

    Returns: spread 0 where there is no score, or all are equal but for rounding; `none` has no use for a spread.

    Raises UnknownName on another `how`, ValueError on an infinite score, or one outside [0, 1] for `none`.
    """
    import numpy as np

    if how not in NORMALISE:
        raise UnknownName("way to normalise", how, NORMALISE)
    all_N = floats(scores_N, "score")
    known = all_N[~np.isnan(all_N)]
    if how == "none":
        _check_unit(all_N, "score")
        return Scale(how, len(known))
    if flat(known):
        return Scale(how, len(known), float(known.min()) if len(known) else 0.0, 0.0)
    if how == "rank":
        return Scale(how, len(known), points=tuple(np.sort(known).tolist()))
    return _fitted(known, how)


def apply_scale(scale: Scale, scores_N: Values) -> Floats:
    """A judge's scores on the common scale.

    zscore: 1 / (1 + exp(−(s − mean) / deviation)); minmax: (s − least) / (greatest − least), cut to [0, 1];
    rank: (scores below s + half the scores equal to s) / n, of the scores the scale was fitted on; none: s.

    >>> apply_scale(fit_scale([1, 2, 2, 5], "rank"), [1, 2, None, 9]).tolist()
    [0.125, 0.5, nan, 1.0]
    >>> apply_scale(fit_scale([7, 7, 7], "zscore"), [7, 9]).tolist()
    [0.5, 0.5]

    Args:
        scores_N: finite, in the judge's own unit; None or NaN: no verdict.

    Returns: in [0, 1]; NaN where there is no verdict. A judge without spread has 0.5 throughout, save under `none`.
        Under the others, adding a constant to all of a judge's scores, or multiplying them by a positive number,
        changes nothing but rounding.

    Raises ValueError on an infinite score, or one outside [0, 1] for `none`.
    """
    import numpy as np

    s_N = floats(scores_N, "score")
    if scale.how == "none":
        _check_unit(s_N, "score")
        return s_N.copy()
    if not scale.n or not scale.spread:
        return np.where(np.isnan(s_N), np.nan, 0.5)
    if scale.how == "rank":
        return _ranked(np.asarray(scale.points), s_N)
    with np.errstate(over="ignore"):
        z_N = (np.ldexp(s_N, scale.exponent) - scale.center - scale.rest) / scale.spread
    return np.clip(z_N, 0.0, 1.0) if scale.how == "minmax" else 0.5 + 0.5 * np.tanh(z_N / 2)


def _fitted(known: Floats, how: Normalise) -> Scale:
    """By differences from the least score, which are exact where the scores are far from 0 and close together."""
    import numpy as np

    exponent = int(np.frexp(np.abs(known).max())[1])
    exponent = 0 if abs(exponent) <= _PLAIN else -exponent
    known = np.ldexp(known, exponent)
    n, low = len(known), float(known.min())
    if how == "minmax":
        return Scale(how, n, low, float(known.max()) - low, exponent=exponent)
    above = known - low
    mean = math.fsum(above) / n
    center = low + mean
    spread = math.sqrt(math.fsum((above - mean) ** 2) / n)
    return Scale(how, n, center, spread, exponent=exponent, rest=_lost(low, mean, center))


def _lost(a: float, b: float, total: float) -> float:
    """a + b − total without rounding (Knuth's two-sum)."""
    second = total - a
    return (a - (total - second)) + (b - second)


def _ranked(points: Floats, s_N: Floats) -> Floats:
    import numpy as np

    near = ROUNDING * float(np.abs(points[[0, -1]]).max())
    less_N = np.searchsorted(points, s_N - near, "left")
    most_N = np.searchsorted(points, s_N + near, "right")
    return np.where(np.isnan(s_N), np.nan, (less_N + most_N) / (2 * len(points)))


def _check_unit(s_N: Floats, what: str) -> None:
    import numpy as np

    out = np.flatnonzero((s_N < 0) | (s_N > 1))
    if len(out):
        raise ValueError(
            f"{what} {out[0]} is {s_N[out[0]]}: expected a number in [0, 1]; zscore, minmax or rank put others there"
        )


# --- all judges ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    value_N: Floats
    """Weighted mean, in [0, 1]; NaN: no verdict."""
    disagreement_N: Floats
    """Weighted variance, in [0, 0.25]; NaN: fewer than two verdicts."""
    verdicts_N: NDArray[np.int64]
    """Judges of weight above 0 that gave a verdict."""


def consensus(normalised_J_N: Table, weights_J: Weights) -> Consensus:
    """One number for each item, and how far the judges disagree about it.

    r_i = Σ_j w_j s_ij / Σ_j w_j, v_i = Σ_j w_j (s_ij − r_i)² / Σ_j w_j, over the judges that gave i a verdict.

    >>> found = consensus([[0.5, 1.0, None], [0.7, None, None]], [3.0, 1.0])
    >>> found.value_N.round(4).tolist(), found.disagreement_N.round(4).tolist(), found.verdicts_N.tolist()
    ([0.55, 1.0, nan], [0.0075, nan, nan], [2, 1, 0])

    Args:
        normalised_J_N: one row per judge, in [0, 1]; None or NaN: no verdict.
        weights_J: finite, at least 0, not all 0. A judge of weight 0 counts for nothing.

    Raises ValueError on weights or scores that can not be.
    """
    return _mix(*_checked(normalised_J_N, weights_J))


def status(
    disagreement: float | None, verdicts: int, judges: int, threshold: float, adjudicated: bool = False
) -> RewardStatus:
    """What may be done with a reward.

    >>> status(0.01, 2, 3, 0.02), status(0.3, 2, 3, 0.02), status(None, 1, 3, 0.02), status(None, 1, 1, 0.02)
    ('agreed', 'disputed', 'alone', 'agreed')

    Args:
        disagreement: weighted variance; None or NaN: fewer than two verdicts.
        verdicts: of judges with a weight above 0.
        judges: how many of these there are; one judge, which nobody can contradict, is agreed.
        threshold: the greatest disagreement that is agreed, at least 0.
        adjudicated: a person has decided, whatever the judges say.
    """
    return statuses_N([disagreement], [verdicts], judges, threshold, [adjudicated])[0]


def statuses_N(
    disagreement_N: Values,
    verdicts_N: Sequence[int] | NDArray[Any],
    judges: int,
    threshold: float,
    adjudicated_N: Sequence[bool] | NDArray[Any] | None = None,
) -> list[RewardStatus]:
    """`status` of many items.

    >>> statuses_N([0.01, 0.3, None, None], [2, 2, 1, 0], 3, 0.02, [False, True, False, False])
    ['agreed', 'adjudicated', 'alone', 'unscored']
    """
    import numpy as np

    v_N, n_N = floats(disagreement_N, "disagreement"), np.asarray(verdicts_N, dtype=np.int64)
    decided_N = np.zeros(len(v_N), bool) if adjudicated_N is None else np.asarray(adjudicated_N, dtype=bool)
    if not threshold >= 0 or judges < 1:
        raise ValueError(f"threshold {threshold} of {judges} judges: expected at least 0, and at least one judge")
    if not len(v_N) == len(n_N) == len(decided_N):
        raise ValueError(f"{len(v_N)} disagreements, {len(n_N)} counts, {len(decided_N)} marks: expected one per item")
    cases = [decided_N, n_N == 0, (n_N == 1) & (judges > 1), v_N > threshold]
    names = ["adjudicated", "unscored", "alone", "disputed"]
    found: list[RewardStatus] = np.select(cases, names, "agreed").tolist()
    return found


def _checked(normalised_J_N: Table, weights_J: Weights) -> tuple[Floats, Floats]:
    import numpy as np

    s_J_N, w_J = np.asarray(normalised_J_N, dtype=np.float64), np.asarray(weights_J, dtype=np.float64)
    if s_J_N.ndim != 2 or not len(s_J_N) or w_J.shape != s_J_N.shape[:1]:
        raise ValueError(
            f"scores of shape {s_J_N.shape} and weights of shape {w_J.shape}: expected (judges, items) and (judges,)"
        )
    for judge, s_N in enumerate(s_J_N):
        _check_unit(s_N, f"judge {judge}: normalised score")
    bad = np.flatnonzero(~np.isfinite(w_J) | (w_J < 0))
    if len(bad):
        raise ValueError(f"judge {bad[0]} has weight {w_J[bad[0]]}: expected a finite number of at least 0")
    if not w_J.any():
        raise ValueError(f"judges 0 to {len(w_J) - 1} have weight 0.0: expected a weight above 0 for at least one")
    return s_J_N, w_J


def _mix(s_J_N: Floats, w_J: Floats) -> Consensus:
    import numpy as np

    known_J_N, w_J_N, total_N = _shares(s_J_N, w_J)
    verdicts_N = known_J_N.sum(axis=0)
    s_J_N = np.where(known_J_N, s_J_N, 0.0)
    low_N = np.where(known_J_N, s_J_N, np.inf).min(axis=0, initial=np.inf)
    high_N = s_J_N.max(axis=0, initial=0.0)
    # cut, so that equal scores have their own value and no disagreement, whatever the rounding
    value_N = np.minimum(np.maximum(_sum(w_J_N * s_J_N) / total_N, low_N), high_N)
    apart_N = _sum(w_J_N * np.where(known_J_N, s_J_N - value_N, 0.0) ** 2) / total_N
    value_N = np.where(verdicts_N > 0, value_N, np.nan)
    return Consensus(value_N, np.where(verdicts_N >= _FEW, apart_N, np.nan), verdicts_N)


def _shares(s_J_N: Floats, w_J: Floats) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Who gave a verdict that counts; their weights; the sum of these, 1 where nobody did. Each item's weights are
    divided by a power of 2 near the largest, which neither overflows nor rounds."""
    import numpy as np

    known_J_N = ~np.isnan(s_J_N) & (w_J[:, None] > 0)
    w_J_N = np.where(known_J_N, w_J[:, None], 0.0)
    w_J_N = np.ldexp(w_J_N, -np.frexp(w_J_N.max(axis=0, initial=0.0))[1])
    total_N = _sum(w_J_N)
    return known_J_N, w_J_N, np.where(total_N > 0, total_N, 1.0)


def _sum(values_J_N: Floats) -> Floats:
    """Over the judges, the least first, one after the other: their order, and how many items there are, do not
    matter."""
    import numpy as np

    total: Floats = reduce(np.add, np.sort(values_J_N, axis=0), np.zeros(values_J_N.shape[1]))
    return total


# --- do the judges see the same? -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Null:
    """Mean disagreement of judges who know nothing of the items: what chance gives."""

    mean: float
    low: float
    """2.5 % of the draws lie below."""
    high: float
    """2.5 % of the draws lie above."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One judge against the weighted mean of the others."""

    n: int
    """Items it gave a verdict on."""
    mean: float | None
    """Of its normalised scores; None: it gave none."""
    spread: float | None
    """Their standard deviation (population)."""
    bias: float | None
    """Mean of its score minus the others' mean, over the items both judged, in [−1, 1]; above 0: lenient."""
    correlation: float | None
    """Pearson's, over the items both judged; None: fewer than three, or one side is constant."""
    rank_correlation: float | None
    """Spearman's."""
    compared: int
    """Items that it and another judge of weight above 0 gave a verdict on."""


def krippendorff_alpha(normalised_J_N: Table) -> float | None:
    """Agreement beyond chance of judges whose scores are on an interval scale.

    α = 1 − D_o / D_e; over the items with at least two verdicts, n verdicts s in all and m_i of them on item i,

        D_o = (1 / n) Σ_i Σ_{j≠k} (s_ij − s_ik)² / (m_i − 1),  D_e = Σ_{a≠b} (s_a − s_b)² / (n (n − 1)).

    >>> krippendorff_alpha([[0.1, 0.5, 0.9], [0.1, 0.5, 0.9]]), krippendorff_alpha([[0.0, 1.0], [1.0, 0.0]])
    (1.0, -0.5)

    Args:
        normalised_J_N: one row per judge, on any scale they share; None or NaN: no verdict. Each judge counts once.

    Returns: at most 1; 0 is chance; None where no item has two verdicts, or all verdicts are equal.

    Raises ValueError on an infinite score.

    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, Annenberg School for Communication; 2018,
        Content Analysis, 4th edition, chapter 12.
    """
    import numpy as np

    s_J_N = np.asarray(normalised_J_N, dtype=np.float64)
    if np.isinf(s_J_N).any():
        raise ValueError("a score is infinite: expected a finite number, or None for no verdict")
    s_J_N = s_J_N[:, (~np.isnan(s_J_N)).sum(axis=0) >= _FEW]
    known_J_N = ~np.isnan(s_J_N)
    if flat(s_J_N[known_J_N]):
        return None
    s_J_N = np.where(known_J_N, s_J_N - s_J_N[known_J_N].mean(), 0.0)
    m_N = known_J_N.sum(axis=0)
    apart_N = (np.where(known_J_N, s_J_N - s_J_N.sum(axis=0) / m_N, 0.0) ** 2).sum(axis=0)
    observed = float((apart_N * m_N / (m_N - 1)).sum() / m_N.sum())
    expected = float((s_J_N**2).sum() / (m_N.sum() - 1))
    return 1 - observed / expected


def permutation_null(normalised_J_N: Table, weights_J: Weights, *, draws: int = 200, seed: int = 0) -> Null | None:
    """The mean disagreement that the same judges' scores would have on items they know nothing of.

    Each judge's scores are permuted over the items it judged, so that scores, weights and gaps stay; the mean of
    `disagreement_N` is taken again, `draws` times. Judges who see the same lie below `low`.

    >>> null = permutation_null([[0.0, 1.0] * 50, [0.0, 1.0] * 50], [1.0, 1.0])
    >>> round(null.mean, 1), null.low < null.mean < null.high
    (0.1, True)

    Args:
        normalised_J_N, weights_J: as for `consensus`. Items with fewer than two verdicts are left out.
        draws: at least 1.
        seed: of the permutations.

    Returns: None where no item has two verdicts.

    Raises ValueError as `consensus`, and on no draws.
    """
    import numpy as np

    s_J_N, w_J = _checked(normalised_J_N, weights_J)
    if draws < 1:
        raise ValueError(f"{draws} draws: expected at least 1")
    s_J_N = s_J_N[:, (~np.isnan(s_J_N) & (w_J[:, None] > 0)).sum(axis=0) >= _FEW]
    if not s_J_N.size:
        return None
    rng = np.random.default_rng(seed)
    known_J_N, w_J_N, total_N = _shares(s_J_N, w_J)
    judges = [(slice(None) if known_N.all() else np.flatnonzero(known_N), s_N[known_N] - 0.5, (w_N / total_N)[known_N])
              for known_N, s_N, w_N in zip(known_J_N, s_J_N, w_J_N, strict=True)]  # fmt: skip
    found = [_permuted(judges, s_J_N.shape[1], rng) for _ in range(draws)]
    low, high = np.quantile(found, [0.025, 0.975])
    return Null(math.fsum(found) / draws, float(low), float(high))


def _permuted(
    judges: Sequence[tuple[slice | NDArray[np.int64], Floats, Floats]], n: int, rng: np.random.Generator
) -> float:
    """Mean over i of Σ_j q_ij s_ij² − (Σ_j q_ij s_ij)², q the shares of weight, each judge's scores permuted."""
    import numpy as np

    mean_N, squares = np.zeros(n), 0.0
    for at_K, s_K, share_K in judges:
        drawn_K = rng.permutation(s_K)
        mean_N[at_K] += share_K * drawn_K
        squares += float(share_K @ drawn_K**2)
    return max(0.0, squares - float(mean_N @ mean_N)) / n


def leave_one_out(normalised_J_N: Table, weights_J: Weights) -> tuple[Standing, ...]:
    """How each judge stands to the weighted mean of the others.

    >>> found = leave_one_out([[0.1, 0.5, 0.9], [0.2, 0.5, 0.8], [0.9, 0.9, 0.4]], [2.0, 2.0, 1.0])
    >>> [(round(one.correlation, 2), round(one.bias, 2)) for one in found]
    [(0.92, -0.08), (0.97, -0.08), (-0.87, 0.23)]

    Args: as for `consensus`. A judge of weight 0 has a standing too; in the others' mean it counts for nothing.

    Returns: one per judge.

    Raises ValueError as `consensus`.
    """
    import numpy as np

    s_J_N, w_J = _checked(normalised_J_N, weights_J)
    others = np.arange(len(w_J))
    return tuple(_standing(s_N, _mix(s_J_N[others != j], w_J[others != j]).value_N) for j, s_N in enumerate(s_J_N))


def _standing(s_N: Floats, others_N: Floats) -> Standing:
    import numpy as np

    own = s_N[~np.isnan(s_N)]
    both_N = ~np.isnan(s_N) & ~np.isnan(others_N)
    s, others = s_N[both_N], others_N[both_N]
    return Standing(
        n=len(own),
        mean=float(own.mean()) if len(own) else None,
        spread=float(own.std()) if len(own) else None,
        bias=float((s - others).mean()) if len(s) else None,
        correlation=pearson(s, others),
        rank_correlation=pearson(ranks(s), ranks(others)),
        compared=len(s),
    )


# --- whom to believe -------------------------------------------------------------------------------------------------


def pair_votes(scores_J_N: Table, pairs_P_2: Sequence[tuple[int, int]] | NDArray[Any]) -> list[list[str | None]]:
    """Which of two items each judge prefers: votes for `learned_weights`.

    >>> pair_votes([[1.0, 2.0, 2.0], [5.0, None, 4.0]], [(0, 1), (1, 2), (0, 2)])
    [['second', None], [None, None], ['second', 'first']]

    Args:
        scores_J_N: one row per judge, each in its own unit; None or NaN: no verdict.
        pairs_P_2: two items each, as indexes of columns.

    Returns: one row per pair, one vote per judge; None: no verdict on one of them, or scores equal but for rounding.

    Raises ValueError on an item that is not there.
    """
    import numpy as np

    s_J_N = np.asarray(scores_J_N, dtype=np.float64)
    pairs = np.asarray(pairs_P_2, dtype=np.int64).reshape(-1, 2)
    if s_J_N.ndim != 2 or (pairs.size and not 0 <= pairs.min() <= pairs.max() < s_J_N.shape[1]):
        raise ValueError(f"pairs of items of scores of shape {s_J_N.shape}: expected indexes of its columns")
    first_J_P, second_J_P = s_J_N[:, pairs[:, 0]], s_J_N[:, pairs[:, 1]]
    near_J_P = ROUNDING * np.maximum(np.abs(first_J_P), np.abs(second_J_P))
    votes_J_P = np.full(first_J_P.shape, None, dtype=object)
    votes_J_P[first_J_P > second_J_P + near_J_P] = "first"
    votes_J_P[second_J_P > first_J_P + near_J_P] = "second"
    votes: list[list[str | None]] = votes_J_P.T.tolist()
    return votes


def learned_weights(
    votes_P_J: Sequence[Sequence[str | None]], gold_P: Sequence[str | None] | None = None
) -> Reliability:
    """Judges' weights from which of two replies each preferred: log odds of being right, 0 at a coin's toss.

    With right answers by `consensus.reliability.from_labels`, else by `from_agreement`, both with two options.

    >>> votes = [["first", "first", "second"], ["second", "second", "second"]] * 20
    >>> found = learned_weights(votes, ["first", "second"] * 20)
    >>> [round(p, 2) for p in found.accuracy], [round(w, 2) for w in found.weights]
    ([0.99, 0.99, 0.52], [4.74, 4.74, 0.06])

    Args:
        votes_P_J: `first`, `second` or None per pair and judge, as `pair_votes` gives them.
        gold_P: which of the two is better; None: nobody knows, and the pair is left out. None altogether: from
            agreement, which believes the crowd.

    Raises ValueError on no pairs, on no pair whose better reply is known, on another word, on rows of different
        lengths.
    """
    words = {word for row in (*votes_P_J, gold_P or ()) for word in row} - {"first", "second", None}
    if words:
        raise ValueError(f"{min(map(repr, words))} is no vote: expected 'first', 'second' or None")
    if not votes_P_J:
        raise ValueError("no pairs to learn weights from; expected at least one")
    return from_agreement(votes_P_J, options=2) if gold_P is None else from_labels(votes_P_J, gold_P, options=2)
