from __future__ import annotations

import doctest
import math
import re
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.consensus.reliability import (
    DawidSkene,
    Reliability,
    dawid_skene,
    effective_options,
    from_agreement,
    from_labels,
)
from pluribus.consensus.votes import plurality

Rows = list[list[str | None]]


def planted(
    accuracy: Sequence[float], n: int, k: int, seed: int, *, silent: float = 0.0, alike: int = 0
) -> tuple[Rows, list[str]]:
    """Independent voters, wrong answers spread evenly over k − 1; every question has answers of its own. The last
    `alike` voters are copies of one."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for q in range(n):
        row: list[str | None] = []
        for p in accuracy:
            wrong = 0 if rng.random() < p else int(rng.integers(1, k))
            row.append(None if rng.random() < silent else f"{q}:{wrong}")
        if alike:
            row[-alike:] = [row[-1]] * alike
        rows.append(row)
    return rows, [f"{q}:0" for q in range(n)]


def vote_accuracy(rows: Rows, right: Sequence[str], weights: Sequence[float] | None) -> float:
    votes = (plurality(row, weights, "fractional") for row in rows)
    shares = (
        (key in (vote.tie or (vote.winner,))) / max(1, len(vote.tie)) for vote, key in zip(votes, right, strict=True)
    )
    return sum(shares) / len(rows)


# --- with labels -----------------------------------------------------------------------------------------------------


def test_one_voter_by_hand() -> None:
    # m = (4 · 3/4 + 1) / 6 = 2/3; one voter is not shrunk to others: s = 2, p = (3 + 4/3) / 6 = 13/18, odds 13 : 5.
    found = from_labels([["a"], ["b"], ["c"], ["x"]], ["a", "b", "c", "d"], options=2)
    assert found.accuracy == pytest.approx((13 / 18,))
    assert found.weights == pytest.approx((math.log(13 / 5),))
    assert (found.answered, found.options) == ((4,), 2.0)


def test_shrinkage_by_hand() -> None:
    # 10 and 4 of 10 right: p = 0.7, spread = 10 · 2 · 0.09 / 0.21 = 60/7, room = 20 − 10 − 1 = 9, ρ = 53/63,
    # s = 1/ρ − 1 = 10/53, so the floor of 2 holds; m = (10 · 0.7 + 1) / 12 = 2/3.
    rows = [["r", "r" if q < 4 else "w"] for q in range(10)]
    assert from_labels(rows, ["r"] * 10).accuracy == pytest.approx(((10 + 4 / 3) / 12, (4 + 4 / 3) / 12))
    # 8 and 4 of 10: p = 0.6, spread = 10 · 2 · 0.04 / 0.24 = 10/3, ρ = 7/27, s = 20/7; m = (10 · 0.6 + 1) / 12 = 7/12.
    rows = [["r" if q < 8 else "w", "r" if q < 4 else "w"] for q in range(10)]
    s, m = 20 / 7, 7 / 12
    assert from_labels(rows, ["r"] * 10).accuracy == pytest.approx([(x + s * m) / (10 + s) for x in (8, 4)])


def test_voters_who_do_not_differ_beyond_chance_are_one() -> None:
    rows = [["r", "r" if q else "w", "r" if q != 1 else "w"] for q in range(8)]
    accuracy = from_labels(rows, ["r"] * 8).accuracy
    assert accuracy == pytest.approx([(8 * 22 / 24 + 1) / 10] * 3)


def test_nobody_is_certain_after_twenty_questions() -> None:
    found = from_labels([["r"] * 3] * 20, ["r"] * 20)
    assert found.accuracy == pytest.approx([21 / 22] * 3)
    assert found.weights == pytest.approx([math.log(21)] * 3)
    assert found.options == 2.0


def test_silence_and_unlabelled_questions_are_no_votes() -> None:
    rows: Rows = [["a", "a", None], ["b", None, None], ["c", "d", None], ["a", "b", "c"]]
    found = from_labels(rows, ["a", "b", "c", None])
    assert found.answered == (3, 2, 0)
    assert found == from_labels(rows[:3], ["a", "b", "c"])
    # The third voter is unknown and gets the panel's mean: (3 · 4/5 + 1) / 5.
    assert found.accuracy[2] == pytest.approx(17 / 25)


def test_all_abstain() -> None:
    for found in (from_labels([[None, None]] * 5, ["a"] * 5), from_agreement([[None, None]] * 5)):
        assert found == Reliability((0.5, 0.5), (0.0, 0.0), (0, 0), 2.0)


def test_who_is_at_or_below_chance_has_no_weight() -> None:
    rows, right = planted([0.9, 0.9, 0.9, 0.25, 0.02], 500, 4, seed=1)
    weights = from_labels(rows, right, options=4).weights
    assert min(weights[:3]) > 2.5
    assert weights[3] < 0.4
    assert weights[4] == 0.0


@pytest.mark.parametrize("silent", [0.0, 0.3])
def test_labels_recover_planted_accuracies(silent: float) -> None:
    true = np.array([0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3])
    rows, right = planted(true.tolist(), 600, 4, seed=2, silent=silent)
    found = from_labels(rows, right)
    error = np.abs(np.array(found.accuracy) - true) / np.sqrt(true * (1 - true) / np.array(found.answered))
    assert error.max() < 3.5  # standard errors, eight voters
    assert effective_options(rows, right) == pytest.approx(4, abs=0.3)


def test_independent_voters_get_the_true_number_of_options() -> None:
    rows, right = planted([0.8, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3], 2000, 6, seed=3)
    assert effective_options(rows, right) == pytest.approx(6, abs=0.15)
    assert 4.2 < from_labels(rows, right).options < 8.5


def test_shared_errors_take_the_weak_voters_their_weight() -> None:
    """Eight voters who are one: for the count of options they are eight witnesses, for the fitted one they are not."""
    true = [0.85, 0.85, 0.8] + [0.45] * 8
    (rows, right), (later, later_right) = (planted(true, 300, 6, seed, alike=8) for seed in (4, 5))
    fitted, counted = from_labels(rows, right), from_labels(rows, right, options=6)
    plain, by_count, by_fit = (vote_accuracy(later, later_right, w) for w in (None, counted.weights, fitted.weights))
    assert fitted.options < 2.5
    assert plain < 0.6
    assert by_count < 0.75
    assert by_fit > 0.9


def test_the_order_of_voters_questions_and_names_does_not_matter() -> None:
    rows, right = planted([0.9, 0.7, 0.5, 0.4], 60, 4, seed=6, silent=0.2)
    turned = [[None if a is None else f"!{a}" for a in row[::-1]] for row in rows[::-1]]
    names = [f"!{key}" for key in right[::-1]]
    for one, other in (
        (from_labels(rows, right), from_labels(turned, names)),
        (from_agreement(rows), from_agreement(turned)),
    ):
        assert other.accuracy[::-1] == pytest.approx(one.accuracy, abs=1e-9)
        assert other.weights[::-1] == pytest.approx(one.weights, abs=1e-7)
        assert (other.answered[::-1], other.options) == (one.answered, pytest.approx(one.options))


answers = st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=3, max_size=3), min_size=1, max_size=12)


@settings(deadline=None, max_examples=20)
@given(answers)
def test_whatever_the_votes_numbers_are_usable(rows: Rows) -> None:
    for found in (from_labels(rows, ["a"] * len(rows)), from_agreement(rows), from_agreement(rows, options=3)):
        assert all(0 < p < 1 for p in found.accuracy)
        assert all(w >= 0 and math.isfinite(w) for w in found.weights)
        assert found.options > 1
        assert found.answered == tuple(sum(row[a] is not None for row in rows) for a in range(3))


@pytest.mark.parametrize(
    ("rows", "right", "options", "told"),
    [
        ([], [], None, "expected questions with the same number of voters"),
        ([["a", "b"], ["a"]], ["a", "a"], None, r"rows of \[1, 2\] voters"),
        ([[]], ["a"], None, r"rows of \[0\] voters"),
        ([["a"]], ["a", "b"], None, "1 questions and 2 right answers"),
        ([["a"]], [None], None, "no question has a right answer; without labels use from_agreement"),
        ([["a"]], ["a"], 1.0, "1.0 options: expected a number above 1"),
        ([["a"]], ["a"], math.nan, "nan options"),
    ],
)
def test_bad_input_is_named(rows: Rows, right: list[str | None], options: float | None, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        from_labels(rows, right, options=options)


# --- without labels --------------------------------------------------------------------------------------------------


def patterns(accuracy: Sequence[float], n: int) -> Rows:
    """Each pattern of right and wrong votes between two answers, exactly as often as it is expected in n questions."""
    rows: Rows = []
    for right in product((True, False), repeat=len(accuracy)):
        chance = math.prod(p if good else 1 - p for p, good in zip(accuracy, right, strict=True))
        rows += [["yes" if good else "no" for good in right]] * round(n * chance)
    assert len(rows) == n
    return rows


def test_two_voters_are_as_good_as_their_agreement_says() -> None:
    # p² + (1 − p)² = 0.82 has p = 0.9; nothing tells the two apart.
    found = from_agreement([["a", "a"]] * 8200 + [["a", "b"]] * 1800)
    assert found.accuracy == pytest.approx((0.9, 0.9), abs=1e-3)


def test_three_voters_in_closed_form() -> None:
    # With d = 2p − 1 two voters agree in (1 + d₁d₂) / 2; three such equations have one solution above chance.
    assert from_agreement(patterns([0.9, 0.8, 0.7], 10_000)).accuracy == pytest.approx((0.9, 0.8, 0.7), abs=2e-3)


@pytest.mark.parametrize(("k", "silent"), [(2, 0.0), (5, 0.0), (5, 0.3)])
def test_agreement_recovers_planted_accuracies(k: int, silent: float) -> None:
    true = np.array([0.92, 0.85, 0.85, 0.75, 0.7, 0.65, 0.6, 0.55, 0.4])
    rows, _ = planted(true.tolist(), 1000, k, seed=7, silent=silent)
    found = from_agreement(rows)
    error = np.abs(np.array(found.accuracy) - true) / np.sqrt(true * (1 - true) / np.array(found.answered))
    assert error.max() < 5  # the labels, too, are estimated
    assert from_agreement(rows, options=k).accuracy == pytest.approx(found.accuracy, abs=0.02)


def test_spammers_and_adversaries_lose_their_vote() -> None:
    rows, right = planted([0.85, 0.8, 0.8, 0.75, 0.5, 0.5, 0.5, 0.15, 0.15], 800, 2, seed=8)
    found = from_agreement(rows)
    assert min(found.weights[:4]) > 0.9
    assert max(found.weights[4:7]) < 0.25
    assert found.weights[7:] == (0.0, 0.0)
    assert found.accuracy[7:] == pytest.approx((0.15, 0.15), abs=0.05)
    assert vote_accuracy(rows, right, found.weights) > vote_accuracy(rows, right, None) + 0.05


def test_labels_do_not_switch() -> None:
    """Two answers, all voters a little better than chance: the mirror image has the same likelihood."""
    for seed in range(5):
        rows, _ = planted([0.65] * 9, 300, 2, seed=seed)
        assert min(from_agreement(rows).accuracy) > 0.5


def test_agreement_believes_the_crowd() -> None:
    """Where most make the same mistakes, the crowd looks good and the best voter bad. Labels tell."""
    rows, right = planted([0.9] + [0.4] * 6, 400, 2, seed=9, alike=6)
    blind, told = from_agreement(rows), from_labels(rows, right)
    assert blind.weights[0] < min(blind.weights[1:])
    assert told.weights[0] > 2 > max(told.weights[1:]) == 0.0


def test_copies_look_like_good_voters() -> None:
    apart, _ = planted([0.8, 0.8, 0.8, 0.6, 0.6, 0.6], 500, 4, seed=10)
    together, _ = planted([0.8, 0.8, 0.8, 0.6, 0.6, 0.6], 500, 4, seed=10, alike=3)
    assert max(from_agreement(apart).accuracy[3:]) < 0.67
    assert min(from_agreement(together).accuracy[3:]) > 0.8


def test_one_voter_and_one_question_tell_nothing_of_anybody() -> None:
    assert from_agreement([["a"]] * 50).accuracy == pytest.approx((0.75,), abs=0.02)
    assert from_agreement([["a"]] * 50, options=5).accuracy == pytest.approx((0.6,), abs=0.02)
    few = from_agreement([["a", "a", "b"]])
    assert few.accuracy[0] == few.accuracy[1] < 1
    assert few.accuracy[2] <= few.accuracy[0]


def test_unanimous_voters_are_good_and_not_perfect() -> None:
    found = from_agreement([["a"] * 5] * 30)
    assert set(found.accuracy) == {found.accuracy[0]}
    assert 0.95 < found.accuracy[0] < 32 / 33


def test_where_all_are_weak_they_still_vote() -> None:
    rows, right = planted([0.45, 0.42, 0.4, 0.4, 0.35], 800, 10, seed=11)
    found = from_agreement(rows)
    assert max(found.accuracy) < 0.5 < max(found.weights)
    assert 7 < found.options < 13
    assert vote_accuracy(rows, right, found.weights) > 0.6


def test_agreement_names_bad_input() -> None:
    with pytest.raises(ValueError, match=r"rows of \[1, 2\] voters"):
        from_agreement([["a", "b"], ["a"]])
    with pytest.raises(ValueError, match=r"0\.5 options"):
        from_agreement([["a"]], options=0.5)


# --- confusion matrices ----------------------------------------------------------------------------------------------


def confused(n: int, seed: int, silent: float = 0.0) -> tuple[Rows, list[str], np.ndarray[Any, Any]]:
    """Three labels, five voters, each with a confusion matrix of its own."""
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.ones(3), (5, 3)) * 0.3 + np.eye(3) * 0.7
    truth = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    said = [[rng.choice(3, p=confusion[a, z]) for a in range(5)] for z in truth]
    rows: Rows = [[None if rng.random() < silent else "xyz"[label] for label in row] for row in said]
    return rows, ["xyz"[z] for z in truth], confusion


def named(found: DawidSkene) -> list[str]:
    return [found.labels[k] for k in found.posterior_Q_K.argmax(axis=1)]


def test_one_round_by_hand() -> None:
    # Shares: (1, 0), (½, ½). Prior (3/4, 1/4). First voter says x twice: of 1.5 and 0.5 expected, all are x.
    # Second: x 1 and 0, y 0.5 and 0.5: rows (2/3, 1/3) and (0, 1). E-step on question 2 (x, y):
    # x: 3/4 · 1 · 1/3 = 1/4; y: 1/4 · 1 · 1 = 1/4, so it stays open; question 1 is x.
    found = dawid_skene([["x", "x"], ["x", "y"]], iterations=1)
    assert found.posterior_Q_K == pytest.approx(np.array([[1, 0], [0.5, 0.5]]), abs=1e-9)
    assert found.prior_K == pytest.approx([0.75, 0.25])
    assert found.confusion_A_K_K == pytest.approx(np.array([[[1, 0], [1, 0]], [[2 / 3, 1 / 3], [0, 1]]]), abs=1e-9)
    assert found.log_likelihood == pytest.approx(2 * math.log(0.5))  # each of the two rows has chance ½


def test_confusions_are_recovered() -> None:
    rows, truth, confusion = confused(3000, seed=0)
    found = dawid_skene(rows, tolerance=1e-9, iterations=500)
    assert np.abs(found.confusion_A_K_K - confusion).max() < 0.06
    assert found.prior_K == pytest.approx([0.5, 0.3, 0.2], abs=0.03)
    right = np.mean([a == b for a, b in zip(named(found), truth, strict=True)])
    assert right > np.mean([plurality(row).winner == b for row, b in zip(rows, truth, strict=True)])


def test_a_voter_who_always_means_the_other_label_is_read_backwards() -> None:
    rows, right = planted([0.8, 0.8, 0.75, 0.05], 500, 2, seed=1)
    closed = [[None if a is None else "yes" if a.endswith(":0") == (q % 2 == 0) else "no" for a in row]
              for q, row in enumerate(rows)]  # fmt: skip
    truth = ["yes" if q % 2 == 0 else "no" for q in range(500)]
    found = dawid_skene(closed, iterations=500)
    assert np.diag(found.confusion_A_K_K[3]).max() < 0.15
    assert np.mean([a == b for a, b in zip(named(found), truth, strict=True)]) > 0.95
    assert vote_accuracy(rows, right, None) < 0.9


def test_each_round_explains_the_votes_better() -> None:
    rows, _, _ = confused(80, seed=2, silent=0.3)
    likelihood = [dawid_skene(rows, iterations=i, tolerance=-math.inf).log_likelihood for i in range(1, 25)]
    assert np.diff(likelihood).min() > -1e-9
    done = dawid_skene(rows, iterations=10_000, tolerance=1e-7)
    assert 25 < done.iterations < 10_000
    assert done.log_likelihood > likelihood[-1]


def test_what_nobody_answered_has_the_prior() -> None:
    rows, _, _ = confused(60, seed=3)
    found, more = dawid_skene(rows), dawid_skene([*rows, [None] * 5], labels=["x", "y", "z", "never"])
    assert more.posterior_Q_K[-1] == pytest.approx(more.prior_K)
    assert more.prior_K == pytest.approx([*found.prior_K, 0], abs=1e-9)
    assert more.posterior_Q_K[:-1, :3] == pytest.approx(found.posterior_Q_K, abs=1e-9)


@pytest.mark.parametrize("rounds", [1, 3, 40])
@pytest.mark.parametrize(("seed", "silent"), [(4, 0.0), (5, 0.4)])
def test_equal_to_crowd_kit(seed: int, silent: float, rounds: int) -> None:
    pytest.importorskip("crowdkit")
    import pandas as pd
    from crowdkit.aggregation import DawidSkene as Theirs

    rows, _, _ = confused(70, seed, silent)
    votes = [(q, a, label) for q, row in enumerate(rows) for a, label in enumerate(row) if label is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns of calls that crowd-kit still makes
        theirs = Theirs(n_iter=rounds, tol=-math.inf).fit(pd.DataFrame(votes, columns=["task", "worker", "label"]))
    ours = dawid_skene(rows, iterations=rounds, tolerance=-math.inf)
    asked = [any(row) for row in rows]
    labels = list(ours.labels)
    posterior = theirs.probas_.sort_index()[labels].to_numpy()
    assert np.abs(posterior - ours.posterior_Q_K[asked]).max() < 1e-9
    assert theirs.labels_.sort_index().tolist() == [
        name for name, voted in zip(named(ours), asked, strict=True) if voted
    ]
    assert np.abs(theirs.priors_[labels].to_numpy() - ours.prior_K).max() < 1e-9
    for (voter, label), chances in theirs.errors_.iterrows():
        assert ours.confusion_A_K_K[voter, :, labels.index(label)] == pytest.approx(
            chances[labels].to_numpy(), abs=1e-9
        )


@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        ([[None]], {}, "no votes"),
        ([["x"]], {"labels": ["y"]}, r"answers \['x'\] are none of the labels \['y'\]"),
        ([["x"]], {"iterations": 0}, "0 iterations"),
        ([["x"]], {"smoothing": 0.0}, "smoothing 0.0"),
        ([["x"], []], {}, r"rows of \[0, 1\] voters"),
    ],
)
def test_dawid_skene_names_bad_input(rows: Rows, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        dawid_skene(rows, **options)


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_pages_examples_give_what_they_print() -> None:
    page = Path(__file__).parents[2] / "docs" / "reliability.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    assert len(test.examples) > 30
    assert doctest.DocTestRunner().run(test).failed == 0
