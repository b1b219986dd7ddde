"""Seating, forecast and results as they are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from pluribus.backends import ModelSpec
from pluribus.cli import _screen
from pluribus.evaluate import Row
from pluribus.run import Forecast, Prepared, RunResult
from pluribus.run import Table as Council
from pluribus.types import Score, Seat

WIDE = 110
"""From so many columns on the scores fit one table."""
_PASS_AT = (1, 2, 5, 10, 20, 50, 100)
_SPELLED = 4
"""From so many values on, a list is only counted."""
_REASONS = 5
"""Reasons of failures that are spelled out."""


# --- before the run ------------------------------------------------------------------------------------------------


def facts(prepared: Prepared, answered: int) -> Table:
    """What will be run and how much of it there is; what is stored already costs nothing.

    Args:
        answered: questions that are stored with an answer.
    """
    config, task, told = prepared.config, prepared.task, prepared.forecast
    grid = _screen.grid()
    grid.add_row("run", _screen.text(prepared.name, style="bold"))
    stored = f"; {answered:,} answered before" if answered else ""
    grid.add_row("task", f"{task.task} ({task.split}): {_screen.plural(told.questions, 'question')}{stored}")
    grid.add_row("method", _screen.text(method_words(prepared.table)))
    grid.add_row("decision", f"{config.rule}; ties: {config.tie}; seed {config.seed}")
    grid.add_row("forecast", forecast(told))
    return grid


def method_words(council: Council) -> str:
    values = council.settings if isinstance(council.settings, Mapping) else asdict(council.settings)
    settings = ", ".join(f"{name} {_plain(value)}" for name, value in values.items() if value is not None)
    return f"{council.method}: {settings}" if settings else council.method


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]" if len(value) < _SPELLED else f"{len(value)} built in"
    return str(value).lower() if isinstance(value, bool) else str(value)


def forecast(told: Forecast) -> str:
    """Calls and tokens in one line.

    >>> forecast(Forecast(10, 50, 50, 900, 5000))
    '50 calls, about 900 prompt tokens or more, up to 5,000 generated'
    """
    calls = _screen.plural(told.most_calls, "call")
    if told.least_calls != told.most_calls:
        calls = f"{told.least_calls:,} to {calls}"
    prompts = f"about {_screen.large(told.prompt_tokens)} prompt tokens or more"
    return f"{calls}, {prompts}, up to {_screen.large(told.most_completion_tokens)} generated"


def seating(council: Council) -> Table:
    """Who sits where, as whom, and how they sample; equal neighbours share a line."""
    rows = [_seat_row(seat, spec) for seat, spec in zip(council.seats, council.specs, strict=True)]
    columns = [*_SEATING, *(["weight"] if any(seat.weight != 1 for seat in council.seats) else [])]
    if all(seat.persona is None for seat in council.seats):
        columns.remove("persona")
    table = _screen.table()
    table.add_column("seat", justify="right", no_wrap=True)
    for name in columns:
        words = name in ("model", "persona", "prompts")
        table.add_column(name, justify="left" if words else "right", no_wrap=not words)
    for cells, group in groupby(enumerate(rows, 1), key=lambda pair: pair[1]):
        places = [place for place, _ in group]
        seat = str(places[0]) if len(places) == 1 else f"{places[0]} – {places[-1]}"
        table.add_row(seat, *(_screen.cell(cells[name]) for name in columns))
    return table


_SEATING = ("model", "persona", "temperature", "top_p", "max tokens", "prompts")


def _seat_row(seat: Seat, spec: ModelSpec) -> dict[str, str]:
    drawn = seat.sampling
    return {
        "model": _screen.model(seat.model) + (f"@{spec.base_url}" if spec.base_url else ""),
        "persona": seat.persona or _screen.NOTHING,
        "temperature": f"{drawn.temperature:g}",
        "top_p": f"{drawn.top_p:g}",
        "max tokens": _screen.count(drawn.max_tokens),
        "prompts": seat.dialect,
        "weight": f"{seat.weight:g}",
    }


# --- after it ------------------------------------------------------------------------------------------------------

_HEADS = ("accuracy", "95 % interval", "asked", "answered", "abstained", "failed")
_COSTS = ("calls", "tokens", "cost")


def scores(console: Console, result: RunResult) -> None:
    """Each seat alone and the council; two tables where one is too wide."""
    lines = [*result.seat_scores().items(), (None, result.score)]
    if console.width >= WIDE:
        console.print(_score_table(result, lines, (*_HEADS, *_COSTS), models=True))
    else:
        console.print(_score_table(result, lines, _HEADS, models=False))
        console.print()
        console.print(_score_table(result, lines, _COSTS, models=True))


def _score_table(
    result: RunResult, lines: Sequence[tuple[int | None, Score]], heads: Sequence[str], *, models: bool
) -> Table:
    table = _screen.table()
    table.add_column("", no_wrap=True)
    if models:
        table.add_column("")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for place, (seat, line) in enumerate(lines):
        cells = _cells(line)
        name, who = _last(result.table)
        if seat is not None:
            name, who = f"seat {seat + 1}", _seat_words(result.table.seats[seat])
        table.add_row(
            name, *([_screen.cell(who)] if models else []), *(cells[head] for head in heads),
            style="bold" if seat is None else "", end_section=place == len(lines) - 2,
        )  # fmt: skip
    return table


def _last(table: Council) -> tuple[str, str]:
    """Name and words of the line that holds the whole: a council, or the one agent there is."""
    if len(table.seats) > 1:
        return "council", f"{table.method} of {len(table.seats)}"
    return table.method, _seat_words(table.seats[0])


def _seat_words(seat: Seat) -> str:
    return _screen.model(seat.model) + (f", {seat.persona}" if seat.persona else "")


def _cells(line: Score) -> dict[str, str]:
    return {
        "accuracy": _screen.share(line.value),
        "95 % interval": _screen.between(line.interval),
        "asked": _screen.count(line.n),
        "answered": _screen.count(line.answered),
        "abstained": _screen.count(line.n - line.answered - line.failed),
        "failed": _screen.count(line.failed),
        "calls": _screen.count(line.calls),
        "tokens": _screen.large(line.tokens),
        "cost": _screen.usd(line.cost_usd),
    }


def pass_at(values: Mapping[int, float]) -> str:
    """pass@k for a few k from 1 to all samples, in one line; empty without any.

    >>> pass_at({1: 0.25, 2: 0.4, 3: 0.5, 4: 0.55})
    'pass@1 0.250, pass@2 0.400, pass@4 0.550'
    """
    shown = [k for k in values if k in _PASS_AT or k == len(values)]
    return ", ".join(f"pass@{k} {values[k]:.3f}" for k in shown)


def troubles(result: RunResult) -> list[RenderableType]:
    """Failed and degraded questions, by reason."""
    return [
        *_reasons("failed", result.rows, "failed"),
        *_reasons("went on without a seat or a reply", result.rows, "degraded"),
        *_unread(result.rows),
    ]


def _unread(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """How many of the ratings, rankings and verdicts could not be read; each was asked for once more."""
    formed, unread = (sum(getattr(row.usage, name) for row in rows) for name in ("formed", "unread"))
    if unread:
        yield _screen.text(f"{unread:,} of {formed:,} replies in a form could not be read", style="yellow")


def _reasons(what: str, rows: Iterable[Row], status: str) -> Iterator[RenderableType]:
    reasons = Counter(reason(row) for row in rows if row.status == status)
    if not reasons:
        return
    yield _screen.text(f"{_screen.plural(reasons.total(), 'question')} {what}:", style="yellow")
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", min_width=5)
    grid.add_column(overflow="fold")
    common = reasons.most_common(_REASONS)
    for words, number in common:
        grid.add_row(f"{number:,} ×", _screen.line(words))
    if len(reasons) > _REASONS:
        rest = reasons.total() - sum(number for _, number in common)
        grid.add_row(f"{rest:,} ×", f"{_screen.plural(len(reasons) - _REASONS, 'other reason')}")
    yield grid


def reason(row: Row) -> str:
    """Why, as it is for many questions: without the question's own name."""
    return (row.reason or "unknown").replace(row.question_id, "…")


def score_object(line: Score) -> dict[str, Any]:
    """A score for `--json`, the abstentions counted apart."""
    return {**asdict(line), "abstained": line.n - line.answered - line.failed}
