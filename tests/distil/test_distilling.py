"""The door: stored runs to cases, what they are held against, and which rows are taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pluribus import distilling
from pluribus.config import RunConfig
from pluribus.distil import Case
from pluribus.distilling import (
    Evaluation,
    Known,
    Origin,
    Source,
    Wishes,
    _origin,
    distil,
    evaluation_set,
    evaluations,
    near_copies,
    pooled,
    source,
    step_marks,
)
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError, DataError, UnknownName, UsageError
from pluribus.run import execute, prepare
from pluribus.store import Store
from pluribus.types import Key, Label, Question

Make = Callable[..., Any]
GOLD = "view"


def of(
    *cases: Case, name: str = "one", task: str | None = "jsonl", split: str | None = None, test: bool = False
) -> Source:
    return Source(Known(name, name, (), None, (), {}, ()), Origin(task, split, "file.jsonl", test), tuple(cases))


# --- a stored run ----------------------------------------------------------------------------------------------------


@pytest.fixture
def debated(tmp_path: Path) -> tuple[Store, str]:
    """Six questions in a debate of three, who know the key in half of their turns."""
    data = tmp_path / "questions.jsonl"
    rows = [{"id": f"q{i}", "question": f"{i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(6)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    models: list[Any] = [{"model": "scripted/keyed", "accuracy": p} for p in (0.7, 0.5, 0.3)]
    prepared = prepare(RunConfig(task="jsonl", data=str(data), method="debate", models=models))
    store = Store.open(tmp_path / "store")
    block(execute(prepared, store))
    return store, prepared.id


def test_a_case_holds_every_reply_of_every_round(debated: tuple[Store, str]) -> None:
    found = source(*debated)
    assert [case.question.id for case in found.cases] == [f"q{i}" for i in range(6)]
    assert found.origin == Origin("jsonl", None, found.origin.data, False)
    traces = [one for case in found.cases for one in case.traces]
    rounds = {one.round for one in traces}
    assert len(traces) == 6 * 3 * len(rounds) and len(rounds) > 1
    assert {one.run for one in traces} == {found.known.run} and {one.dialect for one in traces} == {"standard"}
    for case in found.cases:
        for one in case.traces:
            assert one.correct == (one.answer == str(int(case.question.id[1:]) + 1))
            assert one.final == (one.round == max(rounds)) == one.candidate
        decided = [one for one in case.traces if one.decided]
        assert all(one.final for one in decided) and len({one.answer for one in decided}) <= 1
    assert any(one.decided for one in traces)


def test_a_corrective_reply_is_right_where_its_seat_was_wrong_before(debated: tuple[Store, str]) -> None:
    seen = 0
    for case in source(*debated).cases:
        said = {(one.seat, one.round): one for one in case.traces}
        for one in case.traces:
            before = said.get((one.seat, one.round - 1))
            expected = before is not None and one.correct is True and before.correct is False
            assert one.corrective == expected
            seen += expected
    assert seen


def test_labels_of_steps_are_marks(debated: tuple[Store, str]) -> None:
    store, run = debated
    attempt = store.run_attempts(run)[0][0]
    labels = [Label(attempt, 0, good, step, checker="steps") for step, good in enumerate((True, False))]
    store.put_records("label", [(attempt, one) for one in labels])
    store.flush()
    (first, *_), *_ = [case.traces for case in source(store, run).cases]
    assert first.marks == {0: True, 1: False}
    assert source(store, run, steps="judge").cases[0].traces[0].marks == {}
    assert source(store, run, cut="lines").cases[0].traces[0].marks == {}


def test_who_marks_steps_is_heard_in_order() -> None:
    def said(good: bool | None, step: int = 0, **by: str) -> Label:
        return Label("a", 0, good, step, **by)

    item = ("a", 0)
    checker, rolled = said(True, checker="steps"), said(False, checker="rollouts 8 zoo/qwen")
    judge = said(False, judge="J")
    assert step_marks([judge, rolled, checker]) == {item: {0: True}}
    assert step_marks([judge, rolled, said(None, checker="steps")]) == {item: {0: False}}
    assert step_marks([checker, judge], "judge") == {item: {0: False}}
    assert step_marks([checker, judge], "rollouts") == {}
    assert step_marks([judge, said(True, judge="K")]) == {}
    assert step_marks([judge, said(True, judge="K"), said(True, judge="L")]) == {item: {0: True}}
    assert step_marks([said(True, checker="steps lines"), rolled]) == {item: {0: False}}
    assert step_marks([said(True, checker="steps lines"), rolled], cut="lines") == {item: {0: True}}
    assert step_marks([Label("a", 0, True, checker="key")]) == {}


# --- several runs ----------------------------------------------------------------------------------------------------


def test_equal_questions_are_one_and_a_reply_stands_once(case: Make, reply: Make) -> None:
    first = case(reply(0), reply(1), id="q")
    same = case(reply(1), reply(2), id="q")
    other = case(reply(0), id="r")
    (one, two) = pooled([of(first), of(same, other)])
    assert [(trace.attempt_id, trace.turn) for trace in one.traces] == [("q", 0), ("q", 1), ("q", 2)]
    assert two == other


@pytest.mark.parametrize("view", ["rsft", "gold"])
def test_two_questions_of_one_id_are_not_taken_for_one(case: Make, reply: Make, view: str) -> None:
    def asked(name: str, text: str) -> Source:
        key = Key("1", "2", solution="So it is. {final answer: 2}")
        return of(case(reply(0), id="1", question=Question("1", "jsonl", text, "number"), key=key), name=name)

    with pytest.raises(ConfigError, match="runs one and two have different questions under the one id '1'"):
        distil([asked("one", "1 + 1?"), asked("two", "3 - 1?")], Wishes(view, {}))
    assert len(distil([asked("one", "1 + 1?"), asked("two", "1 +  1?")], Wishes(view, {})).rows) == 1


def test_runs_of_different_tasks_are_not_pooled(case: Make, reply: Make) -> None:
    with pytest.raises(ConfigError, match="one asked sums, two asked logic"):
        pooled([of(task="sums"), of(name="two", task="logic")])
    assert pooled([of(task="sums:2"), of(name="two", task="sums:3")]) == ()


# --- what is held against it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "split", "test"),
    [
        ({"task": "sums"}, "test", True),
        ({"task": "sums:2", "split": "train"}, "train", False),
        ({"task": "commonsenseqa"}, "validation", True),
        ({"task": "mmlu:anatomy", "split": "validation"}, "validation", False),
        ({"task": "gsm8k", "data": "train.jsonl"}, None, False),
        ({"task": "gsm8k", "data": "x.jsonl", "split": "test"}, "test", True),
        ({"task": "jsonl", "data": "x.jsonl"}, None, False),
        ({"task": "humaneval"}, "test", True),
        ({"task": "somebody-elses"}, None, False),
    ],
)
def test_where_a_run_is_from(config: dict[str, Any], split: str | None, test: bool) -> None:
    found = _origin(RunConfig(**config))
    assert (found.split, found.test) == (split, test)


def test_a_test_question_is_never_trained_on() -> None:
    tested = of(task="sums", split="test", test=True)
    with pytest.raises(UsageError, match="run one was made on sums@test: a test question is never trained on"):
        evaluations([tested], [])


def test_who_tests_on_something_else_says_so(tmp_path: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"question": "What else?"}\n')
    sets, notes = evaluations([of(task="sums", split="test", test=True)], [str(mine)])
    assert [one.name for one in sets] == [str(mine)] and notes == []


@pytest.mark.parametrize(
    ("task", "why"),
    [("jsonl", "task jsonl has no split to test on"), ("gsm8k", "its questions are of the file file.jsonl"),
     (None, "its task is not known")],
)  # fmt: skip
def test_what_can_not_be_looked_at_is_said(task: str | None, why: str) -> None:
    sets, (note,) = evaluations([of(task=task)], [])
    assert sets == [] and note == f"one is held against no test set: {why}; name one with --check-against"


def test_rows_of_a_file_are_held_against_their_tasks_too(tmp_path: Path) -> None:
    sets, notes = distilling.sets_of(["jsonl", "gsm8k", "jsonl"], [])
    assert sets == [] and notes == [
        "rows of jsonl are held against no test set: task jsonl has no split to test on; name one with --check-against",
        "rows of gsm8k are held against no test set: the test questions of gsm8k may have to be downloaded; name "
        "one with --check-against",
    ]
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"question": "What else?"}\n')
    assert distilling.sets_of(["jsonl"], [str(mine)]) == ([evaluation_set(str(mine))], [])


def test_an_evaluation_set_is_a_task_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    rows = [
        {"question": "Which?", "choices": ["x", "y"], "context": "Here."},
        {"prompt": "As text?"},
        {"prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "As messages?"}]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = ("Here.\nWhich?\nx\ny", "As text?", "As messages?")
    assert evaluation_set(str(path)) == Evaluation(str(path), texts, prompts=texts[1:])
    with pytest.raises(UnknownName, match="split of sums 'val'"):
        evaluation_set("sums@val")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [('{"text": "?"}\n', "set.jsonl:1: neither question nor prompt"), ("", "no question is in it"),
     ('{"question": "?"}\n[1]\n', "set.jsonl:2: not a JSON object"), (None, "there is no such file")],
)  # fmt: skip
def test_an_unreadable_set_is_an_error(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / "set.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        evaluation_set(str(path))


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def twelve(case: Make, reply: Make) -> Source:
    return of(*(case(reply(0, f"{'so ' * i}{i}"), id=f"q{i}") for i in range(12)))


def size(text: str) -> int:
    return len(text.split())


def test_equal_questions_are_dropped_and_near_ones_only_on_request(twelve: Source, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    asked = [twelve.cases[3].question.text.upper(), "q4:  1 + 1"]
    path.write_text("".join(json.dumps({"question": text}) + "\n" for text in asked))
    made = distil([twelve], Wishes("rsft", {}, (str(path),)))
    ids = [row["question_id"] for row in made.rows]
    assert len(ids) == 11 and "q3" not in ids
    (found,) = made.checked
    assert (found.questions, found.equal, found.above) == (2, 1, 0)
    assert found.touched == found.shared == pytest.approx(1 / 11)
    fewer = distil([twelve], Wishes("rsft", {}, (str(path),), max_overlap=0.5))
    assert len(fewer.rows) == 10 and (fewer.checked[0].equal, fewer.checked[0].above) == (1, 1)
    assert fewer.checked[0].touched == 0.0


@pytest.mark.parametrize("words", ["standard", "zoo"])
def test_a_question_of_a_file_of_prompts_is_left_out_whatever_stands_around_it(
    case: Make, reply: Make, tmp_path: Path, words: str
) -> None:
    def asked(name: str, *texts: str) -> Source:
        several = (Question(text, "jsonl", text, "choice", ("red", "blue")) for text in texts)
        return of(*(case(reply(0, dialect=words, answer="A"), id=one.id, question=one) for one in several), name=name)

    same, other = "Which colour has the sky today?", "Which colour has the grass today?"
    path = tmp_path / "held-out.jsonl"
    made = distil([asked("before", same)], Wishes("rsft", {}))
    path.write_text("".join(json.dumps(row) + "\n" for row in made.rows))
    found = distil([asked("now", same, other)], Wishes("rsft", {}, (str(path),)))
    assert [row["question_id"] for row in found.rows] == [other]
    assert [(one.questions, one.equal) for one in found.checked] == [(1, 1)]


def test_a_smaller_limit_takes_a_part_of_what_a_larger_one_takes(twelve: Source) -> None:
    def taken(**limits: Any) -> list[str]:
        made = distil([twelve], Wishes("rsft", {}, **limits), count_tokens=size)
        assert made.tokens == sum(size(row["completion"][0]["content"]) for row in made.rows)
        return [row["question_id"] for row in made.rows]

    order = [f"q{i}" for i in range(12)]
    several = [taken(max_examples=n) for n in (3, 5, 12, 99)]
    assert [len(one) for one in several] == [3, 5, 12, 12]
    assert all(set(small) <= set(large) for small, large in pairwise(several))
    assert all(one == sorted(one, key=order.index) for one in several)
    assert taken(max_examples=5, seed=1) != several[1]
    by_tokens = [taken(max_tokens=n) for n in (20, 40, 1000)]
    assert all(set(small) <= set(large) for small, large in pairwise(by_tokens))
    assert by_tokens[2] == order


@pytest.mark.parametrize("limit", [20, 33, 50])
def test_tokens_are_never_more_than_allowed(twelve: Source, limit: int) -> None:
    made = distil([twelve], Wishes("rsft", {}, max_tokens=limit), count_tokens=size)
    assert made.tokens is not None and 0 < made.tokens <= limit
    assert made.beyond == 12 - len(made.rows)


def test_other_views_of_the_same_runs_draw_the_same_questions(twelve: Source) -> None:
    drawn = [
        {row["question_id"] for row in distil([twelve], Wishes(view, {}, max_examples=4)).rows}
        for view in ("rsft", "answers")
    ]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 4


def test_nothing_is_one_error_that_says_why(case: Make, reply: Make, twelve: Source, tmp_path: Path) -> None:
    unlabelled = of(case(reply(0, correct=None), key=None))
    with pytest.raises(UsageError, match=r"view rsft takes nothing of one \(replies nobody can call right or wrong: 1"):
        distil([unlabelled], Wishes("rsft", {}))
    with pytest.raises(UsageError, match=r"replies without labels of their steps: 12.*pluribus label one --steps"):
        distil([twelve], Wishes("steps", {}))
    with pytest.raises(UsageError, match="questions without a worked solution: 12"):
        distil([twelve], Wishes("gold", {}))
    with pytest.raises(UsageError, match="--max-tokens 0 holds not even the first reply"):
        distil([twelve], Wishes("rsft", {}, max_tokens=0), count_tokens=size)
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps({"question": one.question.text}) + "\n" for one in twelve.cases))
    with pytest.raises(UsageError, match="questions of an evaluation set: 12"):
        distil([twelve], Wishes("rsft", {}, (str(path),)))


def test_views_and_their_settings_are_checked(twelve: Source) -> None:
    with pytest.raises(UnknownName, match="unknown view 'rft'; did you mean 'rsft'"):
        distil([twelve], Wishes("rft", {}))
    with pytest.raises(UnknownName, match="unknown setting of view gold 'per_question'"):
        distil([twelve], Wishes("gold", {"per_question": 2}))
    with pytest.raises(ConfigError, match="view da: per_question is 4; expected 1, 2 or 3"):
        distil([twelve], Wishes("da", {"per_question": 4}))


def test_copies_are_of_one_question() -> None:
    def row(question: str, text: str) -> dict[str, Any]:
        return {"question_id": question, "completion": [{"content": text}]}

    assert near_copies([row("q", "It is 2."), row("q", "It is  2."), row("r", "It is 2."), row("r", "No.")]) == 0.25
