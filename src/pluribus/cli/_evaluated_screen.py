"""The tables of `pluribus evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from pluribus.cli import _screen
from pluribus.evaluating import Against

if TYPE_CHECKING:
    from pluribus.cli._evaluator import Evaluated, Line

_LONGEST_NAME = 44


def show(console: Console, evaluated: Evaluated) -> None:
    """Scores of every subject on every task, what they took, and what has to be said about them."""
    console.print(_scores(evaluated))
    console.print()
    console.print(_costs(evaluated))
    console.print()
    for line in _notes(evaluated):
        console.print(_screen.line(line, "dim"), soft_wrap=True)
    for remark in evaluated.remarks:
        console.print(_screen.line(remark, "yellow"), soft_wrap=True)
    if evaluated.stopped:
        console.print(_screen.line(f"stopped: {evaluated.stopped}", "yellow"), soft_wrap=True)


def _scores(evaluated: Evaluated) -> Table:
    """One line per metric; task and subject stand in the first of theirs."""
    against = {(one.task, one.subject, one.metric): one for one in evaluated.comparisons}
    table = _screen.table()
    _names(table)
    table.add_column("metric", no_wrap=True)
    heads = ["value", "95 % interval", "n"]
    heads += ["− baseline", "95 % interval", "p", "Holm"] if evaluated.comparisons else []
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    last = None
    for line in evaluated.lines:
        for place, (name, one) in enumerate(line.values.items()):
            task = line.sheet.task if line.sheet.task != last else ""
            last = line.sheet.task
            cells = [f"{one.value:.4f}", _screen.between((one.low, one.high)), _screen.count(one.n)]
            beside = against.get((line.sheet.task, line.sheet.subject, name))
            cells += _difference(beside) if evaluated.comparisons else []
            table.add_row(_screen.cell(task), _screen.line(_name(line) if not place else ""), name, *cells)
        if not line.values:
            table.add_row(_screen.cell(line.sheet.task), _screen.line(_name(line)), _screen.NOTHING)
        if len(line.values) > 1:
            table.add_section()
    return table


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
        table.add_row(_screen.cell(task), _screen.line(_name(line)), *cells)
    return table


def _names(table: Table) -> None:
    table.add_column("task", no_wrap=True)
    table.add_column("subject", max_width=_LONGEST_NAME, overflow="fold")


def _name(line: Line) -> str:
    return _screen.model(line.sheet.subject) if line.sheet.kind == "model" else line.sheet.subject


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
