"""Texts to train on against texts to be tested on: the same question, and runs of words that both have.

A run of n words (13 by default) that stands in a test question too is what large models are checked by. Questions made
from templates share such runs by chance, so a run is reported and a whole question is what must never be trained on.

Source: Brown et al. 2020, arXiv 2005.14165, appendix C (13-grams of words in lower case, without punctuation).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

N = 13
"""Words of a run."""
_WORD = re.compile(r"\w+|[-+*/=<>^%−×÷]")
"""A sign of arithmetic is a word, punctuation is none: 1 + 1 is not 1 - 1."""
_FEW = 4
"""Words of a question from which it is looked for inside a text."""
_MIX = 0x9E3779B97F4A7C15
"""Odd, its bits spread."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """How far each text is in the others."""

    equal_N: NDArray[np.bool_]
    """It is one of the others, but for spaces and upper case."""
    runs_N: NDArray[np.int64]
    """Its runs of n words; 1 for a shorter text, 0 for one without words."""
    shared_N: NDArray[np.int64]
    """Those of them that stand in one of the others."""

    @property
    def share_N(self) -> NDArray[np.float64]:
        """Part of each text's runs that is shared, in [0, 1]; 0 for a text without words."""
        import numpy as np

        return self.shared_N / np.maximum(self.runs_N, 1)

    @property
    def touched(self) -> float:
        """Share of the texts with at least one shared run, in [0, 1]; 0 of no text."""
        return float((self.shared_N > 0).mean()) if len(self.shared_N) else 0.0

    @property
    def shared(self) -> float:
        """Share of all runs that are shared, in [0, 1]; 0 of no run."""
        return float(self.shared_N.sum() / max(int(self.runs_N.sum()), 1))


def normalised(text: str) -> str:
    """What makes two questions the same question.

    >>> normalised("How much is\\n 1 + 1?") == normalised("how much is 1 + 1?")
    True
    """
    return " ".join(text.split()).casefold()


def overlap(texts: Sequence[str], others: Sequence[str], n: int = N) -> Overlap:
    """Which texts stand among the others, and how many of their runs of n words do.

    A text of fewer than n words is compared whole, with the others that have as few.

    >>> found = overlap(["Ann has 3 cards and buys 4.", "Ben has 3."], ["So Ann has 3 cards.", "BEN  has 3."], n=4)
    >>> found.equal_N.tolist(), found.share_N.tolist(), found.touched
    ([False, True], [0.25, 1.0], 1.0)

    Args:
        texts: the ones to train on.
        others: the ones to be tested on.
        n: words of a run, at least 1.

    Runs are compared by 64-bit numbers. Raises ValueError on another n.
    """
    import numpy as np

    if n < 1:
        raise ValueError(f"runs of {n} words: expected at least 1")
    known = {normalised(text) for text in others}
    equal_N = np.fromiter((normalised(text) in known for text in texts), bool, len(texts))
    numbers: defaultdict[str, int] = defaultdict(count(1).__next__)
    theirs_E, _ = _runs(others, n, numbers)
    mine_E, text_E = _runs(texts, n, numbers)
    shared_E = np.isin(mine_E, theirs_E)
    runs_N, shared_N = (np.bincount(which, minlength=len(texts)) for which in (text_E, text_E[shared_E]))
    return Overlap(equal_N, runs_N, shared_N)


def held(texts: Sequence[str], questions: Sequence[Sequence[str]]) -> list[int]:
    """Which texts hold one of the questions, word for word, whatever stands around it: a prompt its question.

    A question is there where its own words stand in a row, and each of its options somewhere in the text. One of fewer
    than four words has to be the whole text, or a line of it.

    >>> held(["Ann has 3 cards. How many?\\n\\nReply briefly.", "Ben has 3."], [("Ann has 3 cards. How many?",)])
    [0]
    >>> held(["Which is red?\\nA. sky\\nB. blood"], [("Which is red?", "blood", "sky"), ("Which is red?", "rust")])
    [0]

    Args:
        texts: (N,)
        questions: each its text, then its options.

    Returns: places in `texts`, ascending.
    """
    known = _Known.of(questions)
    return [place for place, text in enumerate(texts) if next(known.within(text), None) is not None]


def asked_in(questions: Sequence[Sequence[str]], texts: Sequence[str]) -> list[int]:
    """Which questions stand in one of the texts, as `held` looks for them.

    >>> asked_in([("Ben has 3. How many?",), ("Ann has 3 cards. How many?",)], ["Ann has 3 cards. How many? Be brief."])
    [1]

    Returns: places in `questions`, ascending.
    """
    known = _Known.of(questions)
    return sorted({place for text in texts for place in known.within(text)})


@dataclass(frozen=True, slots=True)
class _Known:
    """Questions by what they are looked for."""

    short: Mapping[str, Sequence[int]]
    """The words of one that is too short to be found inside a text → its places."""
    begins: Mapping[tuple[str, ...], Sequence[tuple[int, Sequence[str]]]]
    """First words → the places and parts of those that begin so."""

    @classmethod
    def of(cls, questions: Sequence[Sequence[str]]) -> _Known:
        short, begins = defaultdict(list), defaultdict(list)
        for place, question in enumerate(questions):
            parts = [normalised(part) for part in question if part.strip()]
            if len(parts) == 1 and len(parts[0].split()) < _FEW:
                short[parts[0]].append(place)
            elif parts:
                begins[tuple(parts[0].split()[:_FEW])].append((place, parts))
        return cls(short, begins)

    def within(self, text: str) -> Iterator[int]:
        """The places of those that stand in a text."""
        if self.short:
            for line in dict.fromkeys(normalised(line) for line in (text, *text.splitlines())):
                yield from self.short.get(line, ())
        said = normalised(text)
        words = said.split()
        lengths = {len(start) for start in self.begins}
        starts = {tuple(words[at : at + n]) for n in lengths for at in range(len(words) - n + 1)}
        for start in starts:
            yield from (place for place, parts in self.begins.get(start, ()) if all(part in said for part in parts))


def _runs(texts: Sequence[str], n: int, numbers: defaultdict[str, int]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A number for each run of n words, Σ_k w_k M^(n−1−k), and the text it stands in; short texts are filled up.

    Args:
        numbers: word → its number, the same for all texts that are compared.
    """
    import numpy as np

    words = [_filled(_WORD.findall(text.casefold()), n) for text in texts]
    size_N = np.array([len(some) for some in words], dtype=np.int64)
    said = map(numbers.__getitem__, chain.from_iterable(words))
    word_W = _mixed(np.fromiter(said, np.uint64, int(size_N.sum())))
    text_W = np.repeat(np.arange(len(texts)), size_N)
    many = max(len(word_W) - n + 1, 0)
    run_E = np.zeros(many, np.uint64)
    for at in range(n):
        run_E = run_E * np.uint64(_MIX) + word_W[at : at + many]
    within_E = text_W[:many] == text_W[n - 1 :][:many]
    return run_E[within_E], text_W[:many][within_E]


def _filled(words: list[str], n: int) -> list[str]:
    """Up to n words; no text has an empty word, so a short text equals a short text only."""
    return words + [""] * (n - len(words)) if words else words


def _mixed(numbers_W: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit depends on every bit (the finaliser of splitmix64)."""
    import numpy as np

    mixed_W = numbers_W * np.uint64(_MIX)
    mixed_W = (mixed_W ^ (mixed_W >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed_W = (mixed_W ^ (mixed_W >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed_W ^ (mixed_W >> np.uint64(31))
