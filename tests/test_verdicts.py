"""What stands of what people said, who wins, and how far two raters agree."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.types import Choice, Verdict
from pluribus.verdicts import adjudicated, choice_of, kappa, majority, sides, standing

A, B = ("a", 0), ("b", 1)


def say(choice: Choice, at: float = 1.0, who: str = "ada", pair: str = "p", flip: bool = False) -> Verdict:
    first, second = (B, A) if flip else (A, B)
    return Verdict(pair, "q", first, second, choice, who, at)


def choices(*events: Verdict) -> dict[tuple[str, str], str]:
    return {key: verdict.choice for key, verdict in standing(events).items()}


def test_the_last_verdict_counts_and_undo_takes_back_just_it() -> None:
    assert choices(say("first"), say("tie", 2)) == {("p", "ada"): "tie"}
    assert choices(say("first"), say("tie", 2), say("undo", 3)) == {("p", "ada"): "first"}
    assert choices(say("first"), say("undo", 2)) == {}
    assert choices(say("undo"), say("first", 2)) == {("p", "ada"): "first"}
    assert choices(say("first"), say("undo", 2), say("undo", 3), say("second", 4)) == {("p", "ada"): "second"}


def test_undo_reaches_neither_another_pair_nor_another_person() -> None:
    found = choices(say("first"), say("tie", who="bob"), say("second", pair="r"), say("undo", 9))
    assert found == {("p", "bob"): "tie", ("r", "ada"): "second"}


@given(st.lists(st.sampled_from(["first", "second", "tie", "skip", "undo"]), max_size=12), st.randoms())
def test_the_order_of_time_counts_not_the_order_of_the_list(said: list[Choice], shuffler: random.Random) -> None:
    events = [say(choice, float(at)) for at, choice in enumerate(said)]
    mixed = list(events)
    shuffler.shuffle(mixed)
    assert standing(mixed) == standing(events)


def test_a_choice_is_told_by_the_sides_not_by_who_stood_left() -> None:
    assert sides(say("first")) == sides(say("first", flip=True)) == (A, B)
    assert [choice_of(say(c)) for c in ("first", "second", "tie")] == ["first", "second", "tie"]
    assert [choice_of(say(c, flip=True)) for c in ("first", "second", "tie")] == ["second", "first", "tie"]
    assert choice_of(say("skip")) is None


@pytest.mark.parametrize(
    ("said", "winner"),
    [
        (["first"], "first"),
        (["first", "first", "second"], "first"),
        (["first", "second"], "tie"),
        (["first", "tie"], "tie"),
        (["second", "skip", "skip"], "second"),
        (["first", "first", "tie", "second"], "first"),
    ],
)
def test_most_votes_win_and_a_shared_lead_is_a_tie(said: list[Choice], winner: str) -> None:
    events = [say(choice, who=f"reviewer {i}") for i, choice in enumerate(said)]
    assert majority(standing(events)) == {"p": winner}


def test_a_pair_that_was_only_skipped_is_not_decided() -> None:
    stands = standing([say("skip"), say("skip", who="bob")])
    assert majority(stands) == {} and adjudicated(stands) == frozenset()


def test_a_pair_is_adjudicated_by_as_many_people_as_were_asked_for() -> None:
    stands = standing([say("first"), say("first", 2), say("tie", who="bob"), say("tie", pair="r")])
    assert adjudicated(stands) == {"p", "r"}
    assert adjudicated(stands, 2) == {"p"}
    assert adjudicated(stands, 3) == frozenset()


def test_kappa_of_a_published_table() -> None:
    """Both yes 20, only the first 5, only the second 10, both no 15: p_o 0.7, p_e 0.5."""
    table = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert kappa([a for a, _ in table], [b for _, b in table]) == pytest.approx(0.4)


def test_kappa_at_its_ends() -> None:
    assert kappa(["a", "b"], ["a", "b"]) == 1.0
    assert kappa(["a", "b"], ["b", "a"]) == -1.0
    assert kappa(["a", "a", "b", "b"], ["a", "b", "a", "b"]) == 0.0
    assert kappa([], []) is None
    assert kappa(["a", "a"], ["a", "a"]) is None
    assert kappa(["a", None, "b"], ["a", "b", None]) is None
    with pytest.raises(ValueError):
        kappa(["a"], [])


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(["a", "b", "c", None])), max_size=30))
def test_kappa_is_the_same_both_ways_and_at_most_one(table: list[tuple[str | None, str | None]]) -> None:
    one, other = [a for a, _ in table], [b for _, b in table]
    found = kappa(one, other)
    assert found == kappa(other, one)
    assert found is None or -1.0 <= found <= 1.0
