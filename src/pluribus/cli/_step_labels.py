"""What `pluribus label --steps` does: who marks the steps of each answer, and how far they can be believed."""

from __future__ import annotations

import json as jsonlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.live import Live

from pluribus import cli
from pluribus.cli import _screen, _step_screen
from pluribus.cli._flags import LimitFlags, said
from pluribus.cli._label_screen import Heard
from pluribus.cli._labeler import LABEL, NOBODY
from pluribus.cli._labelled import Case, Source, sourced
from pluribus.cli._progress import Watch
from pluribus.cli._step_screen import Against, Found, against
from pluribus.codec import content_id, plain
from pluribus.config import RunConfig, make_config
from pluribus.engines.asyncio import block, each
from pluribus.errors import BudgetExceeded, ConfigError, DataError, UnknownName
from pluribus.judge_config import make_judges
from pluribus.judges import Juror
from pluribus.judging import Bench, bench, sitting
from pluribus.label import read_turns
from pluribus.load import load, names
from pluribus.prompts import dialect, fingerprint
from pluribus.run import Table, opened, seat_table
from pluribus.sandbox import Sandbox, allowing, sandbox
from pluribus.step_labels import CHECKER, PROMPT, ROLLOUTS, Check, Marked, by, checked, cuttings, located, rolled
from pluribus.steps import Cut
from pluribus.store import Store
from pluribus.tasks import ALIASES
from pluribus.types import Label, Turn

Steps = Literal["checker", "rollouts", "judge"]
Search = Literal["all", "binary"]
SHARE = "step_share"
"""The kind of record that holds what completions came to."""
DRAWS = 8
"""Completions from the end of each step, unless said."""
_WIDTH = 64
"""Questions under way, at least."""
NO_KEY, NO_STEP, NOT_DRAWN = "answers without a key", "answers without a step", "answers beyond --max-turns"


@dataclass(frozen=True, slots=True)
class Wishes:
    """The flags."""

    steps: Steps
    rollouts: int | None
    rollout_model: str | None
    search: Search | None
    judge: str | None
    temperature: float | None
    max_tokens: int | None
    cut: Cut
    max_turns: int | None
    seed: int
    limits: LimitFlags

    @property
    def draws(self) -> int:
        return DRAWS if self.rollouts is None else self.rollouts


@dataclass(frozen=True, slots=True)
class Part:
    """The answers to one question whose steps are marked."""

    case: Case
    steps: Mapping[int, tuple[str, ...]]


Ask = Callable[[Part, Callable[[Turn], None]], Awaitable[Marked]]
"""Marks the steps of a part; each turn of a model is told as it comes."""


def go(run: str, wishes: Wishes, *, home: Path | None, json: bool) -> int:
    """Marks, keeps, and says what it is worth; the exit code."""
    _check(wishes)
    marker = _marker(wishes)
    with sourced(run, home) as source:
        if source.store is None:
            raise ConfigError(
                f"{run} is a file, and labels of steps are kept with a run", hint=f"pluribus import {run} makes one"
            )
        if not source.cases:
            raise DataError(source.name, "no question was answered", hint="there is nothing to label")
        parts, left_out = _parts(source, wishes)
        with allowing(_box(wishes.limits)):
            work = _Work(source.store, parts, Heard(marker.name, sum(len(part.steps) for part in parts)))
            block(work.go(marker, wishes))
        source.store.flush()
        found = Found(wishes.steps, source, work.heard, work.marked, left_out)
        found.against = None if wishes.steps == "checker" else _against(parts, work.marked)
        if json:
            print(jsonlib.dumps(_step_screen.as_object(found), ensure_ascii=False, indent=2))
        else:
            _step_screen.show(_screen.out(), found)
    return cli.BUDGET if found.heard.stopped else cli.FAILED if found.heard.failures else cli.OK


# --- the flags -------------------------------------------------------------------------------------------------------


def refuse(flags: Mapping[str, object]) -> None:
    """Flags that have no meaning beside --steps."""
    for name, value in flags.items():
        if value is not None:
            raise ConfigError(f"{name} {value} does nothing with --steps", hint="drop it, or label without --steps")


def _check(wishes: Wishes) -> None:
    """What is wrong in itself, before anything is read."""
    if wishes.steps != "rollouts":
        _only("rollouts", {
            "--rollouts": wishes.rollouts, "--rollout-model": wishes.rollout_model, "--search": wishes.search,
        })  # fmt: skip
    elif wishes.rollout_model is None:
        raise ConfigError("--steps rollouts names no model", hint="say who goes on: --rollout-model MODEL")
    if wishes.steps != "judge":
        _only("judge", {"--judge": wishes.judge})
    elif wishes.judge in (None, NOBODY):
        raise ConfigError("--steps judge names no judge", hint="say who judges: --judge MODEL")
    if wishes.steps == "checker":
        flags = {"--temperature": wishes.temperature, "--max-tokens": wishes.max_tokens}
        for name, value in flags.items():
            if value is not None:
                raise ConfigError(f"{name} {value} does nothing with --steps checker", hint="it asks no model; drop it")
    for name, number in (("--rollouts", wishes.rollouts), ("--max-turns", wishes.max_turns)):
        if number is not None and number < 1:
            raise ConfigError(f"{name} is {number}", hint="expected 1 or more")


