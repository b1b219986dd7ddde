"""Thin adapters over TRL and transformers' Trainer: one file per kind of training.

A member has

- `read(path) -> rows`, which checks the file of training rows (DataError names file and line);
- `trainer(job) -> Trainer`, the trainer with model and data, ready to go; its class is made by `_watch.watched`;
- `check(job)` (optional), which raises where the wishes do not fit the rows, before weights are read;
- `notes(job, processes)` (optional), what there is to say before the start;
- `finish(trainer, job, folder)` (optional), which writes what the kind needs beside the weights.

Importing this package is cheap; torch, transformers and TRL are imported by the first training. `train` is the same for
all kinds: it checks, goes on from the last checkpoint where there is one, trains, saves the model so that it is at once
a backend (`local/FOLDER`), and writes what it was trained on beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pluribus.training.config import KINDS, TrainConfig, make_training, read_training

__all__ = ["KINDS", "TrainConfig", "Trained", "make_training", "read_training", "train"]


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of a training."""

    folder: str
    """A model like any other: `local/FOLDER`."""
    kind: str
    steps: int
    """Optimiser steps in all."""
    rows: int
    """That were learned from; a row without room for its reply is left out."""
    loss: float | None
    """Mean over the last logged steps, of all where none was logged; None: there was no step."""
    seconds: float
    """Of this call."""
    resumed_from: int = 0
    """The step it went on from; 0: from the beginning."""
    done_before: bool = False
    """The folder held this very training, finished: nothing was done."""
    evaluation: Mapping[str, float] = field(default_factory=dict)
    """By name, on `eval_data`."""
    log: Sequence[Mapping[str, Any]] = ()
    """What was logged on the way, by step."""


def train(
    config: TrainConfig,
    unseen: Mapping[str, Sequence[Sequence[str]]] | None = None,
    *,
    score: Callable[[Sequence[Any], Sequence[Any]], Awaitable[Sequence[float | None]]] | None = None,
    say: Callable[[str], None] | None = None,
) -> Trained:
    """Trains one model.

    Args:
        config: see `pluribus.training.config`.
        unseen: name of an evaluation set → its questions, each its text and then its options. A row whose prompt holds
            one of them is an error: a test question is never trained on.
        score: judges for `grpo.judges`, such as `pluribus.judging.CouncilReward`: prompts, completions → rewards.
        say: gets what there is to say before the start, line by line.

    Raises:
        UsageError: wrong data, model, or wishes that do not go together; nothing was trained.
        TrainingStopped: the loss is no number, or the memory does not suffice; checkpoints are kept.

    The whole of it on a model of the zoo, in seconds: see docs/training.md.
    """
    from pluribus.training import _run

    return _run.run(config, unseen or {}, score=score, say=say)
