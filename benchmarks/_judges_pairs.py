"""Recorded judges of pairs of replies, and of samples of one model, as candidates × judges: private to
`judges_recorded.py`.

Pair p has the candidates 2p and 2p + 1. A judge that compares the two in both orders gives a reply the share of the
orders it wins: 0, ½ or 1. A judge that rates gives each reply its rating.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LLMBAR = Path("judges", "llmbar", "llmbar_pairs_6judges.jsonl.gz")
ADVERSARIAL = ("Adv_Neighbor", "Adv_GPTInst", "Adv_GPTOut", "Adv_Manual")
CHATS = ("MTBench", "FairEval", "LLMEval2")
SETS = {"natural": ("Natural",), "adversarial": ADVERSARIAL, "chats": CHATS, "all": ("Natural", *ADVERSARIAL, *CHATS)}
"""Pool → its sets. The first two were judged by six models with eight prompts or more, the chats by four with two."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pairs:
    name: str
    set_P: NDArray[np.str_]
    first_P: Bools
    """Whether the first reply is the better one, by people."""
    asked: Mapping[str, Floats]
    """`judge|prompt` → (pairs, 2 orders): 1 where the first reply wins, 0 where the second does, NaN: no verdict."""
    rated: Mapping[str, Floats]
    """`judge|prompt` → (pairs, 2): the ratings of the two replies; NaN: none."""

    @property
    def n(self) -> int:
        return len(self.first_P)

    @property
    def gold_P(self) -> list[str | None]:
        return ["first" if first else "second" for first in self.first_P]

    @property
    def pairs_P_2(self) -> Ints:
        return np.arange(2 * self.n).reshape(-1, 2)

    def only(self, name: str) -> Pairs:
        """One of its sets."""
        rows = self.set_P == name
        asked, rated = ({judge: won[rows] for judge, won in told.items()} for told in (self.asked, self.rated))
        return Pairs(name, self.set_P[rows], self.first_P[rows], asked, rated)

    def scores_N(self, judge: str, orders: Sequence[int] = (0, 1)) -> Floats:
        """A judge's score of each candidate, from these orders; ratings know no order."""
        if judge in self.rated:
            return self.rated[judge].reshape(-1)
        won_P = row_means(self.asked[judge][:, list(orders)])
        return np.stack([won_P, 1 - won_P], axis=1).reshape(-1)

    def scores_J_N(self, judges: Sequence[str], orders: Sequence[int] = (0, 1)) -> Floats:
        return np.stack([self.scores_N(judge, orders) for judge in judges])


def row_means(values: Floats) -> Floats:
    """Means of what is there; NaN where a row has nothing."""
    there = ~np.isnan(values)
    counts = there.sum(axis=1)
    means: Floats = np.where(counts > 0, np.where(there, values, 0).sum(axis=1) / np.maximum(counts, 1), np.nan)
    return means


def llmbar(data: Path) -> dict[str, Pairs]:
    """The pools that are there, by name."""
    with gzip.open(data / LLMBAR, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {name: _pool(name, [row for row in rows if row["set"] in sets]) for name, sets in SETS.items()}


def _pool(name: str, rows: Sequence[Mapping[str, Any]]) -> Pairs:
    everywhere = sorted(set.intersection(*(set(row["judgments"]) for row in rows)))
    rated = [judge for judge in everywhere if "|Rating" in judge]
    return Pairs(
        name,
        np.array([row["set"] for row in rows]),
        np.array([row["label"] == 1 for row in rows]),
        {judge: _table(rows, judge, _wins) for judge in everywhere if judge not in rated},
        {judge: _table(rows, judge, _ratings) for judge in rated},
    )


def _table(rows: Sequence[Mapping[str, Any]], judge: str, read: Callable[[Any], list[float]]) -> Floats:
    return np.array([read(row["judgments"][judge]) for row in rows], dtype=np.float64)


def _wins(judgment: Sequence[str | None]) -> list[float]:
    return [{"1": 1.0, "2": 0.0}.get(str(winner), np.nan) for winner in judgment]


def _ratings(judgment: Any) -> list[float]:
    """A rating judge is asked for each reply by itself; without both ratings there is none."""
    return list(judgment["ratings"]) if isinstance(judgment, dict) else [np.nan, np.nan]
