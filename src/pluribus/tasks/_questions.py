"""The project's own form of questions: one JSON object a line, the form for anybody's own data.

`question`; optional `id`, `answer`, `choices`, `labels`, `kind`, `context`, `metadata`, and for programs `tests`:
Python that runs behind them (`entry_point` in the metadata names their function). Every task reads it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pluribus.tasks._files import LETTERS, BadRow, Form, Item, has, shown, text
from pluribus.types import KINDS, Kind

FIELDS = ("id", "question", "answer", "choices", "labels", "kind", "context", "metadata", "tests")

_NUMBER = re.compile(r"[-+−]?[$€£]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?%?")
_YES = frozenset({"true", "yes"})
_NO = frozenset({"false", "no"})


def read(row: Mapping[str, Any]) -> Item:
    """One line as an item; BadRow names the field, what was found and what was expected."""
    unknown = [name for name in row if name not in FIELDS]
    if unknown:
        raise BadRow(f"unknown field {unknown[0]!r}; there are: {', '.join(FIELDS)}")
    choices, labels = _options(row, "choices"), _options(row, "labels")
    kind = _kind(row, choices, labels)
    return Item(
        text=text(row, "question"),
        kind=kind,
        answer=_answer(row.get("answer"), kind, choices, labels),
        choices=choices,
        labels=labels,
        context=text(row, "context") if row.get("context") else None,
        metadata=_metadata(row.get("metadata")),
        id=_given_id(row.get("id")),
        tests=_tests(row.get("tests"), kind),
    )


def _options(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = row.get(name)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(_is_word(item) for item in found):
        raise BadRow(f"field {name!r} must be a list of texts, found {shown(found)}")
    options = tuple(str(item).strip() for item in found)
    if len(set(options)) < 2:
        raise BadRow(f"field {name!r} needs two or more different entries, found {shown(found)}")
    if name == "choices" and len(options) > len(LETTERS):
        raise BadRow(f"field 'choices' has {len(options)} entries, but there are {len(LETTERS)} letters")
    return options


def _is_word(found: Any) -> bool:
    return not isinstance(found, bool) and isinstance(found, str | int | float) and bool(str(found).strip())


def _kind(row: Mapping[str, Any], choices: tuple[str, ...], labels: tuple[str, ...]) -> Kind:
    """The kind as given, else by what is there."""
    if choices and labels:
        raise BadRow("a question has 'choices' or 'labels', not both")
    kind = row.get("kind")
    if kind is None and row.get("tests"):
        return "program"
    if kind is None:
        return "choice" if choices else "label" if labels else _kind_of(row.get("answer"))
    if kind not in KINDS:
        raise BadRow(f"unknown kind {shown(kind)}; there are: {', '.join(KINDS)}")
    for needing, name, options in (("choice", "choices", choices), ("label", "labels", labels)):
        if (kind == needing) != bool(options):
            raise BadRow(f"kind {kind!r} {'has no' if kind == needing else 'does not go with'} {name!r}")
    found: Kind = kind
    return found


def _kind_of(answer: Any) -> Kind:
    if isinstance(answer, bool):
        return "boolean"
    return "number" if answer is not None and _is_number(str(answer)) else "text"


def _is_number(answer: str) -> bool:
    """Digits with sign, thousands separators, decimals, currency or percent sign.

    >>> [_is_number(answer) for answer in ("57,500", "-5", "3.14", "$18", "5,00", "-", "1e5", "12 cats")]
    [True, True, True, True, False, False, False, False]
    """
    return _NUMBER.fullmatch(answer.strip()) is not None and any(c.isdigit() for c in answer)


def _answer(found: Any, kind: Kind, choices: tuple[str, ...], labels: tuple[str, ...]) -> str | None:
    """The key's canonical answer: a letter, `true` or `false`, a label as declared, else the text as it stands."""
    if found is None:
        return None
    if isinstance(found, bool) and kind == "boolean":
        return "true" if found else "false"
    if not _is_word(found):
        raise BadRow(f"field 'answer' of a {kind} question must be text or a number, found {shown(found)}")
    answer = str(found).strip()
    if kind == "choice":
        return _chosen(answer, choices)
    if kind == "label":
        return _labelled(answer, labels)
    if kind == "boolean":
        return _boolean(answer)
    if kind == "number" and not any(c.isdigit() for c in answer):
        raise BadRow(f"field 'answer' of a number question must hold a number, found {shown(found)}")
    return answer


def _chosen(answer: str, choices: tuple[str, ...]) -> str:
    """The letter for a letter or for an option's exact text, which must stand there once. What reads as a letter is
    one, even where another option's text is that letter.

    >>> _chosen("b", ("x", "y")), _chosen("y", ("x", "y")), _chosen("B", ("B", "A"))
    ('B', 'B', 'B')
    """
    index = LETTERS.find(answer.upper()) if len(answer) == 1 else -1
    if not 0 <= index < len(choices):
        index = choices.index(answer) if choices.count(answer) == 1 else -1
    if index >= 0:
        return LETTERS[index]
    last = LETTERS[len(choices) - 1]
    raise BadRow(f"field 'answer' must be a letter from A to {last} or an option's exact text, found {shown(answer)}")


def _labelled(answer: str, labels: tuple[str, ...]) -> str:
    same = [label for label in labels if label == answer]
    alike = same or [label for label in labels if label.casefold() == answer.casefold()]
    if len(alike) != 1:
        raise BadRow(f"field 'answer' must be one of the labels {', '.join(labels)}, found {shown(answer)}")
    return alike[0]


def _boolean(answer: str) -> str:
    if answer.lower() in _YES | _NO:
        return "true" if answer.lower() in _YES else "false"
    raise BadRow(f"field 'answer' of a boolean question must be true, false, yes or no, found {shown(answer)}")


def _metadata(found: Any) -> Mapping[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadRow(f"field 'metadata' must be an object {{...}}, found {shown(found)}")
    return found


def _tests(found: Any, kind: Kind) -> tuple[str, ...]:
    if found is None:
        return ()
    if kind != "program":
        raise BadRow(f"field 'tests' goes with kind 'program', found kind {kind!r}")
    if not isinstance(found, list) or not all(isinstance(test, str) and test.strip() for test in found):
        raise BadRow(f"field 'tests' must be a list of Python texts, found {shown(found)}")
    return tuple(found)


def _given_id(found: Any) -> str | None:
    if found is None:
        return None
    if not isinstance(found, str | int) or isinstance(found, bool) or not str(found).strip():
        raise BadRow(f"field 'id' must be text or a whole number, found {shown(found)}")
    return str(found).strip()


OWN = Form(
    "the project's JSONL (question, answer, choices, …)",
    has("question"),
    read,
    repeats=False,
    fields=frozenset(FIELDS),
)
