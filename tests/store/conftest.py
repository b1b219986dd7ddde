from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pluribus.store import Store
from pluribus.types import (
    Attempt,
    Completion,
    Decision,
    Failure,
    Key,
    Message,
    Question,
    Sampling,
    Seat,
    Status,
    Transcript,
    Turn,
)

MakeTranscript = Callable[..., Transcript]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "here") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "there") as opened:
        yield opened


def _turn(seat: int, round: int, text: str) -> Turn:
    said = Completion(text, "m", "stop", prompt_tokens=9, completion_tokens=len(text), scores={"judge": 0.5})
    return Turn(round, seat, "answer", (Message("user", f"Question, round {round}"),), said, sample=seat)


@pytest.fixture
def transcript() -> MakeTranscript:
    def make(name: str, status: Status = "complete", text: str = "The answer is 7. ", rounds: int = 2) -> Transcript:
        seats = tuple(Seat(i, f"agent {i}", "openai/m", sampling=Sampling(seed=3), sample=i) for i in range(3))
        attempt = Attempt(f"attempt-{name}", f"question-{name}", "debate", {"rounds": rounds}, seats, 1)
        turns = [_turn(seat, at, text * (1 + seat)) for at in range(rounds) for seat in range(3)]
        turns[1] = Turn(
            0, 1, "answer", turns[1].messages, failure=Failure("timeout", "no reply in 5 s", True), sample=1
        )
        failure = Failure("protocol_error", "every seat failed") if status == "failed" else None
        return Transcript(attempt, tuple(turns), (len(turns) - 1,), status, failure)

    return make


@pytest.fixture
def full_run(store: Store, transcript: MakeTranscript) -> Store:
    """A workspace with one run of four attempts: three asked, one of them failed, one never asked."""
    for name in "abcd":
        question = Question(
            f"question-{name}", "sums", f"What is {name}? ½ \ud83d", "number", metadata={"n": [1, None]}
        )
        store.put_questions([(question, Key(question.id, "7", ("seven",)) if name != "c" else None)])
    store.begin_run(
        "run-1", "first", {"method": "debate"}, [(f"attempt-{n}", f"question-{n}", i) for i, n in enumerate("abcd")]
    )
    for name, status in (("a", "complete"), ("b", "degraded"), ("c", "failed")):
        store.put_transcript(transcript(name, status))
    for name in "ab":
        for tie in ("first", "abstain"):
            decision = Decision(
                f"attempt-{name}", "plurality", "7", {"7": 2.0, "8": 1.0}, 2 / 3, 1 / 3, answers=(("7", None),)
            )
            store.put_decision(decision, tie)
    store.finish_run("run-1", "stopped", {"asked": 3, "cost_usd": None})
    return store
