from __future__ import annotations

import json
import math
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.codec import decode, encode
from pluribus.consensus.confidence import KINDS, Calibration, confidence, fit, support
from pluribus.errors import UnknownName

GRID = [0.2, 0.4, 0.6, 0.8, 1.0]


def drawn(n: int, seed: int) -> tuple[list[float], list[float]]:
    """Supports on a grid, right with a chance of 1 / (1 + exp(−(6 s − 3)))."""
    rng = np.random.default_rng(seed)
    supports = rng.choice(GRID, n)
    return supports.tolist(), (rng.random(n) < chance(supports)).astype(float).tolist()


def chance(support: Any) -> Any:
    return 1 / (1 + np.exp(-(6 * support - 3)))


def test_support_counts_the_silent() -> None:
    assert support({"4": 3.0, "5": 1.0}, 5.0) == 0.6
    assert support({"4": 0.1 + 0.2}, 0.3) == 1.0
    assert support({}, 3.0) == support({"4": 0.0}, 0.0) == support({}, 0.0) == 0.0


@pytest.mark.parametrize(
    ("counts", "total"), [({"4": 3.0}, 2.0), ({"4": -1.0}, 2.0), ({"4": 1.0}, math.inf), ({"4": math.nan}, 1.0)]
)
def test_counts_that_do_not_fit_their_total_are_refused(counts: dict[str, float], total: float) -> None:
    with pytest.raises(ValueError, match="expected counts of at least 0 within the total"):
        support(counts, total)


# --- isotonic --------------------------------------------------------------------------------------------------------


def test_isotonic_by_hand() -> None:
    # With one right at 0.2 and one wrong at 0.8: 0.2: 1/3, 0.4: 2/2, 0.6: 1/2, 0.8: 3/4. 0.4 and 0.6 pool to 3/4, and
    # so do they with 0.8: means that are equal are one block of 6/8.
    supports = [0.2] * 2 + [0.4] * 2 + [0.6] * 2 + [0.8] * 3
    found = fit(supports, [0, 0, 1, 1, 0, 1, 1, 1, 1])
    assert found == Calibration("isotonic", ((0.2, 1 / 3), (0.4, 0.75), (0.8, 0.75)), n=9)
    assert confidence(found, 0.3) == pytest.approx((1 / 3 + 0.75) / 2)
    assert (confidence(found, 0.0), confidence(found, 1.0)) == (1 / 3, 0.75)


@pytest.mark.parametrize("n", [1, 20, 1000])
def test_no_certainty_from_n_questions(n: int) -> None:
    assert confidence(fit([0.9] * n, [1.0] * n), 0.9) == pytest.approx((n + 1) / (n + 2))
    parted = fit([0.3] * n + [0.9] * n, [0.0] * n + [1.0] * n)
    assert confidence(parted, 0.9) == pytest.approx(n / (n + 1))
    assert confidence(parted, 0.3) == pytest.approx(1 / (n + 1))


def test_a_few_lucky_questions_at_the_end_do_not_stand_alone() -> None:
    found = fit([0.6] * 100 + [1.0] * 2, [1.0] * 80 + [0.0] * 20 + [1.0] * 2)
    assert confidence(found, 1.0) == pytest.approx(83 / 104)


