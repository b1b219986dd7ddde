"""A run as a table to measure: questions × rounds × agents, with what was said, read and right, as plain values.

Runs of the workspace, histories and logs of other codes all become panels; what measures a council reads nothing else.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pluribus.answers import read
from pluribus.decide import voters
from pluribus.evaluate import Row, Usage, right_answers, stopped_short
from pluribus.types import Key, Label, Question, Seat, Transcript

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STOPPED = "questions with seats or samples not asked because the vote had stopped (members alone do not compare)"
"""What is missing from a panel of votes that stop."""
WITHHELD = "decisions withheld for too low a confidence (no answer, counted as not right)"
"""What is missing from a panel of decisions that may abstain."""


@dataclass(frozen=True, slots=True)
class Member:
    """One voice of the panel: a seat, or one of several draws of a seat."""

    name: str
    model: str
    persona: str | None = None
    seat: int = 0
    draw: int = 0
    """Which of the seat's answers of one round this is; above 0 where a seat is sampled several times."""


@dataclass(frozen=True, slots=True)
class Word:
    """What one member answered in one round."""

    text: str
    answer: str | None
    """Read out of the text, canonical; None: no readable answer."""
    correct: float | None
    """1 right, 0 not right; None: nobody can say (no key)."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    """None: unpriced."""

    @property
    def tokens(self) -> int | None:
        known = self.prompt_tokens is not None and self.completion_tokens is not None
        return (self.prompt_tokens or 0) + (self.completion_tokens or 0) if known else None


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote of a decision, as it was counted."""

    seat: int
    answer: str | None
    """None: an abstention, or a voter that failed."""
    correct: float | None
    """1 right, 0 not right (an abstention is not right); None: nobody can say (no key), or the voter failed."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a panel."""

    question_id: str
    key: str | None
    words: tuple[tuple[Word | None, ...], ...]
    """words[round][member]; None: the member did not answer in that round, by the protocol or because it failed."""
    decided: str | None
    """The council's answer."""
    credit: float | None
    """How right it is, in [0, 1]; None: failed, or no key."""
    usage: Usage | None = None
    """What the whole attempt took, judges and critics included; None: the source does not say."""
    failed: bool = False
    ballots: tuple[Ballot, ...] = ()
    """The votes the decision counted, in its order; empty where the source does not say, or the attempt failed."""


@dataclass(frozen=True, slots=True)
class Panel:
    name: str
    source: str
    """Where every number is traced to: `run ID`, or the path of a file."""
    task: str
    method: str
    members: tuple[Member, ...]
    items: tuple[Item, ...]
    """In the source's order."""
    settings: Mapping[str, object] = field(default_factory=dict)
    omitted: Mapping[str, int] = field(default_factory=dict)
    """Reason → how many (lines, words, …) of the source are left out; nothing is left out in silence."""
    seats: tuple[Seat, ...] = ()
    """All places at the table, those that gave no answer too; empty where the source does not say."""
    unasked: int = 0
    """Questions on which the vote stopped before every seat was asked. Above 0 the members answered different
    questions, the last of them the hard ones only: they do not compare with each other or with the council."""

    @property
    def rounds(self) -> int:
        return max((len(item.words) for item in self.items), default=0)


def panel_of(
    name: str,
    source: str,
    task: str,
    attempts: Sequence[tuple[Question, Key | None, Transcript, Row, Sequence[Label]]],
) -> Panel:
    """The panel of a run.

    Args:
        attempts: in the run's order, all of one method and one seating: question, key, transcript, how it was scored,
            and the labels of its programs (empty for every other kind of answer).
    """
    first = attempts[0][2].attempt if attempts else None
    seats = first.agents if first else ()
    said = [_draws(transcript) for _, _, transcript, _, _ in attempts]
    most = {seat.index: _most(said, seat.index) for seat in seats}
    members = tuple(_member(seat, draw, most[seat.index]) for seat in seats for draw in range(most[seat.index]))
    items = tuple(_item(*one, draws, members) for one, draws in zip(attempts, said, strict=True))
    method, settings = (first.method, first.settings) if first else ("", {})
    unasked = sum(_short(draws, most, row) for draws, (_, _, _, row, _) in zip(said, attempts, strict=True))
    withheld = sum(row.answer is None and row.confidence is not None for _, _, _, row, _ in attempts)
    counts = {"failed attempts": sum(item.failed for item in items), STOPPED: unasked, WITHHELD: withheld}
    omitted = {reason: n for reason, n in counts.items() if n}
    return Panel(name, source, task, method, members, items, settings, omitted, seats, unasked)


def _short(draws: _Draws, most: Mapping[int, int], row: Row) -> bool:
    """Whether the vote stopped before every seat was asked, or before a seat had drawn all its samples."""
    if row.stopping is None or row.stopping.shadow:
        return False
    return stopped_short(row) or any(len(draws.get((seat, 0), ())) < most[seat] for seat in most)


def _most(said: Sequence[_Draws], seat: int) -> int:
    """Answers of one seat in one round, at most."""
    return max((len(places) for draws in said for (who, _), places in draws.items() if who == seat), default=0)


def _member(seat: Seat, draw: int, most: int) -> Member:
    words = f"{seat.name} #{draw + 1}" if most > 1 else seat.name
    return Member(words, seat.model, seat.persona, seat.index, draw)


_Draws = dict[tuple[int, int], list[int]]


