"""GSM8K: grade-school mathematics word problems whose answer is one number.

Source: Cobbe et al. 2021, "Training Verifiers to Solve Math Word Problems", arXiv 2110.14168. Licence: MIT.
Size: 7,473 train, 1,319 test. The key is what stands behind "####", with its sign and thousands separators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, pairs, text
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "test")
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "mathematics"
HUB = Hub(
    "openai/gsm8k",
    "740312add88f781978c0658806c59bc2815b9866",
    {split: f"main/{split}-00000-of-00001.parquet" for split in SPLITS},
)

_CALCULATOR = re.compile(r"<<[^<>]*>>")


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("gsm8k", subset, SUBSETS)
    return pairs("gsm8k", data or fetch(HUB, split), FORMS, skipped=skipped)


def _read(row: Mapping[str, Any]) -> Item:
    solution, marked, answer = text(row, "answer").rpartition("####")
    if not marked or not answer.strip():
        raise BadRow("field 'answer' must end in '#### NUMBER'")
    return Item(text(row, "question"), "number", answer.strip(), solution=_worked(solution))


def _worked(solution: str) -> str | None:
    """The published solution without the marks of the calculator.

    >>> _worked("Half of 48 is 48/2 = <<48/2=24>>24.\\n")
    'Half of 48 is 48/2 = 24.'
    """
    return _CALCULATOR.sub("", solution).strip() or None


FORMS = (Form("GSM8K's own JSONL (answer with ####)", lambda row: "####" in str(row.get("answer")), _read), OWN)
