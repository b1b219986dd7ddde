"""The training file: what it may say, what it says by default, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import ConfigError
from pluribus.training import make_training, read_training

LEAST: dict[str, Any] = {"kind": "sft", "model": "zoo/qwen", "data": "rows.jsonl", "out": "student"}


@pytest.mark.parametrize(
    ("said", "rate"),
    [
        ({}, 2e-5),
        ({"lora": {}}, 2e-4),
        ({"kind": "dpo"}, 1e-6),
        ({"kind": "dpo", "lora": {"r": 4}}, 1e-5),
        ({"kind": "prm"}, 1e-5),
        ({"kind": "prm", "prm": {"fix_llm": True}}, 1e-4),
        ({"learning_rate": 3e-3, "lora": {}}, 3e-3),
    ],
)
def test_a_rate_that_is_not_said_is_the_kind_s_own(said: dict[str, Any], rate: float) -> None:
    assert make_training({**LEAST, **said}).rate == rate


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"epoch": 2}, "unknown key 'epoch'; did you mean 'epochs'"),
        ({"prm": {"fix_lm": True}, "kind": "prm"}, "did you mean 'fix_llm'"),
        ({"kind": "rl"}, "kind is 'rl'"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"warmup_ratio": 1.0}, "warmup_ratio is 1.0"),
        ({"quantization": "4bit"}, "quantized weights do not learn; add lora"),
        ({"dpo": {"beta": 0.5}}, "dpo does nothing in a training of kind sft"),
        ({"kind": "prm", "prm": {"fix_llm": True}, "lora": {}}, "drop one of them"),
        ({"lora": {"dropout": 1.0}}, "lora.dropout is 1.0"),
    ],
)
def test_a_wish_that_can_not_be_is_one_line_that_names_it(said: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_training({**LEAST, **said})
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_said_wins_over_the_file_entry_by_entry(tmp_path: Path) -> None:
    file = tmp_path / "prm.yaml"
    file.write_text("kind: prm\nmodel: a\ndata: b\nout: c\nprm: {cut: lines, contrast: 0.2}\nepochs: 3\n", "utf-8")
    found = read_training(file, {"model": "zoo/qwen", "prm": {"contrast": 0.0}})
    assert (found.model, found.epochs, found.prm.cut, found.prm.contrast) == ("zoo/qwen", 3, "lines", 0.0)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    file.write_text("- kind: sft\n", "utf-8")
    with pytest.raises(ConfigError, match=r"list\.yaml: expected a mapping"):
        read_training(file)
