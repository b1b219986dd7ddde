from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pluribus.agents import Agent
from pluribus.errors import BudgetExceeded, ConfigError, UnknownName
from pluribus.solve import make_attempt, make_settings, solve
from pluribus.types import Question, Sampling, Seat, Turn

Make = Callable[..., list[Agent]]
SEATS = (Seat(0, "agent 1", "scripted/a"), Seat(1, "agent 2", "scripted/b"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rounds": 3}, "unknown setting of debate 'rounds'.*debate_rounds, .*stop_on_consensus, .*topology"),
        ({"debate_rounds": "3"}, "debate_rounds of debate is '3'; expected int"),
        ({"debate_rounds": True}, "debate_rounds of debate is True"),
        ({"debate_rounds": -1}, "debate_rounds is -1"),
        ({"topology": "ring"}, "one of decentralized, sparse, centralized"),
    ],
)
def test_wrong_settings_are_named(values: dict[str, object], words: str) -> None:
    with pytest.raises((ConfigError, UnknownName), match=words):
        make_settings("debate", values)


def test_an_unknown_method_lists_what_there_is() -> None:
    with pytest.raises(UnknownName, match="did you mean 'debate'"):
        make_settings("debat", {})


def test_the_id_follows_everything_that_is_asked_and_nothing_else(question: Question) -> None:
    settings = make_settings("debate", {})
    asked = make_attempt(question, "debate", settings, SEATS, 0)
    assert asked == make_attempt(question, "debate", settings, SEATS, 0)
    others = [
        make_attempt(replace(question, text="Other?"), "debate", settings, SEATS, 0),
        make_attempt(question, "debate", make_settings("debate", {"debate_rounds": 1}), SEATS, 0),
        make_attempt(question, "debate", settings, SEATS[:1], 0),
        make_attempt(question, "debate", settings, (SEATS[0], replace(SEATS[1], sampling=Sampling(0.1))), 0),
        make_attempt(question, "debate", settings, (SEATS[0], replace(SEATS[1], dialect="zoo")), 0),
        make_attempt(question, "debate", settings, SEATS, 1),
        make_attempt(question, "vote", make_settings("vote", {}), SEATS, 0),
    ]
    assert len({asked.id, *(other.id for other in others)}) == 8


async def test_turns_reach_the_observer_as_they_happen(council: Make, question: Question) -> None:
    heard: list[Turn] = []
    agents = council(lambda r: "{final answer: 1}", lambda r: "{final answer: 2}")
    transcript = await solve(question, agents, "debate", {"debate_rounds": 1}, observe=heard.append)
    assert heard == list(transcript.turns)


async def test_a_spent_budget_is_a_failed_transcript_that_keeps_its_turns(council: Make, question: Question) -> None:
    def spent(request: object) -> str:
        raise BudgetExceeded("the budget of 1 call is spent")

    transcript = await solve(question, council(lambda r: "{final answer: 1}", spent), "vote", {})
    assert transcript.failure and transcript.failure.kind == "budget_exceeded"
    assert [turn.seat for turn in transcript.turns] == [0]


async def test_seeds_differ_between_calls_and_repeat_between_runs(council: Make, question: Question) -> None:
    async def seeds(seed: int) -> list[int | None]:
        agents = council(*[lambda r: "{final answer: 1}"] * 3)
        await solve(question, agents, "debate", {"debate_rounds": 1}, seed=seed)
        return [r.sampling.seed for agent in agents for r in agent.backend.seen]  # type: ignore[attr-defined]

    first, again, other = await seeds(0), await seeds(0), await seeds(1)
    assert first == again
    assert len(set(first)) == 6
    assert not set(first) & set(other)
