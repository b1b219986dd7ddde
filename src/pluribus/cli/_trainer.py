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

from pluribus import cli, prompt_rows
from pluribus.cli import _screen
from pluribus.cli._layers import _setting
from pluribus.config import read_config
from pluribus.distilling import sets_of
from pluribus.errors import ConfigError
from pluribus.rows import lines
from pluribus.sandbox import Sandbox, allowing, sandbox
from pluribus.training import TrainConfig, Trained, make_training
from pluribus.training._grpo_watch import WORDS
from pluribus.training.config import over

QUESTIONS = ("limit", "eval_limit", "persona", "prompt", "allow_code_execution")
"""Flags of grpo that say which questions are asked, and where: no entries of a training file."""
HELD_OUT = 200
"""Held-out questions of a task, unless said otherwise."""


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
    rl: Mapping[str, Any]
    """The flags of grpo."""


def bits(four: bool, eight: bool) -> str | None:
    """`4bit` or `8bit`; None: the weights as they are."""
    if four and eight:
        raise ConfigError("--load-in-4bit and --load-in-8bit exclude each other", hint="give one of them")
    return "4bit" if four else "8bit" if eight else None


def go(kind: str, file: Path | None, wishes: Wishes, *, plan: bool, json: bool) -> int:
    """Trains, and says what came of it."""
    err = _screen.err()
    config = _with_questions(_config(kind, file, wishes), wishes.rl, err)
    if plan:
        return _plan(config, wishes.rl, json)
    try:
        done = _train(config, err, wishes.rl)
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
    return bool(wishes.said or wishes.settings or wishes.lora or wishes.lora_r or wishes.bits or wishes.rl)


def _said(kind: str, wishes: Wishes) -> dict[str, Any]:
    found: dict[str, Any] = dict(wishes.said)
    for name, value, owner in (("beta", wishes.beta, "dpo"), ("fix_llm", wishes.fix_llm or None, "prm")):
        if value is None:
            continue
        if kind != owner:
            raise ConfigError(f"--{name.replace('_', '-')} is for pluribus train {owner}, found {kind}")
        found = over(found, {owner: {name: value}})
    found = over(found, _of_grpo(kind, wishes.rl))
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


