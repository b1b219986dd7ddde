"""The mean of every estimator over all groups that a policy can draw is the gradient of its objective, exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.objectives.cases import POLICIES, drawn, fits
from tests.objectives.reference import (
    OBJECTIVES,
    Floats,
    Policy,
    Sample,
    Samples,
    group_of,
    groups,
    h,
    mean_gradient,
    objective_value,
    ours,
    true_gradient,
)

from pluribus.objectives import advantages, value
from pluribus.objectives.majority import policy_value

SIZES = {
    "naive": [(1, 1), (2, 2), (3, 3), (4, 4)],
    "loo": [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)],
    "loo1": [(2, 2), (3, 2), (4, 3), (5, 3), (4, 4), (6, 4)],
    "urloo": [(2, 1), (3, 1), (3, 2), (5, 3), (5, 4), (6, 4)],
}
"""n and k."""


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("estimator", SIZES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_mean_estimate_is_the_gradient(objective: str, estimator: str, name: str) -> None:
    policy = POLICIES[name]
    if not fits(objective, policy.outcomes):
        return
    for n, k in SIZES[estimator]:
        found = mean_gradient(policy, n, ours(objective, k, estimator))
        expected = true_gradient(policy, k, h(objective))
        assert np.abs(expected).max() > 1e-3
        assert np.abs(found - expected).max() < 1e-12, (n, k)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_gradient_is_the_slope_of_the_objective(objective: str) -> None:
    """The reference against itself: a small step of the logits, and the score function over groups of k."""
    policy, step = POLICIES["one answer in two texts"], 1e-5
    for k in (1, 3):
        expected = true_gradient(policy, k, h(objective))
        for j, slope in enumerate(expected):
            moved = [
                Policy(policy.outcomes, tuple(x + way * step * (i == j) for i, x in enumerate(policy.logits)))
                for way in (1, -1)
            ]
            up, down = (objective_value(one, k, h(objective)) for one in moved)
            assert (up - down) / (2 * step) == pytest.approx(slope, abs=1e-8)
        plainly = sum(
            chance * h(objective)(samples) * scores.sum(axis=0) for samples, chance, scores in groups(policy, k)
        )
        np.testing.assert_allclose(plainly, expected, rtol=0, atol=1e-14)


def test_the_gradient_of_pass_at_k_is_known() -> None:
    """k (1 − p)^(k−1) ∇p, and ∇p = p (1 − p) for a logit."""
    policy = Policy((Sample("A", 1.0), Sample("B", 0.0)), (0.4, 0.0))
    p = policy.p[0]
    for k in (1, 2, 5):
        known = k * (1 - p) ** (k - 1) * p * (1 - p)
        assert true_gradient(policy, k, h("pass"))[0] == pytest.approx(known, abs=1e-15)
        assert mean_gradient(policy, k + 1, ours("pass", k, "urloo"))[0] == pytest.approx(known, abs=1e-14)


def test_one_sample_is_the_mean_reward_for_every_objective() -> None:
    """k = 1: urloo is the leave-one-out baseline of REINFORCE, (r_i − mean r) / (n − 1)."""
    samples = tuple(one for one in drawn(9, 4) if one.answer is not None)
    rewards = np.array([one.reward for one in samples])
    known = (rewards - rewards.mean()) / (len(rewards) - 1)
    for objective in ("mean", "max", "best_of", "majority", "weighted_majority"):
        np.testing.assert_allclose(ours(objective, 1, "urloo")(samples), known, rtol=0, atol=1e-14)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_urloo_adds_up_to_nothing(objective: str) -> None:
    samples = drawn(8, 1, (1.0, 0.0, 0.0))
    for k in range(1, 8):
        assert ours(objective, k, "urloo")(samples).sum() == pytest.approx(0.0, abs=1e-13)


def test_the_vote_of_a_known_policy() -> None:
    for name, policy in POLICIES.items():
        if name == "one answer in two texts":
            continue
        named = [(p, one.reward) for p, one in zip(policy.p, policy.outcomes, strict=True) if one.answer is not None]
        chances, rewards = [p for p, _ in named], [reward for _, reward in named]
        for k in range(1, 8):
            known = objective_value(policy, k, h("majority"))
            found = policy_value(chances, rewards, k, abstain=max(0.0, 1 - sum(chances)))
            assert found == pytest.approx(known, abs=1e-13)


def test_the_vote_of_a_known_policy_of_two_answers_is_a_binomial_tail() -> None:
    for k in (1, 15, 101):
        tail = math.fsum(math.comb(k, v) * 0.6**v * 0.4 ** (k - v) for v in range(k // 2 + 1, k + 1))
        assert policy_value([0.6, 0.4], [1.0, 0.0], k) == pytest.approx(tail, abs=1e-12)


N, K = 20, 10
"""184,756 subsets: more than are counted out."""


def counted_of_twenty(samples: Samples) -> tuple[float, Floats, Floats]:
    """U_k, s_i and U_{k−1}^{−i} of a weighted vote over all subsets at once."""
    masks = np.arange(2**N, dtype=np.int64)
    members = (masks[np.bitwise_count(masks) == K, None] >> np.arange(N)) % 2
    names = sorted({one.answer for one in samples if one.answer is not None})
    votes = np.array([[one.weight * (one.answer == name) for name in names] for one in samples])
    rewards = np.array([next(one.reward for one in samples if one.answer == name) for name in names])
    totals = members @ votes
    worth = worth_of(totals, rewards)
    below = [worth_of(totals[members[:, i] == 1] - votes[i], rewards).mean() for i in range(N)]
    return float(worth.mean()), members.T @ worth / len(members), np.array(below)


def worth_of(votes: Floats, rewards: Floats) -> Floats:
    lead = (votes == votes.max(axis=1, keepdims=True)) & (votes > 0)
    return np.asarray((lead @ rewards) / np.maximum(lead.sum(axis=1), 1))


def test_random_subsets_are_unbiased_where_there_are_too_many_to_count() -> None:
    samples, seeds = drawn(N, 7), range(20)
    group = group_of(samples, "weighted_majority")
    u, s, below = counted_of_twenty(samples)
    assert value(group, "weighted_majority", K) == pytest.approx(u, abs=0.02)
    for estimator, known in (("loo1", s - K / N * below), ("urloo", N / (N - K) * (s - s.mean()))):
        draws = np.array([advantages(group, "weighted_majority", K, estimator, seed=seed) for seed in seeds])
        error = draws.std(axis=0, ddof=1) / math.sqrt(len(seeds))
        assert (error < 0.01).all()
        assert (np.abs(draws.mean(axis=0) - known) <= 5 * error + 1e-15).all()


def test_random_subsets_follow_the_seed_alone() -> None:
    group = group_of(drawn(N, 7), "weighted_majority")
    one, same, other = (advantages(group, "weighted_majority", K, "loo1", seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
