"""`pluribus distil`: what stored runs can teach one model, as a file that trainers read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from pluribus.cli._flags import Home, Json

Format = Literal["trl", "verl", "prime-rl", "verifiers"]
Steps = Literal["checker", "rollouts", "judge"]
Cut = Literal["auto", "paragraphs", "lines", "sentences"]


def distil(
    runs: Annotated[
        list[str] | None,
        Argument(
            help="Runs: names, ids or exported files; several pool their replies by question.",
            metavar="RUN…",
            show_default=False,
        ),
    ] = None,
    view: Annotated[
        str | None,
        Option(
            help="What is taken: rsft, da, answers, gold, steps or preferences; see docs/distil.md.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(help="Where the rows are written (JSON lines).", metavar="FILE", show_default=False)
    ] = None,
    per_question: Annotated[
        int | None,
        Option(
            help="Replies or pairs of a question at most. [dim](da 3; steps all; preferences 1)[/dim]",
            metavar="K",
            show_default=False,
        ),
    ] = None,
    corrective_weight: Annotated[
        int | None,
        Option(
            help="How often a reply is written whose seat was wrong the round before (rsft, da). [dim](1)[/dim]",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    near_duplicates: Annotated[
        float | None,
        Option(
            help="Leaves out replies that share this much of their word 5-grams with an earlier one to the question, "
            "above 0 to 1 (da, steps, preferences). [dim](only the same text)[/dim]",
            metavar="T",
            show_default=False,
        ),
    ] = None,
    embedder: Annotated[
        str, Option(help="Tells replies apart (da): see `pluribus list embedders`.", metavar="NAME")
    ] = "hashing",
    step_labels: Annotated[
        Steps | None,
        Option(
            help="Whose labels of steps count (steps): checker, rollouts or judge. [dim](the first there is)[/dim]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    cut: Annotated[
        Cut | None,
        Option(
            help="How replies were cut when their steps were labelled (steps): auto, paragraphs, lines or sentences. "
            "[dim](auto)[/dim]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    max_examples: Annotated[
        int | None, Option(help="At most N rows, drawn by --seed.", metavar="N", show_default=False)
    ] = None,
    max_tokens: Annotated[
        int | None,
        Option(help="At most N tokens of replies, rows drawn by --seed.", metavar="N", show_default=False),
    ] = None,
    tokenizer: Annotated[
        str | None, Option(help="The model whose tokens are counted.", metavar="MODEL", show_default=False)
    ] = None,
    check_against: Annotated[
        list[str] | None,
        Option(
            help="Questions that must not be trained on: TASK[:SUBSET][@SPLIT] or a JSONL file; may be repeated. "
            "[dim](the runs' own test split, where it is at hand)[/dim]",
            metavar="SET",
            show_default=False,
        ),
    ] = None,
    max_overlap: Annotated[
        float | None,
        Option(
            help="Leaves out questions that share more than this part of their 13-word runs with such a set, 0 to 1. "
            "[dim](only the same question)[/dim]",
            metavar="P",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        Format, Option(help="For which trainer: trl, verl (Parquet), prime-rl or verifiers.", metavar="NAME")
    ] = "trl",
    seed: Annotated[int, Option(help="Draws among equals, and which rows are taken.", metavar="N", min=0)] = 0,
    json: Json = False,
    home: Home = None,
) -> int:
    """Make training rows of stored runs: right replies, final answers, worked solutions, marked steps, or pairs.

    Nothing is asked. Questions that an evaluation set asks too are left out.
    """
    from pluribus.cli import _distiller

    flags = _distiller.Flags(
        view, out, per_question, corrective_weight, near_duplicates, embedder, step_labels, cut, max_examples,
        max_tokens, tokenizer, tuple(check_against or ()), max_overlap, format, seed,
    )  # fmt: skip
    return _distiller.go(tuple(runs or ()), flags, home=home, json=json)
