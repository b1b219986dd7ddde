"""What `pluribus train` costs over plain TRL, and how far off the memory estimate is: ratios measured in one run.

    python benchmarks/training.py [--steps N] [--memory]

Steps: the same rows, model (zoo/qwen), seed and arguments go through our trainer and through TRL's own, a step of one
and a step of the other in turns, each on one CPU thread. What is compared is a step's CPU time with all that belongs to
it (loading, logging), without the first steps. Memory: the peak of torch's allocator in two steps of a Qwen3 of 8.4
million parameters, against the estimate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
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


class Turns:
    """Two trainings, each in a thread of its own, of which one runs at a time: a step of one, a step of the other."""

    def __init__(self) -> None:
        self._free = {"ours": threading.Semaphore(1), "theirs": threading.Semaphore(0)}
        self.seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
        """CPU seconds of each step: from the end of the one before, so loading and logging count."""
        self._began: dict[str, float] = {}

    def run(self, name: str, trainer: Any) -> None:
        import torch

        torch.set_num_threads(1)
        self._take(name)
        trainer.add_callback(self._callback(name))
        trainer.train()
        self._give(name)

    def _take(self, name: str) -> None:
        self._free[name].acquire()
        self._began[name] = time.thread_time()

    def _give(self, name: str) -> None:
        self.seconds[name].append(time.thread_time() - self._began[name])
        self._free["theirs" if name == "ours" else "ours"].release()

    def _callback(self, name: str) -> Any:
        from transformers import TrainerCallback

        class Turn(TrainerCallback):
            def on_step_end(callback, *_: Any, **__: Any) -> None:
                self._give(name)
                self._take(name)

        return Turn()


def job_of(config: TrainConfig, found: Sequence[Mapping[str, Any]]) -> Any:
    from pluribus.training import _models, _run

    path = _models.path_of(config.model)
    return _run.Job(config, path, _models.tokenizer_of(path), [dict(row) for row in found], None, 2048)


def ours(config: TrainConfig, found: Sequence[Mapping[str, Any]]) -> Any:
    from pluribus.load import load
    from pluribus.training import _run

    trainer = load("training", config.kind).trainer(job_of(config, found))
    _run._listen(trainer, lambda step, of, logs: None)
    return trainer


def theirs(config: TrainConfig, found: Sequence[Mapping[str, Any]]) -> Any:
    import trl
    from datasets import Dataset
    from transformers import PrinterCallback

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
    trainer.remove_callback(PrinterCallback)
    return trainer


def overhead(kind: str, folder: Path, steps: int) -> float:
    """Ours over theirs: the median over the steps of the ratio of two steps that followed each other."""
    found = rows(kind, 8 * (steps + WARM))
    wanted = config_of(kind, folder / "unused", folder / kind, max_steps=steps + WARM)
    turns = Turns()
    both = {"ours": ours(wanted, found), "theirs": theirs(wanted, found)}
    threads = [threading.Thread(target=turns.run, args=one) for one in both.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = {name: seconds[WARM : WARM + steps] for name, seconds in turns.seconds.items()}
    ratios = [mine / plain for mine, plain in zip(spent["ours"], spent["theirs"], strict=True)]
    low, ratio, high = statistics.quantiles(ratios, n=4)
    print(
        f"{kind}: ratio {ratio:.3f} (at most {MOST}), quartiles {low:.3f} and {high:.3f}, {len(ratios)} steps; "
        f"plain TRL {statistics.median(spent['theirs']) * 1e3:.1f} ms of CPU a step"
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

    trainer = ours(config, found)
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
    parser.add_argument("--steps", type=int, default=60)
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
        ratios = [overhead(kind, Path(name), wishes.steps) for kind in ("sft", "dpo")]
    return 0 if max(ratios) <= MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
