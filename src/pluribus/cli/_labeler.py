"""What `pluribus label` does: who says of each answer whether it is right, and how far they can be believed."""

from __future__ import annotations

import json as jsonlib
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.live import Live

from pluribus import cli
from pluribus.cli import _label_screen, _screen
from pluribus.cli._files import check_place
from pluribus.cli._flags import LimitFlags, said
from pluribus.cli._label_screen import Compared, Counts, Found, Heard, HeldOut
from pluribus.cli._labelled import Case, Labels, Source, check, sourced, write
from pluribus.cli._panels import one_panel
from pluribus.cli._progress import Watch
from pluribus.codec import content_id
from pluribus.consensus.agreement import pairwise
from pluribus.consensus.alarm import Drift, drift
from pluribus.engines.asyncio import block, each
from pluribus.errors import BudgetExceeded, ConfigError, DataError
from pluribus.judge_config import JudgesConfig, make_judges
from pluribus.judges import Juror
from pluribus.judges.verdict import GRADING
from pluribus.judging import Bench, bench, sitting
from pluribus.label import PROGRAM, TEXT, agreed, judged, settle
from pluribus.logs._rows import first_row
from pluribus.panel import Panel, answers
from pluribus.prompts import dialect, fingerprint
from pluribus.reward import Judge
from pluribus.sandbox import Sandbox, sandbox
from pluribus.store import Store
from pluribus.tasks import LoadedTask, load_task
from pluribus.types import Label, Turn

LABEL = "label"
"""The kind of record."""
NOBODY = "none"
"""In the place of a judge's model: leave undecided what the checker can not decide."""
_WIDTH = 64
"""Questions under way, at least."""

Place = tuple[str, int]
"""Attempt id and turn."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The flags."""

    judge: str | None
    audit: int
    temperature: float | None
    max_tokens: int | None
    seed: int
    by: str
    min_share: float | None
    held_out: str | None
    before: str | None
    held_out_before: str | None
    task: str | None
    data: str | None
    split: str | None
    out: Path | None
    limits: LimitFlags

    @property
    def asks(self) -> bool:
        return self.judge not in (None, NOBODY)


def go(run: str, wishes: Wishes, *, home: Path | None, json: bool) -> int:
    """Labels, keeps, writes, and says what it is worth; the exit code."""
    _check(run, wishes)
    sat = bench(_config(wishes)) if wishes.asks else None
    box, task = _box(wishes.limits), _task(wishes)
    with sourced(run, home, task) as source:
        _check_kept(run, source, wishes)
        for remark in source.remarks:
            _screen.err().print(_screen.line(f"{source.name}: {remark}", "dim"), soft_wrap=True)
        if wishes.by == "consensus":
            found = _by_consensus(run, source, wishes, home, box)
        else:
            found = block(_by_checker(source, sat, wishes, home, box))
        _keep(source, found.labels)
        if wishes.out is not None:
            found.written = write(source, found.labels, wishes.out)
        if json:
            print(jsonlib.dumps(_label_screen.as_object(source, found), ensure_ascii=False, indent=2))
        else:
            _label_screen.show(_screen.out(), source, found)
    return _code(found)


def _code(found: Found) -> int:
    if found.judge is not None and found.judge.stopped:
        return cli.BUDGET
    failed = found.judge is not None and found.judge.failures.total() > 0
    return cli.FAILED if failed or (found.drift is not None and found.drift.alarm) else cli.OK


# --- the flags -------------------------------------------------------------------------------------------------------


def _check(run: str, wishes: Wishes) -> None:
    """What is wrong in itself, before anything is read."""
    if wishes.audit < 0:
        raise ConfigError(f"--audit is {wishes.audit}", hint="expected 0 (no audit) or more turns")
    if wishes.min_share is not None and not 0 <= wishes.min_share <= 1:  # NaN is not either
        raise ConfigError(f"--min-share is {wishes.min_share:g}", hint="expected a share from 0 to 1")
    if wishes.by == "consensus":
        if wishes.asks:
            raise ConfigError(f"--by consensus asks nobody, found --judge {wishes.judge}", hint="give one of them")
        _check_alarm(wishes)
    else:
        only_with("--by consensus", {
            "--min-share": wishes.min_share, "--held-out": wishes.held_out, "--before": wishes.before,
            "--held-out-before": wishes.held_out_before,
        })  # fmt: skip
    if not wishes.asks:
        only_with("--judge MODEL", {"--temperature": wishes.temperature, "--max-tokens": wishes.max_tokens})
    if wishes.task is None:
        only_with("--task NAME", {"--data": wishes.data, "--split": wishes.split})
    if wishes.out is not None:
        _check_out(run, wishes.out)


