"""GPU memory that a training takes, computed before it starts: arithmetic on a model's sizes, without its weights.

What is counted, in bytes (p: parameters that learn, P: all parameters, N: devices, c: 2 in bfloat16, 4 in float32):

| part | one device | FSDP | ZeRO-2 | ZeRO-3 |
|---|---|---|---|---|
| weights | 4 P | 4 P / N | c P | c P / N |
| gradients | 4 p | 4 p / N | c p / N | c p / N |
| optimiser | 8 p | 8 p / N | 12 p / N | 12 p / N |

Frozen weights under LoRA take c bytes each, 1 or about a half when quantized. bfloat16 is autocast over float32
weights: each weight has a copy of 2 bytes in use. A process reward model beside the policy takes c bytes a weight on
each device, and a colocated vLLM its share of the GPU. Activations are those that autograd keeps for the backward pass
of a decoder with RMSNorm, rotary positions, grouped queries and a gated MLP, counted tensor by tensor as in Korthikanti
et al. 2022, arXiv 2205.05198; checkpointing keeps one residual stream per layer and computes the rest again. TRL
projects onto the vocabulary in tiles of 4,096 tokens by 32,768 entries: logits of tokens × vocabulary never exist.

Sources: Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054; Dettmers et al. 2022, arXiv 2110.02861 (8-bit optimisers);
Dettmers et al. 2023, "QLoRA", arXiv 2305.14314 (nf4 with double quantization).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from pathlib import Path
from typing import Any, Literal, get_args

from pluribus.errors import UsageError
from pluribus.training.config import LoraConfig, TrainConfig

Sharding = Literal["none", "fsdp", "zero2", "zero3"]
SHARDINGS: tuple[Sharding, ...] = get_args(Sharding)
NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a weight in nf4: 4 bits, an 8-bit constant for 64 of them, and a float32 for 256 constants."""
INT8 = 1.0
MOMENTS = {"adamw": 8.0, "adamw_8bit": 2 * (1 + 4 / 256)}
"""Bytes of the optimiser's two moments: float32, or 8 bits with a float32 for each block of 256."""
TILE = (4096, 32768)
"""Tokens × vocabulary that TRL 1.16 projects at once (trl/kernels/chunked_logprob.py)."""
TILE_COPIES = {"cuda": 0, "cpu": 7}
"""Copies of a tile in float32: one kernel folds it in its place on a GPU, torch's operations on a CPU do not."""
CONTEXT_GB = {"cuda": 0.7, "cpu": 0.0}
"""CUDA's own context, libraries and workspaces: an assumption, not a measurement."""
TIGHT = 0.9
"""Share of the device above which a fit is called tight: allocators leave holes."""
GB = 1e9


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder's sizes, as its config names them."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    """Width of the MLP; in a mixture of experts of all experts that one token goes through."""
    gated: bool = True
    """Three matrices in the MLP (SwiGLU), not two."""
    tied: bool = False
    """The output layer is the embedding."""
    qk_norm: int = 0
    """Elements of the norms over queries and keys in one layer; 0: there are none."""
    norms: int = 2
    """Norms over the residual stream in one layer."""
    biases: int = 0
    """Elements of all biases of one layer."""
    counted: int | None = None
    """Parameters where they were counted in the model; None: as computed from the sizes."""

    @property
    def linears(self) -> dict[str, tuple[int, int]]:
        """Matrices of one layer: name → (in, out)."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = {
            "q_proj": (self.hidden, queries), "k_proj": (self.hidden, keys), "v_proj": (self.hidden, keys),
            "o_proj": (queries, self.hidden),
        }  # fmt: skip
        up = {"gate_proj": (self.hidden, self.intermediate)} if self.gated else {}
        mlp = {"up_proj": (self.hidden, self.intermediate), "down_proj": (self.intermediate, self.hidden)}
        return {**attention, **up, **mlp}

    @property
    def embedding(self) -> int:
        return self.vocab * self.hidden

    @property
    def per_layer(self) -> int:
        """Parameters of one layer."""
        matrices = sum(rows * columns for rows, columns in self.linears.values())
        return matrices + self.norms * self.hidden + self.qk_norm + self.biases

    @property
    def parameters(self) -> int:
        """All of them.

        >>> round(QWEN3_0_6B.parameters / 1e9, 3), round(QWEN3_8B.parameters / 1e9, 3)
        (0.596, 8.191)
        """
        computed = self.embedding * (1 if self.tied else 2) + self.layers * self.per_layer + self.hidden
        return computed if self.counted is None else self.counted

    @property
    def quantized(self) -> int:
        """Parameters that bitsandbytes quantizes: the layers' matrices, not embeddings, norms or the output."""
        return self.layers * sum(rows * columns for rows, columns in self.linears.values())

    def adapted(self, lora: LoraConfig) -> int:
        """Parameters of the adapters: r (in + out) for each matrix that has one."""
        every = isinstance(lora.targets, str)
        sizes = [sum(size) for name, size in self.linears.items() if every or name in lora.targets]
        return self.layers * lora.r * sum(sizes)


