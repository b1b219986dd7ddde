"""The door of prompts to learn from: a task's questions → rows of a file, each as a model is asked it, with its key.

Reinforcement learning needs no replies, only questions and what they are checked by. The key stands beside the prompt,
never in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pluribus.agents import SeatPlan, seats
from pluribus.backends import ModelSpec
from pluribus.errors import DataError, UnknownName, UsageError
from pluribus.personas import Persona, in_roles
from pluribus.prompts import STANDARD, dialect, render
from pluribus.store.files import whole
from pluribus.tasks import LoadedTask, load_task
from pluribus.types import Key, Message, Question, Seat

SUFFIXES = (".jsonl", ".json", ".gz")


def is_file(said: str) -> bool:
    """Whether data is a file of rows, and not TASK[:SUBSET][@SPLIT].

    >>> is_file("rows.jsonl"), is_file("sums@train")
    (True, False)
    """
    return Path(said).is_file() or bool(set(SUFFIXES) & set(Path(said).suffixes))


def task_of(said: str, usual: str | None = None, limit: int | None = None) -> LoadedTask:
    """The questions of `TASK[:SUBSET][@SPLIT]`.

    Args:
        usual: split where none is said; None: the task's own.

    Raises DataError for a file that is not there, UnknownName for a task or split.
    """
    if is_file(said):
        raise DataError(said, "there is no such file")
    name, _, split = said.partition("@")
    return load_task(name, split or usual, limit=limit)


def rows(
    task: LoadedTask, words: str | None, *, personas: Sequence[str] = (), prompt: str = "answer"
) -> Iterator[dict[str, Any]]:
    """The rows of a file of prompts: the question as it is asked, and its key beside it.

    >>> row = next(rows(load_task("sums", "train", limit=1), "zoo"))
    >>> sorted(row), row["kind"]
    (['answer', 'kind', 'prompt', 'question_id', 'split', 'task'], 'number')

    Args:
        words: dialect it is asked in; None: standard.
        personas: names or roles; questions are asked as one of them in turn. None: as nobody.
        prompt: of the dialect: `answer`, `cot`, …

    Raises UsageError where a question has no key.
    """
    spoken = dialect(words or STANDARD)
    if prompt not in spoken.texts:
        raise UnknownName(f"prompt of dialect {spoken.name}", prompt, spoken.texts)
    seated = _seats(words, personas, task.family)
    for number, (question, key) in enumerate(task.pairs):
        if key is None:
            raise UsageError(f"question {question.id} of {task.task} has no key", hint="name a split with answers")
        system = seated[number % len(seated)].system if seated else None
        yield _row(question, key, render(spoken, prompt, question, system=system), task.split)


def write(task: LoadedTask, file: Path, words: str | None, **wishes: Any) -> int:
    """The rows of `rows` as a file; returns how many they are."""
    found = [json.dumps(row, ensure_ascii=False) + "\n" for row in _filled(list(rows(task, words, **wishes)))]
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole(file) as part:
        part.write_text("".join(found), "utf-8")
    return len(found)


def _filled(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A column stands in every row or in none: lists that some rows lack are empty there."""
    lists = [name for name in ("aliases", "tests", "choices", "labels") if any(name in row for row in found)]
    return [{name: [] for name in lists} | row for row in found]


def _seats(words: str | None, personas: Sequence[str], family: str) -> Sequence[Seat]:
    people: list[Persona] = [one for name in personas for one in in_roles([name], family)]
    plans = [SeatPlan(ModelSpec("local", "student"), persona=one, prompts=words or STANDARD) for one in people]
    return seats(plans) if plans else ()


def _row(question: Question, key: Key, messages: Sequence[Message], split: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "prompt": [{"role": one.role, "content": one.content} for one in messages],
        "question_id": question.id, "task": question.task, "split": split, "kind": question.kind,
        "answer": key.answer, "aliases": list(key.aliases), "tests": list(key.tests),
        "choices": list(question.choices), "labels": list(question.labels),
    }  # fmt: skip
    return {name: value for name, value in found.items() if value not in (None, [])}
