"""How far a council agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def pairwise(answers: Sequence[str | None]) -> float | None:
    """Share of the pairs of answers that are equal.

    Σ_a n_a (n_a − 1) / (n (n − 1)) over the n answers given.

    >>> pairwise(["4", "4", "5", None])
    0.3333333333333333

    Args:
        answers: one per voter, canonical; None gave no answer and is in no pair.

    Returns: in [0, 1]; None with fewer than two answers.
    """
    given = [answer for answer in answers if answer is not None]
    if len(given) < 2:
        return None
    return sum(n * (n - 1) for n in Counter(given).values()) / (len(given) * (len(given) - 1))


def unanimous(answers: Sequence[str | None]) -> bool:
    """Whether every voter gave an answer and all gave the same.

    >>> unanimous(["4", "4"]), unanimous(["4", None]), unanimous([])
    (True, False, False)
    """
    return len(answers) > 0 and None not in answers and len(set(answers)) == 1


def shared_codes(answers: Sequence[Sequence[str | None]]) -> NDArray[np.int64]:
    """(questions, voters): equal numbers for equal answers, across all questions; −1 for none.

    >>> shared_codes([["A", "B"], ["B", None]]).tolist()
    [[0, 1], [1, -1]]
    """
    import numpy as np

    seen: dict[str, int] = {}
    rows = [[-1 if answer is None else seen.setdefault(answer, len(seen)) for answer in row] for row in answers]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(rows[0]) if rows else 0)


def fleiss_kappa(codes_Q_A: ArrayLike) -> float | None:
    """Agreement of many voters beyond chance.

    κ = (P − E) / (1 − E); P the mean over questions of Σ_c n_qc (n_qc − 1) / (n_q (n_q − 1)), E = Σ_c p_c², p_c the
    mean over questions of n_qc / n_q; n_qc of the n_q voters who answered question q said c.

    >>> fleiss_kappa([[0, 0, 0], [1, 1, 1]]), fleiss_kappa([[0, 1], [1, 0]])
    (1.0, -1.0)

    Args:
        codes_Q_A: categories as whole numbers that mean the same in every question (`shared_codes`; numbers that start
            again in each question would make up chance agreement); −1: no answer. Voters may differ in number from
            question to question; a question with fewer than two answers is left out.

    Returns: at most 1; 0 is chance; None without a question of two answers, or where all answers are one category.
        With open answers few categories come back from one question to another, E is near 0 and κ near P.

    Source: Fleiss 1971, Psychol. Bull. 76, 378–382; unequal numbers as in Gwet 2014, Handbook of Inter-Rater
        Reliability, chapter 2.
    """
    import numpy as np

    codes = np.asarray(codes_Q_A)
    if codes.ndim != 2:
        raise ValueError(f"codes are of shape {codes.shape}; expected (questions, voters)")
    codes = codes[(codes >= 0).sum(axis=1) >= 2]
    if not codes.size:
        return None
    at_Q, n_C = np.nonzero(codes >= 0)[0], int(codes.max()) + 1
    cells, n_qc = np.unique(at_Q * n_C + codes[codes >= 0], return_counts=True)
    n_Q = np.bincount(at_Q)
    observed = float((np.bincount(cells // n_C, n_qc * (n_qc - 1)) / (n_Q * (n_Q - 1))).mean())
    share_C = np.bincount(cells % n_C, n_qc / n_Q[cells // n_C]) / len(codes)
    chance = float((share_C**2).sum())
    return None if np.count_nonzero(share_C) == 1 else (observed - chance) / (1 - chance)
