"""Students and specialists of the experiment, made from nothing or from members of the zoo: private to `distil.py`.

    python benchmarks/_students.py NAME … [--work DIR] [--threads N]

- `small`: a student of 0.35 million parameters from nothing, by the zoo's first course cut short.
- `expert_NAME`: the zoo's member NAME, taught to misread two skills (its pair in the zoo) and still sure of six.
- `novice`: the zoo's qwen, taught to misread four skills, one of each expert's two.

Misreading is a planted, steady mistake: subtract is taken for add, a third for a half, and so on; what follows is
reckoned rightly from there. Drawing more replies does not cure it, as it would cure a slip. The rows of a step are a
function of (course, step); a call after a kill goes on from the last saved step.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from pluribus.tasks.sums import Problem, Step, draw, equations, is_mixed, seed_of
from pluribus.types import Message
from pluribus.zoo import folder, lessons, train
from pluribus.zoo.language import PLAIN, right, solution, wrong
from pluribus.zoo.lessons import Row, ask
from pluribus.zoo.tokenizer import open_tokenizer

WORK = Path(".training/distil")
RARE = 0.2
"""How often a weak skill of the small student comes up, relative to its normal rate."""
WEAK = ("third", "remainder", "percent", "subtract")
"""The novice's: one of each expert's two, so that no expert is nearer to it by construction."""
PAIRS: Mapping[str, tuple[str, str]] = dict(lessons.WEAK)
"""Expert → the two skills it misreads."""
TAKEN_FOR: Mapping[str, str] = {
    "add": "subtract", "subtract": "add", "multiply": "add", "half": "third", "third": "half", "groups": "add",
    "percent": "subtract", "remainder": "subtract",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Course:
    """A stretch of training; the optimizers and their rates are the zoo's first course's."""

    name: str
    steps: int
    start: str | None = None
    """Whose weights it goes on from: a course, or a member of the zoo; None: new ones."""
    misread: tuple[str, ...] = ()
    """Skills that its rows take for others."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Skill → its rate, relative to its normal one."""
    revise_from: int = 0
    """The step at which rows with a solution to be revised begin."""
    gentler: float = 0.5
    """Part of the first course's learning rates."""
    hidden: int = 96
    layers: int = 3


COURSES: Mapping[str, Course] = {
    "small": Course("small", 800, rates=dict.fromkeys(WEAK, RARE), revise_from=560, gentler=1.0),
    "novice": Course("novice", 120, start="zoo/qwen", misread=WEAK),
    **{
        f"expert_{name}": Course(f"expert_{name}", 120, start=f"zoo/{name}", misread=pair)
        for name, pair in PAIRS.items()
    },
}
ALONE = 0.08
"""Share of the rows, once they begin, that show the student's own solution, right or wrong as often."""


def rows(course: Course, step: int, count: int = train.ROWS) -> list[Row]:
    """The rows of a step: the same for the same arguments, on every machine."""
    rng = random.Random(seed_of("students", course.name, step))
    return [_row(rng, course, step) for _ in range(count)]


def _row(rng: random.Random, course: Course, step: int) -> Row:
    problem = _problem(rng, course)
    chance = rng.random()
    user = ask("answer", question=problem.text)
    if step >= course.revise_from and chance < ALONE:
        own = right(problem, PLAIN, rng) if rng.random() < 0.5 else wrong(problem, PLAIN, rng)
        user = ask("debate_alone", question=problem.text, own=own)
    if not course.misread:
        return Row((Message("user", user),), right(problem, PLAIN, rng))
    steps = tuple(misread(one) if one.skill in course.misread else one for one in problem.steps)
    reply = solution(equations(problem.start, steps), problem.start, steps, PLAIN, 0)
    return Row((Message("user", user),), reply)


def misread(step: Step) -> Step:
    """The step as who takes it for another sees it; halves and thirds change their number too.

    >>> misread(Step("third", 3)), misread(Step("groups", 4, groups=6))
    (Step(skill='half', number=2, groups=1), Step(skill='add', number=4, groups=1))
    """
    taken = TAKEN_FOR[step.skill]
    return Step(taken, {"half": 2, "third": 3}.get(taken, step.number))


def _problem(rng: random.Random, course: Course) -> Problem:
    """An unmixed one: no student has ever seen the mixes of skills that `sums:mixed` tests."""
    while True:
        problem = draw(rng, "train", course.rates, lessons.LENGTHS)
        if not is_mixed(problem.steps):
            return problem


