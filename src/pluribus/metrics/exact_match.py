"""Exact match: is a text the reference, up to case, punctuation, articles and spaces."""

from __future__ import annotations

from collections.abc import Sequence

from pluribus.metrics._text import best, squad_words


def exact_match(prediction: str, references: Sequence[str]) -> float:
    """1 if the prediction's words are those of some reference, else 0.

    Words are compared in lower case, without ASCII punctuation and the articles a, an, the.

    >>> exact_match("The Eiffel Tower!", ["Eiffel tower"]), exact_match("Eiffel", ["Eiffel tower", "the tower"])
    (1.0, 0.0)

    Args:
        prediction: any text; empty is equal to an empty reference, and to one of articles alone.
        references: at least one; the best counts.

    Returns: 0.0 or 1.0.

    Source: Rajpurkar et al. 2016, SQuAD, 1606.05250, as in the evaluation script of version 1.1.
    """
    said = squad_words(prediction)
    return best(lambda reference: float(said == squad_words(reference)), references)
