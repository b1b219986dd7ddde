"""ROUGE as the package `rouge-score` computes it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer

from pluribus.metrics.rouge import ROUGE, longest_common, rouge

KINDS = [*ROUGE, "rouge4"]
WORDS = [
    "the",
    "running",
    "runner",
    "ran",
    "meetings",
    "was",
    "decided",
    "decision",
    "controls",
    "3",
    "relational",
    "ab",
]
ODD = [
    "",
    " \n\n ",
    "Ünïcödé naïve 数学 İstanbul ſet",
    "It's 3.5 °C -- e.g. U.S.A.",
    "one\n\ntwo one\ntwo two three",
    "The cat sat.\nThe cat lay on the mat.",
    "a a a a b",
    "12,345.67 agreed-upon re_use",
]


def sentences(rng: random.Random) -> str:
    return "\n".join(" ".join(rng.choices(WORDS, k=rng.randint(0, 14))) for _ in range(rng.randint(1, 5)))


def same(prediction: str, references: list[str], stemmed: bool) -> None:
    stem = PorterStemmer().stem if stemmed else None
    theirs = RougeScorer(KINDS, use_stemmer=stemmed).score_multi(references, prediction)
    for kind in KINDS:
        ours, wanted = rouge(prediction, references, kind, stem), theirs[kind]
        found = (ours.precision, ours.recall, ours.f1)
        assert found == pytest.approx((wanted.precision, wanted.recall, wanted.fmeasure), abs=1e-9), (kind, prediction)


@pytest.mark.parametrize("stemmed", [False, True])
def test_summaries_score_as_the_package_scores_them(stemmed: bool) -> None:
    rng = random.Random(7)
    for _ in range(80):
        same(sentences(rng), [sentences(rng) for _ in range(rng.randint(1, 3))], stemmed)


@pytest.mark.parametrize("stemmed", [False, True])
def test_odd_texts_score_as_the_package_scores_them(stemmed: bool) -> None:
    for one in ODD:
        for other in ODD:
            same(one, [other], stemmed)


words = st.lists(st.sampled_from("abcd"), max_size=20)


@settings(max_examples=150, deadline=None)
@given(words, words)
def test_the_longest_common_subsequence_is_that_of_the_table(first: list[str], second: list[str]) -> None:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    assert longest_common(first, second) == table[-1][-1]


@settings(max_examples=100, deadline=None)
@given(words, words, st.sampled_from(KINDS))
def test_swapping_the_texts_swaps_precision_and_recall(one: list[str], other: list[str], kind: str) -> None:
    if kind == "rougeLsum":
        return  # its union is taken over the lines of the reference alone
    there, back = rouge(" ".join(one), [" ".join(other)], kind), rouge(" ".join(other), [" ".join(one)], kind)
    assert (there.precision, there.recall) == (back.recall, back.precision)
    assert 0 <= there.f1 <= 1 and min(there.precision, there.recall) <= there.f1 + 1e-12


def test_an_unknown_kind_and_no_reference() -> None:
    with pytest.raises(ValueError, match="'rougeW' is no ROUGE; there are: rouge1, rouge2, rougeL, rougeLsum"):
        rouge("a", ["a"], "rougeW")
    with pytest.raises(ValueError, match="no reference"):
        rouge("a", [], "rouge1")