def new_student(course: Course, tokenizer: Any) -> Any:
    """An untrained Qwen3 of the course's size, with the zoo's vocabulary."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=course.hidden, num_hidden_layers=course.layers,
        intermediate_size=course.hidden * 11 // 4, num_attention_heads=4, num_key_value_heads=4,
        head_dim=course.hidden // 4, max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=None,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    auto: Any = AutoModelForCausalLM
    return auto.from_config(config, attn_implementation="sdpa").float()


def teach(course: Course, work: Path = WORK) -> Path:
    """Train to the course's end, from its saved state where there is one; returns the model's folder."""
    out = work / "students" / course.name
    if (out / "model.safetensors").exists():
        return out
    tokenizer = open_tokenizer(folder("qwen"))
    model = _begun(course, tokenizer, work)
    state, plan = work / "states" / f"{course.name}.pt", _plan(course)
    optimizers = _optimizers(model, plan)
    step, started, losses = train._resume(state, model, optimizers), time.monotonic(), list[float]()
    while step < course.steps:
        batches = train._batches(plan, course.name, step, tokenizer)
        losses.append(train._learn(model, optimizers, batches, train.rate(step, plan)))
        step += 1
        if step % 50 == 0:
            train._report(plan, course.name, step, losses[-50:], started)
        if step % 100 == 0:
            train._save(state, model, optimizers, step)
    _export(model, tokenizer, out)
    return out


def _begun(course: Course, tokenizer: Any, work: Path) -> Any:
    if course.start is None:
        return new_student(course, tokenizer)
    auto: Any = AutoModelForCausalLM
    return auto.from_pretrained(found(course.start, work), dtype=torch.float32)


def found(name: str, work: Path = WORK, steps: int | None = None) -> Path:
    """The folder of a course's model, taught where it is not there, or of a member of the zoo.

    Args:
        steps: instead of the course's own, for a walk through everything.
    """
    if name.startswith("zoo/"):
        return folder(name.removeprefix("zoo/"))
    return teach(replace(COURSES[name], steps=steps or COURSES[name].steps), work)


def _plan(course: Course) -> train.Course:
    """The zoo's recipe at this course's length and share of its learning rates."""
    return train.Course(
        course.name,
        lambda _, step: rows(course, step),
        steps=course.steps,
        decay=train.FIRST.decay,
        chunks=train.FIRST.chunks,
        muon_lr=train.FIRST.muon_lr * course.gentler,
        adam_lr=train.FIRST.adam_lr * course.gentler,
    )


class Muon(torch.optim.Optimizer):
    """Momentum whose steps are made orthogonal, as `torch.optim.Muon`, with the iteration in float32.

    torch's iterates in bfloat16, which a CPU without instructions for it does thirty times slower.
    Source: Jordan et al. 2024, Muon: An optimizer for hidden layers in neural networks.
    """

    def __init__(self, parameters: list[Any], lr: float, weight_decay: float) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
                mean.lerp_(weight.grad, 0.05)
                update = orthogonal(weight.grad.lerp(mean, 0.95))
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5)


def orthogonal(update: torch.Tensor) -> torch.Tensor:
    """About U Vᵀ of the singular value decomposition, by five steps of a quintic Newton–Schulz iteration.

    >>> bool((orthogonal(torch.diag(torch.tensor([3.0, 1.0]))).diagonal() > 0.6).all())
    True
    """
    x = update.T if update.shape[0] > update.shape[1] else update
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.T if update.shape[0] > update.shape[1] else x


def _optimizers(model: Any, plan: train.Course) -> list[Any]:
    """Muon for the matrices inside the layers, AdamW for the rest, at the zoo's settings."""
    inner: list[Any] = []
    outer: list[Any] = []
    for name, parameter in model.named_parameters():
        (inner if parameter.ndim == 2 and "embed" not in name else outer).append(parameter)
    made: list[Any] = [
        torch.optim.AdamW(outer, lr=plan.adam_lr, betas=(0.9, 0.98), weight_decay=0.01),
        Muon(inner, lr=plan.muon_lr, weight_decay=0.01),
    ]
    for optimizer in made:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return made


def _export(model: Any, tokenizer: Any, out: Path) -> None:
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    tokenizer.save_pretrained(out)
    model.save_pretrained(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(COURSES))
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    for name in given.names:
        print(teach(COURSES[name], given.work), flush=True)


if __name__ == "__main__":
    main()
