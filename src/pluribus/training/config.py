"""What one training is: a model, its data, and how it is taught, as strict values. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pluribus.config import Strict, read_config, words
from pluribus.errors import ConfigError
from pluribus.objectives.estimators import check
from pluribus.steps import Cut

Kind = Literal["sft", "dpo", "prm", "grpo"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Precision = Literal["auto", "fp32", "bf16"]
Tracker = Literal["none", "trackio", "wandb", "tensorboard"]
Scheduler = Literal["linear", "cosine", "constant", "constant_with_warmup"]
Quantization = Literal["4bit", "8bit"]

RATES: Mapping[Kind, tuple[float, float]] = {
    "sft": (2e-5, 2e-4), "dpo": (1e-6, 1e-5), "prm": (1e-5, 1e-4), "grpo": (1e-6, 1e-5),
}  # fmt: skip
"""Kind → learning rate when the file says none: of all weights, of an adapter or a head alone.

Those of sft, dpo and grpo are TRL's defaults; ten times as much for LoRA as in Schulman and Thinking Machines Lab 2025,
"LoRA Without Regret"."""
Objective = Literal["mean", "pass", "max", "best_of", "majority", "weighted_majority"]
Estimator = Literal["urloo", "loo1", "loo", "naive", "rloo"]
RewardMode = Literal["VR", "PRM", "PRMVR", "ORM"]
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


class VllmConfig(Strict):
    """Where TRL lets vLLM write the samples: a server of its own (`trl vllm-serve`), or the training's own devices."""

    mode: Literal["server", "colocate"] = "server"
    url: str = "http://127.0.0.1:8000"
    """Of the server."""
    memory: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """Share of each GPU that vLLM takes on the training's own devices."""


