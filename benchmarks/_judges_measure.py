"""How right a consensus of judges is, and whether its disagreement says where it is wrong: private to
`judges_recorded.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from _judges_pairs import Floats, Ints, Pairs
from pluribus.consensus.rewards import Normalise, apply_scale, consensus, fit_scale, learned_weights, pair_votes
from pluribus.metrics.calibration import RiskCoverage, risk_coverage

RESAMPLES = 2000
_SAME = 9
"""Decimals to which two rewards or variances that should be equal are."""


class Ranged(NamedTuple):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a council says of each pair."""

    credit_P: Floats
    """1 where the better reply has the higher reward, ½ where the rewards are equal."""
    margin_P: Floats
    """Distance of the two rewards, in [0, 1]."""
    disagreement_P: Floats
    """Mean of both replies' variances; NaN: fewer than two verdicts."""

    @property
    def accuracy(self) -> float:
        return float(self.credit_P.mean())


def normalised(scores_J_N: Floats, how: Normalise) -> Floats:
    return np.stack([apply_scale(fit_scale(scores_N, how), scores_N) for scores_N in scores_J_N])


def found(pairs: Pairs, normalised_J_N: Floats, weights_J: Sequence[float]) -> Found:
    """The council's rewards of the candidates, pair by pair; a pair without a reward is a tie."""
    told = consensus(normalised_J_N, np.asarray(weights_J, dtype=np.float64))
    first_P, second_P = np.round(told.value_N, _SAME).reshape(-1, 2).T
    ahead_P = np.nan_to_num(np.where(pairs.first_P, first_P - second_P, second_P - first_P))
    disagreement_P = np.round(told.disagreement_N, _SAME).reshape(-1, 2).mean(axis=1)
    return Found(np.where(ahead_P == 0, 0.5, ahead_P > 0), np.abs(ahead_P), disagreement_P)


def alone(pairs: Pairs, scores_N: Floats) -> Floats:
    """A judge's credit of each pair; one without a verdict is a tie."""
    return found(pairs, normalised(scores_N[None], "minmax"), [1.0]).credit_P


# --- weights ---------------------------------------------------------------------------------------------------------


def taught(votes_P_J: Sequence[Sequence[str | None]], gold_P: Sequence[str | None] | None) -> list[float]:
    """Learned weights; equal ones where nobody is seen to be better than chance."""
    weights = list(learned_weights(votes_P_J, gold_P).weights)
    return weights if any(weights) else [1.0] * len(weights)


