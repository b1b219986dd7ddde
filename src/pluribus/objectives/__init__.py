"""Train for what is deployed: values and advantages of inference-time objectives.

`mean`: one sample. `pass`, `max`: the best of k, found by a verifier. `best_of`: the one of k that a reward model
scores highest. `majority`: the vote of k; `weighted_majority`: the vote by weight.

>>> group = Group([1, 1, 0, 0], answers=["4", "4", "5", None])
>>> round(value(group, "majority", 3), 9)
0.75
>>> advantages(group, "majority", 3, "urloo").round(9).tolist()
[0.25, 0.25, -0.25, -0.25]
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pluribus.objectives._group import Group
from pluribus.objectives.best import Best
from pluribus.objectives.estimators import ESTIMATORS, Statistic, check, estimate
from pluribus.objectives.majority import Majority
from pluribus.objectives.mean import Mean
from pluribus.objectives.weighted import Weighted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ESTIMATORS", "OBJECTIVES", "Group", "advantages", "value"]

OBJECTIVES = ("mean", "pass", "max", "best_of", "majority", "weighted_majority")


def value(group: Group, objective: str, k: int, *, seed: int = 0) -> float:
    """U_k: the mean over all k-subsets of the group of what k samples are worth. Unbiased for J_k = E[h_k(y_1 … y_k)].

    >>> value(Group([0, 1, 0, 0, 1]), "pass", 3)
    0.9

    Args:
        group: n samples. `pass` needs rewards of 0 and 1, `best_of` scores, `majority` answers, `weighted_majority`
            answers and weights; equal answers need equal rewards. What an objective does not need it does not read.
        objective: one of `OBJECTIVES`.
        k: samples that the inference procedure sees, 1 … n.
        seed: of the random subsets of `weighted_majority`, where there are more than 100,000.

    Returns: in the unit of the rewards. A vote in which all abstain is worth 0.

    Raises ValueError on an unknown objective, k out of range, and a group that lacks what the objective needs.
    """
    _check_k(k, len(group.rewards))
    return _statistic(group, objective, group.rewards, seed).value(int(k))


def advantages(group: Group, objective: str, k: int, estimator: str, *, seed: int = 0) -> NDArray[np.float64]:
    """A_i with E[Σ_i A_i ∇ log π(y_i)] = ∇ J_k: the sum form; a trainer that averages over the n samples needs n A_i.

    >>> advantages(Group([0, 1, 3]), "max", 2, "loo1").round(9).tolist()
    [0.0, 0.333333333, 1.666666667]

    Args:
        group, objective, k, seed: as for `value`.
        estimator: one of `ESTIMATORS`. naive and loo need n = k, loo1 k ≥ 2, urloo n > k; only urloo adds up to 0.

    Returns: (n,), in the unit of the rewards. Equal samples have equal advantages. Samples that abstain have 0 under
        loo and loo1: they never change a vote.

    Raises ValueError as `value` does, and on an unknown estimator or one that is not there for this n and k.
    """
    n = len(group.rewards)
    _check_k(k, n)
    check(estimator, n, k)
    rewards = _shifted(group, objective) if estimator != "naive" and n > 1 else group.rewards
    return estimate(_statistic(group, objective, rewards, seed), estimator, n, int(k))


def _check_k(k: Any, n: int) -> None:
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise ValueError(f"k is {k!r}: expected a whole number from 1 to {n}, the samples of the group")
    if not 1 <= int(k) <= n:
        raise ValueError(f"k is {k}: expected 1 to {n}, the samples of the group")


def _shifted(group: Group, objective: str) -> Sequence[float]:
    """Rewards above the lowest: differences alone count, and equal rewards then give zeros without rounding.

    Not where somebody abstains from a vote: a vote of nobody is worth 0, whatever the others are worth.
    """
    lowest = min(group.rewards)
    if objective in ("majority", "weighted_majority") and None in (group.answers or ()):
        return group.rewards
    return [reward - lowest for reward in group.rewards]


def _statistic(group: Group, objective: str, rewards: Sequence[float], seed: int) -> Statistic:
    match objective:
        case "mean":
            return Mean(rewards)
        case "pass":
            _check_binary(group.rewards)
            return Best(rewards, rewards)
        case "max":
            return Best(rewards, rewards)
        case "best_of":
            return Best(rewards, _there(group.scores, objective, "scores"))
        case "majority":
            return Majority(*_classes(group, objective, rewards))
        case "weighted_majority":
            weights = _there(group.weights, objective, "weights")
            return Weighted(*_classes(group, objective, rewards), weights, seed)
    raise ValueError(f"unknown objective {objective!r}: expected one of {', '.join(OBJECTIVES)}")


def _there(column: Sequence[Any] | None, objective: str, name: str) -> Sequence[Any]:
    if column is None:
        raise ValueError(f"objective {objective} needs {name}, and the group has none: give one per sample")
    return column


def _check_binary(rewards: Sequence[float]) -> None:
    for index, reward in enumerate(rewards):
        if reward not in (0.0, 1.0):
            raise ValueError(
                f"objective pass: reward of sample {index} is {reward!r}; pass takes 0 and 1, max any rewards"
            )


def _classes(group: Group, objective: str, rewards: Sequence[float]) -> tuple[list[int], list[float]]:
    """Each sample's answer class, −1 for an abstention, and the reward of each class."""
    firsts: dict[str, int] = {}
    for index, answer in enumerate(_there(group.answers, objective, "answers")):
        if answer is not None:
            _check_equal(group, answer, firsts.setdefault(answer, index), index)
    numbered = {answer: number for number, answer in enumerate(firsts)}
    class_of = [-1 if answer is None else numbered[answer] for answer in group.answers or ()]
    return class_of, [rewards[first] for first in firsts.values()]


def _check_equal(group: Group, answer: str, first: int, index: int) -> None:
    known, reward = group.rewards[first], group.rewards[index]
    if known != reward:
        raise ValueError(
            f"answer {answer!r} has reward {known!r} in sample {first} and {reward!r} in sample {index}: "
            "expected one reward per answer, for the vote can not tell its samples apart"
        )
