"""Asks the task's own checker: 1 for a right reply, 0 for one that is not.

Source: verifiable rewards, as in Lambert et al. 2024, arXiv 2411.15124 (Tülu 3). No model is asked, and a second
asking says the same: in later rounds its opinion stands. A reply the checker can not decide about has no score.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.judges import Candidate, Check, Juror, Opinion
from pluribus.types import Failure, Question

PROMPTS: tuple[str, ...] = ()
MODEL = "none"
RANGE = (0.0, 1.0)
REREADS = False


@dataclass(frozen=True, slots=True)
class Settings:
    """There is nothing to vary."""


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate; `juror.check` decides."""
    if juror.check is None:
        message = f"task {juror.question.task} has no checker here; take a task with a key, or another kind of judge"
        return [Opinion(None, failure=Failure("no_checker", message)) for _ in candidates]
    return list(await gather(*(_opinion(juror.check, juror.question, one.text) for one in candidates)))


async def _opinion(check: Check, question: Question, text: str) -> Opinion:
    right = await check(question, text)
    if right is None:
        return Opinion(None, failure=Failure("undecided", "the checker can not decide"))
    return Opinion(float(right))
