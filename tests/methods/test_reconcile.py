"""Reconcile: what is read with which confidence, when it ends, and how much a confidence weighs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.decide import decide
from pluribus.errors import BackendError, ConfigError, ServerError
from pluribus.methods import reconcile
from pluribus.solve import make_settings, solve
from pluribus.types import Question, Transcript, Turn

Make = Callable[..., list[Agent]]
Script = Callable[[Request], str | BackendError]


def speaker(seat: int, *opinions: str) -> Script:
    """Says "answer confidence" of each round in turn, the last one for ever: speaker(0, "7 0.9", "8 1")."""

    def reply(request: Request) -> str:
        answer, sure = opinions[min(request.round, len(opinions) - 1)].split()
        said = f"words of seat {seat} in round {request.round} {{final answer: {answer}}}"
        return said if sure == "-" else f"{said} {{confidence: {sure}}}"

    return reply


def heard(turn: Turn) -> set[tuple[int, int]]:
    text = "".join(message.content for message in turn.messages)
    return {(s, r) for s in range(9) for r in range(9) if f"words of seat {s} in round {r} " in text}


def final_seats(transcript: Transcript) -> list[int]:
    return [transcript.turns[i].seat for i in transcript.finals]


def made(agents: list[Agent]) -> int:
    return sum(len(agent.backend.seen) for agent in agents)  # type: ignore[attr-defined,misc]  # the scripted backend


@pytest.mark.parametrize(("n", "rounds"), [(2, 0), (3, 2), (50, 1)])
async def test_without_agreement_it_takes_all_rounds(council: Make, question: Question, n: int, rounds: int) -> None:
    agents = council(*(speaker(seat, f"{seat} 0.7") for seat in range(n)))
    transcript = await solve(question, agents, "reconcile", {"rounds": rounds})
    least, most = reconcile.calls(make_settings("reconcile", {"rounds": rounds}), n)
    assert (least, most) == (n, n * (1 + rounds))
    assert made(agents) == len(transcript.turns) == most
    assert transcript.status == "complete"


@pytest.mark.parametrize(("opinions", "rounds"), [((("4 1", "4 0.1"),) * 3, 1), ((("1 1", "4 1"), ("4 1",)), 2)])
async def test_it_ends_when_all_agree(
    council: Make, question: Question, opinions: tuple[tuple[str, ...], ...], rounds: int
) -> None:
    agents = council(*(speaker(seat, *said) for seat, said in enumerate(opinions)))
    transcript = await solve(question, agents, "reconcile", {})
    assert made(agents) == rounds * len(opinions)
    assert final_seats(transcript) == list(range(len(opinions)))


async def test_everybody_reads_own_and_others_words_with_confidences_in_groups(
    council: Make, question: Question
) -> None:
    agents = council(speaker(0, "1 0.5"), speaker(1, "3 1"), speaker(2, "2 0.9"), speaker(3, "2 80%"))
    transcript = await solve(question, agents, "reconcile", {"rounds": 1})
    for turn in transcript.turns[4:]:
        assert heard(turn) == {(s, 0) for s in range(4)}
        assert question.text in turn.messages[-1].content
    text = transcript.turns[4].messages[-1].content
    places = [
        text.index(f"{name} wrote:\n~~~\nwords of seat {seat} ")
        for seat, name in (
            (2, "Group 1, agent 3 (confidence 0.90)"),
            (3, "Group 1, agent 4 (confidence 0.80)"),
            (1, "Group 2, agent 2 (confidence 1.00)"),
        )
    ]
    assert places == sorted(places), "the larger group stands first"
    assert text.index("words of seat 0 ") < places[0]


async def test_confidence_weighs_in_the_vote(council: Make, question: Question) -> None:
    agents = council(speaker(0, "1 0.6"), speaker(1, "1 0.7"), speaker(2, "2 0.85"))
    transcript = await solve(question, agents, "reconcile", {"rounds": 0})
    assert transcript.notes == {"weighted_votes": {"1": 0.4, "2": 0.5}}
    assert final_seats(transcript) == [2]
    assert decide(question, transcript).answer == "2"


@pytest.mark.parametrize(
    ("confidence", "weight"),
    [(1.0, 1.0), (0.99, 0.8), (0.9, 0.8), (0.89, 0.5), (0.8, 0.5), (0.79, 0.3), (0.61, 0.3), (0.6, 0.1), (0.0, 0.1)],
)
def test_weights_of_the_paper(confidence: float, weight: float) -> None:
    assert reconcile.weight(confidence) == weight


async def test_a_confidence_asked_for_twice_in_vain_weighs_least(council: Make, question: Question) -> None:
    agents = council(speaker(0, "1 -"), speaker(1, "2 0.7"))
    transcript = await solve(question, agents, "reconcile", {"rounds": 1})
    assert made(agents) == 2 + 2 * 2
    assert transcript.notes == {"weighted_votes": {"1": 0.1, "2": 0.3}}
    assert "agent 1 (confidence not said)" in transcript.turns[-1].messages[-1].content
    assert transcript.failure and "seat 1 in round 0: unreadable answer" in transcript.failure.message


async def test_a_repaired_confidence_keeps_the_first_words(council: Make, question: Question) -> None:
    def forgets(request: Request) -> str:
        if "could not be read" in request.messages[-1].content:
            return "{final answer: 1} {confidence: 0.9}"
        return f"words of seat 0 in round {request.round} {{final answer: 1}}"

    agents = council(forgets, speaker(1, "2 0.7"))
    transcript = await solve(question, agents, "reconcile", {"rounds": 1})
    (reader,) = (turn for turn in transcript.turns if (turn.round, turn.seat) == (1, 1))
    assert (0, 0) in heard(reader) and "agent 1 (confidence 0.90)" in reader.messages[-1].content
    assert (transcript.status, final_seats(transcript)) == ("complete", [0])
    assert transcript.turns[transcript.finals[0]].text.startswith("words of seat 0 in round 1")


async def test_a_seat_that_fails_keeps_its_last_words_and_one_that_always_fails_is_missing(
    council: Make, question: Question
) -> None:
    def late(request: Request) -> str | BackendError:
        return ServerError("500") if request.round else speaker(1, "2 0.9")(request)

    def broken(request: Request) -> BackendError:
        return ServerError("500: out")

    agents = council(speaker(0, "1 0.7"), late, broken)
    transcript = await solve(question, agents, "reconcile", {"rounds": 2})
    assert heard(next(t for t in transcript.turns if (t.round, t.seat) == (2, 0))) == {(0, 1), (1, 0)}
    assert (transcript.status, final_seats(transcript)) == ("degraded", [1])
    agreed = await solve(question, council(speaker(0, "1 1"), broken), "reconcile", {})
    assert len(agreed.turns) == 2, "the others agree without the one that is missing"
    dead = await solve(question, council(broken, broken), "reconcile", {})
    assert (dead.status, len(dead.turns)) == ("failed", 2)


CHOICE = Question("q2", "test", "Which one has a mane?", "choice", ("a goat", "a lion"))


def undecided(request: Request) -> str:
    return "I had rather not say. {confidence: 1}"


async def test_garbage_agrees_with_nobody_and_is_not_voted_for(council: Make) -> None:
    transcript = await solve(CHOICE, council(undecided, speaker(1, "B 0.5")), "reconcile", {"rounds": 1})
    assert (len(transcript.turns), transcript.status, final_seats(transcript)) == (4, "complete", [1])
    assert "Without a readable answer, agent 1" in transcript.turns[-1].messages[-1].content


async def test_alone_it_agrees_with_itself_once_it_answers(council: Make) -> None:
    agents = council(speaker(0, "B 0.2"))
    await solve(CHOICE, agents, "reconcile", {})
    assert made(agents) == 1
    transcript = await solve(CHOICE, council(undecided), "reconcile", {"rounds": 2})
    assert [turn.sample for turn in transcript.turns] == [0, 1, 2], "each time another draw"
    assert decide(CHOICE, transcript).answer is None


def test_settings_name_value_and_range() -> None:
    with pytest.raises(ConfigError, match=r"rounds is -1; .* 0 or more"):
        make_settings("reconcile", {"rounds": -1})
