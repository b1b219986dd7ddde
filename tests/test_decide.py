from __future__ import annotations

import pytest

from pluribus.decide import RULES, credit, decide
from pluribus.errors import DataError, UnknownName, UsageError
from pluribus.types import Attempt, Completion, Failure, Key, Question, Seat, Status, Transcript, Turn

ASK = Question("q1", "t", "How many?", "number")


def turn(round: int, seat: int, text: str | None, role: str = "answer") -> Turn:
    if text is None:
        return Turn(round, seat, role, (), failure=Failure("timeout", "no reply"))
    return Turn(round, seat, role, (), Completion(text, "m"))


def transcript(
    *turns: Turn, finals: tuple[int, ...], weights: tuple[float, ...], status: Status = "complete"
) -> Transcript:
    seats = tuple(Seat(i, f"agent {i}", "m", weight=weight) for i, weight in enumerate(weights))
    return Transcript(Attempt("a1", "q1", "vote", {}, seats, 0), turns, finals, status)


def council(*texts: str | None, weights: tuple[float, ...] | None = None) -> Transcript:
    turns = tuple(turn(0, seat, text) for seat, text in enumerate(texts))
    finals = tuple(i for i, one in enumerate(turns) if one.ok)
    return transcript(*turns, finals=finals, weights=weights or (1.0,) * len(texts))


def test_the_plurality_of_the_answers_read() -> None:
    decision = decide(ASK, council("The answer is 4", "answer: 4.0", "It is 5", "no idea"))
    assert (decision.attempt_id, decision.rule, decision.tie_rule) == ("a1", "plurality", "first")
    assert (decision.answer, dict(decision.votes), decision.abstained) == ("4", {"4": 2.0, "5": 1.0}, 1)
    assert decision.answers == (("4", "4", "5", None),)


def test_a_failed_seat_is_no_vote_and_no_abstention() -> None:
    decision = decide(ASK, council("4", None))
    assert (dict(decision.votes), decision.abstained, decision.answers) == ({"4": 1.0}, 0, (("4", None),))


def test_answers_stand_until_the_seat_speaks_again() -> None:
    debate = transcript(
        turn(0, 0, "4"), turn(0, 1, "5"), turn(0, 2, None),
        turn(1, 0, "6"), turn(1, 1, None), turn(1, 2, "7"),
        turn(2, 0, "I withdraw"), turn(2, 1, "A critique of 99", "critique"),
        finals=(6, 1, 5), weights=(1.0, 1.0, 1.0), status="degraded",
    )  # fmt: skip
    decision = decide(ASK, debate)
    assert decision.answers == (("4", "5", None), ("6", "5", "7"), (None, "5", "7"))
    assert (dict(decision.votes), decision.abstained) == ({"5": 1.0, "7": 1.0}, 1)


def test_a_final_of_any_role_is_read() -> None:
    closed = transcript(turn(0, 0, "4"), turn(1, 0, "{final answer: 9}", "aggregate"), finals=(1,), weights=(1.0,))
    assert decide(ASK, closed).answer == "9"
    assert decide(ASK, closed).answers == (("4",), ("9",))


def test_weights_come_from_the_seats_unless_given() -> None:
    table = council("4", "5", "5", weights=(3.0, 1.0, 1.0))
    assert decide(ASK, table).answer == "5"
    assert decide(ASK, table, rule="weighted").answer == "4"
    assert decide(ASK, table, rule="weighted", weights=[1, 1, 1]).answer == "5"
    with pytest.raises(UsageError, match="2 weights for 3 seats"):
        decide(ASK, table, rule="weighted", weights=[1, 1])


def test_random_ties_differ_between_questions_and_repeat_with_the_seed() -> None:
    table = council("4", "5")
    asks = [Question(f"q{i}", "t", "?", "number") for i in range(40)]
    first = [decide(ask, table, tie="random", seed=1).answer for ask in asks]
    assert first == [decide(ask, table, tie="random", seed=1).answer for ask in asks]
    assert 8 < first.count("4") < 32


def test_a_failed_transcript_has_nothing_to_decide() -> None:
    with pytest.raises(ValueError, match="a1 failed"):
        decide(ASK, transcript(finals=(), weights=(1.0,), status="failed"))


def test_an_unknown_rule_lists_the_known() -> None:
    with pytest.raises(UnknownName, match="weighted"):
        decide(ASK, council("4"), rule="majority")
    assert set(RULES) >= {"plurality", "weighted"}


@pytest.mark.parametrize(
    ("tie", "key", "expected"),
    [
        ("first", Key("q1", "4"), 1.0),
        ("first", Key("q1", "5"), 0.0),
        ("fractional", Key("q1", "5.0"), 0.5),
        ("fractional", Key("q1", "6"), 0.0),
        ("fractional", Key("q1", "4", aliases=("5",)), 1.0),
        ("first", Key("q1", "7", aliases=("4.00",)), 1.0),
        ("abstain", Key("q1", "4"), 0.0),
        ("first", Key("q1", None), None),
        ("first", None, None),
    ],
)
def test_credit(tie: str, key: Key | None, expected: float | None) -> None:
    assert credit(decide(ASK, council("4", "5"), tie=tie), key, ASK) == expected


def test_no_answer_is_not_right() -> None:
    assert credit(decide(ASK, council("no idea")), Key("q1", "4"), ASK) == 0.0


def test_an_unreadable_key_is_an_error_not_a_wrong_answer() -> None:
    with pytest.raises(DataError, match=r"key of question q1.*'many'"):
        credit(decide(ASK, council("4")), Key("q1", "many"), ASK)
