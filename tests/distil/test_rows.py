"""The rows that trainers read: TRL's, verl's, prime-rl's and verifiers' forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pluribus.distil import Case, steps
from pluribus.distil._formats import prime_rl, truths, verifiers, verl
from pluribus.distil._rows import replies, rows
from pluribus.errors import ConfigError
from pluribus.types import Demonstration, Key, Preference, Question, Side, StepMarks

Make = Callable[..., Any]


@pytest.fixture
def cases(case: Make, reply: Make) -> list[Case]:
    return [
        case(reply(0, seat=2, round=1, corrective=True), reply(1, dialect="standard"), split="train"),
        case(reply(0), id="r", key=None),
    ]


def test_a_demonstration_asks_the_plain_question_in_the_words_of_its_seat(cases: list[Case]) -> None:
    taken = [Demonstration("q", "Two.", "q", 0, True, True), Demonstration("q", "Two!", "q", 1, True)]
    first, second = rows("demonstrations", taken, cases, view="da")
    assert first == {
        "prompt": [{"role": "user", "content": "q: 1 + 1?"}],
        "completion": [{"role": "assistant", "content": "Two."}],
        "question_id": "q", "task": "t", "split": "train", "run": "run", "view": "da", "attempt": "q", "turn": 0,
        "seat": 2, "model": "scripted/number", "round": 1, "corrective": True,
    }  # fmt: skip
    (asked,) = second["prompt"]
    assert asked["role"] == "user" and "{final answer: NUMBER}" in asked["content"]


def test_a_column_stands_in_every_row_or_in_none(cases: list[Case]) -> None:
    taken = [Demonstration("q", "Two.", "q", 0, True), Demonstration("r", "Two.", "r", 0, True)]
    found = rows("demonstrations", taken, cases, view="rsft")
    assert all(set(row) == set(found[0]) for row in found)
    assert "split" not in found[0] and "attempt" in found[0]
    nobody = rows("demonstrations", [Demonstration("q", "1 + 1 = 2.")], cases, view="gold")
    assert set(nobody[0]) == {"prompt", "completion", "question_id", "task", "split", "run", "view"}


def test_marked_steps_are_texts(cases: list[Case]) -> None:
    marks = StepMarks("q", "q", 0, ("1 + 1 = 2.", "So 3."), (True, False), False)
    (row,) = rows("steps", [marks], cases, view="steps")
    assert row["prompt"] == "q: 1 + 1?"
    assert (row["completions"], row["labels"], row["correct"]) == (["1 + 1 = 2.", "So 3."], [True, False], False)
    assert (row["attempt"], row["turn"], row["seat"]) == ("q", 0, 2)
    assert replies(row) == ["1 + 1 = 2.\nSo 3."]


def test_a_prompt_of_several_messages_is_no_step_prompt(cases: list[Case], tmp_path: Any) -> None:
    (tmp_path / "answer.txt").write_text("[system]\nBe brief.\n[user]\n$question\n")
    trace = replace(cases[0].traces[0], dialect=str(tmp_path))
    marks = StepMarks("q", "q", 0, ("1",), (True,))
    with pytest.raises(ConfigError, match="asks in 2 messages"):
        rows("steps", [marks], [replace(cases[0], traces=(trace,))], view="steps")


def test_a_pair_of_two_runs_names_both(case: Make, reply: Make) -> None:
    one = case(reply(0, "3"), reply(1, "2"))
    pair = Preference("q", Side("q", 1, "2"), Side("q", 0, "3"), "label")
    (row,) = rows("preferences", [pair], [one], view="preferences")
    assert row["run"] == "run" and "rejected_run" not in row and "view" not in row
    assert replies(row) == ["2", "3"]
    other = replace(one, traces=(replace(one.traces[0], run="other"), one.traces[1]))
    (row,) = rows("preferences", [pair], [other], view="preferences")
    assert (row["run"], row["rejected_run"]) == ("run", "other")


# --- other trainers --------------------------------------------------------------------------------------------------


def test_the_truth_is_the_keys_else_what_a_right_reply_says(case: Make, reply: Make) -> None:
    program = Question("p", "t", "?", "program")
    cases = [
        case(id="key", key=Key("key", "2.0")),
        case(reply(0, correct=False, answer="3"), reply(1, answer="2"), id="said", key=None),
        case(id="none", key=None),
        case(id="p", question=program, key=Key("p", None, tests=("assert True",))),
    ]
    assert truths(cases) == {"key": "2.0", "said": "2"}


def test_three_other_forms(cases: list[Case]) -> None:
    taken = [Demonstration("q", "Two.", "q", 0, True), Demonstration("q", "2!", "q", 0, True)]
    made = rows("demonstrations", taken, cases[:1], view="da")
    answers, kinds = {"q": "2"}, {"q": "number"}
    first, second = verl(made, answers, kinds)
    assert set(first) == {"data_source", "prompt", "ability", "reward_model", "extra_info", "messages"}
    assert (first["data_source"], first["ability"]) == ("t", "number")
    assert first["reward_model"] == {"style": "rule", "ground_truth": "2"}
    assert second["extra_info"]["index"] == 1 and second["extra_info"]["attempt"] == "q"
    assert [message["role"] for message in second["messages"]] == ["user", "assistant"]
    tuned = prime_rl(made, answers, kinds)
    assert [set(row) for row in tuned] == [{"prompt", "completion", "info"}] * 2
    assert json.loads(tuned[0]["info"])["turn"] == 0
    (asked,) = verifiers(made, answers, kinds)
    assert (asked["question"], asked["answer"], asked["task"]) == ("q: 1 + 1?", "2", "t")
    assert asked["prompt"] == made[0]["prompt"] and json.loads(asked["info"])["kind"] == "number"


def test_facts_of_steps_without_an_error() -> None:
    marks = StepMarks("q", "a", 0, ("1",), (True,))
    assert steps.facts([marks]) == steps.Facts(1, 1.0, 0.0, None)
