"""What decides whether an answer is right, and runs of programs from the first question to the table."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.agents import Agent
from pluribus.config import make_config
from pluribus.council import Council
from pluribus.errors import CodeNotAllowed, ConfigError
from pluribus.label import checker, label, passes, try_tests
from pluribus.run import RunResult, execute, prepare, reload
from pluribus.sandbox import Limits, Sandbox, allowing, sandbox
from pluribus.solve import solve
from pluribus.store import Store
from pluribus.types import Key, Label, Question, Transcript

walls = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

ASK = Question("q1", "t", "Write double.", "program", metadata={"entry_point": "double"})
KEY = Key("q1", "def double(x): return 2 * x", tests=("assert double(2) == 4", "assert double(-1) == -2"))
RIGHT = "```python\ndef double(x):\n    return x + x\n```"
WRONG = "```python\ndef double(x):\n    return 4\n```"
CALM = Limits(wall_s=60)

Seats = Callable[..., list[Agent]]


@pytest.fixture
def jail() -> Sandbox:
    return sandbox(True, CALM)


async def said(council: Seats, *texts: str, question: Question = ASK) -> Transcript:
    return await solve(question, council(*((lambda request, text=text: text) for text in texts)), "vote")


@walls
async def test_the_tests_decide_about_each_turn(council: Seats, jail: Sandbox) -> None:
    transcript = await said(council, RIGHT, WRONG, "I do not know.", "```python\ndef double(x): return 2*x\n```")
    with allowing(jail):
        labels = await label(ASK, KEY, transcript)
    assert [(each.turn, each.correct) for each in labels] == [(0, True), (1, False), (2, False), (3, True)]
    assert {(each.attempt_id, each.checker, each.judge) for each in labels} == {
        (transcript.attempt.id, checker(ASK, KEY), None)
    }


async def test_where_programs_may_not_run_nobody_says_whether_they_are_right(council: Seats) -> None:
    labels = await label(ASK, KEY, await said(council, RIGHT, WRONG))
    assert [each.correct for each in labels] == [None, None]


@walls
async def test_a_key_without_tests_says_nothing_about_a_program(council: Seats, jail: Sandbox) -> None:
    with allowing(jail):
        labels = await label(ASK, Key("q1", KEY.answer), await said(council, RIGHT))
    assert labels[0].correct is None


async def test_other_answers_are_compared_with_the_key(council: Seats, question: Question) -> None:
    transcript = await said(council, "It is 19.", "It is 20.", "Nobody knows.", question=question)
    labels = await label(question, Key("q1", "19.0"), transcript)
    assert [(each.correct, each.checker) for each in labels] == [(True, "key"), (False, "key"), (False, "key")]
    assert [each.correct for each in await label(question, Key("q1", None), transcript)] == [None] * 3


@walls
@pytest.mark.parametrize(
    "program",
    [
        "def double(x): return None",
        "def double(x): raise ValueError",
        "import sys\ndef double(x): sys.exit(0)",
        "import os\ndef double(x): os._exit(0)",
        "import os\nprint('done')\nos._exit(0)\ndef double(x): return 2 * x",
        "exit()\ndef double(x): return 2 * x",
        "def double(x):\n    while True: print('x' * 1000)",
        "raise SystemExit",
        "def double(x: return",
    ],
)
async def test_a_program_that_does_not_get_to_the_end_of_its_tests_does_not_pass(jail: Sandbox, program: str) -> None:
    assert await passes(jail, program, KEY.tests) is False


@walls
async def test_a_right_program_may_talk(jail: Sandbox) -> None:
    passed, run = await try_tests(jail, "print('hm', end='')\ndef double(x): print(x); return 2 * x", KEY.tests)
    assert passed and run.stdout.startswith("hm2\n-1\n")


@walls
async def test_an_endless_program_does_not_pass_and_its_record_says_why(jail: Sandbox) -> None:
    code = "def double(x):\n    while True: pass"
    passed, run = await try_tests(jail, code, KEY.tests, Limits(wall_s=120, cpu_s=1))
    assert not passed and run.stopped == "CPU time"


# --- runs --------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path) -> dict[str, Any]:
    """Three questions and four samples of each: all right, one right, none right, in the replies of one model."""
    code = "```python\ndef {name}(x):\n    return {body}\n```"
    questions, outputs = [], []
    for n, bodies in enumerate((["x + 1", "1 + x", "x - -1", "x+1"], ["0", "x + 2", "0", "0"], ["1", "2", "3", "no("])):
        name = f"add{n}"
        questions.append(
            {"id": name, "question": f"Write {name}.", "tests": [f"assert {name}(2) == {n + 3}"]}
            | {"metadata": {"entry_point": name}}
        )
        outputs += [
            {"question_id": name, "model": "m", "sample": i, "text": code.format(name=name, body=body)}
            for i, body in enumerate(bodies)
        ]
    for file, rows in (("questions", questions), ("outputs", outputs)):
        (tmp_path / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return {
        "task": "jsonl",
        "data": str(tmp_path / "questions.jsonl"),
        "models": [f"replay/{tmp_path / 'outputs.jsonl'}"],
        "method": "self_consistency",
        "settings": {"parallel_num": 4},
        "allow_code_execution": True,
    }


async def go(values: dict[str, Any]) -> RunResult:
    with Store.open() as store:
        return await execute(prepare(make_config(values)), store)


@walls
async def test_a_run_scores_programs_by_their_tests_and_counts_samples(recorded: dict[str, Any]) -> None:
    result = await go(recorded)
    assert [row.passes for row in result.rows] == [(4, 4), (1, 4), (0, 4)]
    assert [row.credit for row in result.rows] == [1.0, 0.0, 0.0]
    assert result.rows[0].share == 0.5  # x + 1 and x+1 are one program
    assert result.score.value == pytest.approx(1 / 3)
    assert result.pass_at() == pytest.approx({1: 1.25 / 3, 2: 1.5 / 3, 3: 1.75 / 3, 4: 2 / 3})
    with Store.open() as store:
        again = reload(store, result.name)
    assert again.rows == result.rows and again.pass_at() == result.pass_at()


@walls
async def test_what_was_judged_is_not_judged_again(recorded: dict[str, Any], tmp_path: Path) -> None:
    """A workspace whose labels say otherwise than the tests would."""
    result = await go(recorded)
    with Store.open() as store, Store.open(tmp_path / "other") as other:
        for transcript in store.transcripts([row.attempt_id for row in result.rows]):
            id = transcript.attempt.id
            other.put_transcript(transcript)
            found = store.records("label", Label, [id])[id]
            other.put_records("label", [(id, dataclasses.replace(each, correct=True)) for each in found])
        again = await execute(prepare(make_config(recorded)), other)
    assert [row.passes for row in again.rows] == [(4, 4)] * 3


@walls
async def test_other_tests_judge_anew(recorded: dict[str, Any], tmp_path: Path) -> None:
    await go(recorded)
    path = tmp_path / "questions.jsonl"
    path.write_text(path.read_text("utf-8").replace("(2) == 3", "(2) == 9"), "utf-8")
    changed = await go(recorded)
    assert changed.tally.calls == 0
    assert [row.passes for row in changed.rows] == [(0, 4), (1, 4), (0, 4)]
    assert [row.passes for row in reload_(changed.name).rows] == [(0, 4), (1, 4), (0, 4)]


def reload_(name: str) -> RunResult:
    with Store.open() as store:
        return reload(store, name)


async def test_without_permission_nothing_is_asked(recorded: dict[str, Any]) -> None:
    with pytest.raises(CodeNotAllowed) as refused:
        prepare(make_config({**recorded, "allow_code_execution": False}))
    words = "task jsonl runs programs that models write; allow it with --allow-code-execution"
    assert str(refused.value) == words


@walls
async def test_a_stored_run_that_was_not_judged_is_not_scored(recorded: dict[str, Any], tmp_path: Path) -> None:
    """As in a workspace that another program wrote: transcripts, and no labels."""
    result = await go(recorded)
    with Store.open() as store, Store.open(tmp_path / "other") as other:
        row = store.run(result.name)
        pairs = store.run_questions(row.id)
        other.put_questions(pairs.values())
        for transcript in store.transcripts([r.attempt_id for r in result.rows]):
            other.put_transcript(transcript)
        other.put_run(row, [(r.attempt_id, r.question_id, i) for i, r in enumerate(result.rows)])
        unscored = reload(other, result.name)
    assert [row.credit for row in unscored.rows] == [None] * 3
    assert (unscored.score.n, unscored.score.value, unscored.pass_at()) == (3, None, {})


def test_a_method_that_runs_programs_is_refused_before_the_first_call() -> None:
    council = Council(["scripted/echo"], method="autogen", settings={"code_execute": True})
    with pytest.raises(CodeNotAllowed, match="method autogen runs programs that models write; allow it with"):
        council.ask("What is 1 + 1?", remember=False)


def test_the_setting_takes_two_words_and_no_other() -> None:
    assert make_config({"allow_code_execution": "rlimit"}).allow_code_execution == "rlimit"
    with pytest.raises(ConfigError, match="allow_code_execution"):
        make_config({"allow_code_execution": "docker"})


@walls
async def test_labels_of_many_transcripts_are_made_at_the_same_time(council: Seats, jail: Sandbox) -> None:
    transcripts = [await said(council, RIGHT, WRONG) for _ in range(3)]
    with allowing(jail):
        found = await asyncio.gather(*(label(ASK, KEY, transcript) for transcript in transcripts))
    assert [[each.correct for each in labels] for labels in found] == [[True, False]] * 3
