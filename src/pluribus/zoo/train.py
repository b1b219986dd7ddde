"""Train the zoo: `python -m pluribus.zoo.train [--member NAME] [--threads N]`.

Every few minutes a member's state goes to `.training/zoo/NAME`, and a later call goes on from that very step: the
rows of a step are a function of (member, step). Finished weights go to `src/pluribus/zoo/checkpoints/NAME`.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from pluribus.zoo import CHECKPOINTS
from pluribus.zoo.lessons import WEAK, Row, rows
from pluribus.zoo.models import new_model
from pluribus.zoo.tokenizer import ASSISTANT, END, SYSTEM, USER, open_tokenizer, train_tokenizer

WORK = Path(".training/zoo")
STEPS = 2_200
ROWS = 24
"""Rows a step."""
CHUNKS = 2
"""A step's rows are sorted by length and cut into this many parts, so that little padding is computed."""
WARMUP = 100
DECAY = 0.35
"""The last part of the steps, in which the learning rate falls to zero."""
DEBATES_FROM = 900
"""The step at which rows with others' solutions begin: first arithmetic, then company."""
SAVE_EVERY_S = 120.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a probe may vary; the defaults are the recipe."""

    steps: int = STEPS
    muon_lr: float = 0.02
    adam_lr: float = 4e-3
    optimizer: str = "muon"
    bf16: bool = False
    minutes: float | None = None
    """Stop early, without the final decay: for probes."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids, padded on the right, and which of them are to be learned (as targets)."""

    ids_B_T: torch.Tensor
    learn_B_T: torch.Tensor


def train(member: str, recipe: Recipe, work: Path = WORK, out: Path = CHECKPOINTS) -> None:
    """Train one member to the end of the recipe, from its saved state where there is one.

    Args:
        member: a name in `lessons.WEAK`.
        recipe: how long and how fast.
        work: where states are kept; a second call goes on from there.
        out: where the finished member is written.
    """
    tokenizer = shared_tokenizer(work)
    model = new_model(member, tokenizer, seed=sorted(WEAK).index(member))
    optimizers = _optimizers(model, recipe)
    step = _resume(work / member, model, optimizers)
    started = saved = time.monotonic()
    losses: list[float] = []
    while step < recipe.steps and not _out_of_time(started, recipe):
        losses.append(_learn(model, optimizers, _batches(member, step, tokenizer), rate(step, recipe.steps), recipe))
        step += 1
        if step % 50 == 0:
            _report(member, step, losses[-50:], started)
        if time.monotonic() - saved > SAVE_EVERY_S:
            _save(work / member, model, optimizers, step)
            saved = time.monotonic()
    _save(work / member, model, optimizers, step)
    export(model, tokenizer, member, out)


def shared_tokenizer(work: Path) -> Any:
    """The tokenizer of all members; trained once, it takes seconds."""
    folder = work / "tokenizer"
    if not (folder / "tokenizer.json").exists():
        train_tokenizer().save_pretrained(folder)
    return open_tokenizer(folder)


def rate(step: int, steps: int) -> float:
    """Share of the full learning rate at a step: warm up, stay, fall linearly to zero.

    >>> [round(rate(step, 1000), 2) for step in (0, 99, 500, 999)]
    [0.01, 1.0, 1.0, 0.0]
    """
    return min((step + 1) / WARMUP, 1.0, (steps - step) / (DECAY * steps))


def export(model: Any, tokenizer: Any, member: str, root: Path) -> None:
    """Write a member as others read it: fp16 safetensors, tokenizer, chat template."""
    folder = root / member
    half = copy.deepcopy(model).half()
    half.generation_config.eos_token_id = tokenizer.eos_token_id
    half.generation_config.pad_token_id = tokenizer.pad_token_id
    # a server takes what a request leaves out from here: a member samples as it was trained, it is not greedy
    half.generation_config.update(do_sample=True, temperature=1.0, top_p=1.0, top_k=0)
    half.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    tokenizer.save_pretrained(folder)


def encode(tokenizer: Any, row: Row) -> tuple[list[int], int]:
    """Token ids of a row, and how many of them stand before the reply; the same as the chat template's."""
    system = f"{SYSTEM}{row.system}" if row.system is not None else ""
    head = tokenizer._tokenizer.encode(f"{system}{USER}{row.user}{ASSISTANT}").ids
    return head + tokenizer._tokenizer.encode(f"{row.reply}{END}").ids, len(head)


