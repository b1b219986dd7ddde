"""Hand-made cases: questions with replies of which all that a view looks at is said here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pluribus.distil import Case, Material, Trace
from pluribus.types import Key, Question, Reward

Make = Callable[..., Any]


@pytest.fixture
def reply() -> Make:
    """A trace; its turn tells it apart from the others of its question."""

    def make(turn: int, text: str = "It is 2. {final answer: 2}", **entries: Any) -> Trace:
        known = {"correct": True, "answer": "2", "model": "scripted/number", "dialect": "zoo"}
        value = entries.pop("value", None)
        reward = None if value is None else Reward("a", turn, {"judge": value}, {}, value, 0.0, "agreed")
        return Trace("run", "a", turn, text, **{**known, "reward": reward, **entries})

    return make


@pytest.fixture
def case() -> Make:
    """A question with its traces, whose attempt bears the question's id."""

    def make(*traces: Trace, id: str = "q", **entries: Any) -> Case:
        question = entries.pop("question", Question(id, "t", f"{id}: 1 + 1?", "number"))
        key = entries.pop("key", Key(id, "2"))
        own = tuple(_renamed(one, id) for one in traces)
        return Case(question, key, own, run="run", dialect="zoo", **entries)

    return make


def _renamed(one: Trace, id: str) -> Trace:
    reward = one.reward and replace(one.reward, attempt_id=id)
    return replace(one, attempt_id=id, reward=reward)


@pytest.fixture
def material() -> Make:
    def make(*cases: Case, **entries: Any) -> Material:
        return Material(tuple(cases), **{"embed": by_first_letter, **entries})

    return make


def by_first_letter(texts: Sequence[str]) -> NDArray[np.float64]:
    """Unit vectors at an angle of ten degrees a letter: a, b, c, … lie next to each other."""
    angle_N = np.radians([10.0 * (ord(text[0].lower()) - ord("a")) for text in texts])
    return np.stack([np.cos(angle_N), np.sin(angle_N)], axis=1)
