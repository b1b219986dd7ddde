"""What every training has in common: what is checked before, how it goes on after a kill, what is written beside it."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pluribus.backends import TRAINED
from pluribus.backends._batching import out_of_memory
from pluribus.backends._folders import model_digest
from pluribus.backends._loading import check_writes, context_length, load_config
from pluribus.codec import to_json
from pluribus.contamination import held
from pluribus.errors import ConfigError, DataError, MissingDependency, PluribusError, TrainingStopped
from pluribus.load import load
from pluribus.rows import Row
from pluribus.training import Trained, _card, _models, memory
from pluribus.training._watch import check_weights
from pluribus.training.config import TrainConfig

CHECKPOINTS = "checkpoints"
SILENT = (
    "out",
    "logging_steps",
    "save_steps",
    "save_total_limit",
    "report_to",
    "resume",
    "nan_watch",
    "check_against",
    "check_memory",
)
"""Wishes that do not change the weights: a training goes on when one of them is another."""
Progress = Callable[[int, int, Mapping[str, Any]], None]
"""Gets step, steps in all, and what was logged."""
Score = Callable[[Sequence[Any], Sequence[Any]], Awaitable[Sequence[float | None]]]
"""Judges as TRL asks them: prompts, completions → rewards; None: no verdict."""


@dataclass(frozen=True, slots=True)
class Job:
    """One training, checked; what a kind makes its trainer from."""

    config: TrainConfig
    path: str
    """The student's folder or hub id."""
    tokenizer: Any
    rows: Sequence[Row]
    eval_rows: Sequence[Row] | None
    max_length: int | None
    """Most tokens of a row."""
    looked_at: tuple[str, ...] = ()
    """Evaluation sets of which no row holds a question."""
    score: Score | None = None
    """A council of judges; None: there is none."""
    left_out: int = 0
    """Rows that the training can not use."""

    def student(self, cls: Any, **options: Any) -> Any:
        """The model; `cls` is the auto class of its head."""
        return _models.student(self.config, self.path, cls, **options)

    def adapter(self, task: str = "CAUSAL_LM") -> Any:
        """peft's form of the adapter; None for all weights."""
        return _models.adapter(self.config.lora, task)


def run(
    config: TrainConfig,
    unseen: Mapping[str, Sequence[Sequence[str]]],
    progress: Progress | None = None,
    *,
    score: Score | None = None,
    say: Callable[[str], None] | None = None,
) -> Trained:
    """See `pluribus.training.train`.

    Args:
        say: gets what there is to say before the start.
    """
    job = prepare(config, unseen, score)
    memory_of(job)
    if say is not None:
        for note in notes(job):
            say(note)
    folder, mark = Path(config.out), fingerprint(config)
    with _one_by_one():
        before = _begin(folder, mark, config)
    if before.get("state") == "done":
        return replace(_trained(before), folder=str(folder), seconds=0.0, done_before=True)
    with _told(config):
        return _train(load("training", config.kind), job, folder, mark, progress)


def prepare(config: TrainConfig, unseen: Mapping[str, Sequence[Sequence[str]]], score: Score | None = None) -> Job:
    """Everything that can be checked before weights are read."""
    _check_packages(config)
    _check_merge(config)
    kind = load("training", config.kind)
    path = _models.path_of(config.model)
    if config.kind != "prm":
        check_writes(path, load_config(path, None))
    rows = kind.read(Path(config.data))
    eval_rows = kind.read(Path(config.eval_data)) if config.eval_data is not None else None
    check_unseen(config.data, rows, unseen)
    tokenizer = _models.tokenizer_of(path, template=config.kind != "prm")
    job = Job(config, path, tokenizer, rows, eval_rows, _longest(config, path), tuple(unseen), score)
    return kind.check(job) if hasattr(kind, "check") else job


def notes(job: Job) -> list[str]:
    """What a kind has to say before the start, in one of several processes."""
    kind, (place, processes) = load("training", job.config.kind), _processes()
    return kind.notes(job, processes) if place == 0 and hasattr(kind, "notes") else []


