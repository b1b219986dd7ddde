"""maj@k: how right the majority of k samples is."""

from __future__ import annotations

from collections.abc import Sequence

from pluribus.objectives import Group, value


def maj_at_k(answers: Sequence[str | None], rewards: Sequence[float], k: int) -> float:
    """Unbiased estimate from n samples: U_k of the objective `majority`, the mean over all k-subsets, none drawn twice.

    (1 / C(n, k)) Σ_{S of k samples} mean reward of the answers with most votes in S.

    Args:
        answers: (n,), canonical; None is no vote, and a subset without votes has 0.
        rewards: (n,), 1 for a right answer and 0 for a wrong one, or any finite credit; equal answers have equal ones.
        k: samples that vote, 1 … n.

    Returns: in the range of the rewards and 0.

    Raises ValueError outside these ranges.

    Source: maj@k as in Lewkowycz et al. 2022, arXiv 2206.14858; over all subsets as in `pluribus.objectives.majority`.

    >>> round(maj_at_k(["4", "4", "5", "6"], [1, 1, 0, 0], 3), 9)
    0.666666667
    """
    return value(Group(rewards, answers=answers), "majority", k)
