"""Contexts that are longer than the room for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.prompts._window import MARK, cut, fit
from pluribus.tasks import load_task
from pluribus.types import Question

Count = Callable[[str], int]


def words(text: str) -> int:
    return len(text.split())


def pieces(text: str) -> int:
    """About as a tokenizer counts: long words are several tokens, signs their own."""
    return len(re.findall(r"\w{1,4}|[^\w\s]", text))


COUNTS: list[Count] = [words, pieces, len]
TEXTS = st.lists(st.sampled_from(["cat", "dog.", "\n", "\n\n", " ", "elephantine", "x", "–", ""]), max_size=60).map(
    " ".join
) | st.text(max_size=80)
PARAGRAPHS = [f"Title {n}\n" + " ".join(f"word{n}-{i}" for i in range(20)) for n in range(10)]


@given(TEXTS, st.integers(-3, 80), st.sampled_from(COUNTS))
def test_never_longer_than_asked(text: str, most: int, count: Count) -> None:
    assert count(cut(text, most, count)) <= max(most, 0)


@given(TEXTS, st.integers(-3, 80), st.sampled_from(COUNTS))
def test_cutting_again_changes_nothing(text: str, most: int, count: Count) -> None:
    once = cut(text, most, count)
    assert cut(once, most, count) == once


@given(TEXTS, st.integers(0, 80), st.sampled_from(COUNTS))
def test_a_cut_is_marked_and_what_stays_is_the_beginning_and_the_end(text: str, most: int, count: Count) -> None:
    shorter = cut(text, most, count)
    if count(text) <= most:
        assert shorter == text
    elif shorter:
        head, marked, tail = shorter.partition(MARK)
        assert marked and text.startswith(head.rstrip("\n ")) and text.endswith(tail.lstrip("\n "))
        assert len(head.rstrip()) + len(tail.lstrip()) < len(text)
    else:
        assert count(MARK) > most


@given(TEXTS, st.integers(8, 40))
def test_the_room_is_used(text: str, most: int) -> None:
    """Counted in characters every length can be met."""
    room = most + len(MARK)
    shorter = cut(text, room, len)
    assert shorter == text or len(shorter) - len(MARK) >= most // 2


@given(TEXTS, st.integers(-3, 40), st.sampled_from(COUNTS))
def test_all_but_the_context_stays(context: str, most: int, count: Count) -> None:
    question = Question("q1", "qasper", "Who? " * 50, "choice", ("a" * 99, "b"), context=context, metadata={"n": 1})
    fitted = fit(question, most, count)
    assert replace(fitted, context=context) == question
    assert fitted.context is None or count(fitted.context) <= max(most, 0)


def test_a_question_without_context_is_left_alone() -> None:
    question = Question("q", "t", "Who?", "text")
    assert fit(question, 0, words) is question
    whole = replace(question, context="short")
    assert fit(whole, 1, words) is whole


def test_no_room_at_all_leaves_no_context() -> None:
    assert fit(Question("q", "t", "Who?", "text", context="one two three"), 2, words).context is None


@pytest.mark.parametrize("most", [60, 100, 130, 200])
def test_paragraphs_stay_whole(most: int) -> None:
    kept = cut("\n\n".join(PARAGRAPHS), most, words).split("\n\n")
    at = kept.index(MARK)
    assert kept[:at] == PARAGRAPHS[:at] and kept[at + 1 :] == PARAGRAPHS[len(PARAGRAPHS) - (len(kept) - at - 1) :]
    assert 0 <= at - (len(kept) - at - 1) <= 1, "the beginning and the end in equal parts"


def test_a_paragraph_that_is_longer_than_the_room_is_cut_between_words() -> None:
    shorter = cut(" ".join(f"w{n}" for n in range(1000)), 23, words)
    assert shorter == f"{' '.join(f'w{n}' for n in range(10))} {MARK} {' '.join(f'w{n}' for n in range(990, 1000))}"


def test_the_counter_is_asked_a_few_times_only() -> None:
    asked: list[int] = []

    def count(text: str) -> int:
        asked.append(1)
        return words(text)

    cut("\n".join(f"Chair: we said {n} things." for n in range(5000)), 2000, count)
    assert len(asked) < 30


def test_real_contexts_fit_real_rooms(shared_data: Path) -> None:
    folder = shared_data / "benchmarks"
    for task, file in (
        ("hotpotqa", "hotpotqa/hotpot_dev_distractor_sample.jsonl.gz"),
        ("qmsum", "qmsum/test_ALL.jsonl.gz"),
    ):
        for question, _ in load_task(task, data=folder / file, limit=30).pairs:
            fitted = fit(question, 500, pieces)
            assert 250 <= pieces(fitted.context or "") <= 500
            assert MARK in (fitted.context or "")
            assert fitted.text == question.text
