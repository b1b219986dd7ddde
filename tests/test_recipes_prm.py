"""The recipe of AgentArk's process reward model says what AgentArk's command says."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from pluribus.training.config import TrainConfig, read_training

RECIPE = Path(__file__).parents[1] / "recipes" / "prm_agentark.yaml"
COMMAND = """
    --model_name_or_path Qwen/Qwen3-8B --train_data_path results/QMSum/labeled.jsonl --output_dir outputs/prm_qmsum
    --num_train_epochs 3 --per_device_train_batch_size 64 --per_device_eval_batch_size 16
    --gradient_accumulation_steps 1 --learning_rate 1e-4 --weight_decay 0.1 --adam_beta2 0.95 --warmup_ratio 0.0
    --logging_steps 1 --save_strategy steps --save_steps 500 --save_total_limit 3 --bf16 True
    --gradient_checkpointing True --fix_llm True --enable_nan_monitoring True
"""
"""The arguments as AgentArk documents them."""


def said() -> dict[str, str]:
    words = shlex.split(COMMAND)
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


@pytest.fixture
def config() -> TrainConfig:
    return read_training(RECIPE)


def test_every_argument_stands_in_the_recipe(config: TrainConfig) -> None:
    there: dict[str, Any] = {
        "model_name_or_path": config.model, "train_data_path": config.data, "output_dir": config.out,
        "num_train_epochs": config.epochs, "per_device_train_batch_size": config.batch_size,
        "per_device_eval_batch_size": config.eval_batch_size, "gradient_accumulation_steps": config.accumulation,
        "learning_rate": config.learning_rate, "weight_decay": config.weight_decay, "adam_beta2": config.adam_beta2,
        "warmup_ratio": config.warmup_ratio, "logging_steps": config.logging_steps, "save_strategy": "steps",
        "save_steps": config.save_steps, "save_total_limit": config.save_total_limit,
        "bf16": config.precision == "bf16", "gradient_checkpointing": config.gradient_checkpointing,
        "fix_llm": config.prm.fix_llm, "enable_nan_monitoring": config.nan_watch,
    }  # fmt: skip
    assert there.keys() == said().keys()
    for name, value in said().items():
        assert there[name] == type(there[name])(value == "True" if isinstance(there[name], bool) else value), name


def test_what_the_command_does_not_say_is_left_as_it_is(config: TrainConfig) -> None:
    assert config.kind == "prm" and config.rate == 1e-4
    assert (config.lora, config.quantization, config.eval_data, config.max_steps) == (None, None, None, None)
    assert (config.scheduler, config.adam_beta1, config.max_grad_norm) == ("linear", 0.9, 1.0)


def test_transformers_is_told_the_same(config: TrainConfig) -> None:
    transformers = pytest.importorskip("transformers")
    from pluribus.training._run import arguments

    told = {**arguments(config), "bf16": False}  # a machine without a GPU refuses it; the wish itself is tested above
    told = transformers.TrainingArguments(**told)
    assert arguments(config)["bf16"] is True
    assert (told.num_train_epochs, told.per_device_train_batch_size, told.per_device_eval_batch_size) == (3, 64, 16)
    assert (told.learning_rate, told.weight_decay, told.adam_beta1, told.adam_beta2) == (1e-4, 0.1, 0.9, 0.95)
    assert (told.save_strategy, told.save_steps, told.save_total_limit, told.logging_steps) == ("steps", 500, 3, 1)
    assert told.gradient_accumulation_steps == 1 and told.warmup_steps == 0 and told.activation_checkpointing
    assert not told.logging_nan_inf_filter, "a loss that is no number is seen, not smoothed over"
