"""Rows of prompts: what is asked, and what only the checker may see. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pluribus.errors import DataError
from pluribus.rows import CONVERSATION, Field, Row, is_prompt, is_text, numbered_rows
from pluribus.training.config import GrpoConfig
from pluribus.types import Key, Kind, Question

WRITE = "name a task instead, such as --data gsm8k@train"
FREE = ("text",)
"""Kinds whose answers no checker can decide: what is not the key's text may say the same in other words."""


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


FIELDS: Mapping[str, Field] = {
    "prompt": (True, is_prompt, CONVERSATION),
    "kind": (True, lambda value: value in get_args(Kind), f"the kind of the answer: {', '.join(get_args(Kind))}"),
    "answer": (False, is_text, "the right answer, as text"),
    "aliases": (False, _is_texts, "a list of other right answers"),
    "tests": (False, _is_texts, "a list of Python texts that fail where the program is wrong"),
    "choices": (False, _is_texts, "a list of options"),
    "labels": (False, _is_texts, "a list of labels"),
    "question_id": (False, is_text, "text"),
    "task": (False, is_text, "text"),
}


def read_prompts(path: Path) -> list[Row]:
    """The rows of a file of prompts, checked; a column that is not named here is free."""
    return [row for _, row in numbered_rows(path, FIELDS, "prompt", WRITE)]


def question_of(row: Row) -> Question:
    """What an answer is read by.

    >>> row = {"prompt": [{"role": "user", "content": "1 + 1?"}], "kind": "number", "answer": "2"}
    >>> question_of(row).text, key_of(row).answer
    ('1 + 1?', '2')
    """
    return Question(
        id=row.get("question_id", ""), task=row.get("task", ""), text=asked(row), kind=row["kind"],
        choices=tuple(row.get("choices", ())), labels=tuple(row.get("labels", ())),
    )  # fmt: skip


def key_of(row: Row) -> Key:
    """What a reply is held against; its answer is None where the row has none."""
    aliases, tests = tuple(row.get("aliases", ())), tuple(row.get("tests", ()))
    return Key(row.get("question_id", ""), row.get("answer"), aliases, tests)


def asked(row: Row) -> str:
    """The last user message: the question as it is asked."""
    return str(next((m["content"] for m in reversed(row["prompt"]) if m["role"] == "user"), ""))


def check_rows(config: GrpoConfig, rows: Sequence[Row], file: str) -> None:
    """DataError where the wished reward can not be had of these rows."""
    if config.reward_mode in ("VR", "PRMVR") and not config.self_labelled:
        check_keys(rows, file, f"reward_mode {config.reward_mode}")
    free = next((row for row in rows if row["kind"] in (*FREE, "program")), None)
    voted = config.objective in ("majority", "weighted_majority")
    if free is not None and (voted or config.self_labelled):
        said = f"objective {config.objective}" if voted else "self_labelled"
        raise DataError(
            file, f"its rows are of kind {free['kind']}, whose replies have no answers in common, and {said} is a vote",
            hint="take a task of numbers, choices or labels, or another objective",
        )  # fmt: skip


def check_held_out(rows: Sequence[Row], held_out: Sequence[Row], file: str) -> None:
    """DataError where a held-out question is learned from as well."""
    learned = {asked(row) for row in rows}
    both = [number for number, row in enumerate(held_out, 1) if asked(row) in learned]
    if both:
        raise DataError(
            file, f"{len(both):,} of its {len(held_out):,} questions are in the data too, the first is row {both[0]}",
            hint="hold out others: what is learned from can not warn",
        )  # fmt: skip


def check_keys(rows: Sequence[Row], file: str, who: str) -> None:
    """DataError at the first row whose replies nobody can check."""
    for number, row in enumerate(rows, 1):
        if row["kind"] in FREE:
            raise DataError(
                file, f"row {number} is of kind {row['kind']}, which has no checker, and {who} needs one",
                hint="say reward_mode ORM with judges, or take a task that is checked",
            )  # fmt: skip
        lacks = "tests" if row["kind"] == "program" else "answer"
        if not row.get(lacks):
            raise DataError(
                file, f"row {number} has no {lacks}, and {who} needs one", hint=f"give each row its {lacks}"
            )
