"""What `pluribus label` found, as records, on the screen and as one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from pluribus.cli import _screen
from pluribus.cli._labelled import Labels, Source, Written
from pluribus.cli._progress import spent
from pluribus.consensus.alarm import Drift
from pluribus.label import settle
from pluribus.stats import Estimate, wilson
from pluribus.traffic import Tally
from pluribus.verdicts import kappa

_FEW = 10
"""Fewer wrong (or right) answers say next to nothing of how a judge meets them."""
_REASONS = 5


@dataclass(frozen=True, slots=True)
class Counts:
    """The turns that one of them was asked about."""

    by: str
    turns: int
    right: int
    wrong: int
    undecided: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Verdicts beside those of the checker, on the same turns."""

    right: int
    """Turns that the checker calls right, of those with a verdict."""
    right_said_right: int
    wrong: int
    wrong_said_right: int
    silent: int
    """Turns without a verdict: in none of the shares."""
    kappa: float | None

    @classmethod
    def of(cls, pairs: Sequence[tuple[bool | None, bool | None]]) -> Compared:
        """(the checker's, the other's) of each turn; the checker's is never None."""
        heard = Counter(pair for pair in pairs if pair[1] is not None)
        first, second = ([None if pair[side] is None else str(pair[side]) for pair in pairs] for side in (0, 1))
        return cls(
            heard[True, True] + heard[True, False], heard[True, True], heard[False, True] + heard[False, False],
            heard[False, True], len(pairs) - heard.total(), kappa(first, second),
        )  # fmt: skip

    @property
    def n(self) -> int:
        return self.right + self.wrong

    @property
    def equal(self) -> int:
        return self.right_said_right + self.wrong - self.wrong_said_right


@dataclass(slots=True)
class Heard:
    """A judge at work."""

    name: str
    asked: int
    """Turns it is to judge, those of the audit included."""
    said: int = 0
    """Of these, the ones that it was asked about before the budget stopped it."""
    silent: int = 0
    """Of these, without a verdict: the call failed, or the reply could not be read."""
    failures: Counter[str] = field(default_factory=Counter)
    """Why calls failed."""
    stopped: str | None = None
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class HeldOut:
    run: str
    compared: Compared


@dataclass(slots=True)
class Found:
    by: str
    labels: Labels
    """Attempt id → all labels of its turns, undecided ones included."""
    counts: list[Counts]
    least: float = 0.0
    judge: Heard | None = None
    compared: Compared | None = None
    """None: there was nothing to compare with."""
    held_out: HeldOut | None = None
    drift: Drift | None = None
    written: Written | None = None


def whole(found: Found) -> Counts:
    """All turns, each by whose word counts."""
    settled = Counter(correct for several in found.labels.values() for correct in settle(several).values())
    return Counts("together", settled.total(), settled[True], settled[False], settled[None])


def show(console: Console, source: Source, found: Found) -> None:
    answered = _screen.plural(len(source.cases), "question")
    failed = f", {source.failed:,} failed and left out" if source.failed else ""
    console.print(_screen.text(f"{source.name}: every answer of {answered}{failed}"), soft_wrap=True)
    console.print()
    console.print(_counts_table(found))
    for line in _judge_lines(found):
        console.print(line, soft_wrap=True)
    for title, compared in _comparisons(found):
        console.print()
        console.print(_screen.text(title), soft_wrap=True)
        console.print(_compared_table(compared))
        for line in _cautions(compared):
            console.print(_screen.text(line, "yellow"), soft_wrap=True)
    for line in (*_drift_lines(found.drift), *_written_lines(found.written)):
        console.print()
        console.print(line, soft_wrap=True)


def _counts_table(found: Found) -> Table:
    table = _screen.table()
    table.add_column("by")
    for head in ("turns", "right", "not right", "undecided"):
        table.add_column(head, justify="right", no_wrap=True)
    lines = [*found.counts, whole(found)] if len(found.counts) > 1 else found.counts
    for one in lines:
        table.add_row(one.by, *map(_screen.count, (one.turns, one.right, one.wrong, one.undecided)))
    return table


def _judge_lines(found: Found) -> Iterator[Any]:
    judge = found.judge
    if judge is None:
        return
    tally = judge.tally
    yield _screen.text(
        f"judge {judge.name}: {_screen.plural(tally.calls, 'call')}, {tally.hits:,} cached, {spent(tally)}", "dim"
    )
    unread = judge.silent - judge.failures.total()
    if unread > 0:
        yield _screen.text(f"{_screen.plural(unread, 'verdict')} could not be read: undecided", "yellow")
    for reason, number in judge.failures.most_common(_REASONS):
        yield _screen.line(f"{_screen.plural(number, 'call')} failed: {reason}", "yellow")
    if judge.stopped:
        left = _screen.plural(judge.asked - judge.said, "turn")
        yield _screen.text(f"stopped: {judge.stopped}; {left} not judged; what was asked costs nothing again", "yellow")


