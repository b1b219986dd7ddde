"""What `pluribus calibrate` does: stored runs to a calibration, its report, and the file."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pluribus import cli
from pluribus.calibrate import Kept, Learned, Report, calibrate
from pluribus.cli import _screen
from pluribus.cli._files import check_place
from pluribus.cli._stores import reading
from pluribus.config import read_calibration
from pluribus.errors import ConfigError
from pluribus.panel import Panel
from pluribus.run import panel
from pluribus.stats import Estimate
from pluribus.store.files import whole


@dataclass(frozen=True, slots=True)
class Wishes:
    labels: bool
    kind: str
    check: float
    seed: int
    target: float | None


def go(runs: Sequence[str], out: Path, wishes: Wishes, *, home: Path | None, json: bool) -> int:
    """Learns, writes, and says what it is worth."""
    _check_free(out)
    learned = calibrate(
        [_panel(run, home) for run in runs],
        labels=wishes.labels, kind=wishes.kind, check=wishes.check, seed=wishes.seed, target=wishes.target,
    )  # fmt: skip
    with whole(out) as part:
        part.write_text(_text(learned), "utf-8")
    if json:
        print(jsonlib.dumps(_object(learned, out, wishes), ensure_ascii=False, indent=2))
    else:
        _print(_screen.out(), learned, out, wishes)
    return cli.OK


def _check_free(out: Path) -> None:
    """Nothing but an older calibration, or an empty file, is written over: no run, no council file, no device."""
    check_place(out, folder=False)
    if not out.exists() or not out.stat().st_size:
        return
    try:
        read_calibration(out)
    except ConfigError:
        raise ConfigError(f"--out {out} is there already and is no calibration", hint="choose another file") from None


def _panel(run: str, home: Path | None) -> Panel:
    with reading(run, home) as (store, found):
        return panel(store, found)


def _text(learned: Learned) -> str:
    content = learned.calibration.model_dump(mode="json", exclude_none=True)
    return jsonlib.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _object(learned: Learned, out: Path, wishes: Wishes) -> dict[str, Any]:
    return {
        "file": str(out),
        "seed": wishes.seed,
        "questions": {"learned_from": learned.fit, "checked_on": learned.report.n if learned.report else 0},
        "report": asdict(learned.report) if learned.report else None,
        "notes": list(learned.notes),
        "calibration": learned.calibration.model_dump(mode="json", exclude_none=True),
    }


# --- on the screen ---------------------------------------------------------------------------------------------------


def _print(console: Console, learned: Learned, out: Path, wishes: Wishes) -> None:
    console.print(_screen.text(_basis(learned, wishes)), soft_wrap=True)
    for note in learned.notes:
        console.print(_screen.text(f"note: {note}", style="yellow"), soft_wrap=True)
    console.print()
    console.print(_seats(learned))
    if learned.report:
        console.print()
        for line in _worth(learned, learned.report, wishes.target):
            console.print(_screen.text(line), soft_wrap=True)
        console.print()
        console.print(_coverage(learned.report))
    console.print()
    console.print(_screen.text(f"written: {out}; use it with: {_use(learned, out)}"), soft_wrap=True)


def _basis(learned: Learned, wishes: Wishes) -> str:
    known = learned.calibration
    what = "weights from keys" if known.labels else "weights from agreement alone"
    basis = f"{', '.join(known.runs)}: {what}, learned from {_screen.plural(learned.fit, 'question')}"
    if learned.report is None:
        return basis
    return f"{basis}; all that follows the seats is of the other {learned.report.n:,} (split by seed {wishes.seed})"


def _seats(learned: Learned) -> Table:
    table = _screen.table()
    table.add_column("seat", justify="right")
    for head in ("model", "persona"):
        table.add_column(head)
    for head in ("accuracy", "weight", "votes"):
        table.add_column(head, justify="right", no_wrap=True)
    for number, seat in enumerate(learned.calibration.seats, 1):
        who = (_screen.cell(_screen.model(seat.model)), _screen.cell(seat.persona or _screen.NOTHING))
        known = (_screen.share(seat.accuracy), f"{seat.weight:.3f}", _screen.count(seat.answered))
        table.add_row(str(number), *who, *known)
    return table


def _worth(learned: Learned, report: Report, target: float | None) -> Iterator[str]:
    if learned.calibration.rule == "weighted":
        yield (
            f"weighted vote {report.weighted:.4f}, plain vote {report.plain:.4f}: {_apart(report.gain)}, paired; "
            f"{_said(report.gain)}"
        )
    else:
        yield f"plain vote {report.plain:.4f}"
    if len(learned.calibration.seats) > 1:
        yield (
            f"best seat, chosen where it was learned: seat {report.best + 1} with {report.best_accuracy:.4f}; the vote "
            f"against it: {_apart(report.over_best)}, {_said(report.over_best)}"
        )
    yield (
        f"expected calibration error: {report.calibrated_error:.3f}, before {report.raw_error:.3f} "
        "(the leader's share of all weight taken for its chance)"
    )
    if report.target is not None:
        kept = report.target
        yield (
            f"for an accuracy of {target:g}: answering at a confidence of at least {kept.threshold:.4f} covers "
            f"{kept.coverage:.3f} of the questions, right {kept.accuracy:.4f} [{_screen.between(kept.interval)}]"
        )


def _apart(gain: Estimate) -> str:
    return f"{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"


def _said(gain: Estimate) -> str:
    if gain.low > 0:
        return "a gain"
    return "a loss" if gain.high < 0 else "no measurable difference"


def _coverage(report: Report) -> Table:
    table = _screen.table()
    for head in ("answered", "questions", "confidence from", "accuracy", "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    for kept in report.coverage:
        table.add_row(*_kept(kept))
    return table


def _kept(kept: Kept) -> tuple[str, ...]:
    share = f"{100 * kept.coverage:.0f} %"
    accuracy = _screen.share(kept.accuracy), _screen.between(kept.interval)
    return share, _screen.count(kept.n), f"{kept.threshold:.4f}", *accuracy


def _use(learned: Learned, out: Path) -> str:
    least = learned.calibration.threshold
    abstaining = "" if least is None else f" --abstain-below {least:g}"
    return f"pluribus run … --calibration {out}{abstaining}"