def only_with(what: str, flags: Mapping[str, object]) -> None:
    """A flag that needs another one is not silently ignored."""
    for name, value in flags.items():
        if value is not None:
            raise ConfigError(f"{name} {value} does nothing without {what}", hint=f"add {what}, or drop it")


def _check_alarm(wishes: Wishes) -> None:
    """Whether accuracy fell is seen on the same held-out questions, before and after."""
    parts = {
        "--before": wishes.before, "--held-out": wishes.held_out, "--held-out-before": wishes.held_out_before,
    }  # fmt: skip
    missing = [name for name, value in parts.items() if value is None]
    if missing and (wishes.before or wishes.held_out_before):
        raise ConfigError(
            f"the alarm needs {' and '.join(missing)} as well",
            hint="it compares RUN with --before RUN, and --held-out RUN with --held-out-before RUN",
        )


def _check_out(run: str, out: Path) -> None:
    """Nothing but older labels, or an empty file, is written over."""
    check_place(out, folder=False)
    if not out.exists() or not out.stat().st_size:
        return
    row = first_row(out)
    if row is None or "solutions" not in row or out.resolve() == Path(run).resolve():
        raise ConfigError(f"--out {out} is there already and holds something else", hint="choose another file")


def _check_kept(run: str, source: Source, wishes: Wishes) -> None:
    """Labels of a file are in no workspace."""
    if source.store is None and wishes.out is None:
        raise ConfigError(f"{run} is a file, and its labels are kept nowhere", hint="say --out labeled.jsonl")
    if not source.cases:
        raise DataError(source.name, "no question was answered", hint="there is nothing to label")


def _box(limits: LimitFlags) -> Sandbox | None:
    """Where programs may run, if they may."""
    allow = limits.allow_code_execution
    return None if allow is None else sandbox(True if allow == "bubblewrap" else allow)


def _task(wishes: Wishes) -> LoadedTask | None:
    if wishes.task is None:
        return None
    return load_task(wishes.task, wishes.split, data=Path(wishes.data) if wishes.data else None)


def _config(wishes: Wishes) -> JudgesConfig:
    """The judge as a council of one. It is to say the same every time, so nothing is drawn at random."""
    temperature = 0.0 if wishes.temperature is None else wishes.temperature
    judge = {"kind": "verdict", "model": wishes.judge, "temperature": temperature, "max_tokens": wishes.max_tokens}
    limits = {name: value for name, value in said(wishes.limits).items() if name != "allow_code_execution"}
    budget = {name.removeprefix("budget_"): value for name, value in limits.items() if name.startswith("budget_")}
    plain = {name: value for name, value in limits.items() if not name.startswith("budget_")}
    return make_judges({"judges": [judge], "seed": wishes.seed, "budget": budget, **plain}, "the command line")


# --- by the checker, and a judge -------------------------------------------------------------------------------------


async def _by_checker(
    source: Source, sat: Bench | None, wishes: Wishes, home: Path | None, box: Sandbox | None
) -> Found:
    checks = await check(source, box)
    places = [(case.id, one) for case in source.cases for one in checks[case.id]]
    open_ = [(id, one.turn) for id, one in places if one.correct is None]
    decided = [(id, one.turn) for id, one in places if one.correct is not None]
    if open_ and wishes.judge is None:
        raise ConfigError(
            f"{len(open_):,} of {_screen.plural(len(places), 'turn')} of {source.name} can not be decided by the "
            f"checker ({_why(source, checks)})",
            hint=f"name a judge with --judge MODEL, or leave them out with --judge {NOBODY}",
        )
    found = Found("checker", checks, [_counts("checker", checks)])
    if sat is None:
        return found
    audited = random.Random(wishes.seed).sample(decided, min(wishes.audit, len(decided)))
    asking = _Asking(source, sat, {*open_, *audited}, home)
    await asking.go()
    found.judge, answers = asking.heard, asking.labels
    found.compared = _compare(checks, answers, audited)
    found.labels = {id: [*labels, *answers.get(id, ())] for id, labels in checks.items()}
    found.counts.append(_counts("judge alone", answers, set(open_)))
    return found


