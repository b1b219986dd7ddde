"""A model folder is known by what lies in it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from pluribus.backends import connect, parse
from pluribus.backends._folders import model_digest
from pluribus.config import make_config
from pluribus.run import prepare, run
from pluribus.store import Store
from pluribus.zoo import folder


@pytest.fixture
def student(tmp_path: Path) -> Path:
    return shutil.copytree(folder("qwen"), tmp_path / "student")


def test_a_copy_is_the_same_model_and_a_changed_weight_another(student: Path, tmp_path: Path) -> None:
    known = model_digest(student)
    assert parse(f"local/{student}").model == f"local/{student}[weights={known}]"
    assert model_digest(shutil.copytree(student, tmp_path / "copy")) == known
    (student / "training.json").write_text('{"state": "done"}', "utf-8")
    os.utime(student / "model.safetensors")
    assert model_digest(student) == known, "neither a note beside the weights nor a date makes another model"

    weights = load_file(student / "model.safetensors")
    weights["model.norm.weight"][0] += 1
    save_file(weights, student / "model.safetensors", {"format": "pt"})
    assert model_digest(student) != known


def test_of_a_large_file_a_few_changed_layers_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    content = bytearray(64 << 20)
    file.write_bytes(content)
    known = model_digest(tmp_path)
    content[30 << 20 : 31 << 20] = b"\1" * (1 << 20)
    file.write_bytes(content)
    assert model_digest(tmp_path) != known


def test_an_adapter_is_part_of_it_and_a_hub_name_has_none(student: Path) -> None:
    bare = parse(f"local/{student}").weights
    both = parse({"model": "local/Qwen/Qwen3-0.6B", "adapter": str(student)})
    assert both.weights == bare
    assert parse("local/Qwen/Qwen3-0.6B").weights == parse("zoo/qwen").weights == ""


def test_an_adapter_over_a_member_of_a_library_is_part_of_it(student: Path) -> None:
    asked = {"model": "zoo/qwen", "adapter": str(student)}
    known = parse(asked)
    assert known.weights == model_digest(student) and known.model.endswith(f",weights={known.weights}]")
    (student / "config.json").write_text("{}", "utf-8")
    assert parse(asked).model != known.model


def test_a_folder_trained_into_again_is_asked_again(student: Path) -> None:
    config = make_config(
        {"task": "sums", "limit": 2, "models": [f"local/{student}"], "method": "single", "prompts": "zoo"}
    )
    with Store.open() as store:
        first = run(prepare(config), store)
        again = run(prepare(config), store)
        assert again.id == first.id and again.tally.calls == 0

        weights = load_file(student / "model.safetensors")
        save_file({name: torch.zeros_like(one) for name, one in weights.items()}, student / "model.safetensors")
        other = run(prepare(config), store)
    assert other.id != first.id
    assert other.tally.calls == 2


def test_what_ends_a_reply_and_how_it_is_spelled_are_part_of_it(student: Path) -> None:
    known = {model_digest(student)}
    for name in ("generation_config.json", "tokenizer_config.json", "chat_template.jinja", "merges.txt"):
        with (student / name).open("a") as file:
            file.write("\n")
        known.add(model_digest(student))
    assert len(known) == 5


async def test_another_tokenizer_in_the_same_folder_is_another_one(student: Path) -> None:
    before = connect(parse(f"local/{student}"))
    assert before.count_tokens("apples") > 0
    tokenizer = json.loads((student / "tokenizer.json").read_text("utf-8"))
    tokenizer["model"]["merges"] = []
    (student / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    after = connect(parse(f"local/{student}"))
    assert after.count_tokens("apples") > before.count_tokens("apples")
    await before.close()
    await after.close()
