"""What the measures of free text share: the answer within a reply, words as SQuAD counts them, and an overlap."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pluribus.answers._committed import committed, own

_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.UNICODE)
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_OPENED = re.compile(r"\{\s*(?:(?:the|my|our)\s+)?final answer\s*:\s*", re.IGNORECASE)
_HEADING = re.compile(r"^[\s#*_>-]*(?:(?:the|my|our)\s+)?(?:final\s+)?answer\W{0,6}\n", re.IGNORECASE | re.MULTILINE)
_TEX = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of a text is in a reference (precision), of the reference in the text (recall), and their harmonic
    mean."""

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, precision: float, recall: float) -> Overlap:
        both = precision + recall
        return cls(precision, recall, 2 * precision * recall / both if both > 0 else 0.0)


NONE = Overlap(0.0, 0.0, 0.0)


def answer_text(reply: str) -> str:
    r"""The answer within a reply as it was written, not normalised; the whole reply where it marks none.

    `{final answer: …}` may hold several lines; what stands below a heading `Answer` counts to the reply's end; behind
    any other mark the rest of its line. Thoughts are no part of a reply.

    >>> answer_text("He wrote it late.\n{final answer: The *Lord* Byron}")
    'The *Lord* Byron'
    >>> answer_text("So.\n## Answer\nThey met.\nThey agreed."), answer_text("<think>4?</think> They met.\nThey agreed.")
    ('They met.\nThey agreed.', 'They met.\nThey agreed.')
    """
    said = reply.rpartition("</think>")[2]
    if "<think>" in said:
        return ""
    said = own(said)
    if opened := list(_OPENED.finditer(said)):
        return _inside(said, opened[-1].end())
    if headings := list(_HEADING.finditer(said)):
        return said[headings[-1].end() :].strip()
    marked = (_TEX.sub(r"\1", span.text).strip() for span in committed(said))
    return next((answer for answer in marked if answer), said.strip())


def _inside(text: str, at: int) -> str:
    """Up to the brace that closes; to the end of a text that was cut off."""
    depth = 1
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[at:place].strip()
    return text[at:].strip()


def squad_words(text: str) -> list[str]:
    """Words in lower case without ASCII punctuation and English articles.

    >>> squad_words("The U.S. is a well-known   country!")
    ['us', 'is', 'wellknown', 'country']

    Source: Rajpurkar et al. 2016, 1606.05250; the order of the steps is that of the evaluation script of SQuAD 1.1.
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def best(measure: Callable[[str], float], references: Sequence[str]) -> float:
    """The largest value over the references; ValueError without any."""
    if not references:
        raise ValueError("there is no reference to compare with")
    return max(map(measure, references))
