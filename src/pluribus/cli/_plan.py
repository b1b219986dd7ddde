"""What `pluribus plan` does: the pilot's discordance with its interval, questions needed, and what they cost."""

from __future__ import annotations

import json as jsonlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.table import Table

from pluribus import cli, stats
from pluribus.cli import _screen
from pluribus.cli._panels import one_panel
from pluribus.cli._stores import reading
from pluribus.compare import (
    Comparison,
    calls,
    compare,
    cost_usd,
    is_self_consistency,
    per_question,
    points,
    tokens,
    whole_credits,
)
from pluribus.controls import controls_of
from pluribus.errors import ConfigError, UsageError
from pluribus.panel import WITHHELD, Panel
from pluribus.stats import Estimate


@dataclass(frozen=True, slots=True)
class Aim:
    """What the comparison is to show; checked where it is made."""

    effect: float
    """Points, above 0."""
    power: float
    alpha: float

    def __post_init__(self) -> None:
        if not 0 < self.effect <= 100:
            raise ConfigError(f"--effect is {self.effect:g}; expected points above 0, at most 100")
        for name, value in (("power", self.power), ("alpha", self.alpha)):
            if not 0 < value < 1:
                raise ConfigError(f"--{name} is {value:g}; expected a number above 0 and below 1")


@dataclass(frozen=True, slots=True)
class Spent:
    """What a side takes on a question; None: unknown, unpriced."""

    calls: float
    tokens: float | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Pilot:
    """Two sides on the same questions."""

    council: str
    control: str
    n: int
    only_council: int
    """Questions that only the council got right."""
    only_control: int
    difference: Estimate
    each: Spent
    """Both sides together, per question."""
    shared: bool
    """Whether the control's answers are the council's own, so that they cost nothing more."""
    withheld: int = 0
    """Decisions that the council withheld, and that count as not right."""

    @property
    def discordance(self) -> float:
        return (self.only_council + self.only_control) / self.n


@dataclass(frozen=True, slots=True)
class Line:
    """What it takes at one discordance."""

    discordance: float
    questions: int
    calls: int
    tokens: int | None
    cost_usd: float | None


def make(run: str, against: str | None, aim: Aim, *, home: Path | None, json: bool) -> int:
    """Prints the plan."""
    council = one_panel(run, home)
    sides = _between(council, one_panel(against, home)) if against else _against_control(run, council, home)
    pilot = replace(sides, withheld=council.omitted.get(WITHHELD, 0))
    lines = needed(pilot, aim)
    if json:
        said = {"pilot": {**asdict(pilot), "discordance": pilot.discordance}, "aim": asdict(aim)}
        names = ("low", "estimate", "high")
        plans = {name: asdict(line) for name, line in zip(names, lines, strict=True)}
        print(jsonlib.dumps({**said, "needed": plans}, ensure_ascii=False, indent=2))
        return cli.OK
    console = _screen.out()
    for sentence in words(pilot, aim, lines):
        console.print(_screen.text(sentence), soft_wrap=not console.is_terminal)
    console.print()
    console.print(_table(lines))
    return cli.OK


# --- the pilot -------------------------------------------------------------------------------------------------------


def _against_control(run: str, council: Panel, home: Path | None) -> Pilot:
    """Against self-consistency where it is recorded and the council is not that itself, else the best member."""
    controls: list[Panel] = []
    if council.source.startswith("run "):
        with reading(run, home) as (store, _):
            controls = controls_of(store, council)
    found = {comparison.spend: comparison for comparison in compare(council, controls)}
    votes = None if is_self_consistency(council) else found.get("equal calls")
    told = votes or found.get("one call")
    if told is None or len(council.members) < 2:
        raise UsageError(
            f"{council.name} has nothing to be compared with: a member alone, a vote that stopped before all were "
            "asked, or no question with a key and an answer",
            hint="name the other side with --against RUN",
        )
    return _pilot(council, controls, told)


def _pilot(council: Panel, controls: Sequence[Panel], told: Comparison) -> Pilot:
    own = told.sources == (council.source,)
    used = [control for control in controls if control.source in told.sources]
    more = Spent(0.0, 0.0, 0.0) if own else _draws(told, used)
    test = told.test
    both = _sum(_spent(council), more)
    return Pilot(told.council, told.control, told.n, test.only_first, test.only_second, told.difference, both, own)


def _draws(told: Comparison, used: Sequence[Panel]) -> Spent:
    """What the first draws of the control take; its other draws, if any, are not needed."""
    k = told.control_calls or 0.0
    prices = [per_question(control, cost_usd) for control in used]
    known = [price * k / len(control.members) for price, control in zip(prices, used, strict=True) if price is not None]
    return Spent(k, told.control_tokens, sum(known) / len(known) if len(known) == len(prices) else None)


