"""Which seats to keep: planted councils whose best part is known, and the search against counting by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
import pytest

from pluribus.compare import halves
from pluribus.consensus.votes import plurality
from pluribus.errors import DataError, UsageError
from pluribus.panel import Item, Member, Panel, Word
from pluribus.recommend import drop_sentences, judge, recommend, sentence
from pluribus.stats import Estimate

Answers = Sequence[Sequence[str | None]]
KEY = "right"


def word(answer: str | None, tokens: int | None = None, usd: float | None = None, text: str = "") -> Word | None:
    """`None` is a seat that failed; `?` one whose answer can not be read."""
    if answer is None:
        return None
    read = None if answer == "?" else answer
    return Word(text or f"it is {answer}", read, float(answer == KEY), tokens, 0 if tokens else None, usd)


def panel(
    rounds: Sequence[Answers],
    tokens: Sequence[int | None] | None = None,
    usd: Sequence[float | None] | None = None,
    **about: object,
) -> Panel:
    """rounds[round][question][seat]; tokens and dollars of each of a seat's answers."""
    n = len(rounds[0][0])
    prices = list(zip(tokens or [None] * n, usd or [None] * n, strict=True))
    items = tuple(
        Item(f"q{q}", KEY, tuple(tuple(word(a, *p) for a, p in zip(said[q], prices, strict=True)) for said in rounds),
             None, None)
        for q in range(len(rounds[0]))
    )  # fmt: skip
    members = tuple(Member(f"agent {m + 1}", f"model/{m}", seat=m) for m in range(n))
    return Panel("planted", "run 1", "test", str(about.get("method", "vote")), members, items)


def drawn(accuracies: Sequence[float], n: int, seed: int = 0) -> list[list[str]]:
    """Independent seats; a wrong one says any of five wrong answers."""
    random = Random(seed)
    return [[KEY if random.random() < p else f"wrong {random.randrange(5)}" for p in accuracies] for _ in range(n)]


def test_a_seat_that_only_costs_is_dropped() -> None:
    found = recommend(panel([drawn([0.85, 0.85, 0.85, 0.25], 1200)], tokens=[10, 10, 10, 70]))
    assert found.kept.seats == (0, 1, 2)
    assert found.unit == "tokens"
    assert found.kept.saved == pytest.approx(0.7)
    assert found.kept.spend.tokens == pytest.approx(30)
    assert found.kept.loss == "gain"
    assert "keep seats 1, 2, 3 of 4 seats: −70 % tokens, a gain (+" in sentence(found)
    best_dropped = drop_sentences(found)[0]
    assert best_dropped.startswith("drop seat 4: −70 % tokens, a gain (+")


def test_no_seat_of_an_independent_council_is_dropped() -> None:
    found = recommend(panel([drawn([0.7] * 5, 3000, seed=2)]))
    assert found.kept.seats == (0, 1, 2, 3, 4)
    assert sentence(found) == "keep all 5 seats: no cheaper council came within 0.5 points of the best"
    assert {seat.without.loss for seat in found.seats} == {"loss"}
    assert found.kept.saved == 0
    assert (found.kept.difference.low, found.kept.difference.high, found.kept.loss) == (0.0, 0.0, "no loss")


def by_hand(rows: Answers, seats: Sequence[int]) -> float:
    credits = []
    for row in rows:
        vote = plurality([row[seat] for seat in seats], tie="fractional")
        best = vote.tie or (vote.winner,)
        credits.append(sum(answer == KEY for answer in best) / len(best))
    return sum(credits) / len(credits)


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_is_the_cheapest_within_the_tolerance_by_hand(seed: int) -> None:
    rows, prices = drawn([0.8, 0.5, 0.6, 0.7], 60, seed), [5, 1, 2, 3]
    found = recommend(panel([rows], tokens=prices), seed=seed, tolerance=0.05)
    measured = halves([f"q{q}" for q in range(60)], seed)
    first, second = ([rows[q] for q in range(60) if measured[q] == half] for half in (False, True))
    councils = [tuple(s for s in range(4) if mask[s]) for mask in product([0, 1], repeat=4) if any(mask)]
    accuracy = {council: by_hand(first, council) for council in councils}
    good = [c for c in councils if accuracy[c] >= max(accuracy.values()) - 0.05 - 1e-12]
    cheapest = min(good, key=lambda c: (sum(prices[s] for s in c), -accuracy[c]))
    assert found.kept.seats == cheapest
    assert (found.subsets, found.searched, found.calibration, found.measured) == (15, "every subset", 30, 30)
    assert found.kept.chosen_on == pytest.approx(accuracy[cheapest])
    assert found.kept.measured == pytest.approx(by_hand(second, cheapest))
    assert found.full.measured == pytest.approx(by_hand(second, range(4)))
    assert found.kept.difference.value == pytest.approx(found.kept.measured - found.full.measured)


