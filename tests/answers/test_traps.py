"""Texts that fool readers: each trap, in every kind it concerns."""

from __future__ import annotations

import pytest

from pluribus.answers import read
from pluribus.types import Question

CHOICE = Question("q", "t", "Which?", "choice", ("Rome", "Paris", "Bonn", "A town", "an inn"))
NUMBER = Question("q", "t", "How many?", "number")
LATEX = Question("q", "t", "How many?", "latex")
LABEL = Question("q", "t", "Which way?", "label", labels=("BULLISH", "BEARISH", "NEUTRAL"))
BOOLEAN = Question("q", "t", "Is it?", "boolean")

TRAPS: tuple[tuple[Question, str, str | None], ...] = (
    # words before the answer that look like one
    (CHOICE, "This is a case of Bonn in a book, but the final answer is D", "D"),
    (CHOICE, "A case for Paris. I would say so. The final answer is D.", "D"),
    (CHOICE, "This is a case of many.", None),
    (NUMBER, "In 3 of 4 cases it fails, so the answer is 7.", "7"),
    # the bare letter in any dress
    (CHOICE, "(A)", "A"),
    (CHOICE, "a)", "A"),
    (CHOICE, "Option C", "C"),
    (CHOICE, "I choose Option C.", "C"),
    (CHOICE, "**B**", "B"),
    (CHOICE, "The answer is **(B)**.", "B"),
    (CHOICE, "**Answer: B**", "B"),
    (CHOICE, r"\boxed{\text{(C)}}", "C"),
    (CHOICE, r"$\boxed{\textbf{(C)}\ Bonn}$", "C"),
    (CHOICE, "It is known as B. Paris", "B"),
    (CHOICE, "It is known as U.S. B. Pascal", None),
    (CHOICE, "Neither A. Rome nor B. Paris", None),
    # the option's text
    (CHOICE, "The answer is Paris.", "B"),
    (CHOICE, "the answer is: paris, the capital", "B"),
    (CHOICE, "The answer is Parisian", None),
    (CHOICE, "The answer is a town", "D"),
    # more than one, or none
    (CHOICE, "The answer is (B) or (C)", None),
    (CHOICE, "The answer is B and C.", None),
    (CHOICE, "The answer is not A", None),
    (CHOICE, "The answer is not (A) but (B)", None),
    (CHOICE, "It is not (A). The answer is (B).", "B"),
    # the last commitment wins
    (CHOICE, "The answer is (A). Wait: the answer is (C).", "C"),
    (NUMBER, "The answer is 5. I checked again. The answer is 6. There are 7 days.", "6"),
    (LATEX, r"\boxed{5} is wrong, it is \boxed{6}", "6"),
    (LABEL, "The answer is bullish. On reflection the answer is bearish.", "BEARISH"),
    (BOOLEAN, "The answer is no. On reflection, the answer is yes.", "true"),
    # numbers as people write them
    *((kind, f"The answer is {said}.", number) for kind in (NUMBER, LATEX) for said, number in (
        ("1e3", "1000"), ("57,500", "57500"), ("−5", "-5"), ("$18.00", "18"), ("\\$18.00", "18"), ("18 dollars", "18"),
        ("-0.50", "-0.5"), ("**12**", "12"), ("007", "7"),
    )),
    (NUMBER, "She sells 9 eggs.\nA: 18", "18"),
    (LATEX, "She sells 9 eggs.\nA: 18", "18"),
    (NUMBER, "$18.00", "18"),
    # thinking that was cut off gives no answer
    *((kind, f"<think>The answer is {said}. But wait, the answer is {said}", None) for kind, said in (
        (CHOICE, "B"), (NUMBER, "5"), (LATEX, "$5$"), (LABEL, "neutral"), (BOOLEAN, "yes"),
    )),
    (NUMBER, "<think>4? No.</think>\nThe answer is 5.", "5"),
    # labels in lower case, inside other words, denied
    (LABEL, "the market looks bullish", "BULLISH"),
    (LABEL, "The trend is bullishly priced and unbearish", None),
    (LABEL, "Decision: **Neutral**.", "NEUTRAL"),
    (LABEL, "This is not bearish", None),
    (LABEL, "not bullish but bearish", "BEARISH"),
    (LABEL, r"\boxed{\text{BEARISH}}", "BEARISH"),
    # yes and no
    (BOOLEAN, "Yes", "true"),
    (BOOLEAN, "no.", "false"),
    (BOOLEAN, "**Answer:** TRUE", "true"),
    (BOOLEAN, "The answer is not true", "false"),
    (BOOLEAN, "There is no reason to doubt it", None),
    (BOOLEAN, "Nothing is known yesterday", None),
)  # fmt: skip


@pytest.mark.parametrize(("question", "text", "answer"), TRAPS)
def test_no_trap_catches_the_reader(question: Question, text: str, answer: str | None) -> None:
    assert read(question, text) == answer
