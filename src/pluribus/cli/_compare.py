"""The council against its best seat alone, on the questions both answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pluribus import stats
from pluribus.evaluate import Row
from pluribus.run import RunResult
from pluribus.stats import Estimate, McNemar


@dataclass(frozen=True, slots=True)
class Comparison:
    seat: int
    """Index of the best seat; it is chosen on these same questions, which favours it."""
    n: int
    """Questions that neither failed."""
    difference: Estimate
    """Council's minus seat's accuracy, in [-1, 1]."""
    test: McNemar
    """First is the council."""


def against_best_seat(result: RunResult) -> Comparison | None:
    """None for a seat alone, or where no question has a key."""
    alone = [score.value for score in result.seat_scores()]
    if not alone or all(value is None for value in alone):
        return None
    best = max(range(len(alone)), key=lambda seat: -1.0 if alone[seat] is None else float(alone[seat] or 0))
    rows = [row for row in result.rows if row.credit is not None and row.seats[best].correct is not None]
    if not rows:
        return None
    seat = [float(row.seats[best].correct or 0) for row in rows]
    difference = stats.paired_bootstrap([float(row.credit or 0) for row in rows], seat)
    return Comparison(best, len(rows), difference, stats.mcnemar(_whole(rows), seat))


def _whole(rows: Sequence[Row]) -> list[float]:
    """0 or 1 per question: of tied answers that share the credit, the first, which is the one shown."""
    return [float(row.credit or 0) if row.credit in (0, 1) else float(_shown_is_right(row)) for row in rows]


def _shown_is_right(row: Row) -> bool:
    return any(mark.answer == row.answer and mark.correct == 1 for mark in row.seats) or row.answer == row.key


def words(told: Comparison) -> list[str]:
    """The comparison in two lines."""
    gain, test = told.difference, told.test
    return [
        f"council − seat {told.seat + 1}, the best alone: {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}], "
        "paired bootstrap",
        f"right where the other is wrong: council {test.only_first:,}, seat {test.only_second:,} of {told.n:,}; "
        f"McNemar p = {_p(test.p)}",
    ]


def _p(p: float) -> str:
    """
    >>> _p(0.0123), _p(0.00001)
    ('0.012', '1e-05')
    """
    return f"{p:.2g}" if p >= 1e-4 else f"{p:.0e}"
