from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.diversity.answers import consensus, effective_number, entropy, gini

ANSWERS = st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=9)


def test_three_agents_by_hand() -> None:
    # "4", "4", "5": shares 2/3 and 1/3. H = (2/3) log₂(3/2) + (1/3) log₂ 3 = log₂ 3 − 2/3; 2^H = 3 / 2^(2/3).
    said = ["4", "4", "5", None]
    assert entropy(said) == pytest.approx(math.log2(3) - 2 / 3, abs=1e-12)
    assert effective_number(said) == pytest.approx(3 / 2 ** (2 / 3), abs=1e-12)
    assert consensus(said) == pytest.approx(4 / 9 + 1 / 9, abs=1e-12)
    assert gini(said) == pytest.approx(4 / 9, abs=1e-12)


@given(ANSWERS)
def test_consensus_is_the_share_of_ordered_pairs_that_agree(answers: list[str | None]) -> None:
    said = [answer for answer in answers if answer is not None]
    if not said:
        assert (consensus(answers), gini(answers), entropy(answers), effective_number(answers)) == (None,) * 4
        return
    pairs = list(product(said, said))
    assert consensus(answers) == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    assert gini(answers) == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))


@given(ANSWERS.filter(any))
def test_the_effective_number_lies_between_one_and_the_answers_given(answers: list[str | None]) -> None:
    number = effective_number(answers)
    assert number is not None
    assert 1 <= number <= len({*answers} - {None}) + 1e-12
    assert number >= 1 / (consensus(answers) or 0) - 1e-12  # Hill numbers fall with their order


@pytest.mark.parametrize("n", [1, 2, 7])
def test_all_different_count_in_full_and_all_equal_as_one(n: int) -> None:
    assert effective_number([str(i) for i in range(n)]) == pytest.approx(n)
    assert (effective_number(["4"] * n), entropy(["4"] * n), gini(["4"] * n)) == (1, 0, 0)
