"""What `pluribus label --steps` found: on the screen and as one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from pluribus.cli import _screen
from pluribus.cli._label_screen import Heard
from pluribus.cli._labelled import Source
from pluribus.cli._progress import spent
from pluribus.cli._reward_facts import Chance, auroc
from pluribus.metrics.first_error import FirstError, Share, first_error, place
from pluribus.step_labels import Marked, StepShare
from pluribus.types import Label

_REASONS = 5
Step = tuple[str, int, int]
"""Attempt id, turn and step."""


@dataclass(frozen=True, slots=True)
class Against:
    """Marks beside those of the task's own checker, on the same steps."""

    agreement: Share
    """Steps marked alike."""
    good: Share
    """Of the checker's good steps: marked good."""
    bad: Share
    """Of its bad steps: marked good."""
    first: FirstError
    """Whether the first wrong step is the same one, by reply."""
    shares: Chance | None
    """AUROC of the share of completions that are right: whether good steps have the higher one."""


@dataclass(slots=True)
class Found:
    how: str
    """checker, rollouts or judge."""
    source: Source
    heard: Heard
    """Who marked, and what was asked; `asked`, `said` and `silent` count answers."""
    marked: Mapping[str, Marked]
    left_out: Counter[str] = field(default_factory=Counter)
    against: Against | None = None

    @property
    def labels(self) -> list[Label]:
        return [one for marked in self.marked.values() for one in marked.labels]

    @property
    def shares(self) -> list[StepShare]:
        return [one for marked in self.marked.values() for one in marked.shares]


def against(marked: Mapping[str, Marked], truth: Mapping[str, Sequence[Label]]) -> Against:
    """How marks stand to the checker's, on the steps of which both say something.

    Args:
        truth: attempt id → the checker's labels of the same steps.
    """
    said, true = _by_step(marked), _known(label for labels in truth.values() for label in labels)
    both = [(said[at], true[at]) for at in said if at in true]
    alike = Counter(both)
    return Against(
        Share.of(alike[True, True] + alike[False, False], len(both)),
        Share.of(alike[True, True], alike[True, True] + alike[False, True]),
        Share.of(alike[True, False], alike[True, False] + alike[False, False]),
        _first(marked, truth),
        _shares(marked, true),
    )


def _known(labels: Any) -> dict[Step, bool]:
    return {(one.attempt_id, one.turn, one.step): one.correct for one in labels if one.correct is not None}


def _by_step(marked: Mapping[str, Marked]) -> dict[Step, bool]:
    return _known(label for one in marked.values() for label in one.labels)


def _first(marked: Mapping[str, Marked], truth: Mapping[str, Sequence[Label]]) -> FirstError:
    """By reply; one of which the checker can not say where it goes wrong is left out."""
    pairs = []
    for id, labels in truth.items():
        true, said = _places(labels), _places(marked[id].labels)
        pairs += [(said[turn], found) for turn, found in true.items() if found is not None]
    return first_error([said for said, _ in pairs], [true for _, true in pairs])


def _places(labels: Sequence[Label]) -> dict[int, int | None]:
    """Turn → where it goes wrong first."""
    marks: dict[int, list[bool | None]] = {}
    for one in labels:
        marks.setdefault(one.turn, []).append(one.correct)
    return {turn: place(several) for turn, several in marks.items()}


def _shares(marked: Mapping[str, Marked], true: Mapping[Step, bool]) -> Chance | None:
    """None where completions were not drawn at every step: halving draws where it looks, which is no sample."""
    asked = [one for several in marked.values() for one in several.shares]
    counted = Counter((one.attempt_id, one.turn) for one in asked)
    last = {(one.attempt_id, one.turn): one.step for one in asked}
    if any(counted[at] != step + 1 for at, step in last.items()):
        return None
    drawn = [one for one in asked if one.drawn]
    known = [one for one in drawn if (one.attempt_id, one.turn, one.step) in true]
    questions = {id: number for number, id in enumerate(dict.fromkeys(one.attempt_id for one in known))}
    return auroc(
        [one.right / one.drawn for one in known],
        [true[one.attempt_id, one.turn, one.step] for one in known],
        [questions[one.attempt_id] for one in known],
    ) if known else None  # fmt: skip


# --- the screen ------------------------------------------------------------------------------------------------------


def show(console: Console, found: Found) -> None:
    answers = _screen.plural(found.heard.said, "answer")
    questions = _screen.plural(len(found.marked), "question")
    console.print(
        _screen.text(f"{found.source.name}: the steps of {answers} to {questions}, by {found.heard.name}"),
        soft_wrap=True,
    )
    console.print()
    console.print(_table(found))
    for line in _lines(found):
        console.print(line, soft_wrap=True)
    if found.against is not None:
        console.print()
        console.print(_screen.text("against the task's own checker of steps"), soft_wrap=True)
        console.print(_against_table(found.against))


