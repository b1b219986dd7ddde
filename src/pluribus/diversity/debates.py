"""What a debate did: when it settled, and who moved whom.

`standing_R_A` holds each agent's answer as it stands after each round; None: none so far. Answers are canonical: equal
strings are equal answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Standing = Sequence[Sequence[str | None]]
Right = Sequence[Sequence[float | None]]
Heard = Sequence[Sequence[Collection[int]]]


@dataclass(frozen=True, slots=True)
class Moves:
    """Who moved whom, counted over listeners and rounds; matrices are [listener, speaker].

    Every time a listener heard at least one other answer than its own is one chance; it is in exactly one of `adopted`,
    `kept` and `alone`, split equally among the speakers it is put down to.
    """

    adopted_A_A: NDArray[np.float64]
    """The listener took over the speaker's answer of the round before, which it did not hold."""
    corrected_A_A: NDArray[np.float64]
    """… and so went from not right to right."""
    corrupted_A_A: NDArray[np.float64]
    """… and so went from right to wrong."""
    kept_A_A: NDArray[np.float64]
    """The speaker held another answer, and the listener stayed with its own."""
    alone_A: NDArray[np.float64]
    """The listener went to an answer that nobody it heard had held, or to none."""

    @property
    def chances(self) -> float:
        """How many times a listener heard another answer than its own."""
        return float(self.adopted_A_A.sum() + self.kept_A_A.sum() + self.alone_A.sum())


def settled_round(standing_R_A: Standing, *, unanimous: bool = False) -> int | None:
    """The first round from which the leading answer never changes again.

    min{r: L_s = L_R for all s ≥ r}, L_s the set of answers with most votes after round s (a tie is a set of several).

    >>> settled_round([["4", "5", "5"], ["4", "4", "5"], ["4", "4", "4"]])
    1
    >>> settled_round([["4", "5", "5"], ["4", "4", "5"], ["4", "4", "4"]], unanimous=True)
    2

    Args:
        standing_R_A: answers after each round.
        unanimous: from which all agents hold one and the same answer.

    Returns: counted from 0; None where nobody answers in the end, or (unanimous) where they do not all agree.
    """
    leads = [_lead(row, unanimous) for row in standing_R_A]
    if not leads or not leads[-1]:
        return None
    changed = [r for r, lead in enumerate(leads) if lead != leads[-1]]
    return changed[-1] + 1 if changed else 0


def moves(
    standing_Q_R_A: Sequence[Standing],
    right_Q_R_A: Sequence[Right] | None = None,
    heard_Q_R_A: Sequence[Heard] | None = None,
) -> Moves:
    """Who moved whom, summed over debates.

    Listener i holds a in round r − 1 and b ≠ a in round r; S = {j heard by i: j held b in round r − 1}. Each j in S
    gets 1/|S| of the adoption. Where i stays with a, each of the |T| speakers it heard with an answer other than a gets
    1/|T| of a `kept`.

    >>> moves([[["4", "5", "5"], ["5", "5", "5"]]]).adopted_A_A.tolist()
    [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]

    Args:
        standing_Q_R_A: per question the answers after each round; the same agents in all.
        right_Q_R_A: of the same shape: 1 right, 0 or None not right; None: `corrected` and `corrupted` stay 0.
        heard_Q_R_A: heard[question][round][listener] are the speakers whose answers of the round before the listener
            read in that round; round 0 is not looked at; None: everybody reads everybody.

    Returns: counts, in agents' order. Agents that answer again at random also seem to be moved: compare with `alone`.

    Raises: ValueError where debates differ in their agents.
    """
    import numpy as np

    n = _agents(standing_Q_R_A)
    counts = Moves(np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros(n))
    for q, standing_R_A in enumerate(standing_Q_R_A):
        right_R_A = None if right_Q_R_A is None else right_Q_R_A[q]
        heard_R_A = None if heard_Q_R_A is None else heard_Q_R_A[q]
        _debate(counts, standing_R_A, right_R_A, heard_R_A)
    return counts


def _debate(counts: Moves, standing_R_A: Standing, right_R_A: Right | None, heard_R_A: Heard | None) -> None:
    for r in range(1, len(standing_R_A)):
        was, now = standing_R_A[r - 1], standing_R_A[r]
        for i in range(len(now)):
            speakers = range(len(was)) if heard_R_A is None else heard_R_A[r][i]
            others = [j for j in speakers if was[j] not in (None, was[i])]
            turned = None if right_R_A is None else (right_R_A[r - 1][i] == 1, right_R_A[r][i] == 1)
            if others:
                _count(counts, i, others, [j for j in others if was[j] == now[i]], now[i] == was[i], turned)


def _count(
    counts: Moves, i: int, others: list[int], movers: list[int], kept: bool, turned: tuple[bool, bool] | None
) -> None:
    """One listener in one round, who heard other answers than its own."""
    if kept:
        counts.kept_A_A[i, others] += 1 / len(others)
    elif not movers:
        counts.alone_A[i] += 1
    else:
        counts.adopted_A_A[i, movers] += 1 / len(movers)
        counts.corrected_A_A[i, movers] += (turned == (False, True)) / len(movers)
        counts.corrupted_A_A[i, movers] += (turned == (True, False)) / len(movers)


def _lead(answers: Sequence[str | None], unanimous: bool) -> frozenset[str]:
    votes = Counter(answer for answer in answers if answer is not None)
    if unanimous:
        return frozenset(votes) if len(votes) == 1 and None not in answers else frozenset()
    return frozenset(answer for answer, n in votes.items() if n == max(votes.values()))


def _agents(standing_Q_R_A: Sequence[Standing]) -> int:
    sizes = {len(row) for standing in standing_Q_R_A for row in standing}
    if len(sizes) > 1:
        raise ValueError(f"debates of {sorted(sizes)} agents; expected the same agents in every round of all")
    return max(sizes, default=0)
