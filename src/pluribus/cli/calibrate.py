"""`pluribus calibrate`: how much each seat's vote should count, and how sure a vote is, from stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Home, Json

Kind = Literal["isotonic", "platt"]


def calibrate(
    runs: Annotated[list[str], Argument(help="Runs of one council: names, ids, or exported files.", metavar="RUN…")],
    out: Annotated[Path, Option(help="Where the calibration is written (JSON).", metavar="FILE", show_default=False)],
    without_labels: Annotated[
        bool, Option("--without-labels", metavar=SWITCH, help="Weights from agreement alone; keys are not looked at.")
    ] = False,
    confidence: Annotated[
        Kind, Option(help="Form of the confidence: isotonic, or platt for few questions.", metavar="NAME")
    ] = "isotonic",
    check: Annotated[
        float, Option(help="Share of the questions that is held out to check on; 0: none.", metavar="SHARE")
    ] = 0.5,
    target_accuracy: Annotated[
        float | None,
        Option(help="Finds the confidence below which to abstain for this accuracy.", metavar="P", show_default=False),
    ] = None,
    seed: Annotated[int, Option(help="Splits the questions.", metavar="N")] = 0,
    json: Json = False,
    home: Home = None,
) -> int:
    """Learn vote weights and how sure a vote is, from stored runs; for `run --calibration FILE`.

    Learned on one part of the questions, reported on the other. Nothing is asked.
    """
    from pluribus.cli import _calibrate

    wishes = _calibrate.Wishes(not without_labels, confidence, check, seed, target_accuracy)
    return _calibrate.go(runs, out, wishes, home=home, json=json)