QWEN3_0_6B = Shape(151936, 1024, 28, 16, 8, 128, 3072, tied=True, qk_norm=256)
QWEN3_8B = Shape(151936, 4096, 36, 32, 8, 128, 12288, qk_norm=256)

_QK_NORM: Mapping[str, Callable[[int, int, int], int]] = {
    "qwen3": lambda heads, kv_heads, dim: 2 * dim,
    "gemma3_text": lambda heads, kv_heads, dim: 2 * dim,
    "olmo2": lambda heads, kv_heads, dim: (heads + kv_heads) * dim,
}
"""Model type → elements of its norms over queries and keys."""
_NORMS = {"gemma2": 4, "gemma3_text": 4}
_KNOWN = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "olmo2", "phi3")
"""Model types whose parameters are computed from the config alone."""


def read_shape(values: Mapping[str, Any]) -> Shape | None:
    """A model's sizes from its config.json; None: a family whose parameters this file can not compute.

    >>> qwen3 = {"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "num_hidden_layers": 28,
    ...          "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072,
    ...          "tie_word_embeddings": True}
    >>> read_shape(qwen3) == QWEN3_0_6B
    True
    """
    if values.get("model_type") not in _KNOWN:
        return None
    return _shape(values.get)


def _shape(get: Callable[[str], Any]) -> Shape:
    hidden, heads = get("hidden_size"), get("num_attention_heads")
    kv_heads = get("num_key_value_heads") or heads
    dim = get("head_dim") or hidden // heads
    kind = get("model_type")
    intermediate = get("intermediate_size") or 4 * hidden
    return Shape(
        vocab=get("vocab_size"), hidden=hidden, layers=get("num_hidden_layers"), heads=heads, kv_heads=kv_heads,
        head_dim=dim, intermediate=intermediate, gated=kind not in ("phi", "gpt_neox", "gpt2"),
        tied=bool(get("tie_word_embeddings")),
        qk_norm=_QK_NORM[kind](heads, kv_heads, dim) if kind in _QK_NORM else 0,
        norms=_NORMS.get(kind, 2), biases=_biases(get, heads, kv_heads, dim, intermediate),
    )  # fmt: skip


def _biases(get: Callable[[str], Any], heads: int, kv_heads: int, dim: int, intermediate: int) -> int:
    keys, hidden = (heads + 2 * kv_heads) * dim, int(get("hidden_size"))
    attention = keys if get("model_type") == "qwen2" else (keys + hidden) * bool(get("attention_bias"))
    return attention + (2 * intermediate + hidden) * bool(get("mlp_bias"))


def shape_of(config: Any) -> Shape:
    """The same from a configuration of `transformers`; another family is built without memory and counted.

    Args:
        config: what `AutoConfig.from_pretrained` gives.
    """
    text = config.get_text_config()
    known = read_shape(text.to_dict())
    if known is not None:
        return known
    shape = _shape(lambda name: getattr(text, name, None))
    experts = getattr(text, "num_experts_per_tok", None)
    if experts:
        shape = replace(shape, intermediate=experts * (getattr(text, "moe_intermediate_size", 0) or shape.intermediate))
    return replace(shape, counted=_count(config))


def _count(config: Any) -> int:
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    return sum(value.numel() for value in model.parameters())


