"""Votes to count again and again, from recorded outputs, from runs of a workspace and from samples: private to
`stopping.py`.

A panel is questions × voters of answers' numbers, and for each answer how right it is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from _behaviour import Programs, humaneval, lines
from pluribus.consensus.subsets import codes
from pluribus.panel import Panel, answers, right_Q_A
from pluribus.run import panel
from pluribus.store import Store
from subcouncils import panel_of_folder

POOLS = (
    "mmlu_pro_sample_29models",
    "mmlu_pro_logic_medicine_29models",
    "math_l5_43models",
    "gsm8k_24runs",
    "aqua_30runs",
    "svamp_18runs",
    "strategyqa_18runs",
)
FEWER = 40
"""Samples of the votes that others report on."""
GAME24 = ("cot", "standard")
_SAMPLES_24 = Path("samples", "tot_game24_100samples")


@dataclass(frozen=True, slots=True)
class Votes:
    name: str
    sort: str
    """What the voters are: samples of one model, or seats that differ."""
    ids: tuple[str, ...]
    """Of the questions; two panels with the same ids asked the same questions."""
    codes_Q_A: NDArray[np.int64]
    """Equal numbers for equal answers of one question; −1: no answer."""
    credit_Q_C: NDArray[np.float64]
    """How right each answer is, in [0, 1]: 0 or 1, but for classes of programs that hold right and wrong ones."""
    voters: int
    """How many are asked for the full vote: all of them, or so many drawn from them in each order."""
    note: str = ""


def votes_of(
    name: str, sort: str, ids: Sequence[str], said: Sequence[Sequence[str | None]], right: NDArray[np.float64]
) -> Votes:
    """The panel of answers; what is known of one voter's answer holds for the same answer of another."""
    numbers = codes(said)
    credit = np.zeros((len(numbers), int(numbers.max(initial=0)) + 1))
    for row, code_A, right_A in zip(credit, numbers, right, strict=True):
        for code in range(code_A.max(initial=-1) + 1):
            row[code] = np.nanmean(right_A[code_A == code])
    return Votes(name, sort, tuple(ids), numbers, credit, numbers.shape[1])


def of_two_sizes(found: Votes) -> Iterator[Votes]:
    """All samples, and a vote of `FEWER` of them."""
    yield found
    yield replace(found, name=f"{found.name}, {FEWER} of the samples", voters=FEWER, note="")


def of_panel(found: Panel, name: str, sort: str) -> Votes:
    ids = [item.question_id for item in found.items]
    return votes_of(name, sort, ids, answers(found), right_Q_A(found))


# --- recorded councils -----------------------------------------------------------------------------------------------


def recorded(data: Path, cache: Path, only: str) -> Iterator[Votes]:
    """Councils of different models, or of different prompts to them; every seat answered once."""
    for name in (name for name in POOLS if only in name):
        if (folder := data / "recorded" / name).is_dir():
            yield of_panel(panel_of_folder(folder, cache), name, "seats")


# --- runs of a workspace ---------------------------------------------------------------------------------------------


def runs(home: Path, draws: int) -> Iterator[Votes]:
    """The finished runs of a workspace in which one seat was sampled `draws` times a question, oldest first, one of
    each model and task."""
    seen = set()
    with Store.open(home) as store:
        names = [run.name for run in store.runs() if run.status == "finished"]
        for name in reversed(names):
            found = panel(store, name)
            whole = len(found.members) == draws and not found.unasked
            if whole and len({member.seat for member in found.members}) == 1:
                title = f"{found.members[0].model}, {found.task}"
                if title not in seen:
                    yield of_panel(found, title, "samples")
                seen.add(title)


# --- programs --------------------------------------------------------------------------------------------------------


def programs(data: Path, cache: Path) -> Iterator[Votes]:
    """HumanEval: an answer is what a program does; a class is as right as the share of its programs that pass."""
    tasks = humaneval(data, cache)
    right = np.array([task.correct for task in tasks], dtype=np.float64)
    found = votes_of("HumanEval, codegen-16B", "samples", [t.task_id for t in tasks], [t.classes for t in tasks], right)
    yield from of_two_sizes(replace(found, note=_purity(tasks, found)))


def _purity(tasks: Sequence[Programs], found: Votes) -> str:
    mixed = found.credit_Q_C[(found.credit_Q_C > 0) & (found.credit_Q_C < 1)]
    classes = sum(len(set(task.classes) - {None}) for task in tasks)
    rows = list(zip(found.codes_Q_A, found.credit_Q_C, tasks, strict=True))
    inside = sum(int(np.isin(code_A, np.flatnonzero((c > 0) & (c < 1))).sum()) for code_A, c, _ in rows)
    silent = int((found.codes_Q_A < 0).sum())
    passing = sum(right for code_A, _, t in rows for code, right in zip(code_A, t.correct, strict=True) if code < 0)
    several = sum(len(set(code_A[np.array(t.correct)].tolist()) - {-1}) > 1 for code_A, _, t in rows)
    return (
        f"{classes:,} classes of behaviour; {len(mixed)} hold right and wrong programs ({inside:,} of "
        f"{found.codes_Q_A.size:,} samples are in them); {silent:,} samples answer nothing, {passing} of which are "
        f"recorded as right; on {several} tasks the right programs are of several classes"
    )


# --- the game of 24 --------------------------------------------------------------------------------------------------

_DOES: dict[type[ast.AST], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def game24(data: Path) -> Iterator[Votes]:
    """Puzzles: an answer is the exact value of the expression, and whether it uses each number once."""
    for style in GAME24:
        if not (path := data / _SAMPLES_24 / f"game24_{style}.jsonl.gz").is_file():
            continue
        rows = list(lines(path))
        said = [[expression(sample["text"], row["puzzle"]) for sample in row["samples"]] for row in rows]
        right = np.array([[sample["correct"] for sample in row["samples"]] for row in rows], dtype=np.float64)
        found = votes_of(f"Game of 24, {style}", "samples", [str(row["idx"]) for row in rows], said, right)
        yield from of_two_sizes(replace(found, note=_agreement(said, right)))


def _agreement(said: Sequence[Sequence[str | None]], right: NDArray[np.float64]) -> str:
    ours = np.array([[answer == "24 with each number once" for answer in row] for row in said])
    empty = sum(answer is None for row in said for answer in row)
    return (
        f"{empty:,} of {right.size:,} samples give no expression; the class of 24 with each number once is what is "
        f"recorded as right in {int((ours == (right > 0)).sum()):,}"
    )


def expression(text: str, puzzle: str) -> str | None:
    """What the last answer of a text comes to; None: no expression.

    >>> expression("Answer: (10 - 6) * (5 - 4) * 4 = 24", "4 5 6 10")
    '16 with other numbers'
    """
    said = text.rpartition("Answer:")[2].strip().split("\n")[0]
    try:
        tree = ast.parse(said.partition("=")[0].strip(), mode="eval").body
        value = _value(tree)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None
    used = sorted(node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is int)
    return f"{value} with {'each number once' if used == sorted(map(int, puzzle.split())) else 'other numbers'}"


def _value(node: ast.AST) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _DOES:
        return _DOES[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError(f"{ast.dump(node)} is no arithmetic")
