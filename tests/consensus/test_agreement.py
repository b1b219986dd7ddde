from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.consensus.agreement import pairwise, unanimous


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=8))
def test_pairwise_is_the_share_of_equal_pairs(answers: list[str | None]) -> None:
    pairs = list(combinations([a for a in answers if a is not None], 2))
    expected = sum(a == b for a, b in pairs) / len(pairs) if pairs else None
    assert pairwise(answers) == (expected if expected is None else pytest.approx(expected))


def test_unanimity_needs_every_answer() -> None:
    assert unanimous(["4"])
    assert not unanimous(["4", "5"])
    assert not unanimous([None, None])
