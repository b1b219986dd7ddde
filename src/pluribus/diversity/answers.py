"""How spread a council's answers are, whatever they say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


def entropy(answers: Sequence[str | None]) -> float | None:
    """Shannon entropy of the answers.

    H = −Σ_a p_a log₂ p_a over the answers given, p_a the share that said a.

    >>> entropy(["4", "4", "5", "5", None])
    1.0

    Args:
        answers: one per voter, canonical; None gave no answer and is not counted.

    Returns: bits, in [0, log₂ n]; None when nobody answered.

    Source: Shannon 1948, Bell Syst. Tech. J. 27, 379–423. It is biased low for few voters.
    """
    shares = _shares(answers)
    return max(0.0, -math.fsum(p * math.log2(p) for p in shares)) if shares else None


def effective_number(answers: Sequence[str | None]) -> float | None:
    """How many equally frequent answers would be as spread.

    2^H.

    >>> effective_number(["4", "4", "5", "5"])
    2.0

    Args: as for `entropy`.

    Returns: in [1, number of different answers]; None when nobody answered.

    Source: Hill 1973, Ecology 54, 427–432, order 1.
    """
    bits = entropy(answers)
    return None if bits is None else 2.0**bits


def gini(answers: Sequence[str | None]) -> float | None:
    """Disagreement: the chance that two answers drawn with replacement differ (Gini–Simpson).

    1 − Σ_a p_a².

    >>> gini(["4", "4", "5", "5"])
    0.5

    Args: as for `entropy`.

    Returns: in [0, 1 − 1/n]; None when nobody answered.
    """
    agreed = consensus(answers)
    return None if agreed is None else 1.0 - agreed


def consensus(answers: Sequence[str | None]) -> float | None:
    """Agreement: the chance that two answers drawn with replacement are equal.

    Σ_a p_a².

    >>> consensus(["4", "4", "4", "5"])
    0.625

    Args: as for `entropy`.

    Returns: in [1/n, 1]; None when nobody answered.
    """
    shares = _shares(answers)
    return math.fsum(p * p for p in shares) if shares else None


def _shares(answers: Sequence[str | None]) -> list[float]:
    counts = Counter(answer for answer in answers if answer is not None)
    return [n / counts.total() for n in counts.values()]
