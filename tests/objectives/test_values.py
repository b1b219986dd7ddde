"""Values and advantages of one group equal the counts over all its subsets."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.cases import GROUPS, POLICIES, fits
from tests.objectives.reference import (
    ESTIMATORS,
    OBJECTIVES,
    Policy,
    Sample,
    Samples,
    counted,
    defined,
    estimates,
    group_of,
    groups,
    h,
    objective_value,
    winners,
)

from pluribus.metrics.maj_at_k import maj_at_k
from pluribus.objectives import Group, advantages, value

_REWARDS = st.sampled_from([0.0, 1.0, -1.0, 0.25, 2.5])
_ANSWERS = {"A": 1.0, "B": 0.0, "C": 0.0, "D": -0.75, "E": 1.0}
_SAMPLES = st.one_of(
    st.builds(
        lambda answer, score, weight: Sample(answer, _ANSWERS[answer], score, weight),
        st.sampled_from(sorted(_ANSWERS)),
        st.sampled_from([-1.0, 0.0, 0.5]),
        st.sampled_from([0.5, 1.0, 1.5, 7.0]),
    ),
    st.builds(lambda reward, score: Sample(None, reward, score), _REWARDS, st.sampled_from([-1.0, 0.5])),
)


def agree_with_the_counts(samples: Samples, objective: str) -> None:
    group, table, n = group_of(samples, objective), counted(samples, h(objective)), len(samples)
    for k in range(1, n + 1):
        found = value(group, objective, k)
        assert isinstance(found, float)
        assert found == pytest.approx(table[k].u, abs=1e-12), k
        for estimator in ESTIMATORS:
            if defined(estimator, n, k):
                ours = advantages(group, objective, k, estimator)
                assert ours.dtype == np.float64
                assert ours.shape == (n,)
                np.testing.assert_allclose(ours, estimates(table, k, estimator), rtol=0, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", GROUPS)
def test_every_group_agrees_with_the_counts_for_every_k(name: str, objective: str) -> None:
    samples = GROUPS[name]
    if fits(objective, samples):
        agree_with_the_counts(samples, objective)


@settings(max_examples=25, deadline=None)
@given(st.lists(_SAMPLES, min_size=1, max_size=6), st.sampled_from(OBJECTIVES))
def test_random_groups_agree_with_the_counts(samples: list[Sample], objective: str) -> None:
    if objective == "pass":
        samples = [Sample(one.answer, float(one.reward > 0)) for one in samples]
    agree_with_the_counts(tuple(samples), objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", ["graded 6", "binary 7", "silence is rewarded"])
def test_what_each_sample_adds_follows_from_values_alone(name: str, objective: str) -> None:
    """s_i = U_k − ((n − k)/n) U_k^{−i} adds up to k U_k, and gives loo1 and urloo back."""
    samples = GROUPS[name]
    if not fits(objective, samples):
        return
    n, group = len(samples), group_of(samples, objective)
    others = [group_of(samples[:i] + samples[i + 1 :], objective) for i in range(n)]
    for k in range(2, n):
        u = value(group, objective, k)
        s = np.array([u - (n - k) / n * value(rest, objective, k) for rest in others])
        below = np.array([value(rest, objective, k - 1) for rest in others])
        assert s.sum() == pytest.approx(k * u, abs=1e-12)
        np.testing.assert_allclose(advantages(group, objective, k, "loo1"), s - k / n * below, atol=1e-12)
        np.testing.assert_allclose(
            advantages(group, objective, k, "urloo"), n / (n - k) * (s - s.mean()), rtol=0, atol=1e-12
        )


def in_order(samples: Samples, order: list[int]) -> Samples:
    return tuple(samples[i] for i in order)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("k", "estimator"), [(3, "loo1"), (3, "urloo"), (7, "loo"), (7, "naive"), (7, "loo1")])
def test_samples_are_treated_alike_in_every_order(objective: str, k: int, estimator: str) -> None:
    samples = GROUPS["binary 7"]
    here = advantages(group_of(samples, objective), objective, k, estimator)
    assert k == 7 or len(set(here.round(9))) > 1
    rng = np.random.default_rng(5)
    for _ in range(10):
        order = rng.permutation(len(samples)).tolist()
        turned = in_order(samples, order)
        there = advantages(group_of(turned, objective), objective, k, estimator)
        np.testing.assert_allclose(there, here[order], rtol=0, atol=1e-13)


@pytest.mark.parametrize("objective", ["majority", "weighted_majority"])
def test_the_names_of_answers_do_not_matter(objective: str) -> None:
    samples = GROUPS["graded 8"]
    names = {"A": "zulu", "B": "", "C": "A", "D": "-3/4", None: None}
    renamed = tuple(Sample(names[one.answer], one.reward, one.score, one.weight) for one in samples)
    for k in range(1, 9):
        here, there = group_of(samples, objective), group_of(renamed, objective)
        assert value(here, objective, k) == pytest.approx(value(there, objective, k), abs=1e-14)
        if k < 8:
            ours, theirs = (advantages(group, objective, k, "urloo") for group in (here, there))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["pairs tie", "two right answers", "all differ"])
def test_one_vote_and_two_votes_without_abstentions_are_worth_the_mean(name: str) -> None:
    samples = GROUPS[name]
    group, mean = group_of(samples, "majority"), float(np.mean([one.reward for one in samples]))
    assert value(group, "majority", 1) == pytest.approx(mean, abs=1e-15)
    assert value(group, "majority", 2) == pytest.approx(mean, abs=1e-15)


def test_an_abstention_takes_part_of_one_vote_but_not_of_two() -> None:
    """AB- with A right: one vote is worth 1/3; two votes are AB, A-, B-, worth 1/2, 1, 0."""
    group = Group([1.0, 0.0, 0.0], answers=["A", "B", None])
    assert value(group, "majority", 1) == pytest.approx(1 / 3)
    assert value(group, "majority", 2) == pytest.approx(1 / 2)
    assert value(group, "majority", 3) == pytest.approx(1 / 2)


def test_votes_of_equal_weight_are_a_plain_vote() -> None:
    for samples in GROUPS.values():
        rewards, answers = [one.reward for one in samples], [one.answer for one in samples]
        plain, weighted = Group(rewards, answers=answers), Group(rewards, answers=answers, weights=[2.5] * len(samples))
        for k in range(1, len(samples) + 1):
            plainly = value(plain, "majority", k)
            assert value(weighted, "weighted_majority", k) == pytest.approx(plainly, abs=1e-12)


def test_weights_that_add_up_to_the_same_tie_in_every_order() -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are two different floats; the sums are one number."""
    weights = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1]
    group = Group([1.0] * 3 + [0.0] * 3, answers=["A"] * 3 + ["B"] * 3, weights=weights)
    assert sum(weights[:3]) != sum(weights[3:])
    assert value(group, "weighted_majority", 6) == 0.5


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_mean_over_all_groups_is_the_policys_own_value(objective: str, name: str) -> None:
    policy = POLICIES[name]
    if not fits(objective, policy.outcomes):
        return
    for n, k in ((3, 1), (4, 2), (4, 3), (4, 4)):
        found = mean_value(policy, n, objective, k)
        assert found == pytest.approx(objective_value(policy, k, h(objective)), abs=1e-12)


