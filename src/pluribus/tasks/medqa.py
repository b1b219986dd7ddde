"""MedQA: questions of the United States Medical Licensing Examination (USMLE), four options.

Source: Jin et al. 2020, "What Disease does this Patient Have? A Large-scale Open Domain Question Answering Dataset from
Medical Exams", arXiv 2009.13081. Licence: MIT. Size: 10,178 train, 1,272 validation, 1,273 test (the hub's copy has no
validation file). A file with five options, the set's other form, is read as it stands.
"""

from __future__ import annotations

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
    pairs,
    shown,
    tables,
    text,
    value,
)
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "test")
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "medicine"
HUB = Hub(
    "GBaker/MedQA-USMLE-4-options",
    "0fb93dd23a7339b6dcd27e241cb9b5eca62d4d18",
    {split: f"phrases_no_exclude_{split}.jsonl" for split in SPLITS},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("medqa", subset, SUBSETS)
    return pairs("medqa", data or fetch(HUB, split), FORMS, skipped=skipped)


def _read(row: Mapping[str, Any]) -> Item:
    options = _lettered(row)
    if len(options) < 2 or list(options) != list(LETTERS[: len(options)]):
        raise BadRow(
            f"field 'options' must hold options by their letters A, B, …, found {', '.join(options) or 'none'}"
        )
    choices = tuple(text(options, letter) for letter in options)
    answer = chosen(value(row, "answer_idx"), "answer_idx", choices)
    said = row.get("answer")
    if answer is not None and said is not None and str(said).strip() != text(options, answer):
        raise BadRow(f"'answer_idx' is {answer}, {shown(options[answer])}, but 'answer' says {shown(said)}")
    metadata = {"step": row["meta_info"]} if row.get("meta_info") else {}
    return Item(text(row, "question"), "choice", answer, choices, metadata=metadata)


def _lettered(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options by letter, in order: an object, or a list of `{key, value}`."""
    found = value(row, "options")
    if isinstance(found, dict):
        return dict(sorted(found.items()))
    return {text(option, "key"): value(option, "value") for option in tables(row, "options")}


FORMS = (
    Form(
        "MedQA's own JSONL and the hub's (question, options by letter, answer_idx)", has("options", "answer_idx"), _read
    ),
    OWN,
)
