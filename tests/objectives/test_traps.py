"""Mistakes that look right: each is planted, shown to miss the gradient, and ours shown to hit it in the same case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.objectives.cases import POLICIES, spelled
from tests.objectives.reference import (
    OBJECTIVES,
    Estimator,
    Floats,
    Policy,
    Sample,
    Samples,
    Value,
    group_of,
    groups,
    h,
    mean_gradient,
    objective_value,
    ours,
    true_gradient,
    winners,
)

from pluribus.objectives import Group, advantages, value

EXACT = 1e-9
MARGIN = 1e-3
"""A planted mistake is off by more than this."""
RARE = Policy(POLICIES["one answer in two texts"].outcomes, (-0.9, -1.0, 0.6, 0.0, -1.2))
"""Seldom right, so that one sample more or less matters."""
GRADED = ("mean", "max", "best_of", "majority", "weighted_majority")


def centred(estimator: Estimator) -> Estimator:
    def of(samples: Samples) -> Floats:
        found = estimator(samples)
        return np.asarray(found - found.mean())

    return of


def scaled(estimator: Estimator) -> Estimator:
    """Divided by the group's standard deviation, as group-relative trainers do."""

    def of(samples: Samples) -> Floats:
        found = estimator(samples)
        spread = found.std()
        return found / spread if spread > 1e-12 else found

    return of


def off(found: Floats, expected: Floats) -> float:
    return float(np.abs(found - expected).max())


def miss(policy: Policy, n: int, estimator: Estimator, objective: str, k: int) -> float:
    return off(mean_gradient(policy, n, estimator), true_gradient(policy, k, h(objective)))


def each(of: Callable[[Samples, int], float]) -> Estimator:
    return lambda samples: np.array([of(samples, i) for i in range(len(samples))])


def without(samples: Samples, i: int) -> Samples:
    return samples[:i] + samples[i + 1 :]