def _only(how: Steps, flags: Mapping[str, object]) -> None:
    for name, value in flags.items():
        if value is not None:
            raise ConfigError(f"{name} {value} does nothing without --steps {how}", hint="add it, or drop the flag")


def _box(limits: LimitFlags) -> Sandbox | None:
    """Where programs may run, if they may."""
    allow = limits.allow_code_execution
    return None if allow is None else sandbox(True if allow == "bubblewrap" else allow)


# --- what is marked --------------------------------------------------------------------------------------------------


def _parts(source: Source, wishes: Wishes) -> tuple[list[Part], Counter[str]]:
    """The answers to be marked, a drawn number of them where there is a most, and how many were left out, by why."""
    left_out: Counter[str] = Counter()
    parts = []
    for case in source.cases:
        found = cuttings(case.question, case.transcript, wishes.cut)
        left_out[NO_STEP] += len(read_turns(case.question, case.transcript)) - len(found)
        if wishes.steps != "judge" and (case.key is None or (case.key.answer is None and not case.key.tests)):
            left_out[NO_KEY] += len(found)
        elif found:
            parts.append(Part(case, found))
    _check_keys(source, wishes, parts)
    return _drawn(parts, wishes, left_out), +left_out


def _check_keys(source: Source, wishes: Wishes, parts: Sequence[Part]) -> None:
    if wishes.steps != "judge" and not parts:
        raise DataError(
            source.name, f"no answer's question has a key, and --steps {wishes.steps} needs one",
            hint="a judge needs none: --steps judge --judge MODEL",
        )  # fmt: skip
    if wishes.steps != "checker":
        return
    tasks = {part.case.question.task for part in parts}
    for task in sorted(tasks):
        if check_of(task) is None:
            raise ConfigError(
                f"task {task} of {source.name} has no checker of steps; there is one for {', '.join(_with_check())}",
                hint="take --steps rollouts --rollout-model MODEL, or --steps judge --judge MODEL",
            )
    if all(part.case.key is None or part.case.key.solution is None for part in parts):
        raise DataError(
            source.name, "its keys were stored without worked solutions, which the checker of steps reads",
            hint="give the same `pluribus run` command again: it asks nothing anew and stores the keys as they are now",
        )  # fmt: skip


def check_of(task: str) -> Check | None:
    """The task's own checker of steps, if it has one."""
    name = ALIASES.get(task, task).partition(":")[0]
    try:
        found: Check | None = getattr(load("tasks", name), "check_steps", None)
    except UnknownName:  # questions of a log may be of a task that is none here
        return None
    return found


def _with_check() -> list[str]:
    return [name for name in names("tasks") if check_of(name) is not None]


def _drawn(parts: list[Part], wishes: Wishes, left_out: Counter[str]) -> list[Part]:
    places = [(part.case.id, turn) for part in parts for turn in part.steps]
    if wishes.max_turns is None or len(places) <= wishes.max_turns:
        return parts
    kept = set(random.Random(wishes.seed).sample(places, wishes.max_turns))
    left_out[NOT_DRAWN] += len(places) - len(kept)
    fewer = [Part(p.case, {turn: cut for turn, cut in p.steps.items() if (p.case.id, turn) in kept}) for p in parts]
    return [part for part in fewer if part.steps]


# --- who marks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Marker:
    """Who says of each step whether it is good; nobody was asked yet."""

    name: str
    """What stands in the labels."""
    bench: Bench | None = None
    """The judge."""
    council: tuple[RunConfig, Table] | None = None
    """The model that goes on with the replies."""

    @property
    def width(self) -> int:
        config = self.bench.config if self.bench else self.council[0] if self.council else None
        return max(config.concurrency, _WIDTH) if config else 1


def _marker(wishes: Wishes) -> _Marker:
    if wishes.steps == "judge":
        return _judge(wishes)
    return _goer(wishes) if wishes.steps == "rollouts" else _Marker(by(CHECKER, wishes.cut))


def _limits(wishes: Wishes) -> dict[str, Any]:
    """Budget and traffic, as both kinds of config name them."""
    limits = {name: value for name, value in said(wishes.limits).items() if name != "allow_code_execution"}
    budget = {name.removeprefix("budget_"): value for name, value in limits.items() if name.startswith("budget_")}
    return {"budget": budget, "seed": wishes.seed} | {
        name: value for name, value in limits.items() if not name.startswith("budget_")
    }


