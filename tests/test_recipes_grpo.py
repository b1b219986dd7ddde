"""The recipes of reinforcement learning: AgentArk's arguments one by one, sizes that fit, commands that are ones."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from pluribus.cli._app import tree
from pluribus.errors import ConfigError
from pluribus.training import TrainConfig, read_training

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "recipes"
AGENTARK = RECIPES / "grpo_agentark.yaml"
FILES = sorted(RECIPES.glob("grpo_*.yaml"))
COMMAND = """
    --pretrain Qwen/Qwen3-0.6B --reward_pretrain outputs/prm_qmsum --save_path outputs/grpo_qmsum --temperature 0.5
    --n_samples_per_prompt 8 --advantage_estimator rloo --reward_baseline token --reward_mode PRMVR
    --verifiable_reward_coef 1.0 --micro_rollout_batch_size 4 --rollout_batch_size 64 --micro_train_batch_size 2
    --train_batch_size 128 --actor_learning_rate 5e-7 --init_kl_coef 0.001 --max_epochs 1 --num_episodes 1
    --prompt_max_len 40960 --generate_max_len 2048 --zero_stage 2 --bf16 True --flash_attn True
    --gradient_checkpointing True --save_steps 20 --logging_steps 1
"""
"""The arguments as AgentArk documents them; a switch is True."""
ELSEWHERE = "micro_rollout_batch_size"
"""The one argument that nothing here answers to."""


@pytest.fixture
def config() -> TrainConfig:
    return read_training(AGENTARK)


def said() -> dict[str, str]:
    words = shlex.split(COMMAND)
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


# --- AgentArk --------------------------------------------------------------------------------------------------------


def test_every_argument_stands_in_the_recipe(config: TrainConfig) -> None:
    grpo, most = config.grpo, config.max_length or 0
    there: dict[str, Any] = {
        "pretrain": config.model, "reward_pretrain": grpo.prm, "save_path": config.out,
        "temperature": grpo.temperature, "n_samples_per_prompt": grpo.samples, "advantage_estimator": grpo.estimator,
        "reward_baseline": grpo.reward_baseline, "reward_mode": grpo.reward_mode,
        "verifiable_reward_coef": grpo.verifiable_reward_coef, "rollout_batch_size": grpo.prompts,
        "micro_train_batch_size": config.batch_size, "train_batch_size": config.batch_size * config.accumulation,
        "actor_learning_rate": config.learning_rate, "init_kl_coef": grpo.kl, "max_epochs": grpo.iterations,
        "num_episodes": int(config.epochs), "prompt_max_len": most - grpo.max_new_tokens,
        "generate_max_len": grpo.max_new_tokens, "zero_stage": zero_stage(launches(AGENTARK)[0]),
        "bf16": config.precision == "bf16", "flash_attn": config.attention == "flash_attention_2",
        "gradient_checkpointing": config.gradient_checkpointing, "save_steps": config.save_steps,
        "logging_steps": config.logging_steps,
    }  # fmt: skip
    assert there.keys() == said().keys() - {ELSEWHERE}
    for name, value in there.items():
        wanted = said()[name]
        assert value == type(value)(wanted == "True" if isinstance(value, bool) else wanted), name
    assert config.epochs == 1, "int() above forgets a half"


def test_each_argument_is_named_in_it() -> None:
    comments = "\n".join(line.partition("#")[2] for line in AGENTARK.read_text("utf-8").splitlines())
    missing = [name for name in said() if not re.search(rf"\b{name}\b", comments)]
    assert not missing
    assert re.search(rf"{ELSEWHERE} 4 has no counterpart", comments)


def test_what_the_command_does_not_say_is_left_as_it_is(config: TrainConfig) -> None:
    assert (config.kind, config.lora, config.quantization, config.max_steps) == ("grpo", None, None, None)
    assert config.data == "gsm8k@train"
    assert (config.scheduler, config.weight_decay, config.max_grad_norm) == ("linear", 0.0, 1.0)
    grpo = config.grpo
    assert (grpo.objective, grpo.k, grpo.top_p, grpo.clip, grpo.vllm) == ("mean", None, 1.0, 0.2, None)


def test_the_process_reward_model_is_that_of_the_other_recipe(config: TrainConfig) -> None:
    assert config.grpo.prm == read_training(RECIPES / "prm_agentark.yaml").out


def test_trl_is_told_the_same(config: TrainConfig) -> None:
    trl = pytest.importorskip("trl")
    from pluribus.training._run import Job, arguments
    from pluribus.training.grpo import _arguments

    job = Job(config, config.model, None, (), None, config.max_length)
    told: dict[str, Any] = {**arguments(config), **_arguments(job)}
    assert told["bf16"] is True
    found = trl.GRPOConfig(**{**told, "bf16": False})  # a machine without a GPU refuses it
    assert (found.num_generations, found.generation_batch_size, found.steps_per_generation) == (8, 512, 256)
    assert (found.per_device_train_batch_size, found.gradient_accumulation_steps) == (2, 64)
    assert (found.temperature, found.top_p, found.beta, found.num_iterations) == (0.5, 1.0, 0.001, 1)
    assert (found.max_completion_length, found.learning_rate, found.num_train_epochs) == (2048, 5e-7, 1)
    assert (found.save_strategy, found.save_steps, found.logging_steps) == ("steps", 20, 1)
    assert (found.loss_type, found.scale_rewards, found.activation_checkpointing) == ("dr_grpo", "none", True)
    assert found.use_vllm is False


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "processes", "accumulation", "batches", "steps"),
    [
        ("agentark", 1, 64, 256, 4), ("agentark", 1, 256, 256, 1), ("agentark", 8, 8, 32, 4),
        ("qwen3_0.6b", 1, 32, 32, 1), ("qwen3_0.6b", 8, 4, 4, 1), ("qwen3_8b", 4, 8, 8, 1), ("qwen3_8b", 8, 4, 4, 1),
    ],
)  # fmt: skip
def test_a_drawing_has_as_many_batches_and_steps_as_intended(
    name: str, processes: int, accumulation: int, batches: int, steps: int
) -> None:
    pytest.importorskip("torch")
    from pluribus.training.grpo import per_generation

    config = read_training(RECIPES / f"grpo_{name}.yaml", {"accumulation": accumulation})
    assert per_generation(config, processes) == batches
    assert batches == steps * accumulation
    drawn = batches * config.batch_size * processes
    assert drawn == (512 if name == "agentark" else 256)
    assert drawn % config.grpo.samples == 0


def test_eight_devices_with_the_sizes_of_one_are_refused(config: TrainConfig) -> None:
    pytest.importorskip("torch")
    from pluribus.training.grpo import per_generation

    with pytest.raises(ConfigError, match=r"prompts 64 x samples 8 is 512 samples at once, and .* is 1024 a step"):
        per_generation(config, 8)


@pytest.mark.parametrize("file", [file for file in FILES if file != AGENTARK], ids=lambda file: file.stem)
def test_the_others_vote_on_the_training_questions_of_gsm8k(file: Path) -> None:
    config = read_training(file)
    grpo = config.grpo
    assert (config.data, grpo.objective, grpo.k, grpo.estimator) == ("gsm8k@train", "majority", 5, "urloo")
    assert grpo.samples >= 2 * 5 and (config.max_length or 0) > grpo.max_new_tokens
    assert config.check_against == ["gsm8k@test"]
    if "8b" in file.stem:
        assert config.lora is not None and grpo.vllm is not None and grpo.vllm.mode == "server"
    else:
        assert config.lora is None and grpo.vllm is None


# --- the commands in their heads -------------------------------------------------------------------------------------


def commands(file: Path) -> list[list[str]]:
    """The commands in a recipe's head, continued lines joined."""
    head = [line[2:] for line in file.read_text("utf-8").splitlines() if line.startswith("# ")]
    lines = "\n".join(head).replace("\\\n", " ").splitlines()
    found = [shlex.split(re.split(r"\s{3,}(?=[a-z])", line.strip())[0]) for line in lines if line.startswith("  ")]
    return [[word for word in words if not re.fullmatch(r"[A-Z_]+=\S+", word)] for words in found]


