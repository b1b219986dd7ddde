"""The recipes for real hardware, which nobody can run here: every file is read by the code that would read it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from pluribus.cli._app import names, tree
from pluribus.config import make_config, read_config
from pluribus.training import KINDS, read_training
from pluribus.training.memory import QWEN3_0_6B, QWEN3_8B, Setup, estimate, sharding_of

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "recipes"
TRAININGS = sorted(RECIPES.glob("*_qwen3_*.yaml"))
LAUNCHES = {"ddp": "none", "fsdp": "fsdp", "zero2": "zero2", "zero3": "zero3"}
_MEMORY = re.compile(
    r"# Memory: about (\d+) GB on (?:1 GPU|each of (\d+) GPUs \((\w+)\)), estimated for rows of ([\d,]+) tokens\. "
    r"Never run on a GPU here\."
)


# --- training files --------------------------------------------------------------------------------------------------


def test_both_sizes_have_every_kind() -> None:
    stems = {file.stem for file in TRAININGS}
    assert {f"{kind}_qwen3_{size}" for kind in KINDS for size in ("0.6b", "8b")} <= stems


@pytest.mark.parametrize("file", TRAININGS, ids=lambda file: file.stem)
def test_a_training_is_what_its_name_says(file: Path) -> None:
    config = read_training(file)
    assert config.kind == file.stem.partition("_")[0]
    assert config.check_against == ["gsm8k@test"] and config.gradient_checkpointing
    size = "8b" if "8b" in file.stem else "0.6b"
    assert size in config.model.lower() and size in config.out


@pytest.mark.parametrize("file", TRAININGS, ids=lambda file: file.stem)
def test_the_memory_that_its_comment_names_is_the_estimate(file: Path) -> None:
    found = _MEMORY.search(file.read_text("utf-8"))
    assert found, "the comment names no memory"
    gb, devices, sharding, tokens = found.groups()
    config = read_training(file)
    assert int(tokens.replace(",", "")) == config.max_length
    setup = Setup(tokens=config.max_length, devices=int(devices or 1), sharding=sharding or "none")
    needed = estimate(config, QWEN3_8B if "8b" in file.stem else QWEN3_0_6B, setup)
    assert round(needed.total) == int(gb)
    assert needed.verdict(24 if devices is None else 80) == "fits"


@pytest.mark.parametrize("file", TRAININGS, ids=lambda file: file.stem)
def test_a_step_has_32_rows_or_256_samples(file: Path) -> None:
    config, found = read_training(file), _MEMORY.search(file.read_text("utf-8"))
    assert found is not None
    assert config.batch_size * config.accumulation * int(found[2] or 1) == (256 if config.kind == "grpo" else 32)


# --- accelerate and DeepSpeed ----------------------------------------------------------------------------------------


def launched(name: str) -> dict[str, str]:
    """What `accelerate launch` would tell the processes, by its own code."""
    pytest.importorskip("accelerate")
    from accelerate.commands import launch
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

    file = str(RECIPES / "accelerate" / f"{name}.yaml")
    words = ["--config_file", file, "-m", "pluribus", "train", "sft"]
    args, defaults, from_config = launch._validate_launch_command(launch.launch_command_parser().parse_args(words))
    assert args.num_processes == 8
    if not args.use_deepspeed:
        return {**prepare_multi_gpu_env(args)}
    fields = list(defaults.deepspeed_config)
    args.deepspeed_fields_from_accelerate_config = ",".join([*fields, "mixed_precision"] if from_config else fields)
    return {**prepare_deepspeed_cmd_env(args)[1]}


@pytest.mark.parametrize("name", LAUNCHES)
def test_accelerate_reads_each_of_its_files(name: str) -> None:
    config_args = pytest.importorskip("accelerate.commands.config.config_args")
    read = config_args.load_config_from_file(str(RECIPES / "accelerate" / f"{name}.yaml"))
    kinds = {"ddp": "MULTI_GPU", "fsdp": "FSDP", "zero2": "DEEPSPEED", "zero3": "DEEPSPEED"}
    assert read.distributed_type.value == kinds[name]
    assert (read.num_processes, read.num_machines) == (8, 1)


@pytest.mark.parametrize(("name", "sharding"), LAUNCHES.items())
def test_the_memory_estimate_sees_how_accelerate_shards(
    name: str, sharding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert sharding_of(launched(name)) == sharding


def test_fsdp_is_the_second_one_and_saves_whole_models(monkeypatch: pytest.MonkeyPatch) -> None:
    told = launched("fsdp")
    assert told["FSDP_VERSION"] == "2" and told["FSDP_RESHARD_AFTER_FORWARD"] == "true"
    assert told["ACCELERATE_MIXED_PRECISION"] == "bf16"
    for name, value in told.items():
        if name.startswith(("FSDP_", "ACCELERATE_")):
            monkeypatch.setenv(name, value)
    from accelerate.utils import FullyShardedDataParallelPlugin

    plugin = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 2 and plugin.reshard_after_forward is True
    assert plugin.state_dict_type.name == "FULL_STATE_DICT"
    assert plugin.auto_wrap_policy is not None and plugin.cpu_ram_efficient_loading


def test_every_word_of_the_fsdp_file_is_one_of_accelerate_s() -> None:
    launch = pytest.importorskip("accelerate.commands.launch")
    known = {action.dest for action in launch.launch_command_parser()._actions}
    said = yaml.safe_load((RECIPES / "accelerate" / "fsdp.yaml").read_text("utf-8"))["fsdp_config"]
    assert set(said) <= known


ZERO: dict[str, tuple[type, ...]] = {
    "stage": (int,), "overlap_comm": (bool,), "contiguous_gradients": (bool,), "reduce_scatter": (bool,),
    "reduce_bucket_size": (int, str), "allgather_partitions": (bool,), "allgather_bucket_size": (int,),
    "sub_group_size": (int,), "stage3_prefetch_bucket_size": (int, str),
    "stage3_param_persistence_threshold": (int, str), "stage3_max_live_parameters": (int,),
    "stage3_max_reuse_distance": (int,), "stage3_gather_16bit_weights_on_model_save": (bool,),
}  # fmt: skip
"""DeepSpeed's zero_optimization, https://www.deepspeed.ai/docs/config-json/: entry → type; a text is "auto"."""
TRAINER_FILLS = {
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping",
    "bf16.enabled", "zero_optimization.reduce_bucket_size", "zero_optimization.stage3_prefetch_bucket_size",
    "zero_optimization.stage3_param_persistence_threshold",
}  # fmt: skip
"""The entries that transformers fills where they say "auto" (transformers/integrations/deepspeed.py)."""


