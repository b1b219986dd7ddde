"""The model card says whose replies were learned from, and whose terms hold for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.training.files import rows, wishes, write

from pluribus.training import Trained, make_training
from pluribus.training._card import about, card


def carded(tmp_path: Path, kind: str, *columns: dict[str, str]) -> tuple[dict[str, Any], str]:
    found = [{**row, **more} for row, more in zip(rows(kind), columns, strict=False)]
    config = make_training(wishes(kind, write(tmp_path, kind, found), tmp_path / "out"))
    facts = about(config, "zoo/qwen", found, Trained("out", kind, 2, len(found), None, 0.0))
    return facts, card(facts)


def test_both_replies_of_a_pair_were_written_by_somebody(tmp_path: Path) -> None:
    pairs = [("zoo/qwen", "openai/gpt-4o"), ("zoo/qwen", "zoo/qwen")]
    facts, text = carded(tmp_path, "dpo", *({"chosen_model": a, "rejected_model": b} for a, b in pairs))
    assert facts["data"]["models"] == {"zoo/qwen": 2, "openai/gpt-4o": 1}
    assert "| `openai/gpt-4o` | 1 |" in text and "OpenAI's terms limit" in text


@pytest.mark.parametrize(("model", "terms"), [("anthropic/claude", True), ("openrouter/openai/gpt-4o", True),
                                              ("local/student[weights=0a1b2c3d]", False)])  # fmt: skip
def test_terms_are_those_of_services(tmp_path: Path, model: str, terms: bool) -> None:
    facts, text = carded(tmp_path, "sft", {"model": model})
    assert facts["data"]["models"] == {model: 1}
    assert ("## Providers' terms" in text) == terms


def test_a_name_ends_neither_its_code_nor_its_table(tmp_path: Path) -> None:
    _, text = carded(tmp_path, "sft", {"model": "vllm/a`|\n# not a heading", "task": "x|y"})
    assert "| `vllm/a   # not a heading` | 1 |" in text and "| `x y` | 1 |" in text


def test_it_says_what_it_was_checked_against(tmp_path: Path) -> None:
    facts, text = carded(tmp_path, "sft", {"model": "zoo/phi"})
    assert facts["checked_against"] == [] and "checked against no evaluation set" in text
    assert "No row holds a question of `sums@test`." in card({**facts, "checked_against": ["sums@test"]})
