"""The council against its best seat alone, as `pluribus run` and `show` print it."""

from __future__ import annotations

from pluribus.compare import Comparison, against_best_single
from pluribus.evaluate import Mark, Row
from pluribus.panel import Item, Member, Panel, Word
from pluribus.run import RunResult


def against_best_seat(result: RunResult) -> Comparison | None:
    """Votes that were withheld for too low a confidence are compared with the others: a seat alone withholds nothing.

    Returns: None for a seat alone, where no question has a key, or where the vote stopped before all seats were asked.
    """
    return against_best_single(_panel(result)) if len(result.table.seats) > 1 else None


def _panel(result: RunResult) -> Panel:
    """The run without its texts: each seat's first answer, and the decision."""
    asked = [seat for seat in result.table.seats if any(row.seats[seat.index] is not None for row in result.rows)]
    members = tuple(Member(f"seat {seat.index + 1}", seat.model, seat.persona, seat.index) for seat in asked)
    items = tuple(_item(row, [seat.index for seat in asked]) for row in result.rows)
    short = result.stopped_short()
    return Panel(result.name, f"run {result.id}", result.task, result.table.method, members, items, unasked=short)


def _item(row: Row, asked: list[int]) -> Item:
    words = tuple(_word(row.seats[seat]) for seat in asked)
    failed = row.status == "failed"
    return Item(row.question_id, row.key, (words,), row.answer, row.vote_credit, row.usage, failed)


def _word(mark: Mark | None) -> Word | None:
    """A mark knows the sum of its tokens alone; the comparison asks for no more."""
    if mark is None or mark.failed:
        return None
    return Word("", mark.answer, mark.correct, mark.tokens, None if mark.tokens is None else 0, mark.cost_usd)


def words(told: Comparison, *, withheld: bool = False) -> list[str]:
    """The comparison in two lines.

    Args:
        withheld: whether the council kept answers back.
    """
    council = "council, with what it withheld," if withheld else "council"
    gain, test = told.difference, told.test
    seats = " or ".join(told.chosen).replace(" or seat ", " or ")
    return [
        f"{council} − {seats}, the best alone: {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}], paired bootstrap",
        f"right where the other is wrong: council {test.only_first:,}, best alone {test.only_second:,} of {told.n:,}; "
        f"McNemar p = {_p(test.p)}",
    ]


def _p(p: float) -> str:
    """
    >>> _p(0.0123), _p(0.00001)
    ('0.012', '1e-05')
    """
    return f"{p:.2g}" if p >= 1e-4 else f"{p:.0e}"