def _of_grpo(kind: str, rl: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a training file that the flags of grpo say; those of the questions are no entries."""
    if rl and kind != "grpo":
        raise ConfigError(f"--{next(iter(rl)).replace('_', '-')} is for pluribus train grpo, found {kind}")
    entries = {name: value for name, value in rl.items() if name not in QUESTIONS}
    return {"grpo": entries} if entries else {}


def _train(config: TrainConfig, err: Console, rl: Mapping[str, Any]) -> Trained:
    from pluribus.training._run import run

    def progress(step: int, of: int, logs: Mapping[str, Any]) -> None:
        for line in _reported(step, of, logs, config.kind):
            err.print(line)

    def say(note: str) -> None:
        err.print(_screen.line(note, "yellow" if "below" in note or "nobody" in note else "dim"))

    with allowing(_box(rl)):
        return run(config, _unseen(config, err), progress, score=_judges(config), say=say)


def _reported(step: int, of: int, logs: Mapping[str, Any], kind: str) -> list[Text]:
    """What is said of one entry of the log."""
    found = [_screen.line(f"step {step}/{of}  {WORDS[name]}", "bold yellow") for name in logs if name in WORDS]
    if kind == "grpo":
        for prefix, what in (("", ""), ("eval_", "held out: ")):
            facts = _watched(logs, prefix)
            if facts and (prefix or "loss" in logs):
                found.append(_screen.line(f"step {step}/{of}  {what}{facts}", "dim"))
    elif "loss" in logs:
        found.append(_screen.line(f"step {step}/{of}  loss {logs['loss']:.4f}", "dim"))
    return found


def _watched(logs: Mapping[str, Any], prefix: str) -> str:
    """Reward, pass@k and maj@k of the group, diversity and length, as far as they are known."""
    at = sorted(name for name in logs if re.fullmatch(rf"{prefix}(pass|maj)@\d+", name))
    known = [(f"{prefix}reward", 3), *((name, 3) for name in at), (f"{prefix}kstar", 2)]
    known += [(f"{prefix}completions/mean_length", 0), ("kl", 4)] if not prefix else []
    words = {"completions/mean_length": "tokens", "kstar": "K*"}
    facts = [
        f"{words.get(name.removeprefix(prefix), name.removeprefix(prefix))} {logs[name]:.{digits}f}"
        for name, digits in known
        if isinstance(logs.get(name), int | float)
    ]
    if prefix and "eval_change" in logs:
        low, high = logs["eval_change_low"], logs["eval_change_high"]
        facts.append(f"right, against the start {logs['eval_change']:+.3f} [{low:+.3f}, {high:+.3f}]")
    return "  ".join(facts)


def _box(rl: Mapping[str, Any]) -> Sandbox | None:
    """Where programs may run, if they may."""
    allow = rl.get("allow_code_execution")
    return None if allow is None else sandbox(True if allow == "bubblewrap" else allow)


def _judges(config: TrainConfig) -> Any:
    """The judges as a reward; None: there are none."""
    said = config.grpo.judges
    if said is None:
        return None
    from pluribus.judge_config import read_judges
    from pluribus.judging import CouncilReward

    return CouncilReward.load(said) if said.endswith(".json") else CouncilReward(read_judges(Path(said)))


def _with_questions(config: TrainConfig, rl: Mapping[str, Any], err: Console) -> TrainConfig:
    """The training with files of prompts in the place of tasks; they are written beside the model's folder."""
    if config.kind != "grpo":
        return config
    made: dict[str, Any] = {}
    for name, limit, split, end in (
        ("data", rl.get("limit"), "train", "prompts"),
        ("eval_data", rl.get("eval_limit", HELD_OUT), "dev", "held-out"),
    ):
        said = getattr(config, name)
        if said is not None and not prompt_rows.is_file(said):
            made[name] = str(_written(config, said, limit, split, end, rl, err))
    return make_training(config.model_dump(exclude_unset=True) | made) if made else config


def _written(
    config: TrainConfig, said: str, limit: int | None, split: str, end: str, rl: Mapping[str, Any], err: Console
) -> Path:
    from pluribus.training._models import dialect_of

    task = prompt_rows.task_of(said, split, limit)
    out = Path(config.out)
    file = out.with_name(f"{out.name}.{end}.jsonl")
    wishes = {"personas": rl.get("persona", ()), "prompt": rl.get("prompt", "answer")}
    count = prompt_rows.write(task, file, dialect_of(config.model), **wishes)
    err.print(_screen.line(f"{count:,} questions of {task.task}@{task.split} in {file}", "dim"))
    return file


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


def _plan(config: TrainConfig, rl: Mapping[str, Any], json: bool) -> int:
    """What would be trained, and the memory it takes; nothing is read but the data and the model's configuration."""
    from pluribus.training._run import memory_of, notes, prepare

    with allowing(_box(rl)):
        job = prepare(config, _unseen(config, _screen.err()), _judges(config))
    needed = memory_of(job)
    said = notes(job)
    steps = config.max_steps or _steps(len(job.rows), config)
    if config.kind == "grpo":
        from pluribus.training.grpo import steps_of

        steps = steps_of(config, len(job.rows), 1)
    if json:
        print(jsonlib.dumps({
            "config": config.model_dump(mode="json", exclude_defaults=True), "rows": len(job.rows), "steps": steps,
            "memory_gb": {"total": round(needed.total, 3), **{n: round(v, 3) for n, v in needed.parts.items()}},
            **({"notes": said} if said else {}),
        }, ensure_ascii=False, indent=2))  # fmt: skip
        return cli.OK
    facts = _screen.grid()
    facts.add_row("kind", config.kind)
    facts.add_row("student", _screen.text(config.model))
    facts.add_row("rows", _screen.text(f"{len(job.rows):,} of {config.data}"))
    facts.add_row("steps", f"{steps:,} on one device, of {config.batch_size * config.accumulation} rows")
    facts.add_row("learning rate", f"{config.rate:g}")
    facts.add_row("memory", _screen.text(f"about {needed}"))
    for note in said:
        facts.add_row("", _screen.text(note))
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
        if config.kind == "grpo" and not _telling(name):
            continue
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


def _telling(name: str) -> bool:
    """Whether a held-out measure of a policy is worth a line; all of them are in training.json."""
    told = ("eval_accuracy", "eval_agreement", "eval_kstar", "eval_unanswered", "eval_completions/mean_length")
    return name in told or name.startswith(("eval_change", "eval_pass@", "eval_maj@"))


def _measured(name: str, value: float) -> tuple[Text, str]:
    """
    >>> [str(one) for one in _measured("steps", 101.0)], [str(one) for one in _measured("auroc", 0.74812)]
    (['measured steps', '101'], ['auroc', '0.7481'])
    """
    if name in ("steps", "num_tokens"):
        return _screen.text(f"measured {name.removeprefix('num_')}"), f"{value:,.0f}"
    return _screen.text(name), f"{value:.4f}"
