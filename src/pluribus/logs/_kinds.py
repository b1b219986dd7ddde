"""What kind of answer a log asks for, found out from the answers it records: most formats do not say."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from pluribus.answers import canonical
from pluribus.answers import read as read_answer
from pluribus.types import Key, Kind, Question

_NUMBER = re.compile(r"[-+−]?[$€£]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?%?")
_HASHES = re.compile(r"####\s*(\S.*?)\s*\Z")
_LETTER = re.compile(r"\(?([A-Z])[).]?")
_YES_NO = frozenset({"true", "false", "yes", "no"})
_FORMULA = re.compile(r"\\[a-zA-Z]|[$^]|\\\(")


def said(value: Any) -> str | None:
    """A recorded answer as text; None for none.

    >>> [said(value) for value in (18.0, "(A)", "", True, float("nan"), None)]
    ['18', '(A)', None, 'true', None, None]
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip() or None


def kind_of(answers: Sequence[str | None]) -> Kind:
    """The kind that all recorded answers (keys, where there are any) fit.

    >>> [kind_of(a) for a in (["18", "1,200"], ["(A)", "B"], ["yes", "no"], ["\\\\frac12", "3"], ["Rome"], [None])]
    ['number', 'choice', 'boolean', 'latex', 'text', 'text']
    """
    there = [bare(answer) for answer in answers if answer]
    if not there:
        return "text"
    if all(_is_number(answer) for answer in there):
        return "number"
    if all(_LETTER.fullmatch(answer) for answer in there):
        return "choice"
    if all(answer.casefold() in _YES_NO for answer in there):
        return "boolean"
    return "latex" if any(_FORMULA.search(answer) for answer in there) else "text"


def bare(answer: str) -> str:
    """An answer without the solution before it, as GSM8K publishes its keys.

    >>> bare("2 + 2 = 4\\n#### 4")
    '4'
    """
    found = _HASHES.search(answer)
    return found[1] if found else answer.strip()


def _is_number(answer: str) -> bool:
    return _NUMBER.fullmatch(answer) is not None and any(c.isdigit() for c in answer)


def letters(answers: Sequence[str | None]) -> tuple[str, ...]:
    """Options where the source does not carry them: as many letters as were seen, four at least.

    >>> letters(["(B)", "E", None])
    ('A', 'B', 'C', 'D', 'E')
    """
    seen = [found[1] for answer in answers if answer and (found := _LETTER.fullmatch(answer.strip()))]
    return tuple(chr(c) for c in range(ord("A"), ord(max([*seen, "D"])) + 1))


def answer_of(question: Question, recorded: str | None) -> str | None:
    """A recorded answer in canonical form, so that equal answers are equal strings; what can not be read stays.

    >>> answer_of(Question("q", "t", "?", "number"), "18.00")
    '18'
    """
    if recorded is None:
        return None
    return canonical(question, bare(recorded)) or read_answer(question, recorded) or recorded


def key_of(question: Question, recorded: str | None, aliases: Sequence[str] = ()) -> Key | None:
    """The key of a question; None where nothing was recorded, or nothing that is an answer of its kind."""
    if recorded is None:
        return None
    answer = canonical(question, bare(recorded)) or read_answer(question, recorded)
    others = tuple(other for alias in aliases if (other := canonical(question, alias)) is not None)
    return None if answer is None else Key(question.id, answer, others)
