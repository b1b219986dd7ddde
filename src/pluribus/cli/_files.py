"""What `pluribus export` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from pluribus import cli
from pluribus.cli import _labelled as _answers
from pluribus.cli import _screen
from pluribus.cli._label_screen import said
from pluribus.cli._stores import reading
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError
from pluribus.label import settle
from pluribus.load import load
from pluribus.panel import Panel
from pluribus.run import panel
from pluribus.store import Store
from pluribus.store.export import export_jsonl
from pluribus.store.parquet import export_parquet
from pluribus.store.replay import export_replay

_FOREIGN: Mapping[str, str] = {"agent-scaling": "agent_scaling", "agentark": "agentark"}
"""Formats of other codes → the member that writes them."""


def export(run: str, format: str, path: Path, home: Path | None) -> int:
    """Writes the run and says what is where."""
    check_place(path, folder=format not in ("jsonl", "replay", "agentark-labeled"))
    with reading(run, home) as (store, found):
        name = store.run(found).name
        lines = _foreign(store, found, format, path) if format in _FOREIGN else _WRITERS[format](store, found, path)
        for line in lines:
            _screen.out().print(line, markup=False, soft_wrap=True)
    _screen.err().print(f"exported {name}", markup=False)
    return cli.OK


def check_place(out: Path, *, folder: bool, flag: str = "--out") -> None:
    """A file that is made whole and then renamed would take the place of a device, or fail on a folder."""
    if not out.exists() or out.is_file() or (folder and out.is_dir()):
        return
    what = "a folder" if out.is_dir() else "no file"
    raise ConfigError(f"{flag} {str(out)!r} is {what}", hint="choose another file")


def check_ours(out: Path, ours: Callable[[Path], bool], what: str, flag: str = "--out") -> None:
    """Nothing but an older file of the same kind, or an empty one, is written over."""
    check_place(out, folder=False, flag=flag)
    if out.exists() and out.stat().st_size and not ours(out):
        raise ConfigError(f"{flag} {out} is there already and is no {what}", hint="choose another file")


def _jsonl(store: Store, run: str, path: Path) -> list[str]:
    number = export_jsonl(store, run, path)
    return [f"{path}: {_screen.plural(number, 'attempt')}"]


def _parquet(store: Store, run: str, path: Path) -> list[str]:
    return [str(file) for file in export_parquet(store, run, path)]


def _replay(store: Store, run: str, path: Path) -> list[str]:
    """The seats as `--agent-models` takes them."""
    return [f"replay/{path}#{name}" for name in export_replay(store, run, path)]


def _labelled(store: Store, run: str, path: Path) -> list[str]:
    """Every answer that a key, tests or stored labels decide about."""
    source = _answers.of_run(store, run)
    labels = block(_answers.known(source))
    if not any(correct is not None for several in labels.values() for correct in settle(several).values()):
        raise ConfigError(
            f"no answer of run {source.name} is labelled, and no key decides",
            hint=f"label it with: pluribus label {source.name} --judge MODEL",
        )
    return [said(_answers.write(source, labels, path))]


_WRITERS = {"jsonl": _jsonl, "parquet": _parquet, "replay": _replay, "agentark-labeled": _labelled}


def _foreign(store: Store, run: str, format: str, path: Path) -> list[str]:
    """The run as another code writes it; what that form can not hold is said."""
    found = _with_control(panel(store, run), store.run(run).config)
    for line in _left_out(found, format):
        _screen.err().print(_screen.line(line, "dim"), soft_wrap=True)
    written: list[str] = load("logs", _FOREIGN[format]).write(found, store.run_questions(store.run(run).id), path)
    return [f"{file}: {_screen.plural(len(found.items), 'question')}" for file in written]


def _with_control(found: Panel, config: Mapping[str, object]) -> Panel:
    """The panel, its settings with the control that stood in for the personas."""
    control = {name: True for name in ("baseline_a", "baseline_b") if config.get(name)}
    return replace(found, settings={**found.settings, **control})


def _left_out(found: Panel, format: str) -> list[str]:
    """What a format has no place for, counted."""
    said = [f"left out: {reason}: {number:,}" for reason, number in found.omitted.items()]
    if format == "agentark" and found.rounds > 1:
        said.append(f"left out: rounds before the last: {found.rounds - 1}, which this form does not hold")
    parts = sum(item.credit not in (None, 0, 1) for item in found.items)
    if parts:
        said.append(f"ties that count in part: {parts:,}, written as not right")
    return said
