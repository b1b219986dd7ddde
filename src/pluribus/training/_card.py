"""What was trained on what: facts for `training.json`, and the model card that says them in words."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluribus.rows import Row
from pluribus.training.config import TrainConfig

if TYPE_CHECKING:
    from pluribus.training import Trained

_PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets")
_WORDS: Mapping[str, str] = {
    "sft": "supervised fine-tuning on demonstrations",
    "dpo": "direct preference optimisation on preferences",
    "prm": "a process reward model, which gives each step of a reply a chance to be good",
    "grpo": "reinforcement learning on the model's own samples",
}
_TERMS: Mapping[str, str] = {
    "openai": "OpenAI's terms limit the use of outputs to train competing models",
    "azure": "Microsoft's and OpenAI's terms limit the use of outputs to train competing models",
    "anthropic": "Anthropic's terms limit the use of outputs to train competing models",
    "gemini": "Google's terms limit the use of outputs to train competing models",
    "xai": "xAI's terms limit the use of outputs to train competing models",
    "openrouter": "it passes on models of many makers, and the terms of some limit the use of outputs to train others",
}
"""Service → what is known of it. Of the others nothing is; open weights have a licence of their own."""
_BREAKS = re.compile(r"[`|\r\n]")
_USE = "`pluribus run --task TASK --agent-models local/FOLDER`"
_USES = {"prm": "As a judge of `pluribus reward`: `{role: verifier, kind: prm, model: local/FOLDER}`"}
_MODELS = ("model", "chosen_model", "rejected_model")
"""Columns that name who wrote a reply."""


def about(
    config: TrainConfig, path: str, rows: Sequence[Row], done: Trained, looked_at: Sequence[str] = ()
) -> dict[str, Any]:
    """The facts: base, data with its provenance, counts, versions. Absolute paths stay out.

    Args:
        looked_at: evaluation sets of which no row holds a question.
    """
    return {
        "base": config.model,
        "base_name": Path(path).name if Path(path).is_dir() else path,
        "kind": config.kind,
        **({"objective": _objective(config)} if config.kind == "grpo" else {}),
        "data": {
            "file": Path(config.data).name,
            "sha256": hashlib.sha256(Path(config.data).read_bytes()).hexdigest(),
            "rows": len(rows),
            "learned": done.rows,
            **{name: _counts(rows, name) for name in ("view", "task", "split", "run") if name in rows[0]},
            "models": _writers(rows),
        },
        "checked_against": [name if "/" not in name else Path(name).name for name in looked_at],
        "learning_rate": config.rate,
        "steps": done.steps,
        "seed": config.seed,
        "packages": {name: version(name) for name in _PACKAGES},
    }


def _objective(config: TrainConfig) -> str:
    """What a policy was rewarded for.

    >>> from pluribus.training.config import make_training
    >>> _objective(make_training({"kind": "grpo", "model": "m", "data": "d", "out": "o",
    ...                           "grpo": {"objective": "pass", "k": 4}}))
    'pass@4, estimator urloo, 8 samples of each prompt at temperature 1, reward VR'
    """
    wishes = config.grpo
    at = "" if wishes.k is None else f"@{wishes.k}" + (f" to @{wishes.k_end}" if wishes.k_end else "")
    reward = "the group's own majority" if wishes.self_labelled else f"reward {wishes.reward_mode}"
    return (
        f"{wishes.objective}{at}, estimator {wishes.estimator}, {wishes.samples} samples of each prompt at temperature "
        f"{wishes.temperature:g}, {reward}"
    )


def _counts(rows: Sequence[Row], name: str) -> dict[str, int]:
    return dict(Counter(str(row[name]) for row in rows).most_common())


def _writers(rows: Sequence[Row]) -> dict[str, int]:
    """Model → the rows that hold a reply of it; the two of a pair may be of different ones."""
    return dict(Counter(who for row in rows for who in {row[name]: 0 for name in _MODELS if name in row}).most_common())


def card(facts: Mapping[str, Any]) -> str:
    """The model card, in the form the hub reads."""
    data = facts["data"]
    lines = [
        "---", "library_name: transformers", f"base_model: {facts['base_name']}", "tags: [pluribus, distillation]",
        "---", "", f"# {facts['base_name']}, after {facts['kind'].upper()}", "",
        f"{_WORDS[facts['kind']].capitalize()}: {facts['steps']:,} optimiser steps at a learning rate of "
        f"{facts['learning_rate']:g}, seed {facts['seed']}."
        + (f" Objective: {facts['objective']}." if "objective" in facts else ""), "",
        "## What it was trained on", "",
        f"{_code(data['file'])}, {data['rows']:,} rows, sha256 `{data['sha256']}`.", "",
        *_tables(data), *_terms(data["models"]), *_looked_at(facts["checked_against"]),
        "## How to ask it", "",
        f"{_USES.get(facts['kind'], _USE)}, where FOLDER holds this file.", "",
        "Versions: " + ", ".join(f"{name} {found}" for name, found in facts["packages"].items()) + ".", "",
        "`training.json` beside this file holds every setting and what was logged.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _tables(data: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name in ("view", "task", "split", "run", "models"):
        if data.get(name):
            lines += [
                f"| {name} | rows |",
                "|---|---|",
                *(f"| {_code(what)} | {n:,} |" for what, n in data[name].items()),
                "",
            ]
    return lines


def _code(said: str) -> str:
    """A name out of a data file, where it can end neither the code nor the table it stands in.

    >>> print(_code("a`b | c"))
    `a b   c`
    """
    return f"`{_BREAKS.sub(' ', said)}`"


def _looked_at(sets: Sequence[str]) -> list[str]:
    if not sets:
        return ["It was checked against no evaluation set.", ""]
    return [f"No row holds a question of {', '.join(map(_code, sets))}.", ""]


def _terms(models: Mapping[str, int]) -> list[str]:
    services = dict.fromkeys(model.partition("/")[0] for model in models)
    said = [
        f"- `{one}`: {_TERMS[one]}; check them before you use or share this model." for one in services if one in _TERMS
    ]
    return ["## Providers' terms", "", *said, ""] if said else []
