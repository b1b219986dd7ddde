"""What `pluribus sweep` does: forecast, the cells with their progress, the table of results."""

from __future__ import annotations

import json as jsonlib
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._flags import LimitFlags, TaskFlags, said
from pluribus.cli._tables import WIDE
from pluribus.config import BudgetConfig, make_config
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError
from pluribus.store import Store
from pluribus.sweep import Outcome, Plan, SweepFile, make_plan, read_sweep
from pluribus.sweep.engine import check, run_here
from pluribus.sweep.record import FAILED, STOPPED
from pluribus.sweep.trackers import Tracker
from pluribus.sweep.workers import gpus, run_in_workers

_SHOWN = 12
"""Finished cells that stay on the screen while others run."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Who does the work: cells at a time in this process, or processes on GPUs."""

    jobs: int = 1
    gpus: str | None = None
    jobs_per_gpu: int = 1


def go(
    path: Path,
    groups: tuple[TaskFlags, LimitFlags],
    crew: Crew,
    report_to: str,
    *,
    dry_run: bool,
    json: bool,
    home: Path | None,
) -> int:
    """Shows what will be, runs it unless it is a rehearsal, shows what was; the exit code."""
    devices = gpus(crew.gpus) if crew.gpus is not None else []
    _refuse_idle(crew)
    file = read_sweep(path)
    over, budget = _over(file, *groups)
    plan = make_plan(file, over=over, budget=budget, place=str(path))
    show = _screen.err() if json else _screen.out()
    if dry_run:
        show.print(facts(plan, None))
        show.print()
        show.print(_cells(plan))
        return _print(json, {"dry_run": True, **_object(plan)}, cli.OK)
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(home))
        show.print(facts(plan, _answered(plan, store)))
        block(check(plan, store))
        tracker = Tracker(report_to, plan)
        stack.callback(tracker.close)
        return _run(show, plan, store, _Screen(plan, tracker), crew, devices, path, json)


def _refuse_idle(crew: Crew) -> None:
    if crew.gpus is not None and crew.jobs > 1:
        raise ConfigError("--jobs and --gpus exclude each other", hint="several processes on a GPU: --jobs-per-gpu")
    if crew.gpus is None and crew.jobs_per_gpu > 1:
        raise ConfigError("--jobs-per-gpu needs --gpus", hint="say which, such as --gpus 0,1")


def _over(file: SweepFile, task: TaskFlags, limits: LimitFlags) -> tuple[dict[str, Any], BudgetConfig]:
    """The flags as entries that win in every cell, and the budget of the sweep."""
    flags = {**said(task), **said(limits)}
    bounds = {name.removeprefix("budget_"): value for name, value in flags.items() if name.startswith("budget_")}
    entries = {name: value for name, value in flags.items() if not name.startswith("budget_")}
    if entries.get("allow_code_execution") == "bubblewrap":
        entries["allow_code_execution"] = True
    whole = {**file.budget.model_dump(exclude_none=True), **bounds}
    return entries, make_config({"budget": whole}, "the budget").budget


def _answered(plan: Plan, store: Store) -> int:
    """Attempts of all cells that are stored with an answer."""
    ids = (attempt.id for cell in plan.cells for attempt in cell.prepared.attempts)
    return sum(status != "failed" for status in store.statuses(dict.fromkeys(ids)).values())


def _run(
    show: Console,
    plan: Plan,
    store: Store,
    screen: _Screen,
    crew: Crew,
    devices: Sequence[str],
    path: Path,
    json: bool,
) -> int:
    try:
        with screen:
            work = (
                run_in_workers(plan, store, screen, devices, crew.jobs_per_gpu)
                if devices
                else run_here(plan, store, screen, crew.jobs)
            )
            outcomes = block(work)
    except KeyboardInterrupt:
        left = f"{len(screen.outcomes):,} of {_screen.plural(len(plan.cells), 'cell')} are done and stored"
        print(f"pluribus: interrupted; {left}; go on with the same command", file=sys.stderr)
        return cli.INTERRUPTED
    ended = sorted(outcomes, key=lambda outcome: outcome.cell)
    show.print()
    show.print(results(plan, ended, _heads(show)))
    show.print()
    _remarks(show, plan, ended, time.monotonic() - screen.started, path)
    return _print(json, {**_object(plan), "results": [_result(plan, o) for o in ended]}, _code(plan, ended))


def _print(wanted: bool, value: Any, code: int) -> int:
    if wanted:
        print(jsonlib.dumps(value, ensure_ascii=False, indent=2))
    return code


def _code(plan: Plan, outcomes: Sequence[Outcome]) -> int:
    if any(o.status == STOPPED for o in outcomes) or len(outcomes) < len(plan.cells):
        return cli.BUDGET
    failed = any(o.status == FAILED or (o.score is not None and o.score.failed) for o in outcomes)
    return cli.FAILED if failed else cli.OK


# --- before ----------------------------------------------------------------------------------------------------------


