"""Tiny real language models made by this project, and the recipe that trains them.

Four causal models of four families of `transformers`, about 0.9 million parameters each, trained on the tasks `sums`,
`logic` and `briefs` and on a council's prompts about them. They make the whole walk real on a laptop; a number measured
on them supports no sentence about large models.
This module names them and imports no torch; `python -m pluribus.zoo.train` makes them.
"""

from __future__ import annotations

from pathlib import Path

from pluribus.errors import UnknownName

CHECKPOINTS = Path(__file__).parent / "checkpoints"


def members() -> list[str]:
    """The names of the trained members, sorted.

    >>> members()
    ['gemma', 'olmo', 'phi', 'qwen']
    """
    return sorted(path.parent.name for path in CHECKPOINTS.glob("*/config.json"))


def folder(name: str) -> Path:
    """Where a member's checkpoint lies: weights, tokenizer, chat template and card."""
    if name not in members():
        raise UnknownName("zoo member", name, members())
    return CHECKPOINTS / name
