"""What the measures had to leave out, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pluribus.analyze.numbers import above_diagonal, unknown
from pluribus.analyze.rounds import averaged
from pluribus.analyze.rows import Mode
from pluribus.analyze.texts import Measured
from pluribus.panel import Panel, standing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


def omissions(m: Measured, mode: Mode, union: bool, n_rows: int) -> dict[str, int]:
    """The panel's own omissions, then those of the measures; only what is there."""
    said, panel, kept = m.said, m.panel, m.sampled_Q
    strict = mode == "round_agent_avg" and not union
    no_row = "rounds without a question that all agents answered" if strict else "rounds without a text"
    spoke_Q = said.spoke_Q_R_A.any(axis=(1, 2))
    counts = {
        "failed attempts": sum(item.failed for item in m.given.items),
        "questions whose texts are not in the sample": int((~m.sampled_Q).sum()),
        "questions without a text": int((m.whole_Q_A[kept] < 0).all(axis=1).sum())
        if panel.members
        else len(panel.items),
        "agents without a text": int((m.whole_Q_A < 0).all(axis=0).sum()) if panel.items else len(panel.members),
        "answers missing from a round": _missing(said.spoke_Q_R_A),
        "empty texts": int((said.spoke_Q_R_A & (said.rounds_Q_R_A < 0))[kept].sum()),
        "texts without a vector": int(((said.rounds_Q_R_A >= 0) & (m.rounds_Q_R_A < 0)).sum()),
        no_row: panel.rounds - n_rows,
        "questions of a round that not all agents answered": _not_common(m) if strict else 0,
        "last answers that could not be read": _unread(panel),
        "questions without a key": int((spoke_Q & unknown(m.right_Q_A).all(axis=1)).sum()),
        "pairs of agents without an error correlation": _uncorrelated(m.right_Q_A),
    }
    return {**{reason: n for reason, n in counts.items() if n}, **m.given.omitted}


def _missing(spoke_Q_R_A: Bools) -> int:
    """Where an agent that speaks in a round says nothing on a question that others answer in that round."""
    asked = spoke_Q_R_A.any(axis=2, keepdims=True)
    speaks = spoke_Q_R_A.any(axis=0, keepdims=True)
    return int((asked & speaks & ~spoke_Q_R_A).sum())


def _not_common(m: Measured) -> int:
    there = (m.rounds_Q_R_A >= 0).any(axis=2)
    return int(there.sum()) - sum(int(averaged(m, r, False).any(axis=1).sum()) for r in range(m.panel.rounds))


def _unread(panel: Panel) -> int:
    return sum(word is not None and word.answer is None for item in panel.items for word in standing(item))


def _uncorrelated(right_Q_A: Floats) -> int:
    from pluribus.diversity.mistakes import error_correlation

    if unknown(right_Q_A).all():
        return 0
    return int(unknown(above_diagonal(error_correlation(right_Q_A))).sum())
