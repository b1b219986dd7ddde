"""What `pluribus report` does: sources to panels and trainings, these to a page, and where it lies."""

from __future__ import annotations

import json as jsonlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pluribus import cli
from pluribus.cli import _embedding, _reward_facts, _screen
from pluribus.cli._panels import distinct, like_path, panels
from pluribus.cli._stores import nowhere
from pluribus.compare import is_self_consistency
from pluribus.controls import LEAST_SHARED, controls_of
from pluribus.errors import ConfigError, DataError, UnknownName, UsageError
from pluribus.judging import stored_rewards
from pluribus.panel import Panel
from pluribus.reports import (
    Material,
    Scores,
    Training,
    Written,
    measure,
    places,
    training_facts,
    trainings,
    words,
    write,
)
from pluribus.reports.drawing import plotting
from pluribus.reports.material import Coordinates
from pluribus.reports.sections import summary
from pluribus.run import panel as panel_of_run
from pluribus.store import Store
from pluribus.store.files import make_folder
from pluribus.store.names import few

T = TypeVar("T")
_RUN = "run "
"""How the source of a panel begins that was read from a workspace."""
_NAMED = 5
"""Trainings that a complaint spells out."""
_MEASURED = ("finished", "stopped", "running")
"""Cells of a sweep that may hold answers."""


@dataclass(frozen=True, slots=True)
class _Sources:
    """What the words of the command line stand for."""

    panels: tuple[Panel, ...]
    coordinates: Mapping[str, Coordinates] = field(default_factory=dict)
    omitted: Mapping[str, int] = field(default_factory=dict)
    sweep: str = ""
    trainings: tuple[Training, ...] = ()


def report(
    sources: Sequence[str],
    out: Path | None,
    embedder: str | None,
    title: str | None,
    seed: int,
    *,
    sample: int | None,
    home: Path | None,
    json: bool,
) -> int:
    """Measures the sources and writes the page."""
    plotting()  # before anything that takes long
    found = _read(sources, home)
    if not found.panels and not found.trainings:
        left = "; ".join(f"{reason}: {n}" for reason, n in found.omitted.items())
        raise UsageError(f"{' '.join(sources)}: there is nothing to report" + (f" ({left})" if left else ""))
    name = title or _title(found)
    to = out or Path(f"report-{words.slug(_title(found))}")
    page, beside = places(to)
    for folder in (page.parent, beside):
        make_folder(folder)
    measured = _measured(found, embedder, seed, sample, home) if found.panels else Material(name)
    material = replace(measured, title=name, source=found.sweep, omitted=found.omitted, trainings=found.trainings)
    written = write(material, to, seed=seed)
    _tell(material, written, json)
    return cli.OK


def _measured(found: _Sources, embedder: str | None, seed: int, sample: int | None, home: Path | None) -> Material:
    """The councils, compared with their controls."""
    with Store.open(home) as store, _embedding.embedding() as progress:
        embed = _embedding.one(embedder, store, progress)
        begun = {panel.source: when for panel in found.panels if (when := _begun(store, panel)) is not None}
        councils = measure(
            found.panels, embed, embedder=embed.name, controls=_controls(store, found.panels),
            coordinates=found.coordinates, begun=begun, sample=sample, seed=seed,
        )  # fmt: skip
        scores = tuple(one for panel in found.panels if (one := _scores(store, panel)) is not None)
    return Material("", councils, embed.name, scores=scores)


def _tell(material: Material, written: Written, json: bool) -> None:
    if json:
        print(jsonlib.dumps(_object(material, written), ensure_ascii=False, indent=2))
        return
    console = _screen.out()
    for line in _spoken(material):
        console.print(_screen.text(line), soft_wrap=not console.is_terminal)
    if material.omitted:
        reasons = "; ".join(f"{reason}: {number:,}" for reason, number in material.omitted.items())
        console.print(_screen.text(f"left out: {reasons}", style="yellow"), soft_wrap=not console.is_terminal)
    console.print(_screen.text(f"report: {written.page}"), soft_wrap=True)
    console.print(
        _screen.text(f"{len(written.figures)} figures as PNG, {len(written.tables)} tables as CSV beside it"),
        style="dim",
    )


def _spoken(material: Material) -> list[str]:
    """The verdict on the councils, and how each training went."""
    verdict = [summary(material.councils)] if material.councils else []
    return [*verdict, *(f"{one.name}: {training_facts.said(one)}" for one in material.trainings)]


def _object(material: Material, written: Written) -> dict[str, Any]:
    return {
        "title": material.title,
        "verdict": summary(material.councils) if material.councils else None,
        "councils": [
            {
                "run": council.name, "source": council.panel.source, "line": council.condition,
                "pays": council.verdict.pays, "verdict": council.verdict.words,
                "omitted": dict(council.analysis.omitted),
            }
            for council in material.councils
        ],
        "trainings": [training_facts.facts(one) for one in material.trainings],
        "omitted": dict(material.omitted),
        "report": str(written.page),
        "figures": [str(path) for path in written.figures],
        "tables": [str(path) for path in written.tables],
    }  # fmt: skip


