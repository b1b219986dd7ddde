"""PIQA: which of two solutions reaches an everyday physical goal.

Source: Bisk et al. 2019, "PIQA: Reasoning about Physical Commonsense in Natural Language", arXiv 1911.11641. Licence:
the authors state none (the code is under AFL-3.0). Size: 16,113 train, 1,838 validation; the 3,084 test questions have
no published answer. The authors keep the labels in a second file: beside `valid.jsonl` it is `valid-labels.lst`, and
it is read when it is there. The hub's original repository is a loading script, so the pinned one is a copy of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._adapters import adapters
from pluribus.tasks._files import Form, Item, Pair, check_subset, content, has, numbered, pairs, text
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test")
DEFAULT_SPLIT = "validation"
SUBSETS: tuple[str, ...] = ()
FAMILY = "commonsense"
HUB = Hub(
    "baber/piqa",
    "142f6d7367fd9877f0fb3b5734ea6a545f54cdd1",
    {split: f"piqa_{split}.parquet" for split in SPLITS},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data` with the labels beside it."""
    check_subset("piqa", subset, SUBSETS)
    path = data or fetch(HUB, split)
    return pairs("piqa", path, FORMS, labels=_labels(path), skipped=skipped)


def _labels(path: Path) -> list[str]:
    """The lines of `valid-labels.lst` beside `valid.jsonl`; empty when there is none."""
    beside = path.with_name(f"{path.name.removesuffix('.gz').removesuffix('.jsonl')}-labels.lst")
    return content(beside).decode().split() if beside.is_file() else []


def _ask(goal: str) -> str:
    return f"Which of these is the better way to do it?\n\n{goal}"


def _read(row: Mapping[str, Any]) -> Item:
    choices = (text(row, "sol1"), text(row, "sol2"))
    return Item(_ask(text(row, "goal")), "choice", numbered(row.get("label"), 0, choices), choices)


FORMS = (Form("PIQA's own JSONL (goal, sol1, sol2, label)", has("goal", "sol1", "sol2"), _read), adapters(_ask), OWN)