@dataclass(frozen=True, slots=True)
class Setup:
    """Where a training runs, and how long its rows are."""

    tokens: int
    """Of the longest row."""
    device: Literal["cuda", "cpu"] = "cuda"
    bf16: bool = True
    devices: int = 1
    sharding: Sharding = "none"
    optimizer: Literal["adamw", "adamw_8bit"] = "adamw"
    eager: bool = False
    """Attention that keeps a row's scores, tokens × tokens for each head, instead of a fused kernel."""
    beside: float = 0
    """Bytes that others hold on a device: a process reward model's weights, vLLM's share where it is colocated."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What one device has to hold, GB (1e9 bytes)."""

    parts: Mapping[str, float] = field(default_factory=dict)
    """Part → GB; see the head of this file."""
    total: float = 0.0
    """The most at one time. Less than the sum of the parts where gradients come as activations go."""

    def verdict(self, available_gb: float) -> Literal["fits", "tight", "too large"]:
        """
        >>> Memory({"weights": 7.5}, 7.5).verdict(8.0)
        'tight'
        """
        if self.total > available_gb:
            return "too large"
        return "tight" if self.total > TIGHT * available_gb else "fits"

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {gb:.1f}" for name, gb in self.parts.items() if gb >= 0.05)
        return f"{self.total:.1f} GB ({parts})"


def estimate(config: TrainConfig, shape: Shape, setup: Setup) -> Memory:
    """What one device holds at the fullest moment of a step.

    Args:
        config: kind, batch_size, accumulation, gradient_checkpointing, lora, quantization and prm.fix_llm count.
        shape: the student's sizes.
        setup: tokens ≥ 1; devices ≥ 1.

    Without accumulation or other devices the gradients come as the activations go, so the most at one time is weights +
    optimiser + max(activations, gradients); else gradients are there all the time.

    >>> from pluribus.training.config import make_training
    >>> def told(**wishes):
    ...     return make_training({"kind": "sft", "model": "m", "data": "d", "out": "o", "batch_size": 4, **wishes})
    >>> print(estimate(told(), QWEN3_0_6B, Setup(tokens=1024)))
    20.4 GB (weights 3.6, gradients 2.4, optimizer 4.8, activations 10.5, projection 0.9, context 0.7)
    >>> print(estimate(told(gradient_checkpointing=True), QWEN3_8B, Setup(tokens=4096, devices=8, sharding="fsdp")))
    41.8 GB (weights 7.4, gradients 4.1, optimizer 8.2, activations 18.7, projection 2.8, context 0.7)
    >>> qlora = told(gradient_checkpointing=True, lora={}, quantization="4bit")
    >>> print(estimate(qlora, QWEN3_8B, Setup(tokens=1024)))
    12.2 GB (weights 6.2, gradients 0.2, optimizer 0.3, activations 4.6, projection 0.3, context 0.7)
    """
    learned = _learned(config, shape)
    layers = _activations(config, shape, setup)
    parts = {
        "weights": _weights(config, shape, setup, learned),
        "gradients": _gradients(setup, learned),
        "optimizer": _optimizer(setup, learned),
        "reference": _reference(config, shape, setup),
        "beside": setup.beside,
        "activations": layers,
        "projection": _projection(config, shape, setup),
        "context": CONTEXT_GB[setup.device] * GB,
    }
    return Memory({name: value / GB for name, value in parts.items() if value}, _most(config, setup, parts) / GB)


def _most(config: TrainConfig, setup: Setup, parts: Mapping[str, float]) -> float:
    always = sum(parts[name] for name in ("weights", "optimizer", "reference", "beside", "context"))
    passing = parts["activations"] + parts["projection"]
    if config.accumulation > 1 or setup.devices > 1:
        return always + passing + parts["gradients"]
    return always + max(passing, parts["gradients"])


def _learned(config: TrainConfig, shape: Shape) -> int:
    if config.lora is not None:
        return shape.adapted(config.lora)
    if config.kind == "prm" and config.prm.fix_llm:
        return (config.prm.projection + 2) * shape.hidden
    return _body(config, shape)


def _body(config: TrainConfig, shape: Shape) -> int:
    """Parameters of the model; a process reward model has no output layer over the vocabulary."""
    return _headless(shape) if config.kind == "prm" else shape.parameters


def _headless(shape: Shape) -> int:
    return shape.parameters - (0 if shape.tied else shape.embedding)


def _low(setup: Setup) -> int:
    return 2 if setup.bf16 else 4


