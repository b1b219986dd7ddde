"""The tables of `pluribus evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from pluribus.cli import _screen
from pluribus.evaluating import Against, Value

if TYPE_CHECKING:
    from pluribus.cli._evaluator import Evaluated, Line

_LONGEST_NAME = 44
_UNBOUNDED = 10_000
"""Columns that nobody has."""


def show(console: Console, evaluated: Evaluated) -> None:
    """Scores of every subject on every task, what they took, and what has to be said about them."""
    for made in (*_fitted(console, evaluated), _costs(evaluated)):
        console.print(made)
        console.print()
    for line in _notes(evaluated):
        console.print(_screen.line(line, "dim"), soft_wrap=True)
    for remark in evaluated.remarks:
        console.print(_screen.line(remark, "yellow"), soft_wrap=True)
    if evaluated.stopped:
        console.print(_screen.line(f"stopped: {evaluated.stopped}", "yellow"), soft_wrap=True)


def _fitted(console: Console, evaluated: Evaluated) -> list[Table]:
    """Scores and comparisons in one table, or in two where it would be wider than the screen."""
    made = _table(evaluated, scores=True, comparisons=bool(evaluated.comparisons))
    wanted = console.measure(made, options=console.options.update(max_width=_UNBOUNDED)).maximum
    if wanted <= console.width or not evaluated.comparisons:
        return [made]
    return [
        _table(evaluated, scores=True, comparisons=False),
        _table(evaluated, scores=False, comparisons=True),
    ]


def _table(evaluated: Evaluated, *, scores: bool, comparisons: bool) -> Table:
    """One line per metric; task and subject stand in the first of theirs. Comparisons alone: of those compared."""
    against = {(one.task, one.subject, one.metric): one for one in evaluated.comparisons}
    table = _screen.table()
    _names(table)
    table.add_column("metric", no_wrap=True)
    heads = ["value", "95 % interval", "n"] if scores else []
    heads += ["− baseline", "95 % interval", "p", "Holm"] if comparisons else []
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    last = None
    for line in evaluated.lines:
        sheet = line.sheet
        beside = {name: against.get((sheet.task, sheet.subject, name)) for name in line.values}
        shown = [name for name, one in beside.items() if scores or one is not None]
        for place, name in enumerate(shown):
            task = sheet.task if sheet.task != last else ""
            last = sheet.task
            cells = _score(line.values[name]) if scores else []
            cells += _difference(beside[name]) if comparisons else []
            table.add_row(_screen.cell(task), _screen.line(_name(line, evaluated) if not place else ""), name, *cells)
        if scores and not line.values:
            table.add_row(_screen.cell(sheet.task), _screen.line(_name(line, evaluated)), _screen.NOTHING)
        if len(shown) > 1:
            table.add_section()
    return table


def _score(one: Value) -> list[str]:
    return [f"{one.value:.4f}", _screen.between((one.low, one.high)), _screen.count(one.n)]


def _difference(one: Against | None) -> list[str]:
    if one is None:
        return [""] * 4
    return [f"{one.difference:+.4f}", f"{one.low:+.3f} – {one.high:+.3f}", p(one.p), p(one.p_adjusted)]


def p(value: float | None) -> str:
    """
    >>> p(0.0312), p(0.00004), p(None)
    ('0.031', '<0.001', '–')
    """
    return _screen.NOTHING if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _costs(evaluated: Evaluated) -> Table:
    table = _screen.table()
    _names(table)
    for head in ("asked", "answered", "failed", "samples", "calls", "tokens/question", "cost"):
        table.add_column(head, justify="right", no_wrap=True)
    last = None
    for line in evaluated.lines:
        told, task = line.totals, line.sheet.task if line.sheet.task != last else ""
        last = line.sheet.task
        tokens = _screen.NOTHING if told.tokens_per_question is None else f"{told.tokens_per_question:,.1f}"
        counts = (told.n, told.answered, told.failed, line.sheet.samples, told.calls)
        cells = [*map(_screen.count, counts), tokens, _screen.usd(told.cost_usd)]
        table.add_row(_screen.cell(task), _screen.line(_name(line, evaluated)), *cells)
    return table


def _names(table: Table) -> None:
    table.add_column("task", no_wrap=True)
    table.add_column("subject", max_width=_LONGEST_NAME, overflow="fold")


def _name(line: Line, evaluated: Evaluated) -> str:
    """Short, where that tells it apart: folders of different trainings often have one name."""
    subject = line.sheet.subject
    if line.sheet.kind != "model":
        return subject
    short = _screen.model(subject)
    subjects = {other.sheet.subject for other in evaluated.lines}
    return short if sum(_screen.model(other) == short for other in subjects) == 1 else subject


def _notes(evaluated: Evaluated) -> Iterator[str]:
    """How the numbers are to be read, where there are such."""
    kinds = {one.test for one in evaluated.comparisons}
    if kinds:
        tests = " and ".join(sorted(words for test, words in _TESTS.items() if test in kinds))
        names = " or ".join(dict.fromkeys(one.baseline for one in evaluated.comparisons))
        yield f"− baseline: paired with {names} on the same questions; p: {tests}; Holm over each metric"
    if evaluated.embedder:
        yield f"bertscore: F1 with the tokens of {evaluated.embedder}, not rescaled"
    if "ece" in evaluated.metrics and any("ece" in line.values for line in evaluated.lines):
        yield "ece, brier: of a run's confidence, else of the share of the votes; smaller is better"


_TESTS = {"McNemar": "McNemar's exact test", "bootstrap": "the paired bootstrap"}
