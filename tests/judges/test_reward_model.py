"""The reward model: what its head reads, and what it says when there is no head."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pluribus.backends import Request
from pluribus.errors import ServerError
from pluribus.judges import Candidate, Juror, reward_model
from pluribus.types import Completion, Message, Question

Sit = Callable[..., Juror]
Replies = Callable[..., list[Candidate]]
Asked = Callable[[Juror], list[Request]]


def length(request: Request) -> Completion:
    """A head that likes short replies."""
    return Completion("", "local/reward", scores={"reward": 5.0 - len(request.messages[-1].content)})


@pytest.mark.parametrize("words", ["standard", "zoo"])
async def test_the_head_reads_question_and_reply_as_a_conversation(
    sit: Sit, candidates: Replies, asked: Asked, question: Question, attack: str, words: str
) -> None:
    juror = sit(reward_model.Settings(), length, words=words)
    opinions = await reward_model.judge_all(juror, candidates("19", attack))
    assert [opinion.score for opinion in opinions] == [3.0, 5.0 - len(attack)]
    assert asked(juror)[0].messages == (Message("user", question.text), Message("assistant", "19"))
    assert asked(juror)[1].messages == (Message("user", question.text), Message("assistant", attack))


@pytest.mark.parametrize("scores", [None, {}, {"quality": 1.0}])
async def test_a_model_without_a_head_is_a_failure_that_says_what_to_take(
    sit: Sit, candidates: Replies, scores: dict[str, float] | None
) -> None:
    juror = sit(reward_model.Settings(), lambda request: Completion("Well.", "local/chat", scores=scores))
    (opinion,) = await reward_model.judge_all(juror, candidates("19"))
    assert opinion.score is None and opinion.failure is not None
    assert "local/chat gave no reward; take a sequence-classification model" in opinion.failure.message


@pytest.mark.parametrize("reward", [math.nan, math.inf])
async def test_a_reward_that_is_no_number_is_a_failure(sit: Sit, candidates: Replies, reward: float) -> None:
    juror = sit(reward_model.Settings(), lambda request: Completion("", "local/reward", scores={"reward": reward}))
    (opinion,) = await reward_model.judge_all(juror, candidates("19"))
    assert opinion.score is None and opinion.failure is not None and f"is {reward}" in opinion.failure.message


async def test_a_failing_call_is_the_failure(sit: Sit, candidates: Replies) -> None:
    juror = sit(reward_model.Settings(), lambda request: ServerError("500: ill"))
    (opinion,) = await reward_model.judge_all(juror, candidates("19"))
    assert opinion.failure is not None and opinion.failure.kind == "server_error" and len(opinion.turns) == 1