def _processes() -> tuple[int, int]:
    """This process's number, and how many there are."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def _one_by_one() -> Iterator[None]:
    """Of several processes the first goes first."""
    import torch
    from accelerate import PartialState  # type: ignore[import-untyped]  # it has no stubs

    state = PartialState(cpu=not torch.cuda.is_available())
    with state.main_process_first():
        yield


def memory_of(job: Job) -> memory.Memory:
    """What one device will have to hold; UsageError where it can not."""
    tokens = memory.longest([*job.rows, *(job.eval_rows or ())], job.tokenizer, job.max_length)
    if job.config.kind == "grpo":
        tokens = min(tokens + job.config.grpo.max_new_tokens, job.max_length or sys.maxsize)
    return memory.check(job.config, load_config(job.path, None), tokens)


def _train(kind: Any, job: Job, folder: Path, mark: str, progress: Progress | None) -> Trained:
    began = time.perf_counter()
    last = _last_checkpoint(folder) if job.config.resume else None
    try:
        trainer = _trainer(kind, job)
    except (PluribusError, RuntimeError, MemoryError):
        _unmark(folder)
        raise
    trainer.watch = job.config.nan_watch
    _listen(trainer, progress)
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    if job.config.nan_watch:
        check_weights(trainer.model, trainer.state.global_step)
    evaluation = {} if job.eval_rows is None else _evaluated(trainer) or trainer.evaluate()
    _models.save(trainer, job.tokenizer, folder, job.config)
    if hasattr(kind, "finish"):
        kind.finish(trainer, job, folder)
    done = Trained(
        folder=str(folder), kind=job.config.kind, steps=trainer.state.global_step,
        rows=len(job.rows) if job.config.sft.packing else len(trainer.train_dataset),
        loss=_last_loss(trainer.state.log_history), seconds=time.perf_counter() - began,
        resumed_from=_step(last) if last else 0,
        evaluation={name: float(value) for name, value in evaluation.items() if isinstance(value, int | float)},
        log=tuple(trainer.state.log_history),
    )  # fmt: skip
    if trainer.is_world_process_zero():
        _end(folder, mark, job, done)
        _open(folder)
    return done


def _open(folder: Path) -> None:
    """Weights may be read by whom the rest of the folder may be read by; safetensors writes them for their owner."""
    mode = (folder / TRAINED).stat().st_mode
    for weights in folder.rglob("*.safetensors"):
        weights.chmod(mode)


def _trainer(kind: Any, job: Job) -> Any:
    """The kind's trainer with rows to learn from."""
    from peft.utils.error import NoMatchingPeftModuleError

    try:
        trainer = kind.trainer(job)
    except NoMatchingPeftModuleError as error:
        said = job.config.lora.targets if job.config.lora is not None else None
        raise ConfigError(
            f"lora.targets is {said!r}, and the model has no such module",
            hint="name modules of its layers, such as q_proj, or say all-linear",
        ) from error
    if not len(trainer.train_dataset):
        raise DataError(
            job.config.data, f"no row has room for its reply within {job.max_length} tokens",
            hint="give a larger max_length, or shorter prompts",
        )  # fmt: skip
    return trainer


def _unmark(folder: Path) -> None:
    """A folder in which nothing was begun holds nothing: the next training need not be this one."""
    if {one.name for one in folder.iterdir()} - {TRAINED, CHECKPOINTS}:
        return
    with suppress(OSError):  # a checkpoint lies there, or another process was here first
        if (folder / CHECKPOINTS).is_dir():
            (folder / CHECKPOINTS).rmdir()
        (folder / TRAINED).unlink()
        folder.rmdir()


def _evaluated(trainer: Any) -> dict[str, Any]:
    """What was measured at the last step already; empty: nothing."""
    now = [entry for entry in trainer.state.log_history if entry.get("step") == trainer.state.global_step]
    return {name: value for entry in now for name, value in entry.items() if name.startswith("eval_")}


def _last_loss(log: Sequence[Mapping[str, Any]]) -> float | None:
    """Of the last logged steps; of all, where none was logged on the way."""
    losses = [entry[name] for name in ("train_loss", "loss") for entry in log if name in entry]
    return float(losses[-1]) if losses else None


# --- before ----------------------------------------------------------------------------------------------------------


def _check_packages(config: TrainConfig) -> None:
    needed = ["torch", "transformers", "accelerate", "peft", "trl", "datasets"]
    for package in needed:
        if find_spec(package) is None:
            raise MissingDependency(package, "train")
    if config.quantization is not None and find_spec("bitsandbytes") is None:
        raise MissingDependency("bitsandbytes", "train")
    if config.report_to != "none" and find_spec(config.report_to) is None:
        raise ConfigError(
            f"report_to is {config.report_to}, and that package is not installed",
            hint=f"install it with: pip install {config.report_to}; or say none",
        )


