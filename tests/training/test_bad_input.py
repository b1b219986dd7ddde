"""What can not be trained, or goes wrong on the way, is one line that says what and what to do; nothing is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.training.files import KINDS, rows, weights, write

from pluribus import zoo
from pluribus.cli import main

pytestmark = pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning")


@dataclass(frozen=True)
class Said:
    code: int
    line: str
    """The last line of stderr: before it a training says how it goes."""


Train = Callable[..., Said]


@pytest.fixture
def train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Train:
    """`pluribus train KIND` in this process, on good rows and a member of the zoo where nothing else is said."""

    def run(kind: str, *flags: str | Path, model: str | Path = "zoo/qwen", data: Path | None = None) -> Said:
        file = write(tmp_path, kind) if data is None else data
        words = ["train", kind, "--model", model, "--data", file, "--out", tmp_path / "out", *flags]
        code = main([str(word) for word in words])
        lines = capsys.readouterr().err.splitlines()
        return Said(code, lines[-1] if lines else "")

    return run


def refused(said: Said, out: Path, *expected: str) -> None:
    """Exit code 2, one line with all of this in it, and nothing was begun."""
    assert said.code == 2, said
    assert said.line.startswith("pluribus: ")
    for words in expected:
        assert words in said.line
    assert not out.exists()


def student(folder: Path, change: Mapping[str, Any], source: str = "qwen") -> Path:
    """A copy of a member of the zoo whose config.json says something else."""
    shutil.copytree(zoo.folder(source), folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, **change}), "utf-8")
    return folder


# --- data ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "other", "missing"),
    [("sft", "dpo", "completion"), ("dpo", "sft", "chosen"), ("prm", "sft", "completions")],
)
def test_rows_of_another_kind(train: Train, tmp_path: Path, kind: str, other: str, missing: str) -> None:
    said = train(kind, data=write(tmp_path, other))
    refused(said, tmp_path / "out", f"{other}.jsonl:1: ", f"{missing}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_rows_and_one_that_is_not_there(train: Train, tmp_path: Path, kind: str) -> None:
    empty = write(tmp_path, kind, [])
    refused(train(kind, data=empty), tmp_path / "out", f"{kind}.jsonl: no ", "is in it; write one with: pluribus ")
    refused(train(kind, data=tmp_path / "no.jsonl"), tmp_path / "out", "no.jsonl: can not be read: No such file")


def test_a_row_with_a_broken_value_names_its_line(train: Train, tmp_path: Path) -> None:
    broken = rows("sft")
    broken[3]["completion"] = "42"
    said = train("sft", data=write(tmp_path, "sft", broken))
    refused(said, tmp_path / "out", 'sft.jsonl:4: completion is "42"; expected a list of assistant messages')


def test_a_row_of_a_test_question(train: Train, tmp_path: Path) -> None:
    asked = rows("sft")[2]["prompt"][0]["content"]
    exam = tmp_path / "exam.jsonl"
    exam.write_text(json.dumps({"id": "e1", "question": asked.upper(), "answer": "5"}) + "\n", "utf-8")
    said = train("sft", "--check-against", exam)
    refused(said, tmp_path / "out", "sft.jsonl: 1 of 8 rows hold a question of ", "row 3", "never train on a test")


def test_a_question_of_the_rows_own_test_split_needs_no_word(train: Train, tmp_path: Path) -> None:
    from pluribus.tasks import load_task

    question, _ = next(iter(load_task("sums", "test", limit=1).pairs))
    told = [{**row, "task": "sums"} for row in rows("sft")]
    told[5]["prompt"] = [{"role": "user", "content": f"{question.text}\nAnswer in braces."}]
    said = train("sft", data=write(tmp_path, "sft", told))
    refused(said, tmp_path / "out", "1 of 8 rows", "sums@test", "row 6")


def test_half_a_character(train: Train, tmp_path: Path) -> None:
    broken = rows("sft")
    broken[2]["completion"] = [{"role": "assistant", "content": "4 \ud83d"}]
    refused(train("sft", data=write(tmp_path, "sft", broken)), tmp_path / "out", "sft.jsonl:3: \\ud83d is half a char")


@pytest.mark.parametrize("kind", KINDS)
def test_a_length_that_leaves_no_room_for_a_reply(train: Train, tmp_path: Path, kind: str) -> None:
    refused(train(kind, "--max-length", "4"), tmp_path / "out", f"{kind}.jsonl: no row has ", " within 4 tokens")
    assert train(kind, "--max-steps", "1").code == 0  # what was refused does not hold the folder


# --- wishes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--learning-rate", "inf"], "learning_rate is inf; input should be a finite number"),
        (["--epochs", "inf"], "epochs is inf; input should be a finite number"),
        (["--seed", "4294967296"], "seed is 4294967296; input should be less than 4294967296"),
        (["--set", "lora.targets=nope"], "lora.targets is 'nope', and the model has no such module"),
        (["--set", "attention=nope"], "model 'zoo/qwen' (qwen3) can not be trained here"),
    ],
)
def test_wishes_that_can_not_be_met(train: Train, tmp_path: Path, flags: list[str], complaint: str) -> None:
    refused(train("sft", *flags), tmp_path / "out", complaint)


def test_a_folder_that_can_not_be_written(train: Train, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    said = train("sft", "--out", tmp_path / "file" / "out")
    refused(said, tmp_path / "out", "file/out can not be written: Not a directory; choose another folder")


# --- students --------------------------------------------------------------------------------------------------------


def test_a_tokenizer_without_a_chat_template(train: Train, tmp_path: Path) -> None:
    model = student(tmp_path / "student", {})
    (model / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((model / "tokenizer_config.json").read_text("utf-8"))
    settings.pop("chat_template", None)
    (model / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    refused(train("sft", model=model), tmp_path / "out", "has no chat template", "instruction-tuned")


def test_a_request_that_does_not_fit_the_memory(train: Train, tmp_path: Path) -> None:
    large = {
        "hidden_size": 16384, "num_hidden_layers": 126, "intermediate_size": 53248, "num_attention_heads": 128,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "layer_types": ["full_attention"] * 126,
    }  # fmt: skip
    said = train("sft", model=student(tmp_path / "student", large))
    expected = ["needs about", "GB (weights 1616.6", "batch_size 8", "GB free", "a smaller model"]
    refused(said, tmp_path / "out", *expected)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_another_architecture(train: Train, tmp_path: Path, kind: str) -> None:
    other = json.loads((zoo.folder("phi") / "config.json").read_text("utf-8"))
    said = train(kind, model=student(tmp_path / "student", other))
    assert said.code == 2, said
    assert "weights of another architecture: " in said.line and " is missing" in said.line
    assert not (tmp_path / "out" / "config.json").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_not_whole(train: Train, tmp_path: Path, kind: str) -> None:
    model = student(tmp_path / "student", {})
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    refused(train(kind, model=model), tmp_path / "out", "can not be trained here", "check that its weights are whole")


@pytest.mark.parametrize("kind", KINDS)
def test_a_student_without_a_tokenizer(train: Train, tmp_path: Path, kind: str) -> None:
    model = student(tmp_path / "student", {})
    for file in model.glob("tokenizer*"):
        file.unlink()
    refused(train(kind, model=model), tmp_path / "out", "has no tokenizer; save its tokenizer beside the weights")


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_a_model_that_scores_does_not_learn_to_write(train: Train, tmp_path: Path, kind: str) -> None:
    model = student(tmp_path / "student", {"architectures": ["Qwen3ForTokenClassification"]})
    refused(train(kind, model=model), tmp_path / "out", "is a Qwen3ForTokenClassification: it scores replies")


def test_weights_of_another_size(train: Train, tmp_path: Path) -> None:
    said = train("sft", model=student(tmp_path / "student", {"intermediate_size": 96}))
    assert said.code == 2, said
    assert "weights of another architecture: " in said.line and "is of another shape" in said.line


def test_a_configuration_that_contradicts_itself(train: Train, tmp_path: Path) -> None:
    said = train("sft", model=student(tmp_path / "student", {"num_hidden_layers": 126}))
    refused(said, tmp_path / "out", "student", "could not be loaded")


def test_an_adapter_is_not_added_into_weights_that_are_spread(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")  # as `accelerate launch` says it
    refused(train("sft", "--lora"), tmp_path / "out", "lora.merge: ", "fsdp spreads over devices", "lora.merge=false")


def test_a_family_without_token_classification_is_no_prm(train: Train, tmp_path: Path) -> None:
    said = train("prm", model="zoo/olmo")
    assert said.code == 2 and "is a olmo2, and transformers has no token classification for it" in said.line


def test_a_model_that_is_not_there(train: Train, tmp_path: Path) -> None:
    refused(train("sft", model="zoo/qwem"), tmp_path / "out", "qwem", "qwen")
    refused(train("sft", model=tmp_path), tmp_path / "out", "has no config.json")
    refused(train("sft", model="openai/gpt-4o"), tmp_path / "out", "asked over the network", "can not be trained")


# --- on the way ------------------------------------------------------------------------------------------------------


def test_a_loss_that_is_no_number_stops_the_training(train: Train, tmp_path: Path) -> None:
    said = train("sft", "--learning-rate", "1e30", "--batch-size", "2", "--max-steps", "4")
    assert said.code == 1
    assert "training stopped: the loss is " in said.line and "lower the learning rate" in said.line
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_weights_that_are_no_numbers_are_not_saved_and_the_last_good_ones_stay(train: Train, tmp_path: Path) -> None:
    """The first of two steps of warm-up has the rate 0, the second one that is infinite in float32."""
    flags = ["--learning-rate", "1e39", "--warmup-ratio", "0.5", "--max-steps", "4", "--save-steps", "1"]
    said = train("sft", "--batch-size", "2", *flags)
    assert said.code == 1
    assert "is no longer a number after step 2; the last good checkpoint is kept" in said.line
    assert [folder.name for folder in (tmp_path / "out" / "checkpoints").glob("*/")] == ["checkpoint-1"]
    kept = weights(tmp_path / "out" / "checkpoints" / "checkpoint-1")
    assert kept and all(bool(value.isfinite().all()) for value in kept.values())
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_a_folder_that_holds_something_else(train: Train, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("x", "utf-8")
    said = train("sft")
    assert said.code == 2 and "is there already and is no training; choose another folder" in said.line
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_another_training_in_the_folder_is_named_by_what_differs(train: Train, tmp_path: Path) -> None:
    own = student(tmp_path / "student", {})
    assert train("sft", "--max-steps", "1", "--seed", "3", model=own).code == 0
    said = train("sft", "--max-steps", "1", model=own)
    assert said.code == 2 and "holds another training: it differs in seed;" in said.line
    assert train("sft", "--max-steps", "1", "--seed", "3", "--logging-steps", "2", model=own).code == 0

    (own / "config.json").write_text((own / "config.json").read_text("utf-8") + "\n", "utf-8")
    for name in (own, f"local/{own}"):
        said = train("sft", "--max-steps", "1", "--seed", "3", model=name)
        assert said.code == 2 and "model" in said.line.partition("it differs in ")[2], said
