"""What can not be computed is a ValueError that names the thing and what was found."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from tests.objectives.reference import OBJECTIVES

from pluribus.metrics.maj_at_k import maj_at_k
from pluribus.objectives import Group, advantages, value
from pluribus.objectives.majority import policy_value

FULL: dict[str, Any] = {"answers": ["A", "A", "B"], "scores": [0.1, 0.5, 0.2], "weights": [1.0, 2.0, 0.5]}
REWARDS = [1.0, 1.0, 0.0]
SIZES: list[tuple[Any, str]] = [
    (4, "k.*4"), (0, "k.*0"), (-1, "k.*-1"), (True, "k.*True"), (1.0, r"k.*1\.0"), ("2", "k.*'2'"), (None, "k.*None"),
    (np.float64(2), "k.*2.0"),
]  # fmt: skip


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("k", "names"), SIZES)
def test_a_size_that_can_not_be(k: Any, names: str, objective: str) -> None:
    with pytest.raises(ValueError, match=names):
        value(Group(REWARDS, **FULL), objective, k)
    with pytest.raises(ValueError, match=names):
        advantages(Group(REWARDS, **FULL), objective, k, "urloo")
    with pytest.raises(ValueError, match=names):
        maj_at_k(FULL["answers"], REWARDS, k)


def test_a_size_of_numpys_is_a_size() -> None:
    two: Any = np.int64(2)
    assert value(Group(REWARDS), "max", two) == value(Group(REWARDS), "max", 2)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    ("k", "estimator"), [(2, "naive"), (2, "loo"), (1, "loo1"), (3, "urloo")], ids=lambda one: str(one)
)
def test_an_estimator_where_it_is_not_there(k: int, estimator: str, objective: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s){estimator}.*{k}"):
        advantages(Group(REWARDS, **FULL), objective, k, estimator)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, 1.5e200, -1.5e308])
def test_a_reward_that_is_no_number(reward: float, objective: str) -> None:
    with pytest.raises(ValueError, match=rf"reward.*{re.escape(str(reward))}"):
        value(
            Group([1.0, reward, 0.0], answers=["A", "C", "B"], scores=FULL["scores"], weights=FULL["weights"]),
            objective,
            2,
        )


@pytest.mark.parametrize("objective", [one for one in OBJECTIVES if one != "pass"])
def test_the_greatest_numbers_have_finite_advantages(objective: str) -> None:
    n, most = 20, 1e200
    rewards, answers = [most, most, -most, most] * 5, ["A", "A", "B", "A"] * 5
    group = Group(rewards, answers=answers, scores=rewards, weights=[most] * n)
    for k, estimator in ((n, "naive"), (n, "loo"), (n // 2, "loo1"), (n // 2, "urloo"), (2, "loo1"), (1, "urloo")):
        assert np.isfinite(advantages(group, objective, k, estimator)).all()


@pytest.mark.parametrize("rewards", [["1", "0"], [None, 1.0], [1j, 0.0], [[1.0], [0.0]], 1.0, "10"])
def test_rewards_of_another_kind(rewards: Any) -> None:
    with pytest.raises(ValueError, match="reward"):
        value(Group(rewards), "max", 1)


def test_rewards_that_are_not_passed_or_failed() -> None:
    with pytest.raises(ValueError, match=r"(?=.*pass).*0\.5"):
        value(Group([1.0, 0.5, 0.0]), "pass", 2)
    with pytest.raises(ValueError, match=r"(?=.*pass).*-1"):
        advantages(Group([1.0, -1.0, 0.0]), "pass", 2, "loo1")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_group_of_nobody(objective: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)empty|no sample|0 sample|at least 1|at least one"):
        value(Group([], answers=[], scores=[], weights=[]), objective, 1)


@pytest.mark.parametrize(
    ("objective", "missing"),
    [
        ("majority", "answers"),
        ("weighted_majority", "answers"),
        ("weighted_majority", "weights"),
        ("best_of", "scores"),
    ],
)
def test_what_an_objective_needs_and_the_group_lacks(objective: str, missing: str) -> None:
    group = Group(REWARDS, **{name: column for name, column in FULL.items() if name != missing})
    with pytest.raises(ValueError, match=rf"(?s){objective}.*{missing}|{missing}.*{objective}"):
        value(group, objective, 2)
    with pytest.raises(ValueError, match=missing):
        advantages(group, objective, 2, "loo1")


@pytest.mark.parametrize(
    ("name", "objective"), [("answers", "majority"), ("scores", "best_of"), ("weights", "weighted_majority")]
)
def test_one_value_per_sample(name: str, objective: str) -> None:
    for column in (FULL[name][:2], [*FULL[name], FULL[name][0]]):
        with pytest.raises(ValueError, match=rf"(?s){len(column)}.*{name}|{name}.*{len(column)}"):
            value(Group(REWARDS, **{**FULL, name: column}), objective, 2)


@pytest.mark.parametrize(
    ("answer", "names"), [(["A"], r"\['A'\]"), ({"a": 1}, "'a'"), (0.5, r"0\.5"), (7, "7"), (b"A", "b'A'")]
)
@pytest.mark.parametrize("objective", ["majority", "weighted_majority"])
def test_answers_that_are_not_strings(objective: str, answer: Any, names: str) -> None:
    group = {**FULL, "answers": ["A", answer, "B"]}
    with pytest.raises(ValueError, match=rf"(?s)answer.*{names}"):
        value(Group(REWARDS, **group), objective, 2)
    with pytest.raises(ValueError, match=rf"(?s)answer.*{names}"):
        advantages(Group(REWARDS, **group), objective, 2, "loo1")


class Pairwise:
    """Equal to what is near: Python itself then gives it no hash."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pairwise) and abs(self.number - other.number) <= 0.5

    def __repr__(self) -> str:
        return f"near {self.number}"


