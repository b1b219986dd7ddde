"""Sheets: measures per question, intervals, paired comparisons, and what each leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus import stats
from pluribus.embedders import open_embedder
from pluribus.errors import ConfigError, UnknownName
from pluribus.evaluate import Usage
from pluribus.evaluating import (
    Answered,
    Sheet,
    adjusted,
    against,
    check_metrics,
    measured,
    similarities,
    totals,
    usual_metrics,
    value,
)
from pluribus.metrics.calibration import brier, expected_calibration_error
from pluribus.types import Key, Question

TAKEN = Usage(2, 10, 5, 0.25)


def asked(i: int, answers: list[str | None], key: str | None = "7", **more: object) -> Answered:
    """A number question; the answers vote, the first of the tied wins."""
    right = [float(answer == "7") for answer in answers]
    votes = [answer for answer in answers if answer is not None]
    decided = max(votes, key=votes.count) if votes else None
    known = key is not None
    row = Answered(
        Question(f"q{i}", "t", f"{i}?", "number"), Key(f"q{i}", key) if key else None, "text", decided,
        float(decided == "7") if known else None, tuple(answers), tuple(right) if known else (None,) * len(answers),
        confidence=votes.count(decided) / len(votes) if decided and len(answers) > 1 else None, usage=TAKEN,
    )  # fmt: skip
    return replace(row, **more)


def failed(i: int) -> Answered:
    question = Question(f"q{i}", "t", f"{i}?", "number")
    return Answered(
        question, Key(question.id, "7"), None, None, None, failed=True, reason="500", usage=Usage(1, None, None, None)
    )


def sheet(*rows: Answered, name: str = "s") -> Sheet:
    return Sheet(name, "model", "here", "t", rows)


ROWS = (
    asked(0, ["7", "7", "1"]),
    asked(1, ["1", "1", "7"]),
    asked(2, [None] * 3),
    asked(3, ["7", "7", "7"]),
    failed(4),
)


def test_a_failure_is_counted_and_never_an_answer_an_abstention_is_not_right() -> None:
    found = measured(sheet(*ROWS), "accuracy")
    assert found == {"q0": 1, "q1": 0, "q2": 0, "q3": 1}
    one = value(sheet(*ROWS), "accuracy", found)
    assert one is not None and (one.n, one.value, one.interval) == (4, 0.5, "wilson")
    assert (one.low, one.high) == stats.wilson(2, 4)
    told = totals(sheet(*ROWS))
    assert (told.n, told.answered, told.failed) == (5, 3, 1)
    assert (told.calls, told.tokens_per_question, told.cost_usd) == (9, 15, 1.0)


def test_samples_are_scored_by_the_estimators() -> None:
    found = {name: measured(sheet(*ROWS), name) for name in ("pass@1", "pass@2", "maj@3", "pass@4")}
    assert found["pass@1"] == pytest.approx({"q0": 2 / 3, "q1": 1 / 3, "q2": 0, "q3": 1})
    assert found["pass@2"] == pytest.approx({"q0": 1, "q1": 2 / 3, "q2": 0, "q3": 1})
    assert found["maj@3"] == {"q0": 1, "q1": 0, "q2": 0, "q3": 1} and found["pass@4"] == {}
    assert value(sheet(*ROWS), "pass@4", {}) is None


def test_without_a_key_nothing_is_scored() -> None:
    unkeyed = sheet(asked(0, ["7"], key=None), asked(1, ["7"], key=None))
    assert all(measured(unkeyed, name) == {} for name in ("accuracy", "pass@1", "exact_match", "rouge1", "brier"))
    assert totals(unkeyed).n == 0


def test_unknown_costs_are_unknown_and_not_0() -> None:
    rows = (asked(0, ["7"]), asked(1, ["7"], usage=Usage(1, None, 5, None)))
    assert (totals(sheet(*rows)).calls, totals(sheet(*rows)).tokens_per_question, totals(sheet(*rows)).cost_usd) == (
        3, None, None,
    )  # fmt: skip
    assert totals(sheet(asked(0, ["7"], usage=None))).calls is None


def test_confidences_are_held_against_the_votes() -> None:
    sure, right = [2 / 3, 2 / 3, 1.0], [1.0, 0.0, 1.0]
    one = value(sheet(*ROWS), "ece", {})
    assert one is not None and one.n == 3 and one.value == pytest.approx(expected_calibration_error(sure, right))
    assert one.low <= one.high
    other = value(sheet(*ROWS), "brier", measured(sheet(*ROWS), "brier"))
    assert other is not None and other.value == pytest.approx(brier(sure, right))
    withheld = asked(0, ["7", "7", "1"], answer=None, credit=0.0, confidence=0.4, vote_credit=1.0)
    assert measured(sheet(withheld), "brier") == pytest.approx({"q0": 0.36}), "the vote is held against it"
    assert measured(sheet(withheld), "accuracy") == {"q0": 0}


def test_free_text_is_measured_by_the_answer_within_the_reply() -> None:
    question = Question("w", "t", "Who?", "text")
    reply = "Keats came later. {final answer: Lord Byron}"
    row = Answered(
        question, Key("w", "George Gordon Byron", ("Lord Byron",)), reply, "lord byron", 1.0, ("lord byron",), (1.0,)
    )
    assert measured(sheet(row), "exact_match") == measured(sheet(row), "rouge2") == {"w": 1}
    silent = replace(row, text="", answer=None, credit=0.0)
    assert measured(sheet(silent), "token_f1") == {"w": 0}
    assert usual_metrics([sheet(row)])[0] == "exact_match" and usual_metrics([sheet(*ROWS)])[:2] == (
        "accuracy",
        "pass@k",
    )
    assert usual_metrics([sheet(asked(0, ["7"]))]) == ("accuracy",)


def test_bertscore_takes_any_embedder() -> None:
    question = Question("w", "t", "Who?", "text")
    key = Key("w", "the quick fox jumps")
    rows = [
        Answered(replace(question, id=f"w{i}"), key, text, text, 0.0, (text,), (0.0,))
        for i, text in enumerate(["the quick fox jumps", "the quick dog", "", "nothing alike"])
    ]
    for idf in (False, True):
        found = measured(sheet(*rows), "bertscore", similarity=similarities(open_embedder("hashing"), idf=idf))
        assert found["w0"] == pytest.approx(1 if not idf else 0, abs=1e-6), (
            "one reference: every word is in all of them"
        )
        assert 1 >= found["w0"] >= found["w1"] >= found["w3"] >= found["w2"] == 0
    with pytest.raises(ConfigError, match="--embedder"):
        measured(sheet(*rows), "bertscore")


right = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25)


@settings(max_examples=40, deadline=None)
@given(right)
def test_a_comparison_is_that_of_stats_on_the_shared_questions(pairs: list[tuple[bool, bool]]) -> None:
    ours = sheet(*(asked(i, ["7" if a else "1"]) for i, (a, _) in enumerate(pairs)), asked(90, ["7"]), name="a")
    theirs = sheet(failed(91), *(asked(i, ["7" if b else "1"]) for i, (_, b) in enumerate(pairs)), name="b")
    one = against(ours, theirs, "accuracy", measured(ours, "accuracy"), measured(theirs, "accuracy"))
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    test, gap = stats.mcnemar(first, second), stats.paired_difference(first, second)
    assert one is not None
    assert (one.n, one.p, one.only_subject, one.only_baseline) == (
        len(pairs),
        test.p,
        test.only_first,
        test.only_second,
    )
    assert (one.difference, one.low, one.high) == (gap.value, gap.low, gap.high)
    back = against(theirs, ours, "accuracy", measured(theirs, "accuracy"), measured(ours, "accuracy"))
    assert back is not None and (back.difference, back.p) == pytest.approx((-one.difference, one.p))


def test_a_tie_that_shares_its_credit_counts_for_the_answer_shown() -> None:
    tied = asked(0, ["7", "1"], credit=0.5)
    wrong = asked(0, ["1"])
    one = against(sheet(tied), sheet(wrong), "accuracy", {"q0": 0.5}, {"q0": 0.0})
    assert one is not None and one.difference == 0.5 and one.only_subject == 1


def test_other_measures_are_compared_by_the_bootstrap_and_holm_is_by_metric() -> None:
    rng = np.random.default_rng(0)
    found = []
    for metric in ("pass@1", "brier"):
        for _ in range(2):
            ours, theirs = ({f"q{i}": float(x) for i, x in enumerate(rng.random(20))} for _ in range(2))
            one = against(sheet(name="a"), sheet(name="b"), metric, ours, theirs)
            assert one is not None and one.test == "bootstrap" and one.only_subject is None
            assert one.low <= one.difference <= one.high
            found.append(one)
    held = [one.p_adjusted for one in adjusted(found)]
    assert held == [*stats.holm([one.p for one in found[:2]]), *stats.holm([one.p for one in found[2:]])]
    assert against(sheet(), sheet(), "pass@1", {"q0": 1.0}, {"q1": 1.0}) is None


def test_names_of_metrics() -> None:
    assert check_metrics(["em", "exact_match", "pass@3", "maj@k"]) == ("exact_match", "pass@3", "maj@k")
    for name in ("pass@0", "pass@", "rouge9x", "bleu"):
        with pytest.raises(UnknownName, match="accuracy, bertscore"):
            check_metrics([name])
