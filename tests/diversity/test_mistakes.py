from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from pluribus.diversity.mistakes import double_fault, error_correlation, mean_error_correlation, oracle

NAN = math.nan
THREE = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]])
"""Errors: a in questions 1, 3; b in 1; c in 0, 2."""


def planted(rho: float, n: int, agents: int, seed: int, p: float = 0.3) -> np.ndarray:
    """With probability rho all agents share one coin, else each has its own: errors correlate by exactly rho."""
    rng = np.random.default_rng(seed)
    shared = rng.random((n, 1)) < rho
    wrong = np.where(shared, rng.random((n, 1)) < p, rng.random((n, agents)) < p)
    return 1.0 - wrong


def test_three_agents_by_hand() -> None:
    # φ_ab = (4·1 − 2·1) / √(2·2·1·3) = 1/√3; φ_ac = (4·0 − 2·2) / √(2·2·2·2) = −1; φ_bc = (0 − 1·2) / √(1·3·2·2).
    ab, ac, bc = 1 / math.sqrt(3), -1, -1 / math.sqrt(3)
    expected = np.array([[1, ab, ac], [ab, 1, bc], [ac, bc, 1]])
    assert error_correlation(THREE) == pytest.approx(expected, abs=1e-12)
    mean = mean_error_correlation(THREE, resamples=50)
    assert mean is not None
    assert (mean.value, mean.pairs, mean.undefined) == (pytest.approx(-1 / 3, abs=1e-12), 3, 0)
    # Both wrong: a and b in question 1 of 4, no other two; alone: 2, 1, 2 of 4.
    assert double_fault(THREE) == pytest.approx(np.array([[2, 1, 0], [1, 1, 0], [0, 0, 2]]) / 4, abs=1e-12)
    # In every question somebody is right.
    assert oracle(THREE).beta == 0


@given(st.integers(2, 5), st.integers(0, 10_000))
def test_phi_is_pearsons_correlation_on_the_shared_questions(agents: int, seed: int) -> None:
    right = np.random.default_rng(seed).choice([0.0, 1.0, NAN], (30, agents), p=[0.4, 0.4, 0.2])
    phi = error_correlation(right)
    for i in range(agents):
        for j in range(agents):
            both = right[~np.isnan(right[:, [i, j]]).any(axis=1)][:, [i, j]]
            if len(both) and both.std(axis=0).all():
                assert phi[i, j] == pytest.approx(np.corrcoef(both.T)[0, 1], abs=1e-9)
            else:
                assert np.isnan(phi[i, j])
            assert double_fault(right)[i, j] == pytest.approx((both == 0).all(axis=1).mean())


def test_pairs_with_one_that_never_or_always_errs_are_left_out_and_counted() -> None:
    right = np.column_stack([THREE, np.ones(4), np.zeros(4)])
    mean = mean_error_correlation(right, resamples=50)
    assert mean is not None
    assert (mean.value, mean.pairs, mean.undefined) == (pytest.approx(-1 / 3), 3, 7)
    assert mean_error_correlation(right[:, 3:]) is None
    assert mean_error_correlation(right[:, :1]) is None
    assert mean_error_correlation(np.zeros((0, 3))) is None


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.7])
def test_the_interval_covers_a_planted_correlation_as_often_as_it_says(rho: float) -> None:
    means = [mean_error_correlation(planted(rho, 300, 5, seed), resamples=300, seed=seed) for seed in range(100)]
    assert sum(m.low < rho < m.high for m in means if m) >= 88
    assert (sum(m.p < 0.05 for m in means if m) <= 12) == (rho == 0)
    assert np.mean([m.value for m in means if m]) == pytest.approx(rho, abs=0.01)


def test_copies_correlate_fully() -> None:
    mean = mean_error_correlation(planted(1.0, 100, 4, 0))
    assert mean is not None
    assert (mean.value, mean.low, mean.high, mean.pairs) == pytest.approx((1, 1, 1, 6))


@pytest.mark.parametrize("unknown", [0.0, 0.2])
def test_the_interval_is_that_of_resampled_rows(unknown: float) -> None:
    rng = np.random.default_rng(5)
    right = planted(0.4, 150, 4, 5)
    right[rng.random(right.shape) < unknown] = NAN
    pairs = np.triu_indices(4, 1)
    means = [error_correlation(right[rng.integers(0, 150, 150)])[pairs].mean() for _ in range(2_000)]
    got = mean_error_correlation(right, resamples=2_000, seed=9)
    assert got is not None
    assert (got.low, got.high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.015)
    assert got == mean_error_correlation(right, resamples=2_000, seed=9)
    assert got != mean_error_correlation(right, resamples=2_000, seed=10)


@pytest.mark.parametrize(("lost", "n"), [(0, 12), (3, 40), (40, 40), (57, 1319)])
def test_the_all_wrong_rate_has_the_exact_interval(lost: int, n: int) -> None:
    right = np.zeros((n, 3))
    right[lost:, 1] = 1
    got = oracle(right)
    assert got is not None
    interval = binomtest(lost, n).proportion_ci(method="exact")
    assert (got.low, got.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert (got.beta, got.n, got.oracle) == (lost / n, n, pytest.approx(1 - lost / n))


def test_the_oracle_counts_questions_with_any_known_answer() -> None:
    got = oracle([[NAN, 0], [NAN, NAN], [1, NAN], [0, 0]])
    assert got is not None
    assert (got.beta, got.n) == (2 / 3, 3)
    assert oracle([[NAN, NAN]]) is None
    assert oracle(np.zeros((0, 3))) is None


def test_wrong_codes_and_shapes_are_named() -> None:
    with pytest.raises(ValueError, match=r"hold 0\.5; expected 1 \(right\)"):
        oracle([[0.5, 1]])
    with pytest.raises(ValueError, match=r"shape \(2,\); expected \(questions, agents\)"):
        double_fault([0, 1])
    with pytest.raises(ValueError, match="0 resamples"):
        mean_error_correlation(THREE, resamples=0)
