"""Lines of a log file. A line that was cut off at the end is counted; one that is broken in the middle is an error."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from pluribus.errors import DataError

CUT_OFF = "lines cut off at the end of the file"
_HEAD = 65_536
_LONGEST_FIRST_LINE = 16_000_000
"""Bytes of a first line that are looked at to know a format."""


def rows(path: Path, omitted: Counter[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of every line that is not blank.

    Raises DataError for a line that is no JSON object, unless it is the last: that one is counted.
    """
    for number, line, last in _numbered(path):
        place = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if last:
                omitted[CUT_OFF] += 1
                return
            raise DataError(place, f"not JSON: {error}", hint="remove or repair the line") from error
        if not isinstance(row, dict):
            raise DataError(place, f"not a JSON object but {type(row).__name__}", hint="one object a line is expected")
        yield place, row


def _numbered(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Numbered lines that are not blank, each with whether it is the last. Lines end at a newline byte only."""
    held: tuple[int, bytes] | None = None
    try:
        with opened(path) as file:
            for number, line in enumerate(file, 1):
                if line.isspace():
                    continue
                if held is not None:
                    yield *held, False
                held = (number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(str(path), f"can not be read to its end: {error}") from error
    if held is not None:
        yield *held, True


def opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def head(path: Path) -> str:
    """The first characters of a file; empty if it can not be read."""
    try:
        with opened(path) as file:
            return file.read(_HEAD).decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    except (OSError, EOFError, zlib.error):
        return ""


def first_row(path: Path) -> dict[str, Any] | None:
    """The object of the first line; None if there is none."""
    try:
        with opened(path) as file:
            line = next((line for line in iter(lambda: file.readline(_LONGEST_FIRST_LINE), b"") if line.strip()), b"")
        row = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