def _table(found: Found) -> Table:
    table = _screen.table()
    table.add_column("steps")
    for head in ("all", "good", "not good", "undecided"):
        table.add_column(head, justify="right", no_wrap=True)
    marks = Counter(one.correct for one in found.labels)
    table.add_row("", *map(_screen.count, (marks.total(), marks[True], marks[False], marks[None])))
    return table


def _lines(found: Found) -> Iterator[Any]:
    heard, tally = found.heard, found.heard.tally
    for why, number in found.left_out.items():
        yield _screen.text(f"left out: {why}: {number:,}", "dim")
    if found.how != "checker":
        yield _screen.text(f"{_screen.plural(tally.calls, 'call')}, {tally.hits:,} cached, {spent(tally)}", "dim")
    if found.shares:
        drawn, right = (sum(getattr(one, name) for one in found.shares) for name in ("drawn", "right"))
        yield _screen.text(f"{_screen.plural(drawn, 'completion')}, {right:,} of them right", "dim")
    for why, number in _silent(found).most_common(_REASONS):
        yield _screen.text(f"{_screen.plural(number, 'answer')} without a verdict: {why}", "yellow")
    for reason, number in heard.failures.most_common(_REASONS):
        yield _screen.line(f"{_screen.plural(number, 'call')} failed: {reason}", "yellow")
    if heard.stopped:
        left = _screen.plural(heard.asked - heard.said, "answer")
        yield _screen.text(f"stopped: {heard.stopped}; {left} not marked; what was asked costs nothing again", "yellow")


def _silent(found: Found) -> Counter[str]:
    return sum((one.silent for one in found.marked.values()), Counter[str]())


def _against_table(found: Against) -> Table:
    table = _screen.table()
    table.add_column("measure")
    for head in ("value", "95 % interval", "of"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, value, interval, n in _measures(found):
        table.add_row(
            name, _screen.share(value), _screen.between(interval), _screen.NOTHING if n is None else _screen.count(n)
        )
    return table


def _measures(found: Against) -> Iterator[tuple[str, float | None, tuple[float, float] | None, int | None]]:
    for name, one in (
        ("steps marked alike", found.agreement),
        ("marked good, of good steps", found.good),
        ("marked good, of bad steps", found.bad),
        ("first error found, of answers with one", found.first.erroneous),
        ("none found, of answers without", found.first.correct),
    ):
        yield name, one.value, _interval(one), one.n
    first = found.first
    yield "F1 of both", first.f1, None if first.low is None or first.high is None else (first.low, first.high), None
    if found.shares is not None:
        yield "AUROC of the completions' share", found.shares.value, (found.shares.low, found.shares.high), None


def _interval(share: Share) -> tuple[float, float] | None:
    return (share.low, share.high) if share.n else None


# --- as one object ---------------------------------------------------------------------------------------------------


def as_object(found: Found) -> dict[str, Any]:
    """What `--json` prints."""
    marks = Counter(one.correct for one in found.labels)
    heard, tally = found.heard, found.heard.tally
    return {
        "run": found.source.name,
        "source": found.source.place,
        "steps": found.how,
        "by": heard.name,
        "questions": len(found.marked),
        "answers": heard.said,
        "left_out": dict(found.left_out),
        "marks": {"all": marks.total(), "good": marks[True], "bad": marks[False], "undecided": marks[None]},
        "completions": {
            name: sum(getattr(one, name) for one in found.shares) for name in ("drawn", "right", "failed")
        } if found.how == "rollouts" else None,
        "without_verdict": dict(_silent(found)),
        "failed": dict(heard.failures),
        "stopped": heard.stopped,
        "calls": tally.calls,
        "cached": tally.hits,
        "cost_usd": None if tally.unpriced else tally.cost_usd,
        "against_checker": _against_object(found.against),
    }  # fmt: skip


def _against_object(found: Against | None) -> dict[str, Any] | None:
    if found is None:
        return None
    first = found.first
    return {
        "agreement": _share(found.agreement),
        "good_of_good": _share(found.good),
        "good_of_bad": _share(found.bad),
        "first_error": {
            "erroneous": _share(first.erroneous), "correct": _share(first.correct), "f1": first.f1,
            "interval": None if first.f1 is None else [first.low, first.high], "silent": first.silent,
        },
        "auroc_of_share": None if found.shares is None else {
            "value": found.shares.value, "interval": [found.shares.low, found.shares.high],
        },
    }  # fmt: skip


def _share(one: Share) -> dict[str, Any]:
    return {"value": one.value, "interval": [one.low, one.high] if one.n else None, "n": one.n}