results = st.lists(st.tuples(st.sampled_from(GRID), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=30)


@settings(deadline=None, max_examples=50)
@given(results, st.sampled_from(KINDS))
def test_confidence_is_no_certainty_and_does_not_fall(pairs: list[tuple[float, float]], kind: str) -> None:
    supports, right = zip(*pairs, strict=True)
    found = fit(supports, right, kind)
    chances = [confidence(found, at / 50) for at in range(51)]
    assert chances[0] > 0
    assert chances[-1] < 1
    assert all(after >= before - 1e-12 for before, after in pairwise(chances))
    turned = fit(supports[::-1], right[::-1], kind)
    assert [confidence(turned, at / 50) for at in range(51)] == pytest.approx(chances, abs=1e-9)
    assert found.n == len(pairs)


def test_isotonic_is_scikit_learns_with_the_two_made_up_questions() -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        supports, right = rng.random(80).round(2).tolist(), rng.random(80).round(1).tolist()
        theirs = isotonic.IsotonicRegression(out_of_bounds="clip")
        theirs.fit([*supports, min(supports), max(supports)], [*right, 1.0, 0.0])
        found = fit(supports, right)
        at = np.linspace(0, 1, 101)
        assert [confidence(found, float(x)) for x in at] == pytest.approx(theirs.predict(at), abs=1e-9)


def test_isotonic_finds_the_true_chances() -> None:
    supports, right = drawn(20_000, seed=0)
    found = fit(supports, right)
    assert [confidence(found, at) for at in GRID] == pytest.approx([float(chance(at)) for at in GRID], abs=0.025)


# --- Platt -----------------------------------------------------------------------------------------------------------


def test_platt_by_hand() -> None:
    # Two supports, two parameters: each gets the mean of its targets. 3 right and 1 wrong, right 4/5 and wrong 1/3:
    # at 0.4 (1/3 + 4/5) / 2 = 17/30, at 0.8 4/5.
    found = fit([0.4, 0.4, 0.8, 0.8], [0, 1, 1, 1], "platt")
    assert (confidence(found, 0.4), confidence(found, 0.8)) == pytest.approx((17 / 30, 4 / 5), abs=1e-8)
    assert found.slope == pytest.approx((math.log(4) - math.log(17 / 13)) / 0.4)


def test_platt_is_scikit_learns_logistic_regression_on_platts_targets() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    for n, seed in ((12, 3), (200, 4)):
        supports, right = drawn(n, seed)
        good = sum(right)
        high, low = (good + 1) / (good + 2), 1 / (n - good + 2)
        target = np.array([high if x else low for x in right])
        twice = np.array(supports * 2)[:, None]
        theirs = linear_model.LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
        theirs.fit(twice, [1] * n + [0] * n, sample_weight=[*target, *(1 - target)])
        found = fit(supports, right, "platt")
        expected = theirs.predict_proba(np.array(GRID)[:, None])[:, 1]
        assert [confidence(found, at) for at in GRID] == pytest.approx(expected, abs=1e-5)


def test_platt_finds_the_true_chances() -> None:
    found = fit(*drawn(20_000, seed=1), "platt")
    assert (found.slope, found.intercept) == (pytest.approx(6, abs=0.3), pytest.approx(-3, abs=0.2))


def test_all_right_or_all_of_one_support() -> None:
    assert confidence(fit([0.2, 0.9] * 10, [1.0] * 20, "platt"), 0.5) == pytest.approx(21 / 22)
    same = fit([0.7] * 20, [1.0] * 15 + [0.0] * 5, "platt")
    target = (15 * 16 / 17 + 5 / 7) / 20
    assert (confidence(same, 0.1), confidence(same, 0.7)) == pytest.approx((target, target))


def test_more_support_is_never_less_sure() -> None:
    supports, right = [0.4] * 20 + [0.9] * 20, [1.0] * 15 + [0.0] * 5 + [0.0] * 15 + [1.0] * 5
    for kind in KINDS:
        found = fit(supports, right, kind)
        assert confidence(found, 0.4) == pytest.approx(confidence(found, 0.9)) == pytest.approx(0.5)


def test_extreme_numbers_stay_off_0_and_1() -> None:
    sure = Calibration("platt", slope=1e6, intercept=-5e5)
    assert 0 < confidence(sure, 0.0) < 1e-9
    assert 1 - 1e-9 < confidence(sure, 1.0) < 1


# --- both ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_calibration_survives_json(kind: str) -> None:
    found = fit(*drawn(50, seed=2), kind)
    assert decode(Calibration, encode(found)) == found
    loaded = json.loads(json.dumps(asdict(found)))
    points = tuple((at, value) for at, value in loaded.pop("points"))
    assert Calibration(points=points, **loaded) == found


@pytest.mark.parametrize(
    ("supports", "right", "told"),
    [
        ([], [], "0 supports and 0 results"),
        ([0.5], [1, 0], "1 supports and 2 results"),
        ([0.5, 1.5], [1, 0], "supports: 1.5 of question 1"),
        ([0.5, math.nan], [1, 0], "supports: nan of question 1"),
        ([0.5], [2], "results: 2 of question 0"),
    ],
)
def test_fit_names_bad_input(supports: list[float], right: list[float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        fit(supports, right)


def test_other_bad_input_is_named() -> None:
    with pytest.raises(UnknownName, match=r"unknown kind of calibration 'isotonik'; did you mean 'isotonic'\?"):
        fit([0.5], [1], "isotonik")
    with pytest.raises(ValueError, match="support nan is not in"):
        confidence(fit([0.5], [1]), math.nan)
    with pytest.raises(ValueError, match="a platt calibration without its numbers"):
        confidence(Calibration("platt"), 0.5)