class GrpoConfig(Finite):
    """Reinforcement learning for what is deployed: see `pluribus.training.grpo` and docs/rl.md."""

    objective: Objective = "mean"
    """What is made better: one sample (`mean`), the best of k (`pass`, `max`, `best_of`), or their vote."""
    k: Positive | None = None
    """Samples that the deployed procedure sees; every objective but `mean` needs it."""
    k_end: Positive | None = None
    """k goes there in a straight line over the training, rounded; None: it stays."""
    estimator: Estimator = "urloo"
    """`rloo` is urloo at k = 1."""
    samples: Annotated[int, Field(ge=2)] = 8
    """n, of each prompt; at least k."""
    prompts: Positive | None = None
    """Prompts of which samples are drawn at once; None: as many as one optimiser step takes."""

    reward_mode: RewardMode = "VR"
    """VR: the task's checker; PRM: a process reward model's steps; PRMVR: both; ORM: an outcome reward model."""
    reward_baseline: Literal["step", "token"] = "step"
    verifiable_reward_coef: float = 1.0
    """Weight of the outcome's part beside the steps'."""
    prm: str | None = None
    """Folder of the process reward model."""
    credit_temperature: Annotated[float, Field(gt=0)] = 0.1
    judges: str | None = None
    """A file of judges: their consensus is the outcome reward of ORM, and the score of best_of and weighted votes."""
    self_labelled: bool = False
    """Right is what most samples of the group say; no key is read for the reward."""

    kl: Annotated[float, Field(ge=0)] = 0.0
    """Weight of the divergence from the start, inside the loss, with a gradient; 0: no second model is kept."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_new_tokens: Positive = 256
    """Of each sample; the loss is divided by it."""
    iterations: Positive = 1
    """Times each batch of samples is learned from."""
    clip: Annotated[float, Field(gt=0)] = 0.2
    vllm: VllmConfig | None = None

    eval_steps: Positive | None = None
    """Steps between two looks at the held-out questions; None: before and after, and where labels are the model's own
    ten times on the way."""
    eval_samples: Positive | None = None
    """Of each held-out question; None: 4, or as many as k."""
    collapse_alarm: Annotated[float, Field(ge=0, lt=1)] = 0.3
    """Alarm when the samples' diversity above that of one (K* − 1) falls below this share of what it was at first."""
    length_alarm: Annotated[float, Field(ge=0, lt=1)] = 0.6
    """Alarm when replies are shorter than this share of what they were at first."""
    stop_on_alarm: bool = False

    @model_validator(mode="before")
    @classmethod
    def _no_critic(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("estimator") == "gae":
            raise ValueError(
                "estimator gae needs a value network beside the policy, and none is trained here: groups of samples "
                "are their own baseline; use urloo, which is RLOO for objective mean"
            )
        return values

    @model_validator(mode="after")
    def _fits(self) -> GrpoConfig:
        for said in (self._group(), self._reward(), self._labels(), self._unused()):
            if said is not None:
                raise ValueError(said)
        return self

    def _group(self) -> str | None:
        """What is wrong with k and n."""
        if self.objective == "mean":
            if self.k not in (None, 1) or self.k_end not in (None, 1):
                return f"k is {self.k}, and objective mean sees one sample; drop k, or name another objective"
            if self.estimator not in ("urloo", "rloo"):
                return f"estimator {self.estimator} is not there for objective mean; use urloo, which is RLOO"
            return None
        if self.k is None:
            return (
                f"k is missing: objective {self.objective} is about k samples; say for example k: {self.samples // 2}"
            )
        if self.estimator == "rloo":
            return f"estimator rloo is that of objective mean; use urloo or loo1 for {self.objective}"
        for k in (self.k, self.k_end or self.k):
            if k > self.samples:
                return f"k is {k}, and there are {self.samples} samples per prompt; expected k of at most that many"
            try:
                check(self.estimator, self.samples, k)
            except ValueError as problem:
                return str(problem)
        return None

    def _reward(self) -> str | None:
        """What is wrong with where the reward comes from."""
        if self.reward_mode in ("PRM", "PRMVR") and self.prm is None:
            return f"reward_mode {self.reward_mode} needs a process reward model; name its folder with prm"
        if self.reward_mode == "ORM" and self.prm is None and self.judges is None:
            return "reward_mode ORM needs a reward model; name judges, or the folder of a process reward model with prm"
        if self.reward_mode == "PRM" and self.objective != "mean":
            return f"objective {self.objective} is about outcomes, and reward_mode PRM has none; use PRMVR"
        if self.reward_mode == "ORM" and self.objective in ("pass", "majority", "weighted_majority"):
            return (
                f"objective {self.objective} needs rewards of answers, right or not, and reward_mode ORM gives each "
                "reply its own; use mean, max or best_of"
            )
        if self.objective in ("best_of", "weighted_majority") and self.prm is None and self.judges is None:
            return f"objective {self.objective} needs scores of the samples; name judges, or a folder with prm"
        return None

    def _unused(self) -> str | None:
        """A wish that would change nothing."""
        scored = self.reward_mode == "ORM" or self.objective in ("best_of", "weighted_majority")
        stepwise = self.reward_mode in ("PRM", "PRMVR")
        if self.judges is not None and not scored:
            return (
                f"judges are not asked with reward_mode {self.reward_mode} and objective {self.objective}; say "
                "reward_mode ORM, or drop them"
            )
        if self.prm is not None and not (stepwise or scored):
            return (
                f"prm marks nothing with reward_mode {self.reward_mode} and objective {self.objective}; say "
                "reward_mode PRMVR, or drop it"
            )
        for name, wanted, modes in (
            ("reward_baseline", stepwise, "PRM and PRMVR"),
            ("verifiable_reward_coef", self.reward_mode == "PRMVR", "PRMVR"),
        ):
            if getattr(self, name) != type(self).model_fields[name].default and not wanted:
                return f"{name} does nothing with reward_mode {self.reward_mode}; it is for {modes}"
        return None

    def _labels(self) -> str | None:
        """What is wrong with labels of the model's own."""
        if not self.self_labelled:
            return None
        if self.reward_mode not in ("VR", "PRMVR"):
            return f"self_labelled makes the labels of reward_mode VR and PRMVR, found {self.reward_mode}"
        if self.objective != "mean":
            return (
                f"self_labelled already takes the vote for the truth; with it objective is mean, found {self.objective}"
            )
        return None


class TrainConfig(Finite):
    """One training."""

    PARTS: ClassVar[Mapping[str, type[BaseModel]]] = {
        "lora": LoraConfig, "sft": SftConfig, "dpo": DpoConfig, "prm": PrmConfig, "grpo": GrpoConfig,
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
    grpo: GrpoConfig = GrpoConfig()

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        if self.quantization is not None and self.lora is None:
            raise ValueError(
                f"quantization is {self.quantization!r}: quantized weights do not learn; add lora, or drop quantization"
            )
        for name in KINDS:
            if name != self.kind and name in self.model_fields_set:
                raise ValueError(f"{name} does nothing in a training of kind {self.kind}; drop it")
        if self.kind == "prm" and self.prm.fix_llm and self.lora is not None:
            raise ValueError("prm.fix_llm trains the head alone, and lora adapts the model; drop one of them")
        if self.grpo.eval_steps is not None and self.eval_data is None:
            raise ValueError(
                "grpo.eval_steps is about held-out questions, and there are none; name some with eval_data"
            )
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
