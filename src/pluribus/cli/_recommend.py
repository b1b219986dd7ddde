"""What `pluribus recommend` prints: the sentence, the front of accuracy and cost, each seat's worth, a council."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.table import Table

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._embedding import embedding, one
from pluribus.cli._panels import one_panel
from pluribus.cli._stores import is_export, reading
from pluribus.cli._team import Team, council
from pluribus.config import make_config
from pluribus.recommend import Choice, Embed, Recommendation, drop_sentences, labels, recommend, sentence, signed
from pluribus.store import Store


def show(source: str, tolerance: float, seed: int, embedder: str | None, *, home: Path | None, json: bool) -> int:
    panel = one_panel(source, home)
    with _embedder(embedder, home) as embed:
        found = recommend(panel, seed=seed, tolerance=tolerance, embed=embed)
    file = _council(found, source, home)
    if json:
        print(jsonlib.dumps(_object(found, embedder, file), ensure_ascii=False, indent=2))
    else:
        _print(found, file)
    return cli.OK


@contextmanager
def _embedder(name: str | None, home: Path | None) -> Iterator[Embed | None]:
    """Embeds with the workspace's cache; None: no text is looked at."""
    if name is None:
        yield None
        return
    with Store.open(home) as store, embedding() as progress:
        yield one(name, store, progress)


def _council(found: Recommendation, source: str, home: Path | None) -> dict[str, Any] | None:
    """The entries of a council file that seats the kept; None where the run is not one of ours, or seats are draws."""
    members = [found.panel.members[m] for m in found.kept.seats]
    path = Path(source)
    logs = path.exists() and not (path.is_file() and is_export(path))
    if logs or any(member.draw for member in found.panel.members):
        return None
    with reading(source, home) as (store, name):
        stored = store.run(name)
        first = next(store.transcripts(attempt for attempt, _ in store.run_attempts(stored.id)))
    config = make_config(stored.config, f"run {stored.name}")
    kept = tuple(member.seat for member in members)
    file = council(Team(stored.name, config, found.measured, first.attempt.agents, (), kept))
    return file if len(kept) > 1 else _alone(file)


def _alone(file: Mapping[str, Any]) -> dict[str, Any]:
    """One seat has nobody to work with."""
    return {"method": "single", **{key: value for key, value in file.items() if key not in ("method", "settings")}}


# --- on the screen ---------------------------------------------------------------------------------------------------


def _print(found: Recommendation, file: dict[str, Any] | None) -> None:
    console = _screen.out()
    console.print(_screen.text(f"{found.panel.name}: {_basis(found)}"), soft_wrap=True)
    for note in found.notes:
        console.print(_screen.text(f"note: {note}"), soft_wrap=True)
    console.print()
    console.print(_screen.text(sentence(found), style="bold"), soft_wrap=True)
    console.print()
    console.print(_front(found))
    console.print()
    for said in drop_sentences(found):
        console.print(_screen.text(said), soft_wrap=True)
    if file is not None:
        console.print()
        console.print("the council that keeps them, for pluribus run FILE:", style="dim", markup=False)
        console.print(_screen.text(yaml.safe_dump(file, sort_keys=False, allow_unicode=True)), soft_wrap=True)


def _basis(found: Recommendation) -> str:
    search = f"{found.subsets:,} councils of {len(found.full.seats)} seats ({found.searched})"
    halves = f"chosen on {_screen.plural(found.calibration, 'question')}, measured on the other {found.measured:,}"
    return f"{search}, {halves} (split by seed {found.seed}); plain plurality of first answers, ties at expectation"


def _front(found: Recommendation) -> Table:
    table = _screen.table()
    table.add_column("seats", overflow="fold", max_width=34)
    heads = ("chosen on", "measured", "95 % interval", "against all, points", "95 % interval", found.unit)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for choice in _shown(found):
        style = "bold" if choice.seats == found.kept.seats else ""
        table.add_row(*_row(found, choice), style=style)
    return table


def _shown(found: Recommendation) -> list[Choice]:
    """The front, and all seats where they are not on it."""
    rest = [] if any(choice.seats == found.full.seats for choice in found.front) else [found.full]
    return [*found.front, *rest]


def _row(found: Recommendation, choice: Choice) -> list[str]:
    gap, itself = choice.difference, choice.seats == found.full.seats
    per_question = {"US dollars": choice.spend.cost_usd, "tokens": choice.spend.tokens, "calls": choice.spend.calls}
    spent = per_question[found.unit] or 0.0
    return [
        _seats(found, choice), _screen.share(choice.chosen_on), _screen.share(choice.measured),
        _screen.between(choice.interval), _screen.NOTHING if itself else signed(gap.value),
        _screen.NOTHING if itself else f"{signed(gap.low)} – {signed(gap.high)}",
        _screen.usd(spent) if found.unit == "US dollars" else f"{spent:,.1f}",
    ]  # fmt: skip


def _seats(found: Recommendation, choice: Choice) -> str:
    if len(choice.seats) == len(found.full.seats):
        return f"all {len(choice.seats)}"
    return ", ".join(labels(found.panel, choice.seats))


# --- as an object ----------------------------------------------------------------------------------------------------


def _object(found: Recommendation, embedder: str | None, file: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "run": found.panel.name,
        "source": found.panel.source,
        "seed": found.seed,
        "tolerance": found.tolerance,
        "unit": found.unit,
        "searched": found.searched,
        "subsets": found.subsets,
        "questions": {"chosen_on": found.calibration, "measured_on": found.measured},
        "recommendation": sentence(found),
        "kept": _choice(found, found.kept),
        "all": _choice(found, found.full),
        "front": [_choice(found, choice) for choice in found.front],
        "drop": [
            {
                **_member(found, seat.index), "delta_kstar": seat.delta_kstar,
                "without": _choice(found, seat.without),
            }
            for seat in found.seats
        ],
        "sentences": drop_sentences(found),
        "embedder": embedder,
        "notes": list(found.notes),
        "council": file,
    }  # fmt: skip


def _member(found: Recommendation, index: int) -> dict[str, Any]:
    member = found.panel.members[index]
    return {"seat": member.seat + 1, "name": member.name, "model": member.model, "persona": member.persona}


def _choice(found: Recommendation, choice: Choice) -> dict[str, Any]:
    gap = choice.difference
    return {
        "seats": [found.panel.members[m].seat + 1 for m in choice.seats],
        "names": [found.panel.members[m].name for m in choice.seats],
        "accuracy_chosen_on": choice.chosen_on,
        "accuracy": choice.measured,
        "interval": list(choice.interval),
        "difference": gap.value,
        "difference_interval": [gap.low, gap.high],
        "verdict": choice.loss,
        "per_question": asdict(choice.spend),
        "saved": choice.saved,
        "n": choice.n,
    }