@pytest.mark.parametrize("stage", [2, 3])
def test_deepspeed_s_file_field_by_field(stage: int) -> None:
    said = json.loads((RECIPES / "accelerate" / f"zero{stage}.json").read_text("utf-8"))
    zero = said["zero_optimization"]
    assert zero["stage"] == stage
    for name, value in zero.items():
        assert type(value) in ZERO[name], name
        assert stage == 3 or not name.startswith(("stage3", "sub_group"))
    rest = {"bf16", "gradient_accumulation_steps", "gradient_clipping", "train_batch_size", "wall_clock_breakdown"}
    assert set(said) == rest | {"zero_optimization", "train_micro_batch_size_per_gpu", "steps_per_print"}
    assert set(autos(said)) <= TRAINER_FILLS
    assert {"train_batch_size", "train_micro_batch_size_per_gpu", "bf16.enabled"} <= set(autos(said))


def autos(entries: dict[str, Any], under: str = "") -> list[str]:
    found = []
    for name, value in entries.items():
        if isinstance(value, dict):
            found += autos(value, f"{under}{name}.")
        elif value == "auto":
            found.append(under + name)
    return found


@pytest.mark.parametrize("stage", [2, 3])
def test_accelerate_reads_deepspeed_s_file(stage: int) -> None:
    deepspeed = pytest.importorskip("accelerate.utils.deepspeed")
    read = deepspeed.HfDeepSpeedConfig(str(RECIPES / "accelerate" / f"zero{stage}.json"))
    assert (read.is_zero2(), read.is_zero3(), read.is_offload()) == (stage == 2, stage == 3, False)