def _weights(config: TrainConfig, shape: Shape, setup: Setup, learned: int) -> float:
    body, shared = _body(config, shape), setup.sharding in ("fsdp", "zero3")
    if config.lora is not None:
        each = {None: _low(setup), "8bit": INT8, "4bit": NF4}[config.quantization]
        packed = shape.quantized if config.quantization else 0
        held = packed * each + (body - packed) * _low(setup) + 4 * learned
    elif setup.sharding in ("zero2", "zero3"):
        held = float(body * _low(setup))
    else:
        held = 4.0 * body
    return held / setup.devices + _gathered(shape, setup) if shared else held + _copies(config, setup, body)


def _copies(config: TrainConfig, setup: Setup, body: int) -> float:
    """Autocast's bfloat16 copies of float32 weights."""
    frozen = config.lora is not None or (config.kind == "prm" and config.prm.fix_llm)  # copies of these are not kept
    return 2.0 * body if setup.bf16 and setup.sharding == "none" and not frozen else 0.0


def _gathered(shape: Shape, setup: Setup) -> float:
    """Whole layers on a device that owns a part of each: the one at work, the next one, and the embeddings."""
    return float(_low(setup) * (2 * shape.per_layer + shape.embedding * (1 if shape.tied else 2)))


def _gradients(setup: Setup, learned: int) -> float:
    if setup.sharding == "none":
        return 4.0 * learned * (2 if setup.devices > 1 else 1)  # DistributedDataParallel sends them in buckets: a copy
    each = _low(setup) if setup.sharding in ("zero2", "zero3") else 4
    return each * learned / setup.devices


def _optimizer(setup: Setup, learned: int) -> float:
    moments = MOMENTS[setup.optimizer]
    if setup.sharding == "none":
        return moments * learned
    master = 4 if setup.sharding in ("zero2", "zero3") and setup.bf16 else 0
    return (moments + master) * learned / setup.devices


def _reference(config: TrainConfig, shape: Shape, setup: Setup) -> float:
    """The second model of DPO, and of GRPO with a divergence; with an adapter the model without it serves."""
    if config.kind not in ("dpo", "grpo") or config.lora is not None or (config.kind == "grpo" and not config.grpo.kl):
        return 0.0
    if setup.sharding in ("fsdp", "zero3"):
        return (4.0 if setup.sharding == "fsdp" else _low(setup)) * shape.parameters / setup.devices
    return 4.0 * shape.parameters + _copies(config, setup, shape.parameters)


def _activations(config: TrainConfig, shape: Shape, setup: Setup) -> float:
    """What autograd keeps in a forward pass, and one layer's worth in use during the backward pass."""
    rows = config.batch_size * (2 if config.kind == "dpo" else 1)
    tokens = rows * setup.tokens
    layer = tokens * kept_per_token(shape, setup)
    if config.kind == "prm" and config.prm.fix_llm:
        return float(2 * layer)
    stream = tokens * shape.hidden * 4
    if config.gradient_checkpointing:
        return float(shape.layers * stream + 2 * layer)
    return float(shape.layers * layer + layer + 2 * stream)


def kept_per_token(shape: Shape, setup: Setup) -> float:
    """Bytes that autograd keeps of one token in one layer.

    8 h for each of the norms (input and output in float32); the inputs of the matrices: under autocast 2 h for every
    one of them, in float32 4 h for each norm; 4 c a d for queries, keys, values and attention's output (a heads of d
    elements; keys and values are repeated for their groups); (4 + c) bytes for each element of the norms over queries
    and keys; c s for the mask; 4 c f in a gated MLP of width f.

    >>> small = Shape(100, 64, 2, 4, 2, 16, 176, qk_norm=32)
    >>> kept_per_token(small, Setup(tokens=64, bf16=False))  # as counted in autograd's own list, see the test
    6448.0
    """
    low, h = _low(setup), shape.hidden
    wide = shape.heads * shape.head_dim
    norms = shape.norms * 2 * 4 * h
    copies = (3 + (2 if shape.gated else 1)) * 2 * h if setup.bf16 else shape.norms * 4 * h
    qk = (4 + low) * (wide + shape.kv_heads * shape.head_dim) + 4 * (shape.heads + shape.kv_heads)
    attention = 4 * low * wide + 4 * shape.heads + low * setup.tokens
    scores = (4 + low) * shape.heads * setup.tokens if setup.eager else 0
    mlp = low * (4 if shape.gated else 3) * shape.intermediate
    return float(norms + 4 * shape.norms + copies + (qk if shape.qk_norm else 0) + attention + scores + mlp)