def mean_value(policy: Policy, n: int, objective: str, k: int) -> float:
    return math.fsum(
        chance * value(group_of(samples, objective), objective, k) for samples, chance, _ in groups(policy, n)
    )


@pytest.mark.parametrize("name", GROUPS)
def test_the_metric_of_votes_is_the_value_of_votes(name: str) -> None:
    samples = GROUPS[name]
    table = counted(samples, h("majority"))
    for k in range(1, len(samples) + 1):
        found = maj_at_k([one.answer for one in samples], [one.reward for one in samples], k)
        assert found == pytest.approx(table[k].u, abs=1e-12)


def test_pass_at_k_is_the_share_of_choices_with_a_right_sample() -> None:
    for n in range(1, 9):
        for c in range(n + 1):
            group = Group([1.0] * c + [0.0] * (n - c))
            for k in range(1, n + 1):
                choices = list(combinations(range(n), k))
                share = sum(min(choice) < c for choice in choices) / len(choices)
                assert value(group, "pass", k) == pytest.approx(share, abs=1e-13)
                assert value(group, "max", k) == pytest.approx(share, abs=1e-13)


def test_the_reference_itself_knows_who_wins() -> None:
    samples = GROUPS["pairs tie"]
    assert winners(samples) == ["A", "B", "C"]
    assert winners(samples[:3]) == ["A"]
    assert winners(GROUPS["all abstain"]) == []
    assert winners(GROUPS["weights tie"], [one.weight for one in GROUPS["weights tie"]]) == ["A", "B", "C"]
