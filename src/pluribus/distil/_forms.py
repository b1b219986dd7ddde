"""How an answer is written in the words of a dialect, for what no seat said."""

from __future__ import annotations

import re

from pluribus.answers import canonical, read
from pluribus.prompts import Dialect, dialect
from pluribus.types import Key, Question

_FORMS = ("{final answer: ", "\\boxed{", "#### ")
"""Beginnings of the forms that dialects ask for, see `answers`."""
_ENDS = {"{final answer: ": "}", "\\boxed{": "}", "#### ": ""}
_CLOSED = re.compile(r"\{final answer:[^{}]*\}\s*\Z|\\boxed\{.*\}\W*\Z|####[^\n]*\Z")


def answer_text(words: str, question: Question, answer: str) -> str:
    """The final answer alone, as the dialect asks for it.

    >>> answer_text("zoo", Question("q", "t", "1 + 1?", "number"), "2")
    '{final answer: 2}'

    Args:
        words: name of the dialect.
        answer: of the question's kind; a program as its source.
    """
    if question.kind == "program":
        return f"```python\n{answer.strip()}\n```"
    begin = _form(dialect(words), question)
    return f"{begin}{_shown(question, answer)}{_ENDS[begin]}"


def solution_text(words: str, question: Question, key: Key) -> str | None:
    """The worked solution, closed by the final answer where it does not end in one; None: there is no solution, or no
    answer to close it with.

    >>> key = Key("q", "2", solution="1 + 1 = 2.")
    >>> solution_text("zoo", Question("q", "t", "1 + 1?", "number"), key)
    '1 + 1 = 2. {final answer: 2}'
    """
    solution = (key.solution or "").strip()
    if not solution:
        return None
    if _ends_in_answer(question, key, solution):
        return solution
    if key.answer is None or question.kind == "program":
        return None
    between = "\n" if f"format_{question.kind}" in dialect(words).texts else " "
    return f"{solution}{between}{answer_text(words, question, key.answer)}"


def _ends_in_answer(question: Question, key: Key, solution: str) -> bool:
    if question.kind == "program":
        return read(question, solution) is not None
    if not _CLOSED.search(solution):
        return False
    found = read(question, solution)
    return found is not None and (key.answer is None or found == canonical(question, key.answer))


def _form(words: Dialect, question: Question) -> str:
    """The form the dialect names last; a dialect that names none reads them all, and gets the plainest."""
    asked = words.texts.get(f"format_{question.kind}", "")
    places = {begin: asked.rfind(begin.strip()) for begin in _FORMS}
    best = max(_FORMS, key=lambda begin: places[begin])
    return best if places[best] >= 0 else _FORMS[0]


def _shown(question: Question, answer: str) -> str:
    """Numbers bare, as the prompts ask for them; the rest as it was published."""
    return (canonical(question, answer) or answer) if question.kind == "number" else answer
