"""Reads an answer out of text. One file per kind of answer; the file's name is the kind's.

A member has `read(text, question)` and `canonical(answer, question)`. Both return the answer's canonical string, or
None when there is none: two answers are the same if and only if their canonical strings are equal.
It may have `prefetch`, see there.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from typing import Protocol, cast

from pluribus.answers._committed import own
from pluribus.errors import UsageError
from pluribus.types import Question


class _Kind(Protocol):
    def read(self, text: str, question: Question) -> str | None: ...

    def canonical(self, answer: str, question: Question) -> str | None: ...


def read(question: Question, text: str) -> str | None:
    """The last answer the text commits itself to, canonical; None when it gives none.

    Text behind a `<think>` that is never closed was cut off while thinking and gives no answer.

    >>> read(Question("q", "t", "6 · 7?", "number"), "6 · 7 = 42. The answer is 42.0")
    '42'

    Raises UsageError when the question's kind has no reader.
    """
    kind = _kind(question.kind)
    said = text.rpartition("</think>")[2]
    return None if "<think>" in said else kind.read(own(said), question)


def canonical(question: Question, answer: str) -> str | None:
    """The canonical string of a bare answer, such as a key's; None when it is no answer of the question's kind.

    >>> canonical(Question("q", "t", "How much?", "number"), "$57,500")
    '57500'
    """
    return _kind(question.kind).canonical(answer, question)


def same(question: Question, a: str, b: str) -> bool:
    """Whether two bare or canonical answers are the same answer.

    >>> same(Question("q", "t", "How much?", "number"), "18.00", "18")
    True
    """
    first = canonical(question, a)
    return first is not None and first == canonical(question, b)


def prefetch(texts: Iterable[tuple[Question, str]]) -> None:
    """Reads many texts at once where that is faster than one after the other; `read` then finds the work done.

    Formulas (`latex`) are read in worker processes, which this keeps busy together; the other kinds need none.
    """
    by_kind: dict[str, list[tuple[Question, str]]] = {}
    for question, text in texts:
        by_kind.setdefault(question.kind, []).append((question, text))
    for name, pairs in by_kind.items():
        ahead = getattr(_kind(name), "prefetch", None)
        if ahead is not None:
            ahead([(question, own(text.rpartition("</think>")[2])) for question, text in pairs])


def kinds() -> list[str]:
    """The kinds that can be read, sorted."""
    return sorted(member.name for member in pkgutil.iter_modules(__path__) if not member.name.startswith("_"))


@cache
def _kind(name: str) -> _Kind:
    if name not in kinds():
        raise UsageError(f"answers of kind {name!r} can not be read", hint=f"kinds that can be: {', '.join(kinds())}")
    return cast(_Kind, importlib.import_module(f"{__name__}.{name}"))
