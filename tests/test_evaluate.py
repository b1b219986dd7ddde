"""Rows summed up: what stopping saved, and how true confidences are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pluribus.evaluate import Row, Stop, Usage, stopped_short, stopping, sureness


def row(
    credit: float | None, *, stop: Stop | None = None, confidence: float | None = None, answer: str | None = "4"
) -> Row:
    withheld = answer is None and credit is not None
    return Row(
        "q", "a", "complete", answer, "4", 0.0 if withheld else credit, 1.0, 1.0, (), (), Usage(1, 1, 1, 0.0), None,
        confidence=confidence, vote_credit=credit, stopping=stop,
    )  # fmt: skip


def stop(asked: int, of: int = 10, *, shadow: bool = True, changed: bool = False, credit: float | None = 1.0) -> Stop:
    return Stop("beta", asked, of, "4", shadow, changed, credit)


def test_what_stopping_saved_is_a_share_of_all_calls() -> None:
    told = stopping([row(1.0, stop=stop(2, shadow=False)), row(1.0, stop=stop(20, 30, shadow=False)), row(None)])
    assert told is not None and (told.n, told.asked, told.of) == (2, 22, 40)
    assert told.saved.value == pytest.approx(18 / 40)
    assert (told.saved.low, told.saved.high) == pytest.approx((10 / 30, 8 / 10))
    assert (told.changed, told.accuracy, told.full, told.difference) == (None, None, None, None)


def test_shadow_holds_the_stop_against_the_full_vote() -> None:
    rows = [row(1.0, stop=stop(2)) for _ in range(18)]
    rows += [row(1.0, stop=stop(2, changed=True, credit=0.0)), row(0.0, stop=stop(9, changed=True, credit=0.0))]
    told = stopping(rows)
    assert told is not None and told.difference is not None
    assert (told.changed, told.accuracy, told.full) == (2, 18 / 20, 19 / 20)
    assert told.difference.value == pytest.approx(-1 / 20)
    assert told.difference.low < -1 / 20 < told.difference.high


def test_shadow_without_keys_counts_the_changes_alone() -> None:
    told = stopping([row(None, stop=stop(2, changed=True, credit=None))])
    assert told is not None and (told.changed, told.accuracy, told.difference) == (1, None, None)


def test_where_nothing_could_stop_there_is_nothing_to_say() -> None:
    assert stopping([]) is None and stopping([row(1.0), row(None)]) is None
    assert sureness([]) is None and sureness([row(1.0), row(None, confidence=0.5)]) is None


def test_a_seat_without_an_answer_is_one_not_asked_only_where_the_vote_stopped() -> None:
    silent = replace(row(1.0), seats=(None,))
    assert not stopped_short(silent)
    assert not stopped_short(replace(silent, stopping=stop(1)))
    assert stopped_short(replace(silent, stopping=stop(1, shadow=False)))


def test_confidences_are_held_against_all_votes_and_against_those_answered() -> None:
    sure = [row(1.0, confidence=0.9) for _ in range(9)] + [row(0.0, confidence=0.9)]
    unsure = [row(1.0, confidence=0.3, answer=None)] * 2 + [row(0.0, confidence=0.3, answer=None)] * 8
    told = sureness(sure + unsure)
    assert told is not None and (told.n, told.answered) == (20, 10)
    assert (told.accuracy, told.answered_accuracy) == (11 / 20, 0.9)
    assert told.mean == pytest.approx(0.6) and told.calibration_error == pytest.approx(0.05)
    nothing = sureness(unsure)
    assert nothing is not None and (nothing.answered, nothing.answered_accuracy, nothing.answered_interval) == (
        0, None, None,
    )  # fmt: skip
