"""The answer within a reply, as it was written."""

from __future__ import annotations

import pytest

from pluribus.answers import read
from pluribus.metrics._text import answer_text
from pluribus.types import Question

SUMMARY = "Kate asked for rubber. " * 80 + "All agreed on {curved} cases."
REPLIES = [
    ("{final answer: Lord Byron}", "Lord Byron"),
    ("It may be {final answer: Keats}. No.\n{Final Answer: The Lord Byron.}", "The Lord Byron."),
    (f"Let me see.\n{{final answer: {SUMMARY}}}\n", SUMMARY),
    ("{final answer: They met.\nThey agreed.", "They met.\nThey agreed."),  # cut off before its brace
    ("**Final Answer**:\nThey met.\n\nThey agreed.", "They met.\n\nThey agreed."),
    ("He wrote it. The answer is Lord Byron", "Lord Byron"),
    (r"So \boxed{\text{Lord Byron}}.", "Lord Byron"),
    ("They met.\n\nThey agreed.\n", "They met.\n\nThey agreed."),
    ("<think>Keats? The answer is Keats.</think>Byron", "Byron"),
    ("<think>Keats, then", ""),
    ("", ""),
]


@pytest.mark.parametrize(("reply", "answer"), REPLIES)
def test_the_answer_of_a_reply(reply: str, answer: str) -> None:
    assert answer_text(reply) == answer


def test_where_a_short_answer_is_marked_it_is_the_one_that_votes() -> None:
    question = Question("q", "t", "Who?", "text")
    for reply, answer in REPLIES[:2] + REPLIES[5:7]:
        assert read(question, reply) == read(question, answer)
