"""Trace-level: the layers, who reads and rates whom, who drops out, when it stops, and what each agent was worth."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.codec import decode, encode
from pluribus.errors import BackendError, ServerError, UsageError
from pluribus.methods import dylan
from pluribus.methods.dylan import Node, importance, optimise_team
from pluribus.solve import make_settings, solve
from pluribus.types import Attempt, Question, Transcript, Turn

Make = Callable[..., list[Agent]]
Speaker = Callable[[Request], str | BackendError]

WHETHER = Question("q2", "test", "Is every square a rectangle?", "boolean")


def shown(text: str) -> list[int]:
    """The seats whose words stand in a prompt, in the order in which they stand."""
    return [int(seat) for seat in re.findall(r"words of seat (\d+) in", text)]


def rated(request: Request, rate: Callable[[int], float]) -> str:
    seats = shown(request.messages[0].content)
    return f"{{ratings: {', '.join(str(rate(seat)) for seat in seats)}}}" if seats else ""


def speaker(seat: int, answer: int | None = None, rate: Callable[[int], float] = lambda seat: 3) -> Speaker:
    """Says a text that names seat and round, rates by seat, ranks the later seats higher."""
    said = seat if answer is None else answer

    def reply(request: Request) -> str:
        if request.schema is not None:
            seats = shown(request.messages[0].content)
            order = sorted(range(len(seats)), key=lambda place: -seats[place])
            return f"{{ranking: {', '.join(str(place + 1) for place in order)}}}"
        words = f"words of seat {seat} in round {request.round} {{final answer: {said}}}"
        return f"{words}\n{rated(request, rate)}"

    return reply


def broken(request: Request) -> str | BackendError:
    return ServerError("500: out of order")


async def run(question: Question, agents: list[Agent], seed: int = 0, **settings: Any) -> Transcript:
    return await solve(question, agents, "dylan", settings, seed=seed)


def trace(transcript: Transcript) -> list[tuple[int, int, str]]:
    return [(turn.round, turn.seat, turn.role) for turn in transcript.turns]


def finals(transcript: Transcript) -> list[tuple[int, int]]:
    return [(transcript.turns[i].round, transcript.turns[i].seat) for i in transcript.finals]


def text(turn: Turn) -> str:
    return "".join(message.content for message in turn.messages)


@pytest.mark.parametrize(
    ("n", "settings", "most"),
    [
        (4, {}, 2 * 4 + 1 + 2),
        (5, {"num_rounds": 5, "keep": 3}, 2 * 5 + 3 * (1 + 3)),
        (4, {"num_rounds": 4, "activation": "none"}, 16),
        (2, {"num_rounds": 3}, 6),
        (3, {"num_rounds": 1}, 3),
        (50, {"num_rounds": 3}, 100 + 3),
    ],
)
async def test_calls_are_what_was_forecast(
    council: Make, question: Question, n: int, settings: dict[str, Any], most: int
) -> None:
    transcript = await run(question, council(*(speaker(seat) for seat in range(n))), **settings)
    assert len(transcript.turns) == most
    assert dylan.calls(make_settings("dylan", settings), n) == (n, most)
    assert transcript.status == "complete"


async def test_a_layer_reads_the_layer_before_and_only_the_best_go_on(council: Make, question: Question) -> None:
    transcript = await run(question, council(*(speaker(seat) for seat in range(4))), num_rounds=4)
    by_round = {r: [t for t in transcript.turns if t.round == r] for r in range(4)}
    assert [(t.seat, t.role) for t in by_round[0]] == [(seat, "answer") for seat in range(4)]
    assert all(sorted(shown(text(t))) == [0, 1, 2, 3] for t in by_round[1])
    assert all("in round 0 " in text(t) for t in by_round[1])
    ranker, *kept = by_round[2]
    assert (ranker.role, sorted(shown(text(ranker)))) == ("ranking", [0, 1, 2, 3])
    assert [t.seat for t in kept] == [2, 3], "the two that the ranker put first"
    assert all("in round 1 " in text(t) and sorted(shown(text(t))) == [0, 1, 2, 3] for t in kept)
    assert [t.seat for t in by_round[3] if t.role == "answer"] == [2, 3]
    assert all(sorted(shown(text(t))) == [2, 3] for t in by_round[3] if t.role == "answer")
    assert by_round[3][0].seat == (ranker.seat + 1) % 4, "another seat ranks in the next layer"
    assert finals(transcript) == [(3, 2), (3, 3)]
    assert all(question.text in text(t) for t in transcript.turns)


async def test_a_seat_that_dropped_out_stands_and_can_be_chosen_again(council: Make, question: Question) -> None:
    def fickle(seat: int) -> Speaker:
        def reply(request: Request) -> str | BackendError:
            if request.schema is None or request.round == 2:
                return speaker(seat)(request)
            seats = shown(request.messages[0].content)
            order = sorted(range(len(seats)), key=lambda place: seats[place])
            return f"{{ranking: {', '.join(str(place + 1) for place in order)}}}"

        return reply

    transcript = await run(question, council(*(fickle(seat) for seat in range(4))), num_rounds=4)
    ranked_last = next(t for t in transcript.turns if (t.round, t.role) == (3, "ranking"))
    assert sorted(shown(text(ranked_last))) == [0, 1, 2, 3]
    assert finals(transcript) == [(3, 0), (3, 1)]


async def test_readers_and_rankers_see_the_answers_in_orders_of_their_own(council: Make, question: Question) -> None:
    agents = council(*(speaker(seat) for seat in range(8)))
    transcript = await run(question, agents, num_rounds=3)
    orders = {tuple(shown(text(t))) for t in transcript.turns if t.round == 1}
    again = await run(question, council(*(speaker(seat) for seat in range(8))), num_rounds=3)
    other = await run(question, council(*(speaker(seat) for seat in range(8))), seed=1, num_rounds=3)
    assert len(orders) > 4
    assert [t.messages for t in again.turns] == [t.messages for t in transcript.turns]
    assert [t.messages for t in other.turns] != [t.messages for t in transcript.turns]


@pytest.mark.parametrize(
    ("answers", "consensus", "layers"),
    [([7, 7, 7, 1], 2 / 3, 1), ([7, 7, 1], 2 / 3, 3), ([7, 7, 1], 0.6, 1), ([7, 7, 7], 1.0, 3)],
)
async def test_stops_when_more_than_the_part_agrees(
    council: Make, question: Question, answers: list[int], consensus: float, layers: int
) -> None:
    agents = council(*(speaker(seat, answer) for seat, answer in enumerate(answers)))
    transcript = await run(question, agents, consensus=consensus)
    assert max(turn.round for turn in transcript.turns) + 1 == layers


async def test_agreement_is_equality_of_answers_not_of_texts(council: Make, question: Question) -> None:
    says = ["{final answer: 19}", "It is nineteen apples. {final answer: 19.0}", "{final answer: +19}"]
    agents = council(*[lambda request, said=said: said for said in says])
    assert len((await run(question, agents)).turns) == 3


async def test_silence_is_no_agreement(council: Make) -> None:
    agents = council(*[lambda request: "I do not know. {ratings: 3, 3, 3}"] * 3)
    transcript = await run(WHETHER, agents, activation="none")
    assert max(turn.round for turn in transcript.turns) == 2


async def test_importance_of_a_run_by_hand(council: Make, question: Question) -> None:
    """Two layers, three agents; every answer differs, so the first answer decides the tie: seat 0's.

    I_2 = (1, 0, 0). Seat 0 rated the seats 5, 3, 2: I_1 = (0.5, 0.3, 0.2).
    """
    rates = {0: 5, 1: 3, 2: 2}
    agents = council(speaker(0, rate=lambda seat: rates[seat]), speaker(1), speaker(2))
    transcript = await run(question, agents, num_rounds=2)
    assert transcript.notes["importance"] == pytest.approx([1.5, 0.3, 0.2])
    assert decode(Transcript, encode(transcript)) == transcript


def test_importance_of_a_network_of_three_layers_by_hand() -> None:
    """Layer 3: seats 1 and 2 gave the answer: 1/2 each; seat 0 did not: 0.

    Layer 2: I(0) = ½·4/8 + ½·0/4 = 1/4; I(1) = ½·2/8 + ½·3/4 = 1/2; I(2) = ½·2/8 + ½·1/4 = 1/4.
    Layer 1: I(0) = ¼·1/4 + ½·1/3 + ¼·2/4 = 17/48; I(1) = ¼·1/4 + ½·1/3 + ¼·1/4 = 7/24;
             I(2) = ¼·2/4 + ½·1/3 + ¼·1/4 = 17/48 (seat 1 gave no ratings: even).
    Sums: 0: 1/4 + 17/48 = 29/48; 1: 1/2 + 1/2 + 7/24 = 31/24; 2: 1/2 + 1/4 + 17/48 = 53/48.
    """
    first = [Node(0, "a"), Node(1, "b"), Node(2, "c")]
    second = [
        Node(0, "a", {0: 1, 1: 1, 2: 2}),
        Node(1, "b"),
        Node(2, "b", {0: 2, 1: 1, 2: 1}),
    ]
    third = [
        Node(0, "a", {0: 5, 1: 5, 2: 5}),
        Node(1, "b", {0: 4, 1: 2, 2: 2}),
        Node(2, "b", {0: 0, 1: 3, 2: 1}),
    ]
    parts = importance([first, second, third], "b", 3)
    assert parts == pytest.approx((29 / 48, 31 / 24, 53 / 48))
    assert sum(parts) == pytest.approx(3)


def test_importance_without_a_decided_answer_begins_evenly() -> None:
    assert importance([[Node(0, None), Node(2, None)]], None, 3) == (0.5, 0.0, 0.5)


async def test_unreadable_ratings_are_asked_again_and_the_answer_stays(council: Make, question: Question) -> None:
    def forgetful(request: Request) -> str:
        if len(request.messages) > 1:
            return "{ratings: 1, 4}"
        return "words of seat 1 in round 9 {final answer: 8}"

    transcript = await run(question, council(speaker(0, rate=lambda _: 2), forgetful), num_rounds=2)
    assert trace(transcript) == [
        (0, 0, "answer"), (0, 1, "answer"), (1, 0, "answer"), (1, 1, "answer"), (1, 1, "ratings"),
    ]  # fmt: skip
    assert (transcript.status, finals(transcript)) == ("complete", [(1, 0), (1, 1)])
    assert transcript.turns[transcript.finals[1]].text.endswith("{final answer: 8}")


async def test_ratings_that_stay_unreadable_degrade_and_pass_evenly(council: Make, question: Question) -> None:
    agents = council(lambda request: "words of seat 0 in round 9 {final answer: 5}", speaker(1), speaker(2))
    transcript = await run(question, agents, num_rounds=2)
    assert transcript.status == "degraded"
    assert transcript.failure
    assert transcript.failure.message.startswith("seat 1 in round 1: unreadable ratings: it does not say ratings")
    assert "seat 2" not in transcript.failure.message
    assert transcript.notes["importance"] == pytest.approx([4 / 3, 1 / 3, 1 / 3])


async def test_a_seat_that_always_fails_is_no_node(council: Make, question: Question) -> None:
    transcript = await run(question, council(speaker(0), broken, speaker(2), speaker(3)))
    assert transcript.status == "degraded"
    assert transcript.notes["importance"][1] == 0
    assert all(1 not in shown(text(turn)) for turn in transcript.turns)
    assert [seat for _, seat in finals(transcript)] == [2, 3]


async def test_a_ranker_that_fails_or_babbles_is_followed_by_the_next_seat(council: Make, question: Question) -> None:
    def no_ranker(seat: int, instead: str | BackendError) -> Speaker:
        return lambda request: speaker(seat)(request) if request.schema is None else instead

    whole = await run(question, council(*(speaker(seat) for seat in range(4))))
    first = next(t.seat for t in whole.turns if t.role == "ranking")
    for instead, tries in ((ServerError("500"), 1), ("All are fine.", 2)):
        agents = council(*(no_ranker(s, instead) if s == first else speaker(s) for s in range(4)))
        transcript = await run(question, agents)
        assert [t.seat for t in transcript.turns if t.role == "ranking"] == [first] * tries + [(first + 1) % 4]
        assert (transcript.status, finals(transcript)) == ("degraded", finals(whole))


async def test_without_any_ranker_the_answers_that_most_gave_go_on(council: Make, question: Question) -> None:
    def no_ranker(seat: int, answer: int) -> Speaker:
        return lambda request: speaker(seat, answer)(request) if request.schema is None else ServerError("500")

    agents = council(*(no_ranker(seat, answer) for seat, answer in enumerate([1, 7, 2, 7])))
    transcript = await run(question, agents)
    assert sum(turn.role == "ranking" for turn in transcript.turns) == 4
    assert finals(transcript) == [(2, 1), (2, 3)]


async def test_a_layer_that_fails_whole_ends_with_the_layer_before(council: Make, question: Question) -> None:
    def once(seat: int) -> Speaker:
        return lambda request: ServerError("500") if request.round else speaker(seat)(request)

    transcript = await run(question, council(*(once(seat) for seat in range(3))))
    assert (transcript.status, finals(transcript)) == ("degraded", [(0, 0), (0, 1), (0, 2)])
    assert sum(transcript.notes["importance"]) == pytest.approx(1)


async def test_all_failing_is_a_failed_transcript(council: Make, question: Question) -> None:
    transcript = await run(question, council(*[broken] * 3))
    assert (transcript.status, len(transcript.turns)) == ("failed", 3)


async def test_an_agent_alone(council: Make, question: Question) -> None:
    sure = await run(question, council(speaker(0)))
    silent = await run(WHETHER, council(lambda request: "Who knows? {ratings: 3}"))
    assert (len(sure.turns), sure.notes["importance"]) == (1, [1.0])
    assert (len(silent.turns), silent.notes["importance"]) == (3, [3.0])


async def test_garbage_is_heard_and_outvoted(council: Make, question: Question) -> None:
    agents = council(lambda request: "~~~ {{{ ranking: ]", *(speaker(seat, 7) for seat in (1, 2, 3)))
    transcript = await run(question, agents)
    assert len(transcript.turns) == 4, "three of four agree: more than two thirds"
    assert transcript.notes["importance"][0] == 0


# --- the team --------------------------------------------------------------------------------------------------------


def rated_transcript(*parts: float) -> Transcript:
    notes = {"importance": list(parts)} if parts else {}
    return Transcript(Attempt("a", "q", "dylan", {}, (), 0), (), (), "complete", notes=notes)


def test_the_team_is_who_was_most_important_on_average() -> None:
    transcripts = [rated_transcript(1.0, 0.2, 1.8), rated_transcript(), rated_transcript(0.4, 1.4, 1.2)]
    assert optimise_team(transcripts, 2) == (2, 1)
    assert optimise_team([rated_transcript(1.0, 1.0, 1.0)], 2) == (0, 1)


@pytest.mark.parametrize("keep", [0, 4])
def test_a_team_that_can_not_be(keep: int) -> None:
    with pytest.raises(UsageError, match=f"keep is {keep} of 3 seats; keep from 1 to 3"):
        optimise_team([rated_transcript(1.0, 1.0, 1.0)], keep)


def test_a_team_without_ratings() -> None:
    with pytest.raises(UsageError, match=r"none of 1 transcripts .* --method dylan"):
        optimise_team([rated_transcript()], 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"num_rounds": 0}, "num_rounds is 0"), ({"keep": 0}, "keep is 0"), ({"consensus": 1.5}, "consensus is 1.5")],
)
def test_settings_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_settings("dylan", settings)
