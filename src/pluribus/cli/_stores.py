"""Where a run is read from: the workspace, or a file that `pluribus export` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pluribus.errors import DataError, UnknownName
from pluribus.logs import reader_of
from pluribus.logs._rows import first_row
from pluribus.store import Store
from pluribus.store.export import FORMAT, import_jsonl


@contextmanager
def reading(run: str, home: Path | None) -> Iterator[tuple[Store, str]]:
    """A store that holds the run, and the run's name or id in it; an existing file wins over a name."""
    if not Path(run).is_file():
        if not Store.file(home).exists():
            raise nowhere("run", run, home)
        with Store.open(home) as store:
            yield store, run
        return
    _refuse_logs(Path(run))
    with TemporaryDirectory() as folder, Store.open(folder) as store:
        yield store, import_jsonl(store, Path(run)).run.id


def nowhere(what: str, name: str, home: Path | None) -> UnknownName:
    """The error of a name that is looked up where there is no workspace; looking makes none."""
    error = UnknownName(what, name, ())
    error.hint = f"there is no workspace at {Store.file(home).parent}; --home or PLURIBUS_HOME names another"
    return error


def is_export(path: Path) -> bool:
    """Whether `pluribus export --format jsonl` wrote this file."""
    row = first_row(path) if ".jsonl" in path.suffixes else None
    return row is not None and row.get("format") == FORMAT


def _refuse_logs(path: Path) -> None:
    """A log of another code is no run yet: it has no transcripts."""
    member = None if is_export(path) else reader_of(path)
    if member is not None:
        raise DataError(
            str(path), f"this is a log ({member.TITLE}), not an exported run",
            hint=f"make a run of it with: pluribus import {path}",
        )  # fmt: skip
