"""`pluribus import`: runs and logs into the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pluribus.cli._flags import Home


def import_(
    paths: Annotated[
        list[Path],
        Argument(
            help="What `pluribus export --format jsonl` wrote, or logs: Agent-Scaling histories, AgentArk inference "
            "records, lm-evaluation-harness samples, Inspect AI logs. Files or folders.",
            metavar="PATH",
        ),
    ],
    out: Annotated[
        Path | None,
        Option(
            help="Folder for the questions and outputs of logs. [dim](imports/NAME in the workspace)[/dim]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    home: Home = None,
) -> int:
    """Import exported runs, and logs that you already own as runs.

    A log's outputs take the seats of a replay council: nothing is asked. Logs of one model each that asked the same
    questions become one council.
    """
    from pluribus.cli._imports import go

    return go(paths, out, home)
