"""The task's own checker as a judge."""

from __future__ import annotations

from collections.abc import Callable

from pluribus.judges import Candidate, Juror, verifier
from pluribus.types import Question

Sit = Callable[..., Juror]
Replies = Callable[..., list[Candidate]]


async def nineteen(question: Question, text: str) -> bool | None:
    """Right when it says so; it can not decide about words."""
    return "19" in text if any(sign.isdigit() for sign in text) else None


async def test_right_is_one_wrong_is_zero_and_undecided_is_neither(sit: Sit, candidates: Replies) -> None:
    juror = sit(verifier.Settings(), check=nineteen)
    right, wrong, open_ = await verifier.judge_all(juror, candidates("It is 19.", "It is 20.", "Nineteen."))
    assert (right.score, wrong.score, open_.score) == (1.0, 0.0, None)
    assert open_.failure is not None and open_.failure.message == "the checker can not decide"


async def test_without_a_checker_there_is_no_score(sit: Sit, candidates: Replies) -> None:
    opinions = await verifier.judge_all(sit(verifier.Settings()), candidates("It is 19.", "It is 20."))
    assert [opinion.score for opinion in opinions] == [None, None]
    assert all(one.failure and "task test has no checker here" in one.failure.message for one in opinions)
