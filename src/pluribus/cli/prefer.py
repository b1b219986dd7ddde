"""`pluribus prefer`: preference pairs of a stored run, as a file that preference trainers read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Home, Json

By = Literal["label", "reward", "both", "human"]
Weights = Literal["uniform", "config", "labels", "agreement", "human"]


def prefer(
    run: Annotated[
        str | None,
        Argument(help="A run: its name, its id, or an exported file.", metavar="RUN", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, Option(help="Where the pairs are written (JSON lines).", metavar="FILE", show_default=False)
    ] = None,
    by: Annotated[
        By | None,
        Option(
            help="What tells better from worse: label, reward, both (they agree), or human (people's verdicts alone). "
            "[dim](reward where the run has rewards, else label)[/dim]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[float, Option(help="Least difference of the two rewards, 0 to 1.", metavar="D")] = 0.0,
    max_disagreement: Annotated[
        float | None,
        Option(
            help="Most mean disagreement of the two rewards. [dim](by reward: the council's threshold)[/dim]",
            metavar="V",
            show_default=False,
        ),
    ] = None,
    pairs_per_question: Annotated[
        int, Option(help="Pairs of a question, largest margin first; 0: all there are.", metavar="N")
    ] = 1,
    reuse: Annotated[bool, Option("--reuse", metavar=SWITCH, help="A reply may stand in several pairs.")] = False,
    near_duplicates: Annotated[
        float | None,
        Option(
            help="Leaves out replies that share this much of their word 5-grams with an earlier one, above 0 to 1. "
            "[dim](only the same text)[/dim]",
            metavar="T",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        Weights | None,
        Option(
            help="Reckons the rewards again, without a call, with other weights of the judges: uniform, config, or "
            "learned from labels, agreement or human (people's verdicts). [dim](as the rewards were made)[/dim]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        float | None,
        Option(help="Share of the questions held out, in a file of its own.", metavar="P", show_default=False),
    ] = None,
    seed: Annotated[int, Option(help="Draws the held-out questions; settles equal pairs.", metavar="N", min=0)] = 0,
    trace: Annotated[
        str | None,
        Option(
            help="Prints all that stands behind one pair of such a file: both replies, every judge's calls.",
            metavar="FILE:LINE",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    home: Home = None,
) -> int:
    """Make preference pairs of a stored run, for TRL's DPOTrainer and RewardTrainer.

    Within a question, by labels, by the council's rewards or by people. Nothing is asked.
    """
    from pluribus.cli import _preferer, _tracer

    if trace is not None:
        return _tracer.trace(run, trace, home=home, json=json)
    wishes = _preferer.Wishes(
        by, margin, max_disagreement, pairs_per_question, reuse, near_duplicates, weights, split, seed
    )
    return _preferer.go(run, out, wishes, home=home, json=json)
