"""What `pluribus train` does: flags over a training file, questions it may not see, and what came of it."""

from __future__ import annotations

import json as jsonlib
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._layers import _setting
from pluribus.config import read_config
from pluribus.distilling import sets_of
from pluribus.errors import ConfigError
from pluribus.rows import lines
from pluribus.training import TrainConfig, Trained, make_training
from pluribus.training.config import over


@dataclass(frozen=True, slots=True)
class Wishes:
    """The flags that were given."""

    said: Mapping[str, Any]
    """Entries of the training file."""
    beta: float | None
    fix_llm: bool
    lora: bool
    lora_r: int | None
    bits: str | None
    settings: tuple[str, ...]
    """`KEY=VALUE`, as typed."""


def bits(four: bool, eight: bool) -> str | None:
    """`4bit` or `8bit`; None: the weights as they are."""
    if four and eight:
        raise ConfigError("--load-in-4bit and --load-in-8bit exclude each other", hint="give one of them")
    return "4bit" if four else "8bit" if eight else None


def go(kind: str, file: Path | None, wishes: Wishes, *, plan: bool, json: bool) -> int:
    """Trains, and says what came of it."""
    config = _config(kind, file, wishes)
    err = _screen.err()
    if plan:
        return _plan(config, json)
    try:
        done = _train(config, err)
    except KeyboardInterrupt:
        said = "interrupted; the same command goes on from the last checkpoint, where --save-steps left one"
        print(f"pluribus: {said}", file=sys.stderr)
        return cli.INTERRUPTED
    if json:
        print(jsonlib.dumps(_object(done), ensure_ascii=False, indent=2))
    else:
        _show(_screen.out(), config, done)
    return cli.OK


def _config(kind: str, file: Path | None, wishes: Wishes) -> TrainConfig:
    values: dict[str, Any] = {}
    if file is not None:
        values = read_config(file, "a training file")
        if values.get("kind", kind) != kind:
            raise ConfigError(
                f"{file} is a training of kind {values['kind']}", hint=f"say: pluribus train {values['kind']}"
            )
    values = over({**values, "kind": kind}, _said(kind, wishes))
    for name, example in (("model", "zoo/qwen"), ("data", "rsft.jsonl"), ("out", "student")):
        if name not in values:
            raise ConfigError(f"--{name} is missing", hint=f"say for example: --{name} {example}")
    return make_training(values, str(file) if file is not None and not _any(wishes) else "the command line")


def _any(wishes: Wishes) -> bool:
    return bool(wishes.said or wishes.settings or wishes.lora or wishes.lora_r or wishes.bits)


def _said(kind: str, wishes: Wishes) -> dict[str, Any]:
    found: dict[str, Any] = dict(wishes.said)
    for name, value, owner in (("beta", wishes.beta, "dpo"), ("fix_llm", wishes.fix_llm or None, "prm")):
        if value is None:
            continue
        if kind != owner:
            raise ConfigError(f"--{name.replace('_', '-')} is for pluribus train {owner}, found {kind}")
        found = over(found, {owner: {name: value}})
    if wishes.lora or wishes.lora_r is not None or wishes.bits is not None:
        found = over(found, {"lora": {} if wishes.lora_r is None else {"r": wishes.lora_r}})
    if wishes.bits is not None:
        found["quantization"] = wishes.bits
    for text in wishes.settings:
        name, entry = _setting(text)
        said = text.partition("=")[2]
        if not said.strip():  # an empty text or spaces, which YAML takes for null
            entry = said
        for part in reversed(name.split(".")):
            entry = {part: entry}
        found = over(found, entry)
    return found


def _train(config: TrainConfig, err: Console) -> Trained:
    from pluribus.training._run import run

    def progress(step: int, of: int, logs: Mapping[str, Any]) -> None:
        if "loss" in logs:
            err.print(_screen.line(f"step {step}/{of}  loss {logs['loss']:.4f}", "dim"))

    return run(config, _unseen(config, err), progress)


