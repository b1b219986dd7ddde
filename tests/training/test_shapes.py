"""Real shapes: small Qwen3 and Llama models with vocabularies of their real sizes pass every trainer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.training.files import one_thread, rows, weights, wishes, write

from pluribus import zoo
from pluribus.training import Trained, make_training

pytest.importorskip("trl")
pytestmark = pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning")
VOCABULARY = {"qwen3": 151_936, "llama": 128_256}


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with one_thread():
        yield


@pytest.fixture(scope="module")
def students(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each family; the tokenizer is the zoo's, its ids are the first of the vocabulary."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp("students")
    for family, size in VOCABULARY.items():
        torch.manual_seed(0)
        config = AutoConfig.for_model(
            family, vocab_size=size, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            head_dim=4, intermediate_size=32, max_position_embeddings=512, tie_word_embeddings=family == "qwen3",
            bos_token_id=None, eos_token_id=4, pad_token_id=0,
        )  # fmt: skip
        AutoModelForCausalLM.from_config(config).save_pretrained(folder / family)
        AutoTokenizer.from_pretrained(zoo.folder("qwen")).save_pretrained(folder / family)
    return folder


class Stopped(Exception):
    pass


def interrupted(values: Mapping[str, Any]) -> Trained:
    """Stops while the second step is logged, and goes on from the checkpoint of the first."""
    from pluribus.training._run import run

    def stop(step: int, of: int, logs: Mapping[str, Any]) -> None:
        if step == 2 and "loss" in logs:
            raise Stopped

    config = make_training(values)
    with pytest.raises(Stopped):
        run(config, {}, stop)
    return run(config, {})


def values_of(kind: str, model: Path, folder: Path, **more: Any) -> dict[str, Any]:
    """Few and short rows: on a CPU every token of a batch is set against the whole vocabulary."""
    batch = 2 if kind == "prm" else 1
    data = write(folder, kind, rows(kind, short=True))
    return wishes(kind, data, folder / "out", model=str(model), batch_size=batch, save_steps=1, **more)


WAYS: list[tuple[str, str, dict[str, Any]]] = [
    ("qwen3", "sft", {"gradient_checkpointing": True}),
    ("qwen3", "dpo", {"lora": {"r": 4}, "gradient_checkpointing": True}),
    ("qwen3", "prm", {"lora": {"r": 4}}),
    ("llama", "sft", {"lora": {"r": 4, "merge": False}}),
    ("llama", "dpo", {"gradient_checkpointing": True}),
    ("llama", "prm", {"gradient_checkpointing": True}),
]


@pytest.mark.parametrize(("family", "kind", "more"), WAYS)
def test_every_trainer_and_going_on(
    students: Path, tmp_path: Path, family: str, kind: str, more: dict[str, Any]
) -> None:
    values = values_of(kind, students / family, tmp_path, **more)
    done = interrupted(values)
    assert (done.resumed_from, done.steps, done.rows) == (1, 2, 8)
    assert done.loss is not None and 0 < done.loss < 20
    adapter = more.get("lora", {}).get("merge", True) is False
    held = weights(tmp_path / "out")
    if not adapter:
        config = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
        assert config["vocab_size"] == VOCABULARY[family] and "model/model.embed_tokens.weight" in held
    before = weights(students / family)
    moved = [name for name in held if name not in before or bool((held[name] != before[name]).any())]
    assert any("q_proj" in name for name in moved)


def test_a_student_in_four_bits_learns_through_its_adapter(students: Path, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    done = interrupted(values_of("sft", students / "llama", tmp_path, lora={"r": 4}, quantization="4bit"))
    assert done.steps == 2 and done.loss is not None
    held = weights(tmp_path / "out")
    assert all("lora" in name for name in held)
    assert any("lora_B" in name and bool((value != 0).any()) for name, value in held.items())
