from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.consensus.subsets import codes, plurality_credit
from pluribus.consensus.votes import plurality
from pluribus.metrics.maj_at_k import maj_at_k

RIGHT = {"4": 1.0, "5": 0.0, "6": 0.0, "": 0.0}


def counted(answers: list[str | None], k: int) -> float:
    """Every subset by the vote of `consensus`, ties at their expectation."""
    credits = []
    for subset in combinations(answers, k):
        vote = plurality(list(subset), tie="fractional")
        leaders = vote.tie or ((vote.winner,) if vote.winner is not None else ())
        credits.append(sum(RIGHT[leader] for leader in leaders) / max(1, len(leaders)))
    return sum(credits) / len(credits)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([*RIGHT, None]), min_size=1, max_size=7), st.data())
def test_it_is_the_mean_over_all_councils_of_k(answers: list[str | None], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(answers)))
    rewards = [0.0 if answer is None else RIGHT[answer] for answer in answers]
    assert maj_at_k(answers, rewards, k) == pytest.approx(counted(answers, k), abs=1e-12)


def test_it_agrees_with_the_count_over_sub_councils() -> None:
    answers = ["4", "5", "4", "6", None, "5", "4", "6", "4", "5"]
    right = [float(answer == "4") for answer in answers]
    votes, known = codes([answers]), np.array([right])
    for k in range(1, 11):
        members = np.array([np.isin(range(10), subset) for subset in combinations(range(10), k)])
        credit = plurality_credit(votes, known, members)
        assert maj_at_k(answers, right, k) == pytest.approx(float(credit.mean()), abs=1e-12)


@pytest.mark.parametrize("n, k", list(product([9, 64], [1, 3, 8])))
def test_two_answers_are_a_hypergeometric_tail(n: int, k: int) -> None:
    right = n // 2 + 1
    ways = [comb(right, v) * comb(n - right, k - v) for v in range(k + 1)]
    twice = sum(way * ((2 * v > k) + (2 * v >= k)) for v, way in enumerate(ways))
    answers, rewards = ["4"] * right + ["5"] * (n - right), [1] * right + [0] * (n - right)
    assert maj_at_k(answers, rewards, k) == pytest.approx(float(Fraction(twice, 2 * comb(n, k))), abs=1e-13)


def test_one_vote_is_plain_accuracy_and_silence_is_no_vote() -> None:
    assert maj_at_k(["4", "5", None, "6"], [True, False, False, False], 1) == pytest.approx(0.25)
    assert maj_at_k(["4", "5", None], [1, 0, 0], 2) == pytest.approx(0.5)  # a tie, "4" alone, "5" alone
    assert maj_at_k([None, None], [0, 0], 2) == 0.0


def test_drawing_with_replacement_is_another_number() -> None:
    """Of AAB every three are AAB; drawn with replacement B wins in 7 of 27."""
    answers, rewards = ["4", "4", "5"], [1, 1, 0]
    drawn = [sum(answers[i] == "4" for i in picks) >= 2 for picks in product(range(3), repeat=3)]
    assert maj_at_k(answers, rewards, 3) == 1.0
    assert sum(drawn) / len(drawn) == pytest.approx(20 / 27)


def test_equal_answers_have_equal_rewards() -> None:
    with pytest.raises(ValueError, match=r"answer '4' has reward 1\.0 in sample 0 and 0\.0 in sample 2"):
        maj_at_k(["4", "5", "4"], [1, 0, 0], 3)
    with pytest.raises(ValueError, match="k is 4: expected 1 to 3"):
        maj_at_k(["4", "5", "4"], [1, 0, 1], 4)
