"""The alarm rings when judges grow fonder of a model that grows worse, and only then."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pluribus.consensus.alarm import drift
from pluribus.stats import paired_difference

UP, DOWN = ([0.4, 0.5, 0.6] * 30, [0.6, 0.6, 0.7] * 30), ([1, 1, 0, 1] * 30, [1, 0, 0, 1] * 30)


def test_agreement_up_and_accuracy_down_is_an_alarm() -> None:
    found = drift(*UP, *DOWN)
    assert found.alarm
    assert found.suspect
    assert found.agreement.low > 0 > found.accuracy.high
    assert (found.questions, found.held_out) == (90, 120)


def test_any_other_course_is_none() -> None:
    up, down = UP, DOWN
    for agreement, right in [(up, down[::-1]), (up[::-1], down), (up[::-1], down[::-1]), (up, (down[0], down[0]))]:
        found = drift(*agreement, *right)
        assert not found.alarm
        assert not found.suspect


def test_few_held_out_questions_make_a_suspicion() -> None:
    found = drift(*UP, [1, 1, 0, 1], [1, 0, 0, 1])
    assert (found.alarm, found.suspect) == (False, True)
    assert found.accuracy.value == -0.25


def test_agreement_that_may_not_have_risen_makes_a_suspicion() -> None:
    found = drift([0.4, 0.6], [0.5, 0.6], *DOWN)
    assert (found.alarm, found.suspect) == (False, True)


def test_differences_are_after_minus_before_and_paired() -> None:
    rng = np.random.default_rng(0)
    before, after, right, later = rng.random(40), rng.random(40), rng.random(30) < 0.7, rng.random(30) < 0.5
    found = drift(before, after, right, later, seed=3)
    assert found.agreement == paired_difference(after.tolist(), before.tolist(), seed=3)
    assert found.accuracy == paired_difference(later.astype(float).tolist(), right.astype(float).tolist(), seed=3)


def test_independent_courses_ring_rarely() -> None:
    rng = np.random.default_rng(0)
    draws = [drift(*rng.random((2, 60)), *(rng.random((2, 60)) < 0.6)) for _ in range(40)]
    assert sum(found.alarm for found in draws) <= 1
    assert 4 <= sum(found.suspect for found in draws) <= 18


def test_what_is_not_known_on_both_sides_is_left_out() -> None:
    found = drift([0.1, None, 0.3], [0.2, 0.9, math.nan], [1, None, 0], [0, 1, 0])
    assert (found.questions, found.held_out) == (1, 2)
    assert found.agreement.value == pytest.approx(0.1)
    assert found.accuracy.value == -0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: [0.1]}, "agreement of 1 questions before and 2 after: expected the same questions"),
        ({2: [None, 1], 3: [1, None]}, "accuracy is known of no question both before and after"),
        ({0: [], 1: []}, "agreement is known of no question"),
        ({3: [0, 7]}, r"accuracy lies between 0\.0 and 7\.0: expected numbers in \[0, 1\]"),
        ({1: [-0.5, 0.5]}, r"agreement lies between -0\.5 and 0\.5"),
        ({2: [math.inf, 0]}, "accuracy 0 is inf"),
    ],
)
def test_bad_input_is_one_line(change: dict[int, list[float | None]], words: str) -> None:
    sides: list[list[float | None]] = [[0.1, 0.5], [0.2, 0.5], [1, 0], [1, 0]]
    for place, values in change.items():
        sides[place] = values
    with pytest.raises(ValueError, match=words) as error:
        drift(*sides)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
