"""MMLU-Pro: harder examination questions with up to ten options in 14 categories; `mmlu_pro:health` is one of them.

Source: Wang et al. 2024, "MMLU-Pro: A More Robust and Challenging Multi-Task Language Understanding Benchmark", arXiv
2406.01574. Licence: MIT. Size: 12,032 test, 70 validation. A category gathers questions of several sources: `health` is
not MMLU's `professional_medicine`. Early releases fill up to ten options with "N/A": these are left out, and the
letters are those of the options that stay.
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
    text,
    texts,
    value,
)
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("validation", "test")
DEFAULT_SPLIT = "test"
# fmt: off
SUBSETS = (
    "biology", "business", "chemistry", "computer_science", "economics", "engineering", "health", "history", "law",
    "math", "other", "philosophy", "physics", "psychology",
)
# fmt: on
HUB = Hub(
    "TIGER-Lab/MMLU-Pro",
    "b189ec765aa7ed75c8acfea42df31fdae71f97be",
    {split: f"data/{split}-00000-of-00001.parquet" for split in SPLITS},
)

_FAMILIES = {"health": "medicine"} | dict.fromkeys(("math", "physics", "chemistry", "engineering"), "mathematics")


def family(subset: str | None) -> str:
    """The persona set for a category: chemistry and engineering are mostly calculations here.

    >>> family("health"), family("physics"), family("law"), family(None)
    ('medicine', 'mathematics', 'general', 'general')
    """
    return _FAMILIES.get(subset or "", "general")


FAMILY = family


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split; of the file `data` those of the category, where its rows name theirs."""
    check_subset("mmlu_pro", subset, SUBSETS)
    for question, key in pairs("mmlu_pro", data or fetch(HUB, split), FORMS, skipped=skipped):
        if subset is None or _category(question.metadata.get("category", subset)) == subset:
            yield question, key


def _category(found: Any) -> str:
    """
    >>> _category("Computer Science")
    'computer_science'
    """
    return str(found).strip().lower().replace(" ", "_")


def _read(row: Mapping[str, Any]) -> Item:
    category = _category(text(row, "category"))
    if category not in SUBSETS:
        raise BadRow(f"field 'category' must be one of {', '.join(SUBSETS)}, found {shown(row['category'])}")
    choices, answer = _options(row)
    metadata = {"category": category} | {name: row[name] for name in ("src",) if row.get(name)}
    number = row.get("question_id")
    id = f"mmlu_pro/{number}" if isinstance(number, int | str) else None
    return Item(text(row, "question"), "choice", answer, choices, metadata=metadata, id=id)


def _options(row: Mapping[str, Any]) -> tuple[tuple[str, ...], str | None]:
    """The options without the fillers, and the letter the answer has among them."""
    published = texts(row, "options")
    answer = chosen(value(row, "answer"), "answer", published)
    right = None if answer is None else LETTERS.index(answer)
    if right is not None and row.get("answer_index") not in (None, right):
        raise BadRow(f"'answer' is {answer}, but 'answer_index' {shown(row['answer_index'])}")
    kept = [i for i, option in enumerate(published) if option != "N/A" or i == right]
    if len(kept) < 2:
        raise BadRow(f"field 'options' must hold two or more options, found {shown(list(published))}")
    return tuple(published[i] for i in kept), None if right is None else LETTERS[kept.index(right)]


FORMS = (Form("the hub's rows (question, options, answer, category)", has("options", "category"), _read), OWN)
