"""Pairs of candidates: what could be one is formed or counted once; near-copies and length bias against definitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.consensus import pairs as counted
from pluribus.consensus.pairs import BASES, REASONS, Basis, Pairs, _shared, form_pairs, length_bias, near_duplicates
from pluribus.errors import UnknownName
from pluribus.stats import wilson

NAN = math.nan
quarters = st.integers(0, 4).map(lambda quarter: quarter / 4)
Candidates = list[tuple[str, float | None, float | None, int | None]]
"""Question, reward, disagreement, label."""
candidates = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.none() | quarters, st.none() | quarters, st.none() | st.integers(0, 1)
    ),
    max_size=12,
)  # fmt: skip
conditions = st.fixed_dictionaries(
    {
        "basis": st.sampled_from(BASES),
        "margin": st.sampled_from([0.0, 0.25, 0.5]),
        "max_disagreement": st.none() | quarters,
        "per_question": st.integers(0, 3),
        "reuse": st.booleans(),
        "seed": st.integers(0, 3),
    }
)


def form(rows: Candidates, **conditions: Any) -> Pairs:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    return form_pairs(*columns, **conditions)  # type: ignore[arg-type]


def listed(found: Pairs) -> list[tuple[int, int]]:
    return list(zip(found.chosen_P.tolist(), found.rejected_P.tolist(), strict=True))


def of(values: Sequence[float | None], labels: Sequence[int | None] | None = None, v: float = 0.0) -> Candidates:
    """Candidates of one question."""
    return [("q", value, v, label) for value, label in zip(values, labels or [None] * len(values), strict=True)]


# One basis after the other


def test_by_reward_the_largest_margin_comes_first() -> None:
    found = form(of([0.2, 0.9, 0.4, 0.5]), basis="reward")
    assert listed(found) == [(1, 0)]
    assert found.margin_P.tolist() == pytest.approx([0.7])
    assert dict(found.dropped) == {counted.BEYOND: 5}


def test_by_label_rewards_choose_among_right_and_wrong_ones() -> None:
    rows = of([0.2, 0.9, 0.4, 0.5, None], [1, 0, 1, 0, None])
    assert listed(form(rows, basis="label")) == [(2, 3)]  # the right one with more reward, the wrong one with less
    assert listed(form(of([None, 0.3, 0.4], [1, 0, 1]), basis="label")) == [(2, 1)]  # a known margin before an unknown
    assert listed(form(of([None, None], [0, 1]), basis="label")) == [(1, 0)]


def test_by_both_the_right_one_must_have_more_reward() -> None:
    rows = of([0.2, 0.9, 0.4, 0.4], [1, 0, 1, 0])
    found = form(rows, basis="both", per_question=0, reuse=True)
    assert listed(found) == []
    assert dict(found.dropped) == {counted.EQUAL: 1, counted.REVERSED: 3}
    assert listed(form(of([0.6, 0.5], [1, 0]), basis="both")) == [(0, 1)]


def test_equal_rewards_say_nothing_of_which_is_better() -> None:
    found = form(of([0.1 + 0.2, 0.3]), basis="reward")
    assert (listed(found), dict(found.dropped)) == ([], {counted.EQUAL: 1})


# Conditions


def test_the_margin_is_the_least_difference_but_for_rounding() -> None:
    assert listed(form(of([0.3, 0.2]), basis="reward", margin=0.1)) == [(0, 1)]  # 0.3 − 0.2 = 0.09999999999999998
    found = form(of([0.3, 0.21]), basis="reward", margin=0.1)
    assert (listed(found), dict(found.dropped)) == ([], {counted.SMALL_MARGIN: 1})


def test_by_label_a_margin_is_a_condition_only_when_it_is_given() -> None:
    rows = [*of([0.1, 0.9, None], [1, 0, 0])]
    assert dict(form(rows, basis="label", per_question=0, reuse=True).dropped) == {}
    found = form(rows, basis="label", per_question=0, margin=0.1)
    assert dict(found.dropped) == {counted.UNKNOWN_MARGIN: 1, counted.SMALL_MARGIN: 1}


def test_disagreement_is_the_mean_of_both() -> None:
    rows: Candidates = [("q", 0.9, 0.04, None), ("q", 0.1, 0.0, None), ("q", 0.5, None, None)]
    found = form(rows, basis="reward", max_disagreement=0.02)
    assert listed(found) == [(0, 1)]
    assert found.disagreement_P.tolist() == [0.02]
    assert dict(found.dropped) == {counted.UNKNOWN_DISAGREEMENT: 2}
    assert dict(form(rows[:2], basis="reward", max_disagreement=0.019).dropped) == {counted.DISPUTED: 1}
    assert listed(form(rows[1:], basis="reward")) == [(1, 0)]  # without a limit it need not be known


def test_candidates_and_questions_without_a_pair_are_counted() -> None:
    rows: Candidates = [
        ("one", 0.5, 0.0, 1),
        ("gone", None, 0.0, None), ("gone", 0.1, 0.0, 1),
        ("right", 0.1, 0.0, 1), ("right", 0.2, 0.0, 1),
        ("fine", 0.7, 0.0, 1), ("fine", 0.2, 0.0, 0), ("fine", None, 0.0, 0),
    ]  # fmt: skip
    assert dict(form(rows, basis="label", per_question=0, reuse=True).dropped) == {
        counted.NO_LABEL: 1, counted.LONELY: 2, counted.ONE_SIDED: 1,
    }  # fmt: skip
    assert dict(form(rows, basis="reward").dropped) == {counted.NO_REWARD: 2, counted.LONELY: 2}
    assert dict(form(rows, basis="both").dropped) == {
        counted.NO_LABEL: 1, counted.NO_REWARD: 1, counted.LONELY: 2, counted.ONE_SIDED: 1,
    }  # fmt: skip


def test_a_candidate_stands_in_one_pair_unless_it_may_be_used_again() -> None:
    rows = of([0.1, 0.3, 0.7, 1.0])
    found = form(rows, basis="reward", per_question=0)
    assert listed(found) == [(3, 0), (2, 1)]
    assert dict(found.dropped) == {counted.REUSED: 4}
    assert len(listed(form(rows, basis="reward", per_question=0, reuse=True))) == 6
    assert listed(form(rows, basis="reward", per_question=2, reuse=True)) == [(3, 0), (3, 1)]


def test_what_a_person_has_judged_is_not_formed_again() -> None:
    rows = of([0.1, 0.3, 0.9])
    found = form(rows, basis="reward", judged=[frozenset((0, 2))])
    assert listed(found) == [(2, 1)]
    assert dict(found.dropped) == {counted.JUDGED: 1, counted.BEYOND: 1}
    assert listed(form(rows, basis="reward", judged=[(2, 0), (1, 2)])) == [(1, 0)]


def test_questions_come_in_the_order_first_seen() -> None:
    rows: Candidates = [("z", 0.1, 0.0, None), ("a", 0.2, 0.0, None), ("z", 0.6, 0.0, None), ("a", 0.3, 0.0, None)]
    assert listed(form(rows, basis="reward")) == [(2, 0), (3, 1)]
    assert listed(form_pairs(np.array([7, 3, 7, 3]), [0.1, 0.2, 0.6, 0.3], [0.0] * 4, [None] * 4, basis="reward")) == [
        (2, 0),
        (3, 1),
    ]


def test_the_seed_decides_between_equal_margins_and_nothing_else() -> None:
    rows = of([None] * 6, [1, 1, 1, 0, 0, 0])
    drawn = Counter(listed(form(rows, basis="label", seed=seed))[0] for seed in range(200))
    assert len(drawn) == 9
    assert listed(form(rows, basis="label", seed=5)) == listed(form(rows, basis="label", seed=5))
    clear = of([0.1, 0.25, 0.5, 0.9])
    assert len({tuple(listed(form(clear, basis="reward", per_question=0, seed=seed))) for seed in range(20)}) == 1


# Against the definition


def reasons(rows: Candidates, basis: Basis, margin: float, limit: float | None) -> tuple[dict[tuple[int, int], str], Counter[str]]:  # fmt: skip # noqa: E501
    """Every pair that could be, better one first, with why it is dropped ("" where it is not); what else is counted."""
    counts, open_ = Counter[str](), list[int]()
    for i, (_, value, _, label) in enumerate(rows):
        if basis != "reward" and label is None:
            counts[counted.NO_LABEL] += 1
        elif basis != "label" and value is None:
            counts[counted.NO_REWARD] += 1
        else:
            open_.append(i)
    could = dict[tuple[int, int], str]()
    for question in dict.fromkeys(row[0] for row in rows):
        mine = [i for i in open_ if rows[i][0] == question]
        here = [
            (i, j) if better(rows[i], rows[j], basis) else (j, i)
            for i, j in combinations(mine, 2)
            if basis == "reward" or rows[i][3] != rows[j][3]
        ]
        could |= {pair: why(rows[pair[0]], rows[pair[1]], basis, margin, limit) for pair in here}
        if len(mine) < 2:
            counts[counted.LONELY] += 1
        elif not here:
            counts[counted.ONE_SIDED] += 1
    return could, counts


def better(one: Any, other: Any, basis: Basis) -> bool:
    return bool(one[1] >= other[1] if basis == "reward" else one[3] > other[3])


def why(one: Any, other: Any, basis: Basis, margin: float, limit: float | None) -> str:
    apart = NAN if one[1] is None or other[1] is None else one[1] - other[1]
    mean = NAN if one[2] is None or other[2] is None else (one[2] + other[2]) / 2
    checks = [
        (basis != "label" and apart == 0, counted.EQUAL),
        (basis != "label" and apart < 0, counted.REVERSED),
        (margin > 0 and math.isnan(apart), counted.UNKNOWN_MARGIN),
        (margin > 0 and apart < margin, counted.SMALL_MARGIN),
        (limit is not None and math.isnan(mean), counted.UNKNOWN_DISAGREEMENT),
        (limit is not None and mean > limit, counted.DISPUTED),
    ]
    return next((reason for holds, reason in checks if holds), "")


@given(candidates, conditions)
@settings(max_examples=300)
def test_every_pair_that_could_be_is_formed_or_counted_once(rows: Candidates, conditions: dict[str, Any]) -> None:
    found = form(rows, **conditions)
    could, counts = reasons(rows, conditions["basis"], conditions["margin"], conditions["max_disagreement"])
    counts += Counter(reason for reason in could.values() if reason)
    taken = listed(found)
    assert len(taken) == len(set(taken))
    reward = conditions["basis"] == "reward"
    assert all(could.get(pair, could.get(pair[::-1]) if reward else None) == "" for pair in taken)
    left = Counter(found.dropped) - counts
    assert set(left) <= {counted.REUSED, counted.BEYOND}
    assert not counts - Counter(found.dropped)
    assert len(taken) + left.total() == sum(not reason for reason in could.values())
    assert list(found.dropped) == [reason for reason in REASONS if reason in found.dropped]
    assert 0 not in found.dropped.values()


@given(candidates, conditions)
@settings(max_examples=300)
def test_pairs_are_taken_greedily(rows: Candidates, conditions: dict[str, Any]) -> None:
    found = form(rows, **conditions)
    basis = conditions["basis"]
    could, _ = reasons(rows, basis, conditions["margin"], conditions["max_disagreement"])
    good = {frozenset(pair) for pair, reason in could.items() if not reason}
    for question in "abc":
        left = {pair for pair in good if rows[min(pair)][0] == question}
        taken = [pair for pair in listed(found) if rows[pair[0]][0] == question]
        for pair in taken:
            assert frozenset(pair) in left
            assert margin_of(rows, pair, basis) == max(margin_of(rows, each, basis) for each in left)
            left = {each for each in left if each != frozenset(pair) and (conditions["reuse"] or not each & set(pair))}
        enough = conditions["per_question"] or math.inf
        assert len(taken) == enough or (len(taken) < enough and not left)


def margin_of(rows: Candidates, pair: Any, basis: Basis) -> float:
    """Of a pair in any order; an unknown margin is less than any other."""
    one, other = (rows[i] for i in pair)
    if one[1] is None or other[1] is None:
        return -math.inf
    return one[1] - other[1] if better(one, other, basis) else other[1] - one[1]


@given(candidates, conditions)
def test_margins_and_disagreements_are_those_of_the_pairs(rows: Candidates, conditions: dict[str, Any]) -> None:
    found = form(rows, **conditions)
    for place, (better_, worse) in enumerate(listed(found)):
        (a, v), (b, w) = rows[better_][1:3], rows[worse][1:3]
        assert found.margin_P[place] == pytest.approx(NAN if a is None or b is None else a - b, nan_ok=True)
        mean = NAN if v is None or w is None else (v + w) / 2
        assert found.disagreement_P[place] == pytest.approx(mean, nan_ok=True)


def test_nothing_makes_no_pairs() -> None:
    found = form([], basis="both")
    assert (listed(found), dict(found.dropped)) == ([], {})


# Bad input


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"margin": -0.1}, "margin -0.1: expected a finite number of at least 0"),
        ({"margin": NAN}, "margin nan: expected"),
        ({"max_disagreement": -1.0}, "max_disagreement -1.0: expected at least 0, or None for no limit"),
        ({"max_disagreement": NAN}, "max_disagreement nan: expected"),
        ({"per_question": -1}, "per_question -1: expected at least 1, or 0 for all pairs"),
        ({"judged": [(0, 9)]}, r"judged pair \[0, 9\]: expected two different indexes of the 2 candidates"),
        ({"judged": [(-1, 0)]}, r"judged pair \[-1, 0\]"),
        ({"judged": [frozenset((1,))]}, r"judged pair \[1\]"),
    ],
)
def test_conditions_that_can_not_be_are_one_line(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        form(of([0.1, 0.9]), **{"basis": "reward", **change})


def test_candidates_that_can_not_be_are_one_line() -> None:
    with pytest.raises(UnknownName, match="unknown basis 'labels'"):
        form(of([0.1, 0.9]), basis="labels")
    with pytest.raises(ValueError, match=r"label 1 is 2\.0: expected 1"):
        form(of([0.1, 0.9], [1, 2]), basis="label")
    with pytest.raises(ValueError, match="reward 0 is inf: expected a finite number"):
        form(of([math.inf, 0.9]), basis="reward")
    with pytest.raises(ValueError, match=r"of \[2, 2, 1, 2\] candidates: expected one for each"):
        form_pairs(["q", "q"], [0.1, 0.2], [0.0], [1, 0], basis="reward")


# Near-copies


def jaccard(one: str, other: str, n: int) -> float:
    a, b = ({tuple(words[i : i + n]) for i in range(max(1, len(words) - n + 1))} for words in (one.split(), other.split()))  # fmt: skip # noqa: E501
    return len(a & b) / len(a | b)


SPACES = " \n\t\x1c\x85\xa0\u2003\u3000"
words = st.sampled_from(["a", "b", "aa", "é", "日本", "\x00", "\ud800", "😀"])
texts = st.lists(st.tuples(words, st.sampled_from(SPACES)), max_size=8).map(
    lambda said: "".join(w + s for w, s in said)
)


@given(
    st.lists(st.tuples(texts, st.integers(0, 2)), max_size=8), st.sampled_from([0.2, 0.5, 0.9, 1.0]), st.integers(1, 4)
)
@settings(max_examples=400)
def test_near_duplicates_are_their_definition(rows: list[tuple[str, int]], threshold: float, n: int) -> None:
    found = near_duplicates([text for text, _ in rows], [group for _, group in rows], threshold=threshold, n=n)
    expected = [any(g == group and jaccard(text, t, n) >= threshold for t, g in rows[:i])
                for i, (text, group) in enumerate(rows)]  # fmt: skip
    assert found.tolist() == expected


def test_near_duplicates_of_many_groups_and_of_a_large_one() -> None:
    rng = np.random.default_rng(0)
    vocabulary = [letter * 60 for letter in "abcdefgh"]  # long words, so that groups fill several blocks
    long = [" ".join(rng.choice(vocabulary, 30)) for _ in range(350)]
    long[1::7] = [text + " z" for text in long[0::7]]
    long[2::7] = [text + " z z z z z" for text in long[0::7]]
    for groups in (rng.integers(0, 45, 350), np.zeros(350, int), np.arange(350) // 7):
        found = near_duplicates(long, groups, threshold=0.9)
        expected = [any(groups[j] == groups[i] and jaccard(long[i], long[j], 5) >= 0.9 for j in range(i))
                    for i in range(350)]  # fmt: skip
        assert found.tolist() == expected
    assert 50 <= found.sum() < 75


def test_counts_added_up_on_the_way_are_the_same() -> None:
    run_E = np.repeat(np.arange(5, dtype=np.uint64), 4)
    text_E = np.tile(np.arange(4), 5)
    for held in (0, 10, 1000):
        first, later, shared = _shared(run_E, text_E, held)
        assert list(zip(first.tolist(), later.tolist(), strict=True)) == list(combinations(range(4), 2))
        assert shared.tolist() == [5] * 6


def test_equal_words_are_copies_at_any_threshold_and_length() -> None:
    said = ["", " ", "x", "x\u2003", "x y", "x  y", "y x"]
    found = near_duplicates(said, ["g"] * 7, threshold=1.0, n=9)
    assert found.tolist() == [False, True, False, True, False, True, False]
    assert near_duplicates([], []).tolist() == []


@pytest.mark.parametrize(("threshold", "n"), [(0.0, 5), (1.1, 5), (NAN, 5), (0.9, 0)])
def test_thresholds_that_can_not_be_are_refused(threshold: float, n: int) -> None:
    with pytest.raises(ValueError, match="expected in \\(0, 1\\], and at least 1 word"):
        near_duplicates(["a"], ["g"], threshold=threshold, n=n)


def test_every_text_needs_its_group() -> None:
    with pytest.raises(ValueError, match="2 texts and 1 groups: expected one for each text"):
        near_duplicates(["a", "b"], ["g"])


# Length


def test_a_longer_choice_shows_in_share_and_correlation() -> None:
    rng = np.random.default_rng(0)
    margin = rng.random(500)
    rejected = rng.integers(50, 200, 500)
    chosen = rejected + np.round(100 * margin + rng.normal(0, 20, 500))
    found = length_bias(chosen.clip(0), rejected, margin)
    assert found is not None
    assert found.low > 0.5
    assert found.correlation is not None
    assert found.correlation > 0.7
    assert found.difference == pytest.approx((chosen - rejected).mean())


def test_a_choice_that_does_not_know_length_shows_none() -> None:
    rng = np.random.default_rng(1)
    found = length_bias(rng.integers(50, 200, 500), rng.integers(50, 200, 500), rng.random(500))
    assert found is not None
    assert found.low < 0.5 < found.high
    assert abs(found.correlation or 1.0) < 0.1


def test_equal_lengths_count_half_and_unknown_margins_in_no_correlation() -> None:
    found = length_bias([3, 5, 5, 9, 1], [1, 5, 6, 4, 1], [0.1, None, 0.0, 0.4, NAN])
    assert found is not None
    assert (found.share_longer, found.difference, found.n) == (0.6, 1.2, 5)
    assert (found.low, found.high) == wilson(3, 5)
    assert found.correlation == pytest.approx(np.corrcoef([2, -1, 5], [0.1, 0.0, 0.4])[0, 1])


def test_length_bias_of_few_pairs_has_no_correlation_and_of_none_is_none() -> None:
    two = length_bias([3, 1], [1, 2], [0.1, 0.2])
    assert two is not None
    assert two.correlation is None
    assert length_bias([], [], []) is None


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        (([1], [1, 2], [0.1]), "1 and 2 lengths, 1 margins: expected one for each pair"),
        (([1, None], [1, 2], [0.1, 0.2]), "a length is missing or negative"),
        (([1, 1], [1, -2], [0.1, 0.2]), "a length is missing or negative"),
    ],
)
def test_lengths_that_can_not_be_are_refused(lengths: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        length_bias(*lengths)
