"""One of the question's options. Canonical: its letter, A for the first.

A question without listed options (they stand in its text) takes any letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase

from pluribus.answers._committed import Span, committed, tail
from pluribus.types import Question

_LEAD = r"""[\s*_`"'“‘$:>-]*(?:(?:therefore|thus|hence|simply|clearly|most\ likely|probably|definitely|the|option|choice
    |letter|answer|correct|best|is|indeed|closest|to)\b[\s*_`"'“‘,:]*)*"""
_LETTER = re.compile(
    rf"""{_LEAD}(?:\\(?:text|mathrm|textbf|mathbf|bf)\s*\{{\s*)?
    (?: [(\[{{]\s*(?P<inside>[A-Za-z])\s*[)\]}}]
      | (?P<dotted>[A-Za-z])\s?[).:\]}}](?![\w.])
      | (?P<bare>[A-Z])(?![\w'’.-]) )""",
    re.VERBOSE | re.IGNORECASE,
)
_ONLY = re.compile(r"[\s*_`\"'“‘$(\[{]*([A-Za-z])[\s*_`\"'”’$)\]}.:,]*")
# "A" and "I" are words too: "The answer is A person who …". These follow a letter that is meant as one.
_AFTER_LETTER = re.compile(
    r"\s+(?![a-z])|\s+(?:because|since|as|and|or|which|with|for|due|based|from|is|would|given|in|but|not)\b|[^\s\w]|\Z"
)
_ANOTHER = re.compile(r"[*_)\]]*\s*(?:(?:or|and|/|&)\s*[*_]*(?:\([A-Za-z]\)|[A-Z]\b(?!['’]))|,\s*[*_]*\([A-Za-z]\))")
_NOT = re.compile(r"[\s*_]*(?:not|none|neither|unclear|unknown)\b", re.IGNORECASE)
_IS_RIGHT = re.compile(
    r"""(?:(?<=\s)|\A|(?<=\*)) (?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s{0,3})?[*_]{0,2}
    (?:\((?P<inside>[A-Za-z])\)|(?P<bare>[A-Z]))[).:*_]{0,3}
    \s+is\s+(?:(?:therefore|thus|clearly|indeed|most\ likely)\s+)?(?:the\s+)?
    (?:correct|right|best|most\s+\w+|only\s+correct|answer)\b""",
    re.VERBOSE,
)
_BRACKETED = re.compile(
    r"(?<![\w(])\((?:[Oo]ption |[Cc]hoice )?([A-Z])\)(?!\()|\b[Oo]ption ([A-Z])\b|\bis:? ([A-Z])[.)]\s+[A-Z]"
)
_LISTED = re.compile(r"(?:\A|\n)[ \t]{0,8}[*_]{0,2}\(?([A-Z])[).:]\s")
_NAMED = re.compile(r"(?<![\w.'’])[*_]{0,2}([A-Z])[).:][*_]{0,2}\s+(?=\S)")
_PREFIX = re.compile(r"\s*\(?([A-Z])[).:]\s*")
_SHORT = 1000
"""Characters up to which a text may be one option as a whole."""
_DRESS = " \t\n*_`\"'“”‘’$.,;:()[]{}\\"


@dataclass(frozen=True, slots=True)
class _Options:
    letters: str
    by_text: Mapping[str, str]
    """Normalised text of an option → its letter; a text that two options share is left out."""


def read(text: str, question: Question) -> str | None:
    """The last committed option, by its letter or its text.

    >>> q = Question("q", "t", "Where?", "choice", ("Rome", "Paris", "Bonn"))
    >>> [read(t, q) for t in ("A case of (A). The answer is (b).", "I say Bonn.\\nAnswer: Paris", "Bonn")]
    ['B', 'B', 'C']
    """
    options = _options(question.choices)
    marked = False
    said = _last_said_right(text, options)
    for span in committed(text):
        marked = marked or span.form != "line"
        if said is not None and said[0] > span.start:
            break
        if (letter := _of_span(span, options)) is not None:
            return letter
    if said is not None:
        return said[1]
    return None if marked else _bare(text, options)


def canonical(answer: str, question: Question) -> str | None:
    """The letter of a letter or of an option's whole text.

    >>> q = Question("q", "t", "Where?", "choice", ("Rome", "Paris"))
    >>> [canonical(a, q) for a in ("B", "(b)", "paris", "C")]
    ['B', 'B', 'B', None]
    """
    return _whole(answer, _options(question.choices))


@lru_cache(maxsize=65536)
def _options(choices: tuple[str, ...]) -> _Options:
    letters = ascii_uppercase[: len(choices)] if choices else ascii_uppercase
    texts = [_normal(_unlettered(choice, letter)) for choice, letter in zip(choices, letters, strict=False)]
    return _Options(letters, {t: letters[i] for i, t in enumerate(texts) if t and texts.count(t) == 1})


def _unlettered(choice: str, letter: str) -> str:
    """An option without the letter it may begin with: `A) Rome`."""
    found = _PREFIX.match(choice)
    return choice[found.end() :] if found and found[1] == letter else choice


def _normal(words: str) -> str:
    return " ".join(words.casefold().split()).strip(_DRESS)


def _of_span(span: Span, options: _Options) -> str | None:
    if _NOT.match(span.text) and _normal(span.text) not in options.by_text:
        return None
    if span.form == "line":  # "A: Rome" begins a list of the options
        only = _ONLY.fullmatch(span.text)
        return _known(only[1], options) if only else None
    if span.form == "hash":
        return _whole(span.text, options)
    return _letter(span.text, options) or _begins(span.text, options)


def _whole(words: str, options: _Options) -> str | None:
    """The option that the whole words are."""
    if found := _ONLY.fullmatch(words):
        return _known(found[1], options)
    by_text = options.by_text.get(_normal(words))
    if by_text is not None:
        return by_text
    found = _PREFIX.match(words)
    return _known(found[1], options) if found else None


def _letter(words: str, options: _Options) -> str | None:
    """The letter the words begin with; None when they go on to another one."""
    if only := _ONLY.fullmatch(words):
        return _known(only[1], options)
    found = _LETTER.match(words)
    if found is None or _ANOTHER.match(words, found.end()):
        return None
    bare = found["bare"]
    if bare is None:
        return _known(found["inside"] or found["dotted"], options)
    if not bare.isupper() or (bare in "AI" and not _AFTER_LETTER.match(words, found.end())):
        return None
    return _known(bare, options)


def _known(letter: str, options: _Options) -> str | None:
    return letter.upper() if letter.upper() in options.letters else None


def _begins(words: str, options: _Options) -> str | None:
    """The option whose whole text the words are, or the longest one they begin with."""
    said = _normal(words)
    if said in options.by_text:
        return options.by_text[said]
    begun = [t for t in options.by_text if said.startswith(t) and not re.match(r"\w|[.,]\d", said[len(t) :])]
    return options.by_text[max(begun, key=len)] if begun else None


def _last_said_right(text: str, options: _Options) -> tuple[int, str] | None:
    """Place and letter of the last "option B is correct"."""
    if " is " not in text:
        return None
    found: tuple[int, str] | None = None
    for match in _IS_RIGHT.finditer(text):
        letter = _known(match["inside"] or match["bare"], options)
        found = (match.start(), letter) if letter else found
    return found


def _bare(text: str, options: _Options) -> str | None:
    """Without any mark: the text or its last line as a whole, or the one letter mentioned."""
    end = tail(text)
    lines = [line for line in end.strip().split("\n") if line.strip()]
    for words in (text, lines[-1] if lines else ""):
        if len(words) < _SHORT and not _LISTED.search(words) and (letter := _whole(words, options)):
            return letter
    return _only_mentioned(text, options)


def _only_mentioned(text: str, options: _Options) -> str | None:
    """The letter of `(B)`, `option B`, a line `B. …`, or `B. Paris` where B is Paris. A text that goes through several
    has chosen none by that.
    """
    mentions = (*_BRACKETED.finditer(text), *_LISTED.finditer(text))
    found = {letter for m in mentions if (letter := _known(m[m.lastindex or 0], options))}
    found |= {m[1] for m in _NAMED.finditer(text) if _begins(text[m.end() : m.end() + _SHORT], options) == m[1]}
    return found.pop() if len(found) == 1 else None