def _why(source: Source, checks: Labels) -> str:
    """Why turns are undecided, counted."""
    reasons: Counter[str] = Counter()
    for case in source.cases:
        undecided = sum(one.correct is None for one in checks[case.id])
        if undecided:
            reasons[_reason(case)] += undecided
    return "; ".join(f"{reason}: {number:,}" for reason, number in reasons.most_common())


def _reason(case: Case) -> str:
    if case.question.kind == PROGRAM and case.key is not None and case.key.tests:
        return "programs that may not run here, see --allow-code-execution"
    if case.question.kind == PROGRAM:
        return "no tests"
    if case.question.kind == TEXT and case.key is not None and case.key.answer is not None:
        return "free text that is not the key's"
    return "no key"


def _counts(by: str, labels: Labels, only: Collection[Place] | None = None) -> Counts:
    settled = Counter(
        correct
        for id, several in labels.items()
        for turn, correct in settle(several).items()
        if only is None or (id, turn) in only
    )
    return Counts(by, settled.total(), settled[True], settled[False], settled[None])


def _keep(source: Source, labels: Labels) -> None:
    """In the workspace; what nobody decided says nothing, and is asked again."""
    if source.store is not None:
        source.store.put_records(
            LABEL, [(id, one) for id, several in labels.items() for one in several if one.correct is not None]
        )
        source.store.flush()


@dataclass(slots=True)
class _Asking:
    """Holds what a judge said while it is asked. Its calls are kept in the workspace also where the labels are not, so
    nothing is paid for twice."""

    source: Source
    bench: Bench
    places: set[Place]
    home: Path | None
    labels: dict[str, list[Label]] = field(default_factory=dict)
    heard: Heard = field(init=False)

    def __post_init__(self) -> None:
        self.heard = Heard(_name(self.bench), len(self.places))

    async def go(self) -> None:
        wanted: dict[str, set[int]] = {}
        for id, turn in self.places:
            wanted.setdefault(id, set()).add(turn)
        parts = [(case, wanted[case.id]) for case in self.source.cases if case.id in wanted]
        if not parts:
            return
        store = self.source.store or Store.open(self.home)
        watch = _Watch(len(parts), 0, tally=self.heard.tally)
        try:
            with watch:
                async with sitting(self.bench, store, self.heard.tally) as (judge,):
                    await each(parts, lambda part: self._work(judge, watch, *part), self._width(len(parts)))
        finally:
            if store is not self.source.store:
                store.close()

    def _width(self, parts: int) -> int:
        return min(parts, max(self.bench.config.concurrency, _WIDTH))

    async def _work(self, judge: Judge, watch: _Watch, case: Case, turns: set[int]) -> bool:
        assert judge.agent is not None
        agent = judge.agent.at(case.question, self.bench.config.seed, self._listen)
        juror = Juror(self.heard.name, case.question, judge.settings, agent, seed=self.bench.config.seed)
        try:
            self.labels[case.id] = await judged(juror, case.key, case.transcript, turns)
        except BudgetExceeded as error:
            self.heard.stopped = str(error)
            return False
        said = self.labels[case.id]
        self.heard.said += len(said)
        self.heard.silent += sum(one.correct is None for one in said)
        if self.source.store is not None:
            self.source.store.put_records(LABEL, [(case.id, one) for one in said if one.correct is not None])
        watch.step()
        return True

    def _listen(self, turn: Turn) -> None:
        if turn.failure is not None:
            self.heard.failures[turn.failure.message] += 1


