"""Decisions: your own questions whose answer is one of a closed set of labels, such as BULLISH, BEARISH, NEUTRAL.

Source: your own file, one JSON object a line: `question` (or `text`), `answer` (or `label`, `decision`), and where
wanted `context`, `id`, `metadata`. The labels stand in `labels` of each row; or once, in the first row or in a line of
its own before the rows; or in the task's name, `decisions:BULLISH/BEARISH/NEUTRAL`. Names of columns and labels in
answers may be in upper or lower case. A row's own labels hold for that row only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.errors import UsageError
from pluribus.tasks._files import BadRow, Form, Item, Pair, pairs
from pluribus.tasks._questions import FIELDS, OWN, read

SPLITS = ("all",)
DEFAULT_SPLIT = "all"
SUBSETS: tuple[str, ...] = ()
FAMILY = "market"
HUB = None

_NAMES = {"text": "question", "label": "answer", "decision": "answer"}


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of `data`, in order; `subset` are the labels, with slashes between them."""
    if data is None:
        raise UsageError("task 'decisions' reads your own questions and got no file", hint="pass --data FILE")
    return pairs("decisions", data, FORMS, prepare=_carrier(_labels(subset)), skipped=skipped)


def _labels(subset: str | None) -> list[str] | None:
    """
    >>> _labels("BUY/HOLD/SELL")
    ['BUY', 'HOLD', 'SELL']
    """
    if subset is None:
        return None
    labels = [label.strip() for label in subset.split("/")]
    if len(set(labels)) < 2 or len(set(labels)) < len(labels) or not all(labels):
        raise UsageError(
            f"decisions:{subset} names no set of labels",
            hint="write two or more, as in decisions:BULLISH/BEARISH/NEUTRAL",
        )
    return labels


def _carrier(held: Any) -> Callable[[Mapping[str, Any]], Mapping[str, Any] | None]:
    """Gives every row the labels that were said once; a line of labels alone is no row."""
    first = True

    def carry(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        nonlocal first, held
        own = next((row[name] for name in row if name.casefold() == "labels"), None)
        alone = own is not None and len(row) == 1
        if alone or (first and held is None):
            held = own
        first = False
        if alone:
            return None
        return row if own is not None or not held or "choices" in row else {**row, "labels": held}

    return carry


def _read(row: Mapping[str, Any]) -> Item:
    plain: dict[str, Any] = {"kind": "label"}
    for name, found in row.items():
        column = _NAMES.get(name.casefold(), name.casefold())
        if column not in FIELDS:
            raise BadRow(f"unknown field {name!r}; there are: {', '.join((*FIELDS, *_NAMES))}")
        if column in plain and column != "kind":
            raise BadRow(f"field {name!r} says again what {column!r} says")
        plain[column] = found
    if not plain.get("labels"):
        raise BadRow("there are no labels: give 'labels' in the row or in the first one, or name them in the task")
    return read(plain)


def _fits(row: Mapping[str, Any]) -> bool:
    return "choices" not in row and bool({"question", "text"} & {name.casefold() for name in row})


FORMS = (Form("JSON lines (question, answer, labels)", _fits, _read, repeats=False), OWN)