@pytest.mark.parametrize("stage", [2, 3])
def test_what_deepspeed_s_file_says_is_not_said_twice(stage: int) -> None:
    """accelerate refuses an entry that stands in its own file and in DeepSpeed's."""
    said = yaml.safe_load((RECIPES / "accelerate" / f"zero{stage}.yaml").read_text("utf-8"))
    assert "mixed_precision" not in said
    assert set(said["deepspeed_config"]) == {"deepspeed_config_file", "zero3_init_flag"}
    assert (ROOT / said["deepspeed_config"]["deepspeed_config_file"]).is_file()
    assert said["deepspeed_config"]["zero3_init_flag"] is (stage == 3)


# --- the walk --------------------------------------------------------------------------------------------------------


def test_the_council_is_one() -> None:
    config = make_config(read_config(RECIPES / "council_qwen3.yaml"))
    served = re.findall(r"^serve \d (\d+) (\S+)$", (RECIPES / "council_to_qwen3.sh").read_text("utf-8"), re.MULTILINE)
    assert [f"vllm/{model}@http://127.0.0.1:{port}/v1" for port, model in served] == config.models


@pytest.mark.parametrize(
    "recipe, given, trained, ends",
    [("council_to_qwen3", "0.6b", 3, "evaluate"), ("council_to_qwen3", "8b", 3, "evaluate"),
     ("debate_to_student", "out", 4, "report"), ("pad", "out", 3, "report"),
     ("vote_trained_analyst", "out", 2, "report")]
)  # fmt: skip
def test_every_command_of_the_walk_can_be_typed(
    recipe: str, given: str, trained: int, ends: str, tmp_path: Path
) -> None:
    """The script runs to its end with programs that only write down how they were called."""
    commands = walk(tmp_path, recipe, given)
    assert [words[0] for words in commands].count("train") == trained
    assert [words[0] for words in commands][-1] == ends
    for name, *rest in commands:
        assert name in names()
        with contextlib.suppress(typer.Exit):
            tree().commands[name].make_context(name, list(rest))


def copied(folder: Path, recipe: str = "council_to_qwen3") -> Path:
    """The script in a checkout of its own: it writes its outputs there."""
    script = folder / "checkout" / "recipes" / f"{recipe}.sh"
    script.parent.mkdir(parents=True)
    script.write_text((RECIPES / script.name).read_text("utf-8"), "utf-8")
    return script


def walk(folder: Path, recipe: str, given: str) -> list[list[str]]:
    """The `pluribus` commands, also those that `accelerate launch` would start."""
    said = folder / "said.txt"
    for name in ("pluribus", "accelerate"):
        file = folder / name
        file.write_text(f'#!/bin/sh\nfor word in {name} "$@"; do printf "%s\\t" "$word"; done >> "{said}"\n'
                        f'echo >> "{said}"\necho \'{{"run": "debate-gsm8k"}}\'\n', "utf-8")  # fmt: skip
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    told = {"PLURIBUS": str(folder / "pluribus"), "ACCELERATE": str(folder / "accelerate"), "SERVE": "none"}
    told["PYTHON"] = "echo"
    script = copied(folder, recipe)
    begun = ["sh", str(script), given]
    subprocess.run(begun, env=os.environ | told, cwd=script.parents[1], check=True, capture_output=True, timeout=60)
    lines = [line.rstrip("\t").split("\t") for line in said.read_text("utf-8").splitlines()]
    for words in lines:
        for word in words:
            assert not word.startswith("recipes/") or (ROOT / word).is_file(), word
    return [words[words.index("pluribus") + 1 :] for words in lines]


def test_an_unknown_size_ends_before_anything_is_asked(tmp_path: Path) -> None:
    script = copied(tmp_path)
    done = subprocess.run(["sh", str(script), "70b"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no student of size '70b'; say 0.6b or 8b" in done.stderr


def test_it_says_that_it_was_never_run() -> None:
    for file in (RECIPES / "council_to_qwen3.sh", RECIPES / "council_qwen3.yaml"):
        assert "never run here" in file.read_text("utf-8").lower()
