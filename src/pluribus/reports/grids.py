"""A table of a report: rows of plain values, and columns that say how to show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pluribus.reports import words

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    keys: tuple[str, ...]
    """The values it shows; it is sorted by the first. In the CSV file each has a column of its own."""
    show: Callable[..., str] = words.text
    number: bool = False
    about: str = ""
    """What the head means, where it does not say so itself."""


@dataclass(frozen=True, slots=True)
class Grid:
    name: str
    """Of the file and the anchor."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    about: str = ""
    tall: bool = False
    """So many rows that it scrolls inside its box."""

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that hold anything; a column that is empty in every row is left out."""
        return tuple(
            c for c in self.columns if any(row.get(key) not in (None, "") for row in self.rows for key in c.keys)
        )


def grid(name: str, title: str, columns: Sequence[Column], rows: Sequence[Row], about: str = "") -> Grid | None:
    """A table; None where there is no row."""
    return Grid(name, title, tuple(columns), tuple(rows), about, len(rows) > 16) if rows else None


def word(head: str, key: str, about: str = "", show: Callable[..., str] = words.text) -> Column:
    return Column(head, (key,), show, False, about)


def number(head: str, keys: str, show: Callable[..., str] = words.count, about: str = "") -> Column:
    """A column of numbers; `keys` are value, low end and high end, with blanks between."""
    return Column(head, tuple(keys.split()), show, True, about)


RUN = word("run", "run")
SOURCE = word("source", "source", "The id of the run in its workspace, or the path of its file")
