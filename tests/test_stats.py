from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus import stats


@given(
    st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95, 0.999])
)
def test_intervals_hold_the_proportion_and_the_exact_one_is_wider(trial: tuple[int, int], confidence: float) -> None:
    successes, n = trial
    for low, high in (stats.wilson(successes, n, confidence), stats.clopper_pearson(successes, n, confidence)):
        assert 0 <= low <= successes / n <= high <= 1
        assert high > low


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (8, 10), (10, 10), (500, 1319), (3, 50_000), (1, 2)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_intervals_equal_scipys(successes: int, n: int, confidence: float) -> None:
    scipy = pytest.importorskip("scipy.stats")
    test = scipy.binomtest(successes, n)
    ours = (*stats.wilson(successes, n, confidence), *stats.clopper_pearson(successes, n, confidence))
    theirs = (*test.proportion_ci(confidence, "wilson"), *test.proportion_ci(confidence, "exact"))
    assert ours == pytest.approx(theirs, abs=1e-10)


def test_fractional_credits_have_a_wilson_interval() -> None:
    low, high = stats.wilson(7.5, 10)
    assert low < 0.75 < high


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_impossible_counts_are_errors(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        stats.wilson(successes, n)


def _pairs(only_first: int, only_second: int) -> tuple[list[int], list[int]]:
    return [1] * only_first + [0] * only_second + [1, 0], [0] * only_first + [1] * only_second + [1, 0]


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 0), (4, 0), (3, 5), (10, 10), (200, 260), (1340, 1146)])
def test_mcnemar_is_the_exact_binomial_test(only_first: int, only_second: int) -> None:
    scipy = pytest.importorskip("scipy.stats")
    found = stats.mcnemar(*_pairs(only_first, only_second))
    assert (found.only_first, found.only_second) == (only_first, only_second)
    n = only_first + only_second
    assert found.p == pytest.approx(scipy.binomtest(only_first, n).pvalue if n else 1.0, rel=1e-9)


def test_mcnemar_refuses_fractional_credits() -> None:
    with pytest.raises(ValueError, match="fractional"):
        stats.mcnemar([0.5, 1], [1, 0])


def test_paired_bootstrap_finds_a_difference_and_none() -> None:
    rng = random.Random(0)
    base = [float(rng.random() < 0.5) for _ in range(400)]
    better = [max(b, float(rng.random() < 0.3)) for b in base]
    real = stats.paired_bootstrap(better, base, seed=1)
    assert real.low <= real.value <= real.high
    assert real.low > 0
    assert real.p < 0.001
    assert real == stats.paired_bootstrap(better, base, seed=1)
    few = [stats.paired_bootstrap(better, base, resamples=30, seed=seed) for seed in (1, 2)]
    assert few[0] != few[1]
    none = stats.paired_bootstrap(base, base)
    assert (none.value, none.low, none.high, none.p) == (0.0, 0.0, 0.0, 1.0)


def test_bootstrap_interval_equals_the_normal_one_for_many_values() -> None:
    rng = random.Random(3)
    values = [rng.gauss(0, 1) for _ in range(900)]
    found = stats.paired_bootstrap(values, [0.0] * 900, resamples=4000)
    mean = sum(values) / 900
    deviation = (sum((v - mean) ** 2 for v in values) / 900) ** 0.5 / 30
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.08)


def test_the_interval_is_that_of_the_bootstrap_unless_few_questions_differ() -> None:
    many = [1] * 12 + [0] * 88, [0] * 12 + [0] * 80 + [1] * 8
    assert stats.paired_difference(*many, seed=3) == stats.paired_bootstrap(*many, seed=3)
    few = [1] * 4 + [0] * 96, [0] * 100
    found = stats.paired_difference(*few)
    assert found.value == 0.04
    assert found.low == pytest.approx(stats.clopper_pearson(4, 100)[0] - stats.clopper_pearson(0, 100)[1])
    assert found.high == pytest.approx(stats.clopper_pearson(4, 100)[1])
    assert stats.paired_difference(*few[::-1]).low == pytest.approx(-found.high)


def test_clusters_widen_the_interval_of_repeated_values() -> None:
    credits = [0.0, 1.0] * 20
    alone = stats.cluster_bootstrap(credits, list(range(40)))
    eightfold = stats.cluster_bootstrap(
        [c for c in credits for _ in range(8)], [q for q in range(40) for _ in range(8)]
    )
    as_if_independent = stats.cluster_bootstrap([c for c in credits for _ in range(8)], list(range(320)))
    assert eightfold.value == alone.value == 0.5
    assert (eightfold.low, eightfold.high) == pytest.approx((alone.low, alone.high), abs=0.02)
    assert as_if_independent.high - as_if_independent.low < (eightfold.high - eightfold.low) / 2


def test_a_cluster_counts_by_its_size() -> None:
    assert stats.cluster_bootstrap([1, 1, 1, 0], ["a", "a", "a", "b"]).value == 0.75


def test_lengths_must_match() -> None:
    with pytest.raises(ValueError, match="same questions"):
        stats.paired_bootstrap([1], [1, 0])
    with pytest.raises(ValueError, match="one cluster per value"):
        stats.cluster_bootstrap([1], [])


def test_holm_steps_down_and_keeps_the_order() -> None:
    assert stats.holm([0.04, 0.01, 0.5, 0.02]) == pytest.approx([0.08, 0.04, 0.5, 0.06])
    assert stats.holm([]) == []
    with pytest.raises(ValueError, match="0, 1"):
        stats.holm([1.2])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_never_smaller_than_the_p_value_and_never_larger_than_bonferroni(pvalues: list[float]) -> None:
    for p, adjusted in zip(pvalues, stats.holm(pvalues), strict=True):
        assert p <= adjusted <= min(1.0, len(pvalues) * max(pvalues))
        assert adjusted >= min(1.0, p)


@pytest.mark.parametrize(("discordance", "effect"), [(0.1, 0.05), (0.2, 0.04), (0.3, 0.1), (0.5, -0.08), (0.15, 0.02)])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_the_questions_needed_give_the_exact_test_its_power(discordance: float, effect: float, power: float) -> None:
    np, binom = pytest.importorskip("numpy"), pytest.importorskip("scipy.stats").binom
    n = stats.questions_needed(discordance, effect, power)
    pairs = np.random.default_rng(0).multinomial(
        n, [(discordance + effect) / 2, (discordance - effect) / 2, 1 - discordance], size=40_000
    )
    p = 2 * binom.cdf(pairs[:, :2].min(axis=1), pairs[:, :2].sum(axis=1), 0.5)
    assert (p <= 0.05).mean() == pytest.approx(power, abs=0.02)


def test_smaller_effects_more_power_and_more_discordance_need_more_questions() -> None:
    base = stats.questions_needed(0.2, 0.04)
    assert stats.questions_needed(0.2, 0.02) > 3 * base
    assert stats.questions_needed(0.2, 0.04, power=0.95) > base
    assert stats.questions_needed(0.2, 0.04, alpha=0.01) > base
    assert stats.questions_needed(0.4, 0.04) > 1.5 * base
    assert stats.questions_needed(0.2, -0.04) == base


@pytest.mark.parametrize(
    "arguments", [(0.2, 0.0), (0.2, 0.21), (0.0, 0.0), (1.1, 0.5), (0.2, 0.1, 1.0), (0.2, 0.1, 0.8, 0)]
)
def test_impossible_plans_are_errors(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"effect|power"):
        stats.questions_needed(*arguments)
