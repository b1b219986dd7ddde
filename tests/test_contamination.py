"""Training texts against test texts: equal questions, and runs of words that both have."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.contamination import N, held, normalised, overlap

WORDS = ["ann", "has", "three", "more", "cards", "than", "ben"]


def plain(texts: list[str], others: list[str], n: int) -> list[tuple[int, int]]:
    """(runs, shared runs) of each text, by sets of tuples; the texts are words and spaces."""

    def runs(text: str) -> list[tuple[str, ...]]:
        words = text.casefold().split()
        if not words:
            return []
        return [tuple(words[at : at + n]) for at in range(max(len(words) - n, 0) + 1)]

    known = {run for other in others for run in runs(other)}
    return [(len(runs(text)), sum(run in known for run in runs(text))) for text in texts]


texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=8)


@settings(deadline=None)  # the first call imports numpy
@given(texts, texts, st.integers(1, 6))
def test_runs_are_counted_as_sets_of_tuples_count_them(mine: list[str], theirs: list[str], n: int) -> None:
    found = overlap(mine, theirs, n)
    assert list(zip(found.runs_N.tolist(), found.shared_N.tolist(), strict=True)) == plain(mine, theirs, n)
    assert found.equal_N.tolist() == [text in theirs for text in mine]


def test_a_run_of_thirteen_words_is_found_and_one_of_twelve_is_not() -> None:
    rng = random.Random(0)
    words = [f"w{rng.randrange(10**9)}" for _ in range(60)]
    mine = " ".join(words[:30])
    assert overlap([mine], [" ".join(["x", *words[5:18], "y"])]).shared_N.tolist() == [1]
    assert overlap([mine], [" ".join(["x", *words[5:17], "y"])]).shared_N.tolist() == [0]
    assert N == 13


def test_a_short_text_is_compared_whole_and_only_with_short_ones() -> None:
    short = "How many cards has Ann?"
    found = overlap([short, short, "How many cards has Ben?"], ["how many  CARDS has ann"])
    assert found.share_N.tolist() == [1.0, 1.0, 0.0] and not found.equal_N.any()
    long = f"{short} " + " ".join(f"w{i}" for i in range(20))
    assert overlap([short], [long]).touched == 0.0


def test_signs_of_arithmetic_are_words_and_punctuation_is_none() -> None:
    assert overlap(["1 + 1?", "1 - 1?"], ["1 + 1"]).shared_N.tolist() == [1, 0]
    assert overlap(["Ann, has: three!"], ["ann has three"]).touched == 1.0


def test_equal_is_the_same_question_and_no_other() -> None:
    found = overlap(["What is 3.5 + 1?", "what is\n3.5 + 1?", "What is 35 + 1?"], ["What is 3.5 + 1?"])
    assert found.equal_N.tolist() == [True, True, False]
    assert normalised(" A\tb ") == "a b"


def test_shares_are_of_texts_and_of_runs() -> None:
    found = overlap(["a b c d", "x y z", "?!"], ["a b c"], n=2)
    assert found.runs_N.tolist() == [3, 2, 0] and found.shared_N.tolist() == [2, 0, 0]
    assert found.touched == pytest.approx(1 / 3) and found.shared == pytest.approx(2 / 5)


def test_nothing_overlaps_with_nothing() -> None:
    for mine, theirs in (([], ["a"]), (["a b"], []), ([], [])):
        found = overlap(mine, theirs)
        assert (found.touched, found.shared) == (0.0, 0.0) and not found.equal_N.any()


def test_a_run_has_at_least_one_word() -> None:
    with pytest.raises(ValueError, match="runs of 0 words"):
        overlap(["a"], ["a"], 0)


# --- a prompt that holds a question ----------------------------------------------------------------------------------


def test_a_question_is_found_inside_a_prompt() -> None:
    prompts = ["Solve:\nAnn has 3 cards.  How many?\nEnd with {final answer: NUMBER}", "Ben has 3 cards. How many?", ""]
    assert held(prompts, [("ann has 3 cards. how many?",)]) == [0]
    assert held(prompts, [("Ann has 3 cards. How many cards?",), ()]) == []


def test_options_have_to_be_there_too() -> None:
    prompt = "Which is red?\nA. sky\nB. blood"
    assert held([prompt], [("Which is red?", "blood", "sky")]) == [0]
    assert held([prompt], [("Which is red?", "blood", "grass")]) == []
    assert held([prompt], [("Which one of these is red?", "blood", "sky")]) == []


def test_a_very_short_question_has_to_be_a_line() -> None:
    assert held(["1 + 1?", "Say:\n1 + 1?\nBriefly.", "What is 1 + 1?"], [("1 + 1?",)]) == [0, 1]
