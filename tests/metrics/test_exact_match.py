"""Exact match and token F1 by the rules of SQuAD 1.1's evaluation script, on the cases it is known for."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.metrics.exact_match import exact_match
from pluribus.metrics.token_f1 import token_f1

CASES: list[tuple[str, list[str], float, float]] = [
    ("The Denver Broncos", ["Denver Broncos", "Denver Broncos"], 1, 1),
    ("denver broncos.", ["Denver Broncos!"], 1, 1),
    ("an apple a day", ["apple day"], 1, 1),
    ("theatre", ["atre"], 0, 0),  # articles go as whole words only
    ("a.b", ["ab"], 1, 1),  # punctuation goes without leaving a space …
    ("The-cat", ["thecat"], 1, 1),  # … and before the articles do
    ("U.S.", ["us"], 1, 1),
    ("3.14", ["314"], 1, 1),  # the rule takes decimal points, too
    ("Café", ["café"], 1, 1),
    ("CAFE", ["café"], 0, 0),  # accents stay
    ("“Hamlet”", ["Hamlet"], 0, 0),  # only ASCII punctuation goes
    ("数学 是", ["是 数学"], 0, 1),
    ("one  two\n\tthree", ["one two three"], 1, 1),
    ("in 1066 by William", ["1066"], 0, 0.4),
    ("cat cat cat", ["cat"], 0, 0.5),  # a word counts as often as both have it
    ("cat sat", ["the cat", "cat sat down"], 0, 0.8),  # the best of several
    ("", [""], 1, 0),  # version 1.1 finds no common word there
    ("the", ["a"], 1, 0),
    ("", ["Paris"], 0, 0),
    ("!!!", ["Paris", ""], 1, 0),
]


@pytest.mark.parametrize(("said", "golds", "exact", "f1"), CASES)
def test_the_cases_of_squad(said: str, golds: list[str], exact: float, f1: float) -> None:
    assert exact_match(said, golds) == exact
    assert token_f1(said, golds) == pytest.approx(f1, abs=1e-12)


texts = st.text(alphabet=st.sampled_from("abt he.,'ÄΣß½ \n"), max_size=30)


@settings(max_examples=150, deadline=None)
@given(texts, texts)
def test_what_never_matters(one: str, other: str) -> None:
    exact, f1 = exact_match(one, [other]), token_f1(one, [other])
    assert exact in (0, 1) and 0 <= f1 <= 1
    assert (exact, f1) == (exact_match(other, [one]), pytest.approx(token_f1(other, [one])))
    assert exact_match(f"The {one} !", [other]) == exact and token_f1(f"The {one} !", [other]) == f1
    if exact and any(c not in string.punctuation + string.whitespace for c in one.replace("the", "").replace("a", "")):
        assert f1 == 1


@settings(max_examples=60, deadline=None)
@given(texts, st.lists(texts, min_size=1, max_size=4))
def test_several_references_give_the_best_of_each(said: str, golds: list[str]) -> None:
    assert exact_match(said, golds) == max(exact_match(said, [gold]) for gold in golds)
    assert token_f1(said, golds) == max(token_f1(said, [gold]) for gold in golds)


def test_without_a_reference_there_is_nothing_to_say() -> None:
    for measure in (exact_match, token_f1):
        with pytest.raises(ValueError, match="no reference"):
            measure("Paris", [])
