"""Tiny programs whose tests decide: what is wished for is said loosely, hidden tests know which program was meant.

"Write f of x and 247" may be `x + 247`, `x * 247`, `x - 247` or `247 - x`; which of them the tests want is drawn at
random, so who has several tries should write different programs. Private to `rl.py`.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from _distil_measure import complete
from pluribus import sandbox
from pluribus.answers import read
from pluribus.label import verdicts_on
from pluribus.types import Key, Message, Question, Sampling

LESSONS = (0.88, 0.04, 0.04, 0.04)
"""How often the four are written in what the start is taught from: it writes the first nearly always."""
WANTED = (0.4, 0.3, 0.2, 0.1)
"""How often the tests want each."""
DRAWN = Sampling(temperature=1.0, top_p=1.0, max_tokens=40)


@dataclass(frozen=True)
class Wish:
    """A number, and what is meant to be done with it."""

    number: int
    which: int

    @property
    def prompt(self) -> str:
        return f"Write f of x and {self.number}."

    @property
    def program(self) -> str:
        n = self.number
        return f"def f(x):\n    return {(f'x + {n}', f'x * {n}', f'x - {n}', f'{n} - x')[self.which]}"

    @property
    def tests(self) -> list[str]:
        n = self.number
        return [f"assert f({x}) == {(x + n, x * n, x - n, n - x)[self.which]}" for x in (0, 1, 50)]


def wishes(split: str, count: int, shares: tuple[float, ...] = WANTED) -> list[Wish]:
    """No number stands in two splits."""
    numbers = list(range(100, 1000))
    random.Random(0).shuffle(numbers)
    part = numbers[:300] if split == "test" else numbers[300:]
    drawn = random.Random(f"{split} {shares}")
    return [Wish(part[i % len(part)], drawn.choices(range(4), shares)[0]) for i in range(count)]


def write_lessons(file: Path, count: int = 6000) -> None:
    """What the start is taught from: wishes, and one program for each."""
    _write(file, (
        {
            "prompt": [{"role": "user", "content": one.prompt}],
            "completion": [{"role": "assistant", "content": one.program}],
        }
        for one in wishes("train", count, LESSONS)
    ))  # fmt: skip


def write_prompts(file: Path, count: int = 4000) -> None:
    _write(file, (
        {"prompt": [{"role": "user", "content": one.prompt}], "kind": "program", "tests": one.tests,
         "question_id": f"programs/{place}"}
        for place, one in enumerate(wishes("train", count))
    ))  # fmt: skip


def _write(file: Path, rows: Iterator[Mapping[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def tried(model: str, count: int, draws: int) -> dict[str, Any]:
    """As `rl.measured`: of each test question the draws' programs, and which of them pass, run in the sandbox."""
    asked = wishes("test", count)
    prompts = [[Message("user", one.prompt)] for one in asked for _ in range(draws)]
    said = complete({"model": model, "logprobs": True}, prompts, DRAWN, 0, [i % draws for i in range(len(prompts))])
    ids = [f"programs/test/{place}" for place in range(count)]
    asks = [Question(id, "", one.prompt, "program") for id, one in zip(ids, asked, strict=True)]
    answers = [
        [read(question, one.text) for one in said[place * draws : (place + 1) * draws]]
        for place, question in enumerate(asks)
    ]

    async def check() -> list[list[int]]:
        found = []
        for question, one, group in zip(asks, asked, answers, strict=True):
            right = await verdicts_on(question, Key(question.id, None, (), tuple(one.tests)), set(group))
            found.append([int(bool(right[answer])) for answer in group])
        return found

    with sandbox.allowing(sandbox.sandbox(True)):
        right = asyncio.run(check())
    return {
        "ids": ids, "answers": answers, "right": right,
        "tokens": float(np.mean([one.completion_tokens for one in said])),
        "steps": 1.0,
        "entropy": -float(np.mean([value for one in said for value in one.logprobs or ()])),
        "unanswered": float(np.mean([answer is None for group in answers for answer in group])),
    }  # fmt: skip
