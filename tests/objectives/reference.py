"""The objectives by their definitions alone: every subset, every group, every policy is counted out.

Slow on purpose. Nothing here is computed by the package, whose closed forms must agree with these counts; `ours` is its
door, for the functions that take an estimator.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluribus.objectives import Group, advantages

Floats = NDArray[np.float64]
OBJECTIVES = ("mean", "pass", "max", "best_of", "majority", "weighted_majority")
ESTIMATORS = ("naive", "loo", "loo1", "urloo")
_USES = {"best_of": ("scores",), "majority": ("answers",), "weighted_majority": ("answers", "weights")}
"""What an objective reads besides the rewards."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One outcome of a policy, or one sample of a group."""

    answer: str | None
    reward: float
    score: float = 0.0
    weight: float = 1.0


Samples = tuple[Sample, ...]
Value = Callable[[Sequence[Sample]], float]
Estimator = Callable[[Samples], Floats]


def group_of(samples: Sequence[Sample], objective: str) -> Group:
    """The group with those fields alone that the objective reads."""
    columns: Mapping[str, list[Any]] = {
        "answers": [one.answer for one in samples],
        "scores": [one.score for one in samples],
        "weights": [one.weight for one in samples],
    }
    return Group([one.reward for one in samples], **{name: columns[name] for name in _USES.get(objective, ())})


def ours(objective: str, k: int, estimator: str) -> Estimator:
    """The package's estimator, of samples."""
    return lambda samples: advantages(group_of(samples, objective), objective, k, estimator)


def h(objective: str) -> Value:
    """h of a non-empty set of samples; ties are worth the mean of those who tie."""
    return {
        "mean": _mean,
        "pass": _best,
        "max": _best,
        "best_of": _of_best_score,
        "majority": _of_most_votes,
        "weighted_majority": _of_most_weight,
    }[objective]


def _mean(samples: Sequence[Sample]) -> float:
    return math.fsum(one.reward for one in samples) / len(samples)


def _best(samples: Sequence[Sample]) -> float:
    return max(one.reward for one in samples)


def _of_best_score(samples: Sequence[Sample]) -> float:
    top = max(one.score for one in samples)
    return _mean([one for one in samples if one.score == top])


def _of_most_votes(samples: Sequence[Sample]) -> float:
    return _won(samples, [1.0] * len(samples))


def _of_most_weight(samples: Sequence[Sample]) -> float:
    return _won(samples, [one.weight for one in samples])


def _won(samples: Sequence[Sample], weights: Sequence[float]) -> float:
    leaders = winners(samples, weights)
    reward_of = {one.answer: one.reward for one in samples}
    return math.fsum(reward_of[answer] for answer in leaders) / len(leaders) if leaders else 0.0


def winners(samples: Sequence[Sample], weights: Sequence[float] | None = None) -> list[str]:
    """The answers with the most weight, all of them where they tie; weights that are not whole add up exactly."""
    totals: dict[str, Fraction] = {}
    for one, weight in zip(samples, weights or [1.0] * len(samples), strict=True):
        if one.answer is not None:
            totals[one.answer] = totals.get(one.answer, Fraction(0)) + Fraction(weight)
    return [answer for answer, total in totals.items() if total == max(totals.values())]


@dataclass(frozen=True, slots=True)
class Counted:
    """U_k, s_i and U_k without i of one group and one k, over every subset."""

    u: float
    s: Floats
    without: Floats
    """U_k^{-i}; 0 for k = 0 and NaN where the others are fewer than k."""


def counted(samples: Sequence[Sample], value: Value) -> list[Counted]:
    """For k = 0 … n, in this order."""
    n = len(samples)
    members = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    worth = np.array(
        [value([samples[i] for i in np.flatnonzero(row).tolist()]) if row.any() else 0.0 for row in members]
    )
    sizes = members.sum(axis=1)
    return [_of_size(members[sizes == k], worth[sizes == k]) for k in range(n + 1)]


def _of_size(members: NDArray[np.bool_], worth: Floats) -> Counted:
    outside = ~members
    times = outside.sum(axis=0)
    without = np.where(times > 0, outside.T @ worth / np.maximum(times, 1), np.nan)
    return Counted(float(worth.mean()), members.T @ worth / len(members), without)


def defined(estimator: str, n: int, k: int) -> bool:
    """For which n and k the estimator is there."""
    return {"naive": n == k, "loo": n == k, "loo1": n >= k >= 2, "urloo": n > k}[estimator]


