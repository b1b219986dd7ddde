"""From transcript to decision: reads the final answers and votes. No model is called.

A rule is one function from ballots to a vote, listed in `RULES` under the name the user writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pluribus import answers
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
    return plurality(ballots.answers, ballots.weights, ballots.tie, ballots.seed)


RULES: Mapping[str, Rule] = MappingProxyType({"plurality": _plurality, "weighted": _weighted})


def decide(
    question: Question,
    transcript: Transcript,
    *,
    rule: str = "plurality",
    tie: str = "first",
    weights: Sequence[float] | None = None,
    seed: int = 0,
) -> Decision:
    """The council's decision on a question.

    Args:
        transcript: complete or degraded; a failed one has nothing to decide and raises ValueError.
        rule: a name in `RULES`.
        tie: first, random, abstain or fractional; see `pluribus.consensus.votes.plurality`.
        weights: one per seat, ≥ 0, for the rule `weighted`; None takes the seats' own.
        seed: with the question's id it decides ties under the rule `random`.
    """
    if transcript.status == "failed":
        raise ValueError(f"attempt {transcript.attempt.id} failed: there is nothing to decide")
    if rule not in RULES:
        raise UnknownName("rule", rule, RULES)
    reads = _reads(question, transcript)
    finals = tuple(reads.get(index) for index in transcript.finals)
    vote = RULES[rule](Ballots(finals, _final_weights(transcript, weights), tie, _seed(seed, question.id)))
    return Decision(
        attempt_id=transcript.attempt.id,
        rule=rule,
        answer=vote.winner,
        votes=vote.counts,
        share=vote.share,
        margin=vote.margin,
        tie=vote.tie,
        abstained=vote.abstained,
        answers=_standing(transcript, reads),
        tie_rule=tie,
    )


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
    if decision.tie_rule == "fractional" and decision.tie:
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


def _final_weights(transcript: Transcript, weights: Sequence[float] | None) -> tuple[float, ...]:
    seats = transcript.attempt.agents
    if weights is not None and len(weights) != len(seats):
        raise UsageError(f"{len(weights)} weights for {len(seats)} seats", hint="give one weight per seat")
    by_seat = [seat.weight for seat in seats] if weights is None else weights
    return tuple(by_seat[transcript.turns[index].seat] for index in transcript.finals)


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
