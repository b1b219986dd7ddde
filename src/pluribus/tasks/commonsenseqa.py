"""CommonsenseQA: everyday questions with five options; scored on validation, test has no keys.

Source: Talmor et al. 2018, "CommonsenseQA: A Question Answering Challenge Targeting Commonsense Knowledge", arXiv
1811.00937. Licence: MIT. Size: 9,741 train, 1,221 validation (the authors' `dev`); the 1,140 test questions have no
published answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pluribus.tasks._ai2 import nested, rows
from pluribus.tasks._files import Pair, check_subset, pairs
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test")
DEFAULT_SPLIT = "validation"
SUBSETS: tuple[str, ...] = ()
FAMILY = "commonsense"
HUB = Hub(
    "tau/commonsense_qa",
    "94630fe30dad47192a8546eb75f094926d47e155",
    {split: f"data/{split}-00000-of-00001.parquet" for split in SPLITS},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("commonsenseqa", subset, SUBSETS)
    return pairs("commonsenseqa", data or fetch(HUB, split), FORMS, skipped=skipped)


FORMS = (
    nested("CommonsenseQA's own JSONL (question.stem, answerKey)", withheld=True),
    rows("the hub's rows (question, choices.text, answerKey)", withheld=True),
    OWN,
)
