"""Folders of `pluribus train` → what was trained on what, and what was logged on the way. No model is loaded."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pluribus.backends import TRAINED
from pluribus.errors import DataError
from pluribus.training import TrainConfig, make_training
from pluribus.training._grpo_watch import WORDS

_STATES = "checkpoints/checkpoint-*/trainer_state.json"
"""Where transformers' Trainer leaves what it logged so far."""


@dataclass(frozen=True, slots=True)
class Training:
    """One training, finished or not."""

    name: str
    """Its folder's."""
    source: str
    """The folder, as it was named."""
    config: TrainConfig
    done: bool
    steps: int | None
    """Optimiser steps so far; None: there is no checkpoint yet."""
    planned: int | None = None
    """Optimiser steps in all; None: not known."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What stands in `about` of a finished one: data, rows, versions."""
    log: Sequence[Mapping[str, Any]] = ()
    """Each entry has its `step`."""

    @property
    def kind(self) -> str:
        return self.config.kind

    @property
    def alarms(self) -> list[tuple[int, str]]:
        """Step and name of each alarm that was given."""
        return [(_step(entry), name) for entry in self.log for name in entry if name in WORDS]


@dataclass(frozen=True, slots=True)
class Value:
    """What was logged at one step."""

    step: int
    name: str
    value: float
    low: float | None = None
    high: float | None = None


def is_training(path: Path) -> bool:
    """Whether it is the folder of a training, or the record in it."""
    return (path / TRAINED).is_file() or (path.name == TRAINED and path.is_file())


def read(sources: Sequence[str]) -> tuple[Training, ...]:
    """The trainings of folders, each once, under names that tell them apart.

    Raises:
        DataError: a record that `pluribus train` did not write.
    """
    folders = [path.parent if path.is_file() else path for path in map(Path, sources)]
    found = [read_one(folder) for folder in {folder.resolve(): folder for folder in folders}.values()]
    times = Counter(one.name for one in found)
    return tuple(one if times[one.name] == 1 else replace(one, name=one.source) for one in found)


def read_one(folder: Path) -> Training:
    """The training of a folder; of one that is not finished, what its last checkpoint knows."""
    file = folder / TRAINED
    record = _object(file)
    config, done = record.get("config"), record.get("state") == "done"
    if not isinstance(config, dict):
        raise DataError(str(file), "no record of pluribus train: it has no config", hint="name a folder it wrote")
    known = make_training(config, str(file))
    last = _result(file, record) if done else _last_state(folder)
    return Training(
        name=folder.resolve().name, source=str(folder), config=known, done=done,
        steps=last.get("steps", last.get("global_step")), planned=known.max_steps or last.get("max_steps"),
        facts=record.get("about") or {}, log=tuple(last.get("log", last.get("log_history", ()))),
    )  # fmt: skip


def _object(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(str(file), f"can not be read: {error}", hint="name a folder of pluribus train") from None
    if not isinstance(found, dict):
        raise DataError(str(file), "no record of pluribus train", hint="name a folder it wrote")
    return found


def _result(file: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    found = record.get("result")
    if not isinstance(found, dict):
        raise DataError(str(file), "it says that it is finished, and has no result", hint="train it again")
    return found


def _last_state(folder: Path) -> dict[str, Any]:
    """Of the last checkpoint that can be read; a training may be writing one at this moment."""
    for file in sorted(folder.glob(_STATES), key=lambda file: -_number(file.parent)):
        try:
            return _object(file)
        except DataError:
            continue
    return {}


def _number(checkpoint: Path) -> int:
    word = checkpoint.name.rpartition("-")[2]
    return int(word) if word.isdecimal() else -1


# --- what was logged -------------------------------------------------------------------------------------------------


def values(training: Training, key: str) -> list[Value]:
    """What was logged under a name, by step; the last where one step has several, and nothing that is no number.

    Args:
        key: one that ends with @ stands for all k: `pass@` for pass@3 and pass@5.
    """
    found: dict[tuple[int, int, str], Value] = {}
    for entry in training.log:
        for name, value in _named(entry, key):
            if math.isfinite(value):
                low, high = (entry.get(f"{name}_{end}") for end in ("low", "high"))
                found[_step(entry), k_of(name), name] = Value(_step(entry), name, value, low, high)
    return [found[place] for place in sorted(found)]


def broken(training: Training, key: str) -> int:
    """How many values under a name are no numbers."""
    return sum(not math.isfinite(value) for entry in training.log for _, value in _named(entry, key))


def _named(entry: Mapping[str, Any], key: str) -> Iterator[tuple[str, float]]:
    for name, value in entry.items():
        if (name == key or (key.endswith("@") and name.startswith(key))) and isinstance(value, int | float):
            yield name, value


def k_of(name: str) -> int:
    """
    >>> k_of("eval_pass@3"), k_of("accuracy")
    (3, 0)
    """
    word = name.rpartition("@")[2]
    return int(word) if word.isdecimal() else 0


def _step(entry: Mapping[str, Any]) -> int:
    return int(entry.get("step", 0))
