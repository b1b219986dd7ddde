from __future__ import annotations

from typing import Any

import pytest

from pluribus.errors import DataError, UsageError
from pluribus.tasks import load_task

LABELS = ["BULLISH", "BEARISH", "NEUTRAL"]


def row(n: int, answer: Any = "bullish", **more: Any) -> dict[str, Any]:
    return {"question": f"What of share {n}?", "answer": answer, **more}


def keys(path: Any, task: str = "decisions") -> list[str | None]:
    return [key.answer if key else None for _, key in load_task(task, data=path).pairs]


def test_labels_in_every_row(one: Any) -> None:
    question, key = one("decisions", row(1, "Bearish", labels=LABELS, context="Prices fell.", id="d1"))
    assert (question.id, question.kind, question.labels) == ("d1", "label", tuple(LABELS))
    assert (question.context, key.answer) == ("Prices fell.", "BEARISH")


def test_labels_once_in_the_first_row(write: Any) -> None:
    path = write(row(1, labels=LABELS), row(2, "neutral"), row(3, "BEARISH"))
    assert keys(path) == ["BULLISH", "NEUTRAL", "BEARISH"]
    assert {question.labels for question, _ in load_task("decisions", data=path).pairs} == {tuple(LABELS)}


def test_labels_once_in_a_line_of_their_own(write: Any) -> None:
    assert keys(write({"Labels": LABELS}, row(1), row(2, None))) == ["BULLISH", None]


def test_labels_in_the_tasks_name(write: Any) -> None:
    loaded = load_task("decisions:BULLISH/BEARISH/NEUTRAL", data=write(row(1), row(2, "Neutral")))
    assert (loaded.task, loaded.family) == ("decisions:BULLISH/BEARISH/NEUTRAL", "market")
    assert [key.answer for _, key in loaded.pairs if key] == ["BULLISH", "NEUTRAL"]


def test_a_rows_own_labels_hold_for_that_row_only(write: Any) -> None:
    path = write({"labels": LABELS}, row(1, "buy", labels=["BUY", "SELL"]), row(2))
    assert keys(path) == ["BUY", "BULLISH"]


@pytest.mark.parametrize("column", ["label", "Label", "LABEL", "Decision", "Answer"])
def test_columns_in_upper_or_lower_case_under_their_usual_names(one: Any, column: str) -> None:
    question, key = one("decisions", {"Text": "Prices fell.", column: "bearish", "labels": LABELS})
    assert (question.text, key.answer) == ("Prices fell.", "BEARISH")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (row(2, "MIXED"), 'must be one of the labels BULLISH, BEARISH, NEUTRAL, found "MIXED"'),
        (row(2, labels=["one"]), "'labels' needs two or more different entries"),
        (row(2, ticker="ABC"), "unknown field 'ticker'; there are: id, question"),
        (row(2, label="bearish"), "field 'label' says again what 'answer' says"),
        (row(2, kind="number"), "kind 'number' does not go with 'labels'"),
        (row(2, choices=["a", "b"]), "'choices' or 'labels', not both"),
        ({"answer": "bullish"}, "no field 'question'"),
        (row(1), "the same question without an id stands already"),
    ],
)
def test_a_broken_row_is_named(refused: Any, bad: dict[str, Any], why: str) -> None:
    assert why in refused("decisions", row(1, labels=LABELS), {"labels": LABELS, **bad})


def test_no_labels_anywhere_is_an_error(write: Any) -> None:
    with pytest.raises(
        DataError, match=r"data\.jsonl:1: there are no labels: give 'labels' in the row or in the first"
    ):
        keys(write(row(1)))


@pytest.mark.parametrize("subset", ["BUY", "BUY/BUY", "BUY//SELL"])
def test_a_name_without_a_set_of_labels_is_an_error(write: Any, subset: str) -> None:
    with pytest.raises(UsageError, match="names no set of labels; write two or more"):
        load_task(f"decisions:{subset}", data=write(row(1)))


def test_it_needs_a_file() -> None:
    with pytest.raises(UsageError, match="reads your own questions and got no file; pass --data FILE"):
        load_task("decisions")