def _projection(config: TrainConfig, shape: Shape, setup: Setup) -> float:
    """TRL's tiles of logits, and the output layer's gradient in float32 where it learns."""
    if config.kind == "prm":
        return 0.0
    rows = config.batch_size * (2 if config.kind == "dpo" else 1)
    tokens = min(rows * setup.tokens, TILE[0])
    tile = _low(setup) * tokens * TILE[1] + 4 * TILE_COPIES[setup.device] * tokens * min(shape.vocab, TILE[1])
    return tile + (4.0 * shape.embedding if config.lora is None else 0.0)


def gpu_hours(
    shape: Shape, tokens: float, config: TrainConfig, peak_tflops: float = 989.0, share: float = 0.3
) -> float:
    """Hours of one GPU for a training: 6 P tokens operations, 8 P tokens with checkpointing, whose forward pass is done
    twice, and 2 P tokens more for DPO's reference.

    Args:
        tokens: in all epochs, prompts included; both replies of a preference.
        peak_tflops: of the GPU, 10¹² operations per second; 989: an H100 in bfloat16.
        share: of the peak that is reached, an assumption.

    >>> from pluribus.training.config import make_training
    >>> config = make_training({"kind": "sft", "model": "m", "data": "d", "out": "o", "gradient_checkpointing": True})
    >>> round(gpu_hours(QWEN3_8B, 20e6, config), 1)
    1.2

    Source: Kaplan et al. 2020, arXiv 2001.08361, section 2.1.
    """
    passes = (8 if config.gradient_checkpointing else 6) + (2 if config.kind == "dpo" and config.lora is None else 0)
    return passes * shape.parameters * tokens / (peak_tflops * 1e12 * share) / 3600


# --- before a training -----------------------------------------------------------------------------------------------


def check(config: TrainConfig, model: Any, tokens: int, setup: Setup | None = None) -> Memory:
    """The estimate for this machine; UsageError where it is more than there is, with what would fit, unless the config
    wants no such check.

    Args:
        model: the student's configuration, as `transformers` gives it.
        tokens: of the longest row.
        setup: None: as this process was started.
    """
    shape, place = shape_of(model), setup or setup_of(config, tokens)
    found = estimate(config, shape, place)
    if config.check_memory:
        refuse(config, shape, place, found, available_gb(place.device))
    return found


def refuse(config: TrainConfig, shape: Shape, setup: Setup, found: Memory, there_gb: float) -> None:
    """UsageError where the estimate is more than the device has."""
    if found.verdict(there_gb) != "too large":
        return
    place = "the GPU" if setup.device == "cuda" else "this machine's memory"
    raise UsageError(
        f"training {config.model} needs about {found} with batch_size {config.batch_size} and rows of up to "
        f"{setup.tokens:,} tokens, and {place} has {there_gb:.1f} GB free",
        hint=f"{_advice(config, shape, setup, there_gb)}; check_memory: false tries it all the same",
    )


def _advice(config: TrainConfig, shape: Shape, setup: Setup, there_gb: float) -> str:
    """The first change that suffices, in the order of what it costs; changes add up."""
    said: list[str] = []
    now = config
    for words, change in _changes(config, setup):
        now = now.model_copy(update=change)
        said.append(words)
        needed = estimate(now, shape, setup)
        if needed.verdict(there_gb) != "too large":
            return f"{', '.join(said)} would need about {needed.total:.1f} GB"
    many = "more devices with recipes/accelerate/fsdp.yaml or zero3.yaml, " if setup.device == "cuda" else ""
    return f"even {', '.join(said)} would not suffice: take {many}a smaller model, or a smaller max_length"


def _changes(config: TrainConfig, setup: Setup) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    if not config.gradient_checkpointing:
        found.append(("gradient_checkpointing: true", {"gradient_checkpointing": True}))
    if config.batch_size > 1:
        again = config.batch_size * config.accumulation
        found.append((f"batch_size: 1 with accumulation: {again}", {"batch_size": 1, "accumulation": again}))
    if config.lora is None and not (config.kind == "prm" and config.prm.fix_llm):
        found.append(("lora: {}", {"lora": LoraConfig()}))
    if config.quantization is None and setup.device == "cuda":
        found.append(("quantization: 4bit", {"quantization": "4bit"}))
    return found


