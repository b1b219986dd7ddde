"""Many sub-councils at once give what counting each of them alone gives."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.consensus.subsets import codes, plurality_accuracy, plurality_credit
from pluribus.consensus.votes import plurality

RIGHT = {"a": 1.0, "b": 0.0, "c": 0.0, "A": 1.0, None: 0.0}
"""Two spellings of a right answer: a key may have aliases."""
ROWS = st.lists(st.lists(st.sampled_from(["a", "b", "c", "A", None]), min_size=5, max_size=5), min_size=1, max_size=9)


def every_subset(n: int) -> np.ndarray:
    return np.array([mask for mask in product([False, True], repeat=n) if any(mask)])


def one_by_one(answers: list[str | None], mask: np.ndarray, tie: str) -> float:
    """The credit of one sub-council on one question, through the vote itself."""
    vote = plurality([answer for answer, sits in zip(answers, mask, strict=True) if sits], tie=tie)
    if tie == "fractional" and vote.tie:
        return sum(RIGHT[answer] for answer in vote.tie) / len(vote.tie)
    return RIGHT[vote.winner]


def rightness(rows: list[list[str | None]]) -> np.ndarray:
    return np.array([[RIGHT[answer] for answer in row] for row in rows])


@pytest.mark.parametrize("tie", ["fractional", "first"])
def test_every_vote_of_four_voters_and_every_subset_of_them(tie: str) -> None:
    rows = [list(row) for row in product(["a", "b", "c", "A", None], repeat=4)]
    members = every_subset(4)
    credit = plurality_credit(codes(rows), rightness(rows), members, tie)
    expected = [[one_by_one(row, mask, tie) for row in rows] for mask in members]
    assert credit.shape == (15, 625)
    np.testing.assert_array_equal(credit, expected)


@given(ROWS, st.sampled_from(["fractional", "first"]))
def test_the_mean_is_the_mean_of_the_table(rows: list[list[str | None]], tie: str) -> None:
    votes, right, members = codes(rows), rightness(rows), every_subset(5)
    table = plurality_credit(votes, right, members, tie)
    np.testing.assert_allclose(plurality_accuracy(votes, right, members, tie), table.mean(axis=1), atol=1e-12)


@given(ROWS, st.permutations(range(5)))
def test_the_order_of_the_voters_does_not_matter_when_ties_are_shared(
    rows: list[list[str | None]], order: list[int]
) -> None:
    turned = [[row[i] for i in order] for row in rows]
    members = every_subset(5)
    here = plurality_credit(codes(rows), rightness(rows), members)
    there = plurality_credit(codes(turned), rightness(turned), members[:, order])
    np.testing.assert_array_equal(here, there)


def test_more_subsets_and_questions_than_are_worked_on_at_once() -> None:
    rng = np.random.default_rng(3)
    votes = rng.integers(-1, 6, size=(3000, 6))
    right = np.where(votes == 1, 1.0, 0.0)
    members = every_subset(6)
    for tie in ("fractional", "first"):
        alone = [plurality_credit(votes, right, mask[None], tie)[0] for mask in members]
        np.testing.assert_array_equal(plurality_credit(votes, right, members, tie), alone)


def test_what_nobody_of_the_subset_is_known_for_is_neither_right_nor_wrong() -> None:
    votes = codes([["a", None, None], ["b", "b", "b"], [None, None, None]])
    right = np.array([[1.0, np.nan, np.nan], [np.nan] * 3, [0.0, 0.0, np.nan]])
    members = np.array([[True, True, True], [False, True, True], [False, False, True]])
    credit = plurality_credit(votes, right, members)
    np.testing.assert_array_equal(credit, [[1.0, np.nan, 0.0], [np.nan, np.nan, 0.0], [np.nan] * 3])
    np.testing.assert_array_equal(plurality_accuracy(votes, right, members), [0.5, 0.0, np.nan])


@pytest.mark.parametrize("tie", ["fractional", "first"])
def test_a_leading_answer_of_which_nobody_knows_whether_it_is_right_has_no_credit(tie: str) -> None:
    nan = float("nan")
    votes = codes([["a", "a", "b"], ["a", "b", None], ["a", "a", "b"]])
    right = np.array([[nan, nan, 0.0], [nan, 0.0, nan], [nan, 1.0, 0.0]])
    members = np.array([[True, True, True], [False, True, True]])
    found = plurality_credit(votes, right, members, tie)
    half = 0.5 if tie == "fractional" else 1.0
    np.testing.assert_array_equal(found, [[nan, nan, 1.0], [nan, 0.0, half]])
    np.testing.assert_allclose(plurality_accuracy(votes, right, members, tie), [1.0, half / 2])


def test_no_question_and_no_subset() -> None:
    assert plurality_credit(codes([]), np.zeros((0, 0)), np.zeros((1, 0), bool)).shape == (1, 0)
    assert np.isnan(plurality_accuracy(codes([]), np.zeros((0, 0)), np.zeros((1, 0), bool))).all()
    votes = codes([["a", "b"]])
    assert plurality_credit(votes, np.array([[1.0, 0.0]]), np.zeros((0, 2), bool)).shape == (0, 1)


def test_an_empty_subset_has_no_credit() -> None:
    assert np.isnan(plurality_credit(codes([["a"]]), np.array([[1.0]]), np.array([[False]]))).all()


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="tie is 'coin'; expected fractional or first"):
        plurality_credit(codes([["a"]]), np.array([[1.0]]), np.array([[True]]), "coin")
    with pytest.raises(ValueError, match=r"votes have shape \(1, 1\), their rightness \(1, 2\)"):
        plurality_credit(codes([["a"]]), np.array([[1.0, 0.0]]), np.array([[True]]))
