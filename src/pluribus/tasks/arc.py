"""ARC: grade-school science questions, three to five options; `arc:challenge` (the default) and `arc:easy`.

Source: Clark et al. 2018, "Think you have Solved Question Answering?", arXiv 1803.05457. Licence: CC BY-SA 4.0.
Size: challenge 1,119 train, 299 validation, 1,172 test; easy 2,251, 570, 2,376.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._adapters import adapters
from pluribus.tasks._files import (
    BadRow,
    Form,
    Item,
    Pair,
    check_subset,
    letter,
    pairs,
    shown,
    table,
    text,
    texts,
    value,
)
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


def _read_jsonl(row: Mapping[str, Any]) -> Item:
    stem = table(row, "question")
    options = value(stem, "choices")
    if not isinstance(options, list) or not all(isinstance(option, dict) for option in options):
        raise BadRow(f"field 'choices' must be a list of objects with 'text' and 'label', found {shown(options)}")
    choices = tuple(text(option, "text") for option in options)
    labels = tuple(text(option, "label") for option in options)
    return _item(row, text(stem, "stem"), choices, labels)


def _read_parquet(row: Mapping[str, Any]) -> Item:
    options = table(row, "choices")
    return _item(row, text(row, "question"), texts(options, "text"), texts(options, "label"))


def _item(row: Mapping[str, Any], stem: str, choices: tuple[str, ...], labels: tuple[str, ...]) -> Item:
    """Some questions label their options 1 to 4: the key is the letter of the place."""
    key = text(row, "answerKey")
    if key not in labels or len(labels) != len(choices):
        raise BadRow(f"field 'answerKey' must be one of the labels {', '.join(labels)}, found {key!r}")
    return Item(stem, "choice", letter(labels.index(key), choices), choices, id=text(row, "id"))


def _is_jsonl(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("question"), dict)


def _is_parquet(row: Mapping[str, Any]) -> bool:
    return "answerKey" in row and isinstance(row.get("choices"), dict)


FORMS = (
    Form("AI2's own JSONL (question.stem, answerKey)", _is_jsonl, _read_jsonl),
    Form("the hub's rows (question, choices.text, answerKey)", _is_parquet, _read_parquet),
    adapters(lambda stem: stem),
    OWN,
)
