"""K*: how many different directions a council's texts take, as the effective rank of their embeddings.

Rows are texts, of unit length (a row of zeros is an empty text). Everything comes from the spectrum of the
second-moment matrix, got through the smaller of MᵀM and MMᵀ; batches are worked through in bounded memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluribus.diversity._spectra import Bools, Floats, Rows, batches, entropies, means, rows, single

WRONG = 0.3
"""Weight of a wrong answer's row in `weighted`; a right one's is 1."""
UNKNOWN = 0.5
"""Weight of a row whose rightness nobody can say."""
PENALTY = 0.5
"""How much of the wrong group's N* `conditioned` takes off the correct group's."""


@dataclass(frozen=True, slots=True)
class Conditioned:
    """N* of those who are right and of those who are wrong."""

    correct: float | None
    """None: nobody is right."""
    wrong: float | None
    effective: float | None
    """N*_correct − 0.5 N*_wrong; N*_correct where nobody is wrong; None where nobody is right."""


@dataclass(frozen=True, slots=True)
class ConditionedBatch:
    """The same over questions; NaN: undefined."""

    correct_Q: Floats
    wrong_Q: Floats
    effective_Q: Floats


def kstar(M_N_D: ArrayLike, *, centred: bool = False) -> float:
    """Effective number of different texts: N* = exp(H), H the entropy of the spectrum.

    λ = μ / Σ μ over the eigenvalues μ of MᵀM; H = −Σ λ ln λ.

    >>> kstar([[1.0, 0.0], [0.0, 1.0]]), kstar([[1.0, 0.0], [1.0, 0.0]])
    (2.0, 1.0)

    Args:
        M_N_D: (n, d) embeddings; with rows of unit length it is the Vendi score with a linear kernel.
        centred: the rows' mean is taken off first: how many directions they spread in around it.

    Returns: in [1, min(n, d)] (centred: at most n − 1); 1 for no rows, for rows of zeros and, centred, for copies.

    Raises: ValueError naming the first row that is not finite.

    Source: Yang et al. 2026, arXiv 2602.03794; Friedman and Dieng 2022, arXiv 2210.02410.
    """
    return float(np.exp(entropy(M_N_D, centred=centred)))


def entropy(M_N_D: ArrayLike, *, centred: bool = False) -> float:
    """Entropy of the spectrum, ln of `kstar`.

    H = −Σ λ ln λ.

    >>> round(entropy([[1.0, 0.0], [0.0, 1.0]]), 4)
    0.6931

    Args: as for `kstar`.

    Returns: nats, in [0, ln min(n, d)].
    """
    return float(_entropies(single(M_N_D), centred)[0])


def kstar_batch(M_Q_N_D: ArrayLike, mask_Q_N: ArrayLike | None = None, *, centred: bool = False) -> Floats:
    """`kstar` of every question.

    >>> kstar_batch([[[1.0, 0.0], [0.0, 1.0]]] * 2, [[True, True], [True, False]]).tolist()
    [2.0, 1.0]

    Args:
        M_Q_N_D: (questions, n, d) embeddings, any float type; worked on in float64, some questions at a time.
        mask_Q_N: which rows count, as if the others were cut out; None: all. What stands in the others is not read.
        centred: as for `kstar`.

    Returns: (questions,).

    Raises: ValueError naming the first row that counts and is not finite.
    """
    return np.exp(_entropies(rows(M_Q_N_D, mask_Q_N), centred))


def entropy_batch(M_Q_N_D: ArrayLike, mask_Q_N: ArrayLike | None = None, *, centred: bool = False) -> Floats:
    """`entropy` of every question, nats.

    >>> entropy_batch([[[1.0, 0.0], [1.0, 0.0]]]).tolist()
    [0.0]

    Args: as for `kstar_batch`.
    """
    return _entropies(rows(M_Q_N_D, mask_Q_N), centred)


def weighted(M_N_D: ArrayLike, correct_N: ArrayLike) -> float:
    """N* with each row scaled by what its answer is worth: right 1, wrong 0.3, unknown 0.5.

    N*(diag(w) M), Σ w = n; the trace normalises the spectrum, so only the ratios of the weights matter.

    >>> round(weighted([[1.0, 0.0], [0.0, 1.0]], [1, 0]), 4)
    1.3298

    Args:
        M_N_D: as for `kstar`.
        correct_N: 1 right, 0 wrong, NaN unknown.

    Returns: in [1, min(n, d)].
    """
    return float(_weighted(single(M_N_D), _row(correct_N))[0])


def weighted_batch(M_Q_N_D: ArrayLike, correct_Q_N: ArrayLike, mask_Q_N: ArrayLike | None = None) -> Floats:
    """`weighted` of every question.

    >>> weighted_batch([[[1.0, 0.0], [0.0, 1.0]]], [[1, 1]]).tolist()
    [2.0]

    Args: as for `kstar_batch` and `weighted`.

    Returns: (questions,).
    """
    return _weighted(rows(M_Q_N_D, mask_Q_N), correct_Q_N)


def conditioned(M_N_D: ArrayLike, correct_N: ArrayLike) -> Conditioned:
    """N* of the right and of the wrong answers, and what is left of the first when half the second is taken off.

    effective = N*_correct − 0.5 N*_wrong.

    >>> conditioned([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1, 1, 0])
    Conditioned(correct=2.0, wrong=1.0, effective=1.5)

    Args: as for `weighted`; unknown rows are in neither group.
    """
    batch = _conditioned(single(M_N_D), _row(correct_N))
    correct, wrong, effective = (
        None if np.isnan(value[0]) else float(value[0]) for value in (batch.correct_Q, batch.wrong_Q, batch.effective_Q)
    )
    return Conditioned(correct, wrong, effective)


def conditioned_batch(
    M_Q_N_D: ArrayLike, correct_Q_N: ArrayLike, mask_Q_N: ArrayLike | None = None
) -> ConditionedBatch:
    """`conditioned` of every question.

    >>> conditioned_batch([[[1.0, 0.0], [0.0, 1.0]]], [[0, 0]])
    ConditionedBatch(correct_Q=array([nan]), wrong_Q=array([2.]), effective_Q=array([nan]))

    Args: as for `kstar_batch` and `weighted`.
    """
    return _conditioned(rows(M_Q_N_D, mask_Q_N), correct_Q_N)


def delta(M_N_D: ArrayLike) -> Floats:
    """What each row adds: N* of all minus N* of the others.

    δ_i = N*(M) − N*(M without row i).

    >>> delta([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, 1.0]

    Args: as for `kstar`.

    Returns: (n,); below 0 where a row makes the others' directions less even; 0 for a row that stands alone.
    """
    delta_N: Floats = _delta(single(M_N_D))[0]
    return delta_N


def delta_batch(M_Q_N_D: ArrayLike, mask_Q_N: ArrayLike | None = None) -> Floats:
    """`delta` of every question.

    >>> delta_batch([[[1.0, 0.0], [0.0, 1.0]]], [[True, False]]).tolist()
    [[0.0, nan]]

    Args: as for `kstar_batch`.

    Returns: (questions, n); NaN for rows that do not count.
    """
    return _delta(rows(M_Q_N_D, mask_Q_N))


def mean_rows(M_K_N_D: ArrayLike, mask_K_N: ArrayLike | None = None) -> Floats:
    """Each agent's mean embedding over questions or rounds; not scaled back to unit length.

    >>> mean_rows([[[1.0, 0.0]], [[0.0, 1.0]]]).tolist()
    [[0.5, 0.5]]

    Args:
        M_K_N_D: (questions or rounds, agents, d).
        mask_K_N: which of them are there.

    Returns: (agents, d); zeros for an agent that is never there.
    """
    return means(rows(M_K_N_D, mask_K_N), axis=0)


def _entropies(given: Rows, centred: bool) -> Floats:
    H_Q = np.zeros(len(given.M_Q_N_D))
    for batch in batches(given, centred=centred):
        H_Q[batch.at] = entropies(batch.matrix_B_S_S, batch.floor_B)
    return H_Q


def _weighted(given: Rows, correct_Q_N: ArrayLike) -> Floats:
    correct = _checked(given, correct_Q_N)
    return _scaled(given, np.where(np.isnan(correct), UNKNOWN, np.where(correct == 1, 1.0, WRONG)))


def _conditioned(given: Rows, correct_Q_N: ArrayLike) -> ConditionedBatch:
    correct = _checked(given, correct_Q_N)
    right, wrong = (_group(given, correct == code) for code in (1, 0))
    return ConditionedBatch(right, wrong, right - np.where(np.isnan(wrong), 0.0, PENALTY * wrong))


def _group(given: Rows, member_Q_N: Bools) -> Floats:
    """N* of some of the rows; NaN where there is none."""
    counts = member_Q_N if given.mask_Q_N is None else member_Q_N & given.mask_Q_N
    return np.where(counts.any(axis=1), _scaled(given, counts), np.nan)


def _scaled(given: Rows, weight_Q_N: Floats | Bools) -> Floats:
    """N* of rows scaled by weights, which scale the rows and columns of the Gram matrix."""
    H_Q = np.zeros(len(given.M_Q_N_D))
    for batch in batches(given, gram=True):
        weight = weight_Q_N[batch.at]
        H_Q[batch.at] = entropies(batch.matrix_B_S_S * (weight[:, :, None] * weight[:, None, :]))
    return np.exp(H_Q)


def _delta(given: Rows) -> Floats:
    """Every question's N Gram matrices of N − 1 rows are cut out of its one Gram matrix."""
    q, n, _ = given.M_Q_N_D.shape
    out = np.zeros((q, n))
    others = np.array([[j for j in range(n) if j != i] for i in range(n)], dtype=np.int64).reshape(n, max(n - 1, 0))
    for batch in batches(given, gram=True, cells=2 * n**3):
        whole = np.exp(entropies(batch.matrix_B_S_S))
        without = batch.matrix_B_S_S[:, others[:, :, None], others[:, None, :]]
        out[batch.at] = whole[:, None] - np.exp(entropies(without))
    return out if given.mask_Q_N is None else np.where(given.mask_Q_N, out, np.nan)


def _row(correct_N: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(correct_N, dtype=np.float64)[None]


def _checked(given: Rows, correct_Q_N: ArrayLike) -> Floats:
    correct = np.asarray(correct_Q_N, dtype=np.float64)
    if correct.shape != given.M_Q_N_D.shape[:2]:
        raise ValueError(f"correct is of shape {correct.shape}; expected {given.M_Q_N_D.shape[:2]}, one per row")
    odd = correct[~np.isnan(correct) & (correct != 0) & (correct != 1)]
    if odd.size:
        raise ValueError(f"correct holds {odd[0]}; expected 1 (right), 0 (wrong) or NaN (unknown)")
    return correct
