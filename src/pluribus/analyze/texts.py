"""A panel's texts: who said what, embedded once each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pluribus.analyze.rows import Embed
from pluribus.errors import DataError
from pluribus.panel import Panel, answers, right_Q_A

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Places = NDArray[np.int64]

TEXTS = ("concat", "last")
_BETWEEN = "\n\n[R-SEP]\n\n"
"""Between the rounds of one text: as in the published code, so that its numbers can be compared."""
_CELLS = 4_000_000
"""Numbers of gathered embeddings in memory at once."""


@dataclass(frozen=True, slots=True)
class _Said:
    """Who said what, as places among the distinct texts; −1: nothing, or nothing that is embedded."""

    texts: tuple[str, ...]
    spoke_Q_R_A: Bools
    """Whether there is a word, be it empty."""
    rounds_Q_R_A: Places
    whole_Q_A: Places
    """One text per agent and question."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What all tables are made of."""

    given: Panel
    panel: Panel
    """Without its failed attempts."""
    q_idx: tuple[int, ...]
    """Where its questions are in the panel that was given."""
    said: _Said
    E_U_D: Floats
    rounds_Q_R_A: Places
    """−1 also where a text has no vector."""
    whole_Q_A: Places
    answers: Sequence[Sequence[str | None]]
    right_Q_A: Floats
    """As they stand at the end."""
    alone_Q_A: Floats
    """`right_Q_A` for what is said of members by themselves: all NaN where a vote stopped before all were asked, since
    the members then answered different questions."""
    alone_first_Q_A: Floats
    sampled_Q: Bools
    """The questions whose texts are embedded."""


def measured(
    given: Panel, embed: Embed, embedder: str, text: str, sample: int | None = None, seed: int = 0
) -> Measured:
    q_idx = tuple(q for q, item in enumerate(given.items) if not item.failed)
    panel = replace(given, items=tuple(given.items[q] for q in q_idx))
    sampled_Q = _sampled(panel, sample, seed)
    said = _said(panel, text, sampled_Q)
    E_U_D = _vectors(embed, said, panel, embedder)
    right, right_first = right_Q_A(panel), right_Q_A(panel, 0)
    return Measured(
        given=given,
        panel=panel,
        q_idx=q_idx,
        said=said,
        E_U_D=E_U_D,
        rounds_Q_R_A=_with_vector(said.rounds_Q_R_A, E_U_D),
        whole_Q_A=_with_vector(said.whole_Q_A, E_U_D),
        answers=answers(panel),
        right_Q_A=right,
        alone_Q_A=_alone(panel, right),
        alone_first_Q_A=_alone(panel, right_first),
        sampled_Q=sampled_Q,
    )


def _alone(panel: Panel, right: Floats) -> Floats:
    import numpy as np

    return np.full_like(right, np.nan) if panel.unasked else right


def _sampled(panel: Panel, sample: int | None, seed: int) -> Bools:
    """(questions,): so many of them, by a seeded hash of their ids: runs of the same questions sample the same ones."""
    import numpy as np

    ids = [item.question_id for item in panel.items]
    order = sorted(range(len(ids)), key=lambda q: hashlib.sha256(f"{seed} sample {ids[q]}".encode()).digest())
    sampled_Q = np.zeros(len(ids), dtype=np.bool_)
    sampled_Q[order[:sample]] = True
    return sampled_Q


def _said(panel: Panel, text: str, sampled_Q: Bools) -> _Said:
    import numpy as np

    shape = (len(panel.items), panel.rounds, len(panel.members))
    spoke_Q_R_A, rounds_Q_R_A = np.zeros(shape, dtype=np.bool_), np.full(shape, -1)
    whole_Q_A = np.full((shape[0], shape[2]), -1)
    places: dict[str, int] = {}
    for q, item in enumerate(panel.items):
        for a, column in enumerate(zip(*item.words, strict=True)):
            texts = {r: word.text.strip() for r, word in enumerate(column) if word is not None}
            for r, words in texts.items():
                spoke_Q_R_A[q, r, a] = True
                if sampled_Q[q] and words:
                    rounds_Q_R_A[q, r, a] = places.setdefault(words, len(places))
            whole = _whole([words for words in texts.values() if words], text)
            if sampled_Q[q] and whole:
                whole_Q_A[q, a] = places.setdefault(whole, len(places))
    return _Said(tuple(places), spoke_Q_R_A, rounds_Q_R_A, whole_Q_A)


def _whole(texts: Sequence[str], text: str) -> str:
    return _BETWEEN.join(texts[-1:] if text == "last" else texts)


def _vectors(embed: Embed, said: _Said, panel: Panel, embedder: str) -> Floats:
    """(distinct texts, dimensions), checked."""
    import numpy as np

    n = len(said.texts)
    if n == 0:
        return np.zeros((0, 1))
    E_U_D = np.asarray(embed(said.texts), dtype=np.float64)
    if E_U_D.ndim != 2 or len(E_U_D) != n:
        raise ValueError(f"embedder {embedder!r} gave shape {E_U_D.shape} for {n} texts; expected ({n}, dimensions)")
    bad = np.flatnonzero(~np.isfinite(E_U_D).all(axis=1))
    if len(bad):
        words = f"embedder {embedder!r} gave vectors that are not finite for {len(bad)} of {n} texts"
        raise DataError(panel.source, f"{words}; the first: {_whose(said, panel, int(bad[0]))}")
    return E_U_D


def _whose(said: _Said, panel: Panel, place: int) -> str:
    import numpy as np

    found = [*np.argwhere(said.rounds_Q_R_A == place)[:, [0, 2]], *np.argwhere(said.whole_Q_A == place)]
    q, a = found[0]
    start = " ".join(said.texts[place].split())[:60]
    return f"{start!r} ({panel.members[a].name}, question {panel.items[q].question_id})"


def _with_vector(places: Places, E_U_D: Floats) -> Places:
    """Places with −1 for the texts whose vector is zero."""
    import numpy as np

    blank_U: Bools = (E_U_D != 0).sum(axis=1) == 0
    return np.where((places >= 0) & blank_U[places], -1, places) if blank_U.any() else places


def gathered(m: Measured, places_Q_A: Places) -> Iterator[tuple[slice, Floats, Bools]]:
    """(questions, agents, dimensions) and which rows are there, some questions at a time."""
    q, a = places_Q_A.shape
    step = max(1, _CELLS // max(1, a * m.E_U_D.shape[1]))
    for start in range(0, q, step):
        part = places_Q_A[start : start + step]
        yield slice(start, start + step), m.E_U_D[part], part >= 0
