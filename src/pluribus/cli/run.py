"""`pluribus run`: a council answers a task's questions, is scored, and everything is stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, CouncilFlags, DecisionFlags, Home, Json, LimitFlags, SamplingFlags, TaskFlags

if TYPE_CHECKING:
    from pluribus.cli._runner import Job


def run(
    task: TaskFlags,
    seats: CouncilFlags,
    sampling: SamplingFlags,
    decision: DecisionFlags,
    limits: LimitFlags,
    council: Annotated[
        Path | None, Argument(help="A council file (YAML); flags win over it.", show_default=False)
    ] = None,
    resume: Annotated[
        str | None, Option(help="Go on with a stored run; only limits may be given with it.", metavar="RUN")
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", metavar=SWITCH, help="Show seating and forecast; ask nobody.")
    ] = False,
    json: Json = False,
    home: Home = None,
) -> int:
    """Run a council over a task and score it.

    What is answered already costs nothing; failed questions are asked again. Ends with 0 when every question was
    answered, 1 when some failed, 3 when the budget stopped it.
    """
    from pluribus.cli import _runner

    groups = (task, seats, sampling, decision, limits)
    job: Job = _runner.resumed(resume, council, groups, home) if resume else _runner.new(council, groups)
    return _runner.go(job, home=home, dry_run=dry_run, json=json)
