"""Second-moment matrices of many questions at once in bounded memory, and the entropy of their spectra."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MEMORY_BYTES = 8 * 2**20
"""Working memory of a batch, beside input and result. One question's own S × S matrices may pass it, S = min(N, D)."""
COPY = 1e-12
"""A centred spectrum below this part of the uncentred one is no spread: rows that differ by rounding are copies."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Embeddings as they came (no copy, any float type), and which rows count."""

    M_Q_N_D: NDArray[np.floating]
    mask_Q_N: Bools | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Some questions' matrices."""

    at: slice
    matrix_B_S_S: Floats
    floor_B: Floats
    """A trace up to this one is no spectrum."""


def rows(M_Q_N_D: ArrayLike, mask_Q_N: ArrayLike | None = None) -> Rows:
    """Raises: ValueError for shapes that do not fit."""
    M = np.asarray(M_Q_N_D)
    if M.ndim != 3 or M.dtype.kind not in "fiu":
        raise ValueError(f"embeddings are {M.dtype} of shape {M.shape}; expected real numbers, (questions, rows, dims)")
    mask = None if mask_Q_N is None else np.asarray(mask_Q_N, dtype=np.bool_)
    if mask is not None and mask.shape != M.shape[:2]:
        raise ValueError(f"mask is of shape {mask.shape}; expected {M.shape[:2]}, one per row")
    return Rows(M, mask)


def single(M_N_D: ArrayLike) -> Rows:
    """One question's rows; an empty sequence is no rows.

    Raises: ValueError unless two-dimensional.
    """
    M = np.asarray(M_N_D)
    if M.shape == (0,):
        M = M.reshape(0, 0)
    if M.ndim != 2:
        raise ValueError(f"embeddings are of shape {M.shape}; expected (rows, dims)")
    return rows(M[None])


def batches(
    given: Rows, *, centred: bool = False, gram: bool = False, cells: int = 0, memory: int = MEMORY_BYTES
) -> Iterator[Batch]:
    """Second-moment matrices, some questions at a time: MMᵀ where N ≤ D, else MᵀM (same non-zero eigenvalues).

    Args:
        centred: the rows' mean is taken off first.
        gram: MMᵀ in any case, for those who go on with its rows.
        cells: numbers per question that the caller will hold beside.
        memory: bytes, at least 1.

    Raises: ValueError naming the first row that is not finite.
    """
    q, n, d = given.M_Q_N_D.shape
    dual = d < n and not gram
    size = d if dual else n
    step = max(1, memory // (8 * max(1, 2 * n * d + 4 * size * size + cells)))
    for at in (slice(start, min(start + step, q)) for start in range(0, q, step)):
        part = Rows(given.M_Q_N_D[at], None if given.mask_Q_N is None else given.mask_Q_N[at])
        with np.errstate(invalid="ignore", over="ignore"):
            batch = _batch(at, part, centred, dual, memory)
        if not np.isfinite(np.trace(batch.matrix_B_S_S, axis1=1, axis2=2)).all():
            raise ValueError(_unfit(part, at.start, q))
        yield batch


def entropies(matrix_B_S_S: Floats, floor_B: Floats | float = 0.0) -> Floats:
    """H = −Σ λ ln λ of each matrix's spectrum, λ = μ / Σ μ; 0 where there is none.

    Returns: (B,), nats, in [0, ln S].
    """
    mu = np.maximum(np.linalg.eigvalsh(matrix_B_S_S), 0.0)
    total_B = mu.sum(axis=-1)
    there_B = total_B > floor_B
    share = mu / np.where(there_B, total_B, 1.0)[..., None]
    nats = -(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=-1)
    return np.where(there_B, np.maximum(nats, 0.0), 0.0)


def _batch(at: slice, part: Rows, centred: bool, dual: bool, memory: int) -> Batch:
    if not centred:
        return Batch(at, _matrix(part, None, dual, memory), np.zeros(len(part.M_Q_N_D)))
    mean_B_D = means(part, axis=1)
    matrix = _matrix(part, mean_B_D, dual, memory)
    n = part.M_Q_N_D.shape[1] if part.mask_Q_N is None else part.mask_Q_N.sum(axis=1)
    uncentred_B = np.trace(matrix, axis1=1, axis2=2) + n * (mean_B_D**2).sum(axis=1)
    return Batch(at, matrix, COPY * uncentred_B)


def means(given: Rows, axis: int) -> Floats:
    """Over the rows that count along one of the first two axes; zeros where there is none."""
    mask = np.ones(given.M_Q_N_D.shape[:2], dtype=np.bool_) if given.mask_Q_N is None else given.mask_Q_N
    where = True if given.mask_Q_N is None else mask[..., None]
    total = given.M_Q_N_D.sum(axis=axis, dtype=np.float64, where=where)
    mean: Floats = total / np.maximum(mask.sum(axis=axis), 1)[:, None]
    return mean


def _matrix(part: Rows, mean_B_D: Floats | None, dual: bool, memory: int) -> Floats:
    """Summed over blocks of the axis that goes, so that a question larger than the bound keeps to it."""
    b, n, d = part.M_Q_N_D.shape
    size, gone = (d, n) if dual else (n, d)
    step = max(1, memory // (16 * max(1, b * size)))
    total = np.zeros((b, size, size))
    for start in range(0, gone, step):
        total += _product(part, mean_B_D, slice(start, start + step), dual)
    return total


def _product(part: Rows, mean_B_D: Floats | None, span: slice, dual: bool) -> Floats:
    """Of a span of rows (dual) or of dimensions; masked rows are zero."""
    some, every = (span, slice(None)) if dual else (slice(None), span)
    block = part.M_Q_N_D[:, some, every]
    if mean_B_D is not None:
        block = block - mean_B_D[:, None, every]
    if part.mask_Q_N is not None:
        block = np.where(part.mask_Q_N[:, some, None], block, 0)
    block = block.astype(np.float64, copy=False)
    turned = block.swapaxes(1, 2)
    product: Floats = turned @ block if dual else block @ turned
    return product


def _unfit(part: Rows, start: int, n_questions: int) -> str:
    for q, M_N_D in enumerate(part.M_Q_N_D):
        for n, row in enumerate(M_N_D):
            if (part.mask_Q_N is None or part.mask_Q_N[q, n]) and not np.isfinite(row).all():
                where = f"row {n} of question {start + q}" if n_questions > 1 else f"row {n}"
                dim = int(np.flatnonzero(~np.isfinite(row))[0])
                return f"embedding {where} holds {row[dim]} in dimension {dim}; expected finite numbers"
    return "embeddings are too long to square; expected rows of unit length"
