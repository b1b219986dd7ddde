"""Runs with rewards, made by hand: replies with recorded scores, and three judges that take them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pluribus.judge_config import make_judges
from pluribus.judging import JUDGEMENT, Rewarded, put_verdict, reward_run, stored_rewards, verdicts
from pluribus.review.material import Pair
from pluribus.store import Store
from pluribus.types import Attempt, Choice, Completion, Message, Question, Seat, Transcript, Turn, Verdict

NAME = "planted"
JUDGES = ("teacher", "critic", "diversity")
"""Weights 0.5, 0.3, 0.2 by role."""
Scores = tuple[float | None, float | None, float | None]
APART: tuple[Scores, Scores] = ((0.9, 0.2, 0.6), (0.3, 0.8, 0.4))
"""Of two replies that the judges disagree about."""
SAME: tuple[Scores, Scores] = ((0.8, 0.8, 0.8), (0.3, 0.3, 0.3))


@dataclass(frozen=True)
class Planted:
    """One question: its text, and each reply with the judges' scores."""

    question: str
    replies: Sequence[tuple[str, Scores]]
    choices: tuple[str, ...] = ()
    context: str | None = None


def plain(number: int, scores: tuple[Scores, Scores] = APART) -> Planted:
    replies = [
        (f"reply {letter} to {number}: it is {n}", s) for n, (letter, s) in enumerate(zip("xy", scores, strict=True))
    ]
    return Planted(f"How much is {number} + 1?", replies)


def varied(n: int) -> list[Planted]:
    """Questions with less and less disagreement."""
    return [
        plain(i, ((0.9, 0.1 + 0.02 * i, 0.5), (0.3, 0.8, 0.4))) for i in range(n)
    ]  # fmt: skip


def plant(home: Path, planted: Sequence[Planted], threshold: float = 0.02, reason: str | None = None) -> str:
    """A run with rewards in the workspace; its id."""
    seats = [
        Seat(i, f"seat {i + 1}", f"scripted/model-{letter}", persona="sceptic") for i, letter in enumerate("pqrstu")
    ]
    with Store.open(home) as store:
        places = []
        for number, one in enumerate(planted):
            question = Question(f"q{number}", "test", one.question, "text", one.choices, (), one.context)
            store.put_questions([(question, None)])
            agents = tuple(seats[: len(one.replies)])
            attempt = Attempt(f"a{number}", question.id, "vote", {}, agents, 0)
            turns = tuple(_turn(seat, text, scores) for seat, (text, scores) in zip(agents, one.replies, strict=True))
            store.put_transcript(Transcript(attempt, turns, tuple(range(len(turns))), "complete"))
            places.append((attempt.id, question.id, number))
        store.begin_run("r1", NAME, {}, places)
        store.finish_run("r1", "complete", {})
        entries = [{"role": name, "kind": "recorded", "settings": {"score": name}} for name in JUDGES]
        config = make_judges({"judges": entries, "normalise": "none", "threshold": threshold, "max_rounds": 0})
        with ThreadPoolExecutor(1) as thread:  # a test may have a loop of its own
            made = thread.submit(lambda: asyncio.run(reward_run(store, "r1", config))).result()
        if reason is not None:
            store.put_records(JUDGEMENT, [(j.attempt_id, replace(j, reason=reason)) for j in made.judgements])
    return "r1"


def _turn(seat: Seat, text: str, scores: Scores) -> Turn:
    known = {name: score for name, score in zip(JUDGES, scores, strict=True) if score is not None}
    completion = Completion(text, seat.model, "stop", scores=known)
    return Turn(0, seat.index, "answer", (Message("user", "?"),), completion)


def rewarded(home: Path) -> Rewarded:
    with Store.open(home) as store:
        return stored_rewards(store, NAME)


def said(home: Path) -> list[Verdict]:
    with Store.open(home) as store:
        return verdicts(store, NAME)


def say(home: Path, verdict: Verdict) -> None:
    with Store.open(home) as store:
        put_verdict(store, NAME, verdict)


def verdict(pair: Pair, choice: Choice, reviewer: str = "ada", at: float = 1.0, flip: bool = False) -> Verdict:
    """A verdict on the pair as it stands, or with its sides exchanged."""
    first, second = (reply.item for reply in pair.replies)
    if flip:
        first, second = second, first
    return Verdict(pair.id, pair.question.id, first, second, choice, reviewer, at)
