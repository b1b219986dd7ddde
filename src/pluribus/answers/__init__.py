"""Reads an answer out of text. One file per kind of answer; the file's name is the kind's.

A member has `read(text, question)` and `canonical(answer, question)`. Both return the answer's canonical string, or
None when there is none: two answers are the same if and only if their canonical strings are equal.
It may have `prefetch`, see there.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from functools import cache
from typing import Protocol, cast

from pluribus.answers._committed import own
from pluribus.errors import UsageError
from pluribus.types import Question

_BESIDE = re.compile(r"\{\s{0,9}\"?(?:ratings|confidence|score)\"?\s{0,9}:[^{}]{0,200}\}", re.IGNORECASE)


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
    said = _said(text)
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
            ahead([(question, own(_said(text))) for question, text in pairs])


def _said(text: str) -> str:
    """Without thoughts, and without ratings of other texts or of itself that stand beside the answer.

    >>> _said("<think>3?</think>It is 4. {confidence: 0.8}")
    'It is 4. '
    """
    return _BESIDE.sub("", text.rpartition("</think>")[2])


def kinds() -> list[str]:
    """The kinds that can be read, sorted."""
    return sorted(member.name for member in pkgutil.iter_modules(__path__) if not member.name.startswith("_"))


@cache
def _kind(name: str) -> _Kind:
    if name not in kinds():
        raise UsageError(f"answers of kind {name!r} can not be read", hint=f"kinds that can be: {', '.join(kinds())}")
    return cast(_Kind, importlib.import_module(f"{__name__}.{name}"))
