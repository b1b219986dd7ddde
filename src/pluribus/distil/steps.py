"""Process supervision: replies cut into steps, each marked good or not.

A step is good if the right answer can still come of it. A reply is taken only when each of its steps has a mark, right
and wrong replies alike; a text that several seats said is taken once.

Source: data of process reward models, Lightman et al. 2023, arXiv 2305.20050; Wang et al. 2024, arXiv 2312.08935.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.distil import Case, Found, Material, Trace
from pluribus.distil._choosing import check_share, different, draw
from pluribus.steps import CUTS, Cut, split_steps
from pluribus.types import StepMarks

KIND = "steps"
HINT = "label the steps of its replies with: pluribus label RUN --steps checker (or rollouts, judge)"
NO_MARKS = "replies without labels of their steps"
SOME_MARKS = "replies of which some steps have no label"
OTHER_CUT = "replies with labels of more steps than they have"
COPY = "replies that repeat an earlier one to the same question"
BEYOND = "replies beyond the number per question"


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be varied."""

    cut: Cut = "auto"
    """How replies are cut into steps: as they were when the steps were labelled."""
    per_question: int = 0
    """Replies of a question at most; 0: all."""
    near_duplicates: float | None = None
    """Share of common word 5-grams from which a reply is a copy of an earlier one; None: the same words."""

    def __post_init__(self) -> None:
        if self.cut not in CUTS:
            raise ValueError(f"cut is {self.cut!r}; expected one of {', '.join(CUTS)}")
        if self.per_question < 0:
            raise ValueError(f"per_question is {self.per_question}; expected 1 or more, or 0 for all")
        check_share(self.near_duplicates)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the marks say, in numbers."""

    steps: int
    good: float
    """Share of the steps that are good."""
    with_error: float
    """Share of the replies with a step that is not."""
    first_error: float | None
    """Mean place of the first such step, from 1; None: there is none."""


def examples(material: Material, settings: Settings) -> Found:
    """Marks of every reply that has them whole; with a number per question, drawn ones."""
    left_out, chosen, available = Counter[str](), [], []
    for case in material.cases:
        whole = [(one, steps) for one in case.traces if (steps := _whole(one, settings.cut, left_out))]
        available += [one.text for one, _ in whole]
        cut = {(one.attempt_id, one.turn): steps for one, steps in whole}
        kept = _copies_out([one for one, _ in whole], settings.near_duplicates, left_out)
        taken = _some(kept, settings.per_question, material.seed)
        left_out[BEYOND] += len(kept) - len(taken)
        chosen += [_marks(case, one, cut[one.attempt_id, one.turn]) for one in taken]
    return Found(tuple(chosen), +left_out, tuple(available))


def _whole(one: Trace, cut: Cut, left_out: Counter[str]) -> tuple[str, ...]:
    """The steps of a reply that is marked from the first to the last; else none."""
    if not one.marks:
        left_out[NO_MARKS] += 1
        return ()
    steps = split_steps(one.text, cut)
    if max(one.marks) >= len(steps):
        left_out[OTHER_CUT] += 1
        return ()
    if len(one.marks) < len(steps):
        left_out[SOME_MARKS] += 1
        return ()
    return steps


def _copies_out(traces: Sequence[Trace], threshold: float | None, left_out: Counter[str]) -> list[Trace]:
    counted = Counter[str]()
    kept = different(traces, threshold, counted)
    left_out[COPY] += counted.total()
    return kept


def _some(traces: Sequence[Trace], most: int, seed: int) -> list[Trace]:
    if not most:
        return list(traces)
    drawn = sorted(traces, key=lambda one: draw(one, seed))[:most]
    return [one for one in traces if one in drawn]


def _marks(case: Case, one: Trace, steps: tuple[str, ...]) -> StepMarks:
    marks = tuple(one.marks[at] for at in range(len(steps)))
    return StepMarks(case.question.id, one.attempt_id, one.turn, steps, marks, one.correct)


def facts(examples: Sequence[StepMarks]) -> Facts:
    """
    >>> facts([StepMarks("q", "a", 0, ("1 + 1 = 2.", "2 + 1 = 4."), (True, False))])
    Facts(steps=2, good=0.5, with_error=1.0, first_error=2.0)

    Args:
        examples: at least one.
    """
    marks = [mark for one in examples for mark in one.marks]
    first = [one.marks.index(False) + 1 for one in examples if False in one.marks]
    mean = sum(first) / len(first) if first else None
    return Facts(len(marks), sum(marks) / len(marks), len(first) / len(examples), mean)
