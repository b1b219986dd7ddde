"""Supervised fine-tuning on demonstrations: RSFT, DA, answers alone, worked solutions.

TRL's SFTTrainer; the loss is the cross-entropy of the completion's tokens, the prompt's are not learned.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pluribus.rows import Row, demonstrations
from pluribus.training._run import Job, arguments, dataset
from pluribus.training._watch import watched

COLUMNS = ("prompt", "completion")


def read(path: Path) -> list[Row]:
    """The file's rows, checked."""
    return demonstrations(path)


def trainer(job: Job) -> Any:
    """TRL's trainer, ready to go."""
    from transformers import AutoModelForCausalLM
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    # before the model: DeepSpeed spreads weights while they are read only once it was told so
    args = SFTConfig(
        **arguments(job.config), max_length=job.max_length, packing=job.config.sft.packing, completion_only_loss=True
    )
    return watched(SFTTrainer)(
        model=job.student(AutoModelForCausalLM),
        args=args,
        train_dataset=dataset(job.rows, COLUMNS),
        eval_dataset=dataset(job.eval_rows, COLUMNS),
        processing_class=job.tokenizer,
        peft_config=job.adapter(),
    )
