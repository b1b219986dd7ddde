"""Trace-level: the phases in their order, who saw whose words, when review and tests stop, how many calls."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.backends import Request
from pluribus.errors import BackendError, ServerError
from pluribus.methods import chatdev
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript

Make = Callable[..., list[Agent]]
Reply = Callable[[Request], "str | BackendError"]

MARKS = {
    "You direct the team": "demand",
    "Write the specification": "specify",
    "Design the solution": "design",
    "Hold the design against": "approve",
    "Settle each objection": "assign",
    "Carry them out": "code",
    "Find what is not finished": "complete",
    "You review the team's work": "review",
    "What a colleague found": "revise",
    "the solution is not shown to you": "test",
    "They failed": "diagnose",
    "List what somebody needs": "environment",
    "Write a short manual": "manual",
    "could not be read": "repair",
}
DOUBLE = Question("d", "test", "Write double(x).", "program", metadata={"entry_point": "double"})
RIGHT, WRONG = "```python\ndef double(x):\n    return 2 * x\n```", "```python\ndef double(x):\n    return x\n```"
CHAIN = ["demand", "specify", "design", "approve", "assign", "code", "complete", "review", "test", "environment"]
CHAIN += ["manual"]
needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def asked(text: str) -> str:
    """Which prompt this is."""
    return next(name for mark, name in MARKS.items() if mark in text)


def review(done: bool, comments: str = "nothing") -> str:
    return json.dumps({"comments": comments, "done": done})


DEFAULTS: dict[str, str | Reply] = {
    "code": "first version {final answer: 1}",
    "complete": "second version {final answer: 19}",
    "review": review(True),
    "revise": "revised version {final answer: 19}",
    "test": "```python\nassert double(3) == 6\n```",
}


def member(**says: str | Reply) -> Reply:
    """Says which prompt it answers, where nothing else is said."""

    def reply(request: Request) -> str | BackendError:
        name = asked(request.messages[-1].content)
        said = says.get(name, DEFAULTS.get(name, f"words of {name}."))
        return said(request) if callable(said) else said

    return reply


async def run(
    council: Make, question: Question, *replies: Reply, **settings: Any
) -> tuple[Transcript, list[tuple[str, int, int]]]:
    """The transcript, and (prompt, round, seat) of each turn."""
    transcript = await solve(question, council(*replies), "chatdev", settings)
    return transcript, [(asked(turn.messages[-1].content), turn.round, turn.seat) for turn in transcript.turns]


async def test_the_phases_in_their_order_each_role_on_its_seat(council: Make, question: Question) -> None:
    transcript, trace = await run(council, question, *[member()] * 6)
    director, product, technical, programmer, reviewer, tester = range(6)
    seats = [director, product, technical, product, technical, programmer, programmer, reviewer, tester, technical]
    assert trace == list(zip(CHAIN, [0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 6], [*seats, product], strict=True))
    assert transcript.finals == (6,), "the programmer's last version"
    assert transcript.status == "complete"


async def test_who_reads_whose_words(council: Make, question: Question) -> None:
    transcript, trace = await run(council, question, *[member()] * 6)
    heard = {
        name: {other for other in CHAIN if f"words of {other}." in turn.messages[-1].content}
        | {version for version in ("first", "second") if f"{version} version" in turn.messages[-1].content}
        for (name, _, _), turn in zip(trace, transcript.turns, strict=True)
    }
    assert heard == {
        "demand": set(),
        "specify": {"demand"},
        "design": {"specify"},
        "approve": {"specify", "design"},
        "assign": {"design", "approve"},
        "code": {"assign"},
        "complete": {"first"},
        "review": {"specify", "second"},
        "test": {"specify"},
        "environment": {"second"},
        "manual": {"second", "environment"},
    }


async def test_review_goes_on_until_nothing_is_left_to_change(council: Make, question: Question) -> None:
    def once(request: Request) -> str:
        return review("revised" in request.messages[-1].content, "line 3 is wrong")

    transcript, trace = await run(council, question, member(review=once))
    assert [step[0] for step in trace][7:10] == ["review", "revise", "review"]
    revise = transcript.turns[8].messages[-1].content
    assert "line 3 is wrong" in revise and "second version" in revise
    assert transcript.turns[transcript.finals[0]].text.startswith("revised version")


@pytest.mark.parametrize(("rounds", "made"), [(0, 10), (1, 12), (3, 16)])
@pytest.mark.parametrize("n", [1, 50])
async def test_calls_of_reviews_that_never_end(
    council: Make, question: Question, rounds: int, made: int, n: int
) -> None:
    """Without a sandbox the tests do not run: each round of review is a comment and a revision."""
    settings = make_settings("chatdev", {"max_review": rounds})
    transcript, _ = await run(council, question, *[member(review=review(False))] * n, max_review=rounds)
    assert len(transcript.turns) == made
    least, most = chatdev.calls(settings, n)
    assert least <= made <= most == 60


async def test_the_fewest_calls_are_eleven(council: Make, question: Question) -> None:
    transcript, _ = await run(council, question, member())
    assert len(transcript.turns) == chatdev.calls(chatdev.Settings(), 1)[0] == 11


@needs_sandbox
async def test_failing_tests_are_diagnosed_and_repaired(council: Make, allowed: None) -> None:
    transcript, trace = await run(council, DOUBLE, *[member(complete=WRONG, revise=RIGHT)] * 6)
    assert [step[0] for step in trace][8:11] == ["test", "diagnose", "revise"]
    diagnose, revise = (turn.messages[-1].content for turn in transcript.turns[9:11])
    assert "double(3) gave 3" in diagnose and "assert double(3) == 6" in diagnose and "return x" in diagnose
    assert "words of diagnose." in revise and "double(3) gave 3" not in revise
    assert [step[2] for step in trace][8:11] == [5, 5, 3]
    assert read(DOUBLE, transcript.turns[transcript.finals[0]].text) == read(DOUBLE, RIGHT)


@needs_sandbox
@pytest.mark.parametrize("rounds", [1, 3])
async def test_calls_of_tests_that_never_pass(council: Make, allowed: None, rounds: int) -> None:
    says = member(complete=WRONG, revise=WRONG, review=review(False))
    transcript, _ = await run(council, DOUBLE, says, max_review=rounds)
    assert len(transcript.turns) == 10 + 2 * rounds + 2 * rounds


@needs_sandbox
async def test_another_kind_of_question_is_tested_by_a_program_that_works_it_out(
    council: Make, question: Question, allowed: None
) -> None:
    says = member(complete="{final answer: 18}", test="```python\nprint(12 + 7)\n```")
    transcript, trace = await run(council, question, says)
    assert [step[0] for step in trace][8:11] == ["test", "diagnose", "revise"]
    assert "printed 19, but the final answer given is 18" in transcript.turns[9].messages[-1].content


@pytest.mark.parametrize("most", [11, 12, 14])
async def test_the_calls_end_where_they_are_bounded(council: Make, question: Question, most: int) -> None:
    transcript, trace = await run(council, question, member(review=review(False)), max_review=50, max_calls=most)
    assert most - 1 <= len(transcript.turns) <= most, "a review may need two calls"
    assert transcript.status == "complete"
    assert transcript.turns[transcript.finals[0]].role == "code"
    assert "manual" not in [step[0] for step in trace] or most > 14


async def test_an_unreadable_review_is_no_verdict(council: Make, question: Question) -> None:
    transcript, trace = await run(council, question, member(review="looks fine to me"))
    assert [step[0] for step in trace][7:10] == ["review", "repair", "test"]
    assert transcript.status == "degraded"
    assert "unreadable critique" in transcript.failure.message  # type: ignore[union-attr]


async def test_a_seat_that_always_fails_is_stood_in_for(council: Make, question: Question) -> None:
    def broken(request: Request) -> BackendError:
        return ServerError("out of order")

    replies = [member()] * 6
    replies[3] = broken
    transcript, trace = await run(council, question, *replies)
    assert [step for step in trace if step[0] == "code"] == [("code", 2, 3), ("code", 2, 4)]
    assert transcript.status == "degraded"
    assert read(question, transcript.turns[transcript.finals[0]].text) == "19"


@pytest.mark.parametrize("values", [{"max_review": -1}, {"max_calls": 10}])
def test_a_wrong_setting_names_value_and_range(values: dict[str, int]) -> None:
    (name, value), *_ = values.items()
    with pytest.raises(ValueError, match=f"{name} is {value}; .*(0 or more|at least 11)"):
        chatdev.Settings(**values)
