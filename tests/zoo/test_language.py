"""Worked solutions: right ones are right, wrong ones are wrong by one mistake and consistent after it."""

from __future__ import annotations

import random
import re

import pytest

from pluribus.tasks.sums import Equation, Problem, Step, problem
from pluribus.zoo.language import _BODIES, PLAIN, STYLES, _inverse, right, wrong

STEPS = (Step("add", 7), Step("groups", 4, 3), Step("half", 2))
SUM = Problem("", 12, STEPS, (99,))


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("plain", "12 + 7 = 19. 3 * 4 = 12. 19 + 12 = 31. 31 / 2 = 15."),
        ("verify", "12 + 7 = 19. 3 * 4 = 12. 19 + 12 = 31. 31 / 2 = 15. check: 15 * 2 = 31."),
        ("explore", "in short: 12, +7, 3 of 4, half. 12 + 7 = 19. 3 * 4 = 12. 19 + 12 = 31. 31 / 2 = 15."),
        ("formal", "given 12. let a: 12 + 7 = 19. let b: 3 * 4 = 12. let c: 19 + 12 = 31. let d: 31 / 2 = 15."),
        ("decompose", "1) 12 + 7 = 19. 2) 3 * 4 = 12. 3) 19 + 12 = 31. 4) 31 / 2 = 15."),
    ],
)
def test_styles(style: str, expected: str) -> None:
    assert right(SUM, style, random.Random(0)) == expected + " {final answer: 15}"


def test_estimate_opens_with_a_round_number() -> None:
    assert re.match(r"about (10|20)\. 12 \+ 7", right(SUM, "estimate", random.Random(0)))


def test_every_style_word_has_a_style() -> None:
    assert set(_BODIES) == {PLAIN, *STYLES}


def test_wrong_solutions_end_in_another_answer() -> None:
    rng = random.Random(0)
    for index in range(300):
        found = problem("train", index)
        text = wrong(found, PLAIN, rng)
        assert text.endswith("}")
        assert f"{{final answer: {found.answer}}}" not in text


def test_wrong_solutions_name_the_answer_they_reach() -> None:
    rng = random.Random(1)
    for index in range(100):
        text = wrong(problem("train", index), PLAIN, rng)
        reached = re.findall(r"= (\d+)\.", text)[-1]
        assert text.endswith(f"{{final answer: {reached}}}")


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        (Equation("12 + 7", 19, 0), "19 - 7 = 12"),
        (Equation("12 * 3", 36, 0), "36 / 3 = 12"),
        (Equation("36 / 3", 12, 0), "12 * 3 = 36"),
        (Equation("25% of 40", 10, 0), "10 of 40 = 25%"),
        (Equation("47 mod 10", 7, 0), "40 + 7 = 47"),
    ],
)
def test_the_checking_line_turns_the_equation_round(equation: Equation, expected: str) -> None:
    assert _inverse(equation) == expected
