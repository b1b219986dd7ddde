"""What is kept of a sweep in the workspace: its cells with their runs, and how each ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pluribus.codec import build, plain
from pluribus.store import Store
from pluribus.sweep.plan import Plan
from pluribus.types import Score

FAILED, STOPPED, FINISHED, PLANNED = "failed", "stopped", "finished", "planned"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a stored sweep."""

    label: str
    coordinates: Mapping[str, Any]
    """task, method, models (name of the set), num_agents, persona, and every other axis of the sweep."""
    run: str
    """Id of its run."""
    status: str
    """`planned`, `running` (or killed while it ran), `finished`, `stopped` by the budget, or `failed`."""
    reason: str | None = None
    """Why it failed or stopped."""
    control: bool = False
    """Whether it is there to compare with only."""


@dataclass(frozen=True, slots=True)
class StoredSweep:
    id: str
    name: str
    created: float
    """Unix time, s."""
    cells: tuple[Cell, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    """The sweep file it was made from."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one cell ended."""

    cell: int
    """Place in the plan."""
    status: str
    """`finished`, `stopped` or `failed`."""
    seconds: float
    reason: str | None = None
    score: Score | None = None
    """None: it ended before anything could be scored."""
    sent: int = 0
    """Requests sent, retries included."""
    known: int = 0
    """Calls answered by the store, or by another cell that asked the same at that moment."""
    prompt_tokens: int = 0
    """Of the requests sent."""
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    degraded: int = 0
    """Questions that went on without a seat."""


class Ledger:
    """Keeps the sweep's row up to date while its cells end."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store = store
        self._plan = plan
        self._cells = [Cell(c.label, c.coordinates, c.prepared.id, PLANNED, control=c.control) for c in plan.cells]
        self._write()

    def end(self, outcome: Outcome) -> None:
        before = self._cells[outcome.cell]
        self._cells[outcome.cell] = Cell(
            before.label, before.coordinates, before.run, outcome.status, outcome.reason, before.control
        )
        self._write()

    def _write(self) -> None:
        config = self._plan.file.model_dump(mode="json", exclude_defaults=True)
        self._store.sweeps.put(self._plan.id, self._plan.name, config, [plain(cell) for cell in self._cells])


def stored(store: Store, name: str) -> StoredSweep:
    """A sweep of the workspace, by name, id or the beginning of either; the latest of several with one name.

    Raises:
        UnknownName: there is none.
    """
    row = store.sweeps.get(name)
    runs = {run.id: run.status for run in store.runs()}
    cells = tuple(_as_it_stands(build(Cell, value), runs) for value in row.cells)
    return StoredSweep(row.id, row.name, row.created, cells, row.config)


def _as_it_stands(cell: Cell, runs: Mapping[str, str]) -> Cell:
    """A run may have been finished by itself, or its sweep have been killed: what the run says is newer."""
    status = runs.get(cell.run)
    if status is None or cell.status == FAILED:
        return cell
    return Cell(cell.label, cell.coordinates, cell.run, status, cell.reason, cell.control)