@pytest.mark.parametrize("objective", ["pass", "max", "best_of", "majority", "weighted_majority"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_centring_loo_trains_for_one_sample_fewer(k: int, objective: str) -> None:
    policy = RARE
    planted = centred(ours(objective, k, "loo"))
    assert off(mean_gradient(policy, k, planted), true_gradient(policy, k - 1, h(objective))) < EXACT
    assert miss(policy, k, ours(objective, k, "loo"), objective, k) < EXACT
    assert miss(policy, k, planted, objective, k) > MARGIN


@pytest.mark.parametrize("objective", ["pass", "max", "best_of", "majority", "weighted_majority"])
@pytest.mark.parametrize(("n", "k"), [(4, 3), (5, 2), (6, 4)])
def test_centring_loo1_trains_for_a_mixture(n: int, k: int, objective: str) -> None:
    policy = RARE
    planted = mean_gradient(policy, n, centred(ours(objective, k, "loo1")))
    here, below = (true_gradient(policy, size, h(objective)) for size in (k, k - 1))
    assert off(planted, (1 - k / n) * here + k / n * below) < EXACT
    assert miss(policy, n, ours(objective, k, "loo1"), objective, k) < EXACT
    assert off(planted, here) > MARGIN


@pytest.mark.parametrize("objective", GRADED)
def test_dividing_by_the_groups_spread_is_another_direction(objective: str) -> None:
    """No step size makes it right: what is left after the best multiple of the gradient is large."""
    policy = Policy((Sample("A", 0.2, 0.5), Sample("B", 1.0, 0.5, 2.0), Sample("C", -3.0, 1.5, 1.5)), (0.7, -0.4, -0.9))
    n, k = (4, 3)
    expected = true_gradient(policy, k, h(objective))
    planted = mean_gradient(policy, n, scaled(ours(objective, k, "urloo")))
    assert off(planted, expected * (planted @ expected) / (expected @ expected)) > MARGIN
    assert miss(policy, n, ours(objective, k, "urloo"), objective, k) < EXACT


def old_winners_vote(samples: Samples, i: int) -> float:
    """h(Y) less a baseline that does not vote again: the old winners who still have a vote keep their place."""
    rest = without(samples, i)
    stay = [one for one in winners(samples) if any(other.answer == one for other in rest)]
    reward_of = {one.answer: one.reward for one in samples}
    baseline = math.fsum(reward_of[one] for one in stay) / len(stay) if stay else h("majority")(rest)
    return h("majority")(samples) - baseline


def old_winners_score(samples: Samples, i: int) -> float:
    """h(Y) less a baseline with the old best sample, unless i alone is it."""
    top = max(one.score for one in samples)
    stay = [one.reward for one in without(samples, i) if one.score == top]
    baseline = math.fsum(stay) / len(stay) if stay else h("best_of")(samples)
    return h("best_of")(samples) - baseline


@pytest.mark.parametrize(("objective", "planted"), [("majority", old_winners_vote), ("best_of", old_winners_score)])
def test_a_baseline_that_keeps_the_old_winner_is_biased(
    objective: str, planted: Callable[[Samples, int], float]
) -> None:
    policy = POLICIES["graded"]
    assert miss(policy, 3, each(planted), objective, 3) > MARGIN
    assert miss(policy, 3, ours(objective, 3, "loo"), objective, 3) < EXACT


def own_reward_in_ties(samples: Samples, i: int) -> float:
    leaders = winners(samples)
    tied = len(leaders) > 1 and samples[i].answer in leaders
    return samples[i].reward if tied else h("majority")(samples)


def best_of_the_tied(samples: Sequence[Sample]) -> float:
    reward_of = {one.answer: one.reward for one in samples}
    return max((reward_of[answer] for answer in winners(samples)), default=0.0)


def first_of_the_tied(samples: Sequence[Sample]) -> float:
    reward_of = {one.answer: one.reward for one in samples}
    return next((reward_of[answer] for answer in winners(samples)), 0.0)


@pytest.mark.parametrize("name", ["binary", "abstains", "graded"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_tie_broken_by_the_samples_own_reward_is_another_objective(k: int, name: str) -> None:
    policy = POLICIES[name]
    assert miss(policy, k, each(own_reward_in_ties), "majority", k) > MARGIN
    assert miss(policy, k, ours("majority", k, "naive"), "majority", k) < EXACT
    assert miss(policy, k, ours("majority", k, "loo"), "majority", k) < EXACT


def test_a_tie_broken_for_the_better_answer_is_the_gradient_of_that_objective_instead() -> None:
    policy, k = POLICIES["binary"], 4
    planted = mean_gradient(policy, k, lambda samples: np.full(k, best_of_the_tied(samples)))
    assert off(planted, true_gradient(policy, k, best_of_the_tied)) < EXACT
    assert off(planted, true_gradient(policy, k, h("majority"))) > MARGIN
    assert objective_value(policy, k, best_of_the_tied) > objective_value(policy, k, h("majority")) + MARGIN


def with_replacement(samples: Samples, k: int, worth: Value) -> float:
    """The mean of h over every draw of k out of the group, one sample more than once."""
    even = Policy(samples, (0.0,) * len(samples))
    return objective_value(even, k, worth)


@pytest.mark.parametrize(("objective", "k"), [("pass", 2), ("pass", 4), ("majority", 3), ("majority", 4)])
def test_drawing_with_replacement_is_biased(objective: str, k: int) -> None:
    policy, n, worth = POLICIES["binary"], 5, h(objective)
    known = objective_value(policy, k, worth)
    planted = math.fsum(chance * with_replacement(samples, k, worth) for samples, chance, _ in groups(policy, n))
    found = math.fsum(
        chance * value(group_of(samples, objective), objective, k) for samples, chance, _ in groups(policy, n)
    )
    assert abs(planted - known) > MARGIN
    assert found == pytest.approx(known, abs=1e-12)


WHOLE = (Sample("A", 1.0, 2.0), Sample("B", 0.0, 2.0), Sample("B", 0.0, 0.0), Sample("C", 1.0, 1.0))
SPELLINGS: tuple[Any, ...] = (
    [1, 0, 0, 1],
    [True, False, False, True],
    np.array([1, 0, 0, 1]),
    np.array([1, 0, 0, 1], np.int8),
)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("k", "estimator"), [(4, "loo"), (4, "naive"), (2, "loo1"), (2, "urloo")])
def test_whole_rewards_do_not_make_whole_advantages(objective: str, k: int, estimator: str) -> None:
    known, group = ours(objective, k, estimator)(WHOLE), group_of(WHOLE, objective)
    if estimator in ("loo1", "urloo"):
        assert known.any()
        assert not known.astype(np.int64).any()
    for rewards in SPELLINGS:
        whole = replace(group, rewards=rewards)
        found = advantages(whole, objective, k, estimator)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, known)
        assert value(whole, objective, k) == value(group, objective, k)


class Near(str):
    """An answer that equals whatever number is near: not transitive, so it makes no classes."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and abs(float(self) - float(other)) <= 0.5

    def __hash__(self) -> int:
        return 0


def pairwise(samples: Samples) -> Samples:
    """Each sample takes the first answer it is near to, as pairwise equality would have it."""
    seen: list[str] = []
    for one in samples:
        assert one.answer is not None
        if not any(Near(one.answer) == Near(known) for known in seen):
            seen.append(one.answer)
    named = [next(known for known in seen if Near(known) == Near(one.answer or "")) for one in samples]
    return tuple(Sample(name, float(name == seen[0])) for name in named)


def test_pairwise_equality_makes_the_vote_depend_on_the_order() -> None:
    samples = tuple(Sample(text, 0.0) for text in ("1.0", "1.4", "1.8", "2.2"))
    forward, backward = pairwise(samples), pairwise(samples[1:] + samples[:1])
    assert h("majority")(forward) != h("majority")(backward)


def test_answers_are_one_when_their_strings_are_one() -> None:
    texts = ["0.5", "0.50", "1/2", "0.5 "]
    for answers in (texts, [Near("1.0"), Near("1.4"), Near("1.8"), Near("2.2")]):
        group = Group([1.0, 0.0, 0.0, 0.0], answers=answers)
        assert value(group, "majority", 4) == 0.25
        np.testing.assert_allclose(advantages(group, "majority", 4, "loo"), [0.25, -1 / 12, -1 / 12, -1 / 12])


def test_silent_samples_are_not_one_answer() -> None:
    """None is not the most frequent answer of three."""
    samples = spelled("A---", A=1.0)
    named = tuple(Sample(one.answer or "none", one.reward) for one in samples)
    assert value(group_of(samples, "majority"), "majority", 4) == 1.0
    assert value(group_of(named, "majority"), "majority", 4) == 0.0
