"""Sweeps: grids over council size, models, personas, methods and sampling; one cell is one ordinary stored run.

`read_sweep` checks a file, `make_plan` prepares every cell and forecasts, `run_here` and `run_in_workers` ask what is
not answered yet, and `stored` reads a sweep back. Calls that cells share are made once.
"""

from __future__ import annotations

from pluribus.sweep.grid import SweepFile, make_sweep, read_sweep
from pluribus.sweep.plan import Plan, Planned, SweepForecast, make_plan
from pluribus.sweep.record import Cell, Outcome, StoredSweep, stored

__all__ = [
    "Cell",
    "Outcome",
    "Plan",
    "Planned",
    "StoredSweep",
    "SweepFile",
    "SweepForecast",
    "make_plan",
    "make_sweep",
    "read_sweep",
    "stored",
]
