"""Token F1: how many words a text and the reference share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pluribus.metrics._text import NONE, Overlap, best, squad_words


def token_f1(prediction: str, references: Sequence[str]) -> float:
    """F1 of the words, as a bag: 2 P R / (P + R), P = shared / words said, R = shared / words of the reference.

    >>> token_f1("the cat sat", ["a cat sat down"]), token_f1("dogs", ["a cat", "dogs!"]), token_f1("", ["cat"])
    (0.8, 1.0, 0.0)

    Args:
        prediction: any text; its words are those of `exact_match`.
        references: at least one; the best counts.

    Returns: in [0, 1]; 0 where no word is shared, two texts without words included.

    Source: Rajpurkar et al. 2016, SQuAD, 1606.05250, as in the evaluation script of version 1.1.
    """
    said = squad_words(prediction)
    return best(lambda reference: shared_words(said, squad_words(reference)).f1, references)


def shared_words(said: Sequence[str], reference: Sequence[str]) -> Overlap:
    """Precision, recall and F1 of words as bags.

    >>> shared_words(["cat", "sat"], ["cat", "sat", "down"])
    Overlap(precision=1.0, recall=0.6666666666666666, f1=0.8)
    """
    shared = (Counter(said) & Counter(reference)).total()
    return Overlap.of(shared / len(said), shared / len(reference)) if shared else NONE
