"""HotpotQA, distractor setting: questions over two of ten paragraphs, all of which are shown; a short text answers.

Source: Yang et al. 2018, "HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering", arXiv 1809.09600.
Licence: CC BY-SA 4.0. Size: 90,447 train, 7,405 validation. The context is every paragraph of the row under its title,
in the order given, never the gold ones alone; some rows are published with fewer than ten, and one without any is asked
without context.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, pairs, shown, table, text, value
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._longbench import longbench
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation")
DEFAULT_SPLIT = "validation"
SUBSETS: tuple[str, ...] = ()
FAMILY = "general"
HUB = Hub(
    "hotpotqa/hotpot_qa",
    "1908d6afbbead072334abe2965f91bd2709910ab",
    {
        "train": "distractor/train-0000{config}-of-00002.parquet",
        "validation": "distractor/validation-0000{config}-of-00001.parquet",
    },
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("hotpotqa", subset, SUBSETS)
    files = "01" if split == "train" else "0"
    paths = [data] if data is not None else (fetch(HUB, split, file) for file in files)
    return chain.from_iterable(pairs("hotpotqa", path, FORMS, skipped=skipped) for path in paths)


def _read_own(row: Mapping[str, Any]) -> Item:
    """`context` is a list of [title, [sentence, …]]."""
    found = value(row, "context")
    if not isinstance(found, list) or not all(isinstance(item, list) and len(item) == 2 for item in found):
        raise BadRow(f"field 'context' must be a list of [title, [sentence, …]], found {shown(found)}")
    return _item(row, "_id", [_paragraph(*item) for item in found])


def _read_row(row: Mapping[str, Any]) -> Item:
    """`context` is {"title": [title, …], "sentences": [[sentence, …], …]}."""
    found = table(row, "context")
    titles, bodies = found.get("title"), found.get("sentences")
    if not isinstance(titles, list) or not isinstance(bodies, list) or len(titles) != len(bodies):
        raise BadRow(f"field 'context' must hold as many 'title' as 'sentences', found {shown(found)}")
    return _item(row, "id", [_paragraph(*item) for item in zip(titles, bodies, strict=True)])


def _item(row: Mapping[str, Any], id: str, paragraphs: list[str]) -> Item:
    answer = None if row.get("answer") is None else text(row, "answer")
    metadata = {name: row[name] for name in ("type", "level") if row.get(name)} | {"paragraphs": len(paragraphs)}
    return Item(
        text(row, "question"),
        "text",
        answer,
        context="\n\n".join(paragraphs) or None,
        metadata=metadata,
        id=text(row, id),
    )


def _paragraph(title: Any, sentences: Any) -> str:
    """
    >>> _paragraph("Vulpes", ["A genus of foxes.", " It is old."])
    'Vulpes\\nA genus of foxes. It is old.'
    """
    if not isinstance(title, str) or not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
        raise BadRow(f"a paragraph of 'context' must be a title and its sentences, found {shown([title, sentences])}")
    return f"{title.strip()}\n{' '.join(' '.join(s.split()) for s in sentences)}".strip()


def _is_row(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("context"), dict) and "question" in row


FORMS = (
    Form("HotpotQA's own JSON (_id, question, answer, context)", has("_id", "question", "context"), _read_own),
    Form("the hub's rows (id, question, answer, context.title)", _is_row, _read_row),
    longbench("hotpotqa", lambda question: question),
    OWN,
)
