"""HellaSwag: which of four endings goes on from here.

Source: Zellers et al. 2019, "HellaSwag: Can a Machine Really Finish Your Sentence?", arXiv 1905.07830. Licence: MIT.
Size: 39,905 train, 10,042 validation; 10,003 test questions have no published answer. Texts stand as published, with
the "[title]" and "[step]" marks of the WikiHow half.
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
    has,
    numbered,
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
DEFAULT_SPLIT = "validation"
SUBSETS: tuple[str, ...] = ()
FAMILY = "commonsense"
HUB = Hub(
    "Rowan/hellaswag",
    "218ec52e09a7e7462a5400043bb9a69a41d06b76",
    {split: f"data/{split}-00000-of-00001.parquet" for split in SPLITS},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("hellaswag", subset, SUBSETS)
    return pairs("hellaswag", data or fetch(HUB, split), FORMS, skipped=skipped)


def _ask(context: str) -> str:
    return f"Which ending continues this text best?\n\n{context}"


def _read_own(row: Mapping[str, Any]) -> Item:
    """`ind` is not an id: it repeats within a split."""
    endings = texts(row, "endings")
    metadata = {name: row[name] for name in ("ind", "activity_label", "source_id") if name in row}
    return Item(_ask(text(row, "ctx")), "choice", numbered(value(row, "label"), 0, endings), endings, metadata=metadata)


def _read_lettered(row: Mapping[str, Any]) -> Item:
    options = table(row, "choices")
    endings, answer = tuple(text(options, name) for name in options), text(row, "answer")
    if answer not in options or list(options) != list("ABCDEFGHIJ")[: len(options)]:
        raise BadRow(f"field 'answer' must be one of the letters {', '.join(options)}, found {shown(answer)}")
    metadata = {"ind": row["id"]} if "id" in row else {}
    return Item(_ask(text(row, "question")), "choice", answer, endings, metadata=metadata)


def _is_lettered(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("choices"), dict) and "question" in row


FORMS = (
    Form("HellaSwag's own JSONL (ctx, endings, label)", has("ctx", "endings"), _read_own),
    Form("lettered JSONL (question, choices by letter, answer)", _is_lettered, _read_lettered),
    adapters(_ask),
    OWN,
)