def facts(plan: Plan, answered: int | None) -> Table:
    """What will be run and what it takes.

    Args:
        answered: attempts of all cells that are stored with an answer; None: nobody looked.
    """
    told = plan.forecast
    grid = _screen.grid()
    grid.add_row("sweep", _screen.text(plan.name, style="bold"))
    grid.add_row("cells", _cell_words(plan))
    grid.add_row("questions", _question_words(plan, answered))
    least = f"{told.least_calls:,} to " if told.least_calls != told.most_calls else ""
    grid.add_row("calls", f"each cell alone: {least}{told.most_calls:,}; shared calls made once: {told.shared_calls:,}")
    prompts, replies = _screen.large(told.prompt_tokens), _screen.large(told.most_completion_tokens)
    grid.add_row("tokens", f"about {prompts} of prompts or more, up to {replies} generated")
    grid.add_row("cost", _cost_words(plan))
    return grid


def _cell_words(plan: Plan) -> str:
    told = plan.forecast
    parts = [f"{told.cells - told.controls:,} of the grids"]
    if told.controls:
        parts.append(f"{_screen.plural(told.controls, 'control')} at equal calls")
    merged = f" ({_screen.plural(told.merged, 'point')} merged: the same run twice)" if told.merged else ""
    return " + ".join(parts) + merged


def _question_words(plan: Plan, answered: int | None) -> str:
    sizes = Counter((cell.prepared.task.task, len(cell.prepared.attempts)) for cell in plan.cells)
    per_cell = ", ".join(f"{_screen.plural(n, 'question')} of {task}" for task, n in sizes)
    before = f"; {answered:,} of {plan.forecast.questions:,} answered before" if answered else ""
    skipped = len({line for cell in plan.cells for line in cell.prepared.task.skipped})
    unread = f"; {_screen.plural(skipped, 'unreadable line')} skipped" if skipped else ""
    return f"{per_cell} in each cell{before}{unread}"


def _cost_words(plan: Plan) -> str:
    told = plan.forecast
    if not told.unpriced:
        return f"at most {_screen.usd(told.most_cost_usd)}"
    unpriced = f"unpriced: {', '.join(told.unpriced)}"
    return f"at most {_screen.usd(told.most_cost_usd)} + {unpriced}" if told.most_cost_usd else unpriced


def _cells(plan: Plan) -> Table:
    table = _screen.table()
    table.add_column("cell", no_wrap=True)
    table.add_column("calls", justify="right", no_wrap=True)
    table.add_column("run", no_wrap=True)
    table.add_column("")
    for cell in plan.cells:
        control = "control" if cell.control else ""
        table.add_row(_screen.line(cell.label), _screen.count(cell.calls), cell.prepared.name, control)
    return table


def _object(plan: Plan) -> dict[str, Any]:
    return {
        "sweep": plan.name,
        "id": plan.id,
        "forecast": asdict(plan.forecast),
        "cells": [
            {
                "label": cell.label, "coordinates": dict(cell.coordinates), "control": cell.control,
                "run": cell.prepared.name, "id": cell.prepared.id, "calls": cell.calls,
            }
            for cell in plan.cells
        ],
    }  # fmt: skip


# --- while it runs ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Screen:
    """Who looks on: a live table in a terminal, else a line per finished cell on stderr."""

    plan: Plan
    tracker: Tracker
    outcomes: list[Outcome] = field(default_factory=list)
    under_way: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    """Cell → questions answered, requests sent, when it began."""
    started: float = field(default_factory=time.monotonic)
    _live: AbstractContextManager[Any] = field(default_factory=nullcontext)

    def __enter__(self) -> _Screen:
        if sys.stderr.isatty():
            self._live = Live(console=_screen.err(), get_renderable=self.render, refresh_per_second=4, transient=True)
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.__exit__(kind, error, at)

    def begin(self, cell: int) -> None:
        self.under_way[cell] = (0, 0, time.monotonic())

    def advance(self, cell: int, done: int, sent: int) -> None:
        self.under_way[cell] = (done, sent, self.under_way[cell][2])

    def end(self, outcome: Outcome) -> None:
        del self.under_way[outcome.cell]
        self.outcomes.append(outcome)
        self.tracker.log(outcome)
        if not isinstance(self._live, Live):
            print(f"{self.counted()} · {_line(self.plan, outcome)}", file=sys.stderr, flush=True)

    def say(self, words: str) -> None:
        if isinstance(self._live, Live):
            self._live.console.print(_screen.line(words, "dim"))
        else:
            print(words, file=sys.stderr, flush=True)

    def _running(self, place: int, heads: Sequence[str]) -> list[RenderableType]:
        done, sent, began = self.under_way[place]
        cell = self.plan.cells[place]
        spent = _screen.seconds(time.monotonic() - began)
        told = {"accuracy": f"{done:,}/{len(cell.prepared.attempts):,}", "calls sent": f"{sent:,}", "time": spent}
        return [_screen.line(cell.label), *(told.get(head, "") for head in heads)]

    def counted(self) -> str:
        return f"{len(self.outcomes):,}/{len(self.plan.cells):,} cells"

    def render(self) -> RenderableType:
        heads = _heads(_screen.err())
        table = _table(heads)
        for outcome in self.outcomes[-_SHOWN:]:
            table.add_row(*_row(self.plan, outcome, heads))
        for place in self.under_way:
            table.add_row(*self._running(place, heads), style="bold")
        failed = sum(outcome.status == FAILED for outcome in self.outcomes)
        sent = sum(o.sent for o in self.outcomes) + sum(sent for _, sent, _ in self.under_way.values())
        elapsed = _screen.seconds(time.monotonic() - self.started)
        words = f"{self.counted()} · {_screen.plural(sent, 'call')} sent · {failed:,} failed · {elapsed}"
        return Group(table, Text(words, style="dim"))


