"""One file per dataset: `load(split)` gives (Question, Key) pairs. The question never holds its answer.

A member has `SPLITS`, `DEFAULT_SPLIT`, `FAMILY` (the persona set that suits it; a function of the subset where that
differs) and `load(split, *, data=None, subset=None)`. One that reads files also has `FORMS`, the forms it reads, and
its `load` takes `skipped`, a list that collects what is wrong with unreadable lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from pluribus.errors import UnknownName, UsageError
from pluribus.load import load as member
from pluribus.load import names
from pluribus.types import Key, Question

ALIASES: Mapping[str, str] = {
    "formal_logic": "mmlu:formal_logic",
    "professional_medicine": "mmlu:professional_medicine",
    "pro_medicine": "mmlu:professional_medicine",
}
"""Short name → task; `pluribus list tasks` shows them."""

_ENDLESS = 1_000_000
"""A generated split larger than this is taken in part only."""


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """The questions of one run, with their keys."""

    task: str
    """`name` or `name:subset`, aliases resolved."""
    split: str
    pairs: tuple[tuple[Question, Key | None], ...]
    skipped: tuple[str, ...]
    """What is wrong with each line that was left out, as `file:line: why`."""
    family: str
    """The persona set that suits the task."""


def load_task(
    name: str,
    split: str | None = None,
    *,
    data: Path | str | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
) -> LoadedTask:
    """Loads a task from the hub, from a file or from its own generator.

    Args:
        name: `gsm8k`, `mmlu:formal_logic`, an alias, …; `HotpotQA` and `MMLU-Pro` are heard as `hotpotqa`, `mmlu_pro`.
        split: None takes the task's usual one.
        data: a local file in a form the task reads.
        limit: at most this many questions, from 1.
        skip_bad: go on without unreadable lines; they are listed in `skipped`.

    Raises:
        UnknownName: no such task, split or subset.
        DataError: an unreadable line, with file and line number.
        UsageError: no question, a limit below 1, or data for a task that reads none.

    >>> loaded = load_task("sums", limit=2)
    >>> loaded.task, loaded.split, len(loaded.pairs)
    ('sums', 'test', 2)
    """
    task, _, subset = ALIASES.get(name, name).partition(":")
    task = task.lower().replace("-", "_")
    module = _module(task)
    split = module.DEFAULT_SPLIT if split is None else split
    if split not in module.SPLITS:
        raise UnknownName(f"split of {task}", split, module.SPLITS)
    _check_amount(task, module, split, limit)
    skipped: list[str] = []
    found = _open(task, module, split, subset or None, Path(data) if data is not None else None, skipped, skip_bad)
    pairs = tuple(islice(found, limit))
    title = f"{task}:{subset}" if subset else task
    if not pairs:
        raise _empty(title, split, data, skipped)
    return LoadedTask(title, split, pairs, tuple(skipped), _family(module, subset or None))


def known() -> list[str]:
    """Every name a task answers to, aliases included."""
    return sorted({*names("tasks"), *ALIASES})


def _module(task: str) -> ModuleType:
    try:
        return member("tasks", task)
    except UnknownName:
        raise UnknownName("task", task, known()) from None


def _check_amount(task: str, module: ModuleType, split: str, limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be at least 1, found {limit}", hint="leave it out to take all questions")
    if limit is None and getattr(module, "SIZES", {}).get(split, 0) > _ENDLESS:
        raise UsageError(f"split {split!r} of {task} has no end", hint="say how many questions with --limit N")


def _open(
    task: str,
    module: ModuleType,
    split: str,
    subset: str | None,
    data: Path | None,
    skipped: list[str],
    skip_bad: bool,
) -> Iterator[tuple[Question, Key | None]]:
    options: dict[str, Any] = {"skipped": skipped} if skip_bad and hasattr(module, "FORMS") else {}
    if data is not None and not hasattr(module, "FORMS"):
        raise UsageError(
            f"task {task!r} makes its questions and reads no file, found --data {data}", hint="drop --data"
        )
    found: Iterator[tuple[Question, Key | None]] = module.load(split, data=data, subset=subset, **options)
    return found


def _family(module: ModuleType, subset: str | None) -> str:
    family = getattr(module, "FAMILY", "general")
    return str(family(subset) if callable(family) else family)


def _empty(title: str, split: str, data: Path | str | None, skipped: list[str]) -> UsageError:
    place = str(data) if data is not None else f"split {split!r}"
    if skipped:
        return UsageError(f"{place} holds no readable question of task {title}", hint=f"first problem: {skipped[0]}")
    return UsageError(f"{place} holds no question of task {title}", hint="check the file, the split and the subset")
