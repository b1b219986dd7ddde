"""Where a reply goes wrong first, and how well that is found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.stats import wilson

NO_ERROR = -1
"""In the place of a step's index: no step is wrong."""


@dataclass(frozen=True, slots=True)
class Share:
    """k of n, with its 95 % Wilson interval."""

    k: int
    n: int
    value: float | None
    """None: n is 0."""
    low: float
    high: float

    @classmethod
    def of(cls, k: int, n: int) -> Share:
        return cls(k, n, k / n, *wilson(k, n)) if n else cls(0, 0, None, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class FirstError:
    """How often the first wrong step was named exactly."""

    erroneous: Share
    """Of the replies with a wrong step."""
    correct: Share
    """Of the replies without one: said to have none."""
    f1: float | None
    """Harmonic mean of both; None: one of the two kinds is missing."""
    low: float | None
    """Lower end of its 95 % interval."""
    high: float | None
    silent: int
    """Replies about which nothing was said: not found."""


def first_error(said: Sequence[int | None], truth: Sequence[int]) -> FirstError:
    """ProcessBench's measure: exact first errors where there is one, silence where there is none, and both together.

    F1 = 2 a b / (a + b), a = accuracy on replies with an error, b = on replies without. Its interval is put together
    from the intervals [l, u] of a and b: F1 − √((F1 − F1(l_a, b))² + (F1 − F1(a, l_b))²), and so above; F1(u_a, u_b)
    where both are 0.

    >>> found = first_error([1, 0, -1, -1, None], [1, 2, -1, -1, -1])
    >>> found.erroneous.value, round(found.correct.value, 3), round(found.f1, 3), found.silent
    (0.5, 0.667, 0.571, 1)

    Args:
        said: of each reply the index of its first wrong step, from 0, or −1 for none; None: nothing was said.
        truth: the same, as people say.

    Source: Zheng et al. 2024, ProcessBench, arXiv 2412.06559. The interval: Zou and Donner 2008, Stat. Med. 27,
        1693–1702.
    """
    pairs = list(zip(said, truth, strict=True))
    wrong, right = ([a == b for a, b in pairs if (b == NO_ERROR) == none] for none in (False, True))
    erroneous, correct = Share.of(sum(wrong), len(wrong)), Share.of(sum(right), len(right))
    silent = sum(a is None for a, _ in pairs)
    if erroneous.value is None or correct.value is None:
        return FirstError(erroneous, correct, None, None, None, silent)
    a, b = erroneous.value, correct.value
    f1 = _harmonic(a, b)
    below = math.hypot(f1 - _harmonic(erroneous.low, b), f1 - _harmonic(a, correct.low))
    above = math.hypot(_harmonic(erroneous.high, b) - f1, _harmonic(a, correct.high) - f1)
    if not a and not b:  # F1 is 0 along both axes there
        above = _harmonic(erroneous.high, correct.high)
    return FirstError(erroneous, correct, f1, max(0.0, f1 - below), min(1.0, f1 + above), silent)


def _harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0


def place(marks: Sequence[bool | None]) -> int | None:
    """Index of the first step that is not good, −1 for none; None where that can not be said.

    >>> place([True, False, False]), place([True, True]), place([True, None, False])
    (1, -1, None)
    """
    for index, good in enumerate(marks):
        if good is not True:
            return None if good is None else index
    return NO_ERROR


def below(scores: Sequence[float], threshold: float) -> int:
    """Index of the first step whose score is below a threshold, −1 for none: what a process reward model says.

    >>> below([0.9, 0.2, 0.8], 0.5), below([0.9], 0.5)
    (1, -1)
    """
    return next((index for index, score in enumerate(scores) if score < threshold), NO_ERROR)


def auroc(scores: Sequence[float], good: Sequence[bool]) -> float | None:
    """Chance that a good step has the higher score, equal ones counted half; None where one kind is missing.

    (Σ over good of rank − g(g + 1)/2) / (g b), with g good and b bad ones and mean ranks for equal scores.

    >>> auroc([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    0.75

    Source: Mann and Whitney 1947; Hanley and McNeil 1982, Radiology 143, 29–36.
    """
    times = Counter(scores)
    many = sum(map(bool, good))
    few = len(good) - many
    if not many or not few:
        return None
    seen, rank = 0, {}
    for score in sorted(times):
        rank[score] = seen + (times[score] + 1) / 2
        seen += times[score]
    ranks = math.fsum(rank[score] for score, mark in zip(scores, good, strict=True) if mark)
    return (ranks - many * (many + 1) / 2) / (many * few)
