"""Credit, baselines and returns of process rewards: by hand, against their formulas, and in what they must not do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.objectives.process import BASELINES, credit, process_advantages

Group = tuple[list[list[float] | None], list[list[int]]]
SCORES = st.floats(-1, 1, allow_nan=False)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """Two to five samples of one to four steps, some of them not scored."""
    steps = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    scores = [draw(st.none() | st.lists(SCORES, min_size=n, max_size=n)) for n in steps]
    return scores, [draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)) for n in steps]


def rewards(scores_T: Sequence[float], temperature: float) -> list[float]:
    """r_t = exp(−p_t / τ) p_t / Σ_s exp(−p_s / τ), as it is written."""
    weights = [math.exp(-p / temperature) for p in scores_T]
    return [w / sum(weights) * p for w, p in zip(weights, scores_T, strict=True)]


def slow(scores: Any, tokens: Any, baseline: str, temperature: float, i: int, t: int) -> float:
    """A_t of sample i: the sum over s ≥ t of r_s less what the other samples had."""
    own = rewards(scores[i], temperature)
    others = [j for j in range(len(scores)) if j != i and scores[j] is not None]
    total = 0.0
    for s in range(t, len(own)):
        less = 0.0
        if others and baseline == "step":
            less = sum(sum(rewards(scores[j], temperature)) / len(scores[j]) for j in others) / len(others)
        elif others:
            spent = sum(max(sum(tokens[j]), 1) for j in others)
            less = tokens[i][s] * sum(sum(rewards(scores[j], temperature)) for j in others) / spent
        total += own[s] - less
    return total


@settings(max_examples=60, deadline=None)
@given(groups(), st.sampled_from(BASELINES), st.sampled_from([0.1, 0.5, 3.0]))
def test_advantages_are_their_formula(group: Group, baseline: Any, temperature: float) -> None:
    scores, tokens = group
    found = process_advantages(scores, tokens, baseline, temperature)
    assert [one is None for one in found] == [one is None for one in scores]
    for i, said in enumerate(found):
        if said is not None:
            known = [slow(scores, tokens, baseline, temperature, i, t) for t in range(len(tokens[i]))]
            np.testing.assert_allclose(said, known, rtol=1e-9, atol=1e-12)


# --- golden values ---------------------------------------------------------------------------------------------------


def test_credit_by_hand() -> None:
    """exp(−p / τ) of 0.1 and −0.1 at τ = 0.2 are e^−½ and e^½: shares 1 / (1 + e) and e / (1 + e)."""
    good, bad = credit([0.1, -0.1], 0.2)
    assert good == pytest.approx(0.1 / (1 + math.e), abs=1e-15)
    assert bad == pytest.approx(-0.1 * math.e / (1 + math.e), abs=1e-15)
    np.testing.assert_allclose(credit([0.3, 0.3, 0.3]), [0.1, 0.1, 0.1], rtol=0, atol=1e-15)
    assert credit([-0.7]).tolist() == [-0.7]


def test_the_usual_temperature_leaves_nearly_all_to_the_worst_step() -> None:
    found = credit([0.9, -0.5, 0.8])
    assert found.sum() == pytest.approx(-0.5, abs=1e-4) and found[1] == pytest.approx(-0.5, abs=1e-4)
    np.testing.assert_array_equal(found, credit([0.9, -0.5, 0.8], 0.1))


def test_much_temperature_shares_alike() -> None:
    np.testing.assert_allclose(credit([1.0, -1.0, 0.5], 1e9), [1 / 3, -1 / 3, 1 / 6], atol=1e-9)


def test_little_temperature_has_no_overflow() -> None:
    assert credit([1.0, -1.0, 0.5], 1e-5).tolist() == [0.0, -1.0, 0.0]


def test_the_baseline_of_steps_by_hand() -> None:
    """Rewards 0.5; −0.6; 0.1 and 0.1. The others of the first: (−0.6 + 0.2 / 2) / 2 = −0.25 each step."""
    first, second, third = process_advantages([[0.5], [-0.6], [0.2, 0.2]], [[4], [3], [1, 1]], "step")
    assert first is not None and second is not None and third is not None
    np.testing.assert_allclose(first, [0.75], atol=1e-12)
    np.testing.assert_allclose(second, [-0.6 - (0.5 + 0.1) / 2], atol=1e-12)
    np.testing.assert_allclose(third, [0.2 - 2 * -0.05, 0.1 - -0.05], atol=1e-12)


def test_the_baseline_of_tokens_by_hand() -> None:
    """The others of the third had −0.1 for seven tokens; it spends one on its first step and five on its second."""
    first, second, third = process_advantages([[0.5], [-0.6], [0.2, 0.2]], [[4], [3], [1, 5]], "token")
    assert first is not None and second is not None and third is not None
    np.testing.assert_allclose(first, [0.5 - 4 * (-0.4 / 9)], atol=1e-12)
    np.testing.assert_allclose(second, [-0.6 - 3 * (0.7 / 10)], atol=1e-12)
    np.testing.assert_allclose(third, [0.2 + 6 * 0.1 / 7, 0.1 + 5 * 0.1 / 7], atol=1e-12)


# --- what they must not do -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("baseline", BASELINES)
def test_nobody_is_in_his_own_baseline(baseline: Any) -> None:
    """One more for the worst step is one more for the sample: what it is held against does not move with it."""
    tokens = [[2, 3], [4], [1, 1]]
    less, more = (
        process_advantages([[one, one], [0.3], [-0.2, 0.6]], tokens, baseline)[0] for one in (0.2, 0.4)
    )  # fmt: skip
    assert less is not None and more is not None
    np.testing.assert_allclose(more - less, [0.2, 0.1], atol=1e-12)


@pytest.mark.parametrize("baseline", BASELINES)
def test_who_was_not_scored_is_in_nobodys_baseline(baseline: Any) -> None:
    with_it = process_advantages([[0.5], None, [-0.5, 0.9]], [[4], [50], [2, 6]], baseline)
    without = process_advantages([[0.5], [-0.5, 0.9]], [[4], [2, 6]], baseline)
    assert with_it[1] is None
    for one, other in zip((with_it[0], with_it[2]), without, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("baseline", BASELINES)
def test_who_was_scored_alone_has_no_baseline(baseline: Any) -> None:
    alone, nobody = process_advantages([[0.25, 0.25], None], [[3, 1], [2]], baseline)
    np.testing.assert_allclose(alone, [0.25, 0.125], atol=1e-15)
    assert nobody is None
    assert process_advantages([None, None], [[3], [2]], baseline) == [None, None]


def test_samples_that_are_alike_have_nothing_to_learn_as_a_whole() -> None:
    for baseline in BASELINES:
        for one in process_advantages([[0.4, 0.1]] * 3, [[5, 2]] * 3, baseline):
            assert one is not None and one[0] == pytest.approx(0, abs=1e-12)


def test_others_without_a_token_divide_by_no_zero() -> None:
    found = process_advantages([[0.5], [0.2]], [[4], [0]], "token")
    np.testing.assert_allclose(np.concatenate([one for one in found if one is not None]), [-0.3, 0.2], atol=1e-12)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "temperature", "complaint"),
    [
        ([], 0.1, "shape .0,.: expected one per step, and at least one step"),
        ([[0.5]], 0.1, "shape .1, 1.: expected one per step"),
        ([0.5, 1.5], 0.1, "score of step 1 is 1.5: expected .* from -1 to 1"),
        ([-1.01], 0.1, "score of step 0 is -1.01"),
        ([0.5, math.nan], 0.1, "score of step 1 is nan"),
        ([0.5], 0.0, "temperature is 0.0: expected a number above 0"),
        ([0.5], -1.0, "temperature is -1.0"),
        ([0.5], math.nan, "temperature is nan"),
    ],
)
def test_what_has_no_credit(scores: Any, temperature: float, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        credit(scores, temperature)


@pytest.mark.parametrize(
    ("scores", "tokens", "baseline", "complaint"),
    [
        ([[0.5]], [[4]], "mean", "unknown baseline 'mean': expected one of step, token"),
        ([[0.5], [0.1]], [[4]], "step", "1 rows of tokens for 2 of scores"),
        ([[0.5], [0.1, 0.2]], [[4], [3]], "step", "sample 1 has 2 scores for 1 steps"),
        ([[0.5], []], [[4], []], "token", "at least one step"),
        ([[2.0]], [[4]], "step", "score of step 0 is 2.0"),
    ],
)
def test_what_has_no_advantage(scores: Any, tokens: Any, baseline: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        process_advantages(scores, tokens, baseline)