def _title(found: _Sources) -> str:
    every = [*(panel.name for panel in found.panels), *(training.name for training in found.trainings)]
    names = list(dict.fromkeys(every))
    return found.sweep.partition(" (")[0] or (names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more")


# --- sources ---------------------------------------------------------------------------------------------------------


def _read(sources: Sequence[str], home: Path | None) -> _Sources:
    """Panels and trainings of all sources, each once and under a name of its own; silent runs are counted."""
    taught = [source for source in sources if trainings.is_training(Path(source))]
    sweeps = [source for source in sources if source not in taught and _is_sweep(source, home)]
    others = [source for source in sources if source not in (*taught, *sweeps)]
    runs = [_Sources(tuple(_panels(others, home)))] if others else []
    parts = [*runs, *(_sweep(name, home) for name in sweeps)]
    every = distinct([panel for part in parts for panel in part.panels])
    omitted: Counter[str] = Counter()
    for part in parts:
        omitted.update(part.omitted)
    said = [panel for panel in every if any(word for item in panel.items for row in item.words for word in row)]
    omitted.update({"runs without an answer": len(every) - len(said)} if len(said) < len(every) else {})
    places = {source: place for part in parts for source, place in part.coordinates.items()}
    named = ", ".join(filter(None, (part.sweep for part in parts)))
    return _Sources(tuple(said), places, omitted, named, trainings.read(taught))


def _panels(sources: Sequence[str], home: Path | None) -> list[Panel]:
    """The runs of paths and names; a folder that holds nothing is said to hold no training either."""
    try:
        return panels(sources, home)
    except DataError as error:
        folder = Path(error.place)
        if not folder.is_dir():
            raise
        inside = [str(path) for path in sorted(folder.iterdir()) if trainings.is_training(path)]
        more = f"name the trainings in it: {' '.join(inside[:_NAMED])}" if inside else error.hint
        raise DataError(
            error.place, "the folder holds no run of any format known here, and no training (training.json)", hint=more
        ) from None


def _is_sweep(source: str, home: Path | None) -> bool:
    """An existing path wins, then a run of this name, a sweep of this name, a run that begins so, a sweep."""
    if Path(source).exists() or like_path(source):
        return False
    if not Store.file(home).exists():
        raise nowhere("run or sweep", source, home)
    with Store.open(home) as store:
        run, sweep = _found(store.run, source), _found(store.sweeps.get, source)
        if run is None and sweep is None:
            named = [run.name or run.id for run in store.runs()] + [sweep.name for sweep in store.sweeps.all()]
            raise UnknownName("run or sweep", source, few(source, named))
    exact = run is not None and source in (run.name, run.id)
    return sweep is not None and not exact and (run is None or source in (sweep.name, sweep.id))


def _found(get: Callable[[str], T], name: str) -> T | None:
    try:
        return get(name)
    except UnknownName:
        return None


def _sweep(name: str, home: Path | None) -> _Sources:
    """The panels of a sweep's cells; those that hold no answer are counted."""
    from pluribus.sweep import stored

    with Store.open(home) as store:
        sweep = stored(store, name)
        ready = [cell for cell in sweep.cells if cell.status in _MEASURED]
        found = [(panel_of_run(store, cell.run), cell.coordinates) for cell in ready]
    omitted = Counter(f"cells that are {cell.status}" for cell in sweep.cells if cell.status not in _MEASURED)
    places = {panel.source: place for panel, place in found}
    return _Sources(tuple(panel for panel, _ in found), places, omitted, f"{sweep.name} ({sweep.id})")


def _begun(store: Store, panel: Panel) -> float | None:
    """When a run of this workspace began; None: it is not from here."""
    if not panel.source.startswith(_RUN):
        return None
    try:
        return store.run(panel.source.removeprefix(_RUN)).created
    except UnknownName:
        return None


def _scores(store: Store, panel: Panel) -> Scores | None:
    """What `pluribus reward` left for a run of this workspace; None: nothing, or nothing that can still be read."""
    if not panel.source.startswith(_RUN):
        return None
    try:
        found = stored_rewards(store, panel.source.removeprefix(_RUN))
    except (UnknownName, ConfigError):
        return None
    if all(reward.value is None for reward in found.rewards):
        return None
    return _reward_facts.scores(found, _reward_facts.facts(found, {}))


# --- controls --------------------------------------------------------------------------------------------------------


def _controls(store: Store, every: Sequence[Panel]) -> Callable[[Panel], Sequence[Panel]]:
    """What may stand as self-consistency beside a panel: others of the report, then runs of the workspace.

    The workspace is searched for those only whose models are not all there yet, and once per kind of council.
    """
    draws = [panel for panel in every if is_self_consistency(panel)]
    searched: dict[tuple[str, frozenset[str], frozenset[str]], list[Panel]] = {}

    def controls(panel: Panel) -> list[Panel]:
        models = frozenset(member.model for member in panel.members)
        asked = frozenset(item.question_id for item in panel.items)
        near = [other for other in draws if other.task == panel.task and _shares(other, asked)]
        if models <= {other.members[0].model for other in near}:
            return near
        key = (panel.task, asked, models)
        if key not in searched:
            searched[key] = controls_of(store, panel)
        known = {other.source for other in near}
        return [*near, *(other for other in searched[key] if other.source not in known)]

    return controls


def _shares(panel: Panel, asked: frozenset[str]) -> bool:
    there = {item.question_id for item in panel.items if not item.failed}
    return bool(asked) and len(there & asked) >= LEAST_SHARED * len(asked)
