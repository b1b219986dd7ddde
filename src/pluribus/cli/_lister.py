"""What `pluribus list` does: each list is rows of named cells, printed as a table or as JSON."""

from __future__ import annotations

import dataclasses
import inspect
import json as jsonlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from pluribus import cli, tasks
from pluribus.backends import aliases, services
from pluribus.cli import _screen
from pluribus.config import METHOD_ALIASES, PRESETS
from pluribus.load import load, names
from pluribus.personas import personas, sets
from pluribus.prompts import dialect, dialects
from pluribus.store import Store
from pluribus.zoo import CHECKPOINTS, members

_SHORT = 40
"""Characters of a list that is spelled out."""

Row = dict[str, Any]
"""Column → value; every row of a list has the same columns."""


def go(what: str, *, home: Path | None, json: bool) -> int:
    rows = {"runs": runs, "sweeps": sweeps}[what](home) if what in ("runs", "sweeps") else LISTS[what]()
    if json:
        print(jsonlib.dumps(rows, ensure_ascii=False, indent=2))
    else:
        _print(rows, what)
    return cli.OK


def _print(rows: Sequence[Row], what: str) -> None:
    console = _screen.out()
    if not rows:
        console.print(f"no {what} yet")
    elif "what" in rows[0]:
        console.print(_entries(rows))
    else:
        console.print(_table(rows))


def _table(rows: Sequence[Row]) -> Table:
    table = _screen.table()
    for place, column in enumerate(rows[0]):
        number = any(isinstance(row[column], float | int) for row in rows)
        table.add_column(column, justify="right" if number else "left", no_wrap=number or place == 0)
    for row in rows:
        table.add_row(*(_screen.cell(_cell(name, value)) for name, value in row.items()))
    return table


def _entries(rows: Sequence[Row]) -> Table:
    """A name and what it is; below that the other cells, dimmed."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        name, *_ = row.values()
        grid.add_row(_screen.text(str(name)), _screen.text(str(row["what"])))
        rest = [f"{key} {_cell(key, value)}" for key, value in list(row.items())[1:] if value and key != "what"]
        if rest:
            grid.add_row("", _screen.text("; ".join(rest), style="dim"))
    return grid


def _cell(column: str, value: Any) -> str:
    if value is None:
        return _screen.NOTHING
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_setting(item)}" for name, item in value.items())
    if isinstance(value, float):
        return _screen.share(value) if column == "accuracy" else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _setting(value: Any) -> str:
    """As `--set` takes it, as far as it is short.

    >>> [_setting(value) for value in (None, True, 2 / 3, ("a", "b"))]
    ['null', 'true', '0.667', '[a, b]']
    """
    if isinstance(value, tuple | list):
        words = f"[{', '.join(map(str, value))}]"
        return words if len(words) <= _SHORT else f"{len(value)} built in"
    if isinstance(value, float):
        return f"{value:.3g}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _first_line(member: Any) -> str:
    return (inspect.getdoc(member) or "").partition("\n")[0]


def methods() -> list[Row]:
    rows = []
    for name in names("methods"):
        module = load("methods", name)
        least, most = module.calls(module.Settings(), module.AGENTS)
        rows.append(
            {
                "method": name,
                "agents": module.AGENTS,
                "calls": str(most) if least == most else f"{least} – {most}",
                "what": _first_line(module),
                "source": _source(module),
                "settings": {f.name: f.default for f in dataclasses.fields(module.Settings)},
            }
        )
    also = {old: new for old, new in METHOD_ALIASES.items() if old not in names("methods")}
    return [*rows, *(_alias(rows[0], "method", old, new) for old, new in sorted(also.items()))]


_SOURCE = re.compile(r"^Source: (.+?)(?<!\bal)\.(?:\s|$)", re.MULTILINE | re.DOTALL)


def _source(module: Any) -> str | None:
    """The docstring's sentence behind `Source:`."""
    found = _SOURCE.search(inspect.getdoc(module) or "")
    return " ".join(found[1].split()) if found else None


def _alias(like: Row, column: str, name: str, real: str) -> Row:
    return {**dict.fromkeys(like), column: name, "what": f"another name of {real}"}


_FEW = 8
"""So many subsets are spelled out."""