def test_the_front_rises_in_cost_and_in_accuracy_and_nothing_beats_it() -> None:
    rows, prices = drawn([0.8, 0.5, 0.6, 0.7, 0.65], 200, 3), [9, 1, 2, 4, 4]
    found = recommend(panel([rows], tokens=prices))
    costs = [choice.spend.tokens or 0 for choice in found.front]
    assert costs == sorted(set(costs))
    shares = [choice.chosen_on for choice in found.front]
    assert shares == sorted(set(shares))
    first = [row for row, measured in zip(rows, halves([f"q{q}" for q in range(200)]), strict=True) if not measured]
    for mask in product([0, 1], repeat=5):
        council = [s for s in range(5) if mask[s]]
        if council:
            price, accuracy = sum(prices[s] for s in council), by_hand(first, council)
            reached = max((c.chosen_on for c in found.front if (c.spend.tokens or 0) <= price), default=-1)
            assert accuracy <= reached + 1e-12


def test_beyond_fifteen_seats_the_search_is_greedy_and_finds_the_planted_three() -> None:
    accuracies = [0.2] * 16
    for strong in (3, 8, 12):
        accuracies[strong] = 0.8
    found = recommend(panel([drawn(accuracies, 600)]))
    assert found.searched == "greedy"
    assert 16 < found.subsets <= 48
    assert set(found.kept.seats) == {3, 8, 12}


def test_the_order_of_the_questions_does_not_matter_and_the_seed_does() -> None:
    given = panel([drawn([0.8, 0.6, 0.7], 100)])
    turned = Panel(given.name, given.source, given.task, given.method, given.members, given.items[::-1])
    here, there, other = recommend(given), recommend(turned), recommend(given, seed=1)
    assert (here.full.chosen_on, here.kept.seats) == (there.full.chosen_on, there.kept.seats)
    assert here.kept.difference.value == pytest.approx(there.kept.difference.value)
    assert here.full.chosen_on != other.full.chosen_on
    assert (here.full.chosen_on + here.full.measured) == pytest.approx(other.full.chosen_on + other.full.measured)


@pytest.mark.parametrize(
    ("low", "high", "loss"),
    [(0.001, 0.02, "gain"), (-0.005, 0.01, "no loss"), (-0.004, -0.001, "no loss"), (-0.0051, 0.01, "open"),
     (-0.03, -0.001, "loss"), (0.0, 0.0, "no loss")],
)  # fmt: skip
def test_the_interval_and_the_tolerance_decide_and_not_the_p_value(low: float, high: float, loss: str) -> None:
    for p in (0.001, 0.5, 1.0):
        assert judge(Estimate((low + high) / 2, low, high, p), 0.005) == loss


def test_few_questions_never_show_that_nothing_is_lost() -> None:
    rows = [[row[0], row[0]] for row in drawn([0.8], 40)]
    found = recommend(panel([rows]))
    assert found.kept.seats in {(0,), (1,)}, "one of two copies"
    assert found.kept.difference.value == 0
    assert found.kept.loss == "open", "20 questions without a difference leave room for 16 points"
    assert found.kept.difference.low == pytest.approx(-(1 - 0.025 ** (1 / 20)), abs=1e-6)
    assert "leaves room for a loss above 0.5 points" in sentence(found)


def test_many_questions_show_that_a_copy_is_not_needed() -> None:
    rows = [[row[0], row[0]] for row in drawn([0.8], 2000)]
    found = recommend(panel([rows]))
    assert (found.kept.loss, found.kept.saved) == ("no loss", 0.5)
    assert sentence(found).startswith("keep seat ")
    assert sentence(found).endswith(" of 2 seats: −50 % calls, no measurable loss (0.0 points [−0.4, +0.4])")


def test_a_debate_is_judged_by_its_first_answers_and_says_so() -> None:
    first, second = drawn([0.6, 0.6, 0.6], 100), drawn([1.0, 1.0, 1.0], 100)
    found = recommend(panel([first, second], method="debate"))
    alone = recommend(panel([first]))
    assert found.full.measured == alone.full.measured < 1
    assert any("first answers alone are counted" in note for note in found.notes)
    assert not alone.notes