def estimates(table: Sequence[Counted], k: int, estimator: str) -> Floats:
    """A_i of one group from its counted table, by the estimator's definition."""
    n = len(table) - 1
    here, below = table[k], table[max(k - 1, 0)]
    if estimator == "naive":
        return np.full(n, here.u)
    if estimator == "loo":
        return here.u - below.without
    if estimator == "loo1":
        return here.s - k / n * below.without
    return np.asarray(n / (n - k) * (here.s - here.s.mean()))


@dataclass(frozen=True, slots=True)
class Policy:
    """A softmax over a few outcomes; its parameters are the logits."""

    outcomes: Samples
    logits: tuple[float, ...]

    @property
    def p(self) -> Floats:
        return softmax(np.array(self.logits))


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    powers = np.exp(logits)
    return np.asarray(powers / powers.sum())


def groups(policy: Policy, n: int) -> Iterator[tuple[Samples, float, Floats]]:
    """Every group of n draws up to order: its samples, its probability, and Σ ∇ log π of each sample, shape (n, A).

    Estimators treat samples alike whatever their order, so each multiset stands for all its orders.
    """
    p, eye = policy.p, np.eye(len(policy.outcomes))
    for draw in combinations_with_replacement(range(len(p)), n):
        ways = orders(draw)
        yield tuple(policy.outcomes[i] for i in draw), ways * float(np.prod(p[list(draw)])), eye[list(draw)] - p


def orders(draw: Sequence[int]) -> int:
    """In how many orders a multiset can be drawn."""
    return math.factorial(len(draw)) // math.prod(math.factorial(times) for times in Counter(draw).values())


def objective_value(policy: Policy, k: int, value: Value) -> float:
    """J_k, over every group of k."""
    return math.fsum(chance * value(samples) for samples, chance, _ in groups(policy, k)) if k else 0.0


def true_gradient(policy: Policy, k: int, value: Value) -> Floats:
    """∇ J_k over the logits by a complex step: J_k as a polynomial of the policy, with no score function in it."""
    m, step = len(policy.outcomes), 1e-30
    draws = list(combinations_with_replacement(range(m), k))
    worth = np.array([orders(draw) * value([policy.outcomes[i] for i in draw]) for draw in draws]) if k else np.zeros(1)
    slopes = []
    for j in range(m):
        p = softmax(np.array(policy.logits) + 1j * step * np.eye(m)[j])
        slopes.append((p[np.array(draws, dtype=int)].prod(axis=1) @ worth).imag / step)
    return np.array(slopes)


def moments(policy: Policy, n: int, estimator: Estimator) -> tuple[Floats, float]:
    """Mean of g = Σ A_i ∇ log π(y_i) over every group of n, and the trace of its covariance."""
    chances, gradients = [], []
    for samples, chance, scores in groups(policy, n):
        chances.append(chance)
        gradients.append(estimator(samples) @ scores)
    weights, table = np.array(chances), np.array(gradients)
    mean = weights @ table
    return mean, float(weights @ ((table - mean) ** 2).sum(axis=1))


def mean_gradient(policy: Policy, n: int, estimator: Estimator) -> Floats:
    return moments(policy, n, estimator)[0]


def vote_value(counts: Sequence[int], rewards: Sequence[float], abstained: int, k: int) -> Fraction:
    """U_k of a plain vote in whole numbers, class after class.

    A state is (votes drawn, most votes of a class, classes that have them); it holds in how many ways it is reached and
    the sum of the leaders' rewards over these ways. It never asks which count wins before all classes are in.
    """
    states = {(drawn, 0, 0): (math.comb(abstained, drawn), Fraction(0)) for drawn in range(min(abstained, k) + 1)}
    for count, reward in zip(counts, rewards, strict=True):
        states = _with_class(states, count, Fraction(reward), k)
    total = sum((led / ties for (drawn, _, ties), (_, led) in states.items() if drawn == k and ties), Fraction(0))
    return total / math.comb(sum(counts) + abstained, k)


_States = dict[tuple[int, int, int], tuple[int, Fraction]]


def _with_class(states: _States, count: int, reward: Fraction, k: int) -> _States:
    found: _States = {}
    for (drawn, most, ties), (ways, led) in states.items():
        for votes in range(min(count, k - drawn) + 1):
            times = math.comb(count, votes)
            state, sums = (drawn + votes, most, ties), led
            if votes > most:
                state, sums = (drawn + votes, votes, 1), ways * reward
            elif votes == most and votes:
                state, sums = (drawn + votes, most, ties + 1), led + ways * reward
            before = found.get(state, (0, Fraction(0)))
            found[state] = (before[0] + times * ways, before[1] + times * sums)
    return found
