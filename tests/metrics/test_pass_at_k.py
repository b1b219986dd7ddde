from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.metrics.pass_at_k import pass_at_k
from pluribus.objectives import Group, value

DRAWN = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(DRAWN)
def test_it_is_the_share_of_choices_with_a_right_sample(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    choices = list(combinations(range(n), k))
    assert pass_at_k(n, c, k) == sum(min(choice) < c for choice in choices) / len(choices)


@given(DRAWN)
def test_it_is_the_value_of_the_objective(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    assert value(Group([1] * c + [0] * (n - c)), "pass", k) == pass_at_k(n, c, k)


def test_large_numbers_are_as_exact_as_small_ones() -> None:
    misses = prod(1 - 100 / i for i in range(9_998, 10_001))
    assert pass_at_k(10_000, 3, 100) == pytest.approx(1 - misses, rel=1e-9)
    assert pass_at_k(200, 0, 100) == 0.0
    assert pass_at_k(200, 150, 100) == 1.0
    assert pass_at_k(200, 50, 1) == 0.25


def test_a_small_chance_keeps_all_its_digits() -> None:
    """A 1 minus a float near 1 has ten digits left here."""
    n, c, k = 10**7, 1, 7
    exact = Fraction(comb(n, k) - comb(n - c, k), comb(n, k))
    assert pass_at_k(n, c, k) == float(exact) == 7e-7
    assert abs((1 - comb(n - c, k) / comb(n, k)) / 7e-7 - 1) > 1e-12


@pytest.mark.parametrize("drawn", [(0, 0, 1), (5, 6, 1), (5, -1, 1), (5, 2, 0), (5, 2, 6)])
def test_numbers_that_can_not_be_are_refused(drawn: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="needs 0 ≤ c ≤ n"):
        pass_at_k(*drawn)