def _line(plan: Plan, outcome: Outcome) -> str:
    """A finished cell in one line."""
    label, score = plan.cells[outcome.cell].label, outcome.score
    if outcome.status == FAILED or score is None:
        return f"{label}: {outcome.status}: {outcome.reason}"
    found = "no key" if score.value is None else f"{_screen.share(score.value)} [{_screen.between(score.interval)}]"
    spent = f"{_screen.plural(outcome.sent, 'call')} sent, {outcome.known:,} from the store"
    stopped = f" · stopped: {outcome.reason}" if outcome.status == STOPPED else ""
    return f"{label}: {found} · {spent} · {_screen.seconds(outcome.seconds)}{stopped}"


# --- after -----------------------------------------------------------------------------------------------------------

_HEADS = ("accuracy", "95 % interval", "failed", "calls sent", "from store", "time")
_NARROW = ("accuracy", "95 % interval", "calls sent", "time")
"""What a small terminal has room for beside the cells' names; the rest is summed up below the table."""


def _heads(console: Console) -> tuple[str, ...]:
    return _HEADS if console.width >= WIDE else _NARROW


def _table(heads: Sequence[str]) -> Table:
    table = _screen.table()
    table.add_column("cell")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _row(plan: Plan, outcome: Outcome, heads: Sequence[str]) -> list[RenderableType]:
    score = outcome.score
    found: dict[str, str] = {"accuracy": outcome.status}
    if outcome.status != FAILED and score is not None:
        interval = _screen.between(score.interval)
        found = {"accuracy": _screen.share(score.value), "95 % interval": interval, "failed": f"{score.failed:,}"}
    counts = {"calls sent": f"{outcome.sent:,}", "from store": f"{outcome.known:,}"}
    told = {**found, **counts, "time": _screen.seconds(outcome.seconds)}
    return [_screen.line(plan.cells[outcome.cell].label), *(told.get(head, "") for head in heads)]


def results(plan: Plan, outcomes: Sequence[Outcome], heads: Sequence[str]) -> Table:
    """One line per cell: accuracy, interval, failures, calls, time."""
    table = _table(heads)
    for outcome in outcomes:
        table.add_row(*_row(plan, outcome, heads))
    return table


def _remarks(show: Console, plan: Plan, outcomes: Sequence[Outcome], duration_s: float, path: Path) -> None:
    reasons = Counter(o.reason or "unknown" for o in outcomes if o.status == FAILED)
    for reason, number in reasons.most_common():
        show.print(_screen.line(f"{_screen.plural(number, 'cell')} failed: {reason}", "yellow"))
    degraded = sum(o.degraded > 0 for o in outcomes)
    if degraded:
        show.print(_screen.line(f"{_screen.plural(degraded, 'cell')} went on without a seat or a reply", "yellow"))
    if stopped := next((o.reason for o in outcomes if o.status == STOPPED), None):
        show.print(_screen.line(f"stopped: {stopped}", "yellow"))
    lost = sum(o.score.failed for o in outcomes if o.status != FAILED and o.score is not None)
    if lost:
        show.print(_screen.line(f"{_screen.plural(lost, 'question')} failed in finished cells", "yellow"))
    if left := len(plan.cells) - len(outcomes):
        words = f"{_screen.plural(left, 'cell')} not begun; go on with: pluribus sweep {path}"
        show.print(words, style="yellow", soft_wrap=True)
    sent, known = sum(o.sent for o in outcomes), sum(o.known for o in outcomes)
    spent = f"{_screen.plural(sent, 'call')} sent, {known:,} from the store"
    show.print(f"{_screen.plural(len(outcomes), 'cell')}, {spent}, in {_screen.seconds(duration_s)}")
    show.print(f"stored; see it with: pluribus report {plan.name}", soft_wrap=True)


def _result(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    cell = plan.cells[outcome.cell]
    return {"label": cell.label, "run": cell.prepared.name, "id": cell.prepared.id, **asdict(outcome)}
