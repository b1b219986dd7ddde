"""Judges' scores on a common scale, their mean and variance, and what chance makes of them: against definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from pluribus.consensus.rewards import (
    NORMALISE,
    Normalise,
    Scale,
    apply_scale,
    consensus,
    fit_scale,
    krippendorff_alpha,
    learned_weights,
    leave_one_out,
    pair_votes,
    permutation_null,
    status,
    statuses_N,
)
from pluribus.errors import UnknownName

Floats = NDArray[np.float64]
Row = list[float | None]
HOWS: tuple[Normalise, ...] = ("zscore", "minmax", "rank")

units = st.integers(0, 20).map(lambda twentieth: twentieth / 20)
marks = st.lists(st.none() | st.integers(-50, 50).map(float), min_size=1, max_size=30)


def same(scores: Row, how: Normalise) -> list[float]:
    return apply_scale(fit_scale(scores, how), scores).tolist()


def moved(scores: Row, factor: float, offset: float) -> Row:
    return [None if score is None else score * factor + offset for score in scores]


@st.composite
def councils(draw: st.DrawFn, least: int = 1) -> tuple[list[Row], list[float]]:
    judges, items = draw(st.integers(least, 5)), draw(st.integers(1, 8))
    row = st.lists(st.none() | units, min_size=items, max_size=items)
    weights = draw(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 7.0]), min_size=judges, max_size=judges))
    assume(any(weights))
    return draw(st.lists(row, min_size=judges, max_size=judges)), weights


# One judge


def test_zscore_is_the_logistic_of_the_distance_from_the_mean_in_deviations() -> None:
    scores = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]  # mean 5, deviation 2
    scale = fit_scale(scores, "zscore")
    assert (scale.center, scale.spread, scale.n) == (5.0, 2.0, 8)
    assert apply_scale(scale, scores) == pytest.approx([1 / (1 + math.exp(-(s - 5) / 2)) for s in scores], abs=1e-15)


def test_minmax_is_cut_to_the_range_it_was_fitted_on() -> None:
    scale = fit_scale([10, None, 30, 20], "minmax")
    assert apply_scale(scale, [10, 30, 15, 0, 99]).tolist() == [0.0, 1.0, 0.25, 0.0, 1.0]


def test_rank_counts_lower_scores_and_half_of_the_equal_ones() -> None:
    scale = fit_scale([3, 1, 2, 2], "rank")
    assert apply_scale(scale, [1, 2, 3, 0, 2.5, 9]).tolist() == [0.125, 0.5, 0.875, 0.0, 0.75, 1.0]


def test_none_leaves_scores_as_they_are_even_without_spread() -> None:
    assert same([0.9, None, 0.9], "none")[0::2] == [0.9, 0.9]
    assert apply_scale(fit_scale([], "none"), [0.25]).tolist() == [0.25]


@pytest.mark.parametrize("score", [1.5, -0.1])
def test_none_takes_no_score_outside_the_unit_interval(score: float) -> None:
    with pytest.raises(ValueError, match=rf"score 1 is {score}: expected a number in \[0, 1\]"):
        fit_scale([0.5, score], "none")
    with pytest.raises(ValueError, match=rf"score 1 is {score}"):
        apply_scale(fit_scale([0.5], "none"), [0.5, score])


@pytest.mark.parametrize("how", NORMALISE)
def test_infinite_scores_are_refused_by_place(how: Normalise) -> None:
    with pytest.raises(ValueError, match="score 2 is inf: expected a finite number"):
        fit_scale([0.0, None, math.inf], how)
    with pytest.raises(ValueError, match="score 0 is -inf: expected a finite number"):
        apply_scale(fit_scale([0.0, 1.0], how), [-math.inf])


def test_another_way_to_normalise_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match="unknown way to normalise 'z'"):
        fit_scale([1.0], "z")  # type: ignore[arg-type]


@given(marks, st.sampled_from(HOWS))
def test_results_lie_in_the_unit_interval_in_the_order_of_the_scores(scores: Row, how: Normalise) -> None:
    found = same(scores, how)
    assert [math.isnan(x) for x in found] == [score is None for score in scores]
    known = [(s, x) for s, x in zip(scores, found, strict=True) if s is not None]
    assert all(0 <= x <= 1 for _, x in known)
    if len({s for s, _ in known}) > 1:
        assert all((s < t) == (x < y) and (s == t) == (x == y) for s, x in known for t, y in known)
    else:
        assert all(x == 0.5 for _, x in known)


@given(
    marks,
    st.sampled_from(HOWS),
    st.floats(1e-6, 1e6) | st.sampled_from([2.0**-1060, 2.0**-400, 2.0**900]),
    st.floats(-1e9, 1e9),
)
def test_a_constant_and_a_positive_factor_change_nothing(
    scores: Row, how: Normalise, factor: float, offset: float
) -> None:
    plain = same(scores, how)
    assert same(moved(scores, factor, 0.0), how) == pytest.approx(plain, abs=1e-9, nan_ok=True)
    assert same(moved(scores, 1.0, offset), how) == pytest.approx(plain, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("offset", [2.0**40, -(2.0**49), 1e15])
def test_huge_offsets_do_not_round_the_scale(how: Normalise, offset: float) -> None:
    scores: Row = [1.0, 2.0, 2.0, 7.0]  # exact after the offset too: their mean, 3, is; 10 / 3 is not
    for row in (scores, scores[:3]):
        assert same(moved(row, 1.0, offset), how) == pytest.approx(same(row, how), abs=1e-14)


@pytest.mark.parametrize("how", HOWS)
def test_the_smallest_and_the_largest_numbers_are_scores_like_others(how: Normalise) -> None:
    assert same([0.0, 5e-324, 1e-323], how) == pytest.approx(same([0.0, 1.0, 2.0], how), abs=1e-15)
    assert same([-1.7e308, 0.0, 1.7e308], how) == pytest.approx(same([-1.0, 0.0, 1.0], how), abs=1e-15)


def test_a_scale_fitted_on_small_scores_takes_huge_ones() -> None:
    tiny = fit_scale([0.0, 5e-324, 1e-323], "zscore")
    assert apply_scale(tiny, [1e300, -1e300]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "scores",
    [
        [7.0, 7.0, 7.0],
        [0.1 + 0.2, 0.3, 0.3],
        [1e16, 1e16 + 2, 1e16],
        [0.0, 0.0],
        [-3.3],
        [0.7 + 0.1, 0.8, (0.7 + 0.8 + 0.9) / 3],
    ],
)
def test_no_spread_but_rounding_is_a_half_for_all(how: Normalise, scores: Row) -> None:
    assert fit_scale(scores, how).spread == 0.0
    assert same([*scores, None], how)[:-1] == [0.5] * len(scores)


@pytest.mark.parametrize("how", HOWS)
def test_nothing_fitted_is_a_half_and_no_verdict_stays_none(how: Normalise) -> None:
    assert fit_scale([None, None], how).n == 0
    assert apply_scale(fit_scale([None, None], how), [3.0, None]).tolist() == pytest.approx(
        [0.5, math.nan], nan_ok=True
    )


def test_rank_takes_scores_that_differ_by_rounding_as_equal() -> None:
    low, high, other = same([0.1 + 0.2, 0.3, 0.9], "rank")
    assert low == high == pytest.approx(1 / 3)
    assert other == pytest.approx(5 / 6)


@given(marks, st.randoms(use_true_random=False))
def test_the_order_of_the_items_changes_no_bit(scores: Row, random: object) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert all(fit_scale(scores, how) == fit_scale(shuffled, how) for how in HOWS)


def test_scales_are_plain_values_that_say_what_they_are() -> None:
    assert fit_scale([1, 3], "minmax") == Scale("minmax", 2, 1.0, 2.0)
    assert fit_scale([3, 1, None], "rank") == Scale("rank", 2, points=(1.0, 3.0))


# All judges


def by_definition(normalised: Sequence[Row], weights: Sequence[float]) -> list[tuple[float, float, int]]:
    """Value, disagreement and verdicts of each item, in exact sums."""
    found = []
    for column in zip(*normalised, strict=True):
        given_ = [(s, w) for s, w in zip(column, weights, strict=True) if s is not None and w > 0]
        total = math.fsum(w for _, w in given_)
        value = math.fsum(w * s for s, w in given_) / total if given_ else math.nan
        apart = math.fsum(w * (s - value) ** 2 for s, w in given_) / total if len(given_) > 1 else math.nan
        found.append((value, apart, len(given_)))
    return found


@given(councils())
def test_consensus_is_its_definition(council: tuple[list[Row], list[float]]) -> None:
    found = consensus(*council)
    value, apart, verdicts = zip(*by_definition(*council), strict=True)
    assert found.value_N == pytest.approx(list(value), abs=1e-15, nan_ok=True)
    assert found.disagreement_N == pytest.approx(list(apart), abs=1e-15, nan_ok=True)
    assert found.verdicts_N.tolist() == list(verdicts)


@given(councils(2))
@settings(max_examples=50)
def test_the_order_of_the_judges_changes_no_bit(council: tuple[list[Row], list[float]]) -> None:
    rows, weights = council
    plain = consensus(rows, weights)
    for order in permutations(range(len(rows))):
        other = consensus([rows[j] for j in order], [weights[j] for j in order])
        assert plain.value_N.tobytes() == other.value_N.tobytes()
        assert plain.disagreement_N.tobytes() == other.disagreement_N.tobytes()


@given(councils(), st.sampled_from([1e-300, 1e-3, 3.0, 1e300]))
def test_only_the_ratio_of_the_weights_counts(council: tuple[list[Row], list[float]], factor: float) -> None:
    rows, weights = council
    plain, scaled = consensus(rows, weights), consensus(rows, [w * factor for w in weights])
    assert scaled.value_N == pytest.approx(plain.value_N, abs=1e-14, nan_ok=True)
    assert scaled.disagreement_N == pytest.approx(plain.disagreement_N, abs=1e-14, nan_ok=True)


@given(councils())
def test_an_item_alone_is_as_in_the_batch(council: tuple[list[Row], list[float]]) -> None:
    rows, weights = council
    whole = consensus(rows, weights)
    for i in range(len(rows[0])):
        one = consensus([row[i : i + 1] for row in rows], weights)
        assert one.value_N.tobytes() == whole.value_N[i : i + 1].tobytes()
        assert one.disagreement_N.tobytes() == whole.disagreement_N[i : i + 1].tobytes()


def test_equal_scores_are_their_own_mean_and_no_disagreement() -> None:
    found = consensus([[0.1], [0.1], [0.1], [None]], [0.1, 0.2, 0.3, 0.4])
    assert (found.value_N[0], found.disagreement_N[0], found.verdicts_N[0]) == (0.1, 0.0, 3)


def test_weights_that_differ_beyond_a_float_still_count() -> None:
    found = consensus([[0.2, 0.2], [0.8, None]], [5e-324, 1.7e308])
    assert found.value_N.tolist() == [0.8, 0.2]
    assert consensus([[0.2], [0.8]], [1.7e308, 1.7e308]).value_N[0] == pytest.approx(0.5)


def test_one_verdict_is_the_reward_and_no_disagreement_is_known() -> None:
    found = consensus([[0.7, None], [None, None], [0.1, 0.2]], [1.0, 1.0, 0.0])
    assert found.value_N.tolist() == pytest.approx([0.7, math.nan], nan_ok=True)
    assert np.isnan(found.disagreement_N).all()
    assert found.verdicts_N.tolist() == [1, 0]


def test_no_items_are_no_rewards() -> None:
    assert consensus([[], []], [1.0, 1.0]).value_N.tolist() == []


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, -0.5], r"judge 1 has weight -0\.5: expected a finite number of at least 0"),
        ([math.nan, 1.0], "judge 0 has weight nan"),
        ([1.0, math.inf], "judge 1 has weight inf"),
        ([0.0, 0.0], r"judges 0 to 1 have weight 0\.0: expected a weight above 0 for at least one"),
        ([1.0], r"weights of shape \(1,\): expected \(judges, items\) and \(judges,\)"),
    ],
)
def test_weights_that_can_not_be_are_one_line(weights: list[float], words: str) -> None:
    rows: list[Row] = [[0.5, 0.2], [0.1, 0.3]]
    for refuse in (consensus, permutation_null, leave_one_out):
        with pytest.raises(ValueError, match=words) as error:
            refuse(rows, weights)
        assert "\n" not in str(error.value)


def test_scores_that_are_not_normalised_are_refused() -> None:
    with pytest.raises(ValueError, match=r"judge 1: normalised score 0 is 7\.0: expected a number in \[0, 1\]"):
        consensus([[0.5], [7.0]], [1.0, 1.0])


# Status


def test_status_says_what_may_be_done() -> None:
    assert status(0.02, 3, 3, 0.02) == "agreed"
    assert status(0.0201, 3, 3, 0.02) == "disputed"
    assert status(None, 1, 3, 0.02) == "alone"
    assert status(None, 1, 1, 0.02) == "agreed"
    assert status(None, 0, 1, 0.02) == "unscored"
    assert status(math.nan, 0, 3, 0.02) == "unscored"
    assert status(0.2, 3, 3, 0.02, adjudicated=True) == "adjudicated"
    assert status(None, 0, 3, 0.02, adjudicated=True) == "adjudicated"


@given(st.lists(st.tuples(st.none() | units, st.integers(0, 3), st.booleans())), st.integers(1, 3), units)
def test_many_statuses_are_each_its_own(
    items: list[tuple[float | None, int, bool]], judges: int, threshold: float
) -> None:
    columns = [[item[place] for item in items] for place in range(3)]
    found = statuses_N(columns[0], columns[1], judges, threshold, columns[2])  # type: ignore[arg-type]
    assert found == [status(v, n, judges, threshold, decided) for v, n, decided in items]


@pytest.mark.parametrize(("judges", "threshold"), [(0, 0.1), (2, -0.1), (2, math.nan)])
def test_a_threshold_that_can_not_be_is_refused(judges: int, threshold: float) -> None:
    with pytest.raises(ValueError, match="expected at least 0, and at least one judge"):
        status(0.1, 2, judges, threshold)


def test_one_status_needs_one_count() -> None:
    with pytest.raises(ValueError, match="2 disagreements, 1 counts, 2 marks: expected one per item"):
        statuses_N([0.1, 0.2], [2], 2, 0.1)


# Agreement beyond chance

KRIPPENDORFF: list[Row] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def alpha_by_definition(rows: Sequence[Row]) -> float | None:
    units_ = [[v for v in column if v is not None] for column in zip(*rows, strict=True)]
    units_ = [unit for unit in units_ if len(unit) > 1]
    values = [v for unit in units_ for v in unit]
    n = len(values)
    expected = sum((a - b) ** 2 for a, b in permutations(values, 2))
    if not expected:
        return None
    observed = sum(sum((a - b) ** 2 for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units_)
    return 1 - (n - 1) * observed / expected


def test_alpha_of_the_published_example() -> None:
    """Krippendorff 2011, section E: 12 units, 4 observers, missing data; 0.849 by the interval metric."""
    assert krippendorff_alpha(KRIPPENDORFF) == pytest.approx(0.849, abs=5e-4)


def test_alpha_of_two_judges_by_hand() -> None:
    """Scores 0, 0 and 0, 1: D_o = 2 / 4, D_e = 2 · 3 / 12, so α = 0."""
    assert krippendorff_alpha([[0, 0], [0, 1]]) == pytest.approx(0.0, abs=1e-15)


@given(councils(2))
def test_alpha_is_its_definition(council: tuple[list[Row], list[float]]) -> None:
    rows = council[0]
    found, expected = krippendorff_alpha(rows), alpha_by_definition(rows)
    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected, abs=1e-12)


@given(councils(2), st.sampled_from([1e-3, 40.0]), st.sampled_from([-1e3, 0.3]))
def test_alpha_is_the_same_on_any_interval_scale(
    council: tuple[list[Row], list[float]], factor: float, offset: float
) -> None:
    plain = krippendorff_alpha(council[0])
    other = krippendorff_alpha([moved(row, factor, offset) for row in council[0]])
    assert other is plain or other == pytest.approx(plain, abs=1e-8)


def test_alpha_needs_two_verdicts_that_differ() -> None:
    assert krippendorff_alpha([[0.1, 0.5], [None, None]]) is None
    assert krippendorff_alpha([[0.3, 0.1 + 0.2], [0.3, 0.3]]) is None
    with pytest.raises(ValueError, match="infinite"):
        krippendorff_alpha([[math.inf, 0.1], [0.0, 0.2]])


# What chance gives


def panel(noise: Sequence[float], n: int = 400, seed: int = 0) -> Floats:
    """Judges who see one quality each with their own noise, on the common scale by rank."""
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=n) + np.array(noise)[:, None] * rng.normal(size=(len(noise), n))
    return np.stack([apply_scale(fit_scale(row, "rank"), row) for row in seen])


def mean_disagreement(normalised_J_N: Floats, weights: Sequence[float]) -> float:
    return float(np.nanmean(consensus(normalised_J_N, weights).disagreement_N))


def test_judges_who_see_the_same_lie_below_chance() -> None:
    rows, weights = panel([0.5, 0.5, 1.0]), [0.5, 0.3, 0.2]
    rows[0, ::7] = np.nan
    null = permutation_null(rows, weights)
    assert null is not None
    assert mean_disagreement(rows, weights) < null.low < null.mean < null.high


def test_independent_judges_lie_within_chance() -> None:
    inside = 0
    for seed in range(20):
        rows = np.random.default_rng(seed).random((3, 200))
        rows[1, :40] = np.nan
        null = permutation_null(rows, [0.5, 0.3, 0.2], draws=100, seed=seed)
        assert null is not None
        inside += null.low <= mean_disagreement(rows, [0.5, 0.3, 0.2]) <= null.high
    assert inside >= 16  # 19 expected; fewer than 16 once in 2,000 such tests


@given(st.lists(st.lists(st.none() | units, min_size=3, max_size=3), min_size=2, max_size=2))
@settings(max_examples=30, deadline=None)
def test_the_null_is_the_mean_over_all_permutations(rows: list[Row]) -> None:
    both = [i for i in range(3) if rows[0][i] is not None and rows[1][i] is not None]
    null = permutation_null(rows, [2.0, 1.0], draws=2000)
    if not both:
        assert null is None
        return
    kept = [[row[i] for i in both] for row in rows]
    every = [float(np.mean(consensus([kept[0], list(order)], [2.0, 1.0]).disagreement_N))
             for order in permutations(kept[1])]  # fmt: skip
    assert null is not None
    assert null.mean == pytest.approx(np.mean(every), abs=5 * np.std(every) / math.sqrt(2000) + 1e-12)
    assert min(every) - 1e-12 <= null.low <= null.high <= max(every) + 1e-12


def test_the_null_comes_from_its_seed() -> None:
    rows = panel([1.0, 1.0], 50)
    assert permutation_null(rows, [1, 1], seed=1) == permutation_null(rows, [1, 1], seed=1)
    assert permutation_null(rows, [1, 1], seed=1) != permutation_null(rows, [1, 1], seed=2)
    with pytest.raises(ValueError, match="0 draws: expected at least 1"):
        permutation_null(rows, [1, 1], draws=0)


def test_a_judge_without_weight_has_no_part_in_the_null() -> None:
    assert permutation_null([[0.1, 0.9], [0.2, 0.3]], [1.0, 0.0]) is None


# One judge against the others


def test_a_noisy_judge_and_a_lenient_one_stand_out() -> None:
    rows = 0.8 * panel([0.3, 0.3, 0.3, 5.0])
    rows[1] += 0.2
    found = leave_one_out(rows, [1.0, 1.0, 1.0, 1.0])
    ranked = [one.rank_correlation for one in found if one.rank_correlation is not None]
    assert min(ranked) == ranked[3] < 0.4 < 0.6 < min(ranked[:3])
    assert [round(one.bias or 0.0, 2) for one in found] == [-0.07, 0.2, -0.07, -0.07]


def test_standings_are_against_the_weighted_mean_of_the_others() -> None:
    rng = np.random.default_rng(3)
    rows, weights = rng.random((3, 40)).round(1), np.array([0.5, 0.3, 0.2])  # rounded, so that ranks are shared
    rows[0, 5], rows[2, 7], rows[1:, 9] = np.nan, np.nan, np.nan
    for j, one in enumerate(leave_one_out(rows, weights)):
        rest = [k for k in range(3) if k != j]
        others = np.ma.average(np.ma.masked_invalid(rows[rest]), axis=0, weights=weights[rest]).filled(np.nan)
        both = ~np.isnan(rows[j]) & ~np.isnan(others)
        own = rows[j][~np.isnan(rows[j])]
        assert (one.n, one.compared) == (len(own), both.sum())
        assert (one.mean, one.spread) == (pytest.approx(own.mean()), pytest.approx(own.std()))
        assert one.bias == pytest.approx((rows[j] - others)[both].mean())
        assert one.correlation == pytest.approx(stats.pearsonr(rows[j][both], others[both]).statistic)
        assert one.rank_correlation == pytest.approx(stats.spearmanr(rows[j][both], others[both].round(12)).statistic)


def test_what_can_not_be_known_of_a_judge_is_none() -> None:
    alone = leave_one_out([[0.1, 0.9, None]], [1.0])[0]
    assert (alone.n, alone.mean, alone.compared) == (2, 0.5, 0)
    assert (alone.bias, alone.correlation, alone.rank_correlation) == (None, None, None)
    flat, silent, _ = leave_one_out([[0.5] * 4, [None] * 4, [0.1, 0.2, 0.3, 0.4]], [1.0, 1.0, 1.0])
    assert (flat.correlation, flat.rank_correlation, flat.compared) == (None, None, 4)
    assert (silent.n, silent.mean, silent.spread, silent.bias) == (0, None, None, None)


def test_a_judge_without_weight_is_compared_and_compares_nobody() -> None:
    first, second = leave_one_out([[0.1, 0.5, 0.9], [0.2, 0.5, 0.8]], [1.0, 0.0])
    assert (first.compared, second.compared) == (0, 3)
    assert second.correlation == pytest.approx(1.0)


# Whom to believe


@given(councils(), st.data())
def test_votes_are_the_signs_of_the_differences(council: tuple[list[Row], list[float]], data: st.DataObject) -> None:
    rows = council[0]
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(len(rows[0]) + 1), 2)))))
    pairs = [(i, j - 1) for i, j in pairs]
    votes = pair_votes(rows, pairs)
    assert len(votes) == len(pairs)
    for (i, j), vote_J in zip(pairs, votes, strict=True):
        for row, vote in zip(rows, vote_J, strict=True):
            a, b = row[i], row[j]
            tie = a is None or b is None or a == b
            assert vote == (None if tie else "first" if a > b else "second")  # type: ignore[operator]


def test_scores_equal_but_for_rounding_are_no_vote() -> None:
    assert pair_votes([[0.1 + 0.2, 0.3]], [(0, 1)]) == [[None]]
    assert pair_votes([[1.0, 1.0 + 1e-12]], [(0, 1)]) == [["second"]]


@pytest.mark.parametrize("pair", [(0, 2), (-1, 0)])
def test_a_pair_of_items_that_are_not_there_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected indexes of its columns"):
        pair_votes([[0.1, 0.2]], [pair])


def planted(accuracy: Sequence[float], n: int, seed: int = 0) -> tuple[list[list[str | None]], list[str]]:
    rng = np.random.default_rng(seed)
    gold = rng.random(n) < 0.5
    right = rng.random((n, len(accuracy))) < np.array(accuracy)
    votes = np.where(right == gold[:, None], "first", "second")
    return votes.tolist(), np.where(gold, "first", "second").tolist()


@pytest.mark.parametrize("labelled", [True, False])
def test_learned_weights_are_the_planted_log_odds(labelled: bool) -> None:
    accuracy = [0.95, 0.8, 0.65, 0.5]
    votes, gold = planted(accuracy, 3000)
    found = learned_weights(votes, gold if labelled else None)
    assert found.options == 2
    assert found.accuracy == pytest.approx(accuracy, abs=0.03)
    assert found.weights[:3] == pytest.approx([math.log(p / (1 - p)) for p in accuracy[:3]], rel=0.15)
    assert found.weights[3] < 0.15


def test_votes_of_other_words_would_make_every_judge_wrong() -> None:
    with pytest.raises(ValueError, match="'A' is no vote: expected 'first', 'second' or None"):
        learned_weights([["first", "second"]], ["A"])
    with pytest.raises(ValueError, match="'left' is no vote"):
        learned_weights([["left", "second"]])
    with pytest.raises(ValueError, match="no pairs to learn weights from"):
        learned_weights([])
    with pytest.raises(ValueError, match="no question has a right answer"):
        learned_weights([["first", "second"]], [None])
