from __future__ import annotations

import pytest

from pluribus.answers import canonical, read, same
from pluribus.types import Question

ASK = Question("q", "t", "Who?", "text")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("He wrote it late.\nAnswer: The **Lord Byron**.", "lord byron"),
        (r"The final answer is \boxed{\text{Paris}}.", "paris"),
        ("{final answer: Paris, France} as said", "paris france"),
        ('{"answer": "Paris", "confidence": 1}', "paris"),
        ("Long story.\nParis", "paris"),
        ("...", "..."),
        (" \n ", None),
    ],
)
def test_reads_the_line_behind_the_mark(text: str, answer: str | None) -> None:
    assert read(ASK, text) == answer


def test_exact_match_ignores_case_articles_and_punctuation_but_not_signs() -> None:
    assert same(ASK, "The Beatles!", "beatles")
    assert not same(ASK, "-5", "5")
    assert not same(ASK, "C++", "C")
    assert not same(ASK, "1/2", "12")
    assert not same(ASK, "3.5", "35")


@pytest.mark.parametrize("answer", ["The Beatles", "the", "A", "C#", "-5 °C", "Ünïcode ﬁ", "a.b.c"])
def test_canonical_is_idempotent(answer: str) -> None:
    once = canonical(ASK, answer)
    assert once is not None
    assert canonical(ASK, once) == once
