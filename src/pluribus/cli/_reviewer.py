"""What `pluribus review` does: the page, the numbers, the weights, and the way to Label Studio and back."""

from __future__ import annotations

import json as jsonlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.table import Table

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._files import check_ours
from pluribus.cli._stores import nowhere
from pluribus.errors import ConfigError, UsageError
from pluribus.judging import VERDICT, Rewarded, put_verdict, stored_rewards, verdicts
from pluribus.prefer import Weighed, learn_weights
from pluribus.review import label_studio
from pluribus.review.guard import Guard, is_loopback, plain_name
from pluribus.review.material import Material, every_pair, gather
from pluribus.review.numbers import Agreement, Person, Statistics, statistics
from pluribus.review.queue import Queue
from pluribus.server.listening import address, listen, serve
from pluribus.store import Store
from pluribus.types import Verdict
from pluribus.verdicts import adjudicated, standing


@dataclass(frozen=True, slots=True)
class Door:
    host: str
    port: int
    token: str | None
    reviewer: str | None


@dataclass(frozen=True, slots=True)
class Wishes:
    every: bool
    limit: int | None
    votes: int


@dataclass(frozen=True, slots=True)
class Errand:
    """What is wanted in the place of the page."""

    stats: bool
    weights: bool
    out: Path | None
    back: Path | None


def go(run: str, errand: Errand, wishes: Wishes, door: Door, *, home: Path | None, json: bool) -> int:
    """Does the one errand that is asked for, else serves the page until it is interrupted."""
    _check(run, errand, door, home, json)
    with Store.open(home) as store:
        if errand.back is not None:
            return _import(store, run, errand.back, json)
        rewarded = stored_rewards(store, run)
        if errand.weights:
            return _weights(rewarded, verdicts(store, rewarded.run), json)
        said = verdicts(store, rewarded.run)
        material = gather(rewarded, said, every=wishes.every, limit=wishes.limit)
        if errand.stats:
            return _stats(statistics(material, standing(said), wishes.votes), json)
        if errand.out is not None:
            return _export(material, said, wishes.votes, errand.out, json)
        return _serve(_Kept(store, rewarded.run), material, wishes, door)


def _check(run: str, errand: Errand, door: Door, home: Path | None, json: bool) -> None:
    names = ("--stats", "--adjust-weights", "--export-label-studio", "--import-label-studio")
    wanted = (errand.stats, errand.weights, errand.out is not None, errand.back is not None)
    asked = [name for name, want in zip(names, wanted, strict=True) if want]
    if len(asked) > 1:
        raise ConfigError(f"{asked[0]} and {asked[1]} are two errands", hint="take one at a time")
    if json and not asked:
        raise ConfigError("--json needs something to print", hint=f"it goes with {', '.join(names)}")
    if Path(run).is_file():
        raise UsageError(
            f"{run} is a file, and verdicts are kept in a workspace",
            hint=f"import it with: pluribus import {run}; then review the run by its name",
        )
    if door.token is not None and not (door.token.strip() and door.token.isprintable()):
        raise ConfigError("--token is empty, or no plain text", hint="give letters and digits, or leave it out")
    if door.reviewer is not None and not plain_name(door.reviewer):
        raise ConfigError("--reviewer is empty", hint="give a name, or leave it out")
    if not Store.file(home).exists():
        raise nowhere("run", run, home)


# --- the page --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Kept:
    """The verdicts of a run in its workspace."""

    store: Store
    run: str

    def events(self) -> Sequence[Verdict]:
        return verdicts(self.store, self.run)

    def add(self, verdict: Verdict) -> None:
        put_verdict(self.store, self.run, verdict)


def _serve(ledger: _Kept, material: Material, wishes: Wishes, door: Door) -> int:
    from pluribus.review.app import Desk, make_app

    token = door.token if door.token or is_loopback(door.host) else secrets.token_urlsafe(24)
    name = None if door.reviewer is None else plain_name(door.reviewer)
    desk = Desk(material, ledger, Queue(material.pairs, wishes.votes), Guard(door.host, token), name)
    with listen(door.host, door.port) as listening:
        place = address(door.host, listening) + (f"/?token={quote(token, safe='')}" if token else "/")
        for line in _greeting(material, ledger, wishes, place):
            _screen.out().print(_screen.text(line), soft_wrap=True)
        serve(make_app(desk), listening)
    return cli.OK


def _greeting(material: Material, ledger: _Kept, wishes: Wishes, place: str) -> Iterator[str]:
    done = adjudicated(standing(ledger.events()), wishes.votes)
    left = sum(pair.id not in done for pair in material.pairs)
    open_ = f"{_screen.plural(len(material.pairs), 'pair')} to review, {left:,} open"
    yield f"{material.name}: {open_}"
    if material.alone:
        yield f"{material.alone:,} disputed replies have no reply of other words beside them, and can not be compared"
    if not material.pairs and not wishes.every:
        yield "the judges agree on all of it; --all shows pairs they agree on"
    yield f"open {place}"
    yield "every verdict is kept at once; Ctrl-C ends it"


# --- numbers ---------------------------------------------------------------------------------------------------------


def _stats(found: Statistics, json: bool) -> int:
    if json:
        print(jsonlib.dumps(_with_shares(found), ensure_ascii=False, indent=2))
        return cli.OK
    out = _screen.out()
    out.print(_screen.text(_counts(found)), soft_wrap=True)
    for table in (
        _people(found.people),
        _agreements(found.between, "reviewer"),
        _agreements(found.with_judges, "judge"),
    ):
        if table.row_count:
            out.print()
            out.print(table)
    return cli.OK


