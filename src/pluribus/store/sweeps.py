"""Sweeps in the workspace: a name, the file it was made from, and a list of cells, each of which is an ordinary run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pluribus.errors import UnknownName
from pluribus.store.blobs import pack, unpack
from pluribus.store.names import few
from pluribus.store.reader import Reader
from pluribus.store.writer import Job, Writer

_PUT = (
    "INSERT INTO sweeps (id, name, created, config, cells) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET name = excluded.name, config = excluded.config, cells = excluded.cells"
)
_ALL = "SELECT id, name, created, config, cells FROM sweeps ORDER BY created DESC, rowid DESC"


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One sweep as the workspace lists it."""

    id: str
    name: str
    created: float
    """Unix time, s."""
    config: Mapping[str, Any] = field(default_factory=dict)
    cells: Sequence[Mapping[str, Any]] = ()
    """Plain values; `pluribus.sweep` says what is in them."""


class Sweeps:
    """The table of sweeps."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    def put(self, sweep_id: str, name: str, config: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> None:
        """Keeps the sweep as it stands, durably. A known id keeps its time; the rest is replaced."""
        values = (sweep_id, name, time.time(), pack(config), pack(list(cells)))
        self._writer.put(Job(lambda: [(_PUT, values)]))
        self._writer.flush()

    def all(self) -> list[SweepRow]:
        """All sweeps, the latest first."""
        self._writer.flush()
        return [_row(values) for values in self._reader.rows(_ALL)]

    def get(self, name_or_id: str) -> SweepRow:
        """The sweep with this id, else the latest with this name, else the one whose id or name begins so.

        Raises UnknownName, which lists the sweeps there are, or those that an ambiguous beginning fits.
        """
        rows = self.all()
        exact = [row for row in rows if row.id == name_or_id] or [row for row in rows if row.name == name_or_id]
        if exact:
            return exact[0]
        near = [
            row for row in rows if name_or_id and (row.id.startswith(name_or_id) or row.name.startswith(name_or_id))
        ]
        if near and len({row.name for row in near}) == 1:
            return near[0]
        raise UnknownName("sweep", name_or_id, few(name_or_id, (row.name for row in near or rows)))


def _row(values: tuple[Any, ...]) -> SweepRow:
    sweep_id, name, created, config, cells = values
    what = f"sweep {name}"
    return SweepRow(sweep_id, name, created, unpack(dict, config, what), tuple(unpack(list, cells, what)))
