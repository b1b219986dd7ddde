"""`pluribus import`: a run into the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from pluribus.cli._flags import Home


def import_(
    file: Annotated[Path, Argument(help="What `pluribus export --format jsonl` wrote.", metavar="FILE")],
    home: Home = None,
) -> int:
    """Import a run that was exported as JSONL."""
    from pluribus.cli._files import import_ as read

    return read(file, home)
