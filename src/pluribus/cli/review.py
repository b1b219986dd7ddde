"""`pluribus review`: people decide where judges disagree, on a local web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Home, Json


def review(
    run: Annotated[str, Argument(help="A run with rewards: name or id.", metavar="RUN")],
    port: Annotated[int, Option(help="Port of the page; 0: any that is free.", metavar="N", min=0, max=65535)] = 8765,
    host: Annotated[
        str, Option(help="Address of the page; beyond this machine a token is needed.", metavar="HOST")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        Option(
            help="What a visitor must have. [dim](beyond this machine: one is made and printed)[/dim]",
            metavar="TOKEN",
            show_default=False,
        ),
    ] = None,
    reviewer: Annotated[
        str | None,
        Option(help="Who reviews. [dim](the page asks)[/dim]", metavar="NAME", show_default=False),
    ] = None,
    all: Annotated[
        bool, Option("--all", metavar=SWITCH, help="A pair of each question, also where the judges agree.")
    ] = False,
    limit: Annotated[
        int | None, Option(help="The N pairs with most disagreement.", metavar="N", min=1, show_default=False)
    ] = None,
    votes: Annotated[int, Option(help="People that decide each pair.", metavar="N", min=1)] = 1,
    stats: Annotated[bool, Option("--stats", metavar=SWITCH, help="How far people and judges agree; no page.")] = False,
    adjust_weights: Annotated[
        bool,
        Option("--adjust-weights", metavar=SWITCH, help="Judges' weights learned from the verdicts; no page."),
    ] = False,
    export_label_studio: Annotated[
        Path | None,
        Option(help="Writes the open pairs as tasks for Label Studio; no page.", metavar="FILE", show_default=False),
    ] = None,
    import_label_studio: Annotated[
        Path | None,
        Option(help="Takes the verdicts of its JSON export; no page.", metavar="FILE", show_default=False),
    ] = None,
    json: Json = False,
    home: Home = None,
) -> int:
    """Let people decide the pairs that judges disagree about, on a page of this machine.

    Most disagreement first; two replies side by side, who wrote them unseen. Each verdict is on disk before the next
    pair is shown, and counts in `pluribus prefer`. Ctrl-C ends it.
    """
    from pluribus.cli import _reviewer

    door = _reviewer.Door(host, port, token, reviewer)
    wishes = _reviewer.Wishes(all, limit, votes)
    errand = _reviewer.Errand(stats, adjust_weights, export_label_studio, import_label_studio)
    return _reviewer.go(run, errand, wishes, door, home=home, json=json)
