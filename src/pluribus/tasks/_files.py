"""Reads a file of questions in any of the forms a dataset is published in; every complaint names file and line.

The form is found by looking at the content, never at the file's name: gzip and Parquet by their first bytes, then a
JSON array, one JSON object over several lines, CSV where the task has such a form, else JSON lines. Lines end at
"\\n" only: U+2028 is text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from pluribus.codec import content_id
from pluribus.errors import DataError, UnknownName, UsageError
from pluribus.tasks._hub import parquet_rows
from pluribus.types import Key, Kind, Question

Pair = tuple[Question, Key | None]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_OBJECT = re.compile(rb'^\s*\{\s*"[^"]', re.MULTILINE)
"""The beginning of a JSON object; in CSV the quote would be doubled."""


class BadRow(ValueError):
    """One row that holds no usable question; the message says why."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question as a reader found it, before it has an id and a task."""

    text: str
    kind: Kind
    answer: str | None
    choices: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    context: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    aliases: tuple[str, ...] = ()
    """Answers that are as right as `answer`, such as those of other annotators."""
    tests: tuple[str, ...] = ()
    """Python that runs behind a program: it is right when none of it fails."""
    solution: str | None = None
    """The worked solution that was published with the question."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way a dataset is written down."""

    name: str
    fits: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any]], Item]
    """Raises BadRow."""
    repeats: bool = True
    """Whether one question may come twice: some published sets do repeat themselves and are scored like that."""
    parts: Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]] | None = None
    """Takes a row that holds several questions apart, for `read` to read one by one; raises BadRow."""
    fields: frozenset[str] | None = None
    """All a row may have, so that another dataset's file is not taken for this form; None: anything."""


@dataclass(frozen=True, slots=True)
class _Row:
    place: str
    value: Mapping[str, Any]
    problem: str | None = None


def pairs(
    task: str,
    path: Path,
    forms: Sequence[Form],
    *,
    columns: tuple[str, ...] | None = None,
    labels: Sequence[str] = (),
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] | None = None,
    skipped: list[str] | None = None,
) -> Iterator[Pair]:
    """The questions of a file with their keys, in order.

    Args:
        task: the name that stands in the questions.
        path: the file.
        forms: what it may be written in; the first that fits any row is taken for the whole file.
        columns: names of the columns of a CSV file without header; () for one with; None: no CSV form.
        labels: the `label` of each row, where a second file holds them.
        prepare: what to read in a row's place, asked row by row in order; None leaves the row out.
        skipped: collects what is wrong with unreadable rows; None: the first one raises.

    Raises:
        DataError: an unreadable row or file.
        UsageError: there is no such file.
    """
    rows = _prepared(_labelled(path, _rows(path, columns), labels), prepare)
    form = _form(task, rows, forms)
    seen: dict[str, str] = {}
    for row in _apart(rows, form):
        try:
            pair = _pair(task, row, form, seen)
        except BadRow as problem:
            error = DataError(row.place, str(problem), hint="correct the line, or pass --skip-bad to go on without it")
            if skipped is None:
                raise error from None
            skipped.append(f"{row.place}: {problem}")
        else:
            yield pair


def check_subset(task: str, subset: str | None, known: Sequence[str]) -> None:
    """Raises UnknownName for a subset the task does not have."""
    if subset is None or subset in known:
        return
    if not known:
        raise UsageError(f"task {task!r} has no subsets, found {task}:{subset}", hint=f"write --task {task}")
    raise UnknownName(f"subset of {task}", subset, known)


def has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a row has all these fields.

    >>> has("goal", "sol1")({"goal": "", "sol1": "", "sol2": ""})
    True
    """
    return lambda row: all(name in row for name in names)


def value(row: Mapping[str, Any], name: str) -> Any:
    if name not in row:
        raise BadRow(f"there is no field {name!r}, only {', '.join(map(repr, row)) or 'an empty object'}")
    return row[name]


def table(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field that is an object."""
    found = value(row, name)
    if not isinstance(found, dict):
        raise BadRow(f"field {name!r} must be an object {{...}}, found {shown(found)}")
    return found


def text(row: Mapping[str, Any], name: str) -> str:
    """A field's text, trimmed; missing, empty or not text raises BadRow.

    >>> text({"goal": " dresser "}, "goal")
    'dresser'
    """
    found = value(row, name)
    if not isinstance(found, str):
        raise BadRow(f"field {name!r} must be text, found {shown(found)}")
    if not found.strip():
        raise BadRow(f"field {name!r} is empty")
    return found.strip()


