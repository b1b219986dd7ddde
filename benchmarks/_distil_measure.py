"""Asking a student: alone, several times, and about its own answer; and scoring steps. Private to `distil.py`.

Everything goes through the product's own backend, batched; nothing is stored but what a cell holds. A verdict per
question is a character: 1 right, 0 wrong, - no readable answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pluribus.answers import canonical, read
from pluribus.backends import Request, call_seed, connect, parse
from pluribus.backends._loading import Words, load_words
from pluribus.prompts import dialect, render
from pluribus.steps import split_steps
from pluribus.tasks import load_task
from pluribus.types import Completion, Key, Message, Question, Sampling
from pluribus.zoo import folder

GREEDY = Sampling(temperature=0.0, top_p=1.0, max_tokens=160)
DRAWN = Sampling(temperature=1.0, top_p=0.9, max_tokens=160)
"""As the zoo's councils sample."""
WORDS = dialect("zoo")
Pair = tuple[Question, Key]


@dataclass(frozen=True, slots=True)
class Asked:
    """Replies to questions, and how they did."""

    texts: tuple[str, ...]
    verdicts: str
    prompt_tokens: int
    completion_tokens: int


def questions(task: str, split: str, limit: int) -> list[Pair]:
    return [(question, key) for question, key in load_task(task, split, limit=limit).pairs if key is not None]


def complete(
    model: str | Mapping[str, Any], prompts: Sequence[Sequence[Message]], sampling: Sampling, seed: int = 0,
    samples: Sequence[int] | None = None, continuations: Sequence[str] | None = None,
) -> list[Completion]:  # fmt: skip
    """One completion of each prompt; each draw has its own seed. A continuation is read, nothing is generated."""
    spec = parse(model)
    which = samples if samples is not None else [0] * len(prompts)
    given = continuations if continuations is not None else [None] * len(prompts)

    async def all_of() -> list[Completion]:
        backend = connect(spec)
        try:
            requests = [
                Request(tuple(messages), sampling, sample, continuation=text)
                for messages, sample, text in zip(prompts, which, given, strict=True)
            ]
            seeded = [
                replace(one, sampling=replace(sampling, seed=call_seed(seed, spec.model, one))) for one in requests
            ]
            return list(await asyncio.gather(*(backend.complete(one) for one in seeded)))
        finally:
            await backend.close()

    return asyncio.run(all_of())


def verdict(question: Question, key: Key, text: str) -> str:
    answer = read(question, text)
    if answer is None:
        return "-"
    return "1" if key.answer is not None and answer == canonical(question, key.answer) else "0"


def alone(model: str, pairs: Sequence[Pair], sampling: Sampling = GREEDY, seed: int = 0) -> Asked:
    """One reply to each question."""
    prompts = [render(WORDS, "answer", question) for question, _ in pairs]
    return _asked(pairs, complete(model, prompts, sampling, seed))


def revised(model: str, pairs: Sequence[Pair], own: Sequence[str]) -> Asked:
    """One reply to each question by who is shown its own earlier one."""
    prompts = [
        render(WORDS, "debate_alone", question, own=text) for (question, _), text in zip(pairs, own, strict=True)
    ]
    return _asked(pairs, complete(model, prompts, GREEDY))


def several(model: str, pairs: Sequence[Pair], k: int, seed: int = 0) -> list[Asked]:
    """k drawn replies to each question: one entry per draw."""
    prompts = [render(WORDS, "answer", question) for question, _ in pairs for _ in range(k)]
    said = complete(model, prompts, DRAWN, seed, [i % k for i in range(len(prompts))])
    return [_asked(pairs, said[draw::k]) for draw in range(k)]


def _asked(pairs: Sequence[Pair], said: Sequence[Completion]) -> Asked:
    return Asked(
        tuple(one.text for one in said),
        "".join(verdict(question, key, one.text) for (question, key), one in zip(pairs, said, strict=True)),
        sum(one.prompt_tokens or 0 for one in said),
        sum(one.completion_tokens or 0 for one in said),
    )


def least_logprobs(model: str, asked: Sequence[tuple[Question, str]]) -> list[list[float]]:
    """For each step of a reply the least log-probability of a token up to its end, by a language model."""
    name = model.removeprefix("zoo/") if model.startswith("zoo/") else model.removeprefix("local/")
    words = load_words(str(folder(name)) if model.startswith("zoo/") else name, None)
    prompts = [render(WORDS, "answer", question) for question, _ in asked]
    said = complete(model, prompts, GREEDY, continuations=[text for _, text in asked])
    return [_least(words, text, one.logprobs or ()) for (_, text), one in zip(asked, said, strict=True)]


def _least(words: Words, text: str, logprobs: Sequence[float]) -> list[float]:
    tokens, found, end, at = words.bare(text), list[float](), 0, 0
    for step in split_steps(text):
        end = text.index(step, end) + len(step)
        while at < len(tokens) and len(words.decode(tokens[: at + 1])) <= end:
            at += 1
        found.append(min(logprobs[:at], default=0.0))
    return found


def step_scores(prm: str, asked: Sequence[tuple[Question, str]]) -> list[Mapping[str, float]]:
    """A process reward model's scores of replies: `step 1`, …, `min`, `mean`, `last`, `product`."""
    prompts = [(*render(WORDS, "answer", question), Message("assistant", text)) for question, text in asked]
    return [one.scores or {} for one in complete({"model": prm, "head": "prm"}, prompts, GREEDY)]