def every_task() -> list[Row]:
    rows = []
    for name in names("tasks"):
        module = load("tasks", name)
        subsets: Sequence[str] = getattr(module, "SUBSETS", ())
        rows.append(
            {
                "task": name,
                "splits": sorted(module.SPLITS, key=lambda split: split != module.DEFAULT_SPLIT),
                "subsets": list(subsets) if len(subsets) <= _FEW else f"{len(subsets)}, as {name}:{min(subsets)}",
                "what": _first_line(module),
            }
        )
    return [*rows, *(_alias(rows[0], "task", old, new) for old, new in sorted(tasks.ALIASES.items()))]


def backends() -> list[Row]:
    rows: list[Row] = []
    for name, service in services().items():
        backend, key = load("backends", service["backend"]), service.get("key_env")
        rows.append(
            {
                "models": f"{name}/…",
                "what": service.get("base_url") or _first_line(backend),
                "key": key and f"{key} ({_key_state(key, service)})",
                "options": sorted(backend.OPTIONS),
            }
        )
    return [*rows, *(_alias(rows[0], "models", old, new) for old, new in sorted(aliases().items()))]


def _key_state(variable: str, service: Mapping[str, Any]) -> str:
    if os.environ.get(variable):
        return "set"
    return "not set, optional" if service.get("key_optional") else "not set"


def persona_sets() -> list[Row]:
    return [
        {"set": name, "persona": one.name, "style": one.style, "temperature": one.temperature, "top_p": one.top_p}
        for name in sets()
        for one in personas(name)
    ]


def zoo() -> list[Row]:
    return [{"model": f"zoo/{name}", "what": _card(name), "MB": _megabytes(name)} for name in members()]


def _card(name: str) -> str:
    """The first sentence of the member's card."""
    card = CHECKPOINTS / name / "README.md"
    lines = card.read_text("utf-8").splitlines() if card.is_file() else []
    body = [line for line in lines if line and line[0] not in "#-|>" and ":" not in line.split(" ")[0]]
    return body[0] if body else _screen.NOTHING


def _megabytes(name: str) -> float:
    return round(sum(file.stat().st_size for file in (CHECKPOINTS / name).iterdir()) / 1e6, 1)


def runs(home: Path | None) -> list[Row]:
    from pluribus.cli._shower import when

    if not Store.file(home).exists():
        return []
    with Store.open(home) as store:
        stored = store.runs()
    return [
        {
            "run": run.name,
            "begun": when(run.created),
            "status": run.status,
            "questions": run.totals.get("asked"),
            "failed": run.totals.get("failed"),
            "accuracy": run.totals.get("value"),
        }
        for run in stored
    ]


def sweeps(home: Path | None) -> list[Row]:
    from pluribus.cli._shower import when
    from pluribus.sweep import stored

    if not Store.file(home).exists():
        return []
    with Store.open(home) as store:
        found = [stored(store, row.id) for row in store.sweeps.all()]
    return [
        {
            "sweep": sweep.name,
            "begun": when(sweep.created),
            "cells": len(sweep.cells),
            "finished": sum(cell.status == "finished" for cell in sweep.cells),
            "failed": sum(cell.status == "failed" for cell in sweep.cells),
        }
        for sweep in found
    ]


def prompts() -> list[Row]:
    return [
        {
            "dialect": name,
            "what": _screen.plural(len(texts), "prompt or fragment", "prompts and fragments"),
            "names": texts,
        }
        for name, texts in ((name, sorted(dialect(name).texts)) for name in dialects())
    ]


def _members(area: str, column: str) -> Callable[[], list[Row]]:
    """A folder's members with the first lines of their docstrings."""
    return lambda: [{column: name, "what": _first_line(load(area, name))} for name in names(area)]


def presets() -> list[Row]:
    fields = ("temperature", "top_p", "max_tokens")
    return [{"preset": name, **{f: PRESETS[name].get(f) for f in fields}} for name in sorted(PRESETS)]


LISTS: Mapping[str, Callable[[], list[Row]]] = {
    "methods": methods,
    "tasks": every_task,
    "backends": backends,
    "embedders": _members("embedders", "embedder"),
    "judges": _members("judges", "judge"),
    "logs": _members("logs", "format"),
    "personas": persona_sets,
    "zoo": zoo,
    "prompts": prompts,
    "presets": presets,
}
