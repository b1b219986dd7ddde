"""`pluribus report`: one page that says whether another agent helps, and by how much."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pluribus.cli._flags import Home, Json


def report(
    sources: Annotated[
        list[str],
        Argument(
            help="Runs or sweeps by name or id, exported runs, files and folders of other codes, folders of trainings.",
            metavar="RUN|DIR",
        ),
    ],
    out: Annotated[
        Path | None,
        Option(
            help="A folder, or FILE.html. [dim](report-NAME, here)[/dim]", metavar="DIR|FILE.html", show_default=False
        ),
    ] = None,
    embedder: Annotated[
        str | None, Option(help="Compares the texts for K*. [dim](minilm)[/dim]", metavar="NAME", show_default=False)
    ] = None,
    sample: Annotated[
        int, Option(help="Questions whose texts are embedded for K*, the same in every run.", metavar="N")
    ] = 100,
    title: Annotated[str | None, Option(help="Of the page.", metavar="TEXT", show_default=False)] = None,
    seed: Annotated[
        int, Option(help="Of intervals, and of the halves on which controls are chosen.", metavar="N", min=0)
    ] = 0,
    json: Json = False,
    home: Home = None,
) -> int:
    """Write a report: verdict at equal spend, figures and tables on one HTML page that needs no network.

    No model is called. Figures lie beside the page as PNG, tables as CSV. Self-consistency runs of the workspace on
    the same questions serve as controls. Of a folder that `pluribus train` wrote: how the training went, step by step.
    """
    from pluribus.cli import _report

    return _report.report(sources, out, embedder, title, seed, sample=sample, home=home, json=json)
