"""What one training is: a model, its data, and how it is taught, as strict values. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pluribus.config import Strict, read_config, words
from pluribus.errors import ConfigError
from pluribus.steps import Cut

Kind = Literal["sft", "dpo", "prm"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Precision = Literal["auto", "fp32", "bf16"]
Tracker = Literal["none", "trackio", "wandb", "tensorboard"]
Scheduler = Literal["linear", "cosine", "constant", "constant_with_warmup"]
Quantization = Literal["4bit", "8bit"]

RATES: Mapping[Kind, tuple[float, float]] = {"sft": (2e-5, 2e-4), "dpo": (1e-6, 1e-5), "prm": (1e-5, 1e-4)}
"""Kind → learning rate when the file says none: of all weights, of an adapter or a head alone.

The first two are TRL's defaults; ten times as much for LoRA as in Schulman and Thinking Machines Lab 2025,
"LoRA Without Regret"."""
Positive = Annotated[int, Field(ge=1)]


class Finite(Strict):
    """No number of it is infinite: such a training would have no end, or no weights."""

    model_config = ConfigDict(allow_inf_nan=False)


class LoraConfig(Finite):
    """Low-rank adapters in the place of all weights (Hu et al. 2021, arXiv 2106.09685)."""

    r: Positive = 16
    alpha: Annotated[float, Field(gt=0)] = 32.0
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    targets: str | list[str] = "all-linear"
    """Names of modules; `all-linear`: every linear layer but the output's."""
    merge: bool = True
    """The trained adapter is added into the weights, and the folder is a model like any other; without it, or over
    quantized weights, the folder holds the adapter alone."""


class SftConfig(Strict):
    """Supervised fine-tuning on demonstrations."""

    packing: bool = False
    """Several rows in one sequence, for long contexts on a GPU."""


class DpoConfig(Finite):
    """Direct preference optimisation (Rafailov et al. 2023, arXiv 2305.18290)."""

    beta: Annotated[float, Field(gt=0)] = 0.1
    """How close the student stays to where it began."""
    loss: Literal["sigmoid", "ipo", "hinge", "robust"] = "sigmoid"
    label_smoothing: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    """Share of pairs taken to be the wrong way round."""


class PrmConfig(Finite):
    """Process reward model: see `pluribus.training.prm`."""

    separator: str | None = None
    """Stands behind each step; the step's label sits on its last token, with an empty one on the step's own. None: as
    the student knows it, else a line's end."""
    join: str | None = None
    """What each step but the first begins with. None: as the student knows it, else nothing."""
    cut: Cut = "auto"
    """How replies are cut into steps when the model is asked."""
    fix_llm: bool = False
    """The head and the projection learn alone, the language model stays as it is (stage 1)."""
    contrast: Annotated[float, Field(ge=0)] = 0.5
    """Weight of the contrast between right and wrong replies' steps."""
    contrast_temperature: Annotated[float, Field(gt=0)] = 0.1
    projection: Positive = 128
    """Width of the contrast's space."""


class TrainConfig(Finite):
    """One training."""

    PARTS: ClassVar[Mapping[str, type[BaseModel]]] = {
        "lora": LoraConfig, "sft": SftConfig, "dpo": DpoConfig, "prm": PrmConfig,
    }  # fmt: skip

    kind: Kind
    model: str
    """The student: a folder, a hub id, or a member of a library such as zoo/qwen."""
    data: str
    """JSON lines, see docs/distil.md."""
    out: str
    """The folder that will hold the trained model."""
    eval_data: str | None = None
    check_against: list[str] = Field(default_factory=list)
    """Evaluation sets that no row may hold a question of: TASK[:SUBSET][@SPLIT] or files."""

    epochs: Annotated[float, Field(gt=0)] = 1.0
    max_steps: Positive | None = None
    """Optimiser steps; wins over epochs."""
    batch_size: Positive = 8
    """Rows on each device at once."""
    eval_batch_size: Positive = 8
    accumulation: Positive = 1
    """Batches whose gradients make one step."""
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    """None: the kind's own, see RATES."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    adam_beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    adam_beta2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    warmup_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.0
    scheduler: Scheduler = "linear"
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0
    max_length: Positive | None = None
    """Most tokens of a row; longer ones are cut at the end. None: what the model can take."""
    seed: int = Field(default=0, ge=0, lt=2**32)

    precision: Precision = "auto"
    """auto: bf16 on a GPU, fp32 on a CPU."""
    gradient_checkpointing: bool = False
    attention: str | None = None
    """transformers' attn_implementation, such as flash_attention_2."""
    lora: LoraConfig | None = None
    quantization: Quantization | None = None

    logging_steps: Positive = 10
    save_steps: Positive | None = None
    """None: no checkpoint on the way."""
    save_total_limit: Positive = 3
    report_to: Tracker = "none"
    resume: bool = True
    """Goes on from the last checkpoint of the same training."""
    nan_watch: bool = True
    """Stops at a loss that is no number, and never saves weights that are none."""
    check_memory: bool = True
    """Refuses what is estimated not to fit into the memory that is free; false: tries it."""

    sft: SftConfig = SftConfig()
    dpo: DpoConfig = DpoConfig()
    prm: PrmConfig = PrmConfig()

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        if self.quantization is not None and self.lora is None:
            raise ValueError(
                f"quantization is {self.quantization!r}: quantized weights do not learn; add lora, or drop quantization"
            )
        for name in ("sft", "dpo", "prm"):
            if name != self.kind and name in self.model_fields_set:
                raise ValueError(f"{name} does nothing in a training of kind {self.kind}; drop it")
        if self.kind == "prm" and self.prm.fix_llm and self.lora is not None:
            raise ValueError("prm.fix_llm trains the head alone, and lora adapts the model; drop one of them")
        return self

    @property
    def rate(self) -> float:
        """The learning rate in use."""
        if self.learning_rate is not None:
            return self.learning_rate
        small = self.lora is not None or (self.kind == "prm" and self.prm.fix_llm)
        return RATES[self.kind][small]


def read_training(path: Path, said: Mapping[str, Any] | None = None) -> TrainConfig:
    """The training file, with what was said beside it; ConfigError with one line for anything that is not one.

    Args:
        said: wins over the file; a mapping, such as that of `prm`, is laid over the file's.
    """
    return make_training(over(read_config(path, "a training file"), said or {}), str(path))


def make_training(values: Mapping[str, Any], place: str = "the command line") -> TrainConfig:
    """Checks plain values; raises ConfigError with one line that names key, value and what was expected.

    >>> make_training({"kind": "sft", "model": "zoo/qwen", "data": "rsft.jsonl", "out": "student"}).rate
    2e-05
    """
    try:
        return TrainConfig(**values)
    except ValidationError as problem:
        raise ConfigError(f"{place}: {words(problem.errors()[0], TrainConfig)}") from None


def over(under: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """
    >>> over({"model": "a", "prm": {"cut": "lines"}}, {"model": "b", "prm": {"fix_llm": True}})
    {'model': 'b', 'prm': {'cut': 'lines', 'fix_llm': True}}
    """
    found = dict(under)
    for name, value in said.items():
        both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = over(found[name], value) if both else value
    return found
