"""From transcript to decision: reads the final answers and votes. No model is called.

A rule is one function from ballots to a vote, listed in `RULES` under the name the user writes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pluribus import answers
from pluribus.consensus.confidence import Calibration, confidence, support
from pluribus.consensus.votes import Vote, plurality
from pluribus.errors import DataError, UnknownName, UsageError
from pluribus.types import Decision, Key, Question, Transcript, Turn


@dataclass(frozen=True, slots=True)
class Ballots:
    """What a rule votes on: one entry per final turn."""

    answers: tuple[str | None, ...]
    weights: tuple[float, ...]
    tie: str
    seed: int


Rule = Callable[[Ballots], Vote]


def _plurality(ballots: Ballots) -> Vote:
    return plurality(ballots.answers, None, ballots.tie, ballots.seed)


def _weighted(ballots: Ballots) -> Vote:
    """Where only seats of weight 0 are left, nobody has a vote."""
    if ballots.weights and not any(ballots.weights):
        return Vote(None, {}, None, None, (), sum(answer is None for answer in ballots.answers))
    return plurality(ballots.answers, ballots.weights, ballots.tie, ballots.seed)


RULES: Mapping[str, Rule] = MappingProxyType({"plurality": _plurality, "weighted": _weighted})


@dataclass(frozen=True, slots=True)
class Calibrated:
    """How sure to be of a decision, and how sure one must be."""

    map: Calibration
    abstain_below: float | None = None
    """With less confidence than this, in [0, 1], there is no answer; None: whatever the confidence is."""
    mark: str = ""
    """Short id of the two above: decisions under different ones are kept apart."""


def rule_name(rule: str, calibrated: Calibrated | None) -> str:
    """What a decision says it was made by.

    >>> rule_name("weighted", Calibrated(Calibration("platt", slope=1.0, intercept=0.0), mark="1a2b3c4d"))
    'weighted@1a2b3c4d'
    """
    return rule if calibrated is None else f"{rule}@{calibrated.mark}"


def decide(
    question: Question,
    transcript: Transcript,
    *,
    rule: str = "plurality",
    tie: str = "first",
    weights: Sequence[float] | None = None,
    seed: int = 0,
    calibrated: Calibrated | None = None,
) -> Decision:
    """The council's decision on a question.

    Args:
        transcript: complete or degraded; a failed one has nothing to decide and raises ValueError.
        rule: a name in `RULES`.
        tie: first, random, abstain or fractional; see `pluribus.consensus.votes.plurality`.
        weights: one per seat, ≥ 0, for the rule `weighted`; None takes the seats' own.
        seed: with the question's id it decides ties under the rule `random`.
        calibrated: gives the decision its confidence, and withholds the answer where that is too low; the votes stay.
    """
    if transcript.status == "failed":
        raise ValueError(f"attempt {transcript.attempt.id} failed: there is nothing to decide")
    if rule not in RULES:
        raise UnknownName("rule", rule, RULES)
    reads = _reads(question, transcript)
    finals = tuple(reads.get(index) for index in transcript.finals)
    by_seat = _seat_weights(transcript, weights)
    cast = tuple(by_seat[transcript.turns[index].seat] for index in transcript.finals)
    vote = RULES[rule](Ballots(finals, cast, tie, _seed(seed, question.id)))
    decision = Decision(
        attempt_id=transcript.attempt.id,
        rule=rule_name(rule, calibrated),
        answer=vote.winner,
        votes=vote.counts,
        share=vote.share,
        margin=vote.margin,
        tie=vote.tie,
        abstained=vote.abstained,
        answers=_standing(transcript, reads),
        tie_rule=tie,
    )
    if calibrated is None:
        return decision
    total = math.fsum(by_seat[seat] if rule == "weighted" else 1.0 for seat, _ in voters(transcript))
    return _sure(decision, support(vote.counts, total), calibrated)


def _sure(decision: Decision, supported: float, calibrated: Calibrated) -> Decision:
    """The decision with its confidence, which one without an answer has not; too low a one takes the answer away."""
    if decision.answer is None:
        return decision
    sure = confidence(calibrated.map, supported)
    low = calibrated.abstain_below is not None and sure < calibrated.abstain_below
    return replace(decision, confidence=sure, answer=None if low else decision.answer)


def leading(decision: Decision) -> str | None:
    """What the vote decided, also where its confidence was too low to answer."""
    if decision.answer is not None or decision.confidence is None:
        return decision.answer
    return decision.tie[0] if decision.tie else max(decision.votes, key=lambda answer: decision.votes[answer])


def voters(transcript: Transcript) -> tuple[tuple[int, int | None], ...]:
    """(seat, index of its turn) of everybody with a vote; None: it failed, so its vote is missing.

    Where all who answered have a vote, so have those who failed to answer; seats that were not asked have none.
    """
    turns = transcript.turns
    cast: list[tuple[int, int | None]] = [(turns[index].seat, index) for index in transcript.finals]
    voices = {(turns[index].seat, turns[index].sample) for index in transcript.finals}
    answered = {(turn.seat, turn.sample) for turn in turns if turn.role == "answer" and turn.ok}
    if not answered <= voices:
        return tuple(cast)
    failed = dict.fromkeys((turn.seat, turn.sample) for turn in turns if turn.role == "answer" and not turn.ok)
    return (*cast, *((seat, None) for seat, sample in failed if (seat, sample) not in voices))


def credit(
    decision: Decision, key: Key | None, question: Question, passed: Collection[str] | None = None
) -> float | None:
    """How right a decision is: 1, or 0, or under the tie rule `fractional` the right part of the tied answers.

    Args:
        passed: the programs that passed the key's tests; None: they were not run. No other kind of answer needs it.

    Returns: in [0, 1]; None when there is no key, or no test of a program was run. No answer is not right: 0.

    Raises DataError when the key is no answer of the question's kind.
    """
    right = passed if question.kind == "program" else _right(question, key)
    if key is None or right is None:
        return None
    if decision.tie_rule == "fractional" and decision.tie and decision.answer is not None:
        return sum(answer in right for answer in decision.tie) / len(decision.tie)
    return float(decision.answer in right)


def _right(question: Question, key: Key | None) -> Collection[str] | None:
    if key is None or key.answer is None:
        return None
    return {_canonical_key(question, answer) for answer in (key.answer, *key.aliases)}


def _canonical_key(question: Question, answer: str) -> str:
    found = answers.canonical(question, answer)
    if found is None:
        raise DataError(
            f"key of question {question.id}", f"{answer!r} is no answer of kind {question.kind}",
            hint="correct the key or the question's kind",
        )  # fmt: skip
    return found


def _reads(question: Question, transcript: Transcript) -> dict[int, str | None]:
    """Index of each turn that stands as an answer → its answer; a failed turn has no entry."""
    stand = set(transcript.finals)
    return {
        index: answers.read(question, turn.text)
        for index, turn in enumerate(transcript.turns)
        if turn.ok and (turn.role == "answer" or index in stand)
    }


def _seat_weights(transcript: Transcript, weights: Sequence[float] | None) -> Sequence[float]:
    seats = transcript.attempt.agents
    if weights is not None and len(weights) != len(seats):
        raise UsageError(f"{len(weights)} weights for {len(seats)} seats", hint="give one weight per seat")
    return [seat.weight for seat in seats] if weights is None else weights


def _standing(transcript: Transcript, reads: Mapping[int, str | None]) -> tuple[tuple[str | None, ...], ...]:
    """answers[round][seat] as they stood after each round: a seat that was silent or failed keeps its last one."""
    said = [(turn, reads[index]) for index, turn in enumerate(transcript.turns) if index in reads]
    rounds = max((turn.round for turn in transcript.turns), default=-1) + 1
    row: tuple[str | None, ...] = (None,) * len(transcript.attempt.agents)
    rows = []
    for number in range(rounds):
        row = _after(row, [pair for pair in said if pair[0].round == number])
        rows.append(row)
    return tuple(rows)


def _after(row: Sequence[str | None], said: Sequence[tuple[Turn, str | None]]) -> tuple[str | None, ...]:
    new = list(row)
    for turn, answer in said:
        new[turn.seat] = answer
    return tuple(new)


def _seed(seed: int, question_id: str) -> int:
    """Another seed for each question: one seed for all would settle every tie alike."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{question_id}".encode()).digest()[:8], "big")
