"""The three tasks in one view: right replies are right, wrong ones are wrong by one mistake and say so."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from pluribus.answers import read
from pluribus.prompts import dialect, render
from pluribus.tasks import load_task
from pluribus.zoo.cases import STYLES, TASKS, draw, leading, take
from pluribus.zoo.language import PLAIN
from pluribus.zoo.play import tag


@pytest.mark.parametrize("task", TASKS)
def test_a_case_is_the_tasks_question_as_the_product_sends_it(task: str) -> None:
    for index, (question, key) in enumerate(load_task(task, limit=30).pairs):
        found = take(task, "test", index)
        assert render(dialect("zoo"), "answer", question)[-1].content == found.question
        assert key is not None
        assert key.answer == found.answer


@pytest.mark.parametrize("task", TASKS)
def test_right_replies_are_read_as_the_key(task: str) -> None:
    rng = random.Random(0)
    for index, (question, key) in enumerate(load_task(task, limit=20).pairs):
        for style in (PLAIN, *STYLES[task]):
            assert key is not None
            assert read(question, take(task, "test", index).right(style, rng).text) == key.answer


@pytest.mark.parametrize("task", TASKS)
def test_wrong_replies_are_wrong_and_name_what_they_reach(task: str) -> None:
    rng = random.Random(1)
    shares: Counter[float] = Counter()
    for _ in range(200):
        found = draw(rng, task, {})
        wrong = found.mistake(rng.choice((PLAIN, *STYLES[task])), rng, {})
        assert wrong.answer != found.answer
        assert tag(wrong.text, "final answer") == wrong.answer
        shares[wrong.share] += 1
    assert max(shares) < 1.0
    assert len(shares) > 3


def test_each_style_of_a_task_is_its_own() -> None:
    rng = random.Random(2)
    for task in TASKS:
        found = take(task, "test", 2)
        assert len({found.right(style, rng).text for style in (PLAIN, *STYLES[task])}) == len(STYLES[task]) + 1


def test_mistakes_sit_where_they_are_expected() -> None:
    rng = random.Random(3)
    found = take("briefs", "test", 0)
    at_first = sum(found.mistake(PLAIN, rng, {found.skills[0]: 1e6}).share == 0.0 for _ in range(50))
    at_last = sum(found.mistake(PLAIN, rng, {found.skills[-1]: 1e6}).share == 0.0 for _ in range(50))
    assert at_first > 40 > 10 > at_last


def test_the_share_counts_leading_lines_only() -> None:
    assert leading(["x", "b"], ["a", "b"]) == 0.0
    assert leading(["a", "b", "c"], ["a", "b"]) == 1.0
