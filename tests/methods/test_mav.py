"""Multi-agent verification: which verifiers are drawn, what each reads, and whose approvals win."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.errors import BackendError, ConfigError, ServerError
from pluribus.methods import mav
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript

Make = Callable[..., list[Agent]]
Script = Callable[[Request], str | BackendError]
ASPECTS = ("the units", "the sums", "the facts")


def solver(*answers: str) -> Script:
    """Its i-th draw gives the i-th answer; as a verifier it approves of everything."""

    def reply(request: Request) -> str:
        if request.round:
            return "It holds. {verdict: true}"
        return f"draw {request.sample} {{final answer: {answers[request.sample % len(answers)]}}}"

    return reply


def verifier(**approved: str) -> Script:
    """Approves of the draws named for an aspect: verifier(units="01", sums="1")."""

    def reply(request: Request) -> str:
        text = request.messages[0].content
        aspect = next(aspect for aspect in ASPECTS if aspect in text).split()[1]
        (draw,) = (i for i in range(9) if f"draw {i} " in text)
        return f"{{verdict: {str(draw) in approved.get(aspect, '')}}}"

    return reply


def finals(transcript: Transcript) -> list[str]:
    return [transcript.turns[i].text[:6] for i in transcript.finals]


def made(agents: list[Agent]) -> list[int]:
    return [len(agent.backend.seen) for agent in agents]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("seats", "values", "calls"),
    [
        (1, {}, 6),
        (2, {"n_solutions": 4, "n_verifiers": 3}, 16),
        (3, {"n_solutions": 2, "n_verifiers": 3, "reason_first": True}, 14),
        (50, {"n_solutions": 1, "n_verifiers": 1}, 2),
        (1, {"n_verifiers": 7, "aspects": ["the units"]}, 16),
    ],
)
async def test_calls_are_what_was_forecast(
    council: Make, question: Question, seats: int, values: dict[str, Any], calls: int
) -> None:
    agents = council(*[solver("1")] * seats)
    transcript = await solve(question, agents, "mav", values)
    assert mav.calls(make_settings("mav", values), seats) == (sum(made(agents)),) * 2 == (calls, calls)
    assert transcript.status == "complete"


async def test_most_approvals_win(council: Make, question: Question) -> None:
    agents = council(solver("7", "8", "7"), verifier(units="01", sums="1", facts="12"))
    values = {"n_solutions": 3, "n_verifiers": 3, "aspects": ASPECTS}
    transcript = await solve(question, agents, "mav", values)
    assert finals(transcript) == ["draw 1"]
    approvals = transcript.notes["approvals"]
    assert [sum(row) for row in approvals] == [1, 3, 1]


async def test_every_verifier_reads_the_question_one_aspect_and_one_candidate(
    council: Make, question: Question
) -> None:
    agents = council(solver("1", "2"), verifier(), verifier())
    transcript = await solve(question, agents, "mav", {"n_verifiers": 6, "aspects": ASPECTS})
    verdicts = transcript.turns[2:]
    assert {(t.round, t.role) for t in verdicts} == {(1, "verdict")}
    shown = []
    for turn in verdicts:
        text = turn.messages[-1].content
        assert question.text in text
        (aspect,) = (aspect for aspect in ASPECTS if aspect in text)
        (draw,) = (i for i in range(2) if f"draw {i} " in text)
        shown.append((turn.seat, aspect, draw))
    assert sorted(shown) == sorted((s, a, d) for s in (1, 2) for a in ASPECTS for d in (0, 1))


async def test_verifiers_are_drawn_by_the_seed_and_the_same_for_every_candidate(
    council: Make, question: Question
) -> None:
    async def drawn(seed: int, asked: Question = question) -> list[list[str]]:
        agents = council(solver("1"), solver("1"), solver("1"))
        values = {"n_verifiers": 2, "aspects": ASPECTS}
        transcript = await solve(asked, agents, "mav", values, seed=seed)
        verdicts = [(t.seat, t.messages[-1].content.replace("draw 1", "draw 0")) for t in transcript.turns[2:]]
        assert verdicts[:2] == verdicts[2:], "both candidates stand before the same verifiers"
        return transcript.notes["verifiers"]  # type: ignore[no-any-return]  # notes are plain values

    assert await drawn(1) == await drawn(1)
    assert len({str(await drawn(seed)) for seed in range(12)}) > 3
    others = [Question(f"q{i}", "test", question.text, "number") for i in range(12)]
    assert len({str(await drawn(1, other)) for other in others}) > 3


async def test_more_verifiers_than_pairs_judge_again_with_another_draw(council: Make, question: Question) -> None:
    agents = council(solver("1", "2"))
    values = {"n_solutions": 2, "n_verifiers": 3, "aspects": ["the units"]}
    await solve(question, agents, "mav", values)
    seen = agents[0].backend.seen[2:]  # type: ignore[attr-defined]
    assert len({(r.messages, r.sample) for r in seen}) == 6


async def test_verifier_models_names_the_seats_that_verify(council: Make, question: Question) -> None:
    agents = council(*[solver("1")] * 4)
    values = {"verifier_models": ["agent 2", "scripted/seat3"], "n_verifiers": 4, "aspects": ["a", "b"]}
    await solve(question, agents, "mav", values)
    assert made(agents) == [2, 4, 0, 4]
    trained = replace(agents[1], seat=replace(agents[1].seat, model="local/out/student[weights=0a1b2c3d]"))
    council_of = [agents[0], trained, *agents[2:]]
    assert (await solve(question, council_of, "mav", {"verifier_models": ["local/out/student"]})).failure is None
    unknown = await solve(question, agents, "mav", {"verifier_models": ["agent 9"]})
    assert unknown.failure and "unknown seat in verifier_models 'agent 9'" in unknown.failure.message
    assert unknown.turns == ()


@pytest.mark.parametrize(("answers", "winner"), [(("1", "2", "2"), "draw 1"), (("1", "2", "3"), "draw 0")])
async def test_ties_go_to_the_answer_most_tied_candidates_give_then_to_the_first(
    council: Make, question: Question, answers: tuple[str, ...], winner: str
) -> None:
    transcript = await solve(question, council(solver(*answers)), "mav", {"n_solutions": 3})
    assert finals(transcript) == [winner]


async def test_only_the_tied_candidates_vote_on_a_tie(council: Make, question: Question) -> None:
    agents = council(solver("5", "6", "6", "6"), verifier(units="01", sums="01"))
    values = {"n_solutions": 4, "aspects": ASPECTS[:2]}
    transcript = await solve(question, agents, "mav", values)
    assert finals(transcript) == ["draw 0"]


async def test_a_verifier_that_reasons_first_concludes_from_its_own_words(council: Make, question: Question) -> None:
    def reasons(request: Request) -> str:
        return "my thoughts" if request.schema is None else "{verdict: true}"

    agents = council(solver("1"), reasons)
    transcript = await solve(question, agents, "mav", {"n_solutions": 1, "n_verifiers": 1, "reason_first": True})
    assert [turn.role for turn in transcript.turns] == ["answer", "reason", "verdict"]
    assert "my thoughts" in transcript.turns[-1].messages[-1].content


async def test_a_missing_verdict_is_no_disapproval(council: Make, question: Question) -> None:
    def half_mute(request: Request) -> str:
        text = request.messages[0].content
        if "the units" in text and "draw 0 " in text:
            return "hm"
        return f"{{verdict: {'draw 0 ' in text or 'the units' in text}}}"

    agents = council(solver("1", "2"), half_mute)
    transcript = await solve(question, agents, "mav", {"aspects": ASPECTS[:2]})
    assert sorted(map(str, transcript.notes["approvals"][0])) == ["None", "True"]
    assert finals(transcript) == ["draw 0"]
    assert (transcript.status, sum(made(agents))) == ("degraded", 7)


async def test_without_any_verdict_the_candidates_are_voted_on(council: Make, question: Question) -> None:
    agents = council(solver("1", "2", "2"), lambda request: ServerError("500: ill"))
    transcript = await solve(question, agents, "mav", {"n_solutions": 3})
    assert (transcript.status, finals(transcript)) == ("degraded", ["draw 0", "draw 1", "draw 2"])
    dead = await solve(question, council(lambda request: ServerError("500")), "mav", {})
    assert (dead.status, len(dead.turns)) == ("failed", 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_solutions": 0}, "n_solutions is 0; draw at least 1"),
        ({"n_verifiers": 0}, "n_verifiers is 0; draw at least 1"),
        ({"aspects": []}, "aspects is empty; name at least one"),
    ],
)
def test_settings_name_value_and_range(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_settings("mav", values)