def _check_merge(config: TrainConfig) -> None:
    sharding = memory.sharding_of(os.environ)
    if config.lora is not None and config.lora.merge and not config.quantization and sharding in ("fsdp", "zero3"):
        raise ConfigError(
            f"lora.merge: an adapter can not be added to weights that {sharding} spreads over devices",
            hint="say --set lora.merge=false, and ask it as {model: local/BASE, adapter: FOLDER}",
        )


def check_unseen(data: str, rows: Sequence[Row], unseen: Mapping[str, Sequence[Sequence[str]]]) -> None:
    """DataError where a row's prompt holds a question of an evaluation set: never train on a test question."""
    prompts = [_words(row["prompt"]) for row in rows]
    for name, questions in unseen.items():
        found = held(prompts, questions)
        if found:
            raise DataError(
                data,
                f"{len(found):,} of {len(rows):,} rows hold a question of {name}, the first is row {found[0] + 1}",
                hint="never train on a test question: make the file again from a run on another split",
            )


def _words(prompt: Any) -> str:
    """A prompt's last user message: the question as it was asked."""
    if isinstance(prompt, str):
        return prompt
    return str(next((m["content"] for m in reversed(prompt) if m["role"] == "user"), ""))


def _longest(config: TrainConfig, path: str) -> int | None:
    most = context_length(load_config(path, None))
    if config.max_length is not None and most is not None and config.max_length > most:
        raise ConfigError(f"max_length is {config.max_length}, and the model takes at most {most} tokens")
    return config.max_length if config.max_length is not None else most


def fingerprint(config: TrainConfig) -> str:
    """What a training is, without what only says how it is watched: everything that its weights depend on."""
    said = config.model_dump(exclude=set(SILENT))
    said |= {name: _hash(said[name]) for name in ("data", "eval_data") if said[name] is not None}
    if weights := _weights(config.model):
        said["weights"] = weights
    if config.grpo.prm is not None:
        said["prm"] = _weights(config.grpo.prm)
    if config.grpo.judges is not None and Path(config.grpo.judges).is_file():
        said["judges"] = _hash(config.grpo.judges)
    return hashlib.sha256(to_json({**said, "rate": config.rate}).encode()).hexdigest()[:16]


def _weights(model: str) -> str:
    """What lies in the student's folder, which may be written `local/FOLDER`; empty: it is none."""
    named = (Path(name).expanduser() for name in (model, model.removeprefix("local/")))
    return next((model_digest(folder) for folder in named if folder.is_dir()), "")


def _hash(file: str) -> str:
    with Path(file).open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _begin(folder: Path, mark: str, config: TrainConfig) -> dict[str, Any]:
    """What the folder says of this training so far; ConfigError where it holds anything else."""
    found = _models.finished(folder)
    if found.get("fingerprint") == mark:
        return found
    if found:
        differs = ", ".join(_differences(_plain(config), found.get("config", {})))
        differs = differs or "its data, its model’s weights, or what rewards it"
        raise ConfigError(
            f"out {config.out} holds another training: it differs in {differs}",
            hint="choose another folder, or delete this one",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"out {config.out} is there already and is no training", hint="choose another folder")
    try:
        _write(folder, {"fingerprint": mark, "state": "running", "config": _plain(config)})
    except OSError as error:
        raise ConfigError(
            f"out {config.out} can not be written: {error.strerror}", hint="choose another folder"
        ) from error
    return {}


