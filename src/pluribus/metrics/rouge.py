"""ROUGE: n-grams and longest common subsequences that a text shares with a reference summary.

Words are runs of a–z and 0–9 in lower case, as in the original program and in the package `rouge-score`; other scripts
have none, and then everything is 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pluribus.metrics._text import NONE, Overlap

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
"""The kinds by name; any n of n-grams from 1 to 9 is one too."""

Stem = Callable[[str], str]
_WORD = re.compile(r"[a-z0-9]+")
_N_GRAMS = re.compile(r"rouge([1-9])")
_SHORTEST_STEMMED = 4
"""Letters of the shortest word that is stemmed."""


def rouge(prediction: str, references: Sequence[str], kind: str, stem: Stem | None = None) -> Overlap:
    """ROUGE of a text against the reference it is closest to, by F1.

    >>> found = rouge("The cat sat on it", ["The cat lay on it", "A dog"], "rouge2")
    >>> found.precision, found.recall, found.f1
    (0.5, 0.5, 0.5)

    Args:
        prediction: any text.
        references: at least one.
        kind: `rouge1` … `rouge9`: n-grams as bags; `rougeL`: the longest common subsequence of the whole texts;
            `rougeLsum`: for each line of the reference the union of its longest common subsequences with the lines of
            the text.
        stem: word → its stem, for words of 4 letters and more; None: as they are. `PorterStemmer().stem` of nltk gives
            the numbers of `rouge-score` with `use_stemmer=True`.

    Returns: precision, recall and F1, each in [0, 1]; 0 where either text has no word.

    Raises:
        ValueError: no such kind, or no reference.

    Source: Lin 2004, ROUGE, W04-1013.
    """
    if not references:
        raise ValueError("there is no reference to compare with")
    return max((_rouge(prediction, reference, kind, stem) for reference in references), key=lambda found: found.f1)


def words(text: str, stem: Stem | None = None) -> list[str]:
    """
    >>> words("It's 3.5 °C, naïve")
    ['it', 's', '3', '5', 'c', 'na', 've']
    """
    found = _WORD.findall(text.lower())
    if stem is None:
        return found
    stems = (stem(word) if len(word) >= _SHORTEST_STEMMED else word for word in found)
    return [word for word in stems if _WORD.fullmatch(word)]


def _rouge(prediction: str, reference: str, kind: str, stem: Stem | None) -> Overlap:
    if kind == "rougeLsum":
        return _summary_level(_lines(prediction, stem), _lines(reference, stem))
    said, wanted = words(prediction, stem), words(reference, stem)
    if kind == "rougeL":
        return _overlap(longest_common(said, wanted), len(said), len(wanted))
    if n_grams := _N_GRAMS.fullmatch(kind):
        return _shared_n_grams(said, wanted, int(n_grams[1]))
    raise ValueError(f"{kind!r} is no ROUGE; there are: {', '.join(ROUGE)}")


def _overlap(shared: int, said: int, wanted: int) -> Overlap:
    return Overlap.of(shared / said, shared / wanted) if shared else NONE


def _shared_n_grams(said: Sequence[str], wanted: Sequence[str], n: int) -> Overlap:
    ours, theirs = (Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in (said, wanted))
    return _overlap((ours & theirs).total(), ours.total(), theirs.total())


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Words in the longest common subsequence.

    >>> longest_common("a b c d e".split(), "b x d a e".split())
    3

    Source: the bits of one integer are a row of the table, Hyyrö 2004, London Algorithmics and Stringology, 53–67:
    a 0 stands where the row's length grows by one.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(second):
        places[word] = places.get(word, 0) | 1 << place
    all_bits = (1 << len(second)) - 1
    row = all_bits
    for word in first:
        met = row & places.get(word, 0)
        row = ((row + met) | (row - met)) & all_bits
    return len(second) - row.bit_count()


# --- over the lines of a summary -------------------------------------------------------------------------------------


def _lines(text: str, stem: Stem | None) -> list[list[str]]:
    return [words(line, stem) for line in text.split("\n") if line]


def _summary_level(said: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> Overlap:
    """Each word counts at most as often as both summaries have it."""
    ours, theirs = (Counter(word for line in lines for word in line) for lines in (said, wanted))
    left = ours & theirs
    shared = 0
    for line in wanted:
        for place in sorted({place for other in said for place in _common_places(line, other)}):
            if left[line[place]] > 0:
                left[line[place]] -= 1
                shared += 1
    return _overlap(shared, ours.total(), theirs.total())


def _common_places(line: Sequence[str], other: Sequence[str]) -> Iterable[int]:
    """Places in the line of one of its longest common subsequences with the other, read from the end.

    Where several are as long, the line's own last words are passed over first, as in `rouge-score`.
    """
    lengths = _table(line, other)
    i, j = len(line), len(other)
    while i and j:
        if line[i - 1] == other[j - 1]:
            i, j = i - 1, j - 1
            yield i
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1


def _table(line: Sequence[str], other: Sequence[str]) -> list[list[int]]:
    """lengths[i][j]: the longest common subsequence of the first i and the first j words."""
    lengths = [[0] * (len(other) + 1)]
    for word in line:
        above, row = lengths[-1], [0]
        for j, met in enumerate(other, 1):
            row.append(above[j - 1] + 1 if word == met else max(above[j], row[-1]))
        lengths.append(row)
    return lengths
