"""`pluribus sweep`: grids over council size, models, personas, methods and sampling."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Home, Json, LimitFlags, TaskFlags

Tracker = Literal["trackio", "wandb", "none"]


def sweep(
    task: TaskFlags,
    limits: LimitFlags,
    file: Annotated[Path, Argument(help="A sweep file (YAML): name, base, and grid or grids.", metavar="SWEEP.yaml")],
    jobs: Annotated[int, Option(help="Cells at a time in this process.", metavar="N", min=1)] = 1,
    gpus: Annotated[
        str | None, Option(help="Processes for models that run here, one per GPU: 0,1,… or cpu.", metavar="LIST")
    ] = None,
    jobs_per_gpu: Annotated[int, Option(help="Processes on each GPU.", metavar="N", min=1)] = 1,
    report_to: Annotated[Tracker, Option(help="Log every cell: trackio, wandb or none.", metavar="NAME")] = "none",
    dry_run: Annotated[bool, Option("--dry-run", metavar=SWITCH, help="Show cells and forecast; ask nobody.")] = False,
    json: Json = False,
    home: Home = None,
) -> int:
    """Run every cell of a sweep, each as one stored run; the calls that cells share are made once.

    Flags win over the file in every cell; the budget bounds the whole sweep. The same command goes on where it was
    stopped. Ends with 0 when every question of every cell was answered, 1 when some failed, 3 when the budget stopped
    it.
    """
    from pluribus.cli import _sweep

    crew = _sweep.Crew(jobs, gpus, jobs_per_gpu)
    return _sweep.go(file, (task, limits), crew, report_to, dry_run=dry_run, json=json, home=home)
