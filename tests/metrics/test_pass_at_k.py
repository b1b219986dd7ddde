from __future__ import annotations

from itertools import combinations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.metrics.pass_at_k import pass_at_k


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_it_is_the_share_of_choices_with_a_right_sample(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    choices = list(combinations(range(n), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(min(choice) < c for choice in choices) / len(choices))


def test_large_numbers_are_as_exact_as_small_ones() -> None:
    misses = prod(1 - 100 / i for i in range(9_998, 10_001))
    assert pass_at_k(10_000, 3, 100) == pytest.approx(1 - misses, rel=1e-9)
    assert pass_at_k(200, 0, 100) == 0.0
    assert pass_at_k(200, 150, 100) == 1.0
    assert pass_at_k(200, 50, 1) == pytest.approx(0.25)


@pytest.mark.parametrize("drawn", [(0, 0, 1), (5, 6, 1), (5, -1, 1), (5, 2, 0), (5, 2, 6)])
def test_numbers_that_can_not_be_are_refused(drawn: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="needs 0 ≤ c ≤ n"):
        pass_at_k(*drawn)
