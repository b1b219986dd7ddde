"""`pluribus ask`: a council answers one question."""

from __future__ import annotations

from typing import Annotated, Literal

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Council, CouncilFlags, DecisionFlags, Home, Json, LimitFlags, SamplingFlags

Kind = Literal["number", "choice", "label", "boolean", "text"]


def ask(
    question: Annotated[str, Argument(help="The question, in quotes; - reads it from the standard input.")],
    seats: CouncilFlags,
    sampling: SamplingFlags,
    decision: DecisionFlags,
    limits: LimitFlags,
    council: Council = None,
    kind: Annotated[
        Kind | None,
        Option(
            help="Of the answer: number, choice, label, boolean or text. "
            "[dim](choice with --choices, label with --labels, else text)[/dim]",
            metavar="KIND",
        ),
    ] = None,
    choices: Annotated[str | None, Option(help="Options of a choice, commas between.", metavar="A,B,…")] = None,
    labels: Annotated[str | None, Option(help="The closed set of labels, commas between.", metavar="A,B,…")] = None,
    show: Annotated[bool, Option("--show", metavar=SWITCH, help="Print who said what in which round.")] = False,
    json: Json = False,
    home: Home = None,
) -> int:
    """Ask a council one question.

    Ends with 0 when there is a decision, 1 when the attempt failed.
    """
    from pluribus.cli import _asker, _layers

    config = _layers.make(council, seats=seats, sampling=sampling, decision=decision, limits=limits)
    asked = _asker.question(question, kind, choices, labels)
    return _asker.go(config, asked, home=home, show=show, json=json)
