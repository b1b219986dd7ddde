"""Trace-level: who was asked what in which round, whose words they saw, what was tried out, how many calls."""

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
from pluribus.methods import mapcoder
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript

Make = Callable[..., list[Agent]]
Reply = Callable[[Request], "str | BackendError"]

MARKS = {
    "Recall what helps": "recall",
    "Write the plan": "plan",
    "Say how likely": "confidence",
    "Carry the plan out": "code",
    "Find out why it failed": "debug",
    "could not be read": "repair",
}
DOUBLE = Question(
    "d",
    "test",
    'Complete this.\n\ndef double(x):\n    """Twice x.\n    >>> double(2)\n    4\n    """',
    "program",
    metadata={"entry_point": "double"},
)
RIGHT = "```python\ndef double(x):\n    return 2 * x\n```"
WRONG = "```python\ndef double(x):\n    return x ** 3\n```"
needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def what(request: Request) -> str:
    """Which prompt this is."""
    return next(name for mark, name in MARKS.items() if mark in request.messages[-1].content)


def coder(**says: str | Reply) -> Reply:
    """Follows the forms; what it says to a prompt may be replaced."""

    def reply(request: Request) -> str | BackendError:
        asked = what(request)
        said = says.get(asked, DEFAULTS[asked])
        return said(request) if callable(said) else said

    return reply


def _recalled(request: Request) -> str:
    problems = [{"problem": f"problem {i}", "solution": f"solution {i}"} for i in range(3)]
    return json.dumps({"problems": problems, "technique": "doubling", "checks": ["assert double(3) == 6", "not one"]})


def _planned(request: Request) -> str:
    """Names the recalled problem it was made after."""
    text = request.messages[-1].content
    return f"the plan after {next(f'problem {i}' for i in range(3) if f'problem {i}' in text)}"


def _confident(request: Request) -> str:
    """Surest of the plan after problem 1, then 2, then 0."""
    text = request.messages[-1].content
    number = next(sure for sure, i in ((20, 0), (90, 1), (60, 2)) if f"problem {i}" in text)
    return json.dumps({"reason": "so", "confidence": number})


DEFAULTS: dict[str, str | Reply] = {
    "recall": _recalled,
    "plan": _planned,
    "confidence": _confident,
    "code": "12 + 7 = 19 {final answer: 19}",
    "debug": "12 + 7 = 19 {final answer: 19}",
    "repair": "no",
}


async def run(
    council: Make, question: Question, *replies: Reply, **settings: Any
) -> tuple[Transcript, list[tuple[str, int, int]]]:
    """The transcript, and (prompt, round, seat) of each turn."""
    transcript = await solve(question, council(*replies), "mapcoder", settings)
    return transcript, [(_asked(turn.messages[-1].content), turn.round, turn.seat) for turn in transcript.turns]


def _asked(text: str) -> str:
    return next(name for mark, name in MARKS.items() if mark in text)


async def test_each_role_has_its_seat_and_the_surest_plan_is_carried_out(council: Make, question: Question) -> None:
    transcript, trace = await run(council, question, *[coder()] * 4)
    assert trace == [
        ("recall", 0, 0),
        *[(what, round, 1) for _ in range(3) for what, round in (("plan", 1), ("confidence", 2))],
        ("code", 3, 2),
    ]
    assert "the plan after problem 1" in transcript.turns[-1].messages[-1].content
    assert "problem 0" not in transcript.turns[-1].messages[-1].content
    assert transcript.finals == (7,)
    assert transcript.status == "complete"


@pytest.mark.parametrize(("k", "t"), [(1, 0), (3, 5), (2, 1)])
@pytest.mark.parametrize("n", [1, 3, 50])
async def test_calls_are_what_was_forecast(council: Make, question: Question, k: int, t: int, n: int) -> None:
    least, most = mapcoder.calls(make_settings("mapcoder", {"k": k, "t": t}), n)
    assert (least, most) == (2 + 2 * k, 1 + 2 * k + k * (1 + t))
    good, _ = await run(council, question, *[coder()] * n, k=k, t=t)
    never = "I do not know."
    bad, _ = await run(council, question, *[coder(code=never, debug=never)] * n, k=k, t=t)
    assert (len(good.turns), len(bad.turns)) == (least, most)


async def test_the_next_plan_comes_when_the_repairs_are_used_up(council: Make, question: Question) -> None:
    transcript, trace = await run(council, question, coder(code="?", debug="?"), k=2, t=1)
    assert [step for step in trace if step[0] in ("code", "debug")] == [
        ("code", 3, 0),
        ("debug", 3, 0),
        ("code", 4, 0),
        ("debug", 4, 0),
    ]
    plans = [turn.messages[-1].content for turn in transcript.turns if turn.role == "code"]
    assert ["problem 1" in text for text in plans] == [True, True, False, False]
    assert transcript.finals == (len(transcript.turns) - 1,), "the last version stands when nothing passes"


