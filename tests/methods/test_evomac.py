"""Trace-level: who was asked what, in which order, what the failing tests did to the workflow, how many calls."""

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
from pluribus.methods import evomac
from pluribus.methods.evomac import Subtask, in_order
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript

Make = Callable[..., list[Agent]]
Reply = Callable[[Request], "str | BackendError"]

MARKS = {
    "Divide the work into subtasks": "organise",
    "you are the first to work on it": "begin",
    "Do your part in the work so far": "code",
    "You lead those who test": "plan tests",
    "you write one test": "test",
    "You lead a team that solves this. This is the solution": "update",
    "could not be read": "repair",
}
DOUBLE = Question("d", "test", "Write double(x).", "program", metadata={"entry_point": "double"})
RIGHT, WRONG = "```python\ndef double(x):\n    return 2 * x\n```", "```python\ndef double(x):\n    return x\n```"
needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def asked(text: str) -> str:
    """Which prompt this is."""
    return next(name for mark, name in MARKS.items() if mark in text)


def workflow(*subtasks: tuple[str, list[str]], **more: Any) -> str:
    rows = [{"name": name, "task": f"do {name}", "after": after} for name, after in subtasks]
    return json.dumps({"subtasks": rows, **more})


def probes(*names: str) -> str:
    return json.dumps({"tests": [{"name": name, "task": f"look at {name}"} for name in names]})


DEFAULTS: dict[str, str | Reply] = {
    "organise": workflow(("second", ["first"]), ("first", [])),
    "begin": "begun {final answer: 1}",
    "code": "gone on {final answer: 19}",
    "plan tests": probes("plain", "edge"),
    "test": "```python\nassert double(3) == 6\n```",
    "update": workflow(("repair", []), wrong_tests=[]),
    "repair": "no",
}


def member(**says: str | Reply) -> Reply:
    """Follows the forms; what it says to a prompt may be replaced."""

    def reply(request: Request) -> str | BackendError:
        name = asked(request.messages[-1].content)
        said = says.get(name.replace(" ", "_"), DEFAULTS[name])
        return said(request) if callable(said) else said

    return reply


async def run(
    council: Make, question: Question, *replies: Reply, **settings: Any
) -> tuple[Transcript, list[tuple[str, int, int]]]:
    """The transcript, and (prompt, round, seat) of each turn."""
    transcript = await solve(question, council(*replies), "evomac", settings)
    return transcript, [(asked(turn.messages[-1].content), turn.round, turn.seat) for turn in transcript.turns]


async def test_coders_work_in_dependency_order_each_on_what_stands(council: Make, question: Question) -> None:
    transcript, trace = await run(council, question, *[member()] * 4)
    assert trace == [("organise", 0, 0), ("begin", 0, 2), ("code", 0, 3)], "no tests where programs may not run"
    first, second = (turn.messages[-1].content for turn in transcript.turns[1:])
    assert "first: do first" in first and "second" not in first
    assert "second: do second" in second and "begun {final answer: 1}" in second
    assert transcript.finals == (2,)
    assert transcript.status == "complete"


@needs_sandbox
async def test_tests_that_pass_end_it(council: Make, allowed: None) -> None:
    transcript, trace = await run(council, DOUBLE, *[member(begin=WRONG, code=RIGHT)] * 4)
    assert trace[3:] == [("plan tests", 0, 1), ("test", 0, 3), ("test", 0, 0)]
    planned, one, two = (turn.messages[-1].content for turn in transcript.turns[3:])
    assert "return" not in planned + one + two, "the testers see the question, not the solution"
    assert "plain: look at plain" in one and "edge: look at edge" in two
    assert transcript.finals == (2,)


@needs_sandbox
async def test_failing_tests_rewrite_the_workflow(council: Make, allowed: None) -> None:
    says = member(organise=workflow(("whole", [])), begin=WRONG, code=RIGHT)
    transcript, trace = await run(council, DOUBLE, *[says] * 4)
    assert trace == [
        ("organise", 0, 0),
        ("begin", 0, 2),
        ("plan tests", 0, 1),
        ("test", 0, 3),
        ("test", 0, 0),
        ("update", 1, 0),
        ("code", 1, 2),
    ]
    update, code = (turn.messages[-1].content for turn in transcript.turns[-2:])
    assert "double(3) gave 3" in update and "whole: do whole" in update and "return x" in update
    assert "repair: do repair" in code and "return x" in code
    assert read(DOUBLE, transcript.turns[transcript.finals[0]].text) == read(DOUBLE, RIGHT)


