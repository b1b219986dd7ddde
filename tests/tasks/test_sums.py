"""The made-up word problems: the same everywhere, disjoint splits, no solution in the question."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from itertools import islice, takewhile

import pytest

from pluribus.errors import UnknownName
from pluribus.steps import split_steps
from pluribus.tasks import sums
from pluribus.tasks.sums import Step, check_steps, equations, load, problem
from pluribus.types import Key, Question
from pluribus.zoo.language import STYLES, mistaken, right, solution


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


def test_longer_questions_take_seven_or_eight_steps() -> None:
    found = [question for question, _ in islice(load("test", subset="longer"), 200)]
    assert Counter(question.metadata["steps"] for question in found).keys() == {7, 8}
    assert found[0].id == "sums/longer/test/0"
    for number in range(200):
        heap = problem("test", number, "longer")
        assert all(0 < e.result <= sums.LARGEST for e in equations(heap.start, heap.steps))


def test_distracted_questions_hold_three_or_four_idle_sentences() -> None:
    found = [question for question, _ in islice(load("dev", subset="distracted"), 200)]
    assert Counter(question.metadata["distractors"] for question in found).keys() == {3, 4}
    assert found[7].id == "sums/distracted/dev/7"


def test_a_question_is_mixed_or_unmixed_and_keeps_its_name() -> None:
    mixed, unmixed = (list(takewhile(_early, load("dev", subset=name))) for name in ("mixed", "unmixed"))
    assert sorted([*mixed, *unmixed], key=_number) == list(takewhile(_early, load("dev")))
    assert 0.28 < len(mixed) / (len(mixed) + len(unmixed)) < 0.38
    assert all(_meet(question.metadata["skills"]) for question, _ in mixed)
    assert not any(_meet(question.metadata["skills"]) for question, _ in unmixed)
    assert {skill for question, _ in unmixed for skill in question.metadata["skills"]} == set(sums.SKILLS)


@pytest.mark.parametrize("stream", sums.STREAMS)
def test_no_sum_of_a_stream_is_trained_on(stream: str) -> None:
    drawn = {(p.start, p.steps) for p in (problem("test", index, stream) for index in range(400))}
    trained = {(p.start, p.steps) for p in (problem("train", index, stream) for index in range(400))}
    assert not drawn & (trained | {(p.start, p.steps) for p in _some("train", 1500)})


@pytest.mark.parametrize("style", ("plain", *STYLES))
def test_every_step_of_a_right_reply_is_good_whatever_its_style(style: str) -> None:
    for index, (question, key) in enumerate(islice(load("test"), 60)):
        steps = split_steps(right(problem("test", index), style, random.Random(index)))
        assert check_steps(question, key, steps) == [True] * len(steps), steps


@pytest.mark.parametrize("style", ("plain", *STYLES))
def test_a_mistake_is_found_where_it_was_made(style: str) -> None:
    """The gold equations that a reply begins with are good, the first other one and all behind it are not."""
    for index, (question, key) in enumerate(islice(load("test"), 60)):
        heap, rng = problem("test", index), random.Random(index)
        found = mistaken(heap, rng)
        steps = split_steps(solution(found, heap.start, heap.steps, style, 10))
        gold = equations(heap.start, heap.steps)
        pairs = zip(map(str, found), map(str, gold), strict=False)
        same = next((i for i, (mine, true) in enumerate(pairs) if mine != true), min(len(found), len(gold)))
        beside = 1 if style in ("explore", "formal", "estimate") else int(style == "verify" and same == len(found))
        good = [True] * (same + beside)
        assert check_steps(question, key, steps) == good + [False] * (len(steps) - len(good)), steps


@pytest.mark.parametrize(
    ("steps", "marks"),
    [
        (["5 + 30 = 35.", "41 + 35 = 76.", "{final answer: 76}"], [True, True, True]),
        (["First, 30 + 5 = 35.", "30 + 5 = 35, so 35 + 41 = 76."], [True, True]),
        (["30 + 5 = 35.", "check: 35 - 5 = 30.", "check: 35 - 5 = 31."], [True, True, False]),
        (["30 + 71 = 101."], [False]),
        (["30 + 5 = 36.", "30 + 5 = 35.", "35 + 41 = 76."], [False, False, False]),
        (["about 70.", "{final answer: 76}"], [True, True]),
        (["about 70.", "The answer is 70."], [True, False]),
        (["30 + 5 + 41 = 76.", "The answer is 76."], [None, None]),
        (["30 + 5 + 41 = 77.", "The answer is 77."], [None, False]),
        (["x = 30 + 5.", "1.30 + 5 = 6.30.", "35 + 41 = 77."], [None, None, False]),
        (["41 + 35 = 76.", "30 + 5 = 35."], [False, False]),
        (["30 + 5 =", "Hm."], [None, None]),
        ([], []),
    ],
)  # fmt: skip
def test_steps_are_held_against_the_worked_solution(steps: list[str], marks: list[bool | None]) -> None:
    question, key = next(load("test"))
    assert check_steps(question, key, steps) == marks


def test_nobody_can_say_without_a_worked_solution() -> None:
    question, key = next(load("test"))
    assert check_steps(question, replace(key, solution=None), ["30 + 5 = 35.", "Hm."]) == [None, None]


def test_unknown_names_are_errors() -> None:
    with pytest.raises(UnknownName, match="distracted, longer"):
        problem("test", 0, "4")
    with pytest.raises(UnknownName, match="train"):
        next(load("tset"))
    with pytest.raises(UnknownName, match="2, 3, 4"):
        next(load("test", subset="9"))


def test_a_third_that_does_not_divide_is_rounded_down() -> None:
    assert equations(10, (Step("third", 3),))[0].result == 3


def test_two_thousand_questions_of_the_endless_split_are_all_different() -> None:
    assert len({found.text for found in _some("train", 2000)}) == 2000


def _number(pair: tuple[Question, Key]) -> int:
    return int(pair[0].id.rpartition("/")[2])


def _early(pair: tuple[Question, Key]) -> bool:
    return _number(pair) < 500


def _meet(skills: list[str]) -> bool:
    """The definition, written out."""
    pairs = (("subtract", "percent"), ("groups", "third"), ("half", "remainder"))
    return any(one in skills and other in skills for one, other in pairs)


def _some(split: str, count: int) -> list[sums.Problem]:
    return [problem(split, index) for index in range(count)]


def _value(left: str) -> int:
    first, sign, second = left.replace("% of", " of").split()
    a, b = int(first), int(second)
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // b, "of": a * b // 100, "mod": a % b}[sign]
