"""Votes of many sub-councils at once: the same answers counted again for every subset of the voters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CELLS = 500_000
"""Vote counts worked on at once: few enough to stay in a processor's cache."""


def codes(answers: Sequence[Sequence[str | None]]) -> NDArray[np.int64]:
    """(questions, voters): equal numbers for equal answers of a question, in the order first seen; −1 for none.

    >>> codes([["4", "5", None, "4"]]).tolist()
    [[0, 1, -1, 0]]
    """
    import numpy as np

    rows = []
    for row in answers:
        seen: dict[str, int] = {}
        rows.append([-1 if answer is None else seen.setdefault(answer, len(seen)) for answer in row])
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(rows[0]) if rows else 0)


def plurality_credit(
    codes_Q_A: NDArray[np.int64],
    right_Q_A: NDArray[np.float64],
    members_M_A: NDArray[np.bool_],
    tie: str = "fractional",
) -> NDArray[np.float64]:
    """How right the plurality of each subset of voters is on each question.

    credit = share of right ones among the answers with most votes (`fractional`: its expectation when a tie is
    settled at random), or whether the first of them in the order of the voters is right (`first`).

    >>> import numpy as np
    >>> votes, right = codes([["4", "5", "5"]]), np.array([[1.0, 0.0, 0.0]])
    >>> plurality_credit(votes, right, np.array([[True, True, True], [True, True, False]])).tolist()
    [[0.0], [0.5]]

    Args:
        codes_Q_A: as `codes` gives them; −1 abstains.
        right_Q_A: 1, 0 or NaN (unknown, or nothing said) per answer; what is known of an answer of one voter holds for
            the same answer of another.
        members_M_A: which voters sit in each of M subsets.
        tie: fractional or first.

    Returns: (subsets, questions), in [0, 1]; a subset that only abstains has 0; NaN where nobody knows whether a
        leading answer is right, or the whole subset failed.
    """
    import numpy as np

    out = np.empty((len(members_M_A), len(codes_Q_A)))
    kinds_K, kind_Q = _kinds(codes_Q_A, right_Q_A)
    for rows, credit_M_K in _credits(codes_Q_A[kinds_K], right_Q_A[kinds_K], members_M_A, tie):
        out[rows] = credit_M_K[:, kind_Q]
    return out


def plurality_accuracy(
    codes_Q_A: NDArray[np.int64],
    right_Q_A: NDArray[np.float64],
    members_M_A: NDArray[np.bool_],
    tie: str = "fractional",
) -> NDArray[np.float64]:
    """Mean over the questions of `plurality_credit`, without its table: for tens of thousands of subsets.

    >>> import numpy as np
    >>> votes, right = codes([["4", "5"], ["1", "1"]]), np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> plurality_accuracy(votes, right, np.array([[True, True], [False, True]])).tolist()
    [0.75, 0.5]

    Args: as for `plurality_credit`.

    Returns: (subsets,), in [0, 1]; questions whose credit is NaN are left out, NaN when none is left.
    """
    import numpy as np

    out = np.empty(len(members_M_A))
    kinds_K, kind_Q = _kinds(codes_Q_A, right_Q_A)
    times_K = np.bincount(kind_Q, minlength=len(kinds_K)).astype(np.float64)
    for rows, credit_M_K in _credits(codes_Q_A[kinds_K], right_Q_A[kinds_K], members_M_A, tie):
        known = (~np.isnan(credit_M_K)) @ times_K
        total = np.nan_to_num(credit_M_K) @ times_K
        out[rows] = np.where(known > 0, total / np.maximum(known, 1), np.nan)
    return out


def _kinds(codes_Q_A: NDArray[np.int64], right_Q_A: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One question of each kind, and the kind of each: questions with the same votes are counted once."""
    import numpy as np

    if codes_Q_A.shape != right_Q_A.shape:
        raise ValueError(f"votes have shape {codes_Q_A.shape}, their rightness {right_Q_A.shape}: expected the same")
    unknown = np.nan_to_num(right_Q_A, nan=-1.0)
    _, first, kind = np.unique(np.hstack([codes_Q_A, unknown]), axis=0, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)


def _credits(
    codes_K_A: NDArray[np.int64], right_K_A: NDArray[np.float64], members_M_A: NDArray[np.bool_], tie: str
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Blocks of subsets with their credits."""
    import numpy as np

    if tie not in ("fractional", "first"):
        raise ValueError(f"tie is {tie!r}; expected fractional or first")
    n_c = max(1, int(codes_K_A.max(initial=-1)) + 1)
    hot_C_A_K = (np.arange(n_c)[:, None, None] == codes_K_A.T).astype(np.float32)
    right_C_1_K = (hot_C_A_K * (right_K_A.T > 0)).any(axis=1, keepdims=True)
    known_A_K = (~np.isnan(right_K_A)).T.astype(np.float32)
    dark_C_1_K = hot_C_A_K.any(axis=1, keepdims=True) & ~(hot_C_A_K * known_A_K).any(axis=1, keepdims=True)
    step = max(1, _CELLS // max(1, n_c * len(codes_K_A)))
    for at in range(0, len(members_M_A), step):
        sits_M_A = members_M_A[at : at + step].astype(np.float32)
        votes_C_M_K = sits_M_A @ hot_C_A_K
        most_M_K = votes_C_M_K.max(axis=0)
        lead_C_M_K = votes_C_M_K == most_M_K
        credit_M_K = _count(lead_C_M_K & right_C_1_K) / _count(lead_C_M_K)
        if tie == "first":
            _settle(credit_M_K, lead_C_M_K, codes_K_A, right_C_1_K[:, 0], sits_M_A)
        if dark_C_1_K.any():
            credit_M_K[(lead_C_M_K & dark_C_1_K).any(axis=0)] = np.nan
        credit_M_K[most_M_K == 0] = 0.0
        credit_M_K[sits_M_A @ known_A_K == 0] = np.nan
        yield slice(at, at + step), credit_M_K


def _count(which_C_M_K: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How many answers of each subset and question; summed in as few bytes as hold them."""
    import numpy as np

    narrow = np.min_scalar_type(len(which_C_M_K))
    count: NDArray[np.float64] = which_C_M_K.view(np.uint8).sum(axis=0, dtype=narrow).astype(np.float64)
    return count


def _settle(
    credit_M_K: NDArray[np.float64],
    lead_C_M_K: NDArray[np.bool_],
    codes_K_A: NDArray[np.int64],
    right_C_K: NDArray[np.bool_],
    sits_M_A: NDArray[np.float32],
) -> None:
    """Where right and wrong answers share the lead, the one that the first of the subset's voters gave counts."""
    import numpy as np

    subset, kind = np.nonzero((credit_M_K > 0) & (credit_M_K < 1))
    for voter in reversed(range(codes_K_A.shape[1])):
        code = codes_K_A[kind, voter]
        leads = (sits_M_A[subset, voter] > 0) & (code >= 0) & lead_C_M_K[code, subset, kind]
        credit_M_K[subset[leads], kind[leads]] = right_C_K[code[leads], kind[leads]]
