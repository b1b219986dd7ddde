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
from pluribus.backends import Request
from pluribus.backends.scripted import Scripted
from pluribus.config import make_config
from pluribus.council import Council
from pluribus.decide import decide
from pluribus.errors import BackendError, BudgetExceeded, CodeNotAllowed, ConfigError, ServerError
from pluribus.judges import Juror
from pluribus.label import accepted, agreed, checked, checker, deciding, judged, label, passes, settle, try_tests
from pluribus.run import RunResult, execute, prepare, reload
from pluribus.sandbox import Limits, Sandbox, allowing, sandbox
from pluribus.solve import solve
from pluribus.store import Store
from pluribus.types import Decision, Key, Label, Question, Transcript

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
async def test_what_a_judge_says_of_programs_changes_no_score(recorded: dict[str, Any]) -> None:
    result = await go(recorded)
    with Store.open() as store:
        for row in result.rows:
            said = [Label(row.attempt_id, turn, False, judge="J") for turn in range(4)]
            said += [Label(row.attempt_id, turn, False, checker="consensus") for turn in range(4)]
            store.put_records("label", [(row.attempt_id, each) for each in said])
    assert (await go(recorded)).rows == result.rows == reload_(result.name).rows


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


# --- what the checker leaves open ----------------------------------------------------------------------------------

WHO = Question("q1", "t", "Who wrote Don Juan?", "text")
BYRON = Key("q1", "Lord Byron", ("Byron",))
POEM = ("It was Byron.\nAnswer: Lord Byron", "Answer: George Gordon Byron", "Answer: Shelley", "Answer: byron")


async def test_free_text_that_is_not_the_keys_is_left_open(council: Seats) -> None:
    transcript = await said(council, *POEM, "<think>Hm", question=WHO)
    assert [(one.turn, one.correct, one.checker) for one in await checked(WHO, BYRON, transcript)] == [
        (0, True, "key"), (1, None, "key"), (2, None, "key"), (3, True, "key"), (4, False, "key"),
    ]  # fmt: skip
    assert [one.correct for one in await label(WHO, BYRON, transcript)] == [True, False, False, True, False]
    assert [one.correct for one in await checked(WHO, None, transcript)] == [None] * 5
    assert [one.correct for one in await checked(WHO, Key("q1", None), transcript)] == [None] * 5


async def test_other_kinds_are_decided_as_ever(council: Seats, question: Question) -> None:
    transcript = await said(council, "It is 19.", "It is 20.", "Nobody knows.", question=question)
    key = Key("q1", "19.0")
    assert await checked(question, key, transcript) == await label(question, key, transcript)
    assert [one.correct for one in await checked(ASK, KEY, await said(council, RIGHT))] == [None]


def judge(council: Seats, question: Question, reply: Callable[[Request], str | BackendError]) -> tuple[Juror, Scripted]:
    (agent,) = council(reply)
    backend = agent.backend
    assert isinstance(backend, Scripted)
    return Juror("J", question, None, agent.at(question, 0)), backend


def knows_byron(request: Request) -> str:
    """Right about whoever says Byron between the fences of the answer, the last of the prompt."""
    answer = request.messages[-1].content.rpartition("Decide whether")[0].rpartition("~~~")[0].rpartition("~~~")[2]
    return '{"reason": "so", "verdict": %s}' % str("Byron" in answer or "byron" in answer).lower()  # noqa: UP031


async def test_a_judge_holds_free_text_against_the_key(council: Seats) -> None:
    juror, backend = judge(council, WHO, knows_byron)
    transcript = await said(council, *POEM, question=WHO)
    labels = await judged(juror, BYRON, transcript, {1, 2})
    assert labels == [
        Label(transcript.attempt.id, 1, True, judge="J"), Label(transcript.attempt.id, 2, False, judge="J"),
    ]  # fmt: skip
    assert all("Lord Byron" in request.messages[-1].content for request in backend.seen)
    assert len(backend.seen) == 2


