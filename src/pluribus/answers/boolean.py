"""Yes or no. Canonical: `true`, `false`."""

from __future__ import annotations

import re

from pluribus.answers._committed import committed, sentence, tail
from pluribus.types import Question

_VALUE = {"yes": "true", "true": "true", "no": "false", "false": "false"}
_WORD = r"(?P<word>yes|no|true|false)"
_LEADS = re.compile(
    rf"""[\s*_`"'“‘$:>(\[{{\\]*(?:text\{{)?
    (?:(?:therefore|thus|hence|simply|clearly|definitely|most\ likely|likely|probably|that|it|is|be|a|an|then|also|still
    |so|statement|the|answer)\b[\s*_`"',:]*)*
    (?P<not>not\s+)?{_WORD}(?![\w-])
    (?!\s+(?:one|longer|more|such|other|matter|way|evidence|information|clear|reason|need|doubt)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_ANY = re.compile(rf"\b{_WORD}\b(?!-)", re.IGNORECASE)
_STANDS = re.compile(
    rf"""(?: (?:\A|[.!?:\n]) [\s*_`"'-]{{0,20}} (?:(?:so|thus|therefore|hence|in\ short|overall)[,:]?\s+)?
      | \b(?:so|thus|therefore|hence),?\s+ )
    {_WORD}(?=[ \t*_`"']{{0,9}}(?:[,.!;:\n]|\Z))""",
    re.VERBOSE | re.IGNORECASE,
)
_IS = re.compile(
    r"\b(?:is|are|was|be)\s+(?:therefore\s+|thus\s+)?(?P<not>not\s+)?(?P<word>true|false)\b", re.IGNORECASE
)


def read(text: str, question: Question) -> str | None:
    """The last committed yes, no, true or false.

    >>> q = Question("q", "t", "Can it?", "boolean")
    >>> [read(t, q) for t in ("No bird can. So the answer is yes.", "No, it has no wings.", "It has no wings.")]
    ['true', 'false', None]
    """
    marked = False
    for span in committed(text):
        marked = True
        if (value := _of_words(span.text)) is not None:
            return value
    return None if marked else _bare(text)


def canonical(answer: str, question: Question) -> str | None:
    """
    >>> canonical("Yes.", Question("q", "t", "Can it?", "boolean"))
    'true'
    """
    return _VALUE.get(answer.strip(" \t\n.*\"'`").casefold())


def _of_words(words: str) -> str | None:
    if found := _LEADS.match(words):
        return _value(found)
    said = {_VALUE[m["word"].casefold()] for m in _ANY.finditer(sentence(words)) if m["word"].casefold() != "no"}
    return said.pop() if len(said) == 1 else None


def _bare(text: str) -> str | None:
    """Without any mark: the last yes or no that stands alone in its clause, or the last "is true"."""
    end = tail(text)
    found = list(_STANDS.finditer(end)) or list(_IS.finditer(end))
    last = found[-1] if found else _STANDS.match(text)
    return _value(last) if last else None


def _value(found: re.Match[str]) -> str:
    value = _VALUE[found["word"].casefold()]
    denied = "not" in found.re.groupindex and found["not"] is not None
    return {"true": "false", "false": "true"}[value] if denied else value
