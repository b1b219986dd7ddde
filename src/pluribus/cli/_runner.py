"""What `pluribus run` does: seating and forecast, the run with its progress, the result."""

from __future__ import annotations

import json as jsonlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from pluribus import cli
from pluribus.cli import _compare, _layers, _screen, _tables
from pluribus.cli._flags import CouncilFlags, DecisionFlags, LimitFlags, SamplingFlags, TaskFlags
from pluribus.cli._progress import Watch, spent
from pluribus.config import RunConfig, make_config
from pluribus.errors import ConfigError
from pluribus.run import Prepared, RunResult, prepare, run
from pluribus.store import Store
from pluribus.store.export import import_jsonl

Groups = tuple[TaskFlags, CouncilFlags, SamplingFlags, DecisionFlags, LimitFlags]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be run; `resumes` is the id of the stored run it goes on with."""

    config: RunConfig
    resumes: str | None = None


def new(council: Path | None, groups: Groups) -> Job:
    task, seats, sampling, decision, limits = groups
    return Job(_layers.make(council, task=task, seats=seats, sampling=sampling, decision=decision, limits=limits))


def resumed(name: str, council: Path | None, groups: Groups, home: Path | None) -> Job:
    """The stored run's own config; UsageError for a flag that would make it another run."""
    *others, limits = groups
    if council is not None:
        raise ConfigError(
            f"--resume {name} takes the stored council, found the file {council}", hint="give one of them"
        )
    _layers.refuse_all(others, f"can not be given with --resume: it takes everything from the stored run {name}")
    with Store.open(home) as store:
        stored = store.run(import_jsonl(store, Path(name)).run.id if Path(name).is_file() else name)
    return Job(_layers.more(make_config(stored.config, f"run {stored.name}"), limits), stored.id)


def go(job: Job, *, home: Path | None, dry_run: bool, json: bool) -> int:
    """Shows what will be, runs it unless it is a rehearsal, shows what was; the exit code."""
    prepared = prepare(job.config)
    show = _screen.err() if json else _screen.out()
    with ExitStack() as stack:
        store = None if dry_run else stack.enter_context(Store.open(home))
        answered = _answered(prepared, store) if store else 0
        _before(show, prepared, answered, job)
        if store is None:
            _print_json(json, {"dry_run": True, **_plan(prepared)})
            return cli.OK
        return _run(show, prepared, store, answered, json)


def _answered(prepared: Prepared, store: Store) -> int:
    statuses = store.statuses([attempt.id for attempt in prepared.attempts])
    return sum(status != "failed" for status in statuses.values())


def _before(show: Console, prepared: Prepared, answered: int, job: Job) -> None:
    show.print(_tables.facts(prepared, answered))
    show.print()
    show.print(_tables.seating(prepared.table))
    skipped = prepared.task.skipped
    for place in skipped[:3]:
        show.print(_screen.line(f"skipped {place}", "yellow"))
    if len(skipped) > 3:
        show.print(_screen.line(f"skipped {_screen.plural(len(skipped) - 3, 'more line')}", "yellow"))
    if job.resumes not in (None, prepared.id):
        show.print(_screen.line("the questions, the prompts or a model changed since: this is a new run", "yellow"))


def _run(show: Console, prepared: Prepared, store: Store, answered: int, json: bool) -> int:
    watch = Watch(len(prepared.attempts), answered)
    try:
        with watch:
            result = run(prepared, store, progress=watch, tally=watch.tally)
    except KeyboardInterrupt:
        left = f"{watch.done:,} of {_screen.plural(watch.total, 'question')} are stored"
        print(f"pluribus: interrupted; {left}; go on with: {_again(prepared.name)}", file=sys.stderr)
        return cli.INTERRUPTED
    after(show, result, time.monotonic() - watch.started)
    _print_json(json, as_object(result, prepared))
    return _code(result)


def _again(name: str) -> str:
    return f"pluribus run --resume {name}"


def after(show: Console, result: RunResult, duration_s: float | None = None) -> None:
    """Scores, comparison, what was sent, troubles, and where to look next."""
    show.print()
    _tables.scores(show, result)
    show.print()
    for line in (*_remarks(result), *_tables.troubles(result)):
        show.print(line)
    if duration_s is not None:
        show.print(f"{_sent(result)} in {_screen.seconds(duration_s)}")
    _ending(show, result)
    if duration_s is not None:
        show.print(f"stored; see it again with: pluribus show {result.name}", soft_wrap=True)


