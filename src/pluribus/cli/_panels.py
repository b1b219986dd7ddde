"""What can be measured, by name: runs of the workspace, exported runs, histories and logs of other codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pluribus.cli import _screen
from pluribus.cli._stores import is_export, reading
from pluribus.errors import DataError, UnknownName, UsageError
from pluribus.load import load, names
from pluribus.logs import Recording, groups, merged, panel_of_recording, reader_of, titles
from pluribus.panel import Panel
from pluribus.run import panel

_NAMED = 5
"""Runs that a complaint spells out."""


@dataclass(slots=True)
class Found:
    """What a list of paths and names holds, in the order given."""

    parts: list[Panel | Recording] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)
    """Files of a folder that nobody can read."""
    seen: set[Path] = field(default_factory=set)
    """A file that is named twice, or lies in a folder that is named too, counts once."""


def panels(sources: Sequence[str], home: Path | None) -> list[Panel]:
    """One panel per run, or several per folder or file of logs, in the order given; an existing path wins. Logs of one
    model each that asked the same questions are one panel.

    Raises:
        UnknownName: no such run, and no such path.
        DataError: a file that holds no run anybody here can read.
    """
    found = Found()
    for source in sources:
        _gather(source, home, found)
    say_unknown(found.unknown)
    return list(_measured(found.parts))


def one_panel(source: str, home: Path | None) -> Panel:
    """What a command measures that takes one run.

    Raises:
        UsageError: the path holds several; names them.
    """
    found = panels([source], home)
    if len(found) == 1:
        return found[0]
    named = "; ".join(panel.name for panel in found[:_NAMED]) + ("; …" if len(found) > _NAMED else "")
    raise UsageError(
        f"{source} holds {len(found)} runs: {named}",
        hint=f"name a file or folder of one, or make runs of them: pluribus import {source}",
    )


def distinct(found: Sequence[Panel]) -> list[Panel]:
    """Panels under names that tell them apart; one that was named twice comes once."""
    once = list({(panel.name, panel.source): panel for panel in found}.values())
    times = Counter(panel.name for panel in once)
    return [
        panel if times[panel.name] == 1 else replace(panel, name=f"{panel.name} ({panel.source})") for panel in once
    ]


def _measured(parts: Sequence[Panel | Recording]) -> Iterator[Panel]:
    """Panels as they are; recordings put together, each group in the place of its first."""
    together = groups([part for part in parts if isinstance(part, Recording)])
    first = {id(group[0]): group for group in together}
    for part in parts:
        if isinstance(part, Panel):
            yield part
        elif id(part) in first:
            yield panel_of_recording(merged(first[id(part)]))


def _gather(source: str, home: Path | None, found: Found) -> None:
    if not source.strip():
        raise UsageError("the name of a run is empty", hint="see what there is with: pluribus list runs")
    path = Path(source)
    if path.is_dir():
        _folder(path, home, found)
    elif path.exists():
        found.parts += _file(path, home, found.seen)
    else:
        found.parts.append(_stored(source, home))


def _stored(source: str, home: Path | None) -> Panel:
    """A run; a name that looks like a path is said to be neither."""
    try:
        with reading(source, home) as (store, name):
            return panel(store, name)
    except UnknownName:
        if like_path(source):
            raise DataError(source, "no such file or folder, and no run has this name") from None
        raise


def like_path(source: str) -> bool:
    """Whether a name that is not there was meant as a file or folder."""
    return "/" in source or Path(source).suffix in (".jsonl", ".json", ".eval", ".gz")


def _file(path: Path, home: Path | None, seen: set[Path]) -> list[Panel | Recording]:
    if (place := path.resolve()) in seen:
        return []
    seen.add(place)
    if is_export(path):
        return [_stored(str(path), home)]
    member = reader_of(path)
    if member is None:
        raise DataError(str(path), "not a run of any format known here", hint=f"known: exported runs; {titles()}")
    return list(member.read(path))


def _folder(folder: Path, home: Path | None, found: Found) -> None:
    """Every file below it that somebody can read, by name."""
    before = len(found.seen)
    inside = files_of(folder)
    for path in inside:
        if is_export(path) or reader_of(path) is not None:
            found.parts += _file(path, home, found.seen)
        else:
            found.unknown.append(path)
    if len(found.seen) == before and not any(path.resolve() in found.seen for path in inside):
        raise DataError(str(folder), "the folder holds no run of any format known here", hint=f"known: {titles()}")


def files_of(folder: Path) -> list[Path]:
    """The files below a folder, hidden ones left out, sorted."""
    inside = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in inside if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def _is_companion(path: Path) -> bool:
    """Whether a reader takes the file together with another one."""
    return any(path.match(pattern) for name in names("logs") for pattern in getattr(load("logs", name), "BESIDE", ()))


def say_unknown(paths: Sequence[Path]) -> None:
    """One line about the files that were passed over; those that a reader takes with another file were not."""
    unknown = [path for path in paths if not _is_companion(path)]
    if unknown:
        first = ", ".join(path.name for path in unknown[:3]) + (", …" if len(unknown) > 3 else "")
        number = _screen.plural(len(unknown), "file")
        _screen.err().print(
            _screen.line(f"passed over {number} that nobody here can read: {first}", "dim"), soft_wrap=True
        )
