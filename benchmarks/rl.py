"""Does training for the deployed decision pay? Objectives, estimators, process rewards and own labels, on the zoo.

    python benchmarks/rl.py [STAGE …] [--seeds 3] [--work DIR] [--quick]

Stages, each resumable by cells (one JSON file of what was measured), all of them unless named:

    objectives   one start, one sample budget: trained for the mean, pass@8 and majority@7; each at every k, on `sums`
    hidden       the same on briefs of which two signals are not shown: what the answer is can only be guessed
    estimators   pass@8 by urloo, loo1, loo and naive at equal samples, on these; the variance of gradients on `sums`
    pad          VR (from the base it is `mean`), PRM and PRMVR, from the base student and after RSFT (needs the models
                 of benchmarks/distil.py)
    greedy       these models as benchmarks/distil.py asks its students: its 1,000 questions, greedily; beside its arms
    own          rewards from the group's own majority, where it is mostly right and where it is mostly wrong
    briefs       an analyst trained for majority@5, alone; at its seat of the desk: recipes/vote_trained_analyst.sh
    programs     pass@4 and the mean on tiny programs whose tests run in the sandbox (needs bubblewrap)
    cost         what advantages take of a step, and a step against plain GRPO's
    report       the tables, as Markdown on stdout and in DIR/rl.md

Policies are asked at temperature 1 and top_p 1, as they were trained. An interval is over questions (cluster
bootstrap), seeds of the training pooled; comparisons are paired by question. A zoo number supports no sentence about
large models.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import _rl_programs
from _distil_cells import Cells, now
from _distil_measure import Pair, alone, questions
from pluribus import objectives, prompt_rows
from pluribus.backends import Request, call_seed, connect, parse
from pluribus.diversity.answers import effective_number
from pluribus.prompts import dialect, render
from pluribus.stats import cluster_bootstrap
from pluribus.tasks import briefs
from pluribus.types import Key, Message, Question, Sampling

WORDS = dialect("zoo")
DRAWN = Sampling(temperature=1.0, top_p=1.0, max_tokens=120)
N = 16
"""Draws of each test question."""
STAGES = ("objectives", "hidden", "estimators", "pad", "greedy", "own", "briefs", "programs", "cost", "report")
BASE = "zoo/qwen"


@dataclass(frozen=True)
class Bench:
    """Where it works, and how large."""

    work: Path
    seeds: int = 3
    steps: int = 60
    tested: int = 300
    cells: Cells = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", Cells(self.work / "cells"))

    def model(self, name: str) -> Path:
        return self.work / "models" / name


@dataclass(frozen=True)
class Arm:
    """One way to train; everything else is the same for all."""

    name: str
    wishes: Mapping[str, Any]
    """Flags of `pluribus train grpo`."""
    start: str = BASE


OBJECTIVES = (
    Arm("mean", {"objective": "mean"}),
    Arm("pass8", {"objective": "pass", "k": 8}),
    Arm("majority7", {"objective": "majority", "k": 7}),
)
ESTIMATORS = (
    Arm("pass8", {"objective": "pass", "k": 8}),
    Arm("pass8_loo1", {"objective": "pass", "k": 8, "estimator": "loo1"}),
    Arm("pass8_loo", {"objective": "pass", "k": 8, "samples": 8, "estimator": "loo"}),
    Arm("pass8_naive", {"objective": "pass", "k": 8, "samples": 8, "estimator": "naive"}),
)
PROGRAMS = (
    Arm("programs_mean", {"objective": "mean"}),
    Arm("programs_pass4", {"objective": "pass", "k": 4}),
)
PAD = (("PRMVR", "base"), ("PRM", "base"), ("VR", "rsft"), ("PRMVR", "rsft"), ("PRM", "rsft"))
"""Reward mode and start; VR from the base is the objective `mean`."""
DISTILLED = Path(".training/distil")
"""Where benchmarks/distil.py works."""
SHARED: Mapping[str, Any] = {
    "samples": N, "batch-size": 64, "accumulation": 2, "learning-rate": 3e-4, "scheduler": "cosine",
    "warmup-ratio": 0.1, "max-new-tokens": 120, "logging-steps": 5, "save-steps": 20, "save-total-limit": 1,
}  # fmt: skip


# --- training and asking ---------------------------------------------------------------------------------------------


def trained(bench: Bench, arm: Arm, seed: int, data: str, **more: Any) -> Path:
    """The arm's model; goes on where a kill left it."""
    out = bench.model(f"{arm.name}.{seed}")
    first = {} if data.endswith(".jsonl") else {"limit": 4000}
    flags = {
        **SHARED, "model": arm.start, "data": data, **first, "out": out, "max-steps": bench.steps, "seed": seed,
        **arm.wishes, **more,
    }  # fmt: skip
    _train("grpo", {**flags, "set": "adam_beta2=0.99"})
    return out


