"""Replies whose first wrong step people named, three published sets read from `../shared/data`; and what can be said
of them without a model."""

from __future__ import annotations

import ast
import gzip
import itertools
import json
import operator
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pluribus.metrics.first_error import NO_ERROR

FOLDER = "steps"
PROCESSBENCH = ("gsm8k", "math", "olympiadbench", "omnimath")
MISTAKE = ("dyck_languages", "logical_deduction", "multistep_arithmetic", "tracking_shuffled_objects", "word_sorting")
MRBEN = ("math", "physics", "chemistry", "biology", "medicine")
"""Without `coding`, whose solutions are programs and not cut into steps."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One solution with its first wrong step."""

    steps: tuple[str, ...]
    first: int
    """Index from 0; NO_ERROR: none."""


@dataclass(frozen=True, slots=True)
class Set:
    """One published set of replies."""

    name: str
    replies: tuple[Reply, ...]
    skipped: int = 0
    """Rows whose first wrong step is no number of a step of theirs."""


def processbench(data: Path, part: str) -> Set:
    """Zheng et al. 2024, arXiv 2412.06559: `label` is the index of the first wrong step, −1 for none."""
    rows = _rows(data / FOLDER / "processbench" / f"{part}.jsonl.gz")
    return _set(f"ProcessBench {part}", [(row["steps"], row["label"]) for row in rows])


def mistake(data: Path, part: str) -> Set:
    """Tyen et al. 2024, BIG-Bench Mistake, arXiv 2311.08516: `mistake_index` from 0, null for none."""
    rows = _rows(data / FOLDER / "bigbench_mistake" / f"{part}.jsonl.gz")
    found = [(row["steps"], NO_ERROR if row["mistake_index"] is None else row["mistake_index"]) for row in rows]
    return _set(f"BIG-Bench Mistake {part}", found)


def mrben(data: Path, part: str) -> Set:
    """Zeng et al. 2024, MR-Ben, arXiv 2406.13975: steps are a list written as text, the first wrong one its number from
    1 as text."""
    rows = [row for row in _rows(data / FOLDER / "mrben" / "mrben_6subjects.jsonl.gz") if row["file"] == part]
    return _set(f"MR-Ben {part}", [(_listed(row["Model_Solution_Steps"]), _number(row)) for row in rows])


def every(data: Path) -> Iterator[Set]:
    for read, parts in ((processbench, PROCESSBENCH), (mistake, MISTAKE), (mrben, MRBEN)):
        for part in parts:
            yield read(data, part)


def _set(name: str, rows: Sequence[tuple[Sequence[str], int | None]]) -> Set:
    good = [Reply(tuple(steps), first) for steps, first in rows if first is not None and first < len(steps)]
    return Set(name, tuple(good), len(rows) - len(good))


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _listed(found: Any) -> Sequence[str]:
    steps = ast.literal_eval(found) if isinstance(found, str) else found
    return [str(step) for step in steps]


def _number(row: Mapping[str, Any]) -> int | None:
    if str(row["Model_Solution_Correctness"]).strip().lower() == "correct":
        return NO_ERROR
    said = str(row["Model_Solution_First_Error_Step"]).strip()
    return int(said) - 1 if said.isdecimal() and int(said) > 0 else None


# --- what can be said without a model --------------------------------------------------------------------------------


def always_none(replies: Sequence[Reply]) -> list[int]:
    return [NO_ERROR] * len(replies)


def first_step(replies: Sequence[Reply]) -> list[int]:
    return [0] * len(replies)


def at_random(replies: Sequence[Reply], seed: int = 0) -> list[int]:
    """Every step and "none" alike."""
    rng = random.Random(seed)
    return [rng.randrange(NO_ERROR, len(reply.steps)) for reply in replies]


def usual_place(replies: Sequence[Reply], seed: int = 0) -> list[int]:
    """Where most errors of the other half of the set are, never "none"; the last step where the reply is shorter."""
    order = list(range(len(replies)))
    random.Random(seed).shuffle(order)
    halves = (order[::2], order[1::2])
    said = [NO_ERROR] * len(replies)
    for mine, other in (halves, halves[::-1]):
        places = Counter(replies[i].first for i in other if replies[i].first != NO_ERROR)
        usual = min(places, key=lambda place: (-places[place], place))
        for i in mine:
            said[i] = min(usual, len(replies[i].steps) - 1)
    return said


