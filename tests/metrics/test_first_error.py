"""First errors and step scores, held against counting by hand and by pairs."""

from __future__ import annotations

import random

import pytest

from pluribus.metrics.first_error import NO_ERROR, auroc, below, first_error, place
from pluribus.stats import wilson


def test_accuracy_is_counted_on_each_kind_and_f1_is_their_harmonic_mean() -> None:
    truth = [0, 1, 2, 3] * 5 + [NO_ERROR] * 10
    said = [0, 1, 2, 9] * 5 + [NO_ERROR] * 6 + [4] * 3 + [None]
    found = first_error(said, truth)
    assert (found.erroneous.k, found.erroneous.n, found.correct.k, found.correct.n) == (15, 20, 6, 10)
    assert found.f1 == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    assert (found.erroneous.low, found.erroneous.high) == wilson(15, 20)
    assert found.silent == 1


def test_saying_that_nothing_is_ever_wrong_is_worth_nothing() -> None:
    found = first_error([NO_ERROR] * 20, [1] * 10 + [NO_ERROR] * 10)
    assert (found.erroneous.value, found.correct.value, found.f1, found.low) == (0.0, 1.0, 0.0, 0.0)
    assert found.high is not None and 0.3 < found.high < 0.6, "ten replies can not show that it finds none at all"


def test_never_right_in_a_few_replies_is_not_never_right() -> None:
    found = first_error([0, 0, 0, 0], [1, 1, NO_ERROR, NO_ERROR])
    high = wilson(0, 2)[1]
    assert (found.f1, found.low, found.high) == (0.0, 0.0, pytest.approx(high))


def test_one_kind_alone_has_no_f1() -> None:
    found = first_error([1, 2], [1, 1])
    assert (found.f1, found.low, found.correct.value, found.correct.n) == (None, None, None, 0)
    assert first_error([], []).f1 is None


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """a = 0.3 of 80 replies with an error, b = 0.8 of 60 without: F1 is 0.436."""
    rng, held = random.Random(3), 0
    for _ in range(400):
        said = [1 if rng.random() < 0.3 else 0 for _ in range(80)]
        said += [NO_ERROR if rng.random() < 0.8 else 0 for _ in range(60)]
        found = first_error(said, [1] * 80 + [NO_ERROR] * 60)
        assert found.low is not None and found.high is not None
        held += found.low <= 2 * 0.3 * 0.8 / 1.1 <= found.high
    assert 0.92 < held / 400 < 0.98


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="longer"):
        first_error([1], [1, 2])


def test_auroc_is_the_share_of_pairs_in_order() -> None:
    rng = random.Random(1)
    scores = [rng.choice((0.1, 0.4, 0.5, 0.9)) for _ in range(40)]
    good = [rng.random() < 0.6 for _ in scores]
    pairs = [(a, b) for a, yes in zip(scores, good, strict=True) for b, no in zip(scores, good, strict=True)
             if yes and not no]  # fmt: skip
    by_pairs = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)
    assert auroc(scores, good) == pytest.approx(by_pairs)
    assert auroc(scores, [True] * 40) is None
    assert auroc([], []) is None


def test_where_marks_and_scores_first_go_wrong() -> None:
    assert [place(marks) for marks in ([], [True, False, None], [None, False])] == [NO_ERROR, 1, None]
    assert below([0.5, 0.49], 0.5) == 1
