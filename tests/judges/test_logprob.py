"""Verdicts off log-probabilities: P(True) of one word, and how likely a model finds a reply."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pluribus.backends import Request
from pluribus.errors import BackendError, Refused
from pluribus.judges import Candidate, Juror, logprob
from pluribus.judges.logprob import Settings
from pluribus.types import Completion

Sit = Callable[..., Juror]
Replies = Callable[..., list[Candidate]]
Asked = Callable[[Juror], list[Request]]
LIKELIHOOD = Settings("likelihood")


def says(*alternatives: Mapping[str, float], reasoning: str | None = None) -> Callable[[Request], Completion]:
    """A service whose first tokens have these probabilities."""
    rows = tuple({token: math.log(p) for token, p in row.items()} for row in alternatives)
    text = "".join(max(row, key=row.__getitem__) for row in rows)
    return lambda request: Completion(text, "scripted/judge", reasoning=reasoning, top_logprobs=rows or None)


@pytest.mark.parametrize(
    ("rows", "score"),
    [
        ([{"true": 0.6, "false": 0.2}], 0.75),
        ([{"True": 0.3, " yes": 0.3, "▁No": 0.1, '"false"': 0.1, "The": 0.2}], 0.75),
        ([{"\n": 0.9, "no": 0.1}, {"true": 0.8, "false": 0.1}], 8 / 9),
        ([{"true": 0.9, "maybe": 0.1}], 1.0),
        ([{"False": 0.9, "maybe": 0.1}], 0.0),
    ],
)
async def test_the_score_is_the_mass_of_true_in_that_of_both(
    sit: Sit, candidates: Replies, rows: list[dict[str, float]], score: float
) -> None:
    (opinion,) = await logprob.judge_all(sit(Settings(), says(*rows)), candidates("It is 19."))
    assert opinion.failure is None and opinion.score == pytest.approx(score)
    assert opinion.notes["p_true"] + opinion.notes["p_false"] <= 1 + 1e-9


@pytest.mark.parametrize(
    ("service", "problem"),
    [
        (says({"The": 0.7, "It": 0.3}), "neither true nor false is among the alternatives of the first word of 'The'"),
        (says({"So": 1.0}, {"true": 0.9}), "neither true nor false"),
        (says({"So": 0.9, "true": 0.03, "no": 0.01}), "true and false have 4.0% of the first word of 'So'"),
        (says(), "the service gives no log-probabilities of alternatives"),
        (says({"true": 0.9}, reasoning="Let me see."), "the model thinks before its first word"),
        (lambda request: Refused("400: logprobs are not offered"), "400: logprobs are not offered"),
    ],
)
async def test_no_word_to_read_is_a_failure(
    sit: Sit, candidates: Replies, service: Callable[[Request], Completion | BackendError], problem: str
) -> None:
    (opinion,) = await logprob.judge_all(sit(Settings(), service), candidates("It is 19."))
    assert opinion.score is None and opinion.failure is not None and problem in opinion.failure.message
    assert len(opinion.turns) == 1


async def test_it_asks_for_alternatives_of_one_word(sit: Sit, candidates: Replies, asked: Asked, attack: str) -> None:
    juror = sit(Settings(), says({"true": 1.0}))
    await logprob.judge_all(juror, candidates(attack))
    (request,) = asked(juror)
    assert (request.top_logprobs, request.schema, request.continuation) == (20, None, None)
    assert request.sampling.max_tokens == 8
    text = request.messages[-1].content
    assert f"answer wrote:\n~~~~~\n{attack}\n~~~~~\n" in text and text.endswith("true or false")


async def test_a_seat_with_less_room_keeps_it(sit: Sit, candidates: Replies, asked: Asked) -> None:
    juror = sit(Settings(), says({"true": 1.0}))
    assert juror.agent is not None
    small = replace(juror.agent.seat, sampling=replace(juror.agent.seat.sampling, max_tokens=2))
    juror = replace(juror, agent=replace(juror.agent, seat=small))
    await logprob.judge_all(juror, candidates("It is 19."))
    assert asked(juror)[0].sampling.max_tokens == 2


async def test_likelihood_is_the_geometric_mean_of_the_tokens_probabilities(
    sit: Sit, candidates: Replies, asked: Asked
) -> None:
    juror = sit(LIKELIHOOD, lambda request: "never said")
    short, long = await logprob.judge_all(juror, candidates("It is", "It is 19 apples"))
    # the scripted model's log-probability of a word is its length / -8
    assert short.score == pytest.approx(math.exp(-2 / 8))
    assert long.score == pytest.approx(math.exp(-(2 + 2 + 2 + 6) / 4 / 8))
    assert long.notes == {"mean_logprob": pytest.approx(-0.375), "tokens": 4}
    assert [request.continuation for request in asked(juror)] == ["It is", "It is 19 apples"]
    assert [turn.text for turn in long.turns] == ["It is 19 apples"]


@pytest.mark.parametrize(
    ("logprobs", "problem"),
    [(None, "no log-probabilities of a given text"), ((), "no log-probabilities"), ((-1.0, -math.inf), "is -inf")],
)
async def test_no_likelihood_is_a_failure(
    sit: Sit, candidates: Replies, logprobs: tuple[float, ...] | None, problem: str
) -> None:
    class Silent:
        """A service that gives back what it has."""

        model = "scripted/judge"

        async def complete(self, request: Request) -> Completion:
            return Completion(request.continuation or "", self.model, logprobs=logprobs)

        async def close(self) -> None:
            return None

    juror = sit(LIKELIHOOD, lambda request: "")
    assert juror.agent is not None
    juror = replace(juror, agent=replace(juror.agent, backend=Silent()))
    (opinion,) = await logprob.judge_all(juror, candidates("It is 19."))
    assert opinion.score is None and opinion.failure is not None and problem in opinion.failure.message


async def test_an_empty_reply_has_no_likelihood_and_nobody_is_asked(
    sit: Sit, candidates: Replies, asked: Asked
) -> None:
    juror = sit(LIKELIHOOD, lambda request: "")
    (opinion,) = await logprob.judge_all(juror, candidates(""))
    assert opinion.failure is not None and "the reply is empty" in opinion.failure.message
    assert not asked(juror)


def test_an_unknown_mode_is_refused() -> None:
    unknown: Any = "p_false"
    with pytest.raises(ValueError, match="mode is 'p_false'; expected one of p_true, likelihood"):
        Settings(unknown)
