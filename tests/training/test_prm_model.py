"""The model of steps: its two losses, what learns, what is saved and read again."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pluribus.training._prm_model import (  # noqa: E402  # after the skip
    PROJECTION,
    StepModel,
    anchors,
    collate,
    contrast,
    opposed,
)
from pluribus.training._prm_rows import Marked  # noqa: E402  # likewise

FAMILIES = {"Qwen3": {"head_dim": 8}, "Llama": {}, "GPTNeoX": {}}


def small(family: str = "Qwen3", width: int | None = 16) -> StepModel:
    torch.manual_seed(3)
    shape = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 60, "max_position_embeddings": 64, "num_labels": 2,
        "classifier_dropout": 0.0, **FAMILIES[family],
    }  # fmt: skip
    config = getattr(transformers, f"{family}Config")(**shape)
    return StepModel(transformers.AutoModelForTokenClassification.from_config(config), width, 0.1)


def reply(question: str, right: bool | None, *marks: bool | None) -> Marked:
    draws = random.Random(f"{question}{right}{marks}")
    tokens = tuple(draws.randrange(5, 60) for _ in range(3 * len(marks) + 2))
    return Marked(tokens, tuple(range(4, len(tokens), 3)), marks, question, right)


ROWS = [
    reply("a", True, True, True),
    reply("a", True, True, None, True),
    reply("a", False, True, False, False),
    reply("b", True, True),
    reply("b", True, True),
    reply("c", False, False),
    reply("a", None, True, False),
]


# --- the contrast ----------------------------------------------------------------------------------------------------


def test_good_steps_of_other_right_replies_attract_and_bad_steps_of_wrong_ones_repel() -> None:
    batch = collate(ROWS)
    positive, negative = opposed(batch["labels"], batch["question"], batch["right"])
    places = [(row, mark) for row, one in enumerate(ROWS) for mark in one.marks if mark is not None]
    assert positive.shape == (len(places), len(places)) and anchors(batch) == 4
    for at, (row, _) in enumerate(places):
        anchor = row in (0, 1)  # "b" has nobody wrong, "c" nobody right, and of the last nobody knows
        pulled = {other for other, (there, _) in enumerate(places) if anchor and {row, there} == {0, 1}}
        pushed = {other for other, (there, mark) in enumerate(places) if anchor and there == 2 and not mark}
        assert set(positive[at].nonzero()[:, 0].tolist()) == pulled
        assert set(negative[at].nonzero()[:, 0].tolist()) == pushed


def test_the_contrast_is_its_formula() -> None:
    torch.manual_seed(0)
    batch = collate(ROWS)
    positive, negative = opposed(batch["labels"], batch["question"], batch["right"])
    z = torch.nn.functional.normalize(torch.randn(len(positive), 8, dtype=torch.float64), dim=-1)
    wanted = 0.0
    for i in range(len(positive)):
        pulled = [p for p in range(len(positive)) if positive[i, p]]
        total = math.fsum(
            math.exp(float(z[i] @ z[a]) / 0.1) for a in range(len(positive)) if positive[i, a] or negative[i, a]
        )
        wanted -= math.fsum(math.log(math.exp(float(z[i] @ z[p]) / 0.1) / total) for p in pulled) / max(len(pulled), 1)
    assert contrast(z, positive, negative, 0.1).item() == pytest.approx(wanted, rel=1e-9) and wanted > 1


def test_a_batch_without_contrast_adds_nothing_and_the_projection_still_has_a_gradient() -> None:
    model = small()
    found = model(**collate(ROWS[3:6]))
    assert found["contrast"].item() == 0.0
    found["contrast"].backward()
    assert model.projection is not None and model.projection.weight.grad.abs().sum() == 0


# --- what learns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_marks_are_the_models_own_cross_entropy_and_every_weight_learns(family: str) -> None:
    model = small(family)
    batch = collate(ROWS)
    found = model(**batch)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}
    own = model.model(**inputs)
    count = (batch["labels"] >= 0).sum()
    assert found["marks"].item() / count == pytest.approx(own.loss.item(), rel=1e-5)
    assert torch.equal(found["margin_B_W"], own.logits[..., 1] - own.logits[..., 0])
    (found["marks"] + found["contrast"]).backward()
    idle = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert idle == []


def test_the_contrast_reaches_the_language_model_through_what_the_head_is_given() -> None:
    model = small()
    model(**collate(ROWS))["contrast"].backward()
    assert model.trunk.get_input_embeddings().weight.grad.any()
    assert model.model.score.weight.grad is None


def test_with_the_trunk_fixed_only_head_and_projection_learn() -> None:
    model = small()
    model.fix_trunk()
    learns = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert learns == {"model.score.weight", "model.score.bias", "projection.weight"}
    found = model(**collate(ROWS))
    (found["marks"] + found["contrast"]).backward()
    assert model.projection is not None and model.projection.weight.grad.any()


# --- files -----------------------------------------------------------------------------------------------------------


def equal(one: Any, other: Any) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_what_is_written_is_read_bit_for_bit_and_is_a_token_classification_model(tmp_path: Path) -> None:
    model, other = small(), small()
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(torch.randn_like(weight))
    assert not equal(model.state_dict(), other.state_dict())
    model.write(tmp_path)
    other.read(tmp_path)
    assert equal(model.state_dict(), other.state_dict()) and (tmp_path / PROJECTION).is_file()
    plain = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert equal(plain.state_dict(), model.model.state_dict())


def test_a_projection_of_another_width_is_not_taken(tmp_path: Path) -> None:
    small(width=8).write(tmp_path)
    model = small(width=16)
    assert not model.read_projection(tmp_path) and not small(width=None).read_projection(tmp_path)
    assert small(width=8).read_projection(tmp_path)