def _batches(member: str, step: int, tokenizer: Any) -> Iterator[Batch]:
    drawn = rows(member, step, ROWS, debates=step >= DEBATES_FROM)
    encoded = sorted((encode(tokenizer, row) for row in drawn), key=lambda pair: len(pair[0]))
    size = ROWS // CHUNKS
    for first in range(0, ROWS, size):
        yield _pad(encoded[first : first + size])


def _pad(encoded: Sequence[tuple[list[int], int]]) -> Batch:
    """Right padding needs no mask in a causal model: nothing that counts looks at it."""
    longest = max(len(ids) for ids, _ in encoded)
    ids_B_T = torch.zeros(len(encoded), longest, dtype=torch.long)
    learn_B_T = torch.zeros(len(encoded), longest, dtype=torch.bool)
    for index, (ids, head) in enumerate(encoded):
        ids_B_T[index, : len(ids)] = torch.tensor(ids)
        learn_B_T[index, head : len(ids)] = True
    return Batch(ids_B_T, learn_B_T)


def _learn(model: Any, optimizers: list[Any], batches: Iterator[Batch], share: float, recipe: Recipe) -> float:
    """One step over all parts of the batch; returns the mean loss per learned token, nats."""
    parts = list(batches)
    tokens = sum(int(part.learn_B_T.sum()) for part in parts)
    total = 0.0
    for part in parts:
        loss = _loss(model, part, recipe.bf16) / tokens
        loss.backward()
        total += float(loss.detach())
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * share
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return total


def _loss(model: Any, batch: Batch, bf16: bool) -> Any:
    """Summed loss on the replies; only their positions reach the output layer."""
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        hidden_B_T_D = model.base_model(input_ids=batch.ids_B_T[:, :-1], use_cache=False).last_hidden_state
        logits = model.get_output_embeddings()(hidden_B_T_D[batch.learn_B_T[:, 1:]])
    return cross_entropy(logits.float(), batch.ids_B_T[:, 1:][batch.learn_B_T[:, 1:]], reduction="sum")


def _optimizers(model: Any, recipe: Recipe) -> list[Any]:
    """Muon for the matrices inside the layers, AdamW for embeddings and norms."""
    inner: list[Any] = []
    outer: list[Any] = []
    for name, parameter in model.named_parameters():
        matrix = parameter.ndim == 2 and "embed" not in name and recipe.optimizer == "muon"
        (inner if matrix else outer).append(parameter)
    made: list[Any] = [torch.optim.AdamW(outer, lr=recipe.adam_lr, betas=(0.9, 0.98), weight_decay=0.01)]
    if inner:
        made.append(torch.optim.Muon(inner, lr=recipe.muon_lr, weight_decay=0.01))
    for optimizer in made:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return made


def _save(folder: Path, model: Any, optimizers: list[Any], step: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    state = {"step": step, "model": model.state_dict(), "optimizers": [each.state_dict() for each in optimizers]}
    torch.save(state, folder / "state.tmp")
    (folder / "state.tmp").replace(folder / "state.pt")


def _resume(folder: Path, model: Any, optimizers: list[Any]) -> int:
    if not (folder / "state.pt").exists():
        return 0
    state = torch.load(folder / "state.pt", weights_only=True)
    model.load_state_dict(state["model"])
    for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    return int(state["step"])


def _out_of_time(started: float, recipe: Recipe) -> bool:
    return recipe.minutes is not None and time.monotonic() - started > recipe.minutes * 60


def _report(member: str, step: int, losses: list[float], started: float) -> None:
    mean = sum(losses) / len(losses)
    print(f"{member} step {step} loss {mean:.4f} {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pluribus.zoo.train", description="Train the zoo's members.")
    parser.add_argument("--member", choices=sorted(WEAK), help="one member; all of them unless named")
    parser.add_argument("--threads", type=int, default=2, help="torch threads")
    parser.add_argument("--steps", type=int, default=STEPS, help="length of the whole training")
    parser.add_argument("--minutes", type=float, help="stop after this long: a probe, written under .training only")
    parser.add_argument("--work", type=Path, default=WORK, help="where states are kept")
    parser.add_argument("--optimizer", choices=("muon", "adamw"), default="muon")
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=4e-3)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast: faster where the processor has it")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    recipe = Recipe(given.steps, given.muon_lr, given.adam_lr, given.optimizer, given.bf16, given.minutes)
    for member in [given.member] if given.member else sorted(WEAK):
        train(member, recipe, given.work, CHECKPOINTS if given.minutes is None else given.work / "probe")


if __name__ == "__main__":
    main()