def test_dollars_before_tokens_before_calls() -> None:
    rows = drawn([0.7, 0.7], 40)
    assert recommend(panel([rows], tokens=[1, 2], usd=[0.1, 0.2])).unit == "US dollars"
    assert recommend(panel([rows], tokens=[1, 2], usd=[0.1, None])).unit == "tokens"
    assert recommend(panel([rows], tokens=[1, 2], usd=[0.0, 0.0])).unit == "tokens", "what is free can not be saved"
    assert recommend(panel([rows], tokens=[1, None])).unit == "calls"


def test_a_failed_seat_is_not_wrong_and_an_unreadable_answer_is_not_right() -> None:
    rows = [[KEY, None] if q % 2 else [KEY, "?"] for q in range(40)]
    found = recommend(panel([rows]))
    alone = next(seat.without for seat in found.seats if seat.index == 0)
    assert alone.seats == (1,)
    assert alone.measured == 0
    assert alone.n < found.measured, "the questions it failed are left out"
    assert found.full.measured == 1
    assert found.kept.spend.calls == 1
    assert alone.spend.calls == 0.5


@pytest.mark.parametrize("seats", [4, 17])
def test_a_seat_that_answers_a_few_easy_questions_is_not_the_best_council(seats: int) -> None:
    rows: list[list[str | None]] = [[*row] for row in drawn([0.7] * (seats - 1), 400)]
    found = recommend(panel([[[*row, KEY if q % 10 == 0 else None] for q, row in enumerate(rows)]]))
    assert found.kept.seats != (seats - 1,)
    assert all(len(choice.seats) > 1 or choice.seats[0] < seats - 1 for choice in found.front)
    assert found.kept.n >= 0.9 * found.measured
    assert any(f"of {found.subsets} sub-councils answered less than 95 %" in note for note in found.notes)


def test_seats_without_first_answers_and_questions_without_keys_are_counted() -> None:
    given = panel([[[*row, None] for row in drawn([0.8, 0.7], 30)]])
    items = (*given.items, Item("open", None, ((Word("x", "x", None), Word("y", "y", None), None),), None, None))
    found = recommend(Panel("p", "run 1", "test", "council", given.members, items, omitted={"failed attempts": 3}))
    assert found.calibration + found.measured == 30
    assert found.notes == (
        "1 of 3 seats gave no first answer and are left out",
        "1 of 31 questions have no key, or failed, and are left out",
        "failed attempts: 3",
    )


def test_seats_that_are_alike_are_named_so() -> None:
    given = panel([drawn([0.8, 0.7], 30)])
    members = tuple(Member(f"draw {m}", "model/0", draw=m) for m in range(2))
    found = recommend(Panel("p", "run 1", "test", "self_consistency", members, given.items))
    assert found.notes == ("some seats have the same model and persona: how many of them stay matters, not which",)
    assert sorted(said[:11] for said in drop_sentences(found)) == ["drop draw 0", "drop draw 1"]


def test_delta_kstar_of_a_copy_and_of_a_voice_of_its_own() -> None:
    given = panel([[[KEY, KEY, "wrong"] for _ in range(20)]])
    rows = {f"it is {KEY}": [1.0, 0.0], "it is wrong": [0.0, 1.0]}
    found = recommend(given, embed=lambda texts: np.array([rows[text] for text in texts]))
    # K* of two equal rows and one across: exp(H(2/3, 1/3)); without a copy 2, without the other 1
    whole = math.exp(-(2 / 3) * math.log(2 / 3) - (1 / 3) * math.log(1 / 3))
    assert [seat.delta_kstar for seat in found.seats] == pytest.approx([whole - 2, whole - 2, whole - 1])
    assert any("delta-K* 0.89" in said for said in drop_sentences(found))
    assert any("delta-K* −0.11" in said for said in drop_sentences(found))


def test_what_can_not_be_recommended_says_what_is_missing() -> None:
    with pytest.raises(DataError, match="run 1: seats with first answers of their own: 1"):
        recommend(panel([[[KEY]] * 10]))
    unkeyed = tuple(Item(f"q{i}", None, ((Word("x", "x", None),) * 2,), None, None) for i in range(4))
    with pytest.raises(DataError, match="questions with a key and an answer: 0"):
        recommend(Panel("p", "run 1", "t", "vote", panel([[[KEY, KEY]]]).members, unkeyed))
    for tolerance in (-0.1, 2.0, math.nan):
        with pytest.raises(UsageError, match="give a number from 0 to 100"):
            recommend(panel([drawn([0.7, 0.7], 10)]), tolerance=tolerance)


def test_a_seat_that_never_answered_a_measured_question_is_a_clear_message() -> None:
    rows = [[KEY, None if measured else KEY] for measured in halves([f"q{q}" for q in range(10)])]
    with pytest.raises(DataError, match="none of its questions was answered by seat 2"):
        recommend(panel([rows]))
