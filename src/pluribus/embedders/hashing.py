"""Words, pairs of words and runs of 3 and of 5 bytes, hashed into a fixed number of signed buckets; numpy only.

It knows spelling, not meaning: for a quick look, for tests, and as a second opinion that shares nothing with a neural
embedder. No model, no download; the same vector in every process and on every machine.

    v_b = Σ_f weight(f) · sign(f) · [bucket(f) = b],  then v_b ← sign(v_b) √|v_b|

The square root keeps frequent words from drowning the others.

Source: Weinberger et al. 2009, feature hashing, arXiv 0902.2206; the root: Perronnin et al. 2010.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from pluribus.embedders import at_least_one
from pluribus.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORM = "hashing"
OPTIONS = ("dimensions",)
DIMENSIONS = 1024

_VERSION = 1
"""Part of the cache's key: raise it with any change of the vectors."""
_WORD, _PAIR, _RUN = 1.0, 0.7, 0.2
"""Weights of a word, a pair of words, a run."""
_RUNS = (3, 5)
_BASE = 0x9E3779B97F4A7C15
"""Odd, so that it has an inverse modulo 2⁶⁴."""
_LEAST_BYTES, _MOST_ROWS = 1 << 15, 512
"""How much is hashed at a time: few calls of numpy, and arrays that fit into the processor's cache."""

Features = tuple["NDArray[np.uint64]", "NDArray[np.uint64]", "NDArray[np.float64]"]
"""Which text each feature is of, its hash, and what it weighs."""


def open(rest: str, options: Mapping[str, str]) -> Hashing:
    """Opens it. ConfigError for something behind the name, or no dimension."""
    if rest:
        raise ConfigError(f"embedder 'hashing/{rest}' names a model", hint="write hashing")
    return Hashing(at_least_one(options, "dimensions", DIMENSIONS))


class Hashing:
    chunk = 512
    windowed = 0

    def __init__(self, dimension: int = DIMENSIONS) -> None:
        self.dimension = dimension
        self.name = f"hashing@{_VERSION}[dimensions={dimension}]"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        raw = [" ".join(text.casefold().split()).encode() for text in texts]
        return np.concatenate([_hashed(some, self.dimension) for some in _portions(raw)])


def _portions(raw: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    start = size = 0
    for at, text in enumerate(raw, 1):
        size += len(text)
        if size >= _LEAST_BYTES or at - start == _MOST_ROWS or at == len(raw):
            yield raw[start:at]
            start, size = at, 0


def _hashed(raw: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """Vectors of some texts, all hashed in one array: a zero byte stands before, between and behind them."""
    import numpy as np

    bytes_T = np.frombuffer(b"\0" + b"\0".join(raw) + b"\0", np.uint8)
    row_T = np.repeat(np.arange(len(raw) + 1, dtype=np.uint64), [*(len(text) + 1 for text in raw), 1])
    rows, hashes, weights = zip(*_features(bytes_T, row_T), strict=True)
    mixed_F = _mixed(np.concatenate(hashes))
    sign_F = 1.0 - 2.0 * (mixed_F & np.uint64(1)).view(np.int64)
    place_F = ((mixed_F >> np.uint64(32)) * np.uint64(dimension)) >> np.uint64(32)
    place_F += np.concatenate(rows) * np.uint64(dimension)
    sums = np.bincount(place_F.view(np.int64), np.concatenate(weights) * sign_F, (len(raw) + 1) * dimension)
    vectors = sums[: len(raw) * dimension].astype(np.float32)
    return np.copysign(np.sqrt(np.abs(vectors)), vectors).reshape(len(raw), dimension)


def _features(bytes_T: NDArray[np.uint8], row_T: NDArray[np.uint64]) -> Iterator[Features]:
    """Words and single signs, pairs of neighbours, runs of bytes; one that reaches across a zero byte weighs 0."""
    import numpy as np

    prefix_T = _prefixes(bytes_T)
    back_T = _powers(pow(_BASE, -1, 1 << 64), len(bytes_T))
    starts_W, ends_W = _words(bytes_T)
    words_W = (prefix_T[ends_W] - prefix_T[starts_W]) * back_T[starts_W]
    rows_W = row_T[starts_W]
    yield rows_W, words_W, np.full(len(words_W), _WORD)
    yield rows_W[1:], _mixed(words_W[:-1]) + words_W[1:], _PAIR * (rows_W[1:] == rows_W[:-1])
    zeros_T = np.cumsum(bytes_T == 0)
    for n in _RUNS:
        runs_T = prefix_T[n + 1 :] - prefix_T[1:-n]
        runs_T *= back_T[1 : 1 + len(runs_T)]
        yield row_T[n:], runs_T + np.uint64(n), _RUN * (zeros_T[n:] == zeros_T[:-n])


def _words(bytes_T: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where words start and end: letters, digits and all beyond ASCII in a row, or one other sign."""
    import numpy as np

    kind_T = _kinds()[bytes_T]
    letter_T, sign_T = kind_T == 1, kind_T == 2
    starts_T, ends_T = sign_T.copy(), sign_T.copy()
    starts_T[1:] |= letter_T[1:] & ~letter_T[:-1]
    ends_T[:-1] |= letter_T[:-1] & ~letter_T[1:]
    return np.flatnonzero(starts_T), np.flatnonzero(ends_T) + 1


@cache
def _kinds() -> NDArray[np.uint8]:
    """Byte → 0 space or control, 1 part of a word, 2 a sign."""
    import numpy as np

    return np.array([1 if b > 127 or chr(b).isalnum() else 2 if b > 32 else 0 for b in range(256)], np.uint8)


def _prefixes(bytes_T: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Σ_{j<i} c(byte_j) baseʲ modulo 2⁶⁴, from which any stretch has its hash by one subtraction."""
    import numpy as np

    codes = _mixed(np.arange(1, 257, dtype=np.uint64))
    prefix_T = np.zeros(len(bytes_T) + 1, np.uint64)
    np.cumsum(codes[bytes_T] * _powers(_BASE, len(bytes_T)), out=prefix_T[1:])
    return prefix_T


def _powers(base: int, count: int) -> NDArray[np.uint64]:
    """base⁰ … modulo 2⁶⁴, at least `count` of them cut to it."""
    return _power_table(base, 1 << (count - 1).bit_length())[:count]


@lru_cache(maxsize=4)
def _power_table(base: int, count: int) -> NDArray[np.uint64]:
    import numpy as np

    table = np.full(count, base, np.uint64)
    table[0] = 1
    return np.cumprod(table)


def _mixed(hashes_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit depends on every bit (the finaliser of splitmix64)."""
    import numpy as np

    mixed_F = hashes_F ^ (hashes_F >> np.uint64(30))
    mixed_F *= np.uint64(0xBF58476D1CE4E5B9)
    mixed_F ^= mixed_F >> np.uint64(27)
    mixed_F *= np.uint64(0x94D049BB133111EB)
    mixed_F ^= mixed_F >> np.uint64(31)
    return mixed_F