def halves(n: int, seed: int) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """(learn, test) in random order, both ways round."""
    order = np.random.default_rng(seed).permutation(n)
    return (order[: n // 2], order[n // 2 :]), (order[n // 2 :], order[: n // 2])


def crossed(pairs: Pairs, seed: int, judged: Callable[[Ints], Found]) -> Found:
    """Every pair as the half it is not in would have it judged."""
    whole = Found(*(np.zeros(pairs.n) for _ in fields(Found)))
    for learn, test in halves(pairs.n, seed):
        part = judged(learn)
        for field in fields(Found):
            getattr(whole, field.name)[test] = getattr(part, field.name)[test]
    return whole


def by_labels(pairs: Pairs, scores_J_N: Floats, how: Normalise, labels: int | None = None) -> Callable[[Ints], Found]:
    """Judged with weights learned on these pairs, or on the first few of them."""
    said, gold, scaled = pair_votes(scores_J_N, pairs.pairs_P_2), pairs.gold_P, normalised(scores_J_N, how)

    def judged(learn: Ints) -> Found:
        few = learn[:labels]
        return found(pairs, scaled, taught([said[p] for p in few], [gold[p] for p in few]))

    return judged


def by_best(pairs: Pairs, scores_J_N: Floats) -> Callable[[Ints], Found]:
    """Judged by the one judge that was best on these pairs."""
    credits_J_P = np.stack([alone(pairs, scores_N) for scores_N in scores_J_N])
    scaled = normalised(scores_J_N, "minmax")

    def judged(learn: Ints) -> Found:
        best = int(credits_J_P[:, learn].mean(axis=1).argmax())
        return found(pairs, scaled[best : best + 1], [1.0])

    return judged


def mean_credit(several: Sequence[Found]) -> Floats:
    credits: Floats = np.mean([one.credit_P for one in several], axis=0)
    return credits


# --- does disagreement say where it is wrong -------------------------------------------------------------------------


def aurocs(doubt_P: Floats, credit_P: Floats, weight_B_P: Floats) -> Floats:
    """Chance that a wrong pair is more doubtful than a right one, equal doubts one half, for each row of weights.

    A credit in between is partly right and partly wrong. NaN where all are right, or all wrong.

    >>> aurocs(np.array([0.3, 0.1, 0.1, 0.0]), np.array([0.0, 1.0, 0.0, 1.0]), np.ones((1, 4)))
    array([0.875])
    """
    order_P = np.argsort(doubt_P, kind="stable")
    starts_G = np.unique(doubt_P[order_P], return_index=True)[1]
    wrong_B_G = np.add.reduceat((weight_B_P * (1 - credit_P))[:, order_P], starts_G, axis=1)
    right_B_G = np.add.reduceat((weight_B_P * credit_P)[:, order_P], starts_G, axis=1)
    below_B_G = right_B_G.cumsum(axis=1) - right_B_G / 2
    with np.errstate(invalid="ignore"):
        area: Floats = (wrong_B_G * below_B_G).sum(axis=1) / (wrong_B_G.sum(axis=1) * right_B_G.sum(axis=1))
    return area


def auroc(doubt_P: Floats, credit_P: Floats, other_P: Floats | None = None) -> Ranged:
    """With its bootstrap interval over pairs, NaN where no pair is wrong; with another doubt, how much higher than that
    one's."""

    def measure(weight_B_P: Floats) -> Floats:
        area = aurocs(doubt_P, credit_P, weight_B_P)
        return area if other_P is None else area - aurocs(other_P, credit_P, weight_B_P)

    n, value = len(doubt_P), float(measure(np.ones((1, len(doubt_P))))[0])
    if np.isnan(value):
        return Ranged(value, value, value)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
    low, high = np.nanquantile(measure(drawn), [0.025, 0.975])
    return Ranged(value, float(low), float(high))


def curve(doubt_P: Floats, credit_P: Floats) -> RiskCoverage:
    """Kept from the least doubtful on; doubts in [0, 1]."""
    return risk_coverage((1 - doubt_P).tolist(), credit_P.tolist())


def area_gain(doubt_P: Floats, other_P: Floats, credit_P: Floats, resamples: int = 500) -> Ranged:
    """Area under risk over coverage by the one doubt minus that by the other; below 0 the first is better."""

    def gain(rows: Ints) -> float:
        return curve(doubt_P[rows], credit_P[rows]).area - curve(other_P[rows], credit_P[rows]).area

    rng, n = np.random.default_rng(0), len(doubt_P)
    low, high = np.quantile([gain(rng.integers(n, size=n)) for _ in range(resamples)], [0.025, 0.975])
    return Ranged(gain(np.arange(n)), float(low), float(high))


def kept_at(told: RiskCoverage, coverage: float) -> float:
    """Accuracy of this share of the pairs; of equally doubtful ones a part is kept in expectation."""
    shares = np.array([0.0, *told.coverage])
    rights = np.array([0.0, *(c * (1 - r) for c, r in zip(told.coverage, told.risk, strict=True))])
    return float(np.interp(coverage, shares, rights) / coverage)


def threshold_for(disagreement_P: Floats, share: float) -> tuple[float, float]:
    """The least threshold that keeps at least this share, and the share that it keeps."""
    known = np.sort(disagreement_P)
    at = float(known[int(np.ceil(share * len(known) - 1e-9)) - 1])
    return at, float((known <= at).mean())
