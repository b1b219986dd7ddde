"""Files of training rows, JSON lines: read and checked line by line, so that a trainer meets nothing unexpected.

A column stands in every row or in none: a loader fills what one row lacks with null.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import textwrap
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.errors import DataError

Row = dict[str, Any]
Field = tuple[bool, Callable[[Any], bool], str]
"""Whether it has to be there, what fits, and that in words."""
UNLIKE = "a column stands in every row or in none"
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a pair of UTF-16, which JSON can spell and no tokenizer reads."""
_LONGEST = 60
"""Letters of a wrong value that are shown."""


def numbered_rows(
    path: Path, fields: Mapping[str, Field], what: str, write: str, wrong: Callable[[Row], str | None] | None = None
) -> Iterator[tuple[int, Row]]:
    """Each row with the number of its line, checked; blank lines are none.

    Args:
        fields: column → what it is to be; a column that is not named here is free, but never null.
        what: what a row is, for the complaint: `preference pair`, `demonstration`, …
        write: what to do instead, for the complaint.
        wrong: what else is wrong with a row, in words; None: nothing.

    Raises DataError, with file and line, for a file without rows and for a row that a trainer would stumble over.
    """
    first: tuple[int, Collection[str]] | None = None
    for number, line in enumerate(lines(path), 1):
        if line.isspace():
            continue
        place = f"{path}:{number}"
        row = _object(line, place, what, write)
        _check(row, place, fields)
        said = wrong(row) if wrong is not None else None
        if said is not None:
            raise DataError(place, said)
        if first is None:
            first = number, tuple(row)
        _check_columns(row, place, *first)
        yield number, row
    if first is None:
        raise DataError(str(path), f"no {what} is in it", hint=write)


def lines(path: Path) -> Iterator[bytes]:
    """Lines end at a newline byte only."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(str(path), f"can not be read: {getattr(error, 'strerror', None) or error}") from error


def _object(line: bytes, place: str, what: str, write: str) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(place, f"not JSON: {error}", hint=write) from None
    half = _HALF.search(json.dumps(row, ensure_ascii=False)) if b"\\u" in line else None
    if half is not None:
        raise DataError(place, f"\\u{ord(half[0]):x} is half a character: no text can hold it", hint=write)
    if not isinstance(row, dict):
        raise DataError(place, f"not an object but {_kind(row)}; expected one {what} a line", hint=write)
    return row


def _check(row: Row, place: str, fields: Mapping[str, Field]) -> None:
    for name, (required, fits, expected) in fields.items():
        if name not in row:
            if required:
                known = textwrap.shorten(", ".join(sorted(row)) or "none", _LONGEST, placeholder=" …")
                raise DataError(place, f"{name} is missing; expected {expected}", hint=f"its columns are: {known}")
        elif not fits(row[name]):
            raise DataError(place, f"{name} is {shown(row[name])}; expected {expected}")
    null = next((name for name, value in row.items() if value is None), None)
    if null is not None:
        raise DataError(place, f"{null} is null; expected a value", hint=UNLIKE)


def _check_columns(row: Row, place: str, line: int, columns: Collection[str]) -> None:
    for name in (*columns, *row):
        if name not in row:
            raise DataError(place, f"{name} is missing; line {line} has it", hint=UNLIKE)
        if name not in columns:
            raise DataError(place, f"{name} is there; line {line} has none", hint=UNLIKE)


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long.

    >>> shown(["a"] * 40)
    '["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a",…'
    """
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# --- what a column may hold ------------------------------------------------------------------------------------------


def is_conversation(value: Any, roles: Collection[str] = ("system", "user", "assistant")) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_message(one, roles) for one in value)


def _is_message(one: Any, roles: Collection[str]) -> bool:
    return isinstance(one, dict) and one.get("role") in roles and isinstance(one.get("content"), str)


def is_prompt(value: Any) -> bool:
    return is_conversation(value) and value[-1]["role"] != "assistant"


def is_reply(value: Any) -> bool:
    return is_conversation(value, ("assistant",))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


REPLY = 'a list of assistant messages: [{"role": "assistant", "content": text}]'
CONVERSATION = 'a list of messages that ends before the reply: [{"role": "user", "content": text}]'


def demonstrations(path: Path) -> list[Row]:
    """The rows of a file of demonstrations: `prompt` and `completion`, both conversations."""
    fields: Mapping[str, Field] = {"prompt": (True, is_prompt, CONVERSATION), "completion": (True, is_reply, REPLY)}
    write = "write one with: pluribus distil RUN --view rsft --out FILE"
    return [row for _, row in numbered_rows(path, fields, "demonstration", write)]
