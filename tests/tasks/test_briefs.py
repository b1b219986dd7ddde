"""The made-up market briefs: the label follows from the text by the rule in the text."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import islice

import pytest

from pluribus.errors import UnknownName
from pluribus.tasks import briefs, load_task
from pluribus.tasks.briefs import LABELS, SKILLS, SPLITS, draw, load, problem, running


def test_question_zero_is_the_same_on_every_machine() -> None:
    question, key = next(load("test"))
    assert question.id == "briefs/test/0"
    assert question.text.startswith("Costs up 1. Orders down 6. Lunch was served at 5. Debt down 4. Profit down 2.")
    assert key.answer == "BEARISH"


def test_load_twice_gives_the_same() -> None:
    assert list(islice(load("dev"), 30)) == list(islice(load("dev"), 30))


def test_the_label_follows_from_the_text() -> None:
    for question, key in islice(load("test"), 300):
        assert key.answer == _judged(question.text)


def test_the_running_sum_ends_at_the_label() -> None:
    for found in (problem("dev", index) for index in range(100)):
        assert briefs.label(running(found.signals)[-1]) == found.answer


def test_splits_share_no_signals() -> None:
    seen = {split: {problem(split, index).signals for index in range(1500)} for split in SPLITS}
    assert not seen["test"] & seen["train"]
    assert not seen["test"] & seen["dev"]
    assert not seen["dev"] & seen["train"]


def test_labels_and_nouns_are_spread() -> None:
    found = [problem("test", index) for index in range(900)]
    labels = Counter(each.answer for each in found)
    assert set(labels) == set(LABELS)
    assert min(labels.values()) > 220
    nouns = Counter(signal.noun for each in found for signal in each.signals)
    assert set(nouns) == set(SKILLS)
    assert min(nouns.values()) > 300


def test_a_rare_noun_is_rare() -> None:
    rng = random.Random(0)
    found = [draw(rng, "train", {"cash": 0.05}) for _ in range(400)]
    nouns = Counter(signal.noun for each in found for signal in each.signals)
    assert 0 < nouns["cash"] < 0.3 * nouns["debt"]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_split_ends(split: str) -> None:
    with pytest.raises(IndexError):
        problem(split, briefs.SIZES[split])


def test_unknown_split_and_subset_are_errors() -> None:
    with pytest.raises(UnknownName, match="dev"):
        load("validation")
    with pytest.raises(UnknownName, match="6"):
        load("test", subset="7")


def test_a_subset_holds_its_length_only() -> None:
    found = load_task("briefs:3", limit=20)
    assert {question.metadata["steps"] for question, _ in found.pairs} == {3}
    assert found.family == "market"


def test_the_question_does_not_hold_the_solution() -> None:
    for question, _ in islice(load("test"), 50):
        assert question.labels == LABELS
        assert set(question.metadata) == {"steps", "skills"}


def _judged(text: str) -> str:
    """The rule of the text, read from its words alone."""
    points = 0
    for noun, verb, number in re.findall(r"([A-Z][a-z]+) (rose by|up|grew by|fell by|down|shrank by) (\d+)", text):
        sign = 1 if verb in ("rose by", "up", "grew by") else -1
        good = noun in ("Sales", "Orders", "Profit", "Cash")
        points += int(number) * sign * (1 if good else -1)
    above, below = (int(n) for n in re.search(r"above (\d+) is BULLISH, below (-\d+) is BEARISH", text).groups())
    return "BULLISH" if points > above else "BEARISH" if points < below else "NEUTRAL"
