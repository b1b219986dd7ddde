from __future__ import annotations

import pytest

from pluribus.answers import canonical, read
from pluribus.types import Question

OPTIONS = ("Rome", "Paris", "Bonn", "a person", "I only", "New York", "York", "5", "5.5", "10")
ASK = Question("q", "t", "Which?", "choice", OPTIONS)

READ = {
    "This is a case of Rome. The final answer is D": "D",
    "The answer is A person.": "D",
    "The answer is A": "A",
    "The answer is A because it is old.": "A",
    "The answer is A, not B.": "A",
    "The answer is I only.": "E",
    "The answer is I": "I",
    "The answer is (b).": "B",
    "the answer is b": "B",
    "Answer: A) Rome": "A",
    "**B**": "B",
    "B.": "B",
    "(B)": "B",
    "paris": "B",
    "The answer is ‘Paris’": "B",
    "The answer is New York": "F",
    "The answer is York": "G",
    "The answer is 5.5": "I",
    r"The final answer is $\boxed{5}$": "H",
    r"$\boxed{\text{C) Bonn}}$": "C",
    "The answer is:\nC. Bonn": "C",
    "The correct answer is option (C).": "C",
    "The best choice is: **C**": "C",
    "{final answer: (C)}": "C",
    '{"answer": "C"}': "C",
    "So (C) is the right choice, not (A).": "C",
    "A: Rome\nB: Paris\nOption B is correct.": "B",
    "I'd go with (B), an old town": "B",
}


@pytest.mark.parametrize("text", READ)
def test_reads_the_committed_option(text: str) -> None:
    assert read(ASK, text) == READ[text]


@pytest.mark.parametrize(
    "text",
    [
        "A good question. Many think so.", "I cannot answer this question.", "The answer is (A) or (B).",
        "The answer is not (A).", "Answer: (K)", "The answer is an apple.", "A) Rome\nB) Paris\nC) Bonn",
        "(A) means one thing, (B) means another", "The answer is (H) and (J)", "<think>The answer is (A)",
    ],
)  # fmt: skip
def test_articles_pronouns_lists_and_hedges_are_no_answer(text: str) -> None:
    assert read(ASK, text) is None


def test_letters_beyond_the_options_are_no_answer() -> None:
    two = Question("q", "t", "Which?", "choice", ("Rome", "Paris"))
    assert read(two, "The answer is (C).") is None
    assert read(two, "The answer is (B).") == "B"


def test_options_that_carry_their_letter_match_by_their_text() -> None:
    lettered = Question("q", "t", "Which?", "choice", ("A)$61", "B)$65", "C)$67.40"))
    assert read(lettered, "The answer is $65.") == "B"
    assert canonical(lettered, "c") == "C"


def test_an_option_text_that_two_options_share_names_neither() -> None:
    assert canonical(Question("q", "t", "Which?", "choice", ("Rome", "rome")), "Rome") is None


def test_a_question_without_listed_options_takes_any_letter() -> None:
    assert read(Question("q", "t", "Which? A) … B) …", "choice"), "The answer is (B).") == "B"
