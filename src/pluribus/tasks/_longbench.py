"""The form of LongBench, in which several long-context sets are passed around: JSONL `input`, `context`, `answers`.

Source: Bai et al. 2023, "LongBench: A Bilingual, Multitask Benchmark for Long Context Understanding", arXiv 2308.14508.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, has, shown, text, texts


def longbench(dataset: str, ask: Callable[[str], str]) -> Form:
    """The form, for the set that LongBench calls `dataset`; its rows may name it, and then it must be this one."""

    def read(row: Mapping[str, Any]) -> Item:
        named = str(row.get("dataset", dataset)).removesuffix("_e")
        if named != dataset:
            raise BadRow(f"field 'dataset' must be {dataset!r}, found {shown(row['dataset'])}")
        answer, *others = texts(row, "answers") or (None,)
        aliases = tuple(dict.fromkeys(other for other in others if other is not None and other != answer))
        id = text(row, "_id") if "_id" in row else None
        return Item(ask(text(row, "input")), "text", answer, context=text(row, "context"), id=id, aliases=aliases)

    return Form("LongBench's JSONL (input, context, answers)", has("input", "context", "answers"), read)
