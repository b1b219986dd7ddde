"""Direct preference optimisation on a council's preferences (Rafailov et al. 2023, arXiv 2305.18290).

TRL's DPOTrainer. The reference is the student as it began; with an adapter it is the model without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pluribus.prefer import read_rows
from pluribus.rows import Row
from pluribus.training._run import Job, arguments, dataset
from pluribus.training._watch import watched

COLUMNS = ("prompt", "chosen", "rejected")


def read(path: Path) -> list[Row]:
    """The file's rows, checked."""
    return read_rows(path)


def trainer(job: Job) -> Any:
    """TRL's trainer, ready to go."""
    from transformers import AutoModelForCausalLM
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    wishes = job.config.dpo
    # before the model: DeepSpeed spreads weights while they are read only once it was told so
    args = DPOConfig(
        **arguments(job.config), max_length=job.max_length, beta=wishes.beta, loss_type=[wishes.loss],
        label_smoothing=wishes.label_smoothing,
    )  # fmt: skip
    return watched(DPOTrainer)(
        model=job.student(AutoModelForCausalLM),
        ref_model=None if job.config.lora is not None else job.student(AutoModelForCausalLM).eval(),
        args=args,
        train_dataset=dataset(job.rows, COLUMNS),
        eval_dataset=dataset(job.eval_rows, COLUMNS),
        processing_class=job.tokenizer,
        peft_config=job.adapter(),
    )  # fmt: skip
