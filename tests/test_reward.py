"""Candidates to judgements to rewards: who is asked, who reads whom, and what the numbers do."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.backends.scripted import Scripted
from pluribus.errors import BudgetExceeded, ServerError
from pluribus.judges import Candidate, score, verifier
from pluribus.prompts import dialect
from pluribus.reward import Judge, judge, latest, pair_id, reckon
from pluribus.types import Judgement, Question, Seat

Reply = Callable[[Request], object]
REPLIES = ("19 {final answer: 19}", "20 {final answer: 20}", "18 {final answer: 18}")
CANDIDATES = [Candidate("a", turn, text) for turn, text in enumerate(REPLIES)]
ITEMS = [(c.attempt_id, c.turn) for c in CANDIDATES]


def rated(points: Mapping[str, object]) -> Reply:
    """A judge that rates the reply that stands in the prompt."""

    def reply(request: Request) -> object:
        text = "\n".join(message.content for message in request.messages)
        found = next(value for shown, value in points.items() if shown in text)
        return found if isinstance(found, Exception) else f'{{"reason": "because of {found}", "score": {found}}}'

    return reply


def judge_of(name: str, reply: Reply, weight: float = 1.0, latency_s: float = 0.0) -> Judge:
    backend = Scripted(reply, model=f"scripted/{name}", latency_s=latency_s)  # type: ignore[arg-type]
    agent = Agent(Seat(0, name, f"scripted/{name}"), backend, dialect("standard"))
    return Judge(name, "score", score.Settings(), f"asked of {name}", weight, None, agent)


def seen(one: Judge) -> list[str]:
    assert one.agent is not None and isinstance(one.agent.backend, Scripted)
    return ["\n".join(m.content for m in request.messages) for request in one.agent.backend.seen]


POINTS = {REPLIES[0]: 9, REPLIES[1]: 2, REPLIES[2]: 1}


async def test_every_judge_gives_every_candidate_a_judgement_with_its_calls(question: Question) -> None:
    judges = [judge_of("x", rated(POINTS)), judge_of("y", rated({REPLIES[0]: 7, REPLIES[1]: 7, REPLIES[2]: 3}))]
    said = await judge(question, CANDIDATES, judges)
    assert [(j.judge, j.turn, j.score) for j in said] == [
        ("x", 0, 0.9), ("x", 1, 0.2), ("x", 2, 0.1), ("y", 0, 0.7), ("y", 1, 0.7), ("y", 2, 0.3),
    ]  # fmt: skip
    assert all(len(j.turns) == 1 and j.failure is None and j.asked == f"asked of {j.judge}" for j in said)
    assert said[0].reason == "because of 9"


async def test_a_judge_that_fails_is_a_failure_and_no_zero(question: Question) -> None:
    judges = [judge_of("x", rated(POINTS)), judge_of("broken", lambda request: ServerError("500: out"))]
    said = await judge(question, CANDIDATES, judges)
    assert [j.score for j in said if j.judge == "broken"] == [None] * 3
    assert all("500: out" in j.failure.message for j in said if j.judge == "broken" and j.failure)
    rewards = reckon(ITEMS, said, {"x": 1.0, "broken": 1.0}, threshold=0.02).rewards
    assert [r.scores["broken"] for r in rewards] == [None] * 3
    assert [r.status for r in rewards] == ["alone"] * 3
    assert rewards[0].value is not None and rewards[0].value > 0.5


async def test_judges_work_side_by_side(question: Question) -> None:
    """Both are under way at once: each one's reply waits until the other has been asked."""
    asked: dict[str, asyncio.Event] = {"x": asyncio.Event(), "y": asyncio.Event()}

    class Waiting(Scripted):
        async def complete(self, request: Request):  # type: ignore[no-untyped-def]
            asked[self.model[-1]].set()
            await asyncio.wait_for(asyncio.gather(*(event.wait() for event in asked.values())), 20)
            return await super().complete(request)

    judges = []
    for name in asked:
        one = judge_of(name, rated(POINTS))
        assert one.agent is not None
        backend = Waiting(rated(POINTS), model=f"scripted/{name}")  # type: ignore[arg-type]
        judges.append(replace(one, agent=replace(one.agent, backend=backend)))
    assert len(await judge(question, CANDIDATES, judges)) == 6


async def test_an_exhausted_budget_ends_all_judges(question: Question) -> None:
    def over(request: Request) -> object:
        raise BudgetExceeded("calls: 3 of 3 used")

    slow = judge_of("slow", rated(POINTS), latency_s=30.0)
    before = time.monotonic()
    with pytest.raises(BudgetExceeded, match="3 of 3"):
        await judge(question, CANDIDATES, [judge_of("x", over), slow])
    assert time.monotonic() - before < 25  # the slow judge was not waited for


async def test_in_a_second_round_each_judge_reads_the_others_and_not_itself(question: Question) -> None:
    judges = [judge_of(name, rated(dict.fromkeys(REPLIES, points))) for name, points in [("ada", 9), ("bob", 2)]]
    first = await judge(question, CANDIDATES, judges)
    scales = reckon(ITEMS, first, {"ada": 1.0, "bob": 1.0}, threshold=0.02, normalise="none").scales
    again = await judge(question, CANDIDATES[:1], judges, round=1, before=first, scales=scales)
    assert [(j.judge, j.round, j.turn) for j in again] == [("ada", 1, 0), ("bob", 1, 0)]
    read_by_ada, read_by_bob = (seen(one)[-1] for one in judges)
    assert "because of 2" in read_by_ada and "because of 9" not in read_by_ada
    assert "because of 9" in read_by_bob and "because of 2" not in read_by_bob
    assert "bob" not in read_by_ada and "ada" not in re.sub("[a-z]+ada", "", read_by_bob)
    assert again[0].asked != first[0].asked


