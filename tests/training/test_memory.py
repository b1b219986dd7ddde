"""The estimate's parts against what models, autograd and peft really hold."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.training.files import rows
from tests.training.grpo_files import SHAPE, step_model

from pluribus import zoo
from pluribus.errors import UsageError
from pluribus.training import TrainConfig, make_training
from pluribus.training.config import LoraConfig
from pluribus.training.memory import (
    NF4,
    QWEN3_0_6B,
    QWEN3_8B,
    Memory,
    Setup,
    Shape,
    available_gb,
    check,
    estimate,
    kept_per_token,
    longest,
    read_shape,
    refuse,
    shape_of,
    sharding_of,
)

transformers = pytest.importorskip("transformers")


def config_of(**wishes: Any) -> TrainConfig:
    return make_training({"kind": "sft", "model": "Qwen/Qwen3-8B", "data": "d", "out": "o", "batch_size": 4, **wishes})


def small(family: str, **more: Any) -> Any:
    sizes = {
        "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 176, "pad_token_id": 0, **more,
    }  # fmt: skip
    return transformers.AutoConfig.for_model(family, **sizes)


def built(config: Any) -> Any:
    import torch

    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config)


# --- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("qwen3", {"head_dim": 32, "tie_word_embeddings": True}),
        ("qwen3", {"attention_bias": True}),
        ("llama", {"mlp_bias": True}),
        ("llama", {"attention_bias": True, "num_key_value_heads": 4}),
        ("qwen2", {}),
        ("mistral", {"head_dim": 8}),
        ("gemma2", {"head_dim": 16}),
        ("gemma3_text", {"head_dim": 16}),
        ("olmo2", {}),
        ("phi3", {}),
        ("gpt_neox", {}),
        ("phi", {}),
    ],
)
def test_parameters_are_those_of_the_model(family: str, more: dict[str, Any]) -> None:
    config = small(family, **more)
    assert shape_of(config).parameters == sum(value.numel() for value in built(config).parameters())


@pytest.mark.parametrize("name", zoo.members())
def test_parameters_of_the_zoo(name: str) -> None:
    from safetensors import safe_open

    config = transformers.AutoConfig.from_pretrained(zoo.folder(name))
    with safe_open(zoo.folder(name) / "model.safetensors", "pt") as held:
        assert shape_of(config).parameters == sum(held.get_tensor(key).numel() for key in held.keys())  # noqa: SIM118


def test_a_family_that_is_not_known_is_not_guessed() -> None:
    assert read_shape({"model_type": "mamba", "hidden_size": 64}) is None


@pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning")
def test_adapters_are_as_large_as_peft_s() -> None:
    peft = pytest.importorskip("peft")
    config = small("qwen3")
    for targets in ("all-linear", ["q_proj", "v_proj"]):
        adapted = peft.get_peft_model(built(config), peft.LoraConfig(r=8, target_modules=targets))
        assert shape_of(config).adapted(LoraConfig(r=8, targets=targets)) == adapted.get_nb_trainable_parameters()[0]


# --- activations -----------------------------------------------------------------------------------------------------


def kept(config: Any, *, bf16: bool, rows: int = 2, tokens: int = 64) -> float:
    """Bytes that autograd holds after a forward pass over padded rows, the model's own weights and copies left out."""
    import torch

    model = built(config)
    weights = {value.untyped_storage().data_ptr() for value in model.parameters()}
    shapes = {tuple(value.shape) for value in model.parameters()}
    held: dict[int, Any] = {}

    def pack(value: Any) -> Any:
        copied = bf16 and value.dtype == torch.bfloat16 and tuple(reversed(value.shape)) in shapes
        if value.untyped_storage().data_ptr() not in weights and not copied:
            held[value.untyped_storage().data_ptr()] = value
        return value

    mask = torch.ones(rows, tokens, dtype=torch.long)
    mask[0, -3:] = 0
    low = torch.autocast("cpu", torch.bfloat16) if bf16 else contextlib.nullcontext()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value), low:
        model.model(input_ids=torch.ones(rows, tokens, dtype=torch.long), attention_mask=mask)
    return sum(value.untyped_storage().nbytes() for value in held.values()) / (rows * tokens)


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_a_layer_s_activations_are_what_autograd_keeps(family: str, bf16: bool) -> None:
    more = {"head_dim": 16} if family == "qwen3" else {}
    two, four = (small(family, num_hidden_layers=layers, **more) for layers in (2, 4))
    measured = (kept(four, bf16=bf16) - kept(two, bf16=bf16)) / 2
    assert kept_per_token(shape_of(two), Setup(tokens=64, bf16=bf16)) == measured


