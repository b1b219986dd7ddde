"""`pluribus list`: what there is."""

from __future__ import annotations

from typing import Annotated, Literal

from typer import Argument

from pluribus.cli._flags import Home, Json

What = Literal[
    "methods", "tasks", "backends", "embedders", "judges", "logs", "personas", "zoo", "runs", "sweeps", "prompts",
    "presets",
]  # fmt: skip


def list_(
    what: Annotated[What, Argument(help="What to list.", metavar="WHAT")],
    json: Json = False,
    home: Home = None,
) -> int:
    """List methods, tasks, backends, embedders, judges, logs, personas, zoo, runs, sweeps, prompts or presets."""
    from pluribus.cli import _lister

    return _lister.go(what, home=home, json=json)