def arithmetic(replies: Sequence[Reply]) -> list[int]:
    """The first step that holds a false equation between numbers."""
    return [next((i for i, step in enumerate(reply.steps) if False in equations(step)), NO_ERROR) for reply in replies]


# --- equations between numbers ---------------------------------------------------------------------------------------

_PLAIN = (
    (re.compile(r"\\(?:times|cdot)\b|[×·∗]"), " * "),
    (re.compile(r"\\div\b|÷"), " / "),
    (re.compile(r"[−–]"), "-"),
    (re.compile(r"\\[dt]?frac\s*\{\s*(-?[\d.]+)\s*\}\s*\{\s*([\d.]+)\s*\}"), r"((\1)/(\2))"),
    (re.compile(r"\\(?:left|right|[,!; ()\[\]])"), ""),
    (re.compile(r"[\\$€£]"), ""),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (re.compile(r"(?<=\d) ?[xX] ?(?=\d)"), " * "),
    (re.compile(r"(?<=\d)\s*%\s*of\s+(?=\d)"), "/100 * "),
)  # fmt: skip
_RUN = re.compile(r"[\d.()+\-*/= ]*=[\d.()+\-*/= ]*")
_OPERATOR = re.compile(r"[\d)]\s*[-+*/]\s*[\d(]")
_OPERATORS: Mapping[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_LONGEST = 120
"""Characters of one side."""


def equations(text: str) -> list[bool]:
    """Whether each `a op b = c` between numbers holds; a result may be rounded to the decimals it is written with.

    What stands beside letters is a part of something else and left aside.

    >>> equations("18 - 3 = 15 eggs, and $2 * 15 = $31."), equations("2x + 3 + 4 = 13; Ann - 4 = 6; 10 / 3 = 3.33")
    ([True, False], [True])
    """
    for pattern, replacement in _PLAIN:
        text = pattern.sub(replacement, text)
    return [held for run in _RUN.finditer(text) for held in _chain(text, run)]


def _chain(text: str, run: re.Match[str]) -> Iterator[bool]:
    """The equations of a = b = c, a side that letters stand at left out."""
    sides: list[str | None] = [side.strip().rstrip(".") for side in run[0].split("=")]
    before, first = text[: run.start()], sides[0] or ""
    if re.search(r"[\w^%}\]]\Z", before) and (not run[0].startswith(" ") or first.startswith("-")):
        sides[0] = None
    if re.match(r"[\w^%{(]", text[run.end() :]) and not run[0].endswith(" "):
        sides[-1] = None
    for left, right in itertools.pairwise(sides):
        if left and right and (_OPERATOR.search(left) or _OPERATOR.search(right)):
            one, other = value(left), value(right)
            if one is not None and other is not None:
                yield abs(one - other) <= max(_rounding(left), _rounding(right))


def _rounding(side: str) -> Fraction:
    """Half a unit of the last decimal of a bare number; 0 for anything else."""
    found = re.fullmatch(r"-?\d*\.(\d+)", side)
    return Fraction(1, 2 * 10 ** len(found[1])) if found else Fraction(0)


def value(expression: str) -> Fraction | None:
    """The exact value of numbers, + − * / and parentheses; None for anything else.

    >>> value("(3 + 4) * 2"), value("+ 3"), value("1 / 0")
    (Fraction(14, 1), None, None)
    """
    if len(expression) > _LONGEST or expression.startswith(("+", "*", "/")) or "//" in expression or "**" in expression:
        return None
    try:
        return _value(ast.parse(re.sub(r"(?<![\d.])0+(?=\d)", "", expression), mode="eval").body)
    except (SyntaxError, ZeroDivisionError, ValueError):
        return None


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        found: Fraction = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
        return found
    raise ValueError("no arithmetic on numbers")
