from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.answers import canonical, read, same
from pluribus.types import Question

ASK = Question("q", "t", "How many?", "number")

READ = {
    "The answer is $57,500.": "57500",
    "The answer is −5": "-5",
    "Answer: -$5.50": "-5.5",
    "The answer is .5": "0.5",
    "The answer is -0": "0",
    "**Answer:** 1e3": "1000",
    "The answer is 50%.": "50",
    "#### 18": "18",
    "5 + 9 = 14 {final answer: 14} then 3": "14",
    r"**Final Answer**" + "\n\n" + r"$\boxed{\frac{1}{2}}$": "0.5",
    "Final Answer:\n\n42 apples, not 5": "42",
    r"\boxed{1{,}234}": "1234",
    r"\boxed{x = 5}": "5",
    r"\boxed{18 \text{ dollars}}": "18",
    r"Thus it is \(-\frac{3}{4}\). The answer is \(-\frac{3}{4}\).": "-0.75",
    "The answer is 2/6": "1/3",
    "The answer is 1 1/2 cups of 8": "1.5",
    "The answer is 1.5 × 10^3.": "1500",
    "The answer is 18/2 = 9 dollars a day": "9",
    "The answer is 12 (since 3 * 5 = 15).": "12",
    "The answer is not 5 but 6.": "6",
    '{"reasoning": "2 of 3", "answer": "6", "confidence": 0.9}': "6",
    '{"reasoning": "2 of 3",\n "answer": 6.0}': "6",
    "The answer is -221_3": "-25",
    "The answer is **12** apples.": "12",
    "The answer is *12* of 30": "12",
    "Final Answer: How many pens has she in 2 bags?\nShe has 18/2 = 9 pens.": "9",
}


@pytest.mark.parametrize("text", READ)
def test_reads_the_committed_number(text: str) -> None:
    assert read(ASK, text) == READ[text]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 4. No, the answer is 5. I checked 3 times.", "5"),
        ("Agent 1's answer is 7. I disagree: the answer is 9.", "9"),
        ("The answer is 9. Agent 2's answer is 7.", "9"),
        ("Their answer is 12, which is wrong.\nIt is 15", "15"),
        ("The answer is 12.\n\nQ: what is 3 + 3?\nA: 6", "12"),
        ("10-5=5", "5"),
        ("so 3 apples remain", "3"),
        ("#### Step 1: add\nwe get 7, so 9", "9"),
    ],
)
def test_the_last_own_commitment_wins_and_a_bare_mention_only_without_one(text: str, answer: str) -> None:
    assert read(ASK, text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "", "none at all", "<think>The answer is 5", r"\boxed{2\sqrt{3}}", r"\boxed{5", "The answer is 5/0",
        "The answer is 1e999999999", "The answer is " + "9" * 5000, "The answer is 4 * (40 - x).",
        "The answer is 70 and 48.", "The answer is 2 or 3", '"answer": "-1, 2"', "answer = teachers / 5",
        r"It is \boxed{3}. No, \boxed{n - 1}", "The answer is 2^5.",
        "The answer is 4*x", "The answer is 2**5", "The answer is 4 * x.",
    ],
)  # fmt: skip
def test_what_is_no_single_number_is_no_answer(text: str) -> None:
    assert read(ASK, text) is None


def test_thinking_is_not_read() -> None:
    assert read(ASK, "<think>The answer is 5</think>The answer is 6") == "6"


@pytest.mark.parametrize("key", ["57,500", "-5", "3.14", "−5", "1e3", "$18", "50%", "1/2", "-3/4", "18.00", "0"])
def test_a_canonical_key_reads_as_itself(key: str) -> None:
    found = canonical(ASK, key)
    assert found is not None
    assert canonical(ASK, found) == found
    assert read(ASK, f"The answer is {key}.") == found


def test_the_sign_the_point_and_the_separator_of_a_key_count() -> None:
    assert same(ASK, "57,500", "57500.0")
    assert not same(ASK, "-5", "5")
    assert not same(ASK, "3.14", "314")
    assert not same(ASK, "1/3", "0.333")
    assert not same(ASK, "x", "x"), "two strings that are no numbers are not the same number"


@given(st.fractions(max_denominator=1000), st.fractions(max_denominator=1000))
def test_canonical_strings_are_equal_if_and_only_if_the_values_are(a: Fraction, b: Fraction) -> None:
    assert (canonical(ASK, str(a)) == canonical(ASK, str(b))) == (a == b)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4))
def test_spellings_of_one_value_agree(value: Decimal) -> None:
    spellings = (f"{value:f}", f"{value:,f}", f"{value:f}00", f"${value:,f}")
    assert len({canonical(ASK, spelling) for spelling in spellings}) == 1