async def test_a_kind_that_reads_no_reasons_is_not_asked_again(question: Question) -> None:
    async def right(question: Question, reply: str) -> bool:
        return "19" in reply

    checking = Judge("task", "verifier", verifier.Settings(), "task", 1.0)
    judges = [judge_of("x", rated(POINTS)), checking]
    first = await judge(question, CANDIDATES, judges, check=right)
    assert [j.score for j in first if j.judge == "task"] == [1.0, 0.0, 0.0]
    again = await judge(question, CANDIDATES, judges, round=1, before=first, check=right)
    assert {j.judge for j in again} == {"x"}


# --- reckoning -------------------------------------------------------------------------------------------------------


def said_of(scores: Mapping[str, list[float | None]], round: int = 0) -> list[Judgement]:
    return [
        Judgement("a", turn, name, name, value, round)
        for name, values in scores.items()
        for turn, value in enumerate(values)
    ]


ITEMS4 = [("a", turn) for turn in range(4)]
SCORES: dict[str, list[float | None]] = {
    "x": [0.9, 0.5, 0.4, 0.1],
    "y": [0.8, 0.6, 0.1, 0.3],
    "z": [0.2, None, 0.9, 0.5],
}
WEIGHTS = {"x": 0.5, "y": 0.3, "z": 0.2}


@pytest.mark.parametrize("normalise", ["zscore", "rank"])
def test_a_shift_or_a_positive_scale_of_one_judge_changes_no_reward(normalise: str) -> None:
    moved = {**SCORES, "y": [None if v is None else 40 * v - 7 for v in SCORES["y"]]}
    one, other = (
        reckon(ITEMS4, said_of(s), WEIGHTS, threshold=0.02, normalise=normalise).rewards  # type: ignore[arg-type]
        for s in (SCORES, moved)
    )
    for a, b in zip(one, other, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-12)
        assert a.disagreement == pytest.approx(b.disagreement, abs=1e-12)
        assert a.status == b.status


def test_the_order_of_judges_does_not_matter() -> None:
    turned = dict(reversed(WEIGHTS.items()))
    one, other = (
        reckon(ITEMS4, said_of(SCORES)[::step], weights, threshold=0.02).rewards
        for step, weights in ((1, WEIGHTS), (-1, turned))
    )
    assert [(r.value, r.disagreement, r.status) for r in one] == [(r.value, r.disagreement, r.status) for r in other]


def test_missing_verdicts_leave_the_others_weights_in_proportion() -> None:
    found = reckon(ITEMS4, said_of(SCORES), WEIGHTS, threshold=1.0, normalise="none").rewards[1]
    assert found.value == pytest.approx((0.5 * 0.5 + 0.3 * 0.6) / 0.8)
    assert found.disagreement == pytest.approx(0.5 * 0.3 / 0.8**2 * 0.1**2)
    assert found.scores == {"x": 0.5, "y": 0.6, "z": None}


def test_nobody_scored_is_unscored_and_one_judge_alone_agrees_with_itself() -> None:
    nobody = reckon(ITEMS4, said_of({"x": [None] * 4}), {"x": 1.0}, threshold=0.02).rewards
    assert {(r.value, r.disagreement, r.status) for r in nobody} == {(None, None, "unscored")}
    alone = reckon(ITEMS4, said_of({"x": SCORES["x"]}), {"x": 1.0}, threshold=0.0).rewards
    assert {(r.disagreement, r.status) for r in alone} == {(None, "agreed")}
    assert all(r.value is not None for r in alone)


def test_no_candidates_no_rewards() -> None:
    assert reckon([], [], WEIGHTS, threshold=0.02).rewards == ()


def test_a_judge_without_spread_counts_a_half_for_all() -> None:
    found = reckon(ITEMS4, said_of({**SCORES, "y": [0.7] * 4}), WEIGHTS, threshold=0.02).rewards
    assert {r.normalised["y"] for r in found} == {0.5}


@pytest.mark.parametrize("weights", [{"x": 0.0, "y": 0.0}, {"x": -1.0, "y": 2.0}, {"x": float("nan"), "y": 1.0}])
def test_weights_that_weigh_nothing_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        reckon(ITEMS4, said_of(SCORES), weights, threshold=0.02)


def test_a_candidate_judged_again_moves_itself_and_nobody_else() -> None:
    first = said_of(SCORES)
    again = [*first, Judgement("a", 2, "x", "x again", 0.95, 1), Judgement("a", 2, "y", "y again", None, 1)]
    before = reckon(ITEMS4, first, WEIGHTS, threshold=0.02).rewards
    after = reckon(ITEMS4, again, WEIGHTS, threshold=0.02).rewards
    assert [a for i, a in enumerate(after) if i != 2] == [b for i, b in enumerate(before) if i != 2]
    assert (after[2].rounds, after[2].scores["x"]) == (1, 0.95)
    assert after[2].scores["y"] == 0.1  # no verdict the second time: the first one stands
    assert {(j.judge, j.round) for j in latest(again) if j.turn == 2} == {("x", 1), ("y", 0), ("z", 0)}


def test_what_a_person_decided_stays_decided() -> None:
    found = reckon(ITEMS4, said_of(SCORES), WEIGHTS, threshold=0.0, adjudicated=frozenset({("a", 0)})).rewards
    assert [r.status for r in found] == ["adjudicated", "disputed", "disputed", "disputed"]


def test_pairs_have_one_name_whichever_comes_first() -> None:
    assert pair_id(("a", 1), ("a", 2)) == pair_id(("a", 2), ("a", 1)) != pair_id(("a", 1), ("a", 3))
