"""`pluribus plan`: how many questions, calls and dollars a comparison needs, worked out from a pilot."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from pluribus.cli._flags import Home, Json


def plan(
    run: Annotated[
        str,
        Argument(
            help="The pilot: a run by name or id, an exported run, or a file or folder of other codes.", metavar="RUN"
        ),
    ],
    effect: Annotated[float, Option(help="The difference to be seen, in points of accuracy.", metavar="POINTS")],
    against: Annotated[
        str | None,
        Option(help="The other side; else self-consistency where it is recorded, else the best member.", metavar="RUN"),
    ] = None,
    power: Annotated[float, Option(help="Chance to see it, above 0 and below 1.", metavar="P")] = 0.8,
    alpha: Annotated[float, Option(help="Level of the test, above 0 and below 1.", metavar="P")] = 0.05,
    json: Json = False,
    home: Home = None,
) -> int:
    """Say from a pilot how many questions a comparison needs, and what they cost.

    What counts is how often the two sides differ: the questions where exactly one of them is right. Nothing is asked.
    """
    from pluribus.cli import _plan

    return _plan.make(run, against, _plan.Aim(effect, power, alpha), home=home, json=json)
