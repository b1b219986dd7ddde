"""OpenBookQA: elementary science questions with four options, put without the open book of facts.

Source: Mihaylov et al. 2018, "Can a Suit of Armor Conduct Electricity?", arXiv 1809.02789. Licence: Apache-2.0.
Size: 4,957 train, 500 validation, 500 test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pluribus.tasks._adapters import adapters
from pluribus.tasks._ai2 import nested, rows
from pluribus.tasks._files import Pair, check_subset, pairs
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test")
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "commonsense"
HUB = Hub(
    "allenai/openbookqa",
    "388097ea7776314e93a529163e0fea805b8a6454",
    {split: f"main/{split}-00000-of-00001.parquet" for split in SPLITS},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("openbookqa", subset, SUBSETS)
    return pairs("openbookqa", data or fetch(HUB, split), FORMS, skipped=skipped)


FORMS = (
    nested("OpenBookQA's own JSONL (question.stem, answerKey)"),
    rows("the hub's rows (question_stem, choices.text, answerKey)", "question_stem"),
    adapters(lambda stem: stem),
    OWN,
)
