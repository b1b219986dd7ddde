"""AQuA: algebra word problems with five options, many of them from entrance examinations.

Source: Ling et al. 2017, "Program Induction by Rationale Generation: Learning to Solve and Explain Algebraic Word
Problems", arXiv 1705.04146. Licence: Apache-2.0. Size: 97,467 train, 254 validation, 254 test. Options carry their own
letters ("A)21"), some of them twice; they are taken off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import (
    LETTERS,
    BadRow,
    Form,
    Item,
    Pair,
    check_subset,
    chosen,
    has,
    optional,
    pairs,
    shown,
    text,
    texts,
    value,
)
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test")
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "mathematics"
HUB = Hub(
    "deepmind/aqua_rat",
    "33301c6a050c96af81f63cad5562cb5363e88971",
    {split: f"raw/{split}-00000-of-00001.parquet" for split in SPLITS},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("aqua", subset, SUBSETS)
    return pairs("aqua", data or fetch(HUB, split), FORMS, skipped=skipped)


def _read(row: Mapping[str, Any]) -> Item:
    options = texts(row, "options")
    if len(options) != 5:
        raise BadRow(f"field 'options' must hold five options, found {len(options)}")
    choices = tuple(_bare(option, letter) for option, letter in zip(options, LETTERS, strict=False))
    answer = chosen(value(row, "correct"), "correct", choices)
    return Item(text(row, "question"), "choice", answer, choices, solution=optional(row, "rationale"))


def _bare(option: str, letter: str) -> str:
    """An option without its own letter.

    >>> _bare("A)A)59", "A"), _bare("E)None of these", "E")
    ('59', 'None of these')
    """
    bare = re.sub(rf"^(?:{letter}\s*\)\s*)+", "", option)
    if not bare or bare == option:
        raise BadRow(f"option {letter} must be '{letter})' and a text, found {shown(option)}")
    return bare


FORMS = (
    Form("AQuA's own JSONL and the hub's rows (question, options, correct)", has("options", "correct"), _read),
    OWN,
)