def _draws(transcript: Transcript) -> _Draws:
    """(seat, round) → the places of its answers among the turns; failed turns keep theirs."""
    said: _Draws = {}
    for place, turn in enumerate(transcript.turns):
        if turn.role == "answer":
            said.setdefault((turn.seat, turn.round), []).append(place)
    return said


def _item(
    question: Question,
    key: Key | None,
    transcript: Transcript,
    row: Row,
    labels: Sequence[Label],
    draws: _Draws,
    members: tuple[Member, ...],
) -> Item:
    verdicts = {label.turn: label.correct for label in labels if label.step is None}
    right = right_answers(question, key) if question.kind != "program" else None
    reads = _reads(question, transcript, row, draws)

    def word(member: Member, round: int) -> Word | None:
        places = draws.get((member.seat, round), [])
        said = transcript.turns[places[member.draw]].completion if len(places) > member.draw else None
        if said is None:
            return None
        answer, passed = reads[places[member.draw]], verdicts.get(places[member.draw])
        correct = float(answer in right) if right is not None else None if passed is None else float(passed)
        return Word(said.text, answer, correct, said.prompt_tokens, said.completion_tokens, said.cost_usd)

    rounds = max((round for _, round in draws), default=-1) + 1
    words = tuple(tuple(word(member, round) for member in members) for round in range(rounds))
    ballots = tuple(_ballots(question, transcript, reads, right, verdicts)) if transcript.status != "failed" else ()
    failed = transcript.status == "failed"
    return Item(question.id, row.key, words, row.answer, row.credit, row.usage, failed, ballots)


def _ballots(
    question: Question,
    transcript: Transcript,
    reads: Mapping[int, str | None],
    right: Collection[str | None] | None,
    verdicts: Mapping[int, bool | None],
) -> Iterator[Ballot]:
    """Every vote; a final that is no answer of a round, such as a summary, is read here."""
    for seat, place in voters(transcript):
        if place is None:
            yield Ballot(seat, None, None)
            continue
        answer = reads[place] if place in reads else read(question, transcript.turns[place].text)
        passed = verdicts.get(place)
        correct = float(answer in right) if right is not None else None if passed is None else float(passed)
        yield Ballot(seat, answer, correct)


def _reads(question: Question, transcript: Transcript, row: Row, draws: _Draws) -> dict[int, str | None]:
    """Place of each answer → what it says; what the decision read already is not read again."""
    turns = Counter((turn.seat, turn.round) for turn in transcript.turns)
    found: dict[int, str | None] = {}
    for (seat, round), places in draws.items():
        once = turns[seat, round] == 1 and round < len(row.rounds)
        for place in places:
            turn = transcript.turns[place]
            if turn.ok:
                found[place] = row.rounds[round][seat] if once else read(question, turn.text)
    return found


_WEIGHTS = re.compile(r"\[weights=[0-9a-f-]+\]|,weights=[0-9a-f-]+(?=\])")


def bare_name(model: str) -> str:
    """A model's name without what lay in its folder, for a table.

    >>> bare_name("local/student[weights=0a1b2c3d]"), bare_name("local/student[dtype=float16,weights=0a1b2c3d]")
    ('local/student', 'local/student[dtype=float16]')
    """
    return _WEIGHTS.sub("", model)


def short_name(model: str) -> str:
    """A model's name for a table or a sentence: what follows a file's `#`, else service and last part of the path.

    >>> short_name("replay/data/outputs.jsonl.gz#small"), short_name("vllm/Qwen/Qwen3-8B@http://host/v1")
    ('small', 'vllm/Qwen3-8B')
    >>> short_name("local/out/student[weights=0a1b2c3d]")
    'local/student'
    """
    _, hash_sign, recorded = model.rpartition("#")
    if hash_sign:
        return recorded
    service, _, name = bare_name(model.partition("@http")[0]).partition("/")
    return f"{service}/{name.rstrip('/').rpartition('/')[2]}" if name else service


# --- views -----------------------------------------------------------------------------------------------------------


def standing(item: Item, round: int | None = None) -> tuple[Word | None, ...]:
    """Each member's latest word up to a round (None: the last); a member that is silent or failed keeps its last one.

    Returns: one per member; None: it has said nothing so far.
    """
    until = len(item.words) if round is None else min(round + 1, len(item.words))
    if not item.words:
        return ()
    latest: list[Word | None] = [None] * len(item.words[0])
    for row in item.words[:until]:
        latest = [word or before for word, before in zip(row, latest, strict=True)]
    return tuple(latest)


def answers(panel: Panel, round: int | None = None) -> list[list[str | None]]:
    """answers[question][member] as they stand after a round; None: no readable answer, or nothing said."""
    return [[word.answer if word else None for word in _padded(panel, item, round)] for item in panel.items]


def right_Q_A(panel: Panel, round: int | None = None) -> NDArray[np.float64]:
    """(questions, members): 1 right, 0 not right (an unreadable answer is not right), NaN: nothing said, or no key."""
    import numpy as np

    rows = [
        [math.nan if word is None or word.correct is None else word.correct for word in _padded(panel, item, round)]
        for item in panel.items
    ]
    return np.array(rows, dtype=np.float64).reshape(len(panel.items), len(panel.members))


def credits(panel: Panel) -> NDArray[np.float64]:
    """(questions,): how right the council's decision is; NaN: failed, or no key."""
    import numpy as np

    return np.array([math.nan if item.credit is None else item.credit for item in panel.items], dtype=np.float64)


def _padded(panel: Panel, item: Item, round: int | None) -> tuple[Word | None, ...]:
    said = standing(item, round)
    return said or (None,) * len(panel.members)