def _between(council: Panel, other: Panel) -> Pilot:
    theirs = dict(zip([item.question_id for item in other.items], other.items, strict=True))
    whole = dict(zip(theirs, whole_credits(other).tolist(), strict=True)) if len(theirs) == len(other.items) else {}
    rows = [
        (item.credit, theirs[item.question_id].credit, mine, whole[item.question_id])
        for item, mine in zip(council.items, whole_credits(council).tolist(), strict=True)
        if item.credit is not None and item.question_id in whole and theirs[item.question_id].credit is not None
    ]
    if not rows:
        raise UsageError(f"{council.name} and {other.name} share no question that has a key and that both answered")
    test = stats.mcnemar([row[2] for row in rows], [row[3] for row in rows])
    difference = stats.paired_difference([float(row[0]) for row in rows], [float(row[1] or 0) for row in rows])
    both = _sum(_spent(council), _spent(other))
    return Pilot(council.name, other.name, len(rows), test.only_first, test.only_second, difference, both, False)


def _spent(panel: Panel) -> Spent:
    return Spent(per_question(panel, calls) or 0.0, per_question(panel, tokens), per_question(panel, cost_usd))


def _sum(a: Spent, b: Spent) -> Spent:
    return Spent(
        a.calls + b.calls,
        None if a.tokens is None or b.tokens is None else a.tokens + b.tokens,
        None if a.cost_usd is None or b.cost_usd is None else a.cost_usd + b.cost_usd,
    )


# --- the plan --------------------------------------------------------------------------------------------------------


def needed(pilot: Pilot, aim: Aim) -> tuple[Line, Line, Line]:
    """At the low end of the discordance's 95 % interval, at the pilot's own, and at the high end.

    Raises:
        UsageError: the two never differ, or more seldom than the effect asks for.
    """
    effect, discordance = aim.effect / 100, pilot.discordance
    low, high = stats.wilson(pilot.only_council + pilot.only_control, pilot.n)
    if discordance < effect:
        most = math.floor(1000 * discordance) / 10
        seen = f"{100 * discordance:.1f} % [{100 * low:.1f}, {100 * high:.1f}] of {pilot.n:,} questions"
        raise UsageError(
            f"an effect of {aim.effect:g} points is more than the pilot allows: {pilot.council} and {pilot.control} "
            f"differ on {seen}, and no effect is larger than that",
            hint=f"ask for at most --effect {most:g}" if most else "take a larger pilot, or another council",
        )
    return tuple(_line(pilot, aim, at) for at in (max(low, effect), discordance, high))  # type: ignore[return-value]  # three


def _line(pilot: Pilot, aim: Aim, discordance: float) -> Line:
    n, each = stats.questions_needed(discordance, aim.effect / 100, aim.power, aim.alpha), pilot.each
    used = None if each.tokens is None else round(n * each.tokens)
    return Line(discordance, n, round(n * each.calls), used, None if each.cost_usd is None else n * each.cost_usd)


def words(pilot: Pilot, aim: Aim, lines: tuple[Line, Line, Line]) -> list[str]:
    """The plan in sentences."""
    low, here, high = lines
    cost = "nothing is known of its price" if here.cost_usd is None else f"{_screen.usd(here.cost_usd)}"
    free = "; the control's answers are the council's own and cost nothing more" if pilot.shared else ""
    silent = [
        f"Of the council's decisions {pilot.withheld:,} were withheld for too low a confidence and count as not right; "
        "for the vote itself take a run without --abstain-below.",
    ] if pilot.withheld else []  # fmt: skip
    return [
        f"To see {aim.effect:g} points between {pilot.council} and {pilot.control} with {100 * aim.power:g} % power "
        f"(McNemar, α = {aim.alpha:g}): {here.questions:,} questions ({low.questions:,} – {high.questions:,}), "
        f"{_screen.large(here.calls)} calls, {_screen.large(here.tokens)} tokens, {cost}{free}.",
        f"Pilot: {pilot.n:,} questions, {pilot.only_council + pilot.only_control:,} of them right on one side only "
        f"(council {pilot.only_council:,}, control {pilot.only_control:,}); {points(pilot.difference)}.",
        *silent,
        "Questions that chose the council or its settings do not count towards the comparison.",
    ]


def _table(lines: Sequence[Line]) -> Table:
    table = _screen.table()
    table.add_column("", no_wrap=True)
    for name in ("discordance", "questions", "calls", "tokens", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, line in zip(("95 % interval, low", "pilot", "95 % interval, high"), lines, strict=True):
        cells = (f"{100 * line.discordance:.1f} %", _screen.count(line.questions), _screen.large(line.calls))
        table.add_row(name, *cells, _screen.large(line.tokens), _screen.usd(line.cost_usd))
    return table