def _name(sat: Bench) -> str:
    """The judge's model, and a hash of everything else that its verdicts depend on."""
    (seat,) = sat.seats
    assert seat is not None
    (judge,) = bench(sat.config.model_copy(update={"seed": 0})).judges  # the seed draws whom it is checked on
    asked = content_id([judge.asked, fingerprint(dialect(seat.dialect), GRADING)])
    return f"{seat.model} {asked[:8]}"


class _Watch(Watch):
    """Counts the questions that were judged."""

    def step(self) -> None:
        self.done += 1
        if not isinstance(self._live, Live):
            self._tell()


def _compare(checks: Labels, said: Labels, places: Sequence[Place]) -> Compared:
    """The judge's verdicts beside the checker's, on turns that the checker decided."""
    first, second = (
        {(id, one.turn): one.correct for id, labels in several.items() for one in labels} for several in (checks, said)
    )
    heard = [place for place in places if place in second]
    return Compared.of([(first[place], second[place]) for place in heard])


# --- by agreement ----------------------------------------------------------------------------------------------------


def _by_consensus(run: str, source: Source, wishes: Wishes, home: Path | None, box: Sandbox | None) -> Found:
    least = wishes.min_share or 0.0
    labels, compared = _pseudo(source, least, box)
    found = Found("consensus", labels, [_counts("consensus", labels)], least=least)
    found.compared = compared if compared.n else None
    if wishes.held_out is not None:
        found.held_out = _held_out(wishes.held_out, least, home, box)
    if wishes.before is not None and wishes.held_out is not None and wishes.held_out_before is not None:
        found.drift = _drift(run, wishes.before, wishes.held_out, wishes.held_out_before, home, wishes.seed)
    return found


def _pseudo(source: Source, least: float, box: Sandbox | None) -> tuple[dict[str, list[Label]], Compared]:
    """Pseudo-labels, and how they stand to the keys where there are any."""
    labels = {
        case.id: agreed(case.question, case.transcript, source.decision(case), least) for case in source.cases
    }  # fmt: skip
    checks = block(check(source, box))
    decided = [(id, one.turn) for id, several in checks.items() for one in several if one.correct is not None]
    return labels, _compare(checks, labels, decided)


def _held_out(run: str, least: float, home: Path | None, box: Sandbox | None) -> HeldOut:
    with sourced(run, home) as source:
        _, compared = _pseudo(source, least, box)
        if not compared.n and not compared.silent:
            raise DataError(
                f"--held-out {source.name}", "no answer can be checked", hint="name a run on questions with keys"
            )
        return HeldOut(source.name, compared)


Measured = Mapping[str, float]
"""Question id → what was measured of it."""


def _drift(run: str, before: str, held_out: str, held_out_before: str, home: Path | None, seed: int) -> Drift:
    """Agreement on RUN's questions and accuracy on the held-out ones, each against the same before."""
    agreement = _paired(run, before, _agreement, home, "--before")
    right = _paired(held_out, held_out_before, _right, home, "--held-out-before")
    return drift(*agreement, *right, seed=seed)


def _paired(
    after: str, before: str, measure: Callable[[Panel], Measured], home: Path | None, flag: str
) -> tuple[list[float], list[float]]:
    """Before and after, on the questions that both know."""
    new, old = (measure(one_panel(run, home)) for run in (after, before))
    shared = [id for id in new if id in old]
    if not shared:
        raise DataError(
            f"{flag} {before}", f"no question of {after} can be compared with it",
            hint="both runs need the same questions, answered",
        )  # fmt: skip
    return [old[id] for id in shared], [new[id] for id in shared]


def _agreement(panel: Panel) -> Measured:
    """Share of the pairs of last answers that are equal; one of a single agent has no pair."""
    rows = zip(panel.items, answers(panel), strict=True)
    found = {item.question_id: pairwise(row) for item, row in rows if not item.failed}
    return {id: value for id, value in found.items() if value is not None}


def _right(panel: Panel) -> Measured:
    """How right the decisions are; those that nobody can check are left out."""
    return {item.question_id: item.credit for item in panel.items if item.credit is not None}