def optional(row: Mapping[str, Any], name: str) -> str | None:
    """A field's text, trimmed; None where there is none.

    >>> optional({"rationale": " 2 + 2 "}, "rationale"), optional({"rationale": ""}, "rationale")
    ('2 + 2', None)
    """
    found = row.get(name)
    return found.strip() or None if isinstance(found, str) else None


def texts(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A field's list of texts, each trimmed."""
    found = value(row, name)
    if not isinstance(found, list) or not all(isinstance(item, str) and item.strip() for item in found):
        raise BadRow(f"field {name!r} must be a list of texts, found {shown(found)}")
    return tuple(item.strip() for item in found)


def tables(row: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], ...]:
    """A field's list of objects."""
    found = value(row, name)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise BadRow(f"field {name!r} must be a list of objects {{...}}, found {shown(found)}")
    return tuple(found)


def chosen(found: Any, name: str, choices: Sequence[str]) -> str | None:
    """The published letter of an option; empty is how sources write that the answer is withheld.

    >>> chosen("B", "answer", ["x", "y"]), chosen(None, "answer", ["x", "y"])
    ('B', None)
    """
    if found in ("", None):
        return None
    index = LETTERS.find(found.strip()) if isinstance(found, str) and len(found.strip()) == 1 else -1
    if not 0 <= index < len(choices):
        raise BadRow(f"field {name!r} must be a letter from A to {LETTERS[len(choices) - 1]}, found {shown(found)}")
    return LETTERS[index]


def shown(found: Any) -> str:
    """A value for an error line: short, as JSON.

    >>> shown(None), shown("x" * 100)[-4:]
    ('null', 'x...')
    """
    written = json.dumps(found, ensure_ascii=False, default=str)
    return written if len(written) <= 60 else f"{written[:57]}..."


def letter(index: int, choices: Sequence[str]) -> str:
    """The letter of option `index`, counted from 0.

    >>> letter(2, ["x", "y", "z"])
    'C'
    """
    if not 0 <= index < len(choices):
        raise BadRow(f"the answer is option number {index + 1}, but there are {len(choices)}")
    return LETTERS[index]


def numbered(found: Any, first: int, choices: Sequence[str]) -> str | None:
    """The letter for a published answer number; empty or -1 is how sources write that the answer is withheld.

    >>> numbered("2", 1, ["x", "y"]), numbered(-1, 0, ["x", "y"])
    ('B', None)
    """
    if found in ("", None, -1, "-1"):
        return None
    if isinstance(found, bool) or not str(found).isdecimal():
        raise BadRow(f"the answer must be a number from {first}, found {shown(found)}")
    return letter(int(found) - first, choices)


def _rows(path: Path, columns: tuple[str, ...] | None) -> list[_Row]:
    raw = content(path)
    if raw[:4] == b"PAR1":
        return [_Row(f"{path}:row {n}", row) for n, row in enumerate(parquet_rows(path), 1)]
    if raw.lstrip()[:1] == b"[":
        return _array(path, raw)
    if columns is not None and not _OBJECT.search(raw):
        return _table(path, raw, columns)
    if (whole := _whole(raw)) is not None:
        return [_Row(f"{path}:1", whole)]
    return [row for n, line in enumerate(raw.split(b"\n"), 1) if (row := _line(f"{path}:{n}", line)) is not None]


def _whole(raw: bytes) -> dict[str, Any] | None:
    """The one object that the file is, written over several lines; None for JSON lines."""
    first, _, rest = raw.lstrip().partition(b"\n")
    if not first.startswith(b"{") or not rest.strip() or _object(first) is not None:
        return None
    return _object(raw)


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = _parsed(raw)
    except (RecursionError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _prepared(rows: list[_Row], prepare: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] | None) -> list[_Row]:
    if prepare is None:
        return rows
    made = [(row, row.value if row.problem else prepare(row.value)) for row in rows]
    return [replace(row, value=value) for row, value in made if value is not None]


def _apart(rows: list[_Row], form: Form) -> Iterable[_Row]:
    """One row per question."""
    if form.parts is None:
        return rows
    return chain.from_iterable(_parts(row, form.parts) for row in rows)


def _parts(row: _Row, take: Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]]) -> list[_Row]:
    if row.problem is not None:
        return [row]
    try:
        return [_Row(f"{row.place}, question {n}", value) for n, value in enumerate(take(row.value), 1)]
    except BadRow as problem:
        return [replace(row, problem=str(problem))]


def _labelled(path: Path, rows: list[_Row], labels: Sequence[str]) -> list[_Row]:
    if not labels or any("label" in row.value for row in rows):
        return rows
    if len(labels) != len(rows):
        raise DataError(str(path), f"it has {len(rows)} questions, but the file of labels beside it {len(labels)}")
    return [replace(row, value={**row.value, "label": label}) for row, label in zip(rows, labels, strict=True)]


