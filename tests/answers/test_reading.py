"""What all kinds share: unsupported kinds, hostile texts."""

from __future__ import annotations

import random
import signal
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.answers import canonical, kinds, read
from pluribus.errors import UsageError
from pluribus.types import KINDS, Kind, Question

ASKS = [
    Question("q", "t", "?", "number"),
    Question("q", "t", "?", "choice", ("Rome", "Paris", "a person")),
    Question("q", "t", "?", "boolean"),
    Question("q", "t", "?", "label", labels=("yes", "no")),
    Question("q", "t", "?", "text"),
    Question("q", "t", "?", "latex"),
]

HOSTILE = [
    "answer " * 7000, "answer is " * 5000, r"\boxed{" * 7000, "#" * 50_000, "#### \n" * 8000, "1" * 50_000,
    "1," * 25_000, "the answer" + " " * 49_000 + "is 5", "\n" * 50_000, "(" * 50_000, "(A) " * 12_000,
    "\nA. " * 12_000, 'answer: "' * 5000, 'answer: "' + "\\" * 40_000, ("answer to " + "x" * 60 + " ") * 700,
    "\nQ: x" * 9000, "\nQ: x answer is y" * 2500, "A is " * 10_000, " is" * 16_000, "1/" * 25_000, "yes no " * 7000,
]  # fmt: skip


def test_a_kind_without_a_reader_is_an_error_that_lists_those_with_one() -> None:
    with pytest.raises(UsageError, match=r"'chord' can not be read; kinds that can be: boolean, .*number"):
        read(Question("q", "t", "?", cast(Kind, "chord")), "The answer is 5")


def test_every_kind_has_a_reader() -> None:
    assert set(kinds()) == set(KINDS)


@pytest.mark.parametrize("question", ASKS, ids=lambda q: str(q.kind))
@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: repr(t[:16]))
def test_no_text_of_50_000_characters_hangs(question: Question, text: str) -> None:
    def hangs(*_: object) -> None:
        raise AssertionError("10 s of processor time for a reading that takes a few hundredths")

    before = signal.signal(signal.SIGVTALRM, hangs)
    signal.setitimer(signal.ITIMER_VIRTUAL, 10)
    try:
        found = read(question, text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert found is None or len(found) <= len(text)


def test_a_thousand_typical_texts_are_read() -> None:
    rng = random.Random(0)
    words = ["we", "add", "12", "and", "7", "to", "get", "19", "apples", "(A)", "so", "half", "of", "them", "=", "9"]
    texts = [" ".join(rng.choices(words, k=100)) + f". The answer is {n}." for n in range(1000)]
    assert [read(ASKS[0], text) for text in texts] == [str(n) for n in range(1000)]


@pytest.mark.parametrize("question", ASKS, ids=lambda q: str(q.kind))
@settings(deadline=None)  # the first formula starts a worker
@given(text=st.text(st.sampled_from("0123456789.,-−/eE^*×_$%abeonyrtuABI()[]{}\\\"' \n:;=+\u00a0ßİﬁ٣５"), max_size=20))
def test_any_text_reads_as_a_canonical_answer_or_none(question: Question, text: str) -> None:
    answer = read(question, f"The answer is {text}")
    assert answer is None or canonical(question, answer) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("I do not know. {ratings: 3, 2}", None),
        ("It is 4.\n{confidence: 0.8}", "4"),
        ('It is 4.\n{"confidence": 0.8}', "4"),
        ("So {final answer: 5} {ratings: 1, 2}", "5"),
        ("{score: 7}", None),
    ],
)
def test_ratings_beside_an_answer_are_no_answer(text: str, answer: str | None) -> None:
    assert read(Question("q", "t", "How many?", "number"), text) == answer