def _train(kind: str, flags: Mapping[str, Any]) -> None:
    words = [part for name, value in flags.items() for part in _flag(name, value)]
    done = subprocess.run(
        [sys.executable, "-m", "pluribus", "train", kind, *words, "--json"], check=False, capture_output=True,
        text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{flags['out']}: {done.stderr[-2000:]}")


def _flag(name: str, value: Any) -> Iterator[str]:
    yield f"--{name.replace('_', '-')}"
    if value is not True:
        yield str(value)


def draws(
    model: str, pairs: Sequence[Pair], prompts: Sequence[Sequence[Message]], sampling: Sampling
) -> list[list[Any]]:
    """N completions of each prompt, through the product's own backend."""
    import asyncio
    from dataclasses import replace

    spec = parse({"model": model, "logprobs": True})

    async def ask() -> list[Any]:
        backend = connect(spec)
        try:
            asked = [Request(tuple(one), sampling, sample) for one in prompts for sample in range(N)]
            seeded = [replace(one, sampling=replace(sampling, seed=call_seed(0, "draws", one))) for one in asked]
            return list(await asyncio.gather(*(backend.complete(one) for one in seeded)))
        finally:
            await backend.close()

    found = asyncio.run(ask())
    return [found[i * N : (i + 1) * N] for i in range(len(pairs))]


def measured(model: str, pairs: Sequence[Pair], sampling: Sampling = DRAWN, prompt: str = "answer") -> dict[str, Any]:
    """Of each question the draws' answers and which are right; over all, lengths and the entropy of a token."""
    from pluribus.answers import canonical, read

    prompts = [render(WORDS, prompt, question) for question, _ in pairs]
    drawn = draws(model, pairs, prompts, sampling)
    answers = [[read(q, one.text) for one in group] for (q, _), group in zip(pairs, drawn, strict=True)]
    right = [
        [int(answer is not None and answer == canonical(q, str(key.answer))) for answer in group]
        for (q, key), group in zip(pairs, answers, strict=True)
    ]
    everyone = [one for group in drawn for one in group]
    return {
        "ids": [q.id for q, _ in pairs], "answers": answers, "right": right,
        "tokens": float(np.mean([one.completion_tokens for one in everyone])),
        "steps": float(np.mean([one.text.count(". ") + 1 for one in everyone])),
        "entropy": -float(np.mean([value for one in everyone for value in one.logprobs or ()])),
        "unanswered": float(np.mean([answer is None for group in answers for answer in group])),
    }  # fmt: skip


def asked_of(bench: Bench, split: str, limit: int) -> Path:
    """Prompts of `sums` as the zoo is asked; a folder of weights alone does not say whose words it knows."""
    file = bench.work / f"sums.{split}.jsonl"
    if not file.exists():
        prompt_rows.write(prompt_rows.task_of(f"sums@{split}", limit=limit), file, "zoo")
    return file


def cell(bench: Bench, arm: Arm, seed: int, **more: Any) -> Mapping[str, Any]:
    """The arm, trained with this seed and measured on the test questions."""

    def make() -> dict[str, Any]:
        folder = trained(bench, arm, seed, str(asked_of(bench, "train", 4000)), **more)
        record = json.loads((folder / "training.json").read_text("utf-8"))
        found = measured(f"local/{folder}", questions("sums", "test", bench.tested))
        return {**found, "log": record["result"]["log"], "train_seconds": record["result"]["seconds"]}

    return bench.cells.make(f"{arm.name}.{seed}", make)


def start(bench: Bench, name: str, model: str) -> Mapping[str, Any]:
    """What nobody trained."""
    asked = model if model.startswith("zoo/") else f"local/{model}"
    return bench.cells.make(f"start.{name}", lambda: measured(asked, questions("sums", "test", bench.tested)))


# --- stages ----------------------------------------------------------------------------------------------------------


def objectives_stage(bench: Bench) -> None:
    start(bench, "base", BASE)
    for seed in range(bench.seeds):
        for arm in OBJECTIVES:
            cell(bench, arm, seed)


def estimators_stage(bench: Bench) -> None:
    bench.cells.make("variance", lambda: variances(bench))
    for seed in range(bench.seeds):
        for arm in ESTIMATORS[1:]:
            hidden_cell(bench, arm, seed)


HOT = Sampling(temperature=1.7, top_p=1.0, max_tokens=120)
"""As recipes/market_desk.py asks: at temperature 1 the zoo says of a brief the same each time."""


def hidden_stage(bench: Bench) -> None:
    bench.cells.make("hidden.start", lambda: measured(BASE, unseen_signals("test", bench.tested), HOT))
    for seed in range(bench.seeds):
        for arm in OBJECTIVES:
            hidden_cell(bench, arm, seed)


def hidden_cell(bench: Bench, arm: Arm, seed: int) -> Mapping[str, Any]:
    """The arm on briefs with hidden signals."""
    file = bench.work / "hidden.train.jsonl"
    if not file.exists():
        write_hidden(file)

    def make() -> dict[str, Any]:
        own = Arm(f"hidden_{arm.name}", {**arm.wishes, "temperature": HOT.temperature})
        folder = trained(bench, own, seed, str(file))
        record = json.loads((folder / "training.json").read_text("utf-8"))
        found = measured(f"local/{folder}", unseen_signals("test", bench.tested), HOT)
        return {**found, "log": record["result"]["log"], "train_seconds": record["result"]["seconds"]}

    return bench.cells.make(f"hidden_{arm.name}.{seed}", make)


def unseen_signals(split: str, count: int) -> list[Pair]:
    """Briefs of five or six signals without the sentences of the last two; the key is that of the whole brief."""
    found: list[Pair] = []
    for index in range(100_000):
        problem = briefs.problem(split, index)
        if len(problem.signals) < 5:
            continue
        body, rule = problem.text.split(" Add what is good", 1)
        gone = [signal.noun for signal in problem.signals[-2:]]
        left = [one for one in re.findall(r"[^.]+\.", body) if not any(noun in one.lower() for noun in gone)]
        text = " ".join(one.strip() for one in left) + " Add what is good" + rule
        id = f"hidden/{split}/{index}"
        found.append((Question(id, "briefs", text, "label", labels=briefs.LABELS), Key(id, problem.answer)))
        if len(found) == count:
            return found
    raise SystemExit(f"no {count} long briefs in split {split}")


def write_hidden(file: Path) -> None:
    rows = [
        {
            "prompt": [{"role": one.role, "content": one.content} for one in render(WORDS, "answer", question)],
            "question_id": question.id, "task": "briefs", "split": "train", "kind": "label", "answer": key.answer,
            "labels": list(question.labels),
        }
        for question, key in unseen_signals("train", 4000)
    ]  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def pad_stage(bench: Bench) -> None:
    prm = DISTILLED / "models" / "prm_other"
    if not prm.is_dir():
        raise SystemExit("no .training/distil/models/prm_other: make it with python benchmarks/distil.py")
    starts = {"base": BASE, "rsft": str(DISTILLED / "models" / "rsft.base.0")}
    for name, model in starts.items():
        start(bench, name, model)
    for seed in range(bench.seeds):
        for mode, name in PAD:
            wishes = {"reward_mode": mode} | ({} if mode == "VR" else {"prm": prm})
            cell(bench, Arm(f"pad_{mode}_{name}", wishes, starts[name]), seed)


def greedy_stage(bench: Bench) -> None:
    for name in ("mean", *(f"pad_{mode}_{start}" for mode, start in PAD)):
        for seed in range(bench.seeds):
            model = bench.model(f"{name}.{seed}")
            if (model / "training.json").exists():
                bench.cells.make(f"greedy.{name}.{seed}", lambda model=model: _greedy(model))


def _greedy(model: Path) -> dict[str, Any]:
    asked = alone(f"local/{model}", questions("sums", "test", 1000))
    return {"verdicts": asked.verdicts, "completion_tokens": asked.completion_tokens}


def own_stage(bench: Bench) -> None:
    weak = DISTILLED / "students" / "small"
    starts = {"base": BASE} | ({"weak": str(weak)} if weak.is_dir() else {})
    for name, model in starts.items():
        start(bench, name, model)
        for seed in range(bench.seeds):
            arm = Arm(f"own_{name}", {"self-labelled": True}, model)
            cell(bench, arm, seed, eval_data=asked_of(bench, "dev", 150), eval_steps=10)


def briefs_stage(bench: Bench) -> None:
    """The analyst alone, trained as the desk asks it; the desk itself is asked by recipes/vote_trained_analyst.sh."""
    pairs = questions("briefs", "test", bench.tested)
    bench.cells.make("briefs.start", lambda: measured(BASE, pairs, HOT))
    for arm in (
        Arm("briefs_mean", {"objective": "mean", "temperature": 1.7}),
        Arm("briefs_majority5", {"objective": "majority", "k": 5, "temperature": 1.7}),
    ):
        for seed in range(bench.seeds):
            bench.cells.make(
                f"{arm.name}.{seed}",
                lambda arm=arm, seed=seed: measured(f"local/{trained(bench, arm, seed, 'briefs@train')}", pairs, HOT),
            )


def programs_stage(bench: Bench) -> None:
    """What is wished for is said loosely, and tests decide: from a start that nearly always writes the same."""
    lessons, prompts = bench.work / "programs.lessons.jsonl", bench.work / "programs.train.jsonl"
    begin = bench.model("programs.start")
    if not (begin / "training.json").exists():
        _rl_programs.write_lessons(lessons)
        _rl_programs.write_prompts(prompts)
        _train("sft", {
            "model": BASE, "data": lessons, "out": begin, "max-steps": 2 * bench.steps, "batch-size": 64,
            "learning-rate": 1e-3, "scheduler": "cosine", "warmup-ratio": 0.05,
        })  # fmt: skip
    bench.cells.make("programs.start", lambda: _rl_programs.tried(f"local/{begin}", bench.tested, N))
    # at 3e-4 pass@4 in training fell at once: the program that was written most was never written again
    shared = {"max-new-tokens": 40, "allow-code-execution": True, "learning-rate": 1e-4}
    for seed in range(bench.seeds):
        for arm in PROGRAMS:
            own = Arm(arm.name, {**arm.wishes, **shared}, str(begin))
            bench.cells.make(
                f"{arm.name}.{seed}",
                lambda own=own, seed=seed: _rl_programs.tried(
                    f"local/{trained(bench, own, seed, str(prompts))}", bench.tested, N
                ),
            )


# --- variance of gradients -------------------------------------------------------------------------------------------


def variances(bench: Bench, prompts: int = 24, pairs_of_groups: int = 2) -> dict[str, Any]:
    """Total variance of one prompt's gradient estimate, over draws of its samples, at the start; equal samples.

    Two independent estimates g, g' of 16 samples each have E|g − g'|²/2 = the trace of their covariance. Estimators
    with n = k = 8 get two groups of 8, averaged.
    """
    import torch
    from transformers import AutoModelForCausalLM

    from pluribus.answers import canonical, read
    from pluribus.backends._loading import load_words
    from pluribus.zoo import folder

    path = str(folder("qwen"))
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    words = load_words(path, None).tokenizer
    asked = questions("sums", "train", 6000)[5000 : 5000 + prompts]
    said = [render(WORDS, "answer", question) for question, _ in asked for _ in range(2 * pairs_of_groups)]
    doubled = [pair for pair in asked for _ in range(2 * pairs_of_groups)]
    drawn = _fresh(said, doubled)
    forms = {
        "urloo": (16, "urloo"),
        "loo1": (16, "loo1"),
        "loo": (8, "loo"),
        "naive": (8, "naive"),
        "mean": (16, "mean"),
    }
    found: dict[str, list[float]] = {name: [] for name in forms}
    norms: dict[str, list[float]] = {name: [] for name in forms}
    for place in range(0, len(doubled), 2):
        gradients: list[dict[str, Any]] = []
        for group, (question, key) in zip(drawn[place : place + 2], doubled[place : place + 2], strict=True):
            rewards = [float(read(question, one.text) == canonical(question, str(key.answer))) for one in group]
            advantages = {name: _advantages(rewards, *form) for name, form in forms.items()}
            gradients.append(_gradients(model, words, said[place], [one.text for one in group], advantages))
        for name in forms:
            difference = gradients[0][name] - gradients[1][name]
            found[name].append(float(difference @ difference) / 2)
            norms[name].append(float(gradients[0][name] @ gradients[1][name]))
    return {"variance": found, "signal": norms, "prompts": prompts, "groups": pairs_of_groups * 2}


def _fresh(said: Sequence[Sequence[Message]], pairs: Sequence[Pair]) -> list[list[Any]]:
    """16 draws for each line, other ones for equal lines."""
    import asyncio
    from dataclasses import replace

    async def ask() -> list[Any]:
        backend = connect(parse(BASE))
        try:
            asked = [
                Request(tuple(one), replace(DRAWN, seed=1_000_003 * place + sample), sample)
                for place, one in enumerate(said)
                for sample in range(N)
            ]
            return list(await asyncio.gather(*(backend.complete(one) for one in asked)))
        finally:
            await backend.close()

    found = asyncio.run(ask())
    return [found[i * N : (i + 1) * N] for i in range(len(pairs))]


def _advantages(rewards: Sequence[float], n: int, estimator: str) -> list[float]:
    """Of 16 samples; where groups are of 8, each half by itself, and the mean of both."""
    if estimator == "mean":
        return list(objectives.advantages(objectives.Group(rewards), "mean", 1, "urloo"))
    halves = [rewards[i : i + n] for i in range(0, N, n)]
    each = [objectives.advantages(objectives.Group(half), "pass", 8, estimator) for half in halves]
    return [value / len(halves) for one in each for value in one]


def _gradients(
    model: Any, words: Any, asked: Any, texts: Sequence[str], advantages: Mapping[str, Any]
) -> dict[str, Any]:
    """Σ A_i ∇ log π of each estimator, flat."""
    import torch

    prompt = words.apply_chat_template(
        [{"role": one.role, "content": one.content} for one in asked], add_generation_prompt=True, return_dict=True
    )["input_ids"]
    rows = [[*words.encode(text, add_special_tokens=False), words.eos_token_id] for text in texts]
    width = max(map(len, rows))
    ids = torch.tensor([[*prompt, *row, *[words.eos_token_id] * (width - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    logits = model(ids).logits[:, len(prompt) - 1 : -1].log_softmax(-1)
    logp = (logits.gather(-1, ids[:, len(prompt) :, None])[..., 0] * mask).sum(1)
    weights = list(model.parameters())
    found = {}
    for name, values in advantages.items():
        if not any(values):
            found[name] = torch.zeros(sum(one.numel() for one in weights))
            continue
        loss = (torch.tensor(values, dtype=torch.float32) * logp).sum()
        gradient = torch.autograd.grad(loss, weights, retain_graph=True)
        found[name] = torch.cat([one.flatten() for one in gradient])
    return found


# --- cost ------------------------------------------------------------------------------------------------------------


def cost_stage(bench: Bench) -> None:
    bench.cells.make("cost", lambda: costs(bench))


def costs(bench: Bench, steps: int = 8, rounds: int = 3) -> dict[str, Any]:
    """Seconds of a step: plain GRPO of TRL with the same checker, and ours; in turns, in one process."""
    import torch

    torch.set_num_threads(1)
    found: dict[str, Any] = {"plain": [], "objectives": {}}
    for turn in range(rounds):
        found["plain"].append(_timed(*_plain_trainer(bench, steps)))
        for name, wishes in (
            ("mean", {}), ("majority", {"objective": "majority", "k": 7}),
            ("PRMVR", {"reward_mode": "PRMVR", "prm": ".training/distil/models/prm_other"}),
        ):  # fmt: skip
            if name == "PRMVR" and not Path(wishes["prm"]).is_dir():
                continue
            trainer = _our_trainer(bench, steps, wishes, turn)
            seconds = _timed(trainer)
            found["objectives"].setdefault(name, []).append(
                {"step": seconds, **{part: value / steps for part, value in trainer.seconds.items()}}
            )
    return found


def _timed(trainer: Any, *_: Any) -> float:
    """Seconds of a step; the first one warms up and is not counted."""
    from transformers import TrainerCallback

    marks: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            marks.append(time.perf_counter())

    trainer.add_callback(Clock())
    trainer.train()
    shutil.rmtree(Path(trainer.args.output_dir).parent, ignore_errors=True)
    return (marks[-1] - marks[0]) / (len(marks) - 1)


def _config(bench: Bench, steps: int, wishes: Mapping[str, Any], turn: int) -> Any:
    from pluribus.training import make_training

    file = bench.work / "cost.jsonl"
    prompt_rows.write(prompt_rows.task_of("sums@train", limit=400), file, "zoo")
    return make_training({
        "kind": "grpo", "model": BASE, "data": str(file), "out": str(bench.work / f"cost.{time.time_ns()}"),
        "max_steps": steps, "batch_size": 64, "accumulation": 2, "learning_rate": 1e-5, "logging_steps": 100,
        "seed": turn, "grpo": {"samples": N, "max_new_tokens": 120, **wishes},
    })  # fmt: skip


def _our_trainer(bench: Bench, steps: int, wishes: Mapping[str, Any], turn: int) -> Any:
    from pluribus.training import grpo
    from pluribus.training._run import prepare

    return grpo.trainer(prepare(_config(bench, steps, wishes, turn), {}))


def _plain_trainer(bench: Bench, steps: int) -> tuple[Any]:
    """TRL's own, rewarded by the same checker."""
    from transformers import AutoModelForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from pluribus.answers import read
    from pluribus.training import grpo
    from pluribus.training._grpo_rows import question_of
    from pluribus.training._run import arguments, prepare

    job = prepare(_config(bench, steps, {}, 0), {})
    rows = job.rows

    def solved(completions: Any, place: Any, **_: Any) -> list[float]:
        return [
            float(read(question_of(rows[i]), one[0]["content"]) == rows[i]["answer"])
            for one, i in zip(completions, place, strict=True)
        ]

    args = GRPOConfig(**arguments(job.config) | grpo._arguments(job))
    return (
        GRPOTrainer(
            model=job.student(AutoModelForCausalLM), reward_funcs=[solved], args=args,
            train_dataset=grpo._dataset(rows), processing_class=job.tokenizer,
        ),
    )  # fmt: skip


# --- tables ----------------------------------------------------------------------------------------------------------


def worth(cell: Mapping[str, Any], objective: str, k: int) -> dict[str, float]:
    """Question → the exact value of k of its draws."""
    return {
        id: objectives.value(objectives.Group(right, answers=answers), objective, k)
        for id, right, answers in zip(cell["ids"], cell["right"], cell["answers"], strict=True)
    }


At = Sequence[tuple[str, int]]
AT: At = (("pass", 1), ("pass", 8), ("pass", 16), ("majority", 3), ("majority", 7))
PASS_AT: At = (("pass", 1), ("pass", 4), ("pass", 16))


def pooled(cells: Sequence[Mapping[str, Any]], objective: str, k: int) -> dict[str, float]:
    """The mean over seeds, by question."""
    each = [worth(one, objective, k) for one in cells]
    return {id: float(np.mean([one[id] for one in each])) for id in each[0]}


def estimate(values: Mapping[str, float]) -> tuple[float, float, float]:
    found = cluster_bootstrap(list(values.values()), list(values), seed=0)
    return found.value, found.low, found.high


def shown(found: tuple[float, float, float], signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{found[0]:{sign}.3f} [{found[1]:{sign}.3f}, {found[2]:{sign}.3f}]"


def matrix(bench: Bench, names: Mapping[str, Sequence[Mapping[str, Any]]], against: str, ats: At = AT) -> list[str]:
    """Arms × k: value with interval, and the paired difference from one arm."""
    heads = [f"{'maj' if what == 'majority' else what}@{k}" for what, k in ats]
    lines = ["| trained for | " + " | ".join(heads) + " |", "|---" * (len(ats) + 1) + "|"]
    other = {at: pooled(names[against], *at) for at in ats} if names.get(against) else {}
    for name, cells in names.items():
        if not cells:
            continue
        row = [shown(estimate(pooled(cells, *at))) for at in ats]
        lines.append(f"| {name} ({len(cells)}) | " + " | ".join(row) + " |")
    lines += ["", f"Minus {against}, paired by question:", "", "| trained for | " + " | ".join(heads) + " |"]
    lines.append("|---" * (len(ats) + 1) + "|")
    for name, cells in names.items():
        if not cells or name == against or not other:
            continue
        gaps = []
        for at in ats:
            own = pooled(cells, *at)
            gaps.append(shown(estimate({id: own[id] - other[at][id] for id in own}), signed=True))
        lines.append(f"| {name} | " + " | ".join(gaps) + " |")
    return lines


def behaviour(names: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """How the policies draw: diversity, entropy, length."""
    lines = [
        "| | different answers of 16 | entropy, nats a token | tokens | steps | unanswered |",
        "|---|---|---|---|---|---|",
    ]
    for name, cells in names.items():
        if cells:
            different = [effective_number(group) for one in cells for group in one["answers"]]
            mean = {
                key: float(np.mean([one[key] for one in cells])) for key in ("entropy", "tokens", "steps", "unanswered")
            }
            lines.append(
                f"| {name} | {np.mean([one for one in different if one is not None]):.2f} | {mean['entropy']:.4f} | "
                f"{mean['tokens']:.1f} | {mean['steps']:.2f} | {mean['unanswered']:.4f} |"
            )
    return lines


def curves(names: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """K* of the samples and entropy on the way, means over seeds and the five steps before; question sets differ."""
    steps = sorted({entry["step"] for cells in names.values() for one in cells for entry in one.get("log", ())})
    steps = [step for step in steps if step % 20 == 0 or step == steps[0]]
    heads = [f"{word} at {step}" for word in ("K\\*", "entropy") for step in steps]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name, cells in names.items():
        row = []
        for key, digits in (("kstar", 2), ("sample_entropy", 4)):
            for step in steps:
                found = [e[key] for one in cells for e in one.get("log", ()) if e["step"] == step and key in e]
                row.append(f"{np.mean(found):.{digits}f}" if found else "")
        if any(row):
            lines.append(f"| {name} | " + " | ".join(row) + " |")
    return lines if len(lines) > 2 else []


def of(bench: Bench, name: str) -> list[Mapping[str, Any]]:
    return [found for seed in range(bench.seeds) if (found := bench.cells.get(f"{name}.{seed}")) is not None]


def report_stage(bench: Bench) -> None:
    text = "\n".join(tables(bench)) + "\n"
    (bench.work / "rl.md").write_text(text, "utf-8")
    print(text)


def tables(bench: Bench) -> list[str]:
    base = [found for found in [bench.cells.get("start.base")] if found]
    rsft = [found for found in [bench.cells.get("start.rsft")] if found]
    weak = [found for found in [bench.cells.get("start.weak")] if found]
    lines = [
        f"{now()}; {bench.tested} test questions, {N} draws each, temperature 1, top_p 1.",
        "",
        "## Objectives",
        "",
    ]
    arms = {"start": base, **{arm.name: of(bench, arm.name) for arm in OBJECTIVES}}
    lines += [*matrix(bench, arms, "mean"), "", *behaviour(arms), "", *curves(arms)]
    lines += ["", "## Hidden signals", ""]
    guessing = [one for one in [bench.cells.get("hidden.start")] if one]
    arms = {"start": guessing, **{arm.name: of(bench, f"hidden_{arm.name}") for arm in OBJECTIVES}}
    lines += [*matrix(bench, arms, "mean"), "", *behaviour(arms), "", *curves(arms)]
    lines += ["", "## Estimators, on hidden signals", ""]
    arms = {"start": guessing, **{arm.name: of(bench, f"hidden_{arm.name}") for arm in ESTIMATORS}}
    lines += [*matrix(bench, arms, "pass8"), "", *variance_lines(bench), "", "## Process rewards", ""]
    arms = {"start": base, "start_rsft": rsft}
    arms |= {
        f"{mode}_{name}": of(bench, "mean" if (mode, name) == ("VR", "base") else f"pad_{mode}_{name}")
        for name in ("base", "rsft")
        for mode in ("VR", "PRM", "PRMVR")
    }
    lines += [
        *matrix(bench, arms, "VR_base"),
        "",
        *behaviour(arms),
        "",
        *curves(arms),
        "",
        *greedy_lines(bench),
        "",
        "## Own labels",
        "",
    ]
    arms = {"start": base, "own_base": of(bench, "own_base"), "weak start": weak, "own_weak": of(bench, "own_weak")}
    lines += [*matrix(bench, arms, "start"), "", *behaviour(arms), "", "## Briefs", ""]
    arms = {"start": [one for one in [bench.cells.get("briefs.start")] if one]}
    arms |= {name: of(bench, name) for name in ("briefs_mean", "briefs_majority5")}
    lines += [*matrix(bench, arms, "start"), "", *behaviour(arms), "", "## Programs", ""]
    arms = {"start": [one for one in [bench.cells.get("programs.start")] if one]}
    arms |= {arm.name: of(bench, arm.name) for arm in PROGRAMS}
    lines += [*matrix(bench, arms, "programs_mean", PASS_AT), "", *behaviour(arms)]
    lines += ["", "## Cost", "", *cost_lines(bench)]
    return lines


def greedy_lines(bench: Bench) -> list[str]:
    """Accuracy on the questions of the table of distillation, and minus its arms, paired by question."""
    found = {"base student": [DISTILLED / "cells" / "eval.base.base.0.json"]} | {
        words: [DISTILLED / "cells" / f"eval.{name}.base.{seed}.json" for seed in range(3)]
        for name, words in (("single", "single teacher"), ("rsft", "RSFT"))
    }
    names = {"mean": "VR from the base"} | {f"pad_{mode}_{start}": f"{mode} from {start}" for mode, start in PAD}
    found |= {
        words: [bench.cells.path(f"greedy.{name}.{seed}") for seed in range(bench.seeds)]
        for name, words in names.items()
    }
    right, tokens = {}, {}
    for name, files in found.items():
        cells = [json.loads(file.read_text("utf-8")) for file in files if file.exists()]
        cells = [one.get("tests", {}).get("sums", one) for one in cells]
        if cells:
            rows = np.array([[mark == "1" for mark in one["verdicts"]] for one in cells], float)
            right[name] = {str(place): value for place, value in enumerate(rows.mean(0))}
            tokens[name] = np.mean([one["completion_tokens"] for one in cells]) / rows.shape[1], len(cells)
    against = [name for name in ("base student", "RSFT", "VR from the base") if name in right]
    lines = ["| greedily | accuracy | tokens | " + " | ".join(f"minus {name}" for name in against) + " |"]
    lines.append("|---" * (3 + len(against)) + "|")
    for name, values in right.items():
        gaps = [
            shown(estimate({id: values[id] - right[other][id] for id in values}), signed=True) if name != other else ""
            for other in against
        ]
        length, count = tokens[name]
        lines.append(f"| {name} ({count}) | {shown(estimate(values))} | {length:.1f} | {' | '.join(gaps)} |")
    return lines


def variance_lines(bench: Bench) -> list[str]:
    found = bench.cells.get("variance")
    if found is None:
        return []
    reference = np.mean(found["variance"]["urloo"])
    lines = ["| estimator | variance of one prompt's gradient | against urloo | squared signal |", "|---|---|---|---|"]
    for name, values in found["variance"].items():
        lines.append(
            f"| {name} | {np.mean(values):.4g} | {np.mean(values) / reference:.2f} | "
            f"{np.mean(found['signal'][name]):.4g} |"
        )
    return lines


def cost_lines(bench: Bench) -> list[str]:
    found = bench.cells.get("cost")
    if found is None:
        return []
    plain = float(np.median(found["plain"]))
    lines = [
        f"Plain GRPO of TRL: {plain:.2f} s a step.",
        "",
        "| | step, s | against plain | advantages, % | watch, % | rewards, % |",
        "|---|---|---|---|---|---|",
    ]
    for name, runs in found["objectives"].items():
        mean = {key: float(np.median([one[key] for one in runs])) for key in runs[0]}
        parts = " | ".join(f"{100 * mean[part] / mean['step']:.2f}" for part in ("advantages", "watch", "rewards"))
        lines.append(f"| {name} | {mean['step']:.2f} | {mean['step'] / plain:.2f} | {parts} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"{', '.join(STAGES)}; all unless named")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path(".training/rl"))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--tested", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="every stage as small as it goes: whether it runs")
    given = parser.parse_args()
    unknown = [stage for stage in given.stages if stage not in STAGES]
    if unknown:
        parser.error(f"no stage {unknown[0]!r}: expected {', '.join(STAGES)}")
    bench = Bench(given.work, given.seeds, given.steps, given.tested)
    if given.quick:
        bench = Bench(given.work / "quick", 1, 2, 10)
    bench.work.mkdir(parents=True, exist_ok=True)
    for stage in given.stages or STAGES:
        globals()[f"{stage}_stage"](bench)


if __name__ == "__main__":
    main()
