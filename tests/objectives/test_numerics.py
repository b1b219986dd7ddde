"""Large groups: as exact as whole numbers, and never out of range."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.objectives.cases import drawn
from tests.objectives.reference import OBJECTIVES, Floats, counted, group_of, h, vote_value

from pluribus.objectives import Group, advantages, value

ELECTIONS = {
    "64 in four classes": ((20, 18, 12, 8), (1.0, 0.0, -0.25, 0.5), 6, 32),
    "64, an even race": ((16, 16, 16, 16), (1.0, 0.0, 0.0, -3.0), 0, 32),
    "64, mostly silent": ((3, 2, 1), (1.0, 0.0, 0.0), 58, 32),
    "64 of one mind": ((63, 1), (0.0, 1.0), 0, 31),
    "40 in seven classes": ((11, 9, 7, 5, 3, 1, 1), (0.0, 1.0, 1.0, 0.0, -1.0, 0.5, 0.0), 3, 15),
    "40, none alike": ((1,) * 40, tuple(float(i % 3) for i in range(40)), 0, 20),
    "40, all but two drawn": ((14, 13, 12), (1.0, 0.0, 0.0), 1, 38),
}


def election(counts: tuple[int, ...], rewards: tuple[float, ...], abstained: int) -> Group:
    answers: list[str | None] = [f"answer {i}" for i, count in enumerate(counts) for _ in range(count)]
    paid = [reward for count, reward in zip(counts, rewards, strict=True) for _ in range(count)]
    return Group(paid + [0.0] * abstained, answers=answers + [None] * abstained)


@pytest.mark.parametrize("name", ELECTIONS)
def test_votes_equal_whole_numbers(name: str) -> None:
    counts, rewards, abstained, k = ELECTIONS[name]
    group, n = election(counts, rewards, abstained), sum(counts) + abstained
    u = vote_value(counts, rewards, abstained, k)
    assert abs(Fraction(value(group, "majority", k)) - u) < 1e-12
    loo1, urloo = (advantages(group, "majority", k, estimator) for estimator in ("loo1", "urloo"))
    at = 0
    for i, count in enumerate(counts):
        if i == 0 or counts[i] != counts[i - 1] or rewards[i] != rewards[i - 1]:
            fewer = (*counts[:i], count - 1, *counts[i + 1 :])
            rest, below = (vote_value(fewer, rewards, abstained, size) for size in (k, k - 1))
            expected = u - Fraction(n - k, n) * rest - Fraction(k, n) * below, u - rest
        assert np.abs(loo1[at : at + count] - float(expected[0])).max() < 1e-12
        assert np.abs(urloo[at : at + count] - float(expected[1])).max() < 1e-12
        at += count


def test_the_reference_in_whole_numbers_is_the_count_over_subsets() -> None:
    counts, rewards, abstained = (3, 2, 2), (1.0, 0.25, -2.0), 1
    samples = drawn(8, 0)
    for k in range(1, 9):
        by_subset = counted(samples, h("majority"))[k].u
        names = sorted({one.answer for one in samples if one.answer})
        held = tuple(sum(one.answer == name for one in samples) for name in names)
        paid = tuple(next(one.reward for one in samples if one.answer == name) for name in names)
        assert float(vote_value(held, paid, 8 - sum(held), k)) == pytest.approx(by_subset, abs=1e-14)
    assert vote_value(counts, rewards, abstained, 8) == 1


def two_class_value(right: int, wrong: int, others: int, k: int) -> Fraction:
    """U_k of a vote between a right and a wrong answer among others that can not win: hypergeometric tails."""
    twice = 0
    for silent in range(min(others, k) + 1):
        votes = k - silent
        ways = [math.comb(right, v) * math.comb(wrong, votes - v) for v in range(votes + 1)]
        twice += math.comb(others, silent) * sum(
            way * ((2 * v > votes) + (2 * v >= votes)) for v, way in enumerate(ways)
        )
    return Fraction(twice, 2 * math.comb(right + wrong + others, k))


@pytest.mark.parametrize(("right", "wrong", "others", "k"), [(70, 58, 0, 63), (70, 58, 0, 64), (228, 166, 6, 200)])
def test_two_large_classes_are_hypergeometric_tails(right: int, wrong: int, others: int, k: int) -> None:
    """The others differ, so each has one vote; with k above all of them they neither win nor tie."""
    group, n = election((right, wrong, *(1,) * others), (1.0,) + (0.0,) * (others + 1), 0), right + wrong + others
    u, rest = (two_class_value(count, wrong, others, k) for count in (right, right - 1))
    below = two_class_value(right - 1, wrong, others, k - 1)
    assert value(group, "majority", k) == pytest.approx(float(u), abs=1e-12)
    assert advantages(group, "majority", k, "urloo")[0] == pytest.approx(float(u - rest), abs=1e-12)
    known = float(u - Fraction(n - k, n) * rest - Fraction(k, n) * below)
    assert advantages(group, "majority", k, "loo1")[0] == pytest.approx(known, abs=1e-12)


@pytest.mark.parametrize("counts", [(50, 40, 30, 8), (2,) * 64, (100, *(1,) * 28)])
def test_large_groups_stay_in_range(counts: tuple[int, ...]) -> None:
    rewards = tuple((-1.0) ** i * (i % 5) for i in range(len(counts)))
    group = election(counts, rewards, 0)
    found = value(group, "majority", 64)
    assert min(rewards) <= found <= max(rewards)
    for estimator in ("loo1", "urloo"):
        ours = advantages(group, "majority", 64, estimator)
        assert np.isfinite(ours).all()
        assert np.abs(ours).max() <= max(rewards) - min(rewards)
    assert ours.sum() == pytest.approx(0.0, abs=1e-12)


def best_of_sorted(g: Floats, k: int) -> tuple[float, Floats, Floats]:
    """U_k, s_i and U_{k−1}^{−i} for k ≥ 2, from shares of subsets that are ratios of whole numbers."""
    n = len(g)
    first, rest = shares(n, k), shares(n - 1, k - 1)
    before = np.append(0.0, np.cumsum(rest * g[:-1]))
    after = np.append(np.cumsum((rest * g[1:])[::-1])[::-1], 0.0)
    return math.fsum(first * g), first * g + k / n * after, before + after


def shares(n: int, k: int) -> Floats:
    """C(j − 1, k − 1) / C(n, k) for j = 1 … n: in how many subsets the j-th is the last."""
    ways, total, found = 0, math.comb(n, k), []
    for j in range(1, n + 1):
        ways = 1 if j == k else ways * (j - 1) // (j - k) if j > k else 0
        found.append(ways / total)
    return np.array(found)


@pytest.mark.parametrize("k", [2, 64, 8000, 16384])
def test_the_best_of_many_equals_whole_numbers(k: int) -> None:
    n = 16384
    rng = np.random.default_rng(11)
    g = np.sort(rng.normal(size=n).round(2))
    u, s, below = best_of_sorted(g, k)
    order = rng.permutation(n)
    turned: Any = g[order]
    for objective, group in (("max", Group(turned)), ("best_of", Group(turned, scores=5 * turned - 1))):
        assert value(group, objective, k) == pytest.approx(u, rel=1e-12)
        np.testing.assert_allclose(
            advantages(group, objective, k, "loo1"), (s - k / n * below)[order], rtol=0, atol=1e-12
        )
        if k < n:
            np.testing.assert_allclose(
                advantages(group, objective, k, "urloo"), (n / (n - k) * (s - s.mean()))[order], rtol=0, atol=1e-12
            )


def test_pass_at_k_of_many_samples_equals_whole_numbers() -> None:
    for n, c, k in ((16384, 3, 100), (16384, 12000, 2), (10_000, 1, 9_999), (200, 0, 50)):
        known = float(1 - Fraction(math.comb(n - c, k), math.comb(n, k)))
        assert value(Group([0.0] * (n - c) + [1.0] * c), "pass", k) == pytest.approx(known, rel=1e-12, abs=0)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_unit_of_the_rewards_does_not_matter(objective: str) -> None:
    """Rewards a thousand times as large, and moved where nobody abstains, move values and advantages with them."""
    if objective == "pass":
        return
    samples = tuple(one for one in drawn(8, 6) if one.answer is not None)
    n, group = len(samples), group_of(samples, objective)
    moved = Group([1000 * r + 7 for r in group.rewards], group.answers, group.scores, group.weights)
    for k in range(2, n):
        assert value(moved, objective, k) == pytest.approx(1000 * value(group, objective, k) + 7, rel=1e-12)
        for estimator in ("loo1", "urloo"):
            ours, theirs = (advantages(one, objective, k, estimator) for one in (group, moved))
            np.testing.assert_allclose(theirs, 1000 * ours, rtol=0, atol=1e-9)
