"""Trajectory augmentation: up to three different right replies per question, chosen to be far apart.

The first is the one that `rsft` would take; each next one is the reply whose nearest chosen one is furthest away:

    argmax_i min_{j chosen} (1 − cos(x_i, x_j))

Of equally far ones a corrective reply is preferred, then the better one. Questions with fewer than two different right
replies are left out.

Source: AgentArk's data augmentation, Luo et al. 2026, arXiv 2602.03955; the greedy choice: Gonzalez 1985.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluribus.distil import NO_RIGHT, Case, Found, Material, Trace
from pluribus.distil._choosing import (
    LABEL_HINT,
    best_first,
    check_share,
    check_weight,
    demonstration,
    different,
    repeated,
    right,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KIND = "demonstrations"
HINT = f"{LABEL_HINT}; a question needs two different right replies: more seats, rounds or runs give more"
ONE_ONLY = "questions with a single right reply"
BEYOND = "right replies beyond the number per question"
MOST = 3
_TOGETHER = 4_096
"""Texts that are embedded at once, about."""
_SAME = 1e-9
"""Distances that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be varied."""

    per_question: int = MOST
    """Replies of a question at most, 1 to 3."""
    near_duplicates: float | None = None
    """Share of common word 5-grams from which a reply is a copy of an earlier one; None: the same words."""
    corrective_weight: int = 1
    """How often a reply stands in the file whose seat was wrong before."""

    def __post_init__(self) -> None:
        if not 1 <= self.per_question <= MOST:
            raise ValueError(f"per_question is {self.per_question}; expected 1, 2 or {MOST}")
        check_share(self.near_duplicates)
        check_weight(self.corrective_weight)


def examples(material: Material, settings: Settings) -> Found:
    """Demonstrations of each question that has two different right replies or more. ValueError without `embed`."""
    if material.embed is None:
        raise ValueError("view da needs an embedder")
    left_out = Counter[str]()
    able, available = [], []
    for case in material.cases:
        good = right(case, left_out)
        available += [one.text for one in good]
        several = different(best_first(good, material.seed), settings.near_duplicates, left_out)
        if len(several) > 1:
            able.append((case, several))
        else:
            left_out[ONE_ONLY if several else NO_RIGHT] += 1
    chosen = []
    for part in _portions(able):
        vectors_N_D = material.embed([one.text for _, several in part for one in several])
        start = 0
        for case, several in part:
            vectors_M_D = vectors_N_D[start : start + len(several)]
            start += len(several)
            taken = spread(vectors_M_D, settings.per_question, [one.corrective for one in several])
            left_out[BEYOND] += len(several) - len(taken)
            chosen += [demonstration(case, several[at]) for at in taken]
    return Found(repeated(chosen, settings.corrective_weight), +left_out, tuple(available))


def _portions(able: Sequence[tuple[Case, list[Trace]]]) -> Iterator[list[tuple[Case, list[Trace]]]]:
    """Whole questions, about as many at once as there is room for."""
    part: list[tuple[Case, list[Trace]]] = []
    texts = 0
    for one in able:
        part.append(one)
        texts += len(one[1])
        if texts >= _TOGETHER:
            yield part
            part, texts = [], 0
    if part:
        yield part


def spread(vectors_N_D: NDArray[np.float64], k: int, preferred: Sequence[bool] = ()) -> list[int]:
    """Indexes of up to k rows that are far apart, the first row among them, in the order taken.

    >>> import numpy as np
    >>> spread(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), 2)
    [0, 2]

    Args:
        vectors_N_D: unit rows, best first.
        k: at least 1.
        preferred: which of equally far rows come first.
    """
    import numpy as np

    wanted_N = np.array(preferred, dtype=bool) if len(preferred) else np.zeros(len(vectors_N_D), bool)
    taken = [0]
    far_N = 1 - vectors_N_D @ vectors_N_D[0]
    while len(taken) < min(k, len(vectors_N_D)):
        far_N[taken] = -np.inf
        furthest_N = far_N >= far_N.max() - _SAME
        both_N = furthest_N & wanted_N
        taken.append(int(np.flatnonzero(both_N if both_N.any() else furthest_N)[0]))
        far_N = np.minimum(far_N, 1 - vectors_N_D @ vectors_N_D[taken[-1]])
    return taken