def launches(file: Path) -> list[list[str]]:
    """What `accelerate launch` is told in a recipe's head."""
    return [words[2:] for words in commands(file) if words[:2] == ["accelerate", "launch"]]


def zero_stage(words: list[str]) -> int:
    """DeepSpeed's stage in the file that a launch names."""
    file = ROOT / words[words.index("--config_file") + 1]
    settings = ROOT / yaml.safe_load(file.read_text("utf-8"))["deepspeed_config"]["deepspeed_config_file"]
    return int(json.loads(settings.read_text("utf-8"))["zero_optimization"]["stage"])


def test_there_are_three_recipes_and_each_says_how_it_is_started() -> None:
    assert [file.stem for file in FILES] == ["grpo_agentark", "grpo_qwen3_0.6b", "grpo_qwen3_8b"]
    for file in FILES:
        own = [words for words in commands(file) if f"recipes/{file.name}" in words]
        assert own, file.name
        assert "ever run on a GPU here" in file.read_text("utf-8")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_command_of_a_head_can_be_typed(file: Path) -> None:
    for words in commands(file):
        if "pluribus" not in words:
            assert words[0] in ("pip", "vllm"), words
            continue
        _, name, *rest = words[words.index("pluribus") :]
        with contextlib.suppress(typer.Exit):
            tree().commands[name].make_context(name, list(rest))
        for word in rest:
            assert not word.startswith("recipes/") or (ROOT / word).is_file(), word


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_launch_files_that_a_recipe_names_are_there_and_are_read(file: Path) -> None:
    config_args = pytest.importorskip("accelerate.commands.config.config_args")
    named = set(re.findall(r"recipes/accelerate/\w+\.yaml", file.read_text("utf-8")))
    assert named or file.stem == "grpo_qwen3_0.6b"
    for name in named:
        assert config_args.load_config_from_file(str(ROOT / name)).num_processes == 8