def _unseen(config: TrainConfig, err: Console) -> dict[str, list[list[str]]]:
    """The evaluation sets that are at hand, each question as its lines; what could not be looked at is said."""
    tasks = _tasks(Path(config.data))
    sets, notes = sets_of(tasks, config.check_against)
    if not tasks and not sets:
        notes = ["the rows name no task, and were held against no test set; name one with --check-against"]
    for note in notes:
        err.print(_screen.line(note, "yellow"))
    return {one.name: [text.splitlines() for text in one.texts] for one in sets}


def _tasks(data: Path) -> list[str]:
    """The tasks that the rows say they are of; the file is checked when it is read for training."""
    found: dict[str, None] = {}
    for line in lines(data):
        task = re.search(rb'"task": ?"([^"]+)"', line)
        found |= {task[1].decode("utf-8", "replace"): None} if task else {}
    return list(found)


def _plan(config: TrainConfig, json: bool) -> int:
    """What would be trained, and the memory it takes; nothing is read but the data and the model's configuration."""
    from pluribus.training._run import memory_of, prepare

    job = prepare(config, _unseen(config, _screen.err()))
    needed = memory_of(job)
    steps = config.max_steps or _steps(len(job.rows), config)
    if json:
        print(jsonlib.dumps({
            "config": config.model_dump(mode="json", exclude_defaults=True), "rows": len(job.rows), "steps": steps,
            "memory_gb": {"total": round(needed.total, 3), **{n: round(v, 3) for n, v in needed.parts.items()}},
        }, ensure_ascii=False, indent=2))  # fmt: skip
        return cli.OK
    facts = _screen.grid()
    facts.add_row("kind", config.kind)
    facts.add_row("student", _screen.text(config.model))
    facts.add_row("rows", _screen.text(f"{len(job.rows):,} of {config.data}"))
    facts.add_row("steps", f"{steps:,} on one device, of {config.batch_size * config.accumulation} rows")
    facts.add_row("learning rate", f"{config.rate:g}")
    facts.add_row("memory", _screen.text(f"about {needed}"))
    _screen.out().print(facts)
    return cli.OK


def _steps(rows: int, config: TrainConfig) -> int:
    """Optimiser steps on one device: an epoch's last batch, and its last step, may be smaller than the others."""
    batches = math.ceil(rows / config.batch_size)
    return math.ceil(config.epochs * math.ceil(batches / config.accumulation))


def _object(done: Trained) -> dict[str, Any]:
    return asdict(done)


def _show(console: Console, config: TrainConfig, done: Trained) -> None:
    facts = _screen.grid()
    facts.add_row("model", _screen.text(f"local/{done.folder}"))
    facts.add_row("from", _screen.text(config.model))
    facts.add_row("rows", _screen.text(f"{done.rows:,} of {config.data}"))
    steps = f"{done.steps:,}" + (f", from step {done.resumed_from:,} on" if done.resumed_from else "")
    facts.add_row("steps", "trained before; nothing to do" if done.done_before else steps)
    if done.loss is not None:
        facts.add_row(
            "loss", f"{done.loss:.4f} at the end, nats per token" if config.kind == "sft" else f"{done.loss:.4f}"
        )
    for name, value in done.evaluation.items():
        if not name.endswith(("runtime", "per_second", "epoch")):
            facts.add_row(*_measured(name.removeprefix("eval_"), value))
    if not done.done_before:
        facts.add_row("took", f"{done.seconds:.0f} s")
    console.print(facts)
    model = f"local/{done.folder}"
    use = f"try it: pluribus evaluate {model} --task TASK"
    if config.kind == "prm":
        use = f"a judge for `pluribus reward RUN --judges FILE`: {{role: verifier, kind: prm, model: {model}}}"
    console.print(_screen.text(use, "dim"))


def _measured(name: str, value: float) -> tuple[Text, str]:
    """
    >>> [str(one) for one in _measured("steps", 101.0)], [str(one) for one in _measured("auroc", 0.74812)]
    (['measured steps', '101'], ['auroc', '0.7481'])
    """
    if name in ("steps", "num_tokens"):
        return _screen.text(f"measured {name.removeprefix('num_')}"), f"{value:,.0f}"
    return _screen.text(name), f"{value:.4f}"
