from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.consensus.votes import plurality
from pluribus.errors import UnknownName, UsageError

ANSWERS = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=9)


def test_most_votes_win_and_abstentions_are_not_votes_cast() -> None:
    vote = plurality(["b", "a", None, "a", None, "a"])
    assert (vote.winner, vote.share, vote.margin, vote.tie, vote.abstained) == ("a", 0.75, 0.5, (), 2)
    assert list(vote.counts.items()) == [("b", 1.0), ("a", 3.0)], "in the order first seen"


def test_nobody_answered() -> None:
    vote = plurality([None, None])
    assert (vote.winner, vote.share, vote.margin, vote.abstained, dict(vote.counts)) == (None, None, None, 2, {})


def test_one_answer_leads_by_everything() -> None:
    vote = plurality(["a"])
    assert (vote.share, vote.margin) == (1.0, 1.0)


@pytest.mark.parametrize(("tie", "winner"), [("first", "b"), ("fractional", "b"), ("abstain", None)])
def test_tie_rules(tie: str, winner: str | None) -> None:
    vote = plurality(["b", "a", "a", "b", "c"], tie=tie)
    assert (vote.winner, vote.tie, vote.margin) == (winner, ("b", "a"), 0.0)
    assert vote.share == (None if winner is None else 0.4)


def test_a_random_tie_is_settled_by_the_seed_not_by_the_order_and_evenly() -> None:
    answers = ["b", "a", "c"]
    winners = Counter(plurality(answers, tie="random", seed=seed).winner for seed in range(3000))
    assert all(900 < winners[answer] < 1100 for answer in answers)
    for seed in range(20):
        assert (
            plurality(["c", "b", "a"], tie="random", seed=seed).winner
            == plurality(answers, tie="random", seed=seed).winner
        )


def test_weights_are_votes() -> None:
    vote = plurality(["a", "b", "b", None], [3.0, 1.0, 1.5, 9.0])
    assert (vote.winner, dict(vote.counts)) == ("a", {"a": 3.0, "b": 2.5})
    assert vote.share == pytest.approx(3 / 5.5)


def test_weights_that_sum_to_the_same_tie_in_spite_of_rounding() -> None:
    assert plurality(["a", "a", "b"], [0.1, 0.2, 0.3]).tie == ("a", "b")


def test_only_voters_of_weight_zero_answered() -> None:
    vote = plurality(["a", None], [0.0, 1.0])
    assert (vote.winner, vote.share, vote.margin) == (None, None, None)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, -0.5], "-0.5 of voter 1"),
        ([math.nan, 1.0], "nan of voter 0"),
        ([1.0, math.inf], "inf of voter 1"),
        ([1e308, 1e308], r"weight 1e\+308 of voter 0 is above 1e200; divide"),
        ([1, 10**400], "of voter 1 is above 1e200"),
        ([0.0, 0.0], "all weights are 0"),
        ([1.0], "1 weights for 2 voters"),
    ],
)
def test_unusable_weights_are_errors(weights: list[float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plurality(["a", "b"], weights)


def test_an_unknown_tie_rule_lists_the_known() -> None:
    with pytest.raises(UnknownName, match="fractional"):
        plurality(["a"], tie="coin")


@given(ANSWERS)
def test_who_votes_first_does_not_matter_without_a_tie(answers: list[str | None]) -> None:
    vote, turned = plurality(answers), plurality(answers[::-1])
    assert set(vote.tie) == set(turned.tie)
    if not vote.tie:
        assert vote.winner == turned.winner


@given(ANSWERS)
def test_equal_weights_are_no_weights(answers: list[str | None]) -> None:
    plain, weighted = plurality(answers), plurality(answers, [2.0] * len(answers))
    assert (plain.winner, plain.tie, plain.abstained) == (weighted.winner, weighted.tie, weighted.abstained)
    assert plain.share == pytest.approx(weighted.share)


@given(ANSWERS)
def test_votes_and_abstentions_are_all_voters(answers: list[str | None]) -> None:
    vote = plurality(answers)
    assert sum(vote.counts.values()) + vote.abstained == len(answers)