@pytest.mark.parametrize(("name", "processes"), [("agentark", 8), ("qwen3_8b", 4)])
def test_accelerate_starts_as_many_processes_as_the_sizes_are_for(
    name: str, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = pytest.importorskip("accelerate.commands.launch")
    monkeypatch.chdir(ROOT)
    (words,) = launches(RECIPES / f"grpo_{name}.yaml")
    args = launch._validate_launch_command(launch.launch_command_parser().parse_args(words))[0]
    assert args.num_processes == processes
    assert args.use_deepspeed is (name == "agentark")


def test_agentark_s_lengths_are_more_than_its_student_takes_so_the_commands_say_less() -> None:
    told = [words for words in commands(AGENTARK) if f"recipes/{AGENTARK.name}" in words]
    assert len(told) == 2
    for words in told:
        assert words[words.index("--max-length") + 1] == "40960"  # max_position_embeddings of Qwen3-0.6B


def test_the_server_has_every_setting_that_trl_needs() -> None:
    """TRL can not push weights into a server without them, and it knows them."""
    serve = pytest.importorskip("trl.scripts.vllm_serve")
    (words,) = [words for words in commands(RECIPES / "grpo_qwen3_8b.yaml") if words[0] == "vllm"]
    config = read_training(RECIPES / "grpo_qwen3_8b.yaml")
    assert words[1:3] == ["serve", config.model]
    made = serve.build_command(serve.ScriptArguments(model=config.model))
    needed = made[made.index("--weight-transfer-config") :]
    assert words[words.index("--weight-transfer-config") :] == needed
    for flag in words[3:]:
        assert not flag.startswith("--") or flag in [*made, "--max-model-len"], flag
    assert int(words[words.index("--max-model-len") + 1]) == config.max_length


def test_the_shorter_word_for_the_server_is_one_of_trl_s() -> None:
    serve = pytest.importorskip("trl.scripts.vllm_serve")
    said = re.search(r"`trl vllm-serve (.+)`", (RECIPES / "grpo_qwen3_8b.yaml").read_text("utf-8"))
    assert said is not None
    found, rest = serve.make_parser().parse_args_and_config(shlex.split(said[1]), return_remaining_strings=True)
    config = read_training(RECIPES / "grpo_qwen3_8b.yaml")
    assert (found.model, found.max_model_len, found.host, rest) == (config.model, config.max_length, "127.0.0.1", [])