def test_attention_that_keeps_its_scores_grows_with_the_square_of_the_length() -> None:
    def both(tokens: int) -> float:
        plain, eager = (kept_per_token(QWEN3_0_6B, Setup(tokens=tokens, eager=eager)) for eager in (False, True))
        return eager - plain

    assert both(2048) == 2 * both(1024) > 0


# --- the whole -------------------------------------------------------------------------------------------------------


def parts(config: TrainConfig, shape: Shape = QWEN3_8B, **setup: Any) -> dict[str, float]:
    return dict(estimate(config, shape, Setup(**{"tokens": 1024, **setup})).parts)


def test_full_training_holds_16_bytes_a_parameter_before_any_token() -> None:
    found = parts(config_of(), bf16=False)
    assert sum(found[name] for name in ("weights", "gradients", "optimizer")) == pytest.approx(8.190735 * 16, rel=1e-5)


def test_zero_divides_what_it_says() -> None:
    """K = 12 bytes of master weights and moments, 2 of gradients, 2 of weights: Rajbhandari et al., figure 1."""
    size = 8.190735
    two, three = (parts(config_of(), devices=64, sharding=name) for name in ("zero2", "zero3"))
    assert two["weights"] == pytest.approx(2 * size, rel=1e-5)
    assert two["gradients"] + two["optimizer"] == pytest.approx((2 + 12) * size / 64, rel=1e-5)
    assert three["gradients"] + three["optimizer"] == two["gradients"] + two["optimizer"]
    gathered = 2 * (2 * QWEN3_8B.per_layer + 2 * QWEN3_8B.embedding) / 1e9
    assert three["weights"] == pytest.approx(2 * size / 64 + gathered, rel=1e-5)


@pytest.mark.parametrize("sharding", ["fsdp", "zero2", "zero3"])
def test_more_devices_never_need_more_on_each(sharding: Any) -> None:
    totals = [estimate(config_of(), QWEN3_8B, Setup(1024, devices=n, sharding=sharding)).total for n in (2, 4, 8, 64)]
    assert totals == sorted(totals, reverse=True) and totals[0] > totals[-1]


def test_four_bits_are_about_half_a_byte() -> None:
    assert pytest.approx(0.516, abs=1e-3) == NF4
    packed = parts(config_of(lora={}, quantization="4bit"))["weights"]
    eight, plain = parts(config_of(lora={}, quantization="8bit"))["weights"], parts(config_of(lora={}))["weights"]
    assert plain - packed == pytest.approx((2 - NF4) * QWEN3_8B.quantized / 1e9)
    assert plain - eight == pytest.approx(1.0 * QWEN3_8B.quantized / 1e9)


def test_an_eight_bit_optimizer_holds_a_quarter() -> None:
    whole, eighth = (parts(config_of(), optimizer=name)["optimizer"] for name in ("adamw", "adamw_8bit"))
    assert eighth == pytest.approx(whole / 4, rel=0.02)


def test_dpo_has_a_second_model_and_two_replies() -> None:
    sft, dpo = parts(config_of(), bf16=False), parts(config_of(kind="dpo"), bf16=False)
    assert dpo["reference"] == pytest.approx(8.190735 * 4, rel=1e-5)
    assert dpo["activations"] == 2 * sft["activations"]
    assert "reference" not in parts(config_of(kind="dpo", lora={}))


def test_a_process_reward_model_beside_the_policy_is_counted(tmp_path: Path) -> None:
    prm, policy = step_model(tmp_path), transformers.Qwen3Config(**SHAPE)
    weights = sum(value.nbytes for value in load_file(tmp_path / "model.safetensors").values())
    wishes: dict[str, Any] = {"kind": "grpo", "check_memory": False, "grpo": {"reward_mode": "PRMVR", "prm": prm}}
    alone = check(config_of(**wishes | {"grpo": {}}), policy, 64)
    wishes["grpo"]["prm"] = f"local/{prm}"
    both = check(config_of(**wishes), policy, 64)
    assert both.total - alone.total == pytest.approx(both.parts["beside"])
    assert both.parts["beside"] * 1e9 == pytest.approx(weights, rel=0.01)  # its head of two rows is not counted
    assert "beside" not in alone.parts


def test_a_head_alone_keeps_no_activations_of_the_layers() -> None:
    whole, head = parts(config_of(kind="prm")), parts(config_of(kind="prm", prm={"fix_llm": True}))
    assert head["activations"] < whole["activations"] / 10
    assert head.get("optimizer", 0) < 0.01 and head["weights"] == pytest.approx(4 * (8.190735 - 0.622330), rel=1e-4)


