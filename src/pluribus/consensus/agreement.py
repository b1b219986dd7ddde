"""How far a council agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


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
