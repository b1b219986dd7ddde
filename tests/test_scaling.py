"""Curves over the cells of a sweep: parameters recovered, intervals that cover, and curves that are not settled."""

from __future__ import annotations

import numpy as np
import pytest

from pluribus.panel import Item, Member, Panel, Word
from pluribus.scaling import Fit, fit, matches, rank_correlation

X = (1, 2, 4, 8, 16)


def planted(accuracies: list[float], n: int = 800, *, seed: int = 0, shared: float = 0.7) -> np.ndarray:
    """(questions, cells) of 0 and 1 whose columns have these means and share most of the questions' difficulty."""
    rng = np.random.default_rng(seed)
    noise = np.sqrt(shared) * rng.normal(size=(n, 1)) + np.sqrt(1 - shared) * rng.normal(size=(n, len(accuracies)))
    ranks = noise.argsort(axis=0).argsort(axis=0) / n
    return (ranks < np.array(accuracies)).astype(float)


def test_gain_per_doubling_is_found_exactly_where_the_cells_lie_on_the_curve() -> None:
    found = fit(X, planted([0.5, 0.55, 0.6, 0.65, 0.7]), "log2")
    assert found.gain is not None
    assert found.gain.value == pytest.approx(5.0, abs=1e-9)
    assert found.gain.low < 5.0 < found.gain.high
    assert found.r2 == pytest.approx(1.0)
    assert dict(found.parameters)["intercept"].value == pytest.approx(0.5)
    assert [cell.accuracy for cell in found.cells] == pytest.approx([0.5, 0.55, 0.6, 0.65, 0.7])
    assert found.cells[0].low < 0.5 < found.cells[0].high
    assert found.gain.p < 0.01


def test_gain_per_unit() -> None:
    found = fit([1.0, 1.5, 3.0], planted([0.4, 0.45, 0.6]), "linear")
    assert found.gain is not None
    assert found.gain.value == pytest.approx(10.0)
    assert (found.grid_x[0], found.grid_x[-1]) == (1.0, 3.0)
    assert found.grid_accuracy[-1] == pytest.approx(0.6)
    assert all(a <= b <= c for a, b, c in zip(found.grid_low, found.grid_accuracy, found.grid_high, strict=True))


def test_no_growth_is_no_growth() -> None:
    rng = np.random.default_rng(1)
    found = fit(X, (rng.random((600, 5)) < 0.6).astype(float), "log2")
    assert found.gain is not None
    assert found.gain.low < 0 < found.gain.high
    assert found.gain.p > 0.05
    flat = fit(X, np.repeat(rng.random((60, 1)) < 0.5, 5, axis=1).astype(float), "log2")
    assert (flat.r2, flat.gain.value if flat.gain else None) == (None, pytest.approx(0.0))


def test_cells_on_the_same_questions_give_a_narrower_slope_than_independent_ones() -> None:
    def width(shared: float) -> float:
        gain = fit(X, planted([0.5, 0.55, 0.6, 0.65, 0.7], shared=shared)).gain
        assert gain is not None
        return gain.high - gain.low

    assert width(0.95) < 0.7 * width(0.0)