@needs_sandbox
async def test_a_test_struck_as_wrong_is_not_run_again(council: Make, allowed: None) -> None:
    says = member(
        organise=workflow(("whole", [])),
        begin=RIGHT,
        plan_tests=probes("odd"),
        test="```python\nassert double(3) == 7\n```",
        update=workflow(wrong_tests=["odd"]),
    )
    _, trace = await run(council, DOUBLE, says)
    assert [step[0] for step in trace] == ["organise", "begin", "plan tests", "test", "update"]


@needs_sandbox
async def test_an_update_that_changes_nothing_ends_it(council: Make, allowed: None) -> None:
    says = member(organise=workflow(("whole", [])), begin=WRONG, update=workflow(wrong_tests=["nobody"]))
    transcript, trace = await run(council, DOUBLE, says)
    assert [step[0] for step in trace].count("update") == 1
    assert transcript.finals == (1,)


@needs_sandbox
@pytest.mark.parametrize(("iteration", "made"), [(0, 2), (1, 7), (2, 9)])
@pytest.mark.parametrize("n", [1, 50])
async def test_calls_of_tests_that_never_pass(council: Make, allowed: None, iteration: int, made: int, n: int) -> None:
    says = member(organise=workflow(("whole", [])), begin=WRONG, code=WRONG)
    transcript, trace = await run(council, DOUBLE, *[says] * n, iteration=iteration)
    least, most = evomac.calls(make_settings("evomac", {"iteration": iteration}), n)
    assert len(transcript.turns) == made
    assert (least, most) == (2, 60)
    assert [step[0] for step in trace].count("update") == iteration


@needs_sandbox
@pytest.mark.parametrize("most", [3, 6, 8, 11])
async def test_the_calls_end_where_they_are_bounded(council: Make, allowed: None, most: int) -> None:
    says = member(organise=workflow(("whole", [])), begin=WRONG, code=WRONG)
    transcript, _ = await run(council, DOUBLE, *[says] * 3, max_calls=most, iteration=50)
    assert most - 2 <= len(transcript.turns) <= most, "an update may need two calls"
    assert transcript.turns[transcript.finals[0]].role == "code"


@needs_sandbox
async def test_another_kind_of_question_is_tested_by_programs_that_work_it_out(
    council: Make, question: Question, allowed: None
) -> None:
    says = member(
        organise=workflow(("whole", [])),
        begin="{final answer: 18}",
        plan_tests=probes("sum"),
        test="```python\nprint(12 + 7)\n```",
    )
    transcript, trace = await run(council, question, says)
    assert [step[0] for step in trace] == ["organise", "begin", "plan tests", "test", "update", "code"]
    assert "printed 19, but the final answer given is 18" in transcript.turns[4].messages[-1].content


async def test_an_unreadable_workflow_is_the_whole_question(council: Make, question: Question) -> None:
    transcript, trace = await run(council, question, member(organise="first this, then that"))
    assert [step[0] for step in trace] == ["organise", "repair", "begin"]
    assert "Solve the whole question" in transcript.turns[-1].messages[-1].content
    assert transcript.status == "degraded"
    assert "unreadable plan" in transcript.failure.message  # type: ignore[union-attr]


async def test_more_than_five_subtasks_are_asked_for_again(council: Make, question: Question) -> None:
    many = workflow(*((str(place), []) for place in range(6)))
    _, trace = await run(council, question, member(organise=many, repair=workflow(("whole", []))))
    assert [step[0] for step in trace] == ["organise", "repair", "begin"]


async def test_a_seat_that_always_fails_is_stood_in_for(council: Make, question: Question) -> None:
    def broken(request: Request) -> BackendError:
        return ServerError("out of order")

    transcript, trace = await run(council, question, broken, member(), broken)
    steps = [("organise", 0), ("organise", 1), ("begin", 2), ("begin", 0), ("begin", 1), ("code", 0), ("code", 1)]
    assert trace == [(name, 0, seat) for name, seat in steps]
    assert transcript.status == "degraded"
    assert read(question, transcript.turns[transcript.finals[0]].text) == "19"


def test_a_circle_of_subtasks_is_cut_at_its_first() -> None:
    circle = [Subtask(name="a", task="", after=["b"]), Subtask(name="b", task="", after=["a"])]
    assert [subtask.name for subtask in in_order(circle)] == ["a", "b"]
    chain = [Subtask(name=name, task="", after=after) for name, after in (("c", ["b"]), ("b", ["a"]), ("a", []))]
    assert [subtask.name for subtask in in_order(chain)] == ["a", "b", "c"]


@pytest.mark.parametrize("values", [{"iteration": -1}, {"max_calls": 2}])
def test_a_wrong_setting_names_value_and_range(values: dict[str, int]) -> None:
    (name, value), *_ = values.items()
    with pytest.raises(ValueError, match=f"{name} is {value}; .*(0 or more|at least 3)"):
        evomac.Settings(**values)