def _judge(wishes: Wishes) -> _Marker:
    """As a council of one. It is to say the same every time, so nothing is drawn at random."""
    temperature = 0.0 if wishes.temperature is None else wishes.temperature
    judge = {
        "kind": "first_error", "model": wishes.judge, "temperature": temperature, "max_tokens": wishes.max_tokens,
        "settings": {"cut": wishes.cut},
    }  # fmt: skip
    sat = bench(make_judges({"judges": [judge], **_limits(wishes)}, "the command line"))
    (seat,), (one,) = sat.seats, sat.judges
    assert seat is not None
    return _Marker(by(f"{seat.model} {one.asked[:8]}", wishes.cut), bench=sat)


def _goer(wishes: Wishes) -> _Marker:
    sampling = {"temperature": wishes.temperature, "max_tokens": wishes.max_tokens}
    plan = {"models": [wishes.rollout_model], "num_agents": 1, "method": "vote", "sampling": sampling}
    config = make_config({**plan, **_limits(wishes)}, "the command line")
    table = seat_table(config)
    (seat,) = table.seats
    words = fingerprint(dialect(seat.dialect), [PROMPT])
    asked = content_id([plain(seat.sampling), words, wishes.cut, wishes.search or "all", wishes.seed])
    name = f"{ROLLOUTS} {wishes.draws} {seat.model} {asked[:8]}"
    return _Marker(by(name, wishes.cut), council=(config, table))


@asynccontextmanager
async def _open(marker: _Marker, wishes: Wishes, store: Store, heard: Heard) -> AsyncIterator[Ask]:
    """The marker with its model open."""
    if marker.bench is not None:
        async with sitting(marker.bench, store, heard.tally) as (judge,):
            agent, settings = judge.agent, judge.settings
            assert agent is not None

            async def locate(part: Part, listen: Callable[[Turn], None]) -> Marked:
                seated = agent.at(part.case.question, wishes.seed, listen)
                juror = Juror(marker.name, part.case.question, settings, seated, seed=wishes.seed)
                return await located(juror, part.case.transcript, part.steps)

            yield locate
    elif marker.council is not None:
        async with opened(marker.council[1], marker.council[0], store, heard.tally) as live:
            (goer,) = live.agents

            async def roll(part: Part, listen: Callable[[Turn], None]) -> Marked:
                assert part.case.key is not None
                seated = goer.at(part.case.question, wishes.seed, listen)
                return await rolled(
                    seated, part.case.key, part.case.transcript, part.steps, wishes.draws,
                    halve=wishes.search == "binary", name=marker.name,
                )  # fmt: skip

            yield roll
    else:

        async def look(part: Part, listen: Callable[[Turn], None]) -> Marked:
            return _checked(part, marker.name) or Marked(())

        yield look


def _checked(part: Part, name: str = CHECKER) -> Marked | None:
    """What the task's own checker says; None where it has none, or the question no key."""
    check, key = check_of(part.case.question.task), part.case.key
    if check is None or key is None:
        return None
    return checked(check, part.case.question, key, part.case.transcript, part.steps, name)


@dataclass(slots=True)
class _Work:
    """Holds what was marked while it goes on; every part is kept as soon as it is marked."""

    store: Store
    parts: Sequence[Part]
    heard: Heard
    marked: dict[str, Marked] = field(default_factory=dict)
    """By attempt id."""

    async def go(self, marker: _Marker, wishes: Wishes) -> None:
        watch = _Watch(len(self.parts), 0, tally=self.heard.tally)
        with watch:
            async with _open(marker, wishes, self.store, self.heard) as ask:
                await each(self.parts, lambda part: self._one(ask, watch, part), min(len(self.parts), marker.width))

    async def _one(self, ask: Ask, watch: _Watch, part: Part) -> bool:
        try:
            marked = await ask(part, self._listen)
        except BudgetExceeded as error:
            self.heard.stopped = str(error)
            return False
        self.marked[part.case.id] = marked
        self.heard.said += len(part.steps)
        self.heard.silent += len({one.turn for one in marked.labels if one.correct is None})
        self._keep(part.case.id, marked)
        watch.step()
        return True

    def _keep(self, id: str, marked: Marked) -> None:
        """In the workspace; what nobody could say is asked again."""
        self.store.put_records(LABEL, [(id, one) for one in marked.labels if one.correct is not None])
        self.store.put_records(SHARE, [(id, one) for one in marked.shares])

    def _listen(self, turn: Turn) -> None:
        if turn.failure is not None:
            self.heard.failures[turn.failure.message] += 1


class _Watch(Watch):
    """Counts the questions whose answers were marked."""

    def step(self) -> None:
        self.done += 1
        if not isinstance(self._live, Live):
            self._tell()


def _against(parts: Sequence[Part], marked: Mapping[str, Marked]) -> Against | None:
    """What was said beside what the task's own checker says of the same steps."""
    truth: dict[str, Sequence[Label]] = {}
    for part in parts:
        found = _checked(part) if part.case.id in marked else None
        if found is not None:
            truth[part.case.id] = found.labels
    return against(marked, truth) if truth else None
