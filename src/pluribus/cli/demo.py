"""`pluribus demo`: the whole walk on the embedded models, on a CPU, without key or network."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from pluribus.cli._flags import Home


def demo(
    questions: Annotated[int, Option(min=20, help="Test questions to ask.", metavar="N")] = 200,
    seed: Annotated[int, Option(help="Of sampling.", metavar="N")] = 0,
    home: Home = None,
) -> int:
    """Run councils of the embedded models on word problems and see whether they pay."""
    from pluribus.cli import _demo

    return _demo.go(questions, seed, home)
