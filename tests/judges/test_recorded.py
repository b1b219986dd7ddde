"""Scores that were recorded with a replayed reply."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pluribus.judges import Candidate, Juror, recorded

Sit = Callable[..., Juror]
Replies = Callable[..., list[Candidate]]


async def test_the_recorded_number_is_taken_as_it_is(sit: Sit, candidates: Replies) -> None:
    juror = sit(recorded.Settings("gpt_4"))
    (opinion,) = await recorded.judge_all(juror, candidates("It is 19.", gpt_4=-3, judge_b=7.5))
    assert (opinion.score, opinion.failure, opinion.turns) == (-3.0, None, ())


@pytest.mark.parametrize(("scores", "there"), [({"judge_b": 7.5, "a": 1.0}, "a, judge_b"), ({}, "none")])
async def test_a_score_that_was_not_recorded_is_a_failure_never_zero(
    sit: Sit, candidates: Replies, scores: dict[str, float], there: str
) -> None:
    (opinion,) = await recorded.judge_all(sit(recorded.Settings("gpt_4")), candidates("It is 19.", **scores))
    assert opinion.score is None and opinion.failure is not None
    assert opinion.failure.message == f"no score 'gpt_4' was recorded with this reply; there are: {there}"


async def test_a_recorded_nan_is_no_score(sit: Sit, candidates: Replies) -> None:
    (opinion,) = await recorded.judge_all(sit(recorded.Settings("gpt_4")), candidates("It is 19.", gpt_4=math.nan))
    assert opinion.score is None and opinion.failure is not None and "is nan" in opinion.failure.message


def test_the_name_has_to_be_said() -> None:
    with pytest.raises(ValueError, match="score is empty"):
        recorded.Settings(" ")
