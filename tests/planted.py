"""Recorded outputs from a known process: what the measures must find is known beforehand.

A model of accuracy p answers a question rightly when √ρ g + √τ h + √(1 − ρ − τ) e < Φ⁻¹(p): g is the question's
difficulty, shared by all models, h the model's own trouble with it, shared by its samples, e each sample's luck; all
standard normal. Given g the models are independent, so every true rate is an integral over g alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluribus.config import make_config
from pluribus.consensus.subsets import codes, plurality_credit
from pluribus.evaluate import Usage
from pluribus.panel import Item, Member, Panel, Word
from pluribus.run import prepare, run
from pluribus.store import Store

Floats = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(101)
_STYLES = (
    "count each thing once and add them", "let me draw a table with two columns", "by algebra we isolate the unknown",
    "guess then verify against both conditions", "work backwards from what is left", "split it into simpler parts",
    "round first and correct afterwards", "name every quantity before computing",
)  # fmt: skip
"""How each model writes; the ninth writes as the first does, of its own number."""
_KEYS = 10_000
"""The first question's key; the next one's is one more, and no wrong answer of a question is its key."""


@dataclass(frozen=True, slots=True)
class Process:
    """What is planted."""

    accuracies: tuple[float, ...] = (0.6, 0.6, 0.6, 0.6, 0.6)
    """One model each."""
    rho: float = 0.0
    """How far the models share their trouble: latent correlation of two models on a question, in [0, 1)."""
    tau: float = 0.0
    """What the samples of one model share beyond that; rho + tau < 1."""
    questions: int = 400
    samples: int = 1
    """Recorded outputs per model and question."""
    wrong: Literal["spread", "shared"] = "spread"
    """Wrong answers are one of a thousand, or the same one for all."""
    copies: bool = False
    """Every model says what the first says, word for word."""
    seed: int = 0

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(f"m{i + 1}" for i in range(len(self.accuracies)))

    @property
    def beta(self) -> float:
        """True share of questions that all models get wrong, at one answer each."""
        wrong_A_G = _wrong_given(self)
        return float((wrong_A_G[:1] if self.copies else wrong_A_G).prod(axis=0) @ _WEIGHTS / _WEIGHTS.sum())

    @property
    def phi(self) -> float:
        """True phi coefficient of two models' errors, mean over the pairs."""
        if self.copies:
            return 1.0
        wrong_A_G, weights = _wrong_given(self), _WEIGHTS / _WEIGHTS.sum()
        means = wrong_A_G @ weights
        spread = np.sqrt(means * (1 - means))
        pairs = combinations(range(len(means)), 2)
        phis = [
            ((wrong_A_G[i] * wrong_A_G[j]) @ weights - means[i] * means[j]) / (spread[i] * spread[j]) for i, j in pairs
        ]
        return float(np.mean(phis))


def _wrong_given(process: Process) -> Floats:
    """(models, nodes): chance of a wrong answer at each difficulty g."""
    normal, rest = NormalDist(), math.sqrt(1 - process.rho)
    return np.array([
        [1 - normal.cdf((normal.inv_cdf(p) - math.sqrt(process.rho) * g) / rest) for g in _NODES]
        for p in process.accuracies
    ])  # fmt: skip


def right_Q_M_S(process: Process) -> NDArray[np.bool_]:
    """(questions, models, samples): which outputs are right."""
    rng, shape = np.random.default_rng(process.seed), (process.questions, len(process.accuracies), process.samples)
    shared, own, luck = (rng.normal(size=(*shape[:k], *(1,) * (3 - k))) for k in (1, 2, 3))
    latent = math.sqrt(process.rho) * shared + math.sqrt(process.tau) * own
    latent = latent + math.sqrt(1 - process.rho - process.tau) * luck
    limits = np.array([NormalDist().inv_cdf(p) for p in process.accuracies])
    right: NDArray[np.bool_] = latent < limits[None, :, None]
    return right[:, [0] * len(limits)] if process.copies else right


def answers_Q_M_S(process: Process) -> NDArray[np.int64]:
    """(questions, models, samples): what each output answers."""
    right, numbers = right_Q_M_S(process), np.arange(process.questions)[:, None, None]
    spread = np.random.default_rng([process.seed, 1]).integers(1000, size=right.shape)
    if process.copies:
        spread = spread[:, [0] * right.shape[1]]
    return np.where(right, _KEYS + numbers, 1 + numbers if process.wrong == "shared" else spread)


