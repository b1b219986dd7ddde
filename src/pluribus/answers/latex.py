r"""Mathematical answers: formulas, tuples, intervals, sets, matrices, equations and words, written in LaTeX or plainly.

Canonical: a number as the kind `number` writes it (`\frac{1}{2}` and `0.50` are `0.5`, `\frac13` is `1/3`), else LaTeX
in one form, so that equal answers are one class in a vote: `\frac1{\sqrt2}` is `\frac{\sqrt{2}}{2}`, `2, 1` is `1, 2`.
What can not be read as mathematics is its own words in lower case.

The conventions are those of MATH (Hendrycks et al. 2021, 2103.03874): units, degrees, currency and the name in `x = 5`
are dropped, `3\frac{1}{2}` is three and a half. A percent sign is a unit where the question speaks of per cent, else a
hundredth. Formulas are read by math-verify in worker processes, which are ended when a formula takes them too long.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from pluribus.answers._committed import Span, braced, committed, sentence, tail
from pluribus.answers._exact import written
from pluribus.answers._latex_parts import Reader, form, number
from pluribus.answers._latex_spelling import spelled
from pluribus.answers._pool import Job, Pool
from pluribus.types import Question

_LONGEST = 400
"""Characters of a formula that is read; a longer one is words."""
_MOST_PASSES = 6
_FEW_WORDS = 2
"""A text of so few words, without mark, formula or number, is the answer as a whole."""
_MATHS = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.\\])-?\$?\d[\d,]*(?:\.\d+)?(?:\s?/\s?\d+)?(?![\w/])")
# "4, which makes a square", "636 chimes in a 24-hour day": the number, where what follows is no part of a formula.
_CLAUSE = re.compile(
    r"(-?\\?\$?\d[\d,]*(?:\.\d+)?(?:/\d+)?),?\s+"
    r"(?!(?:and|or|sqrt|pi|times|plus|minus|over|to|per\s?cent|percent)\b)[A-Za-z]{2,}",
)
_PERCENT = re.compile(r"per\s?cent|%")
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*(?:(?=\{)|(?P<bare>[^\s${}\\]))")
_AND = re.compile(r"\s*(?:,?\s*(?:and|or)\b|,)\s*")
_LEADING = re.compile(
    r"(?:(?:therefore|thus|so|hence|simply|exactly|approximately|about|equal to|given by|then|that|the)\b[\s,:]*)+",
    re.IGNORECASE,
)


def read(text: str, question: Question) -> str | None:
    r"""The last committed formula; without any mark the last formula or number of the text.

    >>> q = Question("q", "t", "Solve.", "latex")
    >>> read(r"The area is $\boxed{\dfrac{50}{100}}$.", q), read("**Answer:** $(3, 4)$", q), read("So $x=2$.", q)
    ('0.5', '(3, 4)', '2')
    """
    words = words_of(text)
    return None if words is None else canonical(words, question)


def words_of(text: str) -> str | None:
    """The answer as the text writes it."""
    marked = False
    for span in committed(text):
        marked = True
        if words := _of_span(span):
            return words
    return None if marked else _last(tail(text))


def _of_span(span: Span) -> str | None:
    """A bare answer in braces or quotes; behind a phrase the first formula, else the first sentence."""
    if span.form in ("boxed", "hash", "quoted"):
        return span.text.strip() or None
    words = _LEADING.sub("", span.text.strip(" *_:"), count=1)
    first = _MATHS.search(words)
    if first is not None and not _NUMBER.match(words):
        return _joined(words, first)
    if clause := _CLAUSE.match(words):
        return clause[1]
    return sentence(words).strip(" *_") or None


def _joined(words: str, first: re.Match[str]) -> str:
    """A formula, with those that follow it in a list."""
    found = [_inside(first)]
    end = first.end()
    while (gap := _AND.match(words, end)) and (following := _MATHS.match(words, gap.end())):
        found.append(_inside(following))
        end = following.end()
    return ", ".join(found)


def _inside(found: re.Match[str]) -> str:
    return next(group for group in found.groups() if group is not None).strip()


def _last(end: str) -> str | None:
    if found := list(_MATHS.finditer(end)):
        return _inside(found[-1])
    numbers = _NUMBER.findall(end)
    if numbers:
        return str(numbers[-1])
    return end.strip() if 0 < len(end.split()) <= _FEW_WORDS else None


def boxed(solution: str) -> str | None:
    r"""What the last `\boxed{…}` or `\fbox{…}` of a solution holds; `\boxed 3` stands in MATH too.

    >>> boxed(r"So $\boxed{1}$ fails, it is $\boxed{\frac{1}{2}}$."), boxed(r"$\boxed 3$"), boxed("3")
    ('\\frac{1}{2}', '3', None)
    """
    found = list(_BOXED.finditer(solution))
    if not found:
        return None
    inside = braced(solution, found[-1].end()) if found[-1]["bare"] is None else found[-1]["bare"]
    return inside.strip() or None if inside is not None else None


def canonical(answer: str, question: Question) -> str | None:
    r"""The canonical form of a bare answer; None for an empty one.

    >>> q = Question("q", "t", "Solve.", "latex")
    >>> [canonical(a, q) for a in (r"\frac12", "x = 5", r"\$57{,}500", r"(2,\frac{6}{4}]", r"\text{ Even }", r"5!")]
    ['0.5', '5', '57500', '(2, 1.5]', 'even', '120']
    >>> canonical(r"\frac{1}{1+\sqrt{2}}", q) == canonical(r"\sqrt2 - 1", q)
    True
    """
    return _canonical(answer, _PERCENT.search(question.text) is not None) or None


def verified(key: str, answer: str, question: Question) -> bool:
    r"""Whether math-verify's own comparison takes two answers for equal, where their canonical forms differ.

    It is wider than canonical equality and no equivalence: it rounds decimals, so it can check an answer against a key
    but can not sort answers into classes.

    >>> verified("1/3", "0.3333333", Question("q", "t", "Solve.", "latex"))
    True
    """
    first, second = canonical(key, question), canonical(answer, question)
    if first is None or second is None or first == second:
        return first is not None and first == second
    return _verified(first, second)


def prefetch(texts: Iterable[tuple[Question, str]]) -> None:
    """Reads many texts on all workers at once; `read` then finds their formulas read."""
    with ThreadPoolExecutor(_pool().size) as threads:
        for _ in threads.map(lambda pair: read(pair[1], pair[0]), texts):
            pass


def unread() -> Mapping[str, str]:
    """The formulas whose reading was ended, with why: `timeout` or `died`. They count as their words."""
    return MappingProxyType(_unread)


def _canonical(answer: str, percent_is_unit: bool) -> str:
    value = number(answer)
    return written(value) if value is not None else _normal(answer[: 4 * _LONGEST], percent_is_unit)


@lru_cache(maxsize=65536)
def _normal(answer: str, percent_is_unit: bool) -> str:
    """The form that is its own form."""
    reader = Reader(_formula, _equation, percent_is_unit)
    once = spelled(answer)
    for _ in range(_MOST_PASSES):
        try:
            again = form(spelled(once), reader)
        except RecursionError:  # hundreds of brackets in each other are no answer of mathematics
            break
        if again == once:
            break
        once = again
    return once


@lru_cache(maxsize=65536)
def _formula(words: str) -> str | None:
    return _asked({"expression": words}, words)


@lru_cache(maxsize=4096)
def _equation(left: str, right: str) -> str | None:
    return _asked({"equation": [left, right]}, f"{left} = {right}")


@lru_cache(maxsize=4096)
def _verified(key: str, answer: str) -> bool:
    reply = _pool().ask({"verify": [key, answer]})
    if reply.value is None:
        _note(f"{key} ≟ {answer}", reply.failure)
        return False
    return reply.value.get("equal") is True


def _asked(job: Job, words: str) -> str | None:
    reply = _pool().ask(job)
    if reply.value is None:
        _note(words, reply.failure)
        return None
    if exact := reply.value.get("number"):
        return written(Fraction(exact))
    found = reply.value.get("latex")
    return found if isinstance(found, str) else None


_unread: dict[str, str] = {}
_MOST_NOTES = 1000


def _note(words: str, why: str | None) -> None:
    if len(_unread) < _MOST_NOTES:
        _unread[words] = why or "died"


_MOST_WORKERS = 4
_lock = threading.Lock()
_pools: list[Pool] = []
_left_behind: list[Pool] = []


def _pool() -> Pool:
    """The process's workers, started at the first formula."""
    with _lock:
        if not _pools:
            size = max(
                1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
            )
            _pools.append(Pool(Path(__file__).with_name("_formula_worker.py"), size=size))
        return _pools[0]


@atexit.register
def close() -> None:
    """Ends the workers; the next formula starts new ones."""
    with _lock:
        while _pools:
            _pools.pop().close()


def _after_fork() -> None:
    """A forked child must not speak through its parent's pipes."""
    global _lock
    _lock = threading.Lock()
    _left_behind.extend(_pools)
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
