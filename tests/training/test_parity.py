"""One optimiser step through `pluribus.training` is one step of plain TRL: nothing of ours stands in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.training.files import furthest, one_thread, rows, weights, wishes, write

from pluribus import zoo
from pluribus.training import make_training, train

pytest.importorskip("trl")
pytestmark = pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning")
RATE = 1e-4


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with one_thread():
        yield


def plain(kind: str, folder: Path) -> dict[str, Any]:
    """The weights after the same step by TRL alone, written as its documentation has it."""
    import trl
    from datasets import Dataset

    columns = {"sft": ("prompt", "completion"), "dpo": ("prompt", "chosen", "rejected")}[kind]
    config, trainer = {
        "sft": (trl.SFTConfig, trl.SFTTrainer), "dpo": (trl.DPOConfig, trl.DPOTrainer),
    }[kind]  # fmt: skip
    learned = trainer(
        model=str(zoo.folder("qwen")),
        args=config(
            output_dir=str(folder / "trl"), max_steps=1, learning_rate=RATE, per_device_train_batch_size=4, seed=3,
            bf16=False, use_cpu=True, report_to="none", save_strategy="no", max_length=2048, disable_tqdm=True,
            dataloader_pin_memory=False, gradient_checkpointing=False,
        ),
        train_dataset=Dataset.from_list([{name: row[name] for name in columns} for row in rows(kind)]),
    )  # fmt: skip
    learned.train()
    learned.save_model(str(folder / "trl"))
    return weights(folder / "trl")


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_a_step_is_plain_trl_s(kind: str, tmp_path: Path) -> None:
    values = wishes(kind, write(tmp_path, kind), tmp_path / "ours", max_steps=1, learning_rate=RATE, seed=3)
    train(make_training(values))
    ours, theirs = weights(tmp_path / "ours"), plain(kind, tmp_path)
    assert furthest(ours, theirs) < 1e-6
    assert furthest(ours, weights(zoo.folder("qwen"))) > RATE / 2  # and a step it was
