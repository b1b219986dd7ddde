"""What `pluribus train` costs over plain TRL, and how far off the memory estimate is: ratios measured in one run.

    python benchmarks/training.py [--steps N] [--repeats N] [--memory]

Steps: the same rows, model (zoo/qwen), seed and arguments go through our trainer and through TRL's own, in turns: one
repeat is N optimiser steps of each, in alternating order, on one CPU thread. What is compared is a step's CPU time,
without the first steps: other programs on the machine change elapsed time more than that. Memory: the peak of torch's
allocator in two steps of a Qwen3 of 8.4 million parameters, against the estimate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pluribus import zoo
from pluribus.training import TrainConfig, make_training, memory

MOST = 1.05
WARM = 3
"""Steps of each training that are not counted."""


def rows(kind: str, n: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for i in range(n):
        asked = [{"role": "user", "content": f"Ann has {i % 50 + 2} apples and buys {i % 7 + 3} more. How many?"}]
        right = [{"role": "assistant", "content": f"{i % 50 + 2} + {i % 7 + 3} = {i % 50 + i % 7 + 5}. " * (1 + i % 4)}]
        wrong = [{"role": "assistant", "content": f"{i % 50 + i % 7 + 4}"}]
        found.append(
            {"prompt": asked, **({"completion": right} if kind == "sft" else {"chosen": right, "rejected": wrong})}
        )
    return found


def config_of(kind: str, data: Path, out: Path, **more: Any) -> TrainConfig:
    values = {"kind": kind, "model": "zoo/qwen", "data": str(data), "out": str(out), "logging_steps": 1}
    return make_training({**values, **more})


# --- steps -----------------------------------------------------------------------------------------------------------


def clock() -> tuple[list[float], Any]:
    """CPU seconds at the end of each step, and the callback that writes them down."""
    from transformers import TrainerCallback

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append(time.process_time())

    return ends, Clock()


def job_of(config: TrainConfig, found: Sequence[Mapping[str, Any]]) -> Any:
    from pluribus.training import _models, _run

    path = _models.path_of(config.model)
    return _run.Job(config, path, _models.tokenizer_of(path), [dict(row) for row in found], None, 2048)


def ours(config: TrainConfig, found: Sequence[Mapping[str, Any]]) -> list[float]:
    from pluribus.load import load
    from pluribus.training import _run

    trainer = load("training", config.kind).trainer(job_of(config, found))
    _run._listen(trainer, lambda step, of, logs: None)
    return steps_of(trainer)


def theirs(config: TrainConfig, found: Sequence[Mapping[str, Any]]) -> list[float]:
    import trl
    from datasets import Dataset

    sft = config.kind == "sft"
    arguments = (trl.SFTConfig if sft else trl.DPOConfig)(
        output_dir=config.out + "-trl", max_steps=config.max_steps, per_device_train_batch_size=config.batch_size,
        learning_rate=config.rate, seed=0, bf16=False, use_cpu=True, report_to="none", save_strategy="no",
        max_length=2048, gradient_checkpointing=False, logging_steps=1, disable_tqdm=True,
        dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = (trl.SFTTrainer if sft else trl.DPOTrainer)(
        model=str(zoo.folder("qwen")), args=arguments, train_dataset=Dataset.from_list([dict(row) for row in found])
    )
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return steps_of(trainer)


def steps_of(trainer: Any) -> list[float]:
    """CPU seconds of each counted step."""
    ends, callback = clock()
    trainer.add_callback(callback)
    trainer.train()
    return [after - before for before, after in zip(ends[WARM - 1 :], ends[WARM:], strict=False)]


def overhead(kind: str, folder: Path, steps: int, repeats: int) -> float:
    """Ours over theirs: the median over the repeats of the ratio of the two median steps."""
    found = rows(kind, 8 * (steps + WARM))
    ratios, plain = [], []
    for repeat in range(repeats):
        wanted = config_of(kind, folder / "unused", folder / f"{kind}{repeat}", max_steps=steps + WARM)
        spent = {}
        for name in ("ours", "theirs") if repeat % 2 else ("theirs", "ours"):
            spent[name] = statistics.median((ours if name == "ours" else theirs)(wanted, found))
        ratios.append(spent["ours"] / spent["theirs"])
        plain.append(spent["theirs"])
    ratio = statistics.median(ratios)
    print(
        f"{kind}: ratio {ratio:.3f} (at most {MOST}); single repeats {min(ratios):.3f} to {max(ratios):.3f}; "
        f"plain TRL {statistics.median(plain) * 1e3:.1f} ms of CPU a step"
    )
    return ratio


# --- memory ----------------------------------------------------------------------------------------------------------


def student(folder: Path) -> Path:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    config = AutoConfig.for_model(
        "qwen3", vocab_size=8192, hidden_size=256, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
        head_dim=32, intermediate_size=768, tie_word_embeddings=True, pad_token_id=0, eos_token_id=4,
        max_position_embeddings=4096,
    )  # fmt: skip
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(zoo.folder("qwen")).save_pretrained(folder)
    return folder


def measured(config: TrainConfig, found: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """GB at the fullest moment, as torch's profiler saw it, and as estimated."""
    from torch.profiler import ProfilerActivity, profile

    from pluribus.load import load

    trainer = load("training", config.kind).trainer(job_of(config, found))
    width = max(batch["input_ids"].shape[1] for batch in trainer.get_train_dataloader())
    models = [model for model in (trainer.model, getattr(trainer, "ref_model", None)) if model is not None]
    held = {
        value.untyped_storage().data_ptr(): value.untyped_storage().nbytes() for m in models for value in m.parameters()
    }
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        trainer.train()
    events = sorted((e.start_ns(), e.nbytes()) for e in seen.profiler.kineto_results.events() if e.name() == "[memory]")
    now = peak = 0
    for _, size in events:
        now += size
        peak = max(peak, now)
    setup = memory.Setup(tokens=width, device="cpu", bf16=config.precision == "bf16")
    needed = memory.estimate(config, memory.shape_of(trainer.model.config), setup)
    return (peak + sum(held.values())) / memory.GB, needed.total


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("sft", {}), ("sft", {"gradient_checkpointing": True}), ("sft", {"lora": {"r": 16}}), ("dpo", {"batch_size": 2}),
]  # fmt: skip


def estimates(folder: Path) -> None:
    model = student(folder / "student")
    for number, (kind, more) in enumerate(WAYS):
        wishes = {"model": str(model), "batch_size": 4, "max_steps": 2, "precision": "fp32", **more}
        wanted = config_of(kind, folder / "unused", folder / f"memory{number}", **wishes)
        found = rows(kind, 2 * wanted.batch_size)
        for row in found:
            reply = row["completion" if kind == "sft" else "chosen"][0]
            reply["content"] = (reply["content"] * 40)[:1200]
        real, said = measured(wanted, found)
        print(f"{kind} {json.dumps(more)}: measured {real:.3f} GB, estimated {said:.3f} GB: ratio {said / real:.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--memory", action="store_true", help="the memory estimate instead of the steps")
    wishes = parser.parse_args()
    warnings.simplefilter("ignore")  # TRL's own
    import datasets
    import torch
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        if wishes.memory:
            estimates(Path(name))
            return 0
        ratios = [overhead(kind, Path(name), wishes.steps, wishes.repeats) for kind in ("sft", "dpo")]
    return 0 if max(ratios) <= MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