async def test_without_a_key_and_for_other_kinds_a_judge_sees_none(council: Seats, question: Question) -> None:
    yes: Callable[[Request], str] = lambda request: '{"verdict": true}'  # noqa: E731
    juror, backend = judge(council, WHO, yes)
    labels = await judged(juror, None, await said(council, *POEM, question=WHO))
    assert [one.correct for one in labels] == [True] * 4
    assert not any("accepted" in request.messages[-1].content for request in backend.seen)
    juror, backend = judge(council, question, yes)
    await judged(juror, Key("q1", "977"), await said(council, "It is 19.", question=question))
    assert not any("977" in request.messages[-1].content for request in backend.seen)
    assert accepted(question, Key("q1", "977")) == ()


@pytest.mark.parametrize("reply", ["I can not say.", ServerError("500")], ids=["unreadable", "failing"])
async def test_no_verdict_is_undecided_and_never_wrong(council: Seats, reply: str | BackendError) -> None:
    juror, _ = judge(council, WHO, lambda request: reply)
    labels = await judged(juror, BYRON, await said(council, *POEM, question=WHO))
    assert [one.correct for one in labels] == [None] * 4


async def test_a_judge_needs_an_agent_and_a_budget_ends_it(council: Seats) -> None:
    transcript = await said(council, *POEM, question=WHO)
    with pytest.raises(ValueError, match="judge 'J' has no agent"):
        await judged(Juror("J", WHO, None), BYRON, transcript)

    def spent(request: Request) -> str:
        raise BudgetExceeded("0 calls left")

    with pytest.raises(BudgetExceeded):
        await judged(judge(council, WHO, spent)[0], BYRON, transcript)


def said_so(*labels: tuple[bool | None, str | None, str | None]) -> bool | None:
    return settle([Label("a", 0, correct, checker=by, judge=who) for correct, by, who in labels])[0]


def test_the_checkers_word_counts_then_the_judges_then_the_consensus() -> None:
    key, tests, judge_says = (False, "key", None), (True, "tests 1a2b", None), (True, None, "J")
    consensus = (False, "consensus 0.8", None)
    assert said_so(consensus, judge_says, key) is False
    assert said_so(tests, (False, None, "J"), consensus) is True
    assert said_so(consensus, judge_says) is True
    assert said_so(consensus) is False
    assert said_so((None, "key", None), (None, None, "J"), consensus) is False
    assert said_so((None, "key", None), (None, None, "J")) is None


def test_judges_at_odds_leave_it_open_and_a_majority_does_not() -> None:
    yes, no = (True, None, "J"), (False, None, "K")
    assert said_so(yes, no) is None
    assert said_so(yes, no, (False, "consensus", None)) is None, "a lower rank does not settle what a higher one argues"
    assert said_so(yes, no, (False, None, "L")) is False


def test_labels_of_steps_and_of_other_turns_stay_apart() -> None:
    labels = [Label("a", 3, True, checker="key"), Label("a", 3, False, step=0, checker="key"), Label("a", 1, None)]
    assert settle(labels) == {1: None, 3: True}
    assert deciding(labels)[3].checker == "key"
    assert settle([]) == {}


async def test_agreement_with_the_council_labels_only_what_it_is_sure_of(council: Seats, question: Question) -> None:
    transcript = await said(council, "It is 19.", "It is 19.", "It is 20.", "Nobody knows.", question=question)
    decision = decide(question, transcript)
    right = [True, True, False, False]
    assert [one.correct for one in agreed(question, transcript, decision)] == right
    assert [one.correct for one in agreed(question, transcript, decision, 2 / 3)] == right
    assert [one.correct for one in agreed(question, transcript, decision, 0.7)] == [None] * 4
    assert {one.checker for one in agreed(question, transcript, decision, 0.7)} == {"consensus 0.7"}
    sure = dataclasses.replace(decision, confidence=0.95)
    assert [one.correct for one in agreed(question, transcript, sure, 0.7)] == right
    unsure = dataclasses.replace(decision, confidence=0.3)
    assert [one.correct for one in agreed(question, transcript, unsure, 0.5)] == [None] * 4


async def test_a_shared_lead_or_no_answer_labels_nothing(council: Seats, question: Question) -> None:
    tied = await said(council, "It is 19.", "It is 20.", question=question)
    silent = await said(council, "Hm.", "Well.", question=question)
    for transcript in (tied, silent):
        decision: Decision = decide(question, transcript)
        assert [one.correct for one in agreed(question, transcript, decision)] == [None, None]