def write(folder: Path, process: Process) -> tuple[Path, Path]:
    """`questions.jsonl` and `outputs.jsonl`, in the forms of `--task jsonl` and of `replay/FILE#MODEL`."""
    folder.mkdir(parents=True, exist_ok=True)
    questions, outputs = folder / "questions.jsonl", folder / "outputs.jsonl"
    asked = [
        {"id": f"q{i}", "question": f"What is number {i} of the list?", "kind": "number", "answer": str(_KEYS + i)}
        for i in range(process.questions)
    ]
    questions.write_text("".join(json.dumps(line) + "\n" for line in asked), "utf-8")
    outputs.write_text("".join(json.dumps(line) + "\n" for line in _outputs(process)), "utf-8")
    return questions, outputs


def _outputs(process: Process) -> Iterator[dict[str, Any]]:
    usage = {"prompt_tokens": 20, "completion_tokens": 10}
    for (q, m, s), answer in np.ndenumerate(answers_Q_M_S(process)):
        text = _text(0 if process.copies else m, int(answer))
        yield {"question_id": f"q{q}", "model": process.models[m], "sample": s, "text": text, "usage": usage}


def _text(model: int, answer: int) -> str:
    style = _STYLES[model % len(_STYLES)] + (f" style {model}" if model >= len(_STYLES) else "")
    return f"{style}. {{final answer: {answer}}}"


@dataclass(frozen=True, slots=True)
class Stored:
    """Names of the runs in the workspace."""

    council: str
    """The vote of one answer of each model."""
    controls: tuple[str, ...]
    """Self-consistency of each model at the council's calls; empty where too few samples are recorded."""


def store(home: Path, process: Process, folder: Path) -> Stored:
    """Writes the files and runs council and controls over them, the whole way through the workspace at `home`."""
    questions, outputs = write(folder, process)
    models = [f"replay/{outputs}#{model}" for model in process.models]
    task = {"task": "jsonl", "data": str(questions)}
    draws = {"method": "self_consistency", "settings": {"parallel_num": len(models)}}
    with Store.open(home) as workspace:

        def go(**options: Any) -> str:
            return run(prepare(make_config({**task, **options})), workspace).name

        council = go(models=models, method="vote")
        enough = process.samples >= len(models)
        return Stored(council, tuple(go(models=[model], **draws) for model in models) if enough else ())


# --- the short way, for who repeats it many times --------------------------------------------------------------------


def panels(process: Process) -> tuple[Panel, list[Panel]]:
    """The panels of the council and of each model's self-consistency, as `store` and `panel` would give them."""
    answers = answers_Q_M_S(process)
    n = len(process.models)
    council = _panel("council", process.models, answers[:, :, 0])
    return council, [_panel(f"draws of {m}", (m,) * n, answers[:, i, :n]) for i, m in enumerate(process.models)]


def _panel(name: str, models: tuple[str, ...], answers_Q_A: NDArray[np.int64]) -> Panel:
    members = tuple(Member(f"agent {i + 1}", f"replay/planted#{model}", None, i) for i, model in enumerate(models))
    items = tuple(_item(q, row) for q, row in enumerate(answers_Q_A.tolist()))
    return Panel(name, f"run {name}", "jsonl", "vote", members, items)


def _item(question: int, answers: list[int]) -> Item:
    key, n = _KEYS + question, len(answers)
    words = tuple(Word("", str(a), float(a == key), 20, 10, 0.0) for a in answers)
    decided = max(answers, key=answers.count)
    return Item(f"q{question}", str(key), (words,), str(decided), float(decided == key), Usage(n, 20 * n, 10 * n, 0.0))


@dataclass(frozen=True, slots=True)
class Truth:
    """True differences of accuracy, council minus control."""

    best_single: float
    """To one answer of the first model."""
    self_consistency: float
    """To the vote of as many answers of the first model."""


def true_differences(process: Process, questions: int = 200_000) -> Truth:
    """By the same process on many further questions; ties of the council go to the first."""
    many = replace(process, questions=questions, seed=process.seed + 1_000_003)
    answers, n = answers_Q_M_S(many), len(process.models)
    keys = _KEYS + np.arange(questions)
    council = _accuracy(answers[:, :, 0], keys, "first")
    alone = float((answers[:, 0, 0] == keys).mean())
    return Truth(council - alone, council - _accuracy(answers[:, 0, :n], keys, "fractional"))


def _accuracy(answers_Q_A: NDArray[np.int64], keys_Q: NDArray[np.int64], tie: str) -> float:
    everybody = np.ones((1, answers_Q_A.shape[1]), dtype=np.bool_)
    right = (answers_Q_A == keys_Q[:, None]).astype(np.float64)
    return float(plurality_credit(codes(answers_Q_A.tolist()), right, everybody, tie).mean())
