"""How much the estimates vary, over every group that a policy can draw."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.objectives.cases import GROUPS
from tests.objectives.reference import Policy, Sample, moments, ours

N = 16
POLICIES = {
    "rarely right": Policy((Sample("A", 1.0), Sample("B", 0.0)), (-2.0, 0.0)),
    "half right": Policy((Sample("A", 1.0), Sample("B", 0.0)), (0.2, 0.0)),
    "mostly right": Policy((Sample("A", 1.0), Sample("B", 0.0)), (1.5, 0.0)),
    "behind the leader": Policy((Sample("A", 1.0), Sample("B", 0.0), Sample("C", 0.0)), (0.3, 0.6, -0.5)),
    "abstains": Policy((Sample("A", 1.0), Sample("B", 0.0), Sample(None, 0.0)), (0.3, 0.1, 0.4)),
}


def variance(policy: Policy, n: int, objective: str, k: int, estimator: str) -> float:
    """Sum over the logits."""
    return moments(policy, n, ours(objective, k, estimator))[1]


@pytest.mark.parametrize("logit", [-1.5, 0.0, 0.8])
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_pass_at_k_of_a_coin_has_the_known_variance(k: int, logit: float) -> None:
    """g over the one logit of a coin; a softmax of two outcomes has it in both logits, with opposite signs."""
    coin = Policy((Sample("A", 1.0), Sample("B", 0.0)), (logit, 0.0))
    p = float(coin.p[0])
    m = k * p * (1 - p) ** k
    naive = k * p * (1 - p) - (1 - p) ** k * k**2 * p**2 - m**2
    loo = k * p * (1 - p) ** (k + 1) - m**2
    assert variance(coin, k, "pass", k, "naive") / 2 == pytest.approx(naive, abs=1e-12)
    assert variance(coin, k, "pass", k, "loo") / 2 == pytest.approx(loo, abs=1e-12)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("objective", "k"), [("pass", 2), ("pass", 4), ("pass", 8), ("majority", 4), ("majority", 8)])
def test_all_subsets_vary_less_than_disjoint_groups(objective: str, k: int, name: str) -> None:
    """Of 16 samples, the fair use of `naive` and `loo` is the mean over 16/k groups.

    loo1 is the mean of such a `loo` over all ways to part the samples into groups, so it can not vary more.
    """
    policy = POLICIES[name]
    naive, loo = (variance(policy, k, objective, k, estimator) / (N // k) for estimator in ("naive", "loo"))
    loo1 = variance(policy, N, objective, k, "loo1")
    assert loo1 < loo
    assert loo1 < naive


@pytest.mark.parametrize("objective", ["mean", "max", "best_of", "majority", "weighted_majority"])
def test_loo1_is_the_mean_of_loo_over_all_partitions(objective: str) -> None:
    """Six samples in two groups of three: ten ways, each estimate divided by the number of groups."""
    samples = GROUPS["graded 6"]
    total = np.zeros(6)
    for first in combinations(range(1, 6), 2):
        parts = [0, *first], [i for i in range(1, 6) if i not in first]
        for part in parts:
            total[part] += ours(objective, 3, "loo")(tuple(samples[i] for i in part)) / 2
    np.testing.assert_allclose(ours(objective, 3, "loo1")(samples), total / 10, rtol=0, atol=1e-13)
