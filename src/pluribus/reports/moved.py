"""Who moved whom in a debate, and when it settled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pluribus.analyze.debates import moved, settled
from pluribus.diversity.debates import Moves
from pluribus.panel import Panel
from pluribus.reports import tabulated, words
from pluribus.reports.grids import RUN, SOURCE, Grid, Row, grid, number, word
from pluribus.reports.material import Council

_READS = {
    "sparse": "each reads its two neighbours on a ring",
    "centralized": "the first seat reads all, the others read it",
}

Counted = Sequence[tuple[Council, Moves]]


def counted(councils: Sequence[Council]) -> Counted:
    """The debates among the councils, each with its moves."""
    return [(council, moved(council.panel)) for council in tabulated.debates(councils)]


def table(debates: Counted) -> Grid | None:
    """Listener by speaker; pairs that never differed are left out."""
    columns = (
        *tabulated.who([council for council, _ in debates]), word("listener", "listener"), word("speaker", "speaker"),
        number("adopted", "adopted", _tenths, "Times the listener took over the speaker's answer"),
        number("corrected", "corrected", _tenths, "… and went from not right to right"),
        number("corrupted", "corrupted", _tenths, "… and went from right to wrong"),
        number("kept", "kept", _tenths, "Times the speaker held another answer and the listener stayed with its own"),
        number("adopted, %", "share", words.percent, "Of the times it heard another answer from this speaker"),
        RUN, SOURCE,
    )  # fmt: skip
    about = (
        "Where several speakers held the answer that was adopted, each gets its part. Agents that answer again at "
        "random also seem to be moved."
    )
    rows = [row for council, found in debates for row in _rows(council, found)]
    return grid("moves", "Who moved whom", columns, rows, about)


def _rows(council: Council, found: Moves) -> Iterator[Row]:
    names = [member.name for member in council.panel.members]
    for i, listener in enumerate(names):
        for j, speaker in enumerate(names):
            adopted, kept = float(found.adopted_A_A[i, j]), float(found.kept_A_A[i, j])
            if adopted + kept > 0:
                yield {
                    "council": tabulated.label(council), "run": council.name, "source": council.panel.source,
                    "listener": listener, "speaker": speaker, "adopted": adopted, "kept": kept,
                    "corrected": float(found.corrected_A_A[i, j]), "corrupted": float(found.corrupted_A_A[i, j]),
                    "share": adopted / (adopted + kept),
                }  # fmt: skip


def sentences(debates: Counted) -> list[str]:
    """One sentence per debate: how often somebody was moved, which way, and when it settled."""
    return [
        f"{tabulated.label(council)} ({council.name}): {_sentence(council.panel, found)}" for council, found in debates
    ]


def _sentence(panel: Panel, found: Moves) -> str:
    if not found.chances:
        return "nobody ever heard another answer than its own."
    rounds = [round for round in settled(panel) if round is not None]
    adopted, alone = float(found.adopted_A_A.sum()), float(found.alone_A.sum())
    when = (
        f" The leading answer was settled after round {sum(rounds) / len(rounds) + 1:.1f} on average." if rounds else ""
    )
    reads = _READS.get(str(panel.settings.get("topology")), "everybody reads everybody")
    return (
        f"{found.chances:,.0f} times an agent heard another answer than its own ({reads}); it adopted one in "
        f"{100 * adopted / found.chances:.1f} %, went to a new one in {100 * alone / found.chances:.1f} %, else kept "
        f"its own. {float(found.corrected_A_A.sum()):,.0f} adoptions corrected an answer, "
        f"{float(found.corrupted_A_A.sum()):,.0f} spoiled a right one.{when}"
    )


def _tenths(value: float | None) -> str:
    return words.NOTHING if value is None else f"{value:,.1f}"
