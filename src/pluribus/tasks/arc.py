"""ARC: grade-school science questions, three to five options; `arc:challenge` (the default) and `arc:easy`.

Source: Clark et al. 2018, "Think you have Solved Question Answering?", arXiv 1803.05457. Licence: CC BY-SA 4.0.
Size: challenge 1,119 train, 299 validation, 1,172 test; easy 2,251, 570, 2,376.
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
SUBSETS = ("challenge", "easy")
FAMILY = "general"
HUB = Hub(
    "allenai/ai2_arc",
    "210d026faf9955653af8916fad021475a3f00453",
    {split: f"{{config}}/{split}-00000-of-00001.parquet" for split in SPLITS},
)

_CONFIG = {"challenge": "ARC-Challenge", "easy": "ARC-Easy"}


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("arc", subset, SUBSETS)
    path = data or fetch(HUB, split, _CONFIG[subset or SUBSETS[0]])
    return pairs("arc", path, FORMS, skipped=skipped)


FORMS = (
    nested("AI2's own JSONL (question.stem, answerKey)"),
    rows("the hub's rows (question, choices.text, answerKey)"),
    adapters(lambda stem: stem),
    OWN,
)
