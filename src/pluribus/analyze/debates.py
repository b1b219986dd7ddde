"""What a debate did: when it settled, and who moved whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from pluribus.analyze.rows import MoveRow
from pluribus.consensus.topology import heard
from pluribus.panel import Item, Panel, Word, standing

if TYPE_CHECKING:
    from pluribus.diversity.debates import Moves


def settled(panel: Panel) -> list[int | None]:
    """The round in which each question's leading answer settled, from 0; None: nobody answered. Empty without a second
    round."""
    from pluribus.diversity.debates import settled_round

    if panel.rounds < 2:
        return []
    return [settled_round(_answers_R_A(_standing(item))) for item in panel.items]


def settled_rounds(panel: Panel) -> dict[int, int]:
    """Round → how many questions settled in it; empty without a second round."""
    counts = Counter(settled(panel))
    return {r: counts[r] for r in range(panel.rounds)} if counts else {}


def moved(panel: Panel) -> Moves:
    """Who moved whom over all questions of a panel; in a debate its topology says who read whom."""
    from pluribus.diversity.debates import moves

    standing_Q_R_A = [_standing(item) for item in panel.items if item.words]
    right = [[[word.correct if word else None for word in row] for row in rows] for rows in standing_Q_R_A]
    return moves([_answers_R_A(rows) for rows in standing_Q_R_A], right, _heard_Q_R_A(panel))


def move_rows(panel: Panel) -> tuple[MoveRow, ...]:
    """Every listener with every speaker that ever held another answer, and with nobody where it moved alone."""
    if panel.rounds < 2 or len(panel.members) < 2:
        return ()
    counts = moved(panel)
    file, names = panel.name, [member.name for member in panel.members]
    rows = [
        MoveRow(
            file, names[i], names[j], float(counts.adopted_A_A[i, j]), float(counts.corrected_A_A[i, j]),
            float(counts.corrupted_A_A[i, j]), float(counts.kept_A_A[i, j]),
        )
        for i, j in permutations(range(len(names)), 2)
    ]  # fmt: skip
    rows += [MoveRow(file, names[i], None, float(counts.alone_A[i]), None, None, None) for i in range(len(names))]
    return tuple(sorted((row for row in rows if row.moved or row.stayed), key=lambda row: -row.moved))


def _heard_Q_R_A(panel: Panel) -> list[list[list[list[int]]]] | None:
    """heard[question][round][listener], where the run says who read whom; None: everybody read everybody."""
    topology, n = panel.settings.get("topology"), len(panel.members)
    if panel.method != "debate" or not isinstance(topology, str) or any(member.draw for member in panel.members):
        return None
    circle = [heard(topology, listener, n) for listener in range(n)]
    return [[circle] * len(item.words) for item in panel.items if item.words]


def _standing(item: Item) -> list[tuple[Word | None, ...]]:
    return [standing(item, r) for r in range(len(item.words))]


def _answers_R_A(standing_R_A: Sequence[Sequence[Word | None]]) -> list[list[str | None]]:
    return [[word.answer if word else None for word in row] for row in standing_R_A]
