"""Numbers worked out by hand, in sum form."""

from __future__ import annotations

import numpy as np
import pytest

from pluribus.objectives import Group, advantages, value


def voted(letters: str) -> Group:
    """A is worth 1, every other answer 0, `-` abstains."""
    return Group([float(one == "A") for one in letters], answers=[None if one == "-" else one for one in letters])


PASS = Group([1.0, 1.0, 0.0, 0.0])
MAX = Group([0.0, 1.0, 3.0])
VALUES = [
    (PASS, "pass", 2, 5 / 6),
    (MAX, "max", 2, 7 / 3),
    (voted("AABC"), "majority", 3, 2 / 3),
    (voted("AABBC"), "majority", 3, 13 / 30),
    (voted("AAB-"), "majority", 3, 3 / 4),
    (voted("AABB"), "majority", 4, 1 / 2),
    (voted("----"), "majority", 3, 0.0),
]
ADVANTAGES = [
    (PASS, "pass", 2, "loo1", [1 / 3, 1 / 3, 0, 0]),
    (PASS, "pass", 2, "urloo", [1 / 6, 1 / 6, -1 / 6, -1 / 6]),
    (MAX, "max", 2, "loo1", [0, 1 / 3, 5 / 3]),
    (MAX, "max", 2, "urloo", [-2 / 3, -2 / 3, 4 / 3]),
    (MAX, "max", 3, "loo", [0, 0, 2]),
    (voted("AABC"), "majority", 3, "loo1", [1 / 3, 1 / 3, -1 / 12, -1 / 12]),
    (voted("AABC"), "majority", 3, "urloo", [1 / 3, 1 / 3, -1 / 3, -1 / 3]),
    (voted("AABBC"), "majority", 3, "loo1", [13 / 60, 13 / 60, -2 / 15, -2 / 15, -1 / 15]),
    (voted("AABBC"), "majority", 3, "urloo", [4 / 15, 4 / 15, -7 / 30, -7 / 30, -1 / 15]),
    (voted("AAB-"), "majority", 3, "loo1", [1 / 4, 1 / 4, -1 / 4, 0]),
    (voted("AABB"), "majority", 4, "loo", [0.5, 0.5, -0.5, -0.5]),
    (voted("AAB"), "majority", 3, "loo", [0.5, 0.5, 0]),
    (voted("AABBC"), "majority", 5, "loo", [0.5, 0.5, -0.5, -0.5, 0]),
    (voted("AAAB"), "majority", 4, "loo", [0, 0, 0, 0]),
    (voted("ABC"), "majority", 3, "loo", [1 / 3, -1 / 6, -1 / 6]),
    (voted("A--"), "majority", 3, "loo", [1, 0, 0]),
]
SHARES = [
    (PASS, "pass", 2, [1 / 2, 1 / 2, 1 / 3, 1 / 3]),
    (MAX, "max", 2, [4 / 3, 4 / 3, 2]),
    (voted("AABC"), "majority", 3, [7 / 12, 7 / 12, 5 / 12, 5 / 12]),
]


@pytest.mark.parametrize(("group", "objective", "k", "known"), VALUES)
def test_values(group: Group, objective: str, k: int, known: float) -> None:
    assert value(group, objective, k) == pytest.approx(known, abs=1e-12)


@pytest.mark.parametrize(("group", "objective", "k", "estimator", "known"), ADVANTAGES)
def test_advantages(group: Group, objective: str, k: int, estimator: str, known: list[float]) -> None:
    np.testing.assert_allclose(advantages(group, objective, k, estimator), known, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("group", "objective", "k", "known"), SHARES)
def test_what_each_sample_adds(group: Group, objective: str, k: int, known: list[float]) -> None:
    """s_i = ((n − k)/n) urloo_i + (k/n) U_k, because mean s = (k/n) U_k."""
    n = len(known)
    centred = advantages(group, objective, k, "urloo")
    found = (n - k) / n * centred + k / n * value(group, objective, k)
    np.testing.assert_allclose(found, known, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 2, 2), (8, 3, 4), (8, 1, 8), (5, 0, 2), (6, 5, 3)])
def test_pass_at_k_rewards_the_right_samples_alone(n: int, c: int, k: int) -> None:
    """loo1: (k/n) C(n − c, k − 1) / C(n − 1, k − 1) for a right sample and 0 for a wrong one."""
    from math import comb

    found = advantages(Group([1.0] * c + [0.0] * (n - c)), "pass", k, "loo1")
    right = k / n * comb(n - c, k - 1) / comb(n - 1, k - 1)
    np.testing.assert_allclose(found, [right] * c + [0.0] * (n - c), rtol=0, atol=1e-13)


def test_loo_of_a_known_best_sample_is_its_lead() -> None:
    np.testing.assert_allclose(
        advantages(Group([0.5, -1.0, 2.0, 1.25]), "max", 4, "loo"), [0, 0, 0.75, 0], rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(advantages(Group([2.0, -1.0, 2.0]), "max", 3, "loo"), [0, 0, 0], rtol=0, atol=1e-15)
    by_score = Group([0.5, -1.0, 2.0], scores=[0.1, 0.9, 0.3])
    np.testing.assert_allclose(advantages(by_score, "best_of", 3, "loo"), [0, -3, 0], rtol=0, atol=1e-15)
