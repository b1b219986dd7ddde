"""What `pluribus ask` does: one question, one decision, and who said what."""

from __future__ import annotations

import json as jsonlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pluribus import cli
from pluribus.calibrate import no_confidence
from pluribus.cli import _screen, _transcripts
from pluribus.codec import plain
from pluribus.config import CalibrationConfig, RunConfig
from pluribus.council import Answer, Council, make_question
from pluribus.errors import ConfigError
from pluribus.evaluate import usage
from pluribus.run import with_calibration
from pluribus.types import Decision, Kind, Question, Transcript


def question(text: str, kind: Kind | None, choices: str | None, labels: str | None) -> Question:
    """The question of the command line; `-` reads its text from the standard input."""
    if choices and labels:
        raise ConfigError("--choices and --labels exclude each other", hint="give one of them")
    words = sys.stdin.read() if text == "-" else text
    return make_question(words.strip(), kind, _list(choices, "--choices"), _list(labels, "--labels"))


def _list(text: str | None, flag: str) -> list[str]:
    if text is None:
        return []
    parts = [part.strip() for part in text.split(",")]
    if len(parts) < 2 or not all(parts):
        raise ConfigError(f"{flag} {text!r} is no list", hint="put commas between at least two, none of them empty")
    return parts


def go(config: RunConfig, asked: Question, *, home: Path | None, show: bool, json: bool) -> int:
    """Asks, prints, and returns the exit code."""
    console = _screen.out()
    config = with_calibration(config)
    with _screen.err().status(f"asking {config.method} …"):
        answer = Council.from_config(config, home).ask(asked)
    if json:
        print(jsonlib.dumps(_as_object(answer), ensure_ascii=False, indent=2))
    else:
        _print(console, answer, config, show=show)
    return cli.OK if answer.decision is not None else cli.FAILED


def _print(console: Console, answer: Answer, config: RunConfig, *, show: bool) -> None:
    if show:
        _transcripts.show(console, answer.question, answer.transcript)
        console.print()
    if answer.decision is None:
        failure = answer.transcript.failure
        console.print(_screen.line(f"failed: {failure.message if failure else 'nobody answered'}", "red"))
        return
    console.print(_who_said_what(answer, answer.decision))
    console.print()
    console.print(_facts(answer, answer.decision, config))


def _who_said_what(answer: Answer, decision: Decision) -> Table:
    """Each seat's answer after each round."""
    rounds = decision.answers
    table = _screen.table()
    table.add_column("seat", justify="right")
    table.add_column("model")
    for number in range(len(rounds)):
        head = "answer" if len(rounds) == 1 else "first" if number == 0 else f"round {number}"
        table.add_column(head)
    for seat in answer.transcript.attempt.agents:
        model = _screen.model(seat.model) + (f", {seat.persona}" if seat.persona else "")
        said = (_screen.cell(shown(answer.question, row[seat.index])) for row in rounds)
        table.add_row(str(seat.index + 1), _screen.cell(model), *said)
    return table


def shown(asked: Question, answer: str | None) -> str:
    """An answer as people read it: a choice's letter with its text; – when there is none.

    >>> shown(Question("q", "t", "Which?", "choice", ("red", "blue")), "B")
    'B (blue)'
    """
    if answer is None:
        return _screen.NOTHING
    place = ord(answer) - ord("A") if asked.choices and len(answer) == 1 else -1
    return f"{answer} ({asked.choices[place]})" if 0 <= place < len(asked.choices) else answer


def sure(decision: Decision, abstain_below: float | None) -> str | None:
    """The confidence in words; None: there is none."""
    if decision.confidence is None:
        return None
    low = decision.answer is None and abstain_below is not None
    return f"confidence {decision.confidence:.3f}" + (f", less than {abstain_below:g}: no answer" if low else "")


def stopped(transcript: Transcript) -> str | None:
    """Where the vote stopped asking, or in shadow would have; None: it asks everybody."""
    note = transcript.notes.get("stopping")
    if note is None:
        return None
    calls = f"{note['asked']} of {note['of']} calls"
    return f"{calls} {'would be needed' if note['shadow'] else 'needed'} (stop={note['rule']})"


def _unsure(config: RunConfig, transcript: Transcript) -> str | None:
    """Why there is no confidence though there is a calibration; None: there is no calibration, or a confidence."""
    known, attempt = config.calibration, transcript.attempt
    if not isinstance(known, CalibrationConfig):
        return None
    return no_confidence(known, attempt.method, attempt.settings)


def _facts(answer: Answer, decision: Decision, config: RunConfig) -> Table:
    facts = _screen.grid()
    facts.add_row("decision", _screen.text(shown(answer.question, decision.answer), style="bold"))
    votes = ", ".join(f"{shown(answer.question, name)}: {number:g}" for name, number in decision.votes.items())
    facts.add_row("votes", _screen.text(votes or "none"))
    facts.add_row("share", _share(decision))
    if (words := sure(decision, config.abstain_below)) is not None:
        facts.add_row("confidence", words.removeprefix("confidence "))
    elif (words := _unsure(config, answer.transcript)) is not None:
        facts.add_row("confidence", _screen.text(f"none: {words}"))
    if (words := stopped(answer.transcript)) is not None:
        facts.add_row("stopping", words)
    if decision.abstained:
        facts.add_row("abstained", f"{decision.abstained} gave no readable answer")
    if answer.transcript.failure is not None:
        facts.add_row("missing", _screen.line(answer.transcript.failure.message, style="yellow"))
    used = usage(answer.transcript)
    facts.add_row(
        "used",
        f"{_screen.plural(used.calls, 'call')}, {_screen.large(used.tokens)} tokens, {_screen.usd(used.cost_usd)}",
    )
    return facts


def _share(decision: Decision) -> str:
    if decision.share is None:
        return "no decision"
    tied = f"; tied with {', '.join(t for t in decision.tie if t != decision.answer)}" if decision.tie else ""
    return f"{decision.share:.2f} of the votes ({decision.rule.partition('@')[0]}{tied})"


def _as_object(answer: Answer) -> dict[str, Any]:
    return {
        "question": plain(answer.question),
        "status": answer.transcript.status,
        "failure": plain(answer.transcript.failure),
        "decision": asdict(answer.decision) if answer.decision else None,
        "usage": asdict(usage(answer.transcript)),
        "turns": [plain(turn) for turn in answer.transcript.turns],
    }
