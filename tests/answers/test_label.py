from __future__ import annotations

import pytest

from pluribus.answers import canonical, read
from pluribus.types import Question

ASK = Question("q", "t", "?", "label", labels=("entailment", "not_entailment", "Neutral"))

READ = {
    "The answer is Entailment": "entailment",
    "The answer is not entailment.": "not_entailment",
    "answer: NOT-ENTAILMENT": "not_entailment",
    "First neutral, then entailment. The answer is that it's neutral.": "Neutral",
    "It seems neutral": "Neutral",
    "Neutral? No, entailment": "entailment",
    "neither": None,
    "entailments abound": None,
    "The answer is unclear": None,
}


@pytest.mark.parametrize("text", READ)
def test_reads_one_of_the_closed_set(text: str) -> None:
    assert read(ASK, text) == READ[text]


def test_a_denied_label_is_not_read() -> None:
    mood = Question("q", "t", "?", "label", labels=("positive", "negative"))
    assert read(mood, "It is negative, not positive") == "negative"


def test_labels_that_differ_in_case_only_are_told_apart_where_written_exactly() -> None:
    cases = Question("q", "t", "?", "label", labels=("us", "US"))
    assert canonical(cases, "US") == "US"
    assert canonical(cases, "us") == "us"


def test_a_question_without_labels_has_no_answer() -> None:
    assert read(Question("q", "t", "?", "label"), "The answer is yes") is None
