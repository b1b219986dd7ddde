"""MAD: whose turn it is, what each side and the moderator have heard, when it is settled, and how it is judged."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.backends import Request
from pluribus.errors import BackendError, ConfigError, ServerError
from pluribus.methods import mad
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript, Turn

Make = Callable[..., list[Agent]]
Script = Callable[[Request], str | BackendError]
OPEN = {"reason": "not yet", "settled": False, "side": "none", "answer": ""}


def side(name: str, *answers: str) -> Script:
    """Says its answer of each round in turn, the last one for ever."""

    def reply(request: Request) -> str:
        answer = answers[min(request.round, len(answers) - 1)]
        return f"{name} in round {request.round} {{final answer: {answer}}}"

    return reply


def moderator(*verdicts: dict[str, object] | str) -> Script:
    """Gives the verdict of each round in turn, the last one for ever; a judge that is asked for an answer says 5."""

    def reply(request: Request) -> str:
        if request.schema is None:
            return f"judge in round {request.round} {{final answer: 5}}"
        verdict = verdicts[min(request.round, len(verdicts) - 1)]
        return verdict if isinstance(verdict, str) else json.dumps(verdict)

    return reply


def settled(side: str = "none", answer: str = "", reason: str = "clear") -> dict[str, object]:
    return {"reason": reason, "settled": True, "side": side, "answer": answer}


def heard(turn: Turn) -> set[str]:
    text = "".join(message.content for message in turn.messages)
    return {words for r in range(9) for name in ("aff", "neg") if (words := f"{name} in round {r} ") in text}


def words(*said: str) -> set[str]:
    """words("aff 0") → what the affirmative side said in round 0."""
    return {f"{name} in round {r} " for name, r in (one.split() for one in said)}


def trace(transcript: Transcript) -> list[tuple[int, int, str]]:
    return [(t.round, t.seat, t.role) for t in transcript.turns]


def finals(transcript: Transcript) -> list[str]:
    return [transcript.turns[i].text for i in transcript.finals]


@pytest.mark.parametrize(
    ("seats", "max_round", "settles", "made"),
    [(3, 3, None, 11), (3, 3, 0, 3), (4, 2, 1, 6), (1, 1, None, 5), (2, 2, 0, 3), (50, 1, None, 5)],
)
async def test_calls_are_within_the_forecast(
    council: Make, question: Question, seats: int, max_round: int, settles: int | None, made: int
) -> None:
    def anybody(request: Request) -> str:
        if request.schema is None:
            return f"round {request.round} {{final answer: 1}}"
        return json.dumps(OPEN if settles is None or request.round < settles else settled("affirmative", "1"))

    agents = council(*[anybody] * seats)
    transcript = await solve(question, agents, "mad", {"max_round": max_round})
    assert sum(len(agent.backend.seen) for agent in agents) == made == len(transcript.turns)  # type: ignore[attr-defined,misc]  # scripted
    least, most = mad.calls(make_settings("mad", {"max_round": max_round}), seats)
    assert (least, most) == (3, 3 * max_round + 2)
    assert made == (most if settles is None else 3 * (settles + 1))
    assert transcript.status == "complete"


async def test_the_sides_speak_in_turn_each_with_its_whole_conversation(council: Make, question: Question) -> None:
    agents = council(side("aff", "1"), side("neg", "2"), moderator(OPEN, OPEN, settled("negative", "2")))
    transcript = await solve(question, agents, "mad", {})
    assert trace(transcript) == [
        (r, seat, role) for r in range(3) for seat, role in ((0, "answer"), (1, "answer"), (2, "verdict"))
    ]
    rounds = [[heard(turn) for turn in transcript.turns[3 * r : 3 * r + 3]] for r in range(3)]
    assert rounds[0] == [set(), words("aff 0"), words("aff 0", "neg 0")]
    assert rounds[1] == [
        words("aff 0", "neg 0"),
        words("aff 0", "neg 0", "aff 1"),
        words("aff 0", "neg 0", "aff 1", "neg 1"),
    ]
    assert rounds[2][0] == words("aff 0", "neg 0", "aff 1", "neg 1")
    assert [m.role for m in transcript.turns[6].messages] == ["user", "assistant"] * 2 + ["user"]
    assert all(question.text in turn.messages[0].content for turn in transcript.turns)
    assert finals(transcript) == ["neg in round 2 {final answer: 2}"]


@pytest.mark.parametrize("round", [0, 1])
async def test_it_stops_when_the_moderator_settles_it(council: Make, question: Question, round: int) -> None:
    agents = council(side("aff", "1"), side("neg", "2"), moderator(*[OPEN] * round, settled("affirmative", "1")))
    transcript = await solve(question, agents, "mad", {"max_round": 5})
    assert len(transcript.turns) == 3 * (round + 1)
    assert finals(transcript) == [f"aff in round {round} {{final answer: 1}}"]


@pytest.mark.parametrize(
    ("verdict", "answer", "role"),
    [
        (settled("negative", "2"), "2", "answer"),
        (settled("affirmative", "2"), "2", "answer"),
        (settled("none", "1"), "1", "answer"),
        (settled("negative", ""), "2", "answer"),
        (settled("negative", "I take the second"), "2", "answer"),
        (settled("none", "3"), "3", "verdict"),
        (settled("affirmative", "{final answer: 3}", "the 4 is wrong"), "3", "verdict"),
    ],
)
async def test_the_verdicts_answer_is_the_decision(
    council: Make, question: Question, verdict: dict[str, object], answer: str, role: str
) -> None:
    agents = council(side("aff", "1"), side("neg", "2"), moderator(verdict))
    transcript = await solve(question, agents, "mad", {})
    (final,) = (transcript.turns[i] for i in transcript.finals)
    assert (read(question, final.text), final.role, len(transcript.turns)) == (answer, role, 3)


@pytest.mark.parametrize(("named", "seat"), [("affirmative", 0), ("negative", 1), ("none", 0)])
async def test_of_two_sides_that_agree_the_named_one_has_the_word(
    council: Make, question: Question, named: str, seat: int
) -> None:
    agents = council(side("aff", "2"), side("neg", "2"), moderator(settled(named, "2")))
    transcript = await solve(question, agents, "mad", {})
    assert [transcript.turns[i].seat for i in transcript.finals] == [seat]


@pytest.mark.parametrize("verdict", [settled("none", ""), settled("none", "who knows"), OPEN | {"answer": "2"}])
async def test_a_verdict_without_side_and_answer_settles_nothing(
    council: Make, question: Question, verdict: dict[str, object]
) -> None:
    agents = council(side("aff", "1"), side("neg", "2"), moderator(verdict))
    transcript = await solve(question, agents, "mad", {"max_round": 2})
    assert len(transcript.turns) == 3 * 2 + 2


async def test_an_unsettled_debate_is_judged_in_two_calls_over_all_that_was_said(
    council: Make, question: Question
) -> None:
    agents = council(side("aff", "1"), side("neg", "2"), moderator(OPEN), moderator(OPEN))
    transcript = await solve(question, agents, "mad", {"max_round": 2})
    candidates, choice = transcript.turns[-2:]
    assert trace(transcript)[-2:] == [(2, 3, "candidates"), (2, 3, "aggregate")]
    assert heard(candidates) == words("aff 0", "neg 0", "aff 1", "neg 1")
    order = [
        candidates.messages[0].content.index(said) for said in ("aff in round 0", "neg in round 0", "aff in round 1")
    ]
    assert order == sorted(order)
    assert choice.messages[: len(candidates.messages) + 1][-1].content == candidates.text
    assert finals(transcript) == ["judge in round 2 {final answer: 5}"]


async def test_three_seats_the_moderator_judges_and_one_seat_does_everything(council: Make, question: Question) -> None:
    three = await solve(question, council(side("aff", "1"), side("neg", "2"), moderator(OPEN)), "mad", {"max_round": 1})
    assert [turn.seat for turn in three.turns] == [0, 1, 2, 2, 2]
    alone = await solve(question, council(moderator(OPEN)), "mad", {"max_round": 1})
    assert [turn.seat for turn in alone.turns] == [0] * 5
    assert len({turn.messages for turn in alone.turns}) == 5


async def test_an_unreadable_verdict_is_asked_for_again_then_the_next_in_line_moderates(
    council: Make, question: Question
) -> None:
    def helps(request: Request) -> str | BackendError:
        return (side("aff", "1") if request.schema is None else moderator(settled("negative", "2")))(request)

    agents = council(helps, side("neg", "2"), moderator("the negative side, I think"))
    transcript = await solve(question, agents, "mad", {"max_round": 1})
    assert trace(transcript)[2:] == [(0, 2, "verdict"), (0, 2, "verdict"), (0, 0, "verdict")]
    assert (
        transcript.failure
        and "unreadable verdict: there is no JSON object with the fields" in transcript.failure.message
    )
    assert finals(transcript) == ["neg in round 0 {final answer: 2}"]


async def test_a_verdict_is_parsed_never_evaluated(council: Make, question: Question) -> None:
    agents = council(side("aff", "1"), side("neg", "2"), moderator("__import__('os').abort()"))
    transcript = await solve(question, agents, "mad", {"max_round": 1})
    assert (transcript.status, finals(transcript)) == ("degraded", ["judge in round 1 {final answer: 5}"])


async def test_a_failing_judge_is_followed_by_the_next_and_then_by_the_vote(council: Make, question: Question) -> None:
    def no_judge(name: str, answer: str, fails_at: str) -> Script:
        def reply(request: Request) -> str | BackendError:
            if request.schema is not None:
                return json.dumps(OPEN)
            judging = request.round == 1
            choosing = judging and len(request.messages) > 1
            failed = judging and (fails_at == "list" or choosing)
            return ServerError("500: ill") if failed else side(name, answer)(request)

        return reply

    chosen = council(
        no_judge("aff", "1", "list"), no_judge("neg", "2", "choice"), moderator(OPEN), no_judge("j", "3", "choice")
    )
    transcript = await solve(question, chosen, "mad", {"max_round": 1})
    assert [(t.seat, t.role, t.ok) for t in transcript.turns[3:]] == [
        (3, "candidates", True), (3, "aggregate", False), (0, "candidates", False), (1, "candidates", True),
        (1, "aggregate", False), (2, "candidates", True), (2, "aggregate", True),
    ]  # fmt: skip
    assert (transcript.status, finals(transcript)) == ("degraded", ["judge in round 1 {final answer: 5}"])
    none = council(no_judge("aff", "1", "list"), no_judge("neg", "2", "choice"))
    transcript = await solve(question, none, "mad", {"max_round": 1})
    assert finals(transcript) == ["aff in round 0 {final answer: 1}", "neg in round 0 {final answer: 2}"]


async def test_a_side_that_fails_is_missing_from_its_round(council: Make, question: Question) -> None:
    def late(request: Request) -> str | BackendError:
        return side("neg", "2")(request) if request.round else ServerError("500: late")

    agents = council(side("aff", "1"), late, moderator(OPEN, OPEN, settled("negative", "2")))
    transcript = await solve(question, agents, "mad", {})
    assert heard(transcript.turns[2]) == words("aff 0")
    assert heard(transcript.turns[3]) == set(), "with nobody to reply to, it opens again"
    assert transcript.turns[3].sample != transcript.turns[0].sample
    assert transcript.failure and transcript.failure.message == "seat 2 in round 0: 500: late"
    assert finals(transcript) == ["neg in round 2 {final answer: 2}"]


async def test_without_a_side_nothing_can_be_debated(council: Make, question: Question) -> None:
    def broken(request: Request) -> BackendError:
        return ServerError("500: no")

    transcript = await solve(question, council(broken, broken, moderator(OPEN)), "mad", {})
    assert (transcript.status, len(transcript.turns)) == ("failed", 2)


async def test_the_moderator_remembers_its_verdicts(council: Make, question: Question) -> None:
    agents = council(side("aff", "1"), side("neg", "2"), moderator(OPEN | {"reason": "watch the sum"}))
    transcript = await solve(question, agents, "mad", {"max_round": 2})
    assert "watch the sum" in "".join(message.content for message in transcript.turns[5].messages)


def test_settings_name_value_and_range() -> None:
    with pytest.raises(ConfigError, match=r"max_round is 0; .* at least 1"):
        make_settings("mad", {"max_round": 0})