def _counts(found: Statistics) -> str:
    people = "one person" if found.votes == 1 else f"{found.votes} people"
    won = f"{found.first:,} with a winner, {_screen.plural(found.ties, 'tie')}"
    pairs = _screen.plural(found.pairs, "pair")
    return (
        f"{found.run}: {pairs}, {found.decided:,} decided by {people}: {won}; {_screen.plural(found.skipped, 'skip')}"
    )


def _with_shares(found: Statistics) -> dict[str, Any]:
    made = asdict(found)
    for name in ("between", "with_judges"):
        rows: Sequence[Agreement] = getattr(found, name)
        made[name] = [{**asdict(row), "share": row.share} for row in rows]
    return made


def _people(people: Sequence[Person]) -> Table:
    table = _screen.table()
    table.add_column("reviewer")
    for head in ("decided", "ties among them", "skipped", "seconds, median"):
        table.add_column(head, justify="right")
    for one in people:
        seconds = _screen.NOTHING if one.seconds is None else f"{one.seconds:.0f}"
        counts = (_screen.count(one.decided), _screen.count(one.ties), _screen.count(one.skipped))
        table.add_row(_screen.cell(one.name), *counts, seconds)
    return table


def _agreements(rows: Sequence[Agreement], other: str) -> Table:
    table = _screen.table()
    for head in ("reviewer", other):
        table.add_column(head)
    for head in ("pairs", "agreed", "share", "Cohen's kappa", "ties left out"):
        table.add_column(head, justify="right")
    for row in rows:
        share = _screen.NOTHING if row.share is None else f"{100 * row.share:.0f} %"
        kappa = _screen.NOTHING if row.kappa is None else f"{row.kappa:.2f}"
        counts = _screen.count(row.n), _screen.count(row.agreed)
        table.add_row(_screen.cell(row.one), _screen.cell(row.other), *counts, share, kappa, _screen.count(row.ties))
    return table


def _weights(rewarded: Rewarded, said: Sequence[Verdict], json: bool) -> int:
    """The weights that `pluribus prefer --weights human` takes: the same function learns them."""
    if not any(one.choice in ("first", "second") for one in standing(said).values()):
        raise ConfigError(
            f"--adjust-weights: nobody has preferred a reply of run {rewarded.name}",
            hint=f"let people decide first: pluribus review {rewarded.name}",
        )
    asked = [(part.question, part.candidates) for part in rewarded.asked]
    found = learn_weights("human", asked, rewarded.rewards, verdicts=said)
    if json:
        now = {"run": rewarded.name, "pairs": found.pairs, "now": dict(rewarded.weights)}
        print(jsonlib.dumps({**now, "learned": dict(found.weights), "accuracy": dict(found.accuracy)}, indent=2))
        return cli.OK
    out = _screen.out()
    decided = f"{_screen.plural(found.pairs, 'pair')} that people decided"
    out.print(_screen.text(f"{rewarded.name}: weights learned from {decided}, ties left out"), soft_wrap=True)
    out.print()
    out.print(_weighed(rewarded, found))
    out.print()
    command = f"pluribus prefer {rewarded.name} --weights human"
    out.print(_screen.text(f"nothing was changed; use them with: {command}"), soft_wrap=True)
    return cli.OK


def _weighed(rewarded: Rewarded, found: Weighed) -> Table:
    table = _screen.table()
    table.add_column("judge")
    for head in ("weight now", "share now", "learned weight", "share", "agrees with people"):
        table.add_column(head, justify="right")
    now, then = sum(rewarded.weights.values()), sum(found.weights.values())
    for judge, weight in rewarded.weights.items():
        learned = found.weights[judge]
        shares = f"{100 * weight / now:.0f} %", f"{100 * learned / then:.0f} %"
        accuracy = f"{100 * found.accuracy[judge]:.0f} %"
        table.add_row(_screen.cell(judge), f"{weight:.3g}", shares[0], f"{learned:.3f}", shares[1], accuracy)
    return table


# --- Label Studio ----------------------------------------------------------------------------------------------------


def _export(material: Material, said: Sequence[Verdict], votes: int, out: Path, json: bool) -> int:
    check_ours(out, _is_tasks, "file of such tasks", "--export-label-studio")
    done = adjudicated(standing(said), votes)
    number = label_studio.write(out, material.run, [pair for pair in material.pairs if pair.id not in done])
    return _told({"file": str(out), "tasks": number}, f"{out}: {_screen.plural(number, 'task')}", json)


def _is_tasks(path: Path) -> bool:
    """Whether an earlier call wrote it: there is nothing of anybody's work in it."""
    try:
        found = jsonlib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, list) and all(isinstance(one, dict) and set(one) == {"data"} for one in found)


def _import(store: Store, run: str, path: Path, json: bool) -> int:
    """Reads all of the file before it keeps any of it, and keeps it in one go; what is here already is not new."""
    rewarded = stored_rewards(store, run)
    found = label_studio.read(path, rewarded.run, every_pair(rewarded))
    known = set(verdicts(store, rewarded.run))
    new = [verdict for verdict in dict.fromkeys(found) if verdict not in known]
    store.put_records(VERDICT, [(rewarded.run, verdict) for verdict in new])
    store.flush()
    line = f"{path}: {_screen.plural(len(new), 'verdict')} taken, {len(found) - len(new):,} were here already"
    return _told({"file": str(path), "taken": len(new), "known": len(found) - len(new)}, line, json)


def _told(values: dict[str, Any], line: str, json: bool) -> int:
    if json:
        print(jsonlib.dumps(values, ensure_ascii=False))
    else:
        _screen.out().print(_screen.text(line), soft_wrap=True)
    return cli.OK
