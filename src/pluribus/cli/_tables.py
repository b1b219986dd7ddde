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
from pluribus.calibrate import STOPPING
from pluribus.cli import _screen
from pluribus.config import CalibrationConfig, RunConfig
from pluribus.evaluate import Row, Stopped, Sureness
from pluribus.run import Forecast, Prepared, RunResult, why_unsure
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
    grid.add_row("decision", _screen.text(decision_words(config, prepared.table)))
    grid.add_row("forecast", forecast(told))
    return grid


def decision_words(config: RunConfig, council: Council) -> str:
    """How votes become a decision."""
    words = [config.rule, f"ties: {config.tie}", f"seed {config.seed}"]
    known = config.calibration
    if isinstance(known, CalibrationConfig):
        basis = f"{_screen.plural(known.n, 'question')} of {known.task}"
        why = why_unsure(config, council)
        words.append(f"no confidence: {why}" if why else f"confidence learned from {basis}")
        words += [] if config.abstain_below is None else [f"no answer below {config.abstain_below:g}"]
    return "; ".join(words)


def method_words(council: Council) -> str:
    values = council.settings if isinstance(council.settings, Mapping) else asdict(council.settings)
    idle = STOPPING if values.get("stop") == "none" else frozenset()
    told = [(name, value) for name, value in values.items() if value is not None and name not in idle]
    settings = ", ".join(f"{name} {_plain(value)}" for name, value in told)
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
        "weight": f"{seat.weight:.4g}",
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


def stopping(told: Stopped) -> list[str]:
    """What stopping early saved, and in shadow what it would have changed."""
    calls, saved = f"{told.asked:,} of {_screen.plural(told.of, 'call')}", told.saved
    share = f"{100 * saved.value:.1f} % saved [{100 * saved.low:.1f}, {100 * saved.high:.1f}]"
    first = f"stopping by {told.rule}{' in shadow' if told.shadow else ''}: {calls} needed, {share}"
    if told.changed is None:
        return [first]
    second = f"it would change {told.changed:,} of {_screen.plural(told.n, 'decision')}"
    if told.difference is not None and told.accuracy is not None and told.full is not None:
        gap = told.difference
        second += f"; accuracy at the stop {told.accuracy:.4f}, of all votes {told.full:.4f}"
        second += f": {gap.value:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}], paired"
    return [first, second]


def confidence(told: Sureness, abstain_below: float | None) -> list[str]:
    """How true the confidences are, and what abstaining below one of them gave."""
    whole = f"{told.accuracy:.4f} [{_screen.between(told.interval)}]"
    lines = [
        f"mean confidence {told.mean:.4f}, right {whole} of {told.n:,}; "
        f"expected calibration error {told.calibration_error:.3f}"
    ]
    if abstain_below is None:
        return lines
    covered = f"{told.answered:,} of {_screen.plural(told.n, 'question')} (coverage {told.answered / told.n:.3f})"
    if told.answered_accuracy is None:
        return [*lines, f"at a confidence of at least {abstain_below:g} nothing is answered"]
    part = f"{told.answered_accuracy:.4f} [{_screen.between(told.answered_interval)}]"
    return [*lines, f"at a confidence of at least {abstain_below:g} it answers {covered}: right {part}"]


def left_out(questions: int) -> str:
    """Why seats are not compared after a vote that stopped early."""
    return (
        f"seats alone and the best of them are left out: on {_screen.plural(questions, 'question')} the vote stopped "
        "before every seat was asked, so the last seats answered the hard ones only; --set stop_shadow=true asks all"
    )


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
