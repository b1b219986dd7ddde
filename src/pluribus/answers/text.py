"""Short free text. Canonical: lower case, without punctuation and articles, single spaces.

The normalisation is that of SQuAD (Rajpurkar et al. 2016, 1606.05250), whose exact match this equality is, but what
tells two numbers or names apart stays: signs, decimal points and fraction bars of numbers, and `+ # % &`. A text that
would be emptied, such as "The", keeps its words.
"""

from __future__ import annotations

import re
import unicodedata

from pluribus.answers._committed import committed, tail
from pluribus.types import Question

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = re.compile(
    r"""[!"'()*,:;<=>?@\[\\\]^_`{|}~$‘’“”«»] | \.(?!\d) | (?<!\d)/ | /(?!\d) | -(?!\d) | (?<=[^\W\d])-""", re.VERBOSE
)
_TEX = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}")


def read(text: str, question: Question) -> str | None:
    """The line behind the last mark; without any mark the last line that says something.

    >>> q = Question("q", "t", "Who?", "text")
    >>> read("He wrote it late.\\nAnswer: The **Lord Byron**.", q), read("Byron", q), read(" ", q)
    ('lord byron', 'byron', None)
    """
    for span in committed(text):
        if (found := canonical(_TEX.sub(r"\1", span.text).strip(" }"), question)) is not None:
            return found
    lines = (canonical(line, question) for line in reversed(tail(text).split("\n")))
    return next((line for line in lines if line is not None), None)


def canonical(answer: str, question: Question) -> str | None:
    """
    >>> [canonical(a, Question("q", "t", "Who?", "text")) for a in ("The Beatles!", "the", "  ")]
    ['beatles', 'the', None]
    """
    once = _normal(answer)
    while (again := _normal(once)) != once:  # what is dropped can leave a new article or a sign that is none
        once = again
    return once or None


def _normal(words: str) -> str:
    plain = " ".join(unicodedata.normalize("NFC", words).casefold().replace("−", "-").split())
    bare = " ".join(_ARTICLES.sub(" ", _PUNCTUATION.sub("", plain)).split())
    return bare or plain
