"""Best of n: who samples, who judges what, which sample wins, and what stands when the judge does not judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, ConfigError, ServerError
from pluribus.methods import best_of_n
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript

Make = Callable[..., list[Agent]]
Script = Callable[[Request], str | BackendError]


def sampler(*answers: str) -> Script:
    """Its i-th draw gives the i-th answer; asked for a rating it says 5."""

    def reply(request: Request) -> str:
        if request.round:
            return '{"reason": "fine", "score": 5}'
        return f"draw {request.sample} {{final answer: {answers[request.sample]}}}"

    return reply


def judge(*scores: float) -> Script:
    """Rates the sample it was shown by the number of its draw."""

    def reply(request: Request) -> str:
        shown = next(i for i in range(len(scores)) if f"draw {i} " in request.messages[0].content)
        return f'{{"reason": "r", "score": {scores[shown]}}}'

    return reply


def finals(transcript: Transcript) -> list[str]:
    return [transcript.turns[i].text[:6] for i in transcript.finals]


def made(agents: list[Agent]) -> list[int]:
    return [len(agent.backend.seen) for agent in agents]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("n", "seats"), [(1, 1), (4, 1), (3, 2), (2, 50)])
async def test_calls_are_what_was_forecast(council: Make, question: Question, n: int, seats: int) -> None:
    agents = council(*[sampler("1", "2", "3", "4")] * seats)
    transcript = await solve(question, agents, "best_of_n", {"n": n})
    assert transcript.status == "complete"
    assert best_of_n.calls(make_settings("best_of_n", {"n": n}), seats) == (sum(made(agents)),) * 2 == (2 * n, 2 * n)


async def test_the_best_rated_sample_is_the_answer(council: Make, question: Question) -> None:
    agents = council(sampler("7", "8", "7"), judge(3, 9, 4))
    transcript = await solve(question, agents, "best_of_n", {"n": 3})
    assert finals(transcript) == ["draw 1"]
    assert transcript.notes == {"scores": [3, 9, 4]}


async def test_the_first_seat_samples_and_the_last_judges_each_alone(council: Make, question: Question) -> None:
    agents = council(sampler("1", "2"), sampler("9"), judge(1, 2))
    transcript = await solve(question, agents, "best_of_n", {"n": 2})
    assert made(agents) == [2, 0, 2]
    assert [(t.round, t.seat, t.role) for t in transcript.turns] == [
        (0, 0, "answer"), (0, 0, "answer"), (1, 2, "score"), (1, 2, "score"),
    ]  # fmt: skip
    for place, turn in enumerate(transcript.turns[2:]):
        shown = turn.messages[-1].content
        assert question.text in shown
        assert [f"draw {i} " in shown for i in range(2)] == [i == place for i in range(2)]


@pytest.mark.parametrize(
    ("answers", "winner"), [(("1", "2", "2"), "draw 1"), (("1", "2", "3"), "draw 0"), (("none", "2", "3"), "draw 1")]
)
async def test_ties_go_to_the_answer_with_more_votes_then_to_the_first(
    council: Make, question: Question, answers: tuple[str, ...], winner: str
) -> None:
    def reply(request: Request) -> str:
        said = answers[request.sample]
        return f"draw {request.sample} " + ("<think> cut off" if said == "none" else f"{{final answer: {said}}}")

    transcript = await solve(question, council(reply, judge(6, 6, 6)), "best_of_n", {"n": 3})
    assert finals(transcript) == [winner]


async def test_equal_samples_are_judged_apart(council: Make, question: Question) -> None:
    transcript = await solve(question, council(lambda request: "{final answer: 1} {score: 5}"), "best_of_n", {"n": 3})
    judged = transcript.turns[3:]
    assert len({turn.messages for turn in judged}) == 1
    assert [turn.sample for turn in judged] == [0, 1, 2]


async def test_a_sample_without_a_rating_can_not_win(council: Make, question: Question) -> None:
    def picky(request: Request) -> str:
        return "no comment" if "draw 0 " in request.messages[0].content else '{"score": 0}'

    transcript = await solve(question, council(sampler("1", "1", "2"), picky), "best_of_n", {"n": 3})
    assert finals(transcript) == ["draw 1"]
    assert (transcript.status, transcript.notes["scores"]) == ("degraded", [None, 0, 0])
    assert (
        transcript.failure
        and "seat 2 in round 1: unreadable score: it does not say score" in transcript.failure.message
    )


async def test_a_failing_judge_is_followed_by_the_next_in_line(council: Make, question: Question) -> None:
    agents = council(sampler("1", "2"), judge(2, 8), lambda request: ServerError("500: down"))
    transcript = await solve(question, agents, "best_of_n", {"n": 2})
    assert made(agents) == [4, 0, 2]
    assert (transcript.status, finals(transcript)) == ("degraded", ["draw 0"])


async def test_without_any_rating_the_samples_are_voted_on(council: Make, question: Question) -> None:
    def mute(request: Request) -> str:
        return "no comment" if request.round else f"draw {request.sample} {{final answer: 1}}"

    agents = council(mute)
    transcript = await solve(question, agents, "best_of_n", {"n": 3})
    assert (transcript.status, finals(transcript)) == ("degraded", ["draw 0", "draw 1", "draw 2"])
    assert made(agents) == [3 + 2 * 3], "each rating was asked for once more"


async def test_failed_samples_are_not_judged_and_none_left_is_a_failure(council: Make, question: Question) -> None:
    def shaky(request: Request) -> str | BackendError:
        return ServerError("500") if request.sample == 1 and not request.round else sampler("1", "2", "3")(request)

    agents = council(shaky, judge(4, 9, 5))
    transcript = await solve(question, agents, "best_of_n", {"n": 3})
    assert (transcript.status, finals(transcript), made(agents)) == ("degraded", ["draw 2"], [3, 2])
    dead = await solve(question, council(lambda request: ServerError("500: no")), "best_of_n", {})
    assert (dead.status, len(dead.turns)) == ("failed", 4)


def test_settings_name_value_and_range() -> None:
    with pytest.raises(ConfigError, match="n is 0; draw at least 1 sample"):
        make_settings("best_of_n", {"n": 0})