def _differences(said: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """The settings that are others than before."""
    return [name for name in {**before, **said} if name not in SILENT and said.get(name) != before.get(name)]


def _plain(config: TrainConfig) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(config.model_dump_json(exclude_defaults=True))
    return found


def _write(folder: Path, record: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{TRAINED}.{os.getpid()}"
    part.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")
    part.replace(folder / TRAINED)


def _last_checkpoint(folder: Path) -> Path | None:
    """The last one that is whole: its state is written after everything else."""
    there = (folder / CHECKPOINTS).glob("checkpoint-*/trainer_state.json")
    whole = [file.parent for file in there if _is_json(file)]
    return max(whole, key=_step, default=None)


def _is_json(file: Path) -> bool:
    try:
        return isinstance(json.loads(file.read_text("utf-8")), dict)
    except (OSError, ValueError):
        return False


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("checkpoint-"))


# --- what every kind's trainer is told -------------------------------------------------------------------------------


def arguments(config: TrainConfig) -> dict[str, Any]:
    """The entries of transformers' TrainingArguments that all kinds share."""
    import torch

    return {
        "output_dir": str(Path(config.out) / CHECKPOINTS),
        "num_train_epochs": config.epochs,
        "max_steps": config.max_steps or -1,
        "per_device_train_batch_size": config.batch_size,
        "per_device_eval_batch_size": config.eval_batch_size,
        "gradient_accumulation_steps": config.accumulation,
        "learning_rate": config.rate,
        "weight_decay": config.weight_decay,
        "adam_beta1": config.adam_beta1,
        "adam_beta2": config.adam_beta2,
        "warmup_steps": config.warmup_ratio,
        "lr_scheduler_type": config.scheduler,
        "max_grad_norm": config.max_grad_norm,
        "seed": config.seed,
        "data_seed": config.seed,
        "bf16": _models.bf16(config),
        "activation_checkpointing": config.gradient_checkpointing,  # transformers’ newer word for it
        "logging_steps": config.logging_steps,
        "logging_nan_inf_filter": not config.nan_watch,
        "save_strategy": "no" if config.save_steps is None else "steps",
        "save_steps": config.save_steps or 500,
        "save_total_limit": config.save_total_limit,
        "report_to": config.report_to,
        "run_name": Path(config.out).name,
        "project": "pluribus",
        "disable_tqdm": True,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "use_cpu": not torch.cuda.is_available(),
    }


def dataset(rows: Sequence[Row] | None, columns: Sequence[str]) -> Any:
    """The columns that a trainer reads, as it wants them; provenance stays in the file."""
    if rows is None:
        return None
    from datasets import Dataset  # type: ignore[import-untyped]  # it has no stubs

    return Dataset.from_list([{name: row[name] for name in columns} for row in rows])


@contextmanager
def _told(config: TrainConfig) -> Iterator[None]:
    """Without other libraries' bars, and without what they say to each other; too little memory is one line."""
    import datasets
    import torch
    from transformers.utils import logging

    bars, verbosity = datasets.is_progress_bar_enabled(), logging.get_verbosity()
    datasets.disable_progress_bars()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    try:
        with warnings.catch_warnings():
            # TRL 1.16 says the older word, transformers 5.20 wants the newer one
            warnings.filterwarnings("ignore", ".*(gradient|activation)_checkpointing.*", FutureWarning)
            yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise TrainingStopped(
            f"training stopped: out of memory with batch_size {config.batch_size}: {str(error).splitlines()[0]}",
            hint="take a smaller batch_size with more accumulation, gradient_checkpointing, lora, or quantization",
        ) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            datasets.enable_progress_bars()


def _listen(trainer: Any, progress: Progress | None) -> None:
    """What is logged goes to `progress`, and nowhere else on this terminal."""
    from transformers import PrinterCallback, TrainerCallback

    trainer.remove_callback(PrinterCallback)
    if progress is None:
        return
    heard = progress

    class Listener(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if state.is_world_process_zero:
                heard(state.global_step, state.max_steps, dict(logs or {}))

    trainer.add_callback(Listener())


# --- after -----------------------------------------------------------------------------------------------------------


def _end(folder: Path, mark: str, job: Job, done: Trained) -> None:
    about = _card.about(job.config, job.path, job.rows, done, job.looked_at)
    (folder / "README.md").write_text(_card.card(about), "utf-8")
    result = {
        "steps": done.steps, "rows": done.rows, "loss": done.loss, "seconds": round(done.seconds, 3),
        "resumed_from": done.resumed_from, "evaluation": dict(done.evaluation), "log": list(done.log),
    }  # fmt: skip
    record = {
        "fingerprint": mark, "state": "done", "kind": job.config.kind, "config": _plain(job.config), "result": result,
    }  # fmt: skip
    dialect = _models.dialect_of(job.config.model)
    _write(folder, {**record, **({"dialect": dialect} if dialect else {}), "about": about})


def _trained(record: Mapping[str, Any]) -> Trained:
    return Trained(folder="", kind=record["kind"], **record["result"])
