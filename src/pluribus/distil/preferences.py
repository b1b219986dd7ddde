"""Pairs of a better and a worse reply: the same pairs that `pluribus prefer` makes, here of several runs at once.

All of it is `pluribus.prefer.preferences`, which says what a pair is and what is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from pluribus.distil import Found, Material
from pluribus.distil._choosing import check_share
from pluribus.prefer import BY, By, bases, preferences
from pluribus.types import Label

KIND = "preferences"
HINT = "make rewards with: pluribus reward RUN --judges FILE; or label the replies with: pluribus label, or review"


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be varied; the rest is said to `pluribus prefer`."""

    by: By | None = None
    """What tells better from worse; None: reward where there are rewards, else label, else human."""
    max_disagreement: float | None = None
    """Most mean disagreement of the two rewards; None: no limit."""
    per_question: int = 1
    """Pairs of a question at most; 0: all."""
    near_duplicates: float | None = None
    """Share of common word 5-grams from which a reply is a copy of an earlier one; None: the same text."""

    def __post_init__(self) -> None:
        if self.by is not None and self.by not in BY:
            raise ValueError(f"by is {self.by!r}; expected one of {', '.join(get_args(By))}")
        if self.per_question < 0:
            raise ValueError(f"per_question is {self.per_question}; expected 1 or more, or 0 for all")
        check_share(self.near_duplicates)


def examples(material: Material, settings: Settings) -> Found:
    """Pairs within each question."""
    traces = [one for case in material.cases for one in case.traces if one.candidate]
    rewards = [one.reward for one in traces if one.reward is not None]
    labels = [Label(one.attempt_id, one.turn, one.correct) for one in traces]
    by = settings.by or next(iter(bases(rewards, labels, material.verdicts)), None)
    available = tuple(one.text for one in traces)
    if by is None:
        return Found((), {"replies without reward, label and verdict": len(traces)} if traces else {}, available)
    asked = [(case.question, [one for one in case.traces if one.candidate]) for case in material.cases]
    found = preferences(
        asked, rewards, labels, material.verdicts, by=by,
        max_disagreement=settings.max_disagreement if by in ("reward", "both") else None,
        per_question=settings.per_question, similar=settings.near_duplicates, seed=material.seed,
    )  # fmt: skip
    return Found(found.pairs, found.dropped, available)