def test_checkpointing_keeps_one_stream_a_layer() -> None:
    tokens, shape = 4 * 1024, QWEN3_0_6B
    kept_bytes = kept_per_token(shape, Setup(tokens=1024))
    found = parts(config_of(gradient_checkpointing=True), shape)["activations"] * 1e9
    assert found == pytest.approx(tokens * (28 * 4 * 1024 + 2 * kept_bytes))
    assert found < parts(config_of(), shape)["activations"] * 1e9 / 4


def test_gradients_come_as_activations_go() -> None:
    once = estimate(config_of(), QWEN3_0_6B, Setup(tokens=1024))
    again = estimate(config_of(accumulation=2), QWEN3_0_6B, Setup(tokens=1024))
    assert once.parts == again.parts
    assert again.total == pytest.approx(sum(again.parts.values()))
    assert again.total - once.total == pytest.approx(once.parts["gradients"])


# --- before a training -----------------------------------------------------------------------------------------------


def complaint(config: TrainConfig, there_gb: float, **setup: Any) -> str:
    place = Setup(**{"tokens": 1024, **setup})
    with pytest.raises(UsageError) as raised:
        refuse(config, QWEN3_8B, place, estimate(config, QWEN3_8B, place), there_gb)
    return str(raised.value)


def test_what_does_not_fit_is_refused_with_what_would() -> None:
    told = complaint(config_of(), 80)
    assert told.startswith("training Qwen/Qwen3-8B needs about ")
    assert "with batch_size 4 and rows of up to 1,024 tokens, and the GPU has 80.0 GB free; " in told
    assert "gradient_checkpointing: true, batch_size: 1 with accumulation: 4, lora: {} would need about 19" in told
    assert "quantization: 4bit would need about" in complaint(config_of(), 12)
    assert "would not suffice: take more devices with recipes/accelerate/fsdp.yaml" in complaint(config_of(), 4)


def test_on_a_cpu_nothing_is_said_of_gpus() -> None:
    told = complaint(config_of(), 12, device="cpu", bf16=False)
    assert "this machine's memory has 12.0 GB free" in told
    assert "4bit" not in told and "devices" not in told


def test_what_fits_is_not_refused() -> None:
    config = config_of(lora={}, gradient_checkpointing=True)
    setup = Setup(tokens=1024)
    refuse(config, QWEN3_8B, setup, estimate(config, QWEN3_8B, setup), 40)
    assert [Memory({}, 8.0).verdict(gb) for gb in (7.9, 8.5, 9.0)] == ["too large", "tight", "fits"]


def test_the_free_memory_of_this_machine_is_known() -> None:
    assert 0.05 < available_gb("cpu") < 1e5


def test_how_accelerate_shards_is_read_from_what_it_says(tmp_path: Any) -> None:
    file = tmp_path / "zero.json"
    file.write_text('{"zero_optimization": {"stage": 3}}', "utf-8")
    deepspeed = {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_CONFIG_FILE": str(file)}
    assert sharding_of(deepspeed) == "zero3"
    assert sharding_of({**deepspeed, "ACCELERATE_DEEPSPEED_CONFIG_FILE": "none"}) == "none"
    assert sharding_of({"ACCELERATE_USE_FSDP": "true"}) == "fsdp"


@pytest.mark.parametrize("kind", ["sft", "dpo", "prm"])
def test_the_longest_row_is_found(kind: str) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(zoo.folder("qwen"))
    found = longest(rows(kind), tokenizer)
    one = {"sft": "completion", "dpo": "chosen", "prm": "completions"}[kind]
    longer = rows(kind)
    longer[5][one] = (longer[5][one] * 40) if kind == "prm" else [{"role": "assistant", "content": "7 + 1 = 8. " * 60}]
    assert 40 < found < 200 < longest(longer, tokenizer)
    assert longest(longer, tokenizer, max_length=128) == 128


def test_rows_of_whole_solutions_and_a_tokenizer_without_a_template() -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(zoo.folder("qwen"))
    found = [{"prompt": "1 + 1?", "solution": "1 + 1 = 2. " * 9, "correct": True}]
    templated = longest(found, tokenizer)
    tokenizer.chat_template = None
    assert 30 < longest(found, tokenizer) < templated


def test_a_training_may_be_tried_all_the_same() -> None:
    vast = transformers.Qwen3Config(hidden_size=65_536, num_hidden_layers=100, intermediate_size=262_144)
    with pytest.raises(UsageError, match="check_memory: false tries it all the same"):
        check(config_of(), vast, 1024)
    assert check(config_of(check_memory=False), vast, 1024).total > 1e4
