"""`pluribus reward`: a council of judges gives each reply of a run, or of a file, one number."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Home, Json, LimitFlags

Weights = Literal["config", "uniform", "labels", "agreement"]
Normalise = Literal["zscore", "minmax", "rank", "none"]


def _judging(help: str, *names: str, metavar: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="Judges", show_default=False)


def _trainers(help: str, *names: str, metavar: str, most: int | None = None) -> Any:
    """most: of a whole number from 0."""
    least = None if most is None else 0
    return Option(
        *names, help=help, metavar=metavar, rich_help_panel="For trainers", show_default=False, min=least, max=most
    )


def reward(
    limits: LimitFlags,
    run: Annotated[
        str | None,
        Argument(
            help="A run, by name, id or exported file; with --rewarder a CSV or JSONL file of replies.",
            metavar="RUN|FILE",
            show_default=False,
        ),
    ] = None,
    judges: Annotated[Path | None, _judging("A judges file (YAML); flags win over it.", metavar="FILE")] = None,
    judge: Annotated[
        list[str] | None,
        _judging(
            "A judge's model; may be repeated. Three are teacher, critic and diversity (0.5, 0.3, 0.2), else all weigh "
            "the same.",
            metavar="MODEL",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        _judging("Kind of the --judge models: see `pluribus list judges`. [dim](score)[/dim]", metavar="NAME"),
    ] = None,
    criteria: Annotated[str | None, _judging("What counts, for kinds that read criteria.", metavar="TEXT")] = None,
    samples: Annotated[
        int | None, _judging("Times each --judge is asked about a reply; the mean counts.", metavar="K")
    ] = None,
    normalise: Annotated[
        Normalise | None,
        _judging("Common scale: zscore, minmax, rank or none. [dim](zscore)[/dim]", metavar="NAME"),
    ] = None,
    threshold: Annotated[
        float | None,
        _judging(
            "Disagreement above which a reply is judged again, then left to a person. [dim](by scale: 0.02 under "
            "zscore)[/dim]",
            metavar="V",
        ),
    ] = None,
    max_rounds: Annotated[
        int | None,
        _judging(
            "Times a disputed reply is judged again, after reading the others' reasons. [dim](1)[/dim]", metavar="R"
        ),
    ] = None,
    weights: Annotated[
        Weights,
        Option(
            help="config: as the file has them. uniform: all alike. labels: learned from keys. agreement: learned from "
            "who agrees with whom.",
            metavar="NAME",
            rich_help_panel="Judges",
        ),
    ] = "config",
    every: Annotated[
        bool, Option("--every", metavar=SWITCH, help="Each answer of every round, not just the final ones.")
    ] = False,
    out: Annotated[
        Path | None,
        Option(
            help="Folder of the results [dim](reward-NAME, here)[/dim]; with --rewarder the file to write.",
            metavar="DIR|FILE",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", metavar=SWITCH, help="Show judges, memory and forecast; ask nobody.")
    ] = False,
    demo: Annotated[
        bool, Option("--demo", metavar=SWITCH, help="The embedded models judge one another, offline, on a CPU.")
    ] = False,
    save: Annotated[
        Path | None, _trainers("Writes judges, weights and scales as one file for trainers.", metavar="FILE")
    ] = None,
    rewarder: Annotated[
        Path | None, _trainers("Rewards the rows of FILE with what --save wrote.", metavar="FILE")
    ] = None,
    prompt_column: Annotated[str | None, _trainers("Of the rows. [dim](prompt)[/dim]", metavar="NAME")] = None,
    completion_column: Annotated[str | None, _trainers("Of the rows. [dim](completion)[/dim]", metavar="NAME")] = None,
    serve: Annotated[
        Path | None, _trainers("Answers over HTTP with what --save wrote, until interrupted.", metavar="FILE")
    ] = None,
    host: Annotated[str | None, _trainers("Address of --serve. [dim](127.0.0.1)[/dim]", metavar="HOST")] = None,
    port: Annotated[int | None, _trainers("Port of --serve. [dim](8770)[/dim]", metavar="N", most=65535)] = None,
    token: Annotated[
        str | None, _trainers("What callers of --serve must send as `Authorization: Bearer TOKEN`.", metavar="TOKEN")
    ] = None,
    json: Json = False,
    home: Home = None,
) -> int:
    """Judge the replies of a run: one reward each, how far the judges disagree, and charts of both.

    What is judged already costs nothing. A reply without a verdict has no reward, which is not 0. Ends with 1 when
    calls of a judge failed, 3 when the budget stopped it.
    """
    from pluribus.cli import _rewarder

    who = _rewarder.Who(
        judges, judge or [], kind, criteria, samples, normalise, threshold, max_rounds, limits
    )  # fmt: skip
    rows = _rewarder.Rows(rewarder, prompt_column, completion_column)
    door = _rewarder.Door(serve, host, port, token)
    how = _rewarder.How(weights, every, out, save, dry_run, demo, json, home)
    return _rewarder.go(run, who, how, rows, door)
