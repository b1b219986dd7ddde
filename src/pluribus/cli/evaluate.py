"""`pluribus evaluate`: models, councils, stored runs and files of answers, measured alike and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Home, Json, LimitFlags, SamplingFlags, TaskFlags


def _measuring(help: str, *names: str, metavar: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="Measures", show_default=False)


def _of_models(help: str, *names: str, metavar: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="Models", show_default=False)


def evaluate(
    task: TaskFlags,
    sampling: SamplingFlags,
    limits: LimitFlags,
    subjects: Annotated[
        list[str],
        Argument(
            help="A model or its folder, a council file (YAML), a run, or a file of answers (JSONL).",
            metavar="SUBJECT",
        ),
    ],
    samples: Annotated[
        int, _of_models("Ask a model K times a question; its answers vote. [dim](1)[/dim]", metavar="K")
    ] = 1,
    prompts: Annotated[
        str | None, _of_models("Prompts of models: an embedded dialect, or a folder of your own.", metavar="DIR")
    ] = None,
    chat_template: Annotated[
        Literal["auto", "on", "off"],
        _of_models(
            "Write messages in the model's chat template; off: as plain text. [dim](auto)[/dim]", metavar="WHEN"
        ),
    ] = "auto",
    metrics: Annotated[
        str | None,
        _measuring(
            "Metrics, with commas between: accuracy, pass@k, maj@k, exact_match, token_f1, rouge1, rouge2, rougeL, "
            "rougeLsum, bertscore, ece, brier. [dim](by the kind of the questions)[/dim]",
            metavar="NAMES",
        ),
    ] = None,
    k: Annotated[
        str | None, _measuring("The k of pass@k and maj@k, with commas between. [dim](1 and all)[/dim]", metavar="K")
    ] = None,
    baseline: Annotated[
        str | None,
        _measuring(
            "Subject that the others are compared with; none: no comparison. [dim](the first)[/dim]", metavar="SUBJECT"
        ),
    ] = None,
    embedder: Annotated[
        str | None, _measuring("Whose tokens BERTScore matches. [dim](minilm)[/dim]", metavar="NAME")
    ] = None,
    idf: Annotated[
        bool, _measuring("BERTScore: rare tokens of the references count more.", "--idf", metavar=SWITCH)
    ] = False,
    stem: Annotated[bool, _measuring("ROUGE: compare stems (Porter); needs nltk.", "--stem", metavar=SWITCH)] = False,
    out: Annotated[
        Path | None,
        Option(help="Folder for table.csv, questions.csv and results.json.", metavar="DIR", show_default=False),
    ] = None,
    json: Json = False,
    home: Home = None,
) -> int:
    """Measure models, councils, runs and files of answers on the same questions, with intervals and paired tests.

    Models and councils are asked as by `pluribus run`, and their answers are stored: a second time costs no call. Runs
    and files cost none. --task may name several tasks, with commas between. Ends with 1 when some questions failed, 3
    when the budget stopped it.
    """
    from pluribus.cli import _evaluator
    from pluribus.cli._evaluated_subjects import Wishes

    wishes = Wishes(task, sampling, limits, samples, prompts, chat_template, home)
    measures = _evaluator.make_measures(metrics, k, baseline, embedder, idf=idf, stem=stem, seed=sampling.seed or 0)
    return _evaluator.go(subjects, wishes, measures, out, json=json)
