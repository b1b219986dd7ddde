"""The project's own recorded outputs, `outputs.jsonl` with `questions.jsonl` beside it (either may end in `.gz`): what
`pluribus import` writes, and what `replay/FILE#MODEL` seats.

As there, every answer is read out of its text, whatever else a line says about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pluribus.errors import DataError
from pluribus.logs._kinds import key_of, kind_of, said
from pluribus.logs._records import Output, Recording
from pluribus.logs._rows import first_row, rows
from pluribus.types import KINDS, Key, Kind, Question

TITLE = "recorded outputs with their questions (JSONL)"
BESIDE = ("questions.jsonl", "questions.jsonl.gz")

DUPLICATES = "outputs that stand twice: the first is taken"
NOT_ASKED = "outputs of questions that are not in the questions' file"

Row = Mapping[str, Any]
Pairs = dict[str, tuple[Question, Key | None]]


def recognise(path: Path) -> bool:
    if ".jsonl" not in path.suffixes or _beside(path) is None:
        return False
    row = first_row(path)
    return row is not None and {"question_id", "model", "text"} <= row.keys()


def _beside(path: Path) -> Path | None:
    """The questions of these outputs."""
    there = (path.with_name(name) for name in BESIDE)
    return next((file for file in there if file.is_file() and file != path), None)


def read(path: Path) -> list[Recording]:
    """All models of the file as one council. DataError: a malformed line, or questions that do not fit."""
    beside = _beside(path)
    if beside is None:
        raise DataError(str(path), "there are no questions beside it", hint=f"expected {BESIDE[0]} in its folder")
    omitted: Counter[str] = Counter()
    pairs = _questions(beside, omitted)
    outputs: dict[tuple[str, str, int, int], Output] = {}
    for place, row in rows(path, omitted):
        output = _output(place, row)
        asked = (output.question_id, output.agent, output.sample, output.round)
        reason = DUPLICATES if asked in outputs else NOT_ASKED if output.question_id not in pairs else None
        if reason is None:
            outputs[asked] = output
        else:
            omitted[reason] += 1
    if not outputs:
        raise DataError(str(path), f"no output of a question in {beside.name}", hint="the two files belong together")
    agents = tuple(dict.fromkeys(output.agent for output in outputs.values()))
    name = path.absolute().parent.name
    return [
        Recording(name, str(path), name, tuple(pairs.values()), agents, tuple(outputs.values()), omitted=dict(omitted))
    ]


def _questions(path: Path, omitted: Counter[str]) -> Pairs:
    found: Pairs = {}
    for place, row in rows(path, omitted):
        if row.get("id") is None or not isinstance(row.get("question"), str):
            raise DataError(place, "a question without 'id' or 'question'", hint="outputs name questions by their id")
        pair = _pair(str(row["id"]), path.absolute().parent.name, row)
        found.setdefault(pair[0].id, pair)
    return found


def _pair(id: str, task: str, row: Row) -> tuple[Question, Key | None]:
    choices, labels = _strings(row.get("choices")), _strings(row.get("labels"))
    context = row.get("context")
    question = Question(
        id, task, row["question"], _kind(row, choices, labels), choices, labels, str(context) if context else None
    )
    return question, key_of(question, said(row.get("answer")))


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _kind(row: Row, choices: tuple[str, ...], labels: tuple[str, ...]) -> Kind:
    """As given, else by what is there."""
    if row.get("kind") in KINDS:
        kind: Kind = row["kind"]
        return kind
    return "choice" if choices else "label" if labels else kind_of([said(row.get("answer"))])


def _output(place: str, row: Row) -> Output:
    for name in ("question_id", "model", "text"):
        if not isinstance(row.get(name), str):
            raise DataError(place, f"{name!r} is {row.get(name)!r}", hint="it must be a string")
    told = row.get("usage")
    usage: Row = told if isinstance(told, dict) else {}
    asked, generated = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    return Output(
        row["question_id"], row["model"], row["text"], _count(row.get("round")) or 0, _count(row.get("sample")) or 0,
        prompt_tokens=asked, completion_tokens=generated,
    )  # fmt: skip


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
