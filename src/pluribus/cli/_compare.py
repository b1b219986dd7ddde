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
    alone = {seat: score.value for seat, score in result.seat_scores().items() if score.value is not None}
    if not alone:
        return None
    best = max(alone, key=lambda seat: alone[seat])
    pairs = [
        (row, mark.correct)
        for row in result.rows
        if row.credit is not None and (mark := row.seats[best]) is not None and mark.correct is not None
    ]
    if not pairs:
        return None
    rows, seat = [row for row, _ in pairs], [correct for _, correct in pairs]
    difference = stats.paired_bootstrap([float(row.credit or 0) for row in rows], seat)
    return Comparison(best, len(rows), difference, stats.mcnemar(_whole(rows), seat))


def _whole(rows: Sequence[Row]) -> list[float]:
    """0 or 1 per question: of tied answers that share the credit, the first, which is the one shown."""
    return [float(row.credit or 0) if row.credit in (0, 1) else float(_shown_is_right(row)) for row in rows]


def _shown_is_right(row: Row) -> bool:
    return any(m is not None and m.answer == row.answer and m.correct == 1 for m in row.seats) or row.answer == row.key


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