def test_answers_that_are_equal_in_pairs_only() -> None:
    with pytest.raises(ValueError, match=r"(?s)answer.*near 1\.0"):
        value(Group(REWARDS, answers=[Pairwise(1.0), Pairwise(1.4), Pairwise(1.8)]), "majority", 2)  # type: ignore[list-item]


@pytest.mark.parametrize(("weight", "names"), [(0.0, "0"), (-1.5, r"-1\.5"), (math.nan, "nan"), (math.inf, "inf")])
def test_weights_that_are_not_above_zero(weight: float, names: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s)weight.*{names}"):
        value(Group(REWARDS, answers=FULL["answers"], weights=[1.0, weight, 2.0]), "weighted_majority", 2)


def test_a_score_that_is_no_number() -> None:
    with pytest.raises(ValueError, match=r"(?s)score.*nan"):
        value(Group(REWARDS, scores=[0.5, math.nan, 0.1]), "best_of", 2)


@pytest.mark.parametrize("objective", ["majority", "weighted_majority"])
def test_one_answer_with_two_rewards(objective: str) -> None:
    group = Group([1.0, 0.25, 0.0], answers=["42", "42", "B"], weights=[1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"(?s)42.*0\.25|0\.25.*42"):
        value(group, objective, 2)
    with pytest.raises(ValueError, match="42"):
        maj_at_k(["42", "42", "B"], [1.0, 0.25, 0.0], 2)


def test_silent_samples_may_have_any_reward() -> None:
    assert value(Group([0.3, -0.7, 1.0], answers=[None, None, "A"]), "majority", 3) == 1.0


@pytest.mark.parametrize("name", ["mode", "Majority", "", "pass@k", None, ["max"]])
def test_an_objective_nobody_knows(name: Any) -> None:
    for call in (lambda: value(Group(REWARDS), name, 2), lambda: advantages(Group(REWARDS), name, 2, "loo1")):
        with pytest.raises(ValueError, match=r"(?s)objective.*weighted_majority") as refused:
            call()
        assert repr(name) in str(refused.value)


@pytest.mark.parametrize("name", ["rloo", "LOO", "", None, ["loo"]])
def test_an_estimator_nobody_knows(name: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)estimator.*urloo") as refused:
        advantages(Group(REWARDS), "max", 2, name)
    assert repr(name) in str(refused.value)


@pytest.mark.parametrize(
    ("chances", "rewards", "k", "abstain", "names"),
    [
        ([0.5, 0.5], [1.0], 3, 0.0, "2.*1|1.*2"),
        ([0.5, 0.6], [1.0, 0.0], 3, 0.0, r"1\.1"),
        ([0.5, 0.3], [1.0, 0.0], 3, 0.0, r"0\.8"),
        ([1.5, -0.5], [1.0, 0.0], 3, 0.0, r"1\.5|-0\.5"),
        ([0.5, 0.5], [1.0, math.nan], 3, 0.0, "nan"),
        ([0.5, 0.5], [1.0, 0.0], 0, 0.0, "k.*0"),
        ([0.5, 0.5], [1.0, 0.0], True, 0.0, "k.*True"),
        ([0.5, 0.6], [1.0, 0.0], 3, -0.1, r"-0\.1"),
    ],
)
def test_a_policy_that_can_not_be(
    chances: list[float], rewards: list[float], k: Any, abstain: float, names: str
) -> None:
    with pytest.raises(ValueError, match=rf"(?s){names}"):
        policy_value(chances, rewards, k, abstain=abstain)