def test_the_interval_covers_the_true_slope() -> None:
    def covers(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        ability = rng.normal(size=(300, 1))
        right = rng.random((300, 5)) < 1 / (1 + np.exp(-(ability + 0.2 * np.log2(X))))
        gain = fit(X, right.astype(float), resamples=400, seed=seed).gain
        assert gain is not None
        return gain.low <= truth <= gain.high

    rng = np.random.default_rng(99)
    p = (1 / (1 + np.exp(-(rng.normal(size=(200_000, 1)) + 0.2 * np.log2(X))))).mean(axis=0)
    truth = 100 * float(np.polyfit(np.log2(X), p, 1)[0])
    assert sum(covers(seed) for seed in range(100)) >= 89


def test_a_saturating_curve_is_found_where_there_is_one() -> None:
    x = [1, 2, 3, 4, 6, 8, 12, 16]
    found = fit(x, planted([0.8 - 0.4 * n**-1.0 for n in x], n=4000, shared=0.97), "saturating", resamples=400)
    ceiling, drop, exponent = (estimate for _, estimate in found.parameters)
    assert found.identified, found.note
    assert found.gain is None
    assert ceiling.low <= 0.8 <= ceiling.high
    assert drop.low <= 0.4 <= drop.high
    assert exponent.low <= 1.0 <= exponent.high
    assert found.r2 is not None
    assert found.r2 > 0.99


@pytest.mark.parametrize(
    ("accuracies", "why"),
    [
        ([0.5, 0.55, 0.6], "3 different x"),
        ([0.6, 0.6, 0.6, 0.6], "explains 0 %"),
        ([0.5, 0.52, 0.56, 0.64], "exponent"),
    ],
)
def test_a_saturating_curve_is_not_reported_where_the_cells_do_not_settle_it(accuracies: list[float], why: str) -> None:
    found = fit(X[: len(accuracies)], planted(accuracies, n=200), "saturating", resamples=200)
    assert not found.identified
    assert str(found.note).startswith("not identified: ")
    assert why in str(found.note)


def test_missing_credits_are_left_out_of_their_cell() -> None:
    credit = planted([0.5, 0.6, 0.7], n=400)
    credit[:100, 1] = np.nan
    found = fit([1, 2, 4], credit)
    assert [cell.n for cell in found.cells] == [400, 300, 400]
    assert found.cells[1].accuracy == pytest.approx(np.nanmean(credit[:, 1]))


@pytest.mark.parametrize(
    ("x", "credit", "form", "message"),
    [
        ([2, 2], np.ones((3, 2)), "log2", "two different x"),
        ([0, 2], np.ones((3, 2)), "log2", "above 0"),
        ([1, np.nan], np.ones((3, 2)), "linear", "expected numbers"),
        ([1, 2, 3], np.ones((3, 2)), "log2", r"\(questions, cells\)"),
        ([1, 2], np.array([[1, np.nan], [0, np.nan]]), "log2", "cell 1 .* leave it out"),
        ([1, 2], np.ones((3, 2)), "cubic", "log2, linear, saturating"),
    ],
)
def test_what_can_not_be_fitted_is_an_error(x: list[float], credit: np.ndarray, form: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(x, credit, form)  # type: ignore[arg-type]  # a wrong form on purpose


def test_the_same_seed_gives_the_same_fit() -> None:
    credit = planted([0.5, 0.6, 0.7])
    assert isinstance(found := fit([1, 2, 4], credit, seed=3), Fit)
    assert found == fit([1, 2, 4], credit, seed=3)
    assert found != fit([1, 2, 4], credit, seed=4)


def test_rank_correlation_is_spearmans() -> None:
    scipy = pytest.importorskip("scipy.stats")
    x, accuracies = [1.5, 3.0, 2.2, 2.2, 4.0], [0.5, 0.62, 0.55, 0.7, 0.66]
    credit = planted(accuracies, n=100)
    found = rank_correlation(x, credit)
    assert found is not None
    assert found.value == pytest.approx(scipy.spearmanr(x, accuracies).statistic)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert rank_correlation([1, 2], credit[:, :2]) is None
    assert rank_correlation([1, 2, 3], np.ones((5, 3))) is None


def council(name: str, models: list[str], credits: list[float | None]) -> Panel:
    members = tuple(Member(f"agent {i}", model, None, i) for i, model in enumerate(models))
    said = tuple(Word("1", "1", 1.0) for _ in models)
    items = tuple(Item(f"q{i}", "1", (said,), "1", c, None, c is None) for i, c in enumerate(credits))
    return Panel(name, f"run {name}", "sums", "vote", members, items)


def test_few_match_many_within_the_margin_or_not_or_nobody_knows() -> None:
    many = council("many", ["a"] * 16, [1.0, 0.0] * 200)
    same = matches(council("few", ["a", "b"], [1.0, 0.0] * 200), many)
    assert same.matches is True
    assert same.words == (
        "2 agents of 2 models (few) match 16 agents of one model (many): +0.0 points [−0.9, 0.9] (margin 1; 2 against "
        "16 calls; n = 400)"
    )
    worse = matches(council("few", ["a", "b"], [1.0, 0.0, 0.0, 0.0] * 100), many)
    assert worse.matches is False
    assert "do not match" in worse.words
    rng = np.random.default_rng(0)
    noisy = matches(council("few", ["a", "b"], (rng.random(400) < 0.5).astype(float).tolist()), many)
    assert noisy.matches is None
    assert "are not shown to match" in noisy.words
    assert matches(council("few", ["a", "b"], (rng.random(400) < 0.5).astype(float).tolist()), many, 0.2).matches


def test_a_few_questions_without_a_difference_do_not_show_a_match() -> None:
    few, many = (council(name, ["a"], [1.0, 0.0] * 10) for name in ("few", "many"))
    told = matches(few, many)
    assert (told.matches, told.difference.value) == (None, 0.0)
    assert told.difference.low == pytest.approx(-(1 - 0.025 ** (1 / 20)), abs=1e-6)


def test_only_shared_questions_count() -> None:
    few, many = council("few", ["a"], [1.0, None, 1.0, 0.0]), council("many", ["a"] * 4, [1.0, 1.0, None])
    told = matches(few, many)
    assert (told.n, told.left_out) == (1, 3)
    with pytest.raises(ValueError, match="share no question"):
        matches(few, council("none", ["a"], []))
    with pytest.raises(ValueError, match=r"margin is 1\.5"):
        matches(few, many, 1.5)
