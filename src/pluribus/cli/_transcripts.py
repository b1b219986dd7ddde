"""A transcript round by round, for people."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule

from pluribus.answers import read
from pluribus.cli import _screen
from pluribus.types import Key, Question, Seat, Transcript, Turn


def show(console: Console, question: Question, transcript: Transcript, key: Key | None = None) -> None:
    """Prints the question, then each round: who spoke, what was read out of it, and the text as it came."""
    console.print(_screen.text(question.text))
    for number, choice in enumerate(question.choices):
        console.print(_screen.text(f"  ({chr(ord('A') + number)}) {choice}"))
    if key is not None and key.answer is not None:
        console.print(_screen.text(f"key: {key.answer}", style="dim"))
    for number, turns in groupby(transcript.turns, key=lambda turn: turn.round):
        console.print()
        console.print(Rule(_screen.text(f"round {number}"), align="left", style="dim"))
        for turn in turns:
            _turn(console, question, turn, transcript.attempt.agents)


def _turn(console: Console, question: Question, turn: Turn, seats: tuple[Seat, ...]) -> None:
    seat = next(seat for seat in seats if seat.index == turn.seat)
    head = _screen.text(f"{seat.index + 1}. {_screen.model(seat.model)}", style="bold")
    for part in (seat.persona, turn.role if turn.role != "answer" else None):
        head.append(f" · {part}" if part else "", style="not bold")
    if turn.completion is None:
        reason = turn.failure.message if turn.failure else "no reason is known"
        console.print(head.append(" failed", style="red"))
        console.print(Padding.indent(_screen.line(reason, style="red"), 3))
        return
    answer = read(question, turn.text)
    console.print(head.append(f" → {answer or _screen.NOTHING}", style="green" if answer else "yellow"))
    if turn.completion.reasoning:
        console.print(Padding.indent(_screen.text(turn.completion.reasoning.strip(), style="dim italic"), 3))
    console.print(Padding.indent(_screen.text(turn.text.strip()), 3))
