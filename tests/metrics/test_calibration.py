from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.metrics.calibration import abstain_below, brier, expected_calibration_error, risk_coverage
from pluribus.stats import wilson

pairs = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1
)


def split(drawn: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [c for c, _ in drawn], [r for _, r in drawn]


def test_error_by_hand() -> None:
    # Bins of 1/4: {0.1, 0.2}: mean 0.15 against 1/2; {0.25}: 0.25 against 0; {1.0}: 1 against 1.
    confidence, right = [0.1, 0.2, 0.25, 1.0], [1, 0, 0, 1]
    assert expected_calibration_error(confidence, right, 4) == pytest.approx((0.7 + 0.25) / 4)
    assert expected_calibration_error(confidence, right, 1) == pytest.approx(abs(0.5 - 1.55 / 4))


@pytest.mark.parametrize("place", [29, 57, 58])
def test_the_edge_of_a_bin_is_in_the_bin_it_opens(place: int) -> None:
    """0.29 · 100 is a little less than 29."""
    edge, above = place / 100, place / 100 + 0.004
    assert expected_calibration_error([edge, above], [0, 1], 100) == pytest.approx(abs(0.5 - (edge + above) / 2))


@given(pairs, st.integers(1, 12))
@settings(deadline=None, max_examples=40)
def test_error_is_the_weighted_mean_over_the_bins(drawn: list[tuple[float, float]], bins: int) -> None:
    confidence, right = split(drawn)
    expected = 0.0
    for b in range(bins):
        here = [(c, r) for c, r in drawn if min(int(c * bins), bins - 1) == b]
        if here:
            expected += len(here) / len(drawn) * abs(np.mean([r for _, r in here]) - np.mean([c for c, _ in here]))
    assert expected_calibration_error(confidence, right, bins) == pytest.approx(expected, abs=1e-12)


def test_true_chances_are_calibrated_and_boasting_is_not() -> None:
    rng = np.random.default_rng(0)
    chance = rng.random(50_000)
    right = (rng.random(50_000) < chance).astype(float)
    assert expected_calibration_error(chance.tolist(), right.tolist()) < 0.01
    assert expected_calibration_error(np.sqrt(chance).tolist(), right.tolist()) == pytest.approx(1 / 6, abs=0.01)
    assert brier(chance.tolist(), right.tolist()) == pytest.approx(1 / 6, abs=0.005)


def test_brier_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    confidence, right = rng.random(50).tolist(), rng.integers(0, 2, 50).tolist()
    assert brier(confidence, right) == pytest.approx(metrics.brier_score_loss(right, confidence))


def test_risk_and_coverage_by_hand() -> None:
    found = risk_coverage([0.5, 0.9, 0.5, 0.7, 0.9], [0, 1, 1, 0.5, 1])
    assert found.threshold == (0.9, 0.7, 0.5)
    assert found.coverage == pytest.approx((0.4, 0.6, 1.0))
    assert found.risk == pytest.approx((0.0, 0.5 / 3, 0.3))
    assert found.area == pytest.approx(0.4 * 0 + 0.2 * 0.5 / 3 + 0.4 * 0.3)


@given(pairs)
@settings(deadline=None, max_examples=40)
def test_each_threshold_keeps_what_is_at_least_as_sure(drawn: list[tuple[float, float]]) -> None:
    confidence, right = split(drawn)
    found = risk_coverage(confidence, right)
    assert found.threshold == tuple(sorted(set(confidence), reverse=True))
    at = dict(zip(found.threshold, zip(found.coverage, found.risk, strict=True), strict=True))
    for threshold, (coverage, risk) in at.items():
        kept = [r for c, r in drawn if c >= threshold]
        assert (coverage, risk) == pytest.approx((len(kept) / len(drawn), 1 - sum(kept) / len(kept)), abs=1e-12)
    assert found.area == pytest.approx(np.mean([at[c][1] for c in confidence]), abs=1e-12)
    assert risk_coverage(confidence[::-1], right[::-1]).area == pytest.approx(found.area)


def test_a_better_order_has_less_area() -> None:
    right = [1.0] * 60 + [0.0] * 40
    good = risk_coverage([1 - q / 100 for q in range(100)], right)
    none = risk_coverage([0.5] * 100, right)
    bad = risk_coverage([q / 100 for q in range(100)], right)
    assert none.area == pytest.approx(0.4)
    assert good.area < none.area < bad.area


@given(pairs, st.sampled_from([0.1, 0.3, 0.6, 0.9]))
@settings(deadline=None, max_examples=60)
def test_the_threshold_is_the_lowest_that_is_shown_to_do(drawn: list[tuple[float, float]], target: float) -> None:
    confidence, right = split(drawn)
    shown = []
    for threshold in set(confidence):
        kept = [r for c, r in drawn if c >= threshold]
        if wilson(sum(kept), len(kept))[0] >= target:
            shown.append(threshold)
    assert abstain_below(confidence, right, target) == min(shown, default=None)


def test_the_search_fails_seldom_where_confidence_tells_something_and_more_often_where_it_tells_nothing() -> None:
    """What its page says: accuracy below the target all the way, or rising with the confidence."""
    rng = np.random.default_rng(0)
    told = untold = 0
    for _ in range(300):
        level = rng.integers(1, 6, 300) / 5
        at = abstain_below(level, rng.random(300) < 0.6 + 0.35 * level, 0.85)
        kept = np.arange(1, 6) / 5
        told += at is not None and float((0.6 + 0.35 * kept[kept >= at]).mean()) < 0.85 - 1e-9
        untold += abstain_below(level, rng.random(300) < 0.799, 0.8) is not None
    assert told / 300 <= 0.03
    assert 0.03 <= untold / 300 <= 0.1, "several looks at one sample"


def test_a_target_that_few_questions_can_not_show_is_never_reached() -> None:
    assert abstain_below([0.9] * 20, [1] * 20, 0.9) is None
    assert abstain_below([0.9] * 40, [1] * 40, 0.9) == 0.9
    assert abstain_below([0.9] * 20, [1] * 20, 0.9, confidence=0.5) == 0.9
    assert abstain_below([0.9] * 4000, [1] * 3500 + [0] * 500, 0.9) is None


@pytest.mark.parametrize(
    ("confidence", "right", "told"),
    [
        ([], [], "0 confidences and 0 results"),
        ([0.5], [1, 0], "1 confidences and 2 results"),
        ([0.5, -0.1], [1, 0], "confidences: -0.1 of question 1"),
        ([0.5, math.nan], [1, 0], "confidences: nan of question 1"),
        ([0.5], [1.5], "results: 1.5 of question 0"),
    ],
)
def test_bad_input_is_named(confidence: list[float], right: list[float], told: str) -> None:
    for measure in (expected_calibration_error, brier, risk_coverage):
        with pytest.raises(ValueError, match=told):
            measure(confidence, right)
    with pytest.raises(ValueError, match=told):
        abstain_below(confidence, right, 0.8)


def test_other_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="0 bins"):
        expected_calibration_error([0.5], [1], 0)
    with pytest.raises(ValueError, match="accuracy 1 is not in"):
        abstain_below([0.5], [1], 1)
