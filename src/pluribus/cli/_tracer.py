"""What `pluribus prefer --trace` does: one line of a preference file to the calls behind it."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._stores import reading
from pluribus.codec import plain
from pluribus.distilling import rewarded_of, seat_of
from pluribus.errors import ConfigError, DataError
from pluribus.judging import JUDGEMENT, Rewarded, verdicts
from pluribus.prefer import OPTIONAL, Item, numbered_rows
from pluribus.reward import pair_id
from pluribus.rows import Row
from pluribus.store import Store
from pluribus.types import Judgement, Question, Reward, Seat, Turn, Verdict


@dataclass(frozen=True, slots=True)
class Traced:
    """Where one of the two replies came from."""

    side: str
    """chosen or rejected."""
    attempt_id: str
    turn: int
    seat: Seat
    said: Turn
    reward: Reward | None
    judgements: tuple[Judgement, ...]


def trace(run: str | None, place: str, *, home: Path | None, json: bool) -> int:
    """All that stands behind one line of a preference file, out of the store."""
    row, where = _line(place)
    with reading(run or row["run"], home) as (store, found):
        stored = store.run(found)
        question, _ = store.run_questions(stored.id).get(row["question_id"], (None, None))
        if question is None:
            raise DataError(where, f"question_id is {row['question_id']!r}; run {stored.name} has no such question")
        rewarded = rewarded_of(store, stored.id)
        sides = [_traced(store, rewarded, row, side, where) for side in ("chosen", "rejected")]
        pair = pair_id(*((side.attempt_id, side.turn) for side in sides))
        people = [one for one in verdicts(store, stored.id) if one.pair == pair]
    if json:
        whole = {"row": row, "question": plain(question), "sides": plain(sides), "verdicts": plain(people)}
        print(jsonlib.dumps(whole, ensure_ascii=False, indent=2))
    else:
        _print_trace(_screen.out(), row, question, sides, people)
    return cli.OK


_NEEDED = ("run", "question_id", *(f"{side}_{name}" for side in ("chosen", "rejected") for name in ("attempt", "turn")))


def _line(place: str) -> tuple[Row, str]:
    """The row at FILE:LINE, and that place."""
    file, _, number = place.rpartition(":")
    if not file or not number.isdecimal():
        raise ConfigError(f"--trace is {place!r}", hint="expected FILE:LINE, such as preferences.jsonl:1")
    row = dict(numbered_rows(Path(file))).get(int(number))
    if row is None:
        raise DataError(f"{file}:{number}", "there is no pair on this line", hint="lines count from 1")
    lost = next((name for name in _NEEDED if name not in row), None)
    if lost is not None:
        raise DataError(f"{file}:{number}", f"{lost} is missing: the row can not be traced")
    return row, f"{file}:{number}"


def _traced(store: Store, rewarded: Rewarded | None, row: Row, side: str, where: str) -> Traced:
    attempt, turn = row[f"{side}_attempt"], row[f"{side}_turn"]
    transcript = store.get_transcript(attempt)
    if transcript is None or turn >= len(transcript.turns):
        raise DataError(where, f"{side}_attempt is {attempt}, turn {turn}; the workspace holds no such reply")
    said = transcript.turns[turn]
    if not said.ok or said.text != row[side][-1]["content"]:
        raise DataError(where, f"{side} is not the reply that is stored at {attempt}, turn {turn}; it was changed")
    reward, judgements = _judged(store, rewarded, (attempt, turn), row.get(f"{side}_scores", []))
    return Traced(side, attempt, turn, seat_of(transcript, turn), said, reward, judgements)


def _judged(
    store: Store, rewarded: Rewarded | None, item: Item, scores: Sequence[Row]
) -> tuple[Reward | None, tuple[Judgement, ...]]:
    """The judgements the file's scores are made of; where another council has judged since, all that are stored."""
    if rewarded is not None:
        reward = next((one for one in rewarded.rewards if (one.attempt_id, one.turn) == item), None)
        known = {} if reward is None else {name: score for name, score in reward.scores.items() if score is not None}
        if known == {one["judge"]: one["score"] for one in scores}:
            return reward, tuple(one for one in rewarded.judgements if (one.attempt_id, one.turn) == item)
    stored = store.records(JUDGEMENT, Judgement, [item[0]]).get(item[0], [])
    return None, tuple(one for one in stored if one.turn == item[1])


def _print_trace(
    console: Console, row: Row, question: Question, sides: Sequence[Traced], people: Sequence[Verdict]
) -> None:
    def say(line: str, style: str = "") -> None:
        console.print(_screen.text(line, style=style), soft_wrap=True)

    say(f"question {question.id} ({question.task}), run {row['run']}", "bold")
    say(question.text)
    for number, choice in enumerate(question.choices):
        say(f"  ({chr(ord('A') + number)}) {choice}")
    say(f"chosen by {row.get('by', 'nobody knows whom')}{_numbers(row)}", "dim")
    for verdict in people:
        note = f": {verdict.note}" if verdict.note else ""
        chosen = [(side.attempt_id, side.turn) for side in sides if side.side == "chosen"]
        said = {"first": verdict.first, "second": verdict.second}.get(verdict.choice)
        words = verdict.choice if said is None else "chosen" if tuple(said) in chosen else "rejected"
        say(f"{verdict.reviewer} said: {words}{note}", "dim")
    for side in sides:
        console.print()
        console.print(Rule(_screen.text(side.side, style="bold"), align="left", style="dim"))
        seat = f"seat {side.seat.index + 1}, {side.seat.model}" + (
            f" as {side.seat.persona}" if side.seat.persona else ""
        )
        say(f"{seat}, round {side.said.round}; attempt {side.attempt_id}, turn {side.turn}", "dim")
        say(side.said.text)
        if not side.judgements:
            say("no judge has judged it", "dim")
        for judgement in side.judgements:
            console.print()
            for line, style in _judgement_lines(judgement):
                say(line, style)


def _numbers(row: Row) -> str:
    known = [f"{name} {row[name]:.4f}" for name in OPTIONAL[:4] if name in row]
    return f"; {', '.join(known)}" if known else ""


def _judgement_lines(one: Judgement) -> Iterator[tuple[str, str]]:
    """Who judged, what it gave, and every call: what was sent and what came back."""
    score = "no score" if one.score is None else f"score {one.score:g}"
    yield f"{one.judge}, round {one.round}: {score}", "bold"
    if one.failure is not None:
        yield f"failed: {one.failure.message}", "red"
    if one.reason:
        yield f"reason: {one.reason}", ""
    for number, turn in enumerate(one.turns, 1):
        yield f"call {number} of {len(one.turns)}", "dim"
        for message in turn.messages:
            yield f"[{message.role}]", "dim"
            yield message.content, ""
        if turn.completion is None:
            yield f"failed: {turn.failure.message if turn.failure else 'no reason is known'}", "red"
        else:
            yield "[reply]", "dim"
            yield turn.completion.text, ""
        if turn.unread:
            yield f"not read: {turn.unread}", "yellow"