@needs_sandbox
async def test_the_debugger_reads_what_the_failing_example_gave(council: Make, allowed: None) -> None:
    transcript, trace = await run(council, DOUBLE, coder(code=WRONG, debug=RIGHT), k=1)
    assert trace[-2:] == [("code", 3, 0), ("debug", 3, 0)]
    heard = transcript.turns[-1].messages[-1].content
    assert "double(2) == 4 is false; double(2) gave 8" in heard
    assert "Exit code: 1" in heard
    assert "x ** 3" in heard, "its own last version"
    assert read(DOUBLE, transcript.turns[transcript.finals[0]].text) == read(DOUBLE, RIGHT)


@needs_sandbox
async def test_what_passes_the_examples_is_not_debugged(council: Make, allowed: None) -> None:
    _, trace = await run(council, DOUBLE, coder(code=RIGHT), k=1)
    assert [step[0] for step in trace] == ["recall", "plan", "confidence", "code"]


@needs_sandbox
async def test_its_own_checks_serve_where_the_question_prints_no_example(council: Make, allowed: None) -> None:
    bare = Question("b", "test", "Write double(x).", "program", metadata={"entry_point": "double"})
    transcript, _ = await run(council, bare, coder(code=WRONG, debug=RIGHT), k=1)
    assert "double(3) gave 27" in transcript.turns[-1].messages[-1].content


@needs_sandbox
async def test_a_program_that_leaves_before_the_checks_has_not_passed(council: Make, allowed: None) -> None:
    left = "```python\nimport os\ndef double(x):\n    return 0\nos._exit(0)\n```"
    transcript, trace = await run(council, DOUBLE, coder(code=left, debug=RIGHT), k=1)
    assert trace[-1][0] == "debug"
    assert "ended before the checks" in transcript.turns[-1].messages[-1].content


@needs_sandbox
@pytest.mark.parametrize(
    ("code", "report"),
    [
        (
            "```python\nprint(12 + 7)\n```\n{final answer: 18}",
            "The program printed 19, but the final answer given is 18.",
        ),
        ("```python\nprint(12 + seven)\n```\n{final answer: 19}", "NameError"),
        ("no idea", "states no final answer"),
    ],
)
async def test_another_kind_of_question_is_tried_by_the_program_that_computes_it(
    council: Make, question: Question, allowed: None, code: str, report: str
) -> None:
    good = "```python\nprint(12 + 7)\n```\n{final answer: 19}"
    transcript, trace = await run(council, question, coder(code=code, debug=good), k=1)
    assert trace[-1][0] == "debug"
    assert report in transcript.turns[-1].messages[-1].content
    assert len(transcript.turns) == 5


async def test_without_permission_nothing_runs_and_the_first_version_stands(council: Make) -> None:
    transcript, trace = await run(council, DOUBLE, coder(code=WRONG), k=1)
    assert trace[-1][0] == "code"
    assert transcript.status == "complete"


async def test_a_plan_of_unknown_confidence_comes_last(council: Make, question: Question) -> None:
    def unsure(request: Request) -> str:
        return "who knows" if "problem 1" in request.messages[-1].content else _confident(request)

    transcript, _ = await run(council, question, coder(confidence=unsure, code="?"), k=3, t=0)
    order = [turn.messages[-1].content for turn in transcript.turns if turn.role == "code"]
    assert [next(i for i in range(3) if f"problem {i}" in text) for text in order] == [2, 0, 1]
    assert transcript.status == "degraded"
    assert "unreadable confidence" in transcript.failure.message  # type: ignore[union-attr]


async def test_nothing_recalled_plans_go_on_without(council: Make, question: Question) -> None:
    says = coder(recall="hm", plan="a plan of its own", confidence='{"reason": "", "confidence": 5}')
    transcript, trace = await run(council, question, says, k=2)
    assert [step[0] for step in trace][:2] == ["recall", "repair"]
    plans = [turn for turn in transcript.turns if turn.role == "plan"]
    assert [turn.sample for turn in plans] == [0, 1], "the same words are drawn twice"
    assert transcript.status == "degraded"


async def test_a_seat_that_always_fails_is_stood_in_for(council: Make, question: Question) -> None:
    def broken(request: Request) -> BackendError:
        return ServerError("out of order")

    transcript, trace = await run(council, question, coder(), broken, coder(), coder(), k=1)
    assert [step for step in trace if step[0] in ("plan", "confidence")] == [
        ("plan", 1, 1),
        ("plan", 1, 2),
        ("confidence", 2, 1),
        ("confidence", 2, 2),
    ]
    assert transcript.status == "degraded"
    assert read(question, transcript.turns[transcript.finals[0]].text) == "19"


@pytest.mark.parametrize("values", [{"k": 0}, {"t": -1}])
def test_a_wrong_setting_names_value_and_range(values: dict[str, int]) -> None:
    (name, value), *_ = values.items()
    with pytest.raises(ValueError, match=f"{name} is {value}; .* (at least|or more|1 plan)"):
        mapcoder.Settings(**values)
