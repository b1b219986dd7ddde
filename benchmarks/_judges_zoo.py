"""A council of the zoo's models as judges of a stored run: private to `judges_recorded.py`.

What the judges said is in the workspace after `pluribus reward RUN --judges FILE`; here it costs no call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from _judges_measure import Ranged, aurocs
from _judges_pairs import Bools, Floats, Ints
from pluribus.consensus.pairs import Basis, form_pairs
from pluribus.consensus.rewards import Scale, apply_scale, consensus, fit_scale
from pluribus.judge_config import read_judges
from pluribus.judging import Rewarded, reward_run
from pluribus.stats import cluster_bootstrap
from pluribus.store import Store


@dataclass(frozen=True, slots=True)
class Judged:
    name: str
    judges: tuple[str, ...]
    weights: tuple[float, ...]
    scores_J_N: Floats
    """Of the last round a judge gave one in."""
    first_J_N: Floats
    """Of round 0."""
    value_N: Floats
    disagreement_N: Floats
    right_N: Bools
    question_N: Ints
    statuses: tuple[str, ...]


def judged(home: Path, run: str, files: list[Path]) -> Iterator[Judged]:
    """The run under each council, by the judges' files."""
    with Store.open(home) as store:
        for file in files:
            yield _table(file.stem, asyncio.run(reward_run(store, run, read_judges(file))))


def _table(name: str, found: Rewarded) -> Judged:
    place = {item: at for at, item in enumerate(found.items)}
    first_J_N = np.full((len(found.weights), len(place)), np.nan)
    for said in found.judgements:
        if said.round == 0 and said.score is not None:
            first_J_N[list(found.weights).index(said.judge), place[said.attempt_id, said.turn]] = said.score
    parts = [(at, part.key, one) for at, part in enumerate(found.asked) for one in part.candidates]
    return Judged(
        name,
        tuple(found.weights),
        tuple(found.weights.values()),
        np.array([[_number(one.scores.get(judge)) for one in found.rewards] for judge in found.weights]),
        first_J_N,
        np.array([_number(one.value) for one in found.rewards]),
        np.array([_number(one.disagreement) for one in found.rewards]),
        np.array([key is not None and one.answer == key.answer for _, key, one in parts]),
        np.array([at for at, _, _ in parts]),
        tuple(one.status for one in found.rewards),
    )


def reweighed(found: Judged, weights_J: Sequence[float], *, again: bool = True) -> Judged:
    """The same with other weights; without the second round where it is not wanted. Scales are those of round 0."""
    scales = [fit_scale(scores_N, "zscore") for scores_N in found.first_J_N]
    scores_J_N = found.scores_J_N if again else found.first_J_N
    told = consensus(normalised_by(scales, scores_J_N), weights_J)
    return replace(found, weights=tuple(weights_J), value_N=told.value_N, disagreement_N=told.disagreement_N)


def normalised_by(scales: Sequence[Scale], scores_J_N: Floats) -> Floats:
    return np.stack([apply_scale(scale, scores_N) for scale, scores_N in zip(scales, scores_J_N, strict=True)])


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def contests(found: Judged, value_N: Floats) -> tuple[Ints, Floats]:
    """Every right reply with every wrong one of its question, and whether it is ahead; equal values are half."""
    same = found.question_N[:, None] == found.question_N
    pairs_P_2 = np.argwhere(same & found.right_N[:, None] & ~found.right_N)
    ahead_P_2 = np.round(value_N, 9)[pairs_P_2]
    known = ~np.isnan(ahead_P_2).any(axis=1)
    credit_P = np.where(ahead_P_2[:, 0] == ahead_P_2[:, 1], 0.5, ahead_P_2[:, 0] > ahead_P_2[:, 1])
    return pairs_P_2[known], credit_P[known].astype(np.float64)


def contest(found: Judged, value_N: Floats) -> Ranged:
    pairs_P_2, credit_P = contests(found, value_N)
    told = cluster_bootstrap(credit_P.tolist(), found.question_N[pairs_P_2[:, 0]].tolist(), resamples=2000)
    return Ranged(told.value, told.low, told.high)


def separates(found: Judged, value_N: Floats) -> Ranged:
    """AUROC of the value for right replies, by resampling questions."""
    known = ~np.isnan(value_N)
    return clustered_auroc(-value_N[known], found.right_N[known].astype(np.float64), found.question_N[known])


def clustered_auroc(doubt_P: Floats, credit_P: Floats, question_P: Ints) -> Ranged:
    """AUROC of the doubt for a wrong pair, by resampling questions."""
    n = int(question_P.max()) + 1
    drawn_B_Q = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=1000).astype(np.float64)
    low, high = np.nanquantile(aurocs(doubt_P, credit_P, drawn_B_Q[:, question_P]), [0.025, 0.975])
    return Ranged(float(aurocs(doubt_P, credit_P, np.ones((1, len(doubt_P))))[0]), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Formed:
    """Pairs as `pluribus prefer` forms them, and what is in them."""

    n: int
    right_over_wrong: int
    wrong_over_right: int
    neither: int
    """Both right, or both wrong."""

    @property
    def accuracy(self) -> float:
        """Of the pairs with one right and one wrong reply."""
        return self.right_over_wrong / max(1, self.right_over_wrong + self.wrong_over_right)


def formed_pairs(found: Judged, most: float | None, basis: Basis = "reward", margin: float = 0.0) -> Formed:
    pairs = form_pairs(
        found.question_N, found.value_N, found.disagreement_N, found.right_N.astype(float), basis=basis, margin=margin,
        max_disagreement=most,
    )  # fmt: skip
    chosen, rejected = found.right_N[pairs.chosen_P], found.right_N[pairs.rejected_P]
    better, worse = int((chosen & ~rejected).sum()), int((~chosen & rejected).sum())
    return Formed(len(chosen), better, worse, len(chosen) - better - worse)