def content(path: Path) -> bytes:
    """The file's bytes, unpacked, without a byte order mark."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {str(path)!r}", hint="check the path given to --data") from None
    except OSError as error:
        raise UsageError(f"can not read {str(path)!r}: {error.strerror}", hint="--data takes one file") from None
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(str(path), f"not a whole gzip file: {error}", hint="fetch or pack it again") from None
    return raw.removeprefix(b"\xef\xbb\xbf")


def _line(place: str, line: bytes) -> _Row | None:
    if not line.strip():
        return None
    try:
        return _row(place, _parsed(line))
    except json.JSONDecodeError as error:
        return _Row(place, {}, f"not JSON: {error.msg} at character {error.pos + 1}")
    except UnicodeDecodeError as error:
        return _Row(place, {}, f"not UTF-8 at byte {error.start + 1}")
    except (RecursionError, ValueError) as error:
        return _Row(place, {}, f"not readable as JSON: {error}")


def _parsed(raw: bytes) -> Any:
    """The JSON value; what JSON or UTF-8 has no room for (NaN, half a surrogate pair) is a ValueError."""
    found = _STRICT.decode(raw.decode())
    if _SURROGATE.search(raw):
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


_STRICT = json.JSONDecoder(parse_constant=_refuse)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _row(place: str, found: Any) -> _Row:
    if isinstance(found, dict):
        return _Row(place, found)
    return _Row(place, {}, f"expected an object {{...}}, found {shown(found)}")


def _array(path: Path, raw: bytes) -> list[_Row]:
    try:
        found = _parsed(raw)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}", f"not JSON: {error.msg} at column {error.colno}") from None
    except (RecursionError, ValueError) as error:
        raise DataError(str(path), f"not readable as JSON: {error}") from None
    return [_row(f"{path}:item {n}", item) for n, item in enumerate(found, 1)]


def _table(path: Path, raw: bytes, columns: tuple[str, ...]) -> list[_Row]:
    try:
        reader = csv.reader(io.StringIO(raw.decode(), newline=""))
        lines = [(f"{path}:{reader.line_num}", cells) for cells in reader if cells]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(str(path), f"not readable as CSV: {error}") from None
    if not columns and lines:
        columns = tuple(lines.pop(0)[1])
    return [_cells(place, cells, columns) for place, cells in lines]


def _cells(place: str, cells: list[str], columns: tuple[str, ...]) -> _Row:
    if len(cells) != len(columns):
        return _Row(place, {}, f"expected {len(columns)} columns ({', '.join(columns)}), found {len(cells)}")
    return _Row(place, dict(zip(columns, cells, strict=True)))


def _form(task: str, rows: list[_Row], forms: Sequence[Form]) -> Form:
    good = [row for row in rows if row.problem is None]
    for form in forms:
        if any(form.fits(row.value) for row in good) and not (len(forms) > 1 and _is_foreign(form, good)):
            return form
    if not good:
        return forms[-1]
    raise DataError(
        good[0].place,
        f"no form that task {task!r} reads, found the fields {', '.join(map(repr, good[0].value))}",
        hint=f"it reads: {'; '.join(form.name for form in forms)}",
    )


def _is_foreign(form: Form, rows: list[_Row]) -> bool:
    """Whether every row has a field that the form knows nothing of."""
    return form.fields is not None and not any(form.fields.issuperset(row.value) for row in rows)


def _pair(task: str, row: _Row, form: Form, seen: dict[str, str]) -> Pair:
    if row.problem is not None:
        raise BadRow(row.problem)
    item = form.read(row.value)
    id = _id(task, item, form, seen, row.place)
    question = Question(
        id, task, item.text, item.kind, item.choices, item.labels, item.context, item.metadata
    )  # fmt: skip
    unkeyed = item.answer is None and not item.tests
    return question, None if unkeyed else Key(id, item.answer, item.aliases, item.tests, item.solution)


def _id(task: str, item: Item, form: Form, seen: dict[str, str], place: str) -> str:
    id = item.id or f"{task}/{content_id([item.text, item.kind, item.choices, item.labels, item.context])[:16]}"
    if id in seen and (item.id is not None or not form.repeats):
        said = f"the id {item.id!r}" if item.id else "the same question without an id"
        raise BadRow(f"{said} stands already at {seen[id]}")
    count, wanted = 1, id
    while id in seen:
        count += 1
        id = f"{wanted}-{count}"
    seen[id] = place
    return id