def setup_of(config: TrainConfig, tokens: int) -> Setup:
    """Where this process is: device, precision, and how `accelerate launch` shards."""
    import torch

    there = torch.cuda.is_available()
    return Setup(
        tokens=tokens, device="cuda" if there else "cpu", beside=_beside(config, there),
        bf16=config.precision == "bf16" or (config.precision == "auto" and there),
        devices=int(os.environ.get("WORLD_SIZE", "1")), sharding=sharding_of(os.environ),
    )  # fmt: skip


def _beside(config: TrainConfig, cuda: bool) -> float:
    """What reinforcement learning has on a device beside the policy: each process has all of it."""
    import torch

    from pluribus.backends._loading import load_config
    from pluribus.training._grpo_steps import folder_of

    wishes, held = config.grpo, 0.0
    if config.kind != "grpo":
        return held
    if wishes.prm is not None:
        held += _headless(shape_of(load_config(folder_of(wishes.prm), None))) * (2 if cuda else 4)
    if cuda and wishes.vllm is not None and wishes.vllm.mode == "colocate":
        held += wishes.vllm.memory * torch.cuda.mem_get_info()[1]
    return held


def sharding_of(environment: Mapping[str, str]) -> Sharding:
    """What `accelerate launch` said by its environment variables.

    >>> sharding_of({"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"})
    'zero2'
    >>> sharding_of({})
    'none'
    """
    if environment.get("ACCELERATE_USE_FSDP", "").lower() == "true":
        return "fsdp"
    if environment.get("ACCELERATE_USE_DEEPSPEED", "").lower() != "true":
        return "none"
    stage = environment.get("ACCELERATE_DEEPSPEED_ZERO_STAGE")
    file = environment.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "none")
    if file not in ("", "none"):
        stage = json.loads(Path(file).read_text("utf-8")).get("zero_optimization", {}).get("stage", 0)
    return {"2": "zero2", "3": "zero3"}.get(str(stage), "none")  # type: ignore[return-value]


def available_gb(device: str) -> float:
    """Memory that is free now, GB: of this process's GPU, or of the machine and its container on a CPU."""
    if device == "cuda":
        import torch

        return torch.cuda.mem_get_info()[0] / GB
    import psutil  # type: ignore[import-untyped]  # comes without types

    return min(float(psutil.virtual_memory().available), _container()) / GB


def _container() -> float:
    """What is left of a container's limit, bytes; infinite without one."""
    limit, used = (_number(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    return float("inf") if limit is None or used is None else limit - used


def _number(file: Path) -> float | None:
    try:
        return float(file.read_text("ascii"))
    except (OSError, ValueError):  # no such file; or `max`: no limit
        return None


def longest(rows: Iterable[Mapping[str, Any]], tokenizer: Any, max_length: int | None = None, look: int = 8) -> int:
    """Tokens of the longest row, cut to max_length. The `look` rows with the most characters are tokenised.

    Args:
        rows: demonstrations, preferences or steps.
        tokenizer: of `transformers`.
        max_length: tokens; None: no cut.
    """
    most_said = nlargest(look, map(_conversations, rows), key=_letters)
    texts = [_rendered(messages, tokenizer) for row in most_said for messages in row]
    most = max(
        (len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]) for text in texts), default=0
    )
    return most if max_length is None else min(most, max_length)


def _conversations(row: Mapping[str, Any]) -> list[list[Mapping[str, str]]]:
    """A row's conversations: one, or a preference's two."""
    prompt = row["prompt"] if not isinstance(row["prompt"], str) else [{"role": "user", "content": row["prompt"]}]
    replies = [row[name] for name in ("completion", "chosen", "rejected") if name in row] or [_reply(row)]
    return [[*prompt, *reply] for reply in replies]


def _reply(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """A row of steps: what stands behind each step is about as long as a line's end."""
    said = "\n".join(row["completions"]) if "completions" in row else row.get("solution", "")
    return [{"role": "assistant", "content": said}]


def _letters(conversations: Sequence[Sequence[Mapping[str, str]]]) -> int:
    """About how long a row is, without rendering it; of two replies the longer one counts."""
    return max(sum(len(message["content"]) for message in messages) for messages in conversations)


def _rendered(messages: Sequence[Mapping[str, str]], tokenizer: Any) -> str:
    if tokenizer.chat_template is None:
        return "\n\n".join(message["content"] for message in messages)
    text: str = tokenizer.apply_chat_template(messages, tokenize=False)
    return text
