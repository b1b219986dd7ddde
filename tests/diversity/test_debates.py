from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.diversity.debates import moves, settled_round

DEBATES = st.lists(st.lists(st.sampled_from(["4", "5", "6", None]), min_size=3, max_size=3), min_size=1, max_size=5)

DEBATE = [["4", "5", "5"], ["5", "5", "4"], ["5", "6", "4"]]
RIGHT = [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


def test_three_agents_by_hand() -> None:
    # Round 1: a leaves its right 4 for the 5 that b and c held (½ each); b heard only a's 4 and stays; c leaves its 5
    # for a's 4 and is right now. Round 2: a heard c's 4 and stays; b heard c's 4 and goes to 6, which nobody held;
    # c heard 5 from a and from b and stays (½ each).
    got = moves([DEBATE], [RIGHT])
    assert got.adopted_A_A.tolist() == [[0, 0.5, 0.5], [0, 0, 0], [1, 0, 0]]
    assert got.corrupted_A_A.tolist() == [[0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]]
    assert got.corrected_A_A.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert got.kept_A_A.tolist() == [[0, 0, 1], [1, 0, 0], [0.5, 0.5, 0]]
    assert got.alone_A.tolist() == [0, 1, 0]
    assert got.chances == 6


def test_only_speakers_that_were_heard_count() -> None:
    # Everybody reads the agent before it: a reads c, b reads a, c reads b.
    ring = [[[2], [0], [1]]] * 3
    got = moves([DEBATE], [RIGHT], [ring])
    # Round 1: a takes c's 5; b hears a's 4, stays; c hears b's 5, its own answer: no chance.
    # Round 2: a hears c's 4, stays; b hears a's 5, its own; c hears b's 5, stays.
    assert got.adopted_A_A.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert got.corrupted_A_A[0, 2] == got.corrupted_A_A.sum() == 1
    assert got.kept_A_A.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert (got.alone_A.sum(), got.chances) == (0, 4)


def test_an_agent_without_an_answer_can_be_moved_and_moves_nobody() -> None:
    got = moves([[[None, "5"], ["5", None]]], [[[None, 1], [1, None]]])
    assert got.adopted_A_A.tolist() == [[0, 1], [0, 0]]
    assert got.corrected_A_A.tolist() == [[0, 1], [0, 0]]
    assert got.alone_A.tolist() == [0, 0]  # b heard no other answer: dropping its own is not a chance


@given(st.lists(DEBATES, max_size=4))
def test_every_chance_is_counted_once(debates: list[list[list[str | None]]]) -> None:
    got = moves(debates)
    chances = sum(
        any(was[j] is not None and was[j] != was[i] for j in range(3) if j != i)
        for debate in debates
        for was in debate[:-1]
        for i in range(3)
    )
    assert got.chances == pytest.approx(chances)
    assert not np.diagonal(got.adopted_A_A if debates else np.zeros((1, 1))).any()
    parts = [moves([debate]) for debate in debates]
    for name in ("adopted_A_A", "kept_A_A", "alone_A"):
        assert getattr(got, name) == pytest.approx(sum(getattr(part, name) for part in parts) + 0 * getattr(got, name))


def test_debates_of_other_agents_are_refused() -> None:
    with pytest.raises(ValueError, match=r"debates of \[2, 3\] agents"):
        moves([DEBATE, [["4", "5"]]])


@pytest.mark.parametrize(
    ("standing", "settled", "unanimous"),
    [
        ([["4", "4", "5"]], 0, None),
        ([["4", "5", "5"], ["4", "4", "5"], ["4", "4", "4"]], 1, 2),
        ([["4", "4", "4"], ["4", "4", "5"], ["4", "4", "4"]], 0, 2),  # the lead never changed
        ([["4", "4", "5"], ["5", "5", "4"], ["4", "4", "5"]], 2, None),  # it came back: settled only in the end
        ([["4", "5", None], ["4", "4", None]], 1, None),  # a tie of two is another lead than one of them
        ([["4", "5"], ["5", "4"]], 0, None),
        ([["4", "4"], [None, None]], None, None),
        ([[None, None], ["4", "4"]], 1, 1),
        ([], None, None),
    ],
)
def test_settled_round(standing: list[list[str | None]], settled: int | None, unanimous: int | None) -> None:
    assert settled_round(standing) == settled
    assert settled_round(standing, unanimous=True) == unanimous


@given(DEBATES)
def test_nothing_leads_otherwise_after_it_settled(debate: list[list[str | None]]) -> None:
    settled = settled_round(debate)
    if settled is not None:
        assert {settled_round(debate[r:]) for r in range(settled, len(debate))} == {0}
        assert settled == 0 or settled_round(debate[settled - 1 :]) == 1
