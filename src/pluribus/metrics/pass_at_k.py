"""pass@k: the chance that at least one of k samples is right."""

from __future__ import annotations

from pluribus.objectives.best import share_with_one


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased estimate from n samples of which c are right: U_k of the objective `pass`, in whole numbers up to one
    last division.

    1 − C(n − c, k) / C(n, k).

    Args:
        n: samples drawn, ≥ 1.
        c: those that are right, 0 … n.
        k: samples one may try, 1 … n.

    Returns: in [0, 1].

    Raises ValueError outside these ranges.

    Source: Chen et al. 2021, arXiv 2107.03374, section 2.1.

    >>> pass_at_k(5, 2, 1), pass_at_k(5, 2, 3), pass_at_k(5, 0, 5)
    (0.4, 0.9, 0.0)
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"pass@{k} of {c} right samples among {n}: needs 0 ≤ c ≤ n and 1 ≤ k ≤ n")
    return share_with_one(n, c, k)
