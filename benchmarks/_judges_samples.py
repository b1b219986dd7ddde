"""Samples of one model judged by a reward model and by each other's answers: private to `judges_recorded.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from _behaviour import lines
from _judges_measure import Ranged, normalised
from _judges_pairs import Bools, Floats, Ints
from pluribus.consensus.rewards import Normalise, consensus
from pluribus.consensus.subsets import codes
from pluribus.panel import answers, right_Q_A
from pluribus.stats import cluster_bootstrap
from subcouncils import panel_of_folder

FOLDER = Path("recorded", "math100_8samples")
JUDGES = ("reward model", "votes")


@dataclass(frozen=True, slots=True)
class Samples:
    """Candidates of all questions in one row, k of each question."""

    scores_J_N: Floats
    right_N: Bools
    k: int

    @property
    def question_N(self) -> Ints:
        return np.arange(len(self.right_N)) // self.k

    @property
    def contests_P_2(self) -> Ints:
        """Every right candidate with every wrong one of the same question."""
        same = self.question_N[:, None] == self.question_N
        return np.argwhere(same & self.right_N[:, None] & ~self.right_N)


def math100(data: Path, cache: Path) -> Samples:
    """Judges: the recorded scores, and the share of a question's other samples that give the same answer."""
    panel = panel_of_folder(data / FOLDER, cache)
    said = {
        (row["question_id"], row["sample"]): row["recorded_rm_score"]
        for row in lines(data / FOLDER / "outputs.jsonl.gz")
    }
    k = len(panel.members)
    model = [said[item.question_id, sample] for item in panel.items for sample in range(k)]
    votes = agreeing(codes(answers(panel)))
    return Samples(np.array([model, votes.reshape(-1)]), right_Q_A(panel).reshape(-1) > 0, k)


def agreeing(codes_Q_K: Ints) -> Floats:
    """Share of the other samples with the same answer; NaN: no answer.

    >>> agreeing(np.array([[0, 0, 1, -1]])).round(2).tolist()
    [[0.33, 0.33, 0.0, nan]]
    """
    same = (codes_Q_K[:, :, None] == codes_Q_K[:, None, :]).sum(axis=2) - 1
    return np.where(codes_Q_K < 0, np.nan, same / (codes_Q_K.shape[1] - 1))


def best_of(samples: Samples, value_N: Floats) -> Floats:
    """Of each question: is the candidate of the highest value right; ties at their expectation."""
    value_Q_K = np.nan_to_num(np.round(value_N, 9), nan=-1.0).reshape(-1, samples.k)
    top_Q_K = value_Q_K == value_Q_K.max(axis=1, keepdims=True)
    credit: Floats = (top_Q_K * samples.right_N.reshape(-1, samples.k)).sum(axis=1) / top_Q_K.sum(axis=1)
    return credit


def doubt_of_best(samples: Samples, value_N: Floats, disagreement_N: Floats) -> Floats:
    """Of each question: the mean disagreement about the candidates of the highest value."""
    value_Q_K = np.nan_to_num(np.round(value_N, 9), nan=-1.0).reshape(-1, samples.k)
    top_Q_K = value_Q_K == value_Q_K.max(axis=1, keepdims=True)
    doubt: Floats = (top_Q_K * np.nan_to_num(disagreement_N).reshape(-1, samples.k)).sum(axis=1) / top_Q_K.sum(axis=1)
    return doubt


def contest_credit(samples: Samples, value_N: Floats) -> Floats:
    """Of each pair of a right and a wrong candidate: is the right one ahead; equal values are half."""
    ahead = np.nan_to_num(np.round(value_N, 9), nan=-1.0)[samples.contests_P_2]
    credit: Floats = np.where(ahead[:, 0] == ahead[:, 1], 0.5, ahead[:, 0] > ahead[:, 1]).astype(np.float64)
    return credit


def by_question(samples: Samples, credit_P: Floats) -> Ranged:
    """The mean over pairs, its interval by resampling questions."""
    told = cluster_bootstrap(credit_P.tolist(), samples.question_N[samples.contests_P_2[:, 0]].tolist())
    return Ranged(told.value, told.low, told.high)


def values(samples: Samples, how: Normalise, weights_J: Sequence[float]) -> tuple[Floats, Floats]:
    """The council's rewards and disagreements."""
    told = consensus(normalised(samples.scores_J_N, how), weights_J)
    return told.value_N, told.disagreement_N