def _comparisons(found: Found) -> Iterator[tuple[str, Compared]]:
    if found.compared is not None and (found.compared.n or found.compared.silent):
        turns = _screen.plural(found.compared.n + found.compared.silent, "turn")
        who = "the judge" if found.judge else "pseudo-labels"
        yield f"{who} against the checker, on {turns} that the checker decided", found.compared
    if found.held_out is not None:
        yield f"pseudo-labels against the checker, on held-out {found.held_out.run}", found.held_out.compared


def _compared_table(compared: Compared) -> Table:
    table = _screen.table()
    table.add_column("measure")
    for head in ("value", "95 % interval", "turns"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, count, of in _shares(compared):
        value = count / of if of else None
        between = _screen.between(wilson(count, of) if of else None)
        table.add_row(name, _screen.share(value), between, _screen.count(of))
    table.add_row("Cohen's kappa", _screen.share(compared.kappa), _screen.NOTHING, _screen.count(compared.n))
    table.add_row("no verdict", _screen.NOTHING, _screen.NOTHING, _screen.count(compared.silent))
    return table


def _shares(compared: Compared) -> Iterator[tuple[str, int, int]]:
    yield "agreement", compared.equal, compared.n
    yield "says right, of right answers (sensitivity)", compared.right_said_right, compared.right
    yield "says right, of wrong answers (1 − specificity)", compared.wrong_said_right, compared.wrong


def _cautions(compared: Compared) -> Iterator[str]:
    if not compared.n:
        return
    for kind, count in (("right", compared.right), ("wrong", compared.wrong)):
        if count < _FEW:
            yield f"{_screen.plural(count, f'{kind} answer')} among them: next to nothing is known of how it meets such"


def _drift_lines(found: Drift | None) -> Iterator[Any]:
    if found is None:
        return
    changes = (
        f"agreement {_change(found.agreement)} on {_screen.plural(found.questions, 'question')}, accuracy "
        f"{_change(found.accuracy)} on {found.held_out:,} held out"
    )
    if found.alarm:
        yield _screen.text(f"ALARM: the council agrees more and is right less: {changes}", "bold red")
    elif found.suspect:
        yield _screen.text(f"suspect, but within chance: {changes}; more held-out questions would tell", "yellow")
    else:
        yield _screen.text(f"no alarm: {changes}")


def _change(estimate: Estimate) -> str:
    return f"{estimate.value:+.4f} [{estimate.low:+.4f}, {estimate.high:+.4f}]"


def _written_lines(written: Written | None) -> Iterator[Any]:
    if written is None:
        return
    yield _screen.text(said(written))


def said(written: Written) -> str:
    """
    >>> said(Written("l.jsonl", 2, 6, 3, 1))
    'l.jsonl: 6 labelled answers of 2 questions; left out: 3 undecided answers, 1 question without a label'
    """
    left = [
        _screen.plural(written.undecided, "undecided answer") if written.undecided else "",
        f"{_screen.plural(written.without, 'question')} without a label" if written.without else "",
    ]
    out = ", ".join(filter(None, left))
    answers = _screen.plural(written.solutions, "labelled answer")
    return f"{written.file}: {answers} of {_screen.plural(written.questions, 'question')}" + (
        f"; left out: {out}" if out else ""
    )


# --- as one object ---------------------------------------------------------------------------------------------------


def as_object(source: Source, found: Found) -> dict[str, Any]:
    """What `--json` prints."""
    together = asdict(whole(found))
    del together["by"]
    return {
        "run": source.name,
        "source": source.place,
        "by": found.by,
        "min_share": found.least if found.by == "consensus" else None,
        "questions": len(source.cases),
        "failed": source.failed,
        **together,
        "labels": [asdict(one) for one in found.counts],
        "judge": _judge_object(found.judge),
        "audit": _compared_object(found.compared),
        "held_out": _held_out_object(found.held_out),
        "drift": asdict(found.drift) if found.drift else None,
        "out": asdict(found.written) if found.written else None,
    }


def _judge_object(judge: Heard | None) -> dict[str, Any] | None:
    if judge is None:
        return None
    tally = judge.tally
    return {
        "name": judge.name, "asked": judge.asked, "judged": judge.said, "failed": dict(judge.failures),
        "unreadable": max(judge.silent - judge.failures.total(), 0), "stopped": judge.stopped,
        "calls": tally.calls, "cached": tally.hits, "cost_usd": None if tally.unpriced else tally.cost_usd,
    }  # fmt: skip


def _compared_object(compared: Compared | None) -> dict[str, Any] | None:
    if compared is None:
        return None
    return {
        "turns": compared.n,
        "silent": compared.silent,
        "agreement": _share_object(compared.equal, compared.n),
        "kappa": compared.kappa,
        "says_right_of_right": _share_object(compared.right_said_right, compared.right),
        "says_right_of_wrong": _share_object(compared.wrong_said_right, compared.wrong),
    }


def _share_object(count: int, of: int) -> Mapping[str, Any]:
    if not of:
        return {"value": None, "interval": None, "n": 0}
    return {"value": count / of, "interval": list(wilson(count, of)), "n": of}


def _held_out_object(held_out: HeldOut | None) -> dict[str, Any] | None:
    return {"run": held_out.run, **(_compared_object(held_out.compared) or {})} if held_out else None
