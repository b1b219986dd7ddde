"""`pluribus analyze`: how diverse runs are, and whether their agents err together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Home, Json


def analyze(
    runs: Annotated[
        list[str],
        Argument(help="Runs by name or id, exported runs, or files and folders of other codes.", metavar="RUN"),
    ],
    mode: Annotated[
        str, Option(help="Of the round table: round_agent_avg, per_question or round_cumulative.", metavar="NAME")
    ] = "round_agent_avg",
    embedder: Annotated[
        list[str] | None,
        Option(
            help="minilm, hashing, openai/MODEL or sentence_transformers/MODEL; several, with commas between, are "
            "compared. [dim](minilm)[/dim]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        Literal["concat", "last"],
        Option(help="An agent's text on a question: its rounds joined (concat), or its last.", metavar="WHICH"),
    ] = "concat",
    union: Annotated[
        bool,
        Option(
            "--union", help="Average over the questions any agent answered, not those that all did.", metavar=SWITCH
        ),
    ] = False,
    sample: Annotated[
        int | None,
        Option(
            help="Embed the texts of N questions only, the same in every run. [dim](all)[/dim]",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    output_dir: Annotated[
        Path | None,
        Option(help="Folder of the tables. [dim](in the workspace)[/dim]", metavar="DIR", show_default=False),
    ] = None,
    json: Json = False,
    home: Home = None,
) -> int:
    """Measure diversity: K* by round, question and agent, spread of answers, correlated errors, and who moved whom.

    No model is called. Texts are embedded once; the tables are written as CSV and Parquet.
    """
    from pluribus.cli import _analyze

    return _analyze.measure(
        runs, mode, embedder or [], text=text, union=union, sample=sample, output_dir=output_dir, json=json, home=home
    )
