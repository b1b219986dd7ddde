"""The made-up word problems: the same everywhere, disjoint splits, no solution in the question."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import islice

import pytest

from pluribus.errors import UnknownName
from pluribus.tasks import sums
from pluribus.tasks.sums import Step, equations, load, problem


def test_question_zero_is_the_same_on_every_machine() -> None:
    question, key = next(load("test"))
    assert question.id == "sums/test/0"
    assert question.text.startswith("There are 30 plums on the table of Uma. The walk home takes 71 minutes.")
    assert key.answer == "76"


def test_load_twice_gives_the_same() -> None:
    assert list(islice(load("dev"), 30)) == list(islice(load("dev"), 30))


def test_splits_share_no_sum() -> None:
    seen = {split: {(p.start, p.steps) for p in _some(split, 1500)} for split in sums.SPLITS}
    assert not seen["test"] & seen["train"]
    assert not seen["test"] & seen["dev"]
    assert not seen["dev"] & seen["train"]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_split_ends(split: str) -> None:
    with pytest.raises(IndexError):
        problem(split, sums.SIZES[split])


def test_the_question_does_not_hold_the_solution() -> None:
    for question, _ in islice(load("test"), 50):
        assert set(question.metadata) == {"steps", "skills", "distractors"}
        assert "=" not in question.text


def test_every_number_of_the_sum_stands_in_the_text() -> None:
    for found in _some("train", 300):
        numbers = Counter(int(n) for n in re.findall(r"\d+", found.text))
        spoken = [step for step in found.steps if step.skill not in ("half", "third")]
        needed = Counter([found.start, *(step.number for step in spoken), *found.distractors])
        needed.update(step.groups for step in spoken if step.skill == "groups")
        assert numbers == needed


def test_equations_hold_and_values_stay_small() -> None:
    for found in _some("train", 500):
        for equation in equations(found.start, found.steps):
            assert _value(equation.left) == equation.result
            assert 0 < equation.result <= sums.LARGEST


def test_all_skills_come_up_about_equally() -> None:
    counts = Counter(step.skill for found in _some("train", 2000) for step in found.steps)
    shares = [counts[skill] / sum(counts.values()) for skill in sums.SKILLS]
    assert min(shares) > 0.06
    assert max(shares) < 0.20


def test_rates_make_a_skill_rare() -> None:
    rng = random.Random(0)
    drawn = [sums.draw(rng, "train", {"third": 0.1}) for _ in range(1000)]
    counts = Counter(step.skill for found in drawn for step in found.steps)
    assert 0 < counts["third"] < 0.03 * sum(counts.values())


def test_subset_is_the_number_of_steps() -> None:
    assert all(question.metadata["steps"] == 4 for question, _ in islice(load("test", subset="4"), 20))


def test_unknown_names_are_errors() -> None:
    with pytest.raises(UnknownName, match="train"):
        next(load("tset"))
    with pytest.raises(UnknownName, match="2, 3, 4"):
        next(load("test", subset="9"))


def test_a_third_that_does_not_divide_is_rounded_down() -> None:
    assert equations(10, (Step("third", 3),))[0].result == 3


def test_two_thousand_questions_of_the_endless_split_are_all_different() -> None:
    assert len({found.text for found in _some("train", 2000)}) == 2000


def _some(split: str, count: int) -> list[sums.Problem]:
    return [problem(split, index) for index in range(count)]


def _value(left: str) -> int:
    first, sign, second = left.replace("% of", " of").split()
    a, b = int(first), int(second)
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // b, "of": a * b // 100, "mod": a % b}[sign]
