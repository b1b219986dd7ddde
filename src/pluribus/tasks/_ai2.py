"""The two forms of the Allen Institute's option questions, in which ARC, CommonsenseQA and OpenBookQA are published.

The authors' JSONL has `question: {stem, choices: [{text, label}]}`; the hub's rows have the question's text in a field
of its own and `choices: {text: […], label: […]}`. Both have `id` and `answerKey`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, letter, shown, table, tables, text, texts


def nested(name: str, *, withheld: bool = False) -> Form:
    """The authors' JSONL; `withheld`: the answers of one split are not published."""
    return Form(name, lambda row: isinstance(row.get("question"), dict), lambda row: _read_nested(row, withheld))


def rows(name: str, stem: str = "question", *, withheld: bool = False) -> Form:
    """The hub's rows, with the question's text in the field `stem`."""

    def fits(row: Mapping[str, Any]) -> bool:
        return stem in row and isinstance(row.get("choices"), dict)

    return Form(name, fits, lambda row: _read_row(row, stem, withheld))


def _read_nested(row: Mapping[str, Any], withheld: bool) -> Item:
    question = table(row, "question")
    options = tables(question, "choices")
    choices = tuple(text(option, "text") for option in options)
    labels = tuple(text(option, "label") for option in options)
    return _item(row, text(question, "stem"), choices, labels, withheld)


def _read_row(row: Mapping[str, Any], stem: str, withheld: bool) -> Item:
    options = table(row, "choices")
    return _item(row, text(row, stem), texts(options, "text"), texts(options, "label"), withheld)


def _item(row: Mapping[str, Any], stem: str, choices: tuple[str, ...], labels: tuple[str, ...], withheld: bool) -> Item:
    """Some questions label their options 1 to 4: the key is the letter of the place."""
    if len(labels) != len(choices):
        raise BadRow(f"there are {len(choices)} options, but {len(labels)} labels: {shown(list(labels))}")
    if withheld and row.get("answerKey") in ("", None):
        return Item(stem, "choice", None, choices, id=text(row, "id"))
    key = text(row, "answerKey")
    if key not in labels:
        raise BadRow(f"field 'answerKey' must be one of the labels {', '.join(labels)}, found {key!r}")
    return Item(stem, "choice", letter(labels.index(key), choices), choices, id=text(row, "id"))
