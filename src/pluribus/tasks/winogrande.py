"""WinoGrande: which of two names or things fills the blank of a sentence.

Source: Sakaguchi et al. 2019, "WinoGrande: An Adversarial Winograd Schema Challenge at Scale", arXiv 1907.10641.
Licence: CC BY. Size: 40,398 train (the XL size), 1,267 validation; the 1,767 test questions have no published answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._adapters import adapters
from pluribus.tasks._files import Form, Item, Pair, check_subset, has, numbered, pairs, text, value
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test")
DEFAULT_SPLIT = "validation"
SUBSETS: tuple[str, ...] = ()
FAMILY = "commonsense"
HUB = Hub(
    "allenai/winogrande",
    "01e74176c63542e6b0bcb004dcdea22d94fb67b5",
    {split: f"winogrande_xl/{split}-00000-of-00001.parquet" for split in SPLITS},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("winogrande", subset, SUBSETS)
    return pairs("winogrande", data or fetch(HUB, split), FORMS, skipped=skipped)


def _ask(sentence: str) -> str:
    return f"Which option fills the blank (_) in this sentence?\n\n{sentence}"


def _read(row: Mapping[str, Any]) -> Item:
    choices = (text(row, "option1"), text(row, "option2"))
    answer = numbered(value(row, "answer"), 1, choices)
    return Item(_ask(text(row, "sentence")), "choice", answer, choices, id=text(row, "qID") if "qID" in row else None)


FORMS = (
    Form("WinoGrande's own JSONL (sentence, option1, option2, answer)", has("sentence", "option1", "option2"), _read),
    adapters(_ask),
    OWN,
)
