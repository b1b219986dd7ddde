"""Cuts a long context to the room a model has, counted in the model's own tokens. The question itself is never cut.

The middle goes: what is kept of a text is its beginning and its end, with a mark between them. It is cut between
paragraphs where that still fills the room by half or more (so paragraphs stay whole), else between lines, else
between words, else between characters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pluribus.types import Question

MARK = "[… cut …]"
"""Stands where something was left out."""

_SEAMS = ("\n\n", "\n", " ", "")


def fit(question: Question, most_tokens: int, count: Callable[[str], int]) -> Question:
    """The question with its context cut; id, text, choices and all else stay as they are.

    Args:
        most_tokens: room for the context alone: the model's window less the reply and less all else of the prompt.
        count: tokens of a text for the model; of an empty text 0.

    >>> question = Question("q", "t", "Who?", "text", context="Ann sang. Bo slept.\\n\\nCy ran.\\n\\nDee won.")
    >>> fit(question, 7, lambda text: len(text.split())).context
    'Ann sang. Bo slept.\\n\\n[… cut …]'
    """
    if question.context is None:
        return question
    context = cut(question.context, most_tokens, count)
    return question if context == question.context else replace(question, context=context or None)


def cut(text: str, most_tokens: int, count: Callable[[str], int]) -> str:
    """The text, shortened in its middle to at most `most_tokens` tokens; "" where not even the mark has room.

    Args:
        most_tokens: tokens the result may have, the mark's included.
        count: tokens of a text; asked about 10 times, so a slow one costs ten readings of the text.

    >>> cut("one two three four five six seven eight", 6, lambda text: len(text.split()))
    'one two [… cut …] eight'
    >>> cut("one two", 6, lambda text: len(text.split()))
    'one two'
    """
    if count(text) <= most_tokens:
        return text
    best, filled, marked = "", -1, count(MARK)
    for seam in _SEAMS:
        if 2 * filled >= most_tokens - marked:
            break
        units = text.split(seam) if seam else list(text)
        found = _longest(units, seam, most_tokens, count)
        if found and count(found) - marked > filled:
            best, filled = found, count(found) - marked
    return best


def _longest(units: Sequence[str], seam: str, most_tokens: int, count: Callable[[str], int]) -> str:
    """As many units as have room, by bisection; each text returned was counted, so none is ever too long."""
    found, low, high = "", 0, len(units)
    while low < high:
        kept = (low + high) // 2
        tried = _without_middle(units, kept, seam)
        if count(tried) <= most_tokens:
            found, low = tried, kept + 1
        else:
            high = kept
    return found


def _without_middle(units: Sequence[str], kept: int, seam: str) -> str:
    """
    >>> _without_middle(["a", "b", "c", "d", "e"], 3, " ")
    'a b [… cut …] e'
    """
    tail = kept // 2
    return seam.join([*units[: kept - tail], MARK, *units[len(units) - tail :]])
