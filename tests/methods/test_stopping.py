"""Adaptive stopping in vote, self_consistency and debate: who is asked in which wave, and what shadow mode says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.config import BudgetConfig
from pluribus.consensus.stopping import RULES, Stopping, Voters, settled
from pluribus.decide import decide
from pluribus.errors import BackendError, ServerError, UsageError
from pluribus.load import load
from pluribus.run import make_budget
from pluribus.solve import make_settings, solve
from pluribus.traffic import wrap
from pluribus.types import Completion, Question, Transcript

Make = Callable[..., list[Agent]]
KEYS = {"rule", "eps", "asked", "of", "answer", "doubt", "shadow"}


def says(answer: object) -> Callable[[Request], str | BackendError]:
    if answer is None:
        return lambda request: ServerError("500: out of order")
    return lambda request: f"It is {{final answer: {answer}}}"


def note(transcript: Transcript) -> dict[str, Any]:
    assert set(transcript.notes) == {"stopping"}
    found = transcript.notes["stopping"]
    assert set(found) == KEYS
    return dict(found)


def told(transcript: Transcript) -> list[tuple[Any, ...]]:
    """The turns without the time they took."""
    turns = transcript.turns
    return [(t.round, t.seat, t.role, t.messages, t.sample, t.text if t.ok else t.failure) for t in turns]


async def vote(council: Make, question: Question, answers: Sequence[object], **settings: Any) -> Transcript:
    return await solve(question, council(*map(says, answers)), "vote", settings)


def draws(answers: Sequence[object]) -> Callable[[Request], str | BackendError]:
    """One model whose sample i is answers[i]."""
    return lambda request: says(answers[request.sample])(request)


class Barrier:
    """A backend that answers nobody before `size` are waiting: who is asked at once, is asked together."""

    def __init__(self, inner: Any, waves: list[list[int]], sizes: list[int], gate: dict[str, Any], seat: int) -> None:
        self.inner, self.waves, self.sizes, self.gate, self.seat = inner, waves, sizes, gate, seat
        self.model = inner.model

    async def complete(self, request: Request) -> Completion:
        if not self.waves or len(self.waves[-1]) == self.sizes[len(self.waves) - 1]:
            self.waves.append([])
            self.gate["open"] = asyncio.Event()
        opened = self.gate["open"]
        self.waves[-1].append(self.seat)
        if len(self.waves[-1]) == self.sizes[len(self.waves) - 1]:
            opened.set()
        await opened.wait()
        answer: Awaitable[Completion] = self.inner.complete(request)
        return await answer

    async def close(self) -> None:
        await self.inner.close()


async def waves_of(agents: Sequence[Agent], question: Question, sizes: list[int], **settings: Any) -> list[list[int]]:
    """Who was asked in each wave; a wave smaller than was expected hangs, and is ended."""
    waves: list[list[int]] = []
    gate: dict[str, Any] = {}
    held = [replace(a, backend=Barrier(a.backend, waves, sizes, gate, a.index)) for a in agents]
    await asyncio.wait_for(solve(question, held, "vote", settings), timeout=20)
    return [sorted(wave) for wave in waves]


async def test_who_is_asked_in_which_wave(council: Make, question: Question) -> None:
    """Beta at 0.05 with nine seats: four might do; after 3 : 1 three more could, after 6 : 1 it is enough."""
    agents = council(*map(says, [1, 2, 1, 1, 1, 1, 1, 2, 2]))
    waves = await waves_of(agents, question, [4, 3], stop="beta")
    assert waves == [[0, 1, 2, 3], [4, 5, 6]]


async def test_who_is_spared_is_not_in_the_transcript(council: Make, question: Question) -> None:
    agents = council(*map(says, [1, 1, 1, 2, 2]))
    transcript = await solve(question, agents, "vote", {"stop": "unassailable"})
    assert [turn.seat for turn in transcript.turns] == [0, 1, 2]
    assert transcript.finals == (0, 1, 2)
    assert (transcript.status, transcript.failure) == ("complete", None)
    assert [len(agent.backend.seen) for agent in agents] == [1, 1, 1, 0, 0]  # type: ignore[attr-defined]
    assert note(transcript) == {
        "rule": "unassailable", "eps": 0.05, "asked": 3, "of": 5, "answer": "1", "doubt": 0.0, "shadow": False,
    }  # fmt: skip
    assert decide(question, transcript).answer == "1"


MIXED: list[object] = [1, 2, 1, None, 1, 1, 3, 1, 1, 1, 2, 1]


@pytest.mark.parametrize("rule", RULES)
async def test_never_more_calls_than_one_by_one(council: Make, question: Question, rule: str) -> None:
    transcript = await vote(council, question, MIXED, stop=rule, stop_eps=0.2, stop_window=2)
    voters, stopping = Voters((1.0,) * len(MIXED)), Stopping(rule, 0.2, 2)
    votes = [None if answer is None else str(answer) for answer in MIXED]
    alone = next(n for n in range(1, len(votes) + 1) if settled(votes[:n], voters, stopping))
    assert len(transcript.turns) == alone < len(MIXED)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("method", ["vote", "self_consistency"])
async def test_shadow_mode_asks_all_and_says_what_stopping_does(
    council: Make, question: Question, rule: str, method: str
) -> None:
    agents = council(*map(says, MIXED)) if method == "vote" else council(draws(MIXED))
    size = {} if method == "vote" else {"parallel_num": len(MIXED)}
    real = {**size, "stop": rule, "stop_eps": 0.2, "stop_window": 2}
    stopped = await solve(question, agents, method, real)
    shadow = await solve(question, agents, method, {**real, "stop_shadow": True})
    plain = await solve(question, agents, method, size)
    assert note(shadow) == {**note(stopped), "shadow": True}
    assert (told(shadow), shadow.finals, shadow.status) == (told(plain), plain.finals, plain.status)
    assert told(shadow)[: len(stopped.turns)] == told(stopped)
    assert note(stopped)["asked"] == len(stopped.turns) < note(stopped)["of"] == len(plain.turns)
    assert note(stopped)["answer"] == decide(question, stopped).answer
    assert plain.notes == {}


async def test_a_seat_that_fails_was_asked_and_counts_for_nobody(council: Make, question: Question) -> None:
    transcript = await vote(council, question, [1, None, 1, 1, 2], stop="unassailable")
    assert [turn.seat for turn in transcript.turns] == [0, 1, 2, 3]
    assert transcript.status == "degraded"
    assert note(transcript)["asked"] == 4
    unread = await vote(council, question, [1, "I do not know", 1, 1, 2], stop="unassailable")
    assert (unread.status, note(unread)["asked"]) == ("complete", 4)


async def test_all_abstain_and_all_are_asked(council: Make, question: Question) -> None:
    unsure = [lambda request: "I do not know."] * 4
    transcript = await solve(question, council(*unsure), "vote", {"stop": "beta"})
    found = note(transcript)
    assert (found["asked"], found["of"], found["answer"], found["doubt"]) == (4, 4, None, None)
    failed = await vote(council, question, [None] * 4, stop="beta")
    assert (failed.status, len(failed.turns)) == ("failed", 4)


async def test_seats_vote_with_their_weights(council: Make, question: Question) -> None:
    agents = council(*map(says, [1, 2, 2, 2, 2]))
    heavy = [replace(a, seat=replace(a.seat, weight=w)) for a, w in zip(agents, [5.0, 1, 1, 1, 1], strict=True)]
    transcript = await solve(question, heavy, "vote", {"stop": "unassailable"})
    assert (len(transcript.turns), note(transcript)["answer"]) == (1, "1")
    assert decide(question, transcript, rule="weighted").answer == "1"


def priced(agents: Sequence[Agent], prices: Sequence[float | None]) -> list[Agent]:
    return [replace(agent, price=price) for agent, price in zip(agents, prices, strict=True)]


async def test_the_cheapest_are_asked_first(council: Make, question: Question) -> None:
    agents = priced(council(*map(says, [1, 2, 2, 2, 1])), [9.0, 0.1, 3.0, 0.5, 9.0])
    transcript = await solve(question, agents, "vote", {"stop": "unassailable", "stop_order": "cost"})
    assert [turn.seat for turn in transcript.turns] == [1, 3, 2]
    assert note(transcript)["answer"] == decide(question, transcript).answer == "2"


async def test_shadow_mode_follows_the_order_of_cost_and_leaves_the_turns_as_they_sit(
    council: Make, question: Question
) -> None:
    agents = priced(council(*map(says, [1, 2, 2, 2, 1])), [9.0, 0.1, 3.0, 0.5, 9.0])
    settings = {"stop": "unassailable", "stop_order": "cost", "stop_shadow": True}
    transcript = await solve(question, agents, "vote", settings)
    assert [turn.seat for turn in transcript.turns] == [0, 1, 2, 3, 4]
    assert (note(transcript)["asked"], note(transcript)["answer"]) == (3, "2")


@pytest.mark.parametrize("seed", range(12))
async def test_with_weights_and_prices_shadow_mode_says_what_stopping_does(
    council: Make, question: Question, seed: int
) -> None:
    rng = random.Random(seed)
    seats = priced(council(*map(says, rng.choices([1, 1, 1, 2, 3, None], k=8))), rng.choices([0.0, 1.0, 2.0], k=8))
    agents = [replace(a, seat=replace(a.seat, weight=rng.uniform(0.1, 3))) for a in seats]
    for rule in RULES:
        real = {"stop": rule, "stop_eps": 0.2, "stop_window": 2, "stop_order": rng.choice(["seats", "cost"])}
        stopped = await solve(question, agents, "vote", real)
        shadow = await solve(question, agents, "vote", {**real, "stop_shadow": True})
        assert note(shadow) == {**note(stopped), "shadow": True}
        assert note(stopped)["answer"] == decide(question, stopped, rule="weighted").answer


async def test_a_budget_that_ends_within_a_wave_keeps_what_was_heard(council: Make, question: Question) -> None:
    budget = make_budget(BudgetConfig(calls=6))
    agents = council(*map(says, [1, 2, 1, 1, 1, 1, 1, 1, 1]))
    limited = [replace(a, backend=wrap(a.backend, budget=budget)) for a in agents]
    transcript = await solve(question, limited, "vote", {"stop": "beta"})
    assert transcript.failure is not None and transcript.failure.kind == "budget_exceeded"
    assert [turn.seat for turn in transcript.turns] == [0, 1, 2, 3, 4, 5], "a wave of 4, and 2 of the next 3"


async def test_a_seat_without_a_price_can_not_be_ordered_by_cost(council: Make, question: Question) -> None:
    agents = priced(council(*map(says, [1, 1, 1])), [1.0, None, 2.0])
    transcript = await solve(question, agents, "vote", {"stop": "beta", "stop_order": "cost"})
    assert transcript.failure is not None and transcript.failure.kind == "config_error"
    assert "seat 2 (scripted/seat1) has no known price" in transcript.failure.message
    assert "--prices FILE" in transcript.failure.message
    assert not transcript.turns


@pytest.mark.parametrize("seats", [1, 2, 5, 50])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("method", ["vote", "self_consistency", "debate"])
@pytest.mark.parametrize("agree", [True, False])
async def test_calls_are_within_the_forecast(
    council: Make, question: Question, seats: int, rule: str, method: str, agree: bool
) -> None:
    if method == "debate" and rule not in ("beta", "dirichlet"):
        return
    values: dict[str, Any] = {"stop": rule}
    values |= {"parallel_num": seats} if method == "self_consistency" else {}
    values |= {"debate_rounds": 1} if method == "debate" else {}
    said = [1 if agree else i for i in range(seats)]
    agents = council(draws(said)) if method == "self_consistency" else council(*map(says, said))
    transcript = await solve(question, agents, method, values)
    least, most = load("methods", method).calls(make_settings(method, values), len(agents))
    assert 1 <= least <= len(transcript.turns) <= most
    assert not agree or len(transcript.turns) == least, "nothing is settled sooner than by agreement"
    assert note(transcript)["asked"] == len(transcript.turns)


@pytest.mark.parametrize("method", ["vote", "self_consistency", "debate"])
async def test_the_same_seed_gives_the_same_transcript(council: Make, question: Question, method: str) -> None:
    agents = council(draws(MIXED)) if method == "self_consistency" else council(*map(says, MIXED))
    values = {"stop": "beta", "stop_eps": 0.2} | ({"parallel_num": 12} if method == "self_consistency" else {})
    first, second = [await solve(question, agents, method, values, seed=3) for _ in range(2)]
    assert (told(first), first.finals, first.notes) == (told(second), second.finals, second.notes)


async def test_the_aggregator_reads_what_was_sampled(council: Make, question: Question) -> None:
    values = {"parallel_num": 9, "aggregator": "llm", "stop": "beta"}
    transcript = await solve(question, council(says(1)), "self_consistency", values)
    assert [turn.role for turn in transcript.turns] == ["answer"] * 4 + ["aggregate"]
    shown = transcript.turns[-1].messages[-1].content
    assert "sample 4" in shown and "sample 5" not in shown
    assert (note(transcript)["asked"], note(transcript)["of"]) == (4, 9), "samples; the aggregator is asked anyway"
    assert load("methods", "self_consistency").calls(make_settings("self_consistency", values), 1) == (5, 10)


# Debate


def turns_to(answer: object, before: object, at: int) -> Callable[[Request], str | BackendError]:
    """Changes its mind in round `at`."""
    return lambda request: says(answer if request.round >= at else before)(request)


async def test_a_debate_ends_between_two_rounds(council: Make, question: Question) -> None:
    minds = [*[says(1)] * 5, turns_to(1, 2, 1), turns_to(1, 3, 2), turns_to(1, 4, 3)]
    transcript = await solve(question, council(*minds), "debate", {"debate_rounds": 4, "stop": "beta"})
    assert len(transcript.turns) == 16, "after the first round 5 : 1 : 1 : 1, after the second 6 : 1 : 1"
    found = note(transcript)
    assert (found["asked"], found["of"], found["answer"]) == (16, 40, "1")
    assert found["doubt"] == pytest.approx(9 / 2**8)


async def test_a_debate_in_shadow_holds_all_rounds(council: Make, question: Question) -> None:
    minds = [*[says(1)] * 5, turns_to(1, 2, 1), turns_to(1, 3, 2), turns_to(1, 4, 3)]
    real = {"debate_rounds": 4, "stop": "dirichlet"}
    stopped = await solve(question, council(*minds), "debate", real)
    shadow = await solve(question, council(*minds), "debate", {**real, "stop_shadow": True})
    plain = await solve(question, council(*minds), "debate", {"debate_rounds": 4})
    assert note(shadow) == {**note(stopped), "shadow": True}
    assert (told(shadow), shadow.finals) == (told(plain), plain.finals)
    assert len(stopped.turns) < len(shadow.turns) == 40


async def test_a_debate_that_never_agrees_takes_all_rounds(council: Make, question: Question) -> None:
    transcript = await solve(question, council(*map(says, range(5))), "debate", {"debate_rounds": 2, "stop": "beta"})
    found = note(transcript)
    assert (found["asked"], found["of"], found["answer"], found["doubt"]) == (15, 15, "0", None)


async def test_a_small_council_can_not_be_sure_enough_and_the_forecast_says_so(
    council: Make, question: Question
) -> None:
    values = {"debate_rounds": 2, "stop": "beta"}
    transcript = await solve(question, council(*map(says, [1, 1, 1])), "debate", values)
    assert load("methods", "debate").calls(make_settings("debate", values), 3) == (9, 9)
    assert len(transcript.turns) == 9
    assert load("methods", "debate").calls(make_settings("debate", {**values, "stop_eps": 0.1}), 3) == (3, 9)


async def test_a_hub_that_disagrees_goes_on(council: Make, question: Question) -> None:
    minds = [turns_to(1, 2, 1), *[says(1)] * 7]
    values = {"debate_rounds": 3, "stop": "beta", "topology": "centralized"}
    transcript = await solve(question, council(*minds), "debate", values)
    assert (len(transcript.turns), note(transcript)["answer"]) == (16, "1")
    free = await solve(question, council(*minds), "debate", {**values, "topology": "decentralized"})
    assert len(free.turns) == 8


async def test_a_missing_seat_is_no_vote_in_a_debate(council: Make, question: Question) -> None:
    transcript = await solve(
        question, council(*map(says, [1, 1, 1, None])), "debate", {"debate_rounds": 1, "stop": "beta"}
    )
    assert len(transcript.turns) == 8, "three answers leave a doubt of 1/16"


# Settings


@pytest.mark.parametrize(
    ("method", "values", "words"),
    [
        ("vote", {"stop": "beta", "quorum": 2, "deadline_s": 1.0}, "who is late or who is spared, not both"),
        ("vote", {"stop_order": "cost"}, "name the rule that ends the asking"),
        ("vote", {"stop": "betta"}, "one of none, unassailable, beta, dirichlet, window, predictive"),
        ("vote", {"stop": "beta", "stop_eps": 0.0}, "stop_eps is 0.0"),
        ("vote", {"stop_window": 1}, "stop_window is 1"),
        ("vote", {"stop_shadow": True}, "name the rule that is to be watched"),
        ("self_consistency", {"stop": "beta", "stop_eps": 1.0}, "stop_eps is 1.0"),
        ("self_consistency", {"stop_window": 0}, "stop_window is 0"),
        ("self_consistency", {"stop_shadow": True}, "name the rule"),
        ("self_consistency", {"stop_order": "cost"}, "unknown setting"),
        ("debate", {"stop": "window"}, "one of none, beta, dirichlet"),
        ("debate", {"stop": "beta", "stop_eps": -1.0}, "stop_eps is -1.0"),
        ("debate", {"stop_shadow": True}, "name the rule"),
    ],
)
def test_settings_that_make_no_sense(method: str, values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_settings(method, values)


def test_the_rules_of_the_settings_are_the_rules() -> None:
    from typing import get_args

    from pluribus.methods._waves import Stop

    assert get_args(Stop) == ("none", *RULES)
