from __future__ import annotations

import pytest

from pluribus.answers import canonical, read
from pluribus.types import Question

ASK = Question("q", "t", "Can it?", "boolean")

READ = {
    "No bird can. So the answer is yes.": "true",
    "The answer is: **No**, it can't.": "false",
    "Yes, it has no wings but it can.": "true",
    "No.": "false",
    "It is one of few. So yes": "true",
    "The statement is not true": "false",
    "The answer is not yes": "false",
    "The answer is likely no, as there is no way.": "false",
    '{"answer": true}': "true",
    r"\boxed{\text{Yes}}": "true",
    "Final answer: Can it fly?\nNo, it can not.": "false",
    "Nobody knows": None,
    "The answer is no longer known": None,
    "There is no evidence": None,
    "<think>yes": None,
}


@pytest.mark.parametrize("text", READ)
def test_reads_yes_and_no(text: str) -> None:
    assert read(ASK, text) == READ[text]


def test_keys() -> None:
    assert [canonical(ASK, key) for key in ("true", "False", "Yes", "no.", "maybe")] == [
        "true", "false", "true", "false", None,
    ]  # fmt: skip
