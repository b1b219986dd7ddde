"""Train the zoo: `python -m pluribus.zoo.train [--member NAME] [--threads N]`.

Two courses, one after the other: `first` teaches sums, `council` goes on from its weights with three tasks and every
prompt of a council. Every few minutes a member's state goes to `.training/zoo/NAME`, and a later call goes on from
that very step: the rows of a step are a function of (course, member, step). A member that has finished both courses
goes to `src/pluribus/zoo/checkpoints/NAME`.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from pluribus.zoo import CHECKPOINTS, council_lessons, lessons
from pluribus.zoo.lessons import WEAK, Row
from pluribus.zoo.models import grown_model, new_model
from pluribus.zoo.tokenizer import ASSISTANT, END, extended_tokenizer, open_tokenizer, train_tokenizer

WORK = Path(".training/zoo")
ROWS = 24
"""Rows a step."""
WARMUP = 100
DEBATES_FROM = 900
"""The step of the first course at which rows with others' solutions begin: first arithmetic, then company."""


@dataclass(frozen=True, slots=True)
class Course:
    """What is taught in a stretch of training, and how fast; the two below are the recipe."""

    name: str
    rows: Callable[[str, int], list[Row]]
    """(member, step) → the rows of that step."""
    steps: int
    decay: float
    """The last part of the steps, in which the learning rate falls to zero."""
    chunks: int
    """A step's rows are sorted by length and cut into this many parts, so that little padding is computed."""
    muon_lr: float = 0.02
    adam_lr: float = 4e-3
    save_every_s: float = 120.0
    minutes: float | None = None
    """Stop early, without the final decay: for probes."""


def _first_rows(member: str, step: int) -> list[Row]:
    return lessons.rows(member, step, ROWS, debates=step >= DEBATES_FROM)


def _council_rows(member: str, step: int) -> list[Row]:
    return council_lessons.rows(member, step, ROWS)


FIRST = Course("first", _first_rows, steps=2_200, decay=0.35, chunks=2)
COUNCIL = Course("council", _council_rows, steps=3_300, decay=0.4, chunks=4, muon_lr=0.01, adam_lr=2e-3)
LONGER: Mapping[str, int] = {"olmo": 4_600}
"""Members that learn the second course more slowly: at 3,300 steps olmo's loss was 0.047, the others' 0.017."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids, padded on the right, and which of them are to be learned (as targets)."""

    ids_B_T: torch.Tensor
    learn_B_T: torch.Tensor


def train(member: str, first: Course = FIRST, council: Course = COUNCIL, work: Path = WORK) -> tuple[Any, Any]:
    """Train one member to the end of both courses, from its saved state where there is one.

    Args:
        member: a name in `lessons.WEAK`.
        first: the course from nothing; it is skipped once its state is there and complete.
        council: the course that goes on from the first one's weights.
        work: where states are kept; a second call goes on from there.

    Returns:
        The model and its tokenizer.
    """
    short = shared_tokenizer(work)
    model = new_model(member, short, seed=sorted(WEAK).index(member))
    if not (work / member / _state(council)).exists():
        _take(first, member, model, short, work)
    tokenizer = council_tokenizer(work)
    model = grown_model(model, member, tokenizer, dict(_origins(short, tokenizer)))
    _take(council, member, model, tokenizer, work)
    return model, tokenizer


def _take(course: Course, member: str, model: Any, tokenizer: Any, work: Path) -> None:
    """One course, from its saved state to its end."""
    optimizers = _optimizers(model, course)
    state = work / member / _state(course)
    step = _resume(state, model, optimizers)
    started = saved = time.monotonic()
    losses: list[float] = []
    while step < course.steps and not _out_of_time(started, course):
        losses.append(_learn(model, optimizers, _batches(course, member, step, tokenizer), rate(step, course)))
        step += 1
        if step % 50 == 0:
            _report(course, member, step, losses[-50:], started)
        if time.monotonic() - saved > course.save_every_s:
            _save(state, model, optimizers, step)
            saved = time.monotonic()
    if losses:
        _save(state, model, optimizers, step)


def _state(course: Course) -> str:
    return "state.pt" if course.name == "first" else f"{course.name}.pt"


def shared_tokenizer(work: Path) -> Any:
    """The first course's tokenizer, of all members; trained once, it takes seconds."""
    folder = work / "tokenizer"
    if not (folder / "tokenizer.json").exists():
        train_tokenizer().save_pretrained(folder)
    return open_tokenizer(folder)


def council_tokenizer(work: Path) -> Any:
    """The same with the second course's entries behind it."""
    folder = work / "council_tokenizer"
    if not (folder / "tokenizer.json").exists():
        extended_tokenizer(shared_tokenizer(work)).save_pretrained(folder)
    return open_tokenizer(folder)


