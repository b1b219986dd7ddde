"""What `pluribus export` and `pluribus import` do."""

from __future__ import annotations

from pathlib import Path

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._stores import reading
from pluribus.store import Store
from pluribus.store.export import export_jsonl, import_jsonl
from pluribus.store.parquet import export_parquet
from pluribus.store.replay import export_replay


def export(run: str, format: str, path: Path, home: Path | None) -> int:
    """Writes the run and says what is where."""
    with reading(run, home) as (store, found):
        name = store.run(found).name
        for line in _WRITERS[format](store, found, path):
            _screen.out().print(line, markup=False, soft_wrap=True)
    _screen.err().print(f"exported {name}", markup=False)
    return cli.OK


def _jsonl(store: Store, run: str, path: Path) -> list[str]:
    number = export_jsonl(store, run, path)
    return [f"{path}: {_screen.plural(number, 'attempt')}"]


def _parquet(store: Store, run: str, path: Path) -> list[str]:
    return [str(file) for file in export_parquet(store, run, path)]


def _replay(store: Store, run: str, path: Path) -> list[str]:
    """The seats as `--agent-models` takes them."""
    return [f"replay/{path}#{name}" for name in export_replay(store, run, path)]


_WRITERS = {"jsonl": _jsonl, "parquet": _parquet, "replay": _replay}


def import_(file: Path, home: Path | None) -> int:
    with Store.open(home) as store:
        found = import_jsonl(store, file)
    kept = f", {found.kept:,} of them were here already" if found.kept else ""
    told = f"imported {found.run.name}: {_screen.plural(found.attempts, 'attempt')}{kept}"
    _screen.out().print(told, markup=False, soft_wrap=True)
    return cli.OK
