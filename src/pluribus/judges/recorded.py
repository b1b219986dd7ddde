"""Takes a score that was recorded with a replayed reply: another judge's, a metric's, a person's.

No model is asked, and a second asking says the same: in later rounds its opinion stands. A reply without that score
has none here either. The numbers are taken as they are, with whatever bounds and direction they were recorded with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.judges import Candidate, Juror, Opinion
from pluribus.types import Failure

PROMPTS: tuple[str, ...] = ()
MODEL = "none"
RANGE = None
REREADS = False


@dataclass(frozen=True, slots=True)
class Settings:
    score: str
    """The name it was recorded under; higher has to be better."""

    def __post_init__(self) -> None:
        if not self.score.strip():
            raise ValueError("score is empty; give the name of a recorded score")


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate: its recorded score, or a failure that names the scores there are."""
    return [_opinion(candidate, juror.settings.score) for candidate in candidates]


def _opinion(candidate: Candidate, name: str) -> Opinion:
    score = candidate.recorded.get(name)
    if score is None:
        there = ", ".join(sorted(candidate.recorded)) or "none"
        message = f"no score {name!r} was recorded with this reply; there are: {there}"
        return Opinion(None, failure=Failure("not_recorded", message))
    if not math.isfinite(score):
        return Opinion(None, failure=Failure("not_recorded", f"the recorded score {name!r} is {score}, not a number"))
    return Opinion(float(score))
