"""`pluribus doctor`: one real call per model of a council."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pluribus.cli._flags import CouncilFlags, Json, LimitFlags, SamplingFlags


def doctor(
    seats: CouncilFlags,
    sampling: SamplingFlags,
    council: Annotated[
        Path | None, Argument(help="A council file (YAML); flags win over it.", show_default=False)
    ] = None,
    prices: Annotated[str | None, Option(help="Your own prices (TOML).", metavar="FILE")] = None,
    json: Json = False,
) -> int:
    """Ask every model of a council one short question: is it there, is it the right one, is its price known.

    Only a real completion counts, not a server's list of models. Ends with 0 when every seat can be used, else 1.
    """
    from pluribus.cli import _checker, _layers

    config = _layers.make(council, seats=seats, sampling=sampling, limits=LimitFlags(prices=prices))
    return _checker.go(config, json=json)
