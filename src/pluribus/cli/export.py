"""`pluribus export`: a run out of the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from pluribus.cli._flags import Home


def export(
    run: Annotated[str, Argument(help="A run's name or id.", metavar="RUN")],
    out: Annotated[Path, Option(help="File to write (.gz compresses); a folder for parquet.", metavar="PATH")],
    format: Annotated[
        Literal["jsonl", "parquet", "replay", "agent-scaling", "agentark", "agentark-labeled"],
        Option(
            metavar="NAME",
            help="jsonl: everything, to import again. parquet: flat tables of attempts, turns and decisions. "
            "replay: the outputs alone, to vote on again without the models. agent-scaling, agentark: as those codes "
            "write it; a folder gets their own file names. agentark-labeled: every answer with its label.",
        ),
    ] = "jsonl",
    home: Home = None,
) -> int:
    """Export a stored run."""
    from pluribus.cli._files import export as write

    return write(run, format, out, home)
