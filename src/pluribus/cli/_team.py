"""What `pluribus team` does: mean importance of each seat over the questions of a run, and the seats to keep."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.table import Table

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._stores import reading
from pluribus.config import RunConfig, make_config
from pluribus.load import load
from pluribus.personas import personas, sets
from pluribus.stats import Estimate, cluster_bootstrap
from pluribus.types import Seat, Transcript

_SHARED = {"method", "settings", "preset", "sampling", "prompts", "rule", "tie", "personas", "baseline_a", "baseline_b"}
"""Entries of the old council that the new one takes over."""


@dataclass(frozen=True, slots=True)
class Team:
    """A run's seats, what each was worth, and who stays."""

    run: str
    config: RunConfig
    questions: int
    """Those with an importance; failed ones have none."""
    seats: tuple[Seat, ...]
    worth: tuple[Estimate, ...]
    """Mean importance of each seat with its 95 % bootstrap interval over the questions."""
    kept: tuple[int, ...]
    """The best first."""


def pick(run: str, keep: int, *, home: Path | None, json: bool) -> int:
    """Prints the seats with their importance and the council that keeps the best."""
    found = _read(run, keep, home)
    if json:
        print(jsonlib.dumps(_object(found), ensure_ascii=False, indent=2))
        return cli.OK
    console = _screen.out()
    console.print(_screen.text(f"{found.run}: importance over {_screen.plural(found.questions, 'question')}"))
    console.print()
    console.print(_table(found))
    console.print()
    console.print("the council that keeps them, for pluribus run FILE:", style="dim", markup=False)
    console.print(_screen.text(yaml.safe_dump(council(found), sort_keys=False, allow_unicode=True)), soft_wrap=True)
    return cli.OK


def _read(run: str, keep: int, home: Path | None) -> Team:
    dylan = load("methods", "dylan")
    with reading(run, home) as (store, name):
        stored = store.run(name)
        transcripts = tuple(store.transcripts([attempt for attempt, _ in store.run_attempts(stored.id)]))
    kept = dylan.optimise_team(transcripts, keep)
    rows = dylan.importances(transcripts)
    config = make_config(stored.config, f"run {stored.name}")
    return Team(stored.name, config, len(rows), _seats(transcripts), _estimates(rows, abs(config.seed)), kept)


def _seats(transcripts: Sequence[Transcript]) -> tuple[Seat, ...]:
    return transcripts[0].attempt.agents


def _estimates(rows: Sequence[Sequence[float]], seed: int) -> tuple[Estimate, ...]:
    return tuple(cluster_bootstrap(column, range(len(rows)), seed=seed) for column in zip(*rows, strict=True))


def _table(team: Team) -> Table:
    table = _screen.table()
    for name, justify in (("seat", "right"), ("model", "left"), ("importance", "right"), ("95 % interval", "right")):
        table.add_column(name, justify=justify, no_wrap=name != "model")  # type: ignore[arg-type]  # a Literal there
    table.add_column("", no_wrap=True)
    for seat, worth in zip(team.seats, team.worth, strict=True):
        who = _screen.model(seat.model) + (f", {seat.persona}" if seat.persona else "")
        mean, interval = _screen.share(worth.value), _screen.between((worth.low, worth.high))
        stays = "keep" if seat.index in team.kept else ""
        table.add_row(str(seat.index + 1), _screen.cell(who), mean, interval, stays, style="bold" if stays else "")
    return table


def council(team: Team) -> dict[str, Any]:
    """The entries of a council file that seats the kept agents, in their old order, everything else as it was."""
    config, kept = team.config, [team.seats[index] for index in sorted(team.kept)]
    shared = config.model_dump(mode="json", exclude_defaults=True, include=_SHARED)
    if config.calibration is not None:
        shared.pop("rule", None)  # its weights were of the whole council
    entries = [_entry(config, seat) for seat in kept]
    if config.roles:
        return {**shared, "roles": [config.roles[seat.index % len(config.roles)] for seat in kept], "seats": entries}
    names = {seat.persona for seat in kept if seat.persona}
    if not names or config.baseline_a or config.baseline_b:
        return {**shared, "seats": entries}
    named = [{**entry, "persona": seat.persona} for entry, seat in zip(entries, kept, strict=True)]
    return {**shared, "personas": config.personas or _set_of(names), "seats": named}


def _entry(config: RunConfig, seat: Seat) -> dict[str, Any]:
    """A seat's model and what else was said about it, as a council file writes it."""
    if config.seats:
        return config.seats[seat.index % len(config.seats)].model_dump(mode="json", exclude_defaults=True)
    return {"model": config.models[seat.index % len(config.models)]}


def _set_of(names: set[str]) -> str:
    """The embedded set that has them all: which one suited the task is not stored with the run."""
    return next(name for name in sets() if names <= {one.name for one in personas(name)})


def _object(team: Team) -> dict[str, Any]:
    return {
        "run": team.run,
        "questions": team.questions,
        "seats": [
            {
                "seat": seat.index + 1, "model": seat.model, "persona": seat.persona, "importance": worth.value,
                "interval": [worth.low, worth.high], "kept": seat.index in team.kept,
            }
            for seat, worth in zip(team.seats, team.worth, strict=True)
        ],
        "council": council(team),
    }  # fmt: skip
