from __future__ import annotations

import pytest

from pluribus.consensus.confidence import Calibration
from pluribus.decide import RULES, Calibrated, credit, decide, leading, voters
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


def test_where_only_seats_without_weight_are_left_nobody_has_a_vote() -> None:
    decision = decide(ASK, council("4", None, "no idea", weights=(0.0, 2.0, 0.0)), rule="weighted")
    assert (decision.answer, dict(decision.votes), decision.abstained) == (None, {}, 1)


# --- confidence ------------------------------------------------------------------------------------------------------

CHANCE = Calibration("isotonic", ((0.0, 0.1), (1.0, 0.9)))


@pytest.mark.parametrize(
    ("texts", "weights", "rule", "expected"),
    [
        (("4", "4", "5", "6"), None, "plurality", 0.5),
        (("4", "4", "no idea", "I pass"), None, "plurality", 0.5),
        (("4", "4", None, None), None, "plurality", 0.5),
        (("4", "5", "5"), (3.0, 1.0, 1.0), "weighted", 0.1 + 0.8 * 3 / 5),
        (("4", None), (1.0, 3.0), "weighted", 0.1 + 0.8 / 4),
    ],
)
def test_confidence_counts_who_is_silent_and_who_failed(
    texts: tuple[str | None, ...], weights: tuple[float, ...] | None, rule: str, expected: float
) -> None:
    decision = decide(ASK, council(*texts, weights=weights), rule=rule, calibrated=Calibrated(CHANCE, mark="1a"))
    assert decision.answer == "4" and decision.confidence == pytest.approx(expected)
    assert decision.rule == f"{rule}@1a"


def test_too_low_a_confidence_withholds_the_answer_and_keeps_the_votes() -> None:
    table = council("4", "4", "5", "6")
    least = [decide(ASK, table, calibrated=Calibrated(CHANCE, below)) for below in (None, 0.5, 0.51)]
    assert [(one.answer, one.confidence) for one in least] == [("4", 0.5), ("4", 0.5), (None, 0.5)]
    assert dict(least[2].votes) == {"4": 2.0, "5": 1.0, "6": 1.0}
    assert [leading(one) for one in least] == ["4", "4", "4"]
    assert credit(least[2], Key("q1", "4"), ASK) == 0.0


def test_a_withheld_tie_gets_no_part_of_the_credit() -> None:
    tied = decide(ASK, council("4", "5"), tie="fractional", calibrated=Calibrated(CHANCE, 0.9))
    assert (tied.answer, tied.tie, leading(tied)) == (None, ("4", "5"), "4")
    assert credit(tied, Key("q1", "4"), ASK) == 0.0


def test_without_a_vote_there_is_no_confidence() -> None:
    for table, tie in ((council("no idea"), "first"), (council("4", "5"), "abstain")):
        decision = decide(ASK, table, tie=tie, calibrated=Calibrated(CHANCE, 0.0))
        assert (decision.answer, decision.confidence, leading(decision)) == (None, None, None)


def test_a_seat_that_was_not_asked_has_no_vote_and_one_that_failed_has() -> None:
    assert voters(council("4", None, "5")) == ((0, 0), (2, 2), (1, None))
    stopped = transcript(turn(0, 0, "4"), turn(0, 1, "4"), finals=(0, 1), weights=(1.0,) * 5)
    assert voters(stopped) == ((0, 0), (1, 1))
    assert decide(ASK, stopped, calibrated=Calibrated(CHANCE)).confidence == pytest.approx(0.9)


def test_who_answers_without_a_vote_leaves_none_to_who_failed() -> None:
    """A hub decides: the others' answers, and their failures, are no votes."""
    hub = transcript(turn(0, 0, "4"), turn(0, 1, "5"), turn(0, 2, None), finals=(0,), weights=(1.0,) * 3)
    assert voters(hub) == ((0, 0),)


def test_a_seat_that_speaks_again_is_one_voter() -> None:
    debate = transcript(
        turn(0, 0, "4"), turn(0, 1, None), turn(1, 0, None), turn(1, 1, "5"), finals=(0, 3), weights=(1.0,) * 2
    )
    assert voters(debate) == ((0, 0), (1, 3))


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
