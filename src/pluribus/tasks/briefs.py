"""Seeded market briefs: three to six signals with strengths, some idle sentences, and one of three labels.

Source: made by this module; there is no file. Question `i` of a split is a pure function of (split, i), the same on
every machine. Splits are disjoint by a hash of the signals themselves, not of their words. The label follows from the
sum of the signals by a rule that the question states. Research text; nothing here is financial advice.

Eight skills: the nouns. A rise of sales, orders, profit or cash is good, a rise of debt, costs, losses or claims bad.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pluribus.errors import UnknownName
from pluribus.tasks._seeded import SPLITS, belongs, seed_of
from pluribus.types import Key, Question

DEFAULT_SPLIT = "test"
SUBSETS = ("3", "4", "5", "6")
"""Numbers of signals."""
FAMILY = "market"
SIZES: Mapping[str, int] = {"train": 1 << 40, "dev": 2_000, "test": 5_000}
LABELS = ("BULLISH", "BEARISH", "NEUTRAL")
GOOD = ("sales", "orders", "profit", "cash")
BAD = ("debt", "costs", "losses", "claims")
SKILLS = (*GOOD, *BAD)
LENGTHS: Mapping[int, float] = {3: 0.25, 4: 0.35, 5: 0.25, 6: 0.15}
BAND = 3
"""A sum within plus and minus this is neutral: about a third of the briefs."""
STRONGEST = 6

_UP = ("{n} rose by {k}.", "{n} up {k}.", "{n} grew by {k}.")
_DOWN = ("{n} fell by {k}.", "{n} down {k}.", "{n} shrank by {k}.")
_IDLE = (
    "The office was painted.",
    "Lunch was served at {k}.",
    "The meeting took {k} hours.",
    "It rained for {k} days.",
)
_RULE = (
    f"Add what is good for the firm, take off what is bad: above {BAND} is BULLISH, below -{BAND} is BEARISH, "
    "else NEUTRAL. Which is it?"
)


@dataclass(frozen=True, slots=True)
class Signal:
    """One number of the brief moved."""

    noun: str
    moved: int
    """Up or down, from -6 to 6, never 0."""

    @property
    def points(self) -> int:
        return self.moved if self.noun in GOOD else -self.moved


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its solution: for keys, step checkers and training text, never for a solver."""

    text: str
    signals: tuple[Signal, ...]

    @property
    def answer(self) -> str:
        return label(sum(signal.points for signal in self.signals))


def label(points: int) -> str:
    """What a sum of points means.

    >>> [label(points) for points in (4, 3, -3, -4)]
    ['BULLISH', 'NEUTRAL', 'NEUTRAL', 'BEARISH']
    """
    return LABELS[0] if points > BAND else LABELS[1] if points < -BAND else LABELS[2]


def running(signals: tuple[Signal, ...]) -> tuple[int, ...]:
    """The sum after each signal.

    >>> running((Signal("sales", 4), Signal("debt", 3)))
    (4, 1)
    """
    sums = []
    total = 0
    for signal in signals:
        total += signal.points
        sums.append(total)
    return tuple(sums)


def load(split: str, *, data: Path | None = None, subset: str | None = None) -> Iterator[tuple[Question, Key]]:
    """Questions in order, made as they are asked for; `train` goes on for ever, take what is needed.

    Args:
        split: train, dev (2,000) or test (5,000).
        data: not used; there is no file.
        subset: only briefs with this many signals, `"3"` to `"6"`.

    >>> question, key = next(load("test"))
    >>> question.id, question.kind, question.labels, key.answer == problem("test", 0).answer
    ('briefs/test/0', 'label', ('BULLISH', 'BEARISH', 'NEUTRAL'), True)
    """
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    if subset is not None and subset not in SUBSETS:
        raise UnknownName("subset", subset, SUBSETS)
    return _load(split, None if subset is None else int(subset))


def problem(split: str, index: int) -> Problem:
    """Question `index` of a split with its solution."""
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    if not 0 <= index < SIZES[split]:
        raise IndexError(f"briefs has {SIZES[split]} {split} questions, no number {index}")
    return draw(random.Random(seed_of("briefs", split, index)), split)


def draw(
    rng: random.Random, split: str, rates: Mapping[str, float] | None = None, lengths: Mapping[int, float] = LENGTHS
) -> Problem:
    """One problem of a split.

    Args:
        rng: where the randomness comes from.
        split: the split the signals must belong to.
        rates: how often each noun comes up, relative to its normal rate of 1.
        lengths: number of signals → its weight.
    """
    weights = [1.0 if rates is None else rates.get(skill, 1.0) for skill in SKILLS]
    while True:
        signals = _signals(rng, weights, rng.choices(list(lengths), list(lengths.values()))[0])
        if belongs(split, "briefs", *signals):
            return _word(rng, signals)


def _load(split: str, count: int | None) -> Iterator[tuple[Question, Key]]:
    for index in range(SIZES[split]):
        found = problem(split, index)
        if count in (None, len(found.signals)):
            yield _record(split, index, found)


def _record(split: str, index: int, found: Problem) -> tuple[Question, Key]:
    question = Question(
        id=f"briefs/{split}/{index}",
        task="briefs",
        text=found.text,
        kind="label",
        labels=LABELS,
        metadata={"steps": len(found.signals), "skills": [signal.noun for signal in found.signals]},
    )
    return question, Key(question.id, found.answer)


def _signals(rng: random.Random, weights: list[float], count: int) -> tuple[Signal, ...]:
    """No noun twice."""
    left = dict(zip(SKILLS, weights, strict=True))
    signals = []
    for _ in range(count):
        noun = rng.choices(list(left), list(left.values()))[0]
        del left[noun]
        signals.append(Signal(noun, (1 + int(rng.random() * STRONGEST)) * (1 if rng.random() < 0.5 else -1)))
    return tuple(signals)


def _word(rng: random.Random, signals: tuple[Signal, ...]) -> Problem:
    said = [_say(rng, _UP if s.moved > 0 else _DOWN, abs(s.moved), s.noun.capitalize()) for s in signals]
    for _ in range(rng.choices((0, 1, 2), (0.6, 0.3, 0.1))[0]):
        said.insert(int(rng.random() * (len(said) + 1)), _say(rng, _IDLE, 2 + int(rng.random() * 8), ""))
    return Problem(f"{' '.join(said)} {_RULE}", signals)


def _say(rng: random.Random, forms: tuple[str, ...], number: int, noun: str) -> str:
    return forms[int(rng.random() * len(forms))].format(k=number, n=noun)
