"""The judges file: a council of judges as one YAML mapping, strict. An unknown key is an error that lists the keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from pluribus.config import BudgetConfig, SamplingConfig, Strict, Weight, read_config, words
from pluribus.consensus.rewards import Normalise
from pluribus.errors import ConfigError

ROLE_WEIGHTS: Mapping[str, float] = {"teacher": 0.5, "critic": 0.3, "diversity": 0.2}
"""Role → weight when the file says none: reasoning anchor, technical validation, general reasoning and safety."""
BITS: Mapping[str, int] = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
"""Precision → bits a parameter takes."""

Precision = Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4"]
THRESHOLDS: Mapping[Normalise, float] = {"zscore": 0.02, "rank": 0.03, "minmax": 0.08, "none": 0.08}
"""Normalisation → disagreement above which an item is not trained on, when the file says none.

About 0.6 of what judges who see nothing in common would have, three of equal weight; under zscore it lies between "one
is undecided" and "one contradicts the others" (docs/findings-judges.md)."""


class JudgeConfig(SamplingConfig):
    """One judge."""

    name: str | None = None
    """None: the role, else `judge N`."""
    role: str | None = None
    """teacher, critic, diversity, or a word of one's own."""
    kind: str = "score"
    """A file of `judges/`."""
    model: str | dict[str, Any] | None = None
    """None for a kind that asks no model."""
    weight: Weight | None = None
    """None: the role's, else 1."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Of the kind: criteria, samples, …"""
    prompts: str | None = None
    precision: Precision | None = None
    """How the weights are held: a local model is loaded so; of a served one it is what the server was told."""
    parameters_b: Annotated[float, Field(gt=0, le=1e5)] | None = None
    """Parameters of the model, 10⁹, for the memory sum."""


class JudgesConfig(Strict):
    """A council of judges and what is made of their scores."""

    PARTS: ClassVar[Mapping[str, type[BaseModel]]] = {"judges": JudgeConfig, "budget": BudgetConfig}

    judges: list[JudgeConfig] = Field(min_length=1)
    normalise: Normalise = "zscore"
    threshold: float = Field(default=THRESHOLDS["zscore"], ge=0, le=1)
    """Disagreement above which an item is judged again, and after that left to a person; by default the one in
    THRESHOLDS for the normalisation."""
    max_rounds: int = Field(default=1, ge=0, le=10)
    """Times a disputed item is judged again, each judge reading the others' reasons."""
    criteria: str | None = None
    """What counts; for every judge whose kind has criteria and whose settings name none."""
    device_gb: float | None = Field(default=None, gt=0)
    """Memory of the device that the models with `parameters_b` share, 10⁹ bytes."""

    seed: int = Field(default=0, ge=0)
    budget: BudgetConfig = BudgetConfig()
    prices: str | None = None
    concurrency: int = Field(default=256, ge=1)
    retries: int = Field(default=5, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _threshold_of_the_scale(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get("threshold") is not None:
            return values
        how = values.get("normalise", "zscore")
        return {**values, "threshold": THRESHOLDS[how]} if how in get_args(Normalise) else values

    @model_validator(mode="after")
    def _usable(self) -> JudgesConfig:
        names = judge_names(self)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"judges: two judges are named {twice[0]!r}; give each a name of its own")
        if not sum(judge_weights(self)):
            raise ValueError("judges: all weights are 0; at least one judge needs a weight above 0")
        return self


def judge_names(config: JudgesConfig) -> list[str]:
    """Each judge's name: its own, else its role, else its place.

    >>> judge_names(make_judges({"judges": [{"role": "critic"}, {}, {"name": "Ada"}]}))
    ['critic', 'judge 2', 'Ada']
    """
    return [one.name or one.role or f"judge {place}" for place, one in enumerate(config.judges, 1)]


def judge_weights(config: JudgesConfig) -> list[float]:
    """Each judge's weight: its own, else its role's, else 1.

    >>> judge_weights(make_judges({"judges": [{"role": "critic"}, {"weight": 2.0}, {}]}))
    [0.3, 2.0, 1.0]
    """
    return [one.weight if one.weight is not None else ROLE_WEIGHTS.get(one.role or "", 1.0) for one in config.judges]


def weights_gb(judge: JudgeConfig) -> float | None:
    """Memory of a judge's weights, 10⁹ bytes; None where parameters or precision are not said.

    >>> weights_gb(JudgeConfig(parameters_b=8.0, precision="int8"))
    8.0
    """
    if judge.parameters_b is None or judge.precision is None:
        return None
    return judge.parameters_b * BITS[judge.precision] / 8


def total_gb(config: JudgesConfig) -> float | None:
    """Memory of all weights that are known, 10⁹ bytes; None where none is. Judges of one model share its weights.

    >>> twice = {"model": "vllm/m@http://127.0.0.1:8001/v1", "parameters_b": 8, "precision": "fp16"}
    >>> total_gb(make_judges({"judges": [twice, {**twice, "kind": "verdict"}]}))
    16.0
    """
    held = {(repr(one.model), one.precision): gb for one in config.judges if (gb := weights_gb(one)) is not None}
    return math.fsum(held.values()) if held else None


def read_judges(path: Path) -> JudgesConfig:
    """The judges file; ConfigError with one line for anything that is not one."""
    return make_judges(read_config(path, "a judges file"), str(path))


def make_judges(values: Mapping[str, Any], place: str = "judges") -> JudgesConfig:
    """Checks plain values; raises ConfigError with one line that names key, value and what was expected."""
    try:
        return JudgesConfig(**values)
    except ValidationError as problem:
        raise ConfigError(f"{place}: {words(problem.errors()[0], JudgesConfig)}") from None
