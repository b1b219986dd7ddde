"""What the code methods share: examples out of a question, trials in the sandbox, a conversation that counts."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pluribus import sandbox
from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.council import Council
from pluribus.errors import BackendError, CodeNotAllowed, ServerError
from pluribus.methods._programs import Talk, asserts, blocks, examples, loud, on_test, trial
from pluribus.replies import verdict
from pluribus.types import Question, Turn

needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
DOUBLE = Question("d", "test", "Write double(x).", "program", metadata={"entry_point": "double"})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""\n>>> f(1)\n2\n"""', ("assert f(1) == 2",)),
        (">>> f([1,\n...    2])\n[2, 4]\nand so on", ("assert f([1, 2]) == [2, 4]",)),
        (">>> f('a')\n'aa'\nThe rest is up to you.", ("assert f('a') == 'aa'",)),
        ('>>> f(3)\n"""', ()),
        (">>> x = 3\n>>> f(x)\n9", ()),
        (">>> f(1\n2", ()),
        (">>> f(1)\nsomething like 2", ()),
        ("`assert f(1) == 2`", ("assert f(1) == 2",)),
        ("Tests: assert f(1) == 2\nassert f(1) == 2\nassert is_even(2)", ("assert f(1) == 2", "assert is_even(2)")),
        ("We assert that it is so.", ()),
        ("f(1) => true", ("assert f(1) == True",)),
        ("* f([]) -> [1]  # why", ("assert f([]) == [1]",)),
        ("f('a') should return 'b'.", ("assert f('a') == 'b'",)),
        (">>> f(1) == 2", ("assert f(1) == 2",)),
        ("f(2) = 3 if x else 4", ()),
        ("def f(x: int) -> 3", ()),
    ],
)
def test_examples_of_a_question(text: str, found: tuple[str, ...]) -> None:
    assert examples(text) == found


def test_the_examples_of_real_questions(shared_data: Path) -> None:
    """Each example that is found holds for the reference solution's own words: it is taken over letter by letter."""
    with gzip.open(shared_data / "benchmarks" / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    counts = [len(examples(row["prompt"])) for row in rows]
    assert sum(count > 0 for count in counts) >= 135
    assert max(counts) < 20


@needs_sandbox
async def test_the_reference_solutions_pass_their_own_examples(shared_data: Path, allowed: None) -> None:
    with gzip.open(shared_data / "benchmarks" / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][:12]
    for row in rows:
        question = Question(row["task_id"], "t", row["prompt"], "program", metadata={"entry_point": row["entry_point"]})
        reply = f"```python\n{row['prompt']}{row['canonical_solution']}\n```"
        found = await trial(question, reply, examples(row["prompt"]))
        assert found.passed, (row["task_id"], found.report)


def test_asserts_and_blocks_of_a_reply() -> None:
    assert asserts("assert a == b # why\n  assert f(x)\nassert") == ("assert a == b # why", "assert f(x)")
    assert blocks("```py\na\n```\n```\nb\n```\n```json\n{}\n```\n```python\nc") == ["a\n", "b\n", "c"]


def test_a_loud_test_says_what_it_got_wherever_it_asserts() -> None:
    code = loud("def check(f):\n    assert f(1) == 2\n    assert f(2), 'said'\nassert not 3")
    assert "assert f(1) == 2, 'f(1) == 2 is false; f(1) gave ' + repr(f(1))" in code
    assert "assert f(2), 'said'" in code
    assert loud("no python (") == "no python ("


@needs_sandbox
async def test_a_test_that_can_not_be_used_is_no_failure(question: Question, allowed: None) -> None:
    assert await on_test(question, "{final answer: 19}", "no program here") is None
    assert await on_test(question, "{final answer: 19}", "```python\nprint(19 / 0)\n```") is None
    assert await on_test(DOUBLE, "```python\ndef double(x): return x\n```", "words") is None


@needs_sandbox
async def test_tests_run_behind_the_program_and_against_the_answer(question: Question, allowed: None) -> None:
    right, wrong = "```python\ndef double(x): return 2 * x\n```", "```python\ndef double(x): return x\n```"
    test = "```python\nassert double(3) == 6\n```"
    good, bad = await on_test(DOUBLE, right, test), await on_test(DOUBLE, wrong, test)
    assert good is not None and good.passed
    assert bad is not None and not bad.passed and "double(3) gave 3" in bad.report
    sums = "```python\nprint(12 + 7)\n```"
    again, other = [await on_test(question, f"{{final answer: {number}}}", sums) for number in (19, 18)]
    assert again is not None and again.passed
    assert other is not None and not other.passed


@needs_sandbox
async def test_a_program_that_never_ends_is_a_failed_trial(allowed: None) -> None:
    quick = sandbox.sandbox(True, sandbox.Limits(wall_s=0.5))
    with sandbox.allowing(quick):
        found = await trial(DOUBLE, "```python\ndef double(x):\n    while True: pass\n```", ("assert double(1) == 2",))
    assert not found.passed
    assert "the limit of wall time" in found.report


Make = Callable[..., list[Agent]]


def broken(request: Request) -> BackendError:
    return ServerError("out of order")


def at(agents: list[Agent], question: Question) -> list[Agent]:
    return [agent.at(question, 0) for agent in agents]


async def test_a_conversation_ends_with_its_last_call(council: Make, question: Question) -> None:
    talk = Talk(at(council(broken, lambda request: "x", lambda request: "x"), question), 3)
    first = await talk.say(0, "answer")
    assert first is not None and first.seat == 1
    assert await talk.ask(1, "answer", verdict(), role="verdict") is None, "it could take two calls, and one is left"
    assert len(talk.turns) == 2
    assert await talk.say(4, "answer") is not None
    assert await talk.say(4, "answer") is None
    assert [turn.seat for turn in talk.turns] == [0, 1, 1]


async def test_parts_at_once_share_the_calls_and_stand_in_order(council: Make, question: Question) -> None:
    agents = at(council(lambda request: "a", lambda request: "b"), question)
    agents[0].backend._latency_s = 0.05  # type: ignore[attr-defined]  # the first part ends last
    talk = Talk(agents, 5)

    def part(seat: int) -> Callable[[Talk], Awaitable[list[Turn | None]]]:
        async def speak(own: Talk) -> list[Turn | None]:
            return [await own.say(seat, "answer") for _ in range(3)]

        return speak

    done = await talk.at_once([part(0), part(1)])
    assert [[turn is not None for turn in turns] for turns in done] == [[True, True, False]] * 2
    assert [turn.seat for turn in talk.turns] == [0, 0, 1, 1]


@pytest.mark.parametrize("method", ["mapcoder", "evomac", "chatdev"])
def test_the_doors_ask_for_permission_first(method: str) -> None:
    council = Council(["scripted/number"], method=method)
    with pytest.raises(CodeNotAllowed, match=f"method {method} runs programs"):
        council.ask("1 + 1?", kind="number", remember=False)