def _origins(short: Any, tokenizer: Any) -> Iterator[tuple[int, list[int]]]:
    """(new entry, the old entries that spelled it)."""
    names = tokenizer.convert_ids_to_tokens(range(len(short), len(tokenizer)))
    for index, name in enumerate(names, start=len(short)):
        yield index, [token.id for token in short._tokenizer.model.tokenize(name)]


def rate(step: int, course: Course) -> float:
    """Share of the full learning rate at a step: warm up, stay, fall linearly to zero.

    >>> [round(rate(step, replace(FIRST, steps=1000)), 2) for step in (0, 99, 500, 999)]
    [0.01, 1.0, 1.0, 0.0]
    """
    return min((step + 1) / WARMUP, 1.0, (course.steps - step) / (course.decay * course.steps))


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
    said = (f"<|{m.role}|>{m.content}{END if m.role == 'assistant' else ''}" for m in row.messages)
    head = tokenizer._tokenizer.encode(f"{''.join(said)}{ASSISTANT}").ids
    return head + tokenizer._tokenizer.encode(f"{row.reply}{END}").ids, len(head)


def _batches(course: Course, member: str, step: int, tokenizer: Any) -> Iterator[Batch]:
    drawn = course.rows(member, step)
    encoded = sorted((encode(tokenizer, row) for row in drawn), key=lambda pair: len(pair[0]))
    size = len(encoded) // course.chunks
    for first in range(0, len(encoded), size):
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


def _learn(model: Any, optimizers: list[Any], batches: Iterator[Batch], share: float) -> float:
    """One step over all parts of the batch; returns the mean loss per learned token, nats."""
    parts = list(batches)
    tokens = sum(int(part.learn_B_T.sum()) for part in parts)
    total = 0.0
    for part in parts:
        loss = _loss(model, part) / tokens
        loss.backward()
        total += float(loss.detach())
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * share
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return total


def _loss(model: Any, batch: Batch) -> Any:
    """Summed loss on the replies; only their positions reach the output layer."""
    hidden_B_T_D = model.base_model(input_ids=batch.ids_B_T[:, :-1], use_cache=False).last_hidden_state
    logits = model.get_output_embeddings()(hidden_B_T_D[batch.learn_B_T[:, 1:]])
    return cross_entropy(logits, batch.ids_B_T[:, 1:][batch.learn_B_T[:, 1:]], reduction="sum")


def _optimizers(model: Any, course: Course) -> list[Any]:
    """Muon for the matrices inside the layers, AdamW for embeddings and norms."""
    inner: list[Any] = []
    outer: list[Any] = []
    for name, parameter in model.named_parameters():
        (inner if parameter.ndim == 2 and "embed" not in name else outer).append(parameter)
    made: list[Any] = [
        torch.optim.AdamW(outer, lr=course.adam_lr, betas=(0.9, 0.98), weight_decay=0.01),
        torch.optim.Muon(inner, lr=course.muon_lr, weight_decay=0.01),
    ]
    for optimizer in made:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return made


def _save(path: Path, model: Any, optimizers: list[Any], step: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {"step": step, "model": model.state_dict(), "optimizers": [each.state_dict() for each in optimizers]}
    torch.save(state, path.with_suffix(".tmp"))
    path.with_suffix(".tmp").replace(path)


def _resume(path: Path, model: Any, optimizers: list[Any]) -> int:
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    return int(state["step"])


def _out_of_time(started: float, course: Course) -> bool:
    return course.minutes is not None and time.monotonic() - started > course.minutes * 60


def _report(course: Course, member: str, step: int, losses: list[float], started: float) -> None:
    mean = sum(losses) / len(losses)
    print(f"{course.name} {member} step {step} loss {mean:.4f} {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pluribus.zoo.train", description="Train the zoo's members.")
    parser.add_argument("--member", choices=sorted(WEAK), help="one member; all of them unless named")
    parser.add_argument("--threads", type=int, default=2, help="torch threads")
    parser.add_argument("--steps", type=int, help="length of the second course")
    parser.add_argument("--minutes", type=float, help="stop after this long: a probe, written under .training only")
    parser.add_argument("--work", type=Path, default=WORK, help="where states are kept")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    out = CHECKPOINTS if given.minutes is None else given.work / "probe"
    for member in [given.member] if given.member else sorted(WEAK):
        steps = given.steps or LONGER.get(member, COUNCIL.steps)
        council = replace(COUNCIL, steps=steps, minutes=given.minutes)
        export(*train(member, FIRST, council, given.work), member, out)


if __name__ == "__main__":
    main()
