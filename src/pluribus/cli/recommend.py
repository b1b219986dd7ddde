"""`pluribus recommend`: which seats of a stored run to keep, and what that saves and costs."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from pluribus.cli._flags import Home, Json


def recommend(
    run: Annotated[
        str,
        Argument(help="A run by name or id, an exported run, or a file or folder of other codes.", metavar="RUN"),
    ],
    tolerance: Annotated[
        float, Option(help="Loss of accuracy that is accepted, in percentage points.", metavar="POINTS")
    ] = 0.5,
    seed: Annotated[int, Option(help="Splits the questions into two halves.", metavar="N", min=0)] = 0,
    embedder: Annotated[
        str | None, Option(help="Adds delta-K* of each seat: minilm, hashing, …", metavar="NAME", show_default=False)
    ] = None,
    json: Json = False,
    home: Home = None,
) -> int:
    """Pick the seats worth keeping: chosen on one half of the questions, measured on the other.

    Nothing is asked: the votes of every sub-council are counted from the stored answers.
    """
    from pluribus.cli import _recommend

    return _recommend.show(run, tolerance / 100, seed, embedder, home=home, json=json)
