"""Texts longer than a model's window: read in pieces, and the vector is the pieces' mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CountTokens = Callable[[Sequence[str]], Sequence[int]]
"""Texts → tokens of each, with the marks the model puts around a text."""


def windows(text: str, count: CountTokens, limit: int) -> list[str]:
    """The text in pieces of at most `limit` tokens: halved, at a space where one is near, until each piece fits.

    >>> windows("one two three four five", lambda texts: [len(text.split()) for text in texts], 3)
    ['one two', ' three four five']
    """
    if len(text) < 2 or count([text])[0] <= limit:
        return [text]
    cut = _middle(text)
    return [piece for half in (text[:cut], text[cut:]) if half.strip() for piece in windows(half, count, limit)]


def _middle(text: str) -> int:
    """The space before the middle, if it stands in the second quarter; else the middle."""
    middle = len(text) // 2
    space = max(text.rfind(letter, middle // 2, middle) for letter in " \n\t")
    return space if space > 0 else middle


def embed_windows(
    texts: Sequence[str],
    count: CountTokens,
    limit: int,
    embed: Callable[[Sequence[str]], NDArray[np.float32]],
) -> tuple[NDArray[np.float32], int]:
    """Vectors of texts of any length, and how many texts did not fit into one window.

    A text of several windows has the mean of their unit vectors, weighted by their tokens. Nothing is cut off: a
    trace's answer stands at its end.

    Args:
        texts: not blank.
        count: tokens of each text.
        limit: tokens the model reads at once, at least 3.
        embed: vectors of texts that fit.
    """
    import numpy as np

    pieces = [_pieces(text, count, limit) for text in texts]
    vectors_P_D = embed([piece for some in pieces for piece in some])
    starts = np.cumsum([0, *map(len, pieces)])
    long = [i for i, some in enumerate(pieces) if len(some) > 1]
    rows_B_D = vectors_P_D[starts[:-1]].copy()
    for i in long:
        rows_B_D[i] = _mean(vectors_P_D[starts[i] : starts[i + 1]], count(pieces[i]))
    return rows_B_D, len(long)


def _pieces(text: str, count: CountTokens, limit: int) -> list[str]:
    # no tokenizer makes more tokens than bytes, and two marks around them: most short texts need no count
    return [text] if len(text.encode()) + 2 <= limit else windows(text, count, limit)


def _mean(vectors_P_D: NDArray[np.float32], tokens_P: Sequence[int]) -> NDArray[np.float32]:
    import numpy as np

    length_P = np.linalg.norm(vectors_P_D, axis=1)
    weights_P = np.asarray(tokens_P) / np.where(length_P > 0, length_P, 1.0)
    mean_D: NDArray[np.float32] = (weights_P @ vectors_P_D / np.sum(tokens_P)).astype(np.float32)
    return mean_D