def _ending(show: Console, result: RunResult) -> None:
    if result.stopped:
        show.print(_screen.line(f"stopped: {result.stopped}", "yellow"))
    if len(result.rows) < result.asked:
        left = f"{result.asked - len(result.rows):,} of {_screen.plural(result.asked, 'question')} not asked yet"
        show.print(f"{left}; go on with: {_again(result.name)}", style="yellow", soft_wrap=True)


def _remarks(result: RunResult) -> Iterator[str]:
    comparison = _compare.against_best_seat(result)
    if comparison is not None:
        yield from _compare.words(comparison, withheld=any(row.credit != row.vote_credit for row in result.rows))
    if short := result.stopped_short():
        yield _tables.left_out(short)
    if (saved := result.stopping()) is not None:
        yield from _tables.stopping(saved)
    if (sure := result.sureness()) is not None:
        yield from _tables.confidence(sure, result.abstain_below)
    if line := _tables.pass_at(result.pass_at()):
        yield line
    unrun = sum(row.key is not None and row.credit is None and row.status != "failed" for row in result.rows)
    if unrun:
        yield f"{_screen.plural(unrun, 'question')} whose programs were not run: answered, not scored"
    unkeyed = sum(row.key is None for row in result.rows)
    if unkeyed:
        yield f"{_screen.plural(unkeyed, 'question')} without a key: answered, not scored"
    ties = sum(row.margin == 0 for row in result.rows)
    if ties:
        yield f"{_screen.plural(ties, 'question')} with a shared lead"


def _sent(result: RunResult) -> str:
    """Where the completions came from: models, recorded files, the store."""
    tally = result.tally
    if all(spec.service == "replay" for spec in result.table.specs):
        return f"{_screen.plural(tally.calls, 'recorded output')} read, no model called"
    known = f"{tally.hits:,} more came from the store" if tally.hits else ""
    sent = f"{_screen.plural(tally.calls, 'call')} sent ({spent(tally)})" if tally.calls else "no call sent"
    return ", ".join(part for part in (sent, known) if part)


def _code(result: RunResult) -> int:
    if result.stopped:
        return cli.BUDGET
    return cli.FAILED if any(row.status == "failed" for row in result.rows) else cli.OK


# --- as JSON -------------------------------------------------------------------------------------------------------


def _print_json(wanted: bool, value: Any) -> None:
    if wanted:
        print(jsonlib.dumps(value, ensure_ascii=False, indent=2))


def _plan(prepared: Prepared) -> dict[str, Any]:
    return {
        "run": prepared.name,
        "id": prepared.id,
        "task": prepared.task.task,
        "split": prepared.task.split,
        "skipped": list(prepared.task.skipped),
        "config": prepared.config.model_dump(mode="json", exclude_defaults=True),
        "seats": [asdict(seat) for seat in prepared.table.seats],
        "forecast": asdict(prepared.forecast),
    }


def as_object(result: RunResult, prepared: Prepared | None = None) -> dict[str, Any]:
    """A run for `--json`."""
    comparison = _compare.against_best_seat(result)
    saved, sure = result.stopping(), result.sureness()
    tally = {**asdict(result.tally), "errors": dict(result.tally.errors)}
    return {
        **(_plan(prepared) if prepared else _known(result)),
        "council": _tables.score_object(result.score),
        "alone": [_tables.score_object(score) for score in result.seat_scores().values()],
        "comparison": asdict(comparison) if comparison else None,
        "stopped_short": result.stopped_short(),
        "stopping": asdict(saved) if saved else None,
        "confidence": {**asdict(sure), "abstain_below": result.abstain_below} if sure else None,
        "pass_at": {str(k): value for k, value in result.pass_at().items()},
        "asked": len(result.rows),
        "questions": result.asked,
        "degraded": sum(row.status == "degraded" for row in result.rows),
        "formed": sum(row.usage.formed for row in result.rows),
        "unread": sum(row.usage.unread for row in result.rows),
        "failures": dict(result.failures()),
        "stopped": result.stopped,
        "sent": tally if prepared else None,
    }


def _known(result: RunResult) -> dict[str, Any]:
    seats: Sequence[Any] = result.table.seats
    return {"run": result.name, "id": result.id, "task": result.task, "seats": [asdict(seat) for seat in seats]}
