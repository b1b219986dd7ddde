"""`pluribus team`: which agents a run's ratings found most important, and the council that keeps them."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from pluribus.cli._flags import Home, Json


def team(
    run: Annotated[str, Argument(help="A run with --method dylan, by name or id, or an exported run.", metavar="RUN")],
    keep: Annotated[int, Option(help="Agents to keep.", metavar="N")] = 3,
    json: Json = False,
    home: Home = None,
) -> int:
    """Pick the agents that mattered most in a DyLAN run, as seats of a council file.

    Nothing is asked: the importance of each seat was worked out from the agents' ratings of each other.
    """
    from pluribus.cli import _team

    return _team.pick(run, keep, home=home, json=json)
