"""QMSum: queries about a meeting whose whole transcript is the context; a summary answers.

Source: Zhong et al. 2021, "QMSum: A New Benchmark for Query-based Multi-domain Meeting Summarization", arXiv
2104.05938. Licence: MIT. Size: 281 queries about 35 test meetings, 272 about 35 validation, 1,257 about 162 train.
General queries come before the specific ones; the latter get the whole meeting too, never the relevant span alone. The
authors publish on GitHub (Yale-LILY/QMSum, data/ALL), not on the hub, so the files are read with --data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.errors import UsageError
from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, pairs, shown, tables, text
from pluribus.tasks._longbench import longbench
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test")
DEFAULT_SPLIT = "test"
SUBSETS = ("general", "specific")
FAMILY = "general"
HUB = None

_LISTS = {"general": "general_query_list", "specific": "specific_query_list"}


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The queries of the file `data`, or of one kind those; a file is one split."""
    check_subset("qmsum", subset, SUBSETS)
    if data is None:
        raise UsageError(
            "task 'qmsum' is not on the hub and got no file",
            hint=f"pass --data {_FILES[split]} of github.com/Yale-LILY/QMSum (data/ALL/jsonl)",
        )
    for question, key in pairs("qmsum", data, FORMS, skipped=skipped):
        if subset is None or question.metadata.get("query", subset) == subset:
            yield question, key


def _parts(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    transcript = "\n".join(_turn(turn) for turn in tables(row, "meeting_transcripts"))
    if not transcript:
        raise BadRow("field 'meeting_transcripts' is empty")
    return [
        {**query, "kind": kind, "context": transcript}
        for kind, name in _LISTS.items()
        for query in (tables(row, name) if name in row else ())
    ]


def _turn(turn: Mapping[str, Any]) -> str:
    """
    >>> _turn({"speaker": "Chair", "content": "Good afternoon. "})
    'Chair: Good afternoon.'
    """
    said = turn.get("content")
    if not isinstance(said, str):
        raise BadRow(f"field 'content' of a speaker's turn must be text, found {shown(said)}")
    return f"{text(turn, 'speaker')}: {' '.join(said.split())}".strip()


def _read(row: Mapping[str, Any]) -> Item:
    answer = None if row.get("answer") is None else text(row, "answer")
    return Item(text(row, "query"), "text", answer, context=row["context"], metadata={"query": row["kind"]})


_FILES = {"train": "train.jsonl", "validation": "val.jsonl", "test": "test.jsonl"}

FORMS = (
    Form(
        "QMSum's own JSONL or JSON of meetings (meeting_transcripts, specific_query_list)",
        has("meeting_transcripts"),
        _read,
        parts=_parts,
    ),
    longbench("qmsum", lambda query: query),
    OWN,
)
