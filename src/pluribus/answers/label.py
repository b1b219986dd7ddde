"""One of the question's closed set of labels. Canonical: the label as the question writes it."""

from __future__ import annotations

import re
from functools import lru_cache

from pluribus.answers._committed import committed, sentence, tail
from pluribus.types import Question

_DRESS = " \t\n*_`\"'“”‘’$.,;:()[]{}\\"
_NOT = re.compile(r"\b(?:not|isn't|neither|nor|rather than)\s+(?:an?\s+|the\s+)?[\"'*`(]*\Z", re.IGNORECASE)


def read(text: str, question: Question) -> str | None:
    """The label of the last mark; without any mark the last label named and not denied.

    >>> q = Question("q", "t", "How does it feel?", "label", labels=("positive", "negative"))
    >>> [read(t, q) for t in ("Not positive, so negative.", "Label: it seems POSITIVE", "Both positive and negative")]
    ['negative', 'positive', 'negative']
    """
    labels = question.labels
    marked = False
    for span in committed(text):
        marked = True
        if (label := _of_words(span.text, labels)) is not None:
            return label
    named = [] if marked else _named(tail(text), labels)
    return named[-1] if named else None


def canonical(answer: str, question: Question) -> str | None:
    """The label that the whole answer is; upper and lower case, spaces, `_` and `-` make no difference.

    >>> q = Question("q", "t", "?", "label", labels=("not_entailed", "entailed"))
    >>> canonical(" Not entailed. ", q), canonical("entails", q)
    ('not_entailed', None)
    """
    words = answer.strip(_DRESS)
    if words in question.labels:
        return words
    found = _pattern(question.labels).fullmatch(words)
    return _label(found, question.labels) if found else None


def _of_words(words: str, labels: tuple[str, ...]) -> str | None:
    """The label the words are or begin with, else the only one their first sentence names."""
    words = words.strip(_DRESS)
    if words in labels:
        return words
    if found := _pattern(labels).match(words):
        return _label(found, labels)
    named = set(_named(sentence(words), labels))
    return named.pop() if len(named) == 1 else None


def _named(text: str, labels: tuple[str, ...]) -> list[str]:
    """The labels that stand in the text, in order; one behind a "not" is left out."""
    found = _pattern(labels).finditer(text)
    return [_label(m, labels) for m in found if not _NOT.search(text[max(0, m.start() - 24) : m.start()])]


@lru_cache(maxsize=1024)
def _pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    """One group per label, longest first: `not entailed` before `entailed`."""
    order = sorted(range(len(labels)), key=lambda i: -len(labels[i]))
    words = {i: r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", labels[i].strip()))) for i in order}
    groups = "|".join(f"(?P<l{i}>{words[i]})" for i in order if words[i])
    return re.compile(rf"(?<!\w)(?:{groups or '(?!)'})(?!\w)", re.IGNORECASE)


def _label(found: re.Match[str], labels: tuple[str, ...]) -> str:
    return labels[int((found.lastgroup or "l0")[1:])]
