"""Vectors of single tokens in their context, as BERTScore compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pluribus.embedders._windows import CountTokens, windows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH_TOKENS = 4096
"""Tokens of one batch, padding included."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """A text as its tokens."""

    ids_T: tuple[int, ...]
    """Equal numbers are equal tokens."""
    vectors_T_D: NDArray[np.float32]
    """Of any length."""
    special_T: tuple[bool, ...]
    """Whether a token is one of the marks that the model puts around a text."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A piece of text as its model reads it."""

    ids: tuple[int, ...]
    special: tuple[bool, ...]


def read_tokens(
    texts: Sequence[str],
    *,
    count: CountTokens,
    limit: int,
    encode: Callable[[str], Encoded],
    model: Any,
    layer: int | None,
) -> tuple[list[TokenVectors], int]:
    """The tokens of texts of any length, and how many texts did not fit into one window.

    A text of several windows has the tokens of each, one after the other: nothing is cut off.

    Args:
        texts: not blank.
        count, limit: tokens of each text, and how many the model reads at once.
        encode: of a text that fits.
        model: an encoder of `transformers`.
        layer: which hidden layer, 0 the input's; None: the last.
    """
    import numpy as np

    pieces = [windows(text, count, limit) for text in texts]
    encoded = [encode(piece) for some in pieces for piece in some]
    vectors = _hidden(model, [piece.ids for piece in encoded], layer)
    found, start = [], 0
    for some in pieces:
        parts = slice(start, start + len(some))
        start = parts.stop
        ids = tuple(id for piece in encoded[parts] for id in piece.ids)
        special = tuple(mark for piece in encoded[parts] for mark in piece.special)
        found.append(TokenVectors(ids, np.concatenate(vectors[parts]), special))
    return found, sum(len(some) > 1 for some in pieces)


def _hidden(model: Any, ids: Sequence[Sequence[int]], layer: int | None) -> list[NDArray[np.float32]]:
    """One (tokens, dimensions) array per piece, in order."""
    found: dict[int, NDArray[np.float32]] = {}
    for batch in batches([len(row) for row in ids], _BATCH_TOKENS):
        for place, rows in zip(batch, _layer(model, [ids[i] for i in batch], layer), strict=True):
            found[place] = rows
    return [found[place] for place in range(len(ids))]


def _layer(model: Any, ids: Sequence[Sequence[int]], layer: int | None) -> list[NDArray[np.float32]]:
    import torch

    ids_B_T, mask_B_T = padded(model, ids)
    with torch.inference_mode():
        read = model(input_ids=ids_B_T, attention_mask=mask_B_T, output_hidden_states=layer is not None)
    hidden_B_T_D = read.last_hidden_state if layer is None else read.hidden_states[layer]
    return [rows[: len(row)].float().cpu().numpy() for rows, row in zip(hidden_B_T_D, ids, strict=True)]


def padded(model: Any, ids: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Token ids as one rectangle on the model's device, and the mask of what is no padding."""
    import torch

    width, fill = max(map(len, ids)), getattr(model.config, "pad_token_id", None) or 0
    ids_B_T = torch.tensor([[*row, *[fill] * (width - len(row))] for row in ids], device=model.device)
    lengths_B_1 = torch.tensor([[len(row)] for row in ids], device=model.device)
    return ids_B_T, (torch.arange(width, device=model.device) < lengths_B_1).long()


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Places of the texts, the longest first, so many at a time that their padded rectangle stays in the budget.

    >>> list(batches([2, 9, 4, 1], 10))
    [[1], [2, 0], [3]]
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    while order:
        take = max(1, budget // lengths[order[0]])
        yield order[:take]
        order = order[take:]
