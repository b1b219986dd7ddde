"""BERTScore: each token's contextual vector is matched with the closest one of the other text.

Vectors come from `pluribus.embedders`; here is the arithmetic.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluribus.metrics._text import NONE, Overlap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """A text as its tokens' vectors, each with the weight of its token."""

    vectors_T_D: NDArray[np.floating]
    """Of any length; a row of zeros is close to nothing."""
    weight_T: NDArray[np.floating]
    """At least 0. A token of weight 0, such as [CLS], can be matched and is not counted itself."""


def bertscore(candidate: Weighted, references: Sequence[Weighted]) -> Overlap:
    """BERTScore of a text against its references.

    P = Σ_i w_i max_j cos(x_i, y_j) / Σ_i w_i over the candidate's tokens x, R the same over the reference's, and
    F1 = 2 P R / (P + R). Of several references each of the three is the largest.

    >>> import numpy as np
    >>> text = Weighted(np.eye(3)[[0, 1]], np.ones(2))
    >>> bertscore(text, [Weighted(np.eye(3)[[0, 1, 2]], np.ones(3))]).f1
    0.8

    Args:
        candidate: (T, D) vectors.
        references: at least one, of the same D.

    Returns: each in [−1, 1]; a text without weight has 0. Not rescaled: with most encoders unrelated texts, too, score
        far above 0, so compare only within one encoder and layer.

    Source: Zhang et al. 2020, BERTScore, 1904.09675.
    """
    if not references:
        raise ValueError("there is no reference to compare with")
    found = [_matched(candidate, reference) for reference in references]
    return Overlap(*(max(getattr(one, name) for one in found) for name in ("precision", "recall", "f1")))


def _matched(candidate: Weighted, reference: Weighted) -> Overlap:
    if not candidate.weight_T.sum() > 0 or not reference.weight_T.sum() > 0:
        return NONE
    close_T_T = _unit(candidate.vectors_T_D) @ _unit(reference.vectors_T_D).T
    precision = _mean(close_T_T.max(axis=1), candidate.weight_T)
    recall = _mean(close_T_T.max(axis=0), reference.weight_T)
    both = precision + recall
    return Overlap(precision, recall, 2 * precision * recall / both if both else 0.0)


def _mean(values_T: NDArray[np.float64], weight_T: NDArray[np.floating]) -> float:
    return float(values_T @ weight_T / weight_T.sum())


def _unit(vectors_T_D: NDArray[np.floating]) -> NDArray[np.float64]:
    import numpy as np

    vectors = np.asarray(vectors_T_D, dtype=np.float64)
    length_T = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = vectors / np.where(length_T > 0, length_T, 1.0)
    return unit


def inverse_frequencies(references: Iterable[Collection[int]]) -> Callable[[int], float]:
    """Token → ln((n + 1) / (c + 1)), c of the n reference texts holding it: rare words count more.

    >>> weight = inverse_frequencies([{1, 2}, {1, 3}])
    >>> weight(1), round(weight(2), 4), round(weight(9), 4)
    (0.0, 0.4055, 1.0986)

    Source: Zhang et al. 2020, BERTScore, 1904.09675, section 3, with the smoothing of the package `bert-score`.
    """
    n, counts = 0, Counter[int]()
    for text in references:
        n += 1
        counts.update(set(text))
    return lambda token: math.log((n + 1) / (counts[token] + 1))
