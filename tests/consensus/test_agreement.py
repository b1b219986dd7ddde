from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.consensus.agreement import fleiss_kappa, pairwise, shared_codes, unanimous


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=8))
def test_pairwise_is_the_share_of_equal_pairs(answers: list[str | None]) -> None:
    pairs = list(combinations([a for a in answers if a is not None], 2))
    expected = sum(a == b for a, b in pairs) / len(pairs) if pairs else None
    assert pairwise(answers) == (expected if expected is None else pytest.approx(expected))


def test_unanimity_needs_every_answer() -> None:
    assert unanimous(["4"])
    assert not unanimous(["4", "5"])
    assert not unanimous([None, None])


def test_fleiss_kappa_by_hand() -> None:
    # Pairs that agree: 1, 1/3, 1, 0, mean P = 7/12. Of 12 answers 6 are 0, 5 are 1, 1 is 2:
    # E = (36 + 25 + 1) / 144 = 31/72. κ = (42/72 − 31/72) / (41/72).
    assert fleiss_kappa([[0, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 2]]) == pytest.approx(11 / 41, abs=1e-12)


def test_fleiss_kappa_with_voters_that_are_silent() -> None:
    # The third question has one answer and is left out. P = (1 + 1/3) / 2 = 2/3; p = (1 + 1/3) / 2 and (0 + 2/3) / 2:
    # E = 4/9 + 1/9. κ = (6/9 − 5/9) / (4/9).
    assert fleiss_kappa([[0, 0, -1], [0, 1, 1], [-1, 2, -1]]) == pytest.approx(1 / 4, abs=1e-12)


@given(st.integers(2, 5), st.integers(2, 4), st.integers(0, 10_000))
def test_fleiss_kappa_is_pairwise_agreement_beyond_chance(n_q: int, n_a: int, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 3, (n_q, n_a))
    chance = math.fsum((np.count_nonzero(codes == c) / codes.size) ** 2 for c in range(3))
    observed = np.mean([pairwise([str(code) for code in row]) for row in codes])
    kappa = fleiss_kappa(codes)
    assert kappa == (None if chance == 1 else pytest.approx((observed - chance) / (1 - chance), abs=1e-9))
    assert fleiss_kappa(np.array([7, 0, 2])[codes][::-1, ::-1]) == (None if kappa is None else pytest.approx(kappa))


def test_fleiss_kappa_of_voters_at_random_is_nothing() -> None:
    assert fleiss_kappa(np.random.default_rng(0).integers(0, 4, (4_000, 6))) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("codes", [np.zeros((0, 3)), [[0, -1], [-1, -1]], [[1, 1], [1, 1]]])
def test_fleiss_kappa_is_none_where_it_is_undefined(codes: list[list[int]]) -> None:
    assert fleiss_kappa(codes) is None


def test_fleiss_kappa_names_a_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\); expected \(questions, voters\)"):
        fleiss_kappa([0, 1])


def test_shared_codes_mean_the_same_in_every_question() -> None:
    assert shared_codes([["B", "A", None], ["A", "A", "C"]]).tolist() == [[0, 1, -1], [1, 1, 2]]
    assert shared_codes([]).shape == (0, 0)
