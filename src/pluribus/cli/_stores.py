"""Where a run is read from: the workspace, or a file that `pluribus export` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pluribus.store import Store
from pluribus.store.export import import_jsonl


@contextmanager
def reading(run: str, home: Path | None) -> Iterator[tuple[Store, str]]:
    """A store that holds the run, and the run's name or id in it; an existing file wins over a name."""
    if not Path(run).is_file():
        with Store.open(home) as store:
            yield store, run
        return
    with TemporaryDirectory() as folder, Store.open(folder) as store:
        yield store, import_jsonl(store, Path(run)).run.id
