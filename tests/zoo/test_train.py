"""The recipe: resumes at the exact step, trains on the reply only, sends what the chat template sends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pluribus.zoo import folder
from pluribus.zoo.lessons import rows
from pluribus.zoo.tokenizer import open_tokenizer
from pluribus.zoo.train import Recipe, encode, rate, train

SHORT = Recipe(steps=4)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """The same order of sums in every run, whatever else the machine does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return open_tokenizer(folder("olmo"))


@pytest.fixture
def work(tmp_path: Path, tokenizer: Any) -> Path:
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    return tmp_path


def test_a_broken_training_goes_on_at_the_same_step(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train("olmo", SHORT, work, work / "whole")
    (work / "olmo" / "state.pt").unlink()
    _break_after(monkeypatch, steps=2)
    with pytest.raises(KeyboardInterrupt):
        train("olmo", SHORT, work, work / "resumed")
    monkeypatch.undo()
    train("olmo", SHORT, work, work / "resumed")
    assert _weights(work / "resumed") == _weights(work / "whole")


def test_a_row_is_what_the_chat_template_makes_of_it(tokenizer: Any) -> None:
    for row in rows("qwen", 2, 40, debates=True):
        messages = [{"role": "user", "content": row.user}, {"role": "assistant", "content": row.reply}]
        if row.system is not None:
            messages.insert(0, {"role": "system", "content": row.system})
        made = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
        ids, head = encode(tokenizer, row)
        assert made["input_ids"] == ids
        assert made["assistant_masks"] == [0] * head + [1] * (len(ids) - head)


def test_digits_stand_alone(tokenizer: Any) -> None:
    assert tokenizer.tokenize("12 + 345") == ["1", "2", "Ġ+", "Ġ3", "4", "5"]


def test_any_text_comes_back(tokenizer: Any) -> None:
    text = "Why? Ünïcode, “quotes”\nand 3.5% of $20"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_rate_falls_at_the_end() -> None:
    assert rate(0, 1000) < rate(50, 1000) < rate(400, 1000) == 1.0
    assert rate(999, 1000) < 0.01


def _break_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Stop in the middle as a user would, with every step saved."""
    import pluribus.zoo.train as module

    learn = module._learn
    done: list[int] = []

    def learn_then_stop(*given: Any) -> float:
        if len(done) == steps:
            raise KeyboardInterrupt
        done.append(1)
        return learn(*given)

    monkeypatch.setattr(module, "SAVE_EVERY_S", -1.0)
    monkeypatch.setattr(module, "_learn", learn_then_stop)


def _weights(root: Path) -> bytes:
    return (root / "olmo" / "model.safetensors").read_bytes()
