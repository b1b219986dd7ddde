"""Steps held against a worked solution that is a chain of equations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.answers import canonical, read
from pluribus.types import Key, Question

_EQUATION = re.compile(
    r"""
    (?P<check> \bcheck:?\s+ )?
    (?<![\w.,]) (?P<before> -?[\d.]+ \s* [-+*/×÷−] \s* )?
    (?P<first> -?\d+%? ) \s* (?P<sign> [-+*/×÷−] | mod | of ) \s* (?P<second> \d+ )
    \s* = \s*
    (?P<result> -?\d+%? ) (?! [\d.]*\d | \s*[-+*/×÷−=]\s*\d )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ANSWER = re.compile(r"\bfinal answer\b|\bthe answer is\b|\banswer:|\\boxed\b|####", re.IGNORECASE)
_SIGNS = {"×": "*", "÷": "/", "−": "-"}


@dataclass(frozen=True, slots=True)
class _Said:
    """One equation as it was written; the operands of + and * by size."""

    first: str
    sign: str
    second: str
    result: str


def marks(question: Question, key: Key, steps: Sequence[str]) -> list[bool | None]:
    """One mark per step, as `check_steps` of the task describes them; all None without a worked solution.

    >>> key = Key("q", "14", solution="12 + 7 = 19. 19 - 5 = 14.")
    >>> marks(Question("q", "t", "?", "number"), key, ["given 12.", "let a: 7 + 12 = 19.", "so b = 2 (a - 5).", "Hm."])
    [True, True, None, None]
    """
    if key.solution is None:
        return [None for _ in steps]
    path = [_said(found) for found in _EQUATION.finditer(key.solution)]
    state: bool | None = True
    said = 0
    out = []
    for step in steps:
        if state is not False:
            state, said = _follow(step, path, said, state)
            state = _closed(question, key, step, state)
        out.append(state)
    return out


def _follow(step: str, path: list[_Said], said: int, state: bool | None) -> tuple[bool | None, int]:
    """The state behind a step's equations, and how many of the path's have been said."""
    found = [equation for equation in _EQUATION.finditer(step) if not equation["before"]]
    for equation in found:
        mine = _said(equation)
        if equation["check"]:
            state = state and _holds(mine)
        elif said < len(path) and mine == path[said]:
            said += 1
        elif mine not in path[:said]:
            # behind an equation nobody could read a true one may well be right
            state = False if state or not _holds(mine) else None
        if state is False:
            return False, said
    return (state if step.count("=") == len(found) else None), said


def _closed(question: Question, key: Key, step: str, state: bool | None) -> bool | None:
    """The state when the answer is looked at that a step gives, if it gives one."""
    if state is False or not _ANSWER.search(step) or (given := read(question, step)) is None:
        return state
    return state if key.answer is not None and given == canonical(question, key.answer) else False


def _said(found: re.Match[str]) -> _Said:
    sign = _SIGNS.get(found["sign"], found["sign"].lower())
    first, second = found["first"], found["second"]
    if sign in "+*" and "%" not in first and int(first) > int(second):
        first, second = second, first
    return _Said(first, sign, second, found["result"])


def _holds(said: _Said) -> bool | None:
    """Whether the equation is true as it stands; None: nobody can say what it means.

    >>> texts = ("7 * 2 = 14", "9 / 2 = 4", "25% of 28 = 7", "7 of 28 = 25%", "3 of 4 = 12")
    >>> [_holds(_said(_EQUATION.match(text))) for text in texts]
    [True, False, True, True, None]
    """
    percents = [word.endswith("%") for word in (said.first, said.result)]
    a, b, c = (int(word.rstrip("%")) for word in (said.first, said.second, said.result))
    if said.sign == "of":
        return (a * b == 100 * c if percents[0] else c * b == 100 * a) if percents.count(True) == 1 else None
    if any(percents):
        return None
    if said.sign in ("/", "mod"):
        return b != 0 and (a == b * c if said.sign == "/" else a % b == c)
    return {"+": a + b, "-": a - b, "*": a * b}[said.sign] == c
