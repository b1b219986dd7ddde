"""K* of each round, by the mode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluribus.analyze.debates import settled_rounds
from pluribus.analyze.numbers import accuracies, kappa, mean
from pluribus.analyze.rows import Mode, RoundRow
from pluribus.analyze.texts import Measured, gathered
from pluribus.panel import answers, right_Q_A

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Spectrum:
    n_texts: int
    n_agents: int
    n_questions: int
    H: float
    """Nats."""
    H_centred: float


def round_rows(m: Measured, mode: Mode, union: bool) -> tuple[RoundRow, ...]:
    """The mode's rows; a round without a text to measure has none."""
    settled = settled_rounds(m.panel)
    rows: list[RoundRow] = []
    for r in range(m.panel.rounds):
        found = _spectrum(m, r, mode, union)
        if found is not None:
            rows.append(_round_row(m, r, mode, found, rows[-1].Nstar if rows else None, settled.get(r)))
    return tuple(rows)


def _round_row(
    m: Measured, r: int, mode: Mode, found: _Spectrum, before: float | None, settled: int | None
) -> RoundRow:
    Nstar = math.exp(found.H)
    return RoundRow(
        file=m.panel.name,
        round=r,
        kind=mode,
        n_texts=found.n_texts,
        n_agents=found.n_agents,
        n_questions=found.n_questions,
        H=found.H / math.log(2),
        Nstar=Nstar,
        delta=None if before is None else Nstar - before,
        Nstar_centred=math.exp(found.H_centred),
        agreement=kappa(answers(m.panel, r)),
        acc=None if m.panel.unasked else mean(accuracies(right_Q_A(m.panel, r))),
        settled=settled,
    )


def _spectrum(m: Measured, r: int, mode: Mode, union: bool) -> _Spectrum | None:
    if mode == "round_agent_avg":
        return _agent_avg(m, r, union)
    return _cumulative(m, r) if mode == "round_cumulative" else _per_question(m, r)


def _agent_avg(m: Measured, r: int, union: bool) -> _Spectrum | None:
    """Of each agent's mean embedding over the round's questions."""
    import numpy as np

    from pluribus.diversity.kstar import entropy

    kept_Q_A = averaged(m, r, union)
    if not kept_Q_A.any():
        return None
    own = [m.rounds_Q_R_A[kept_Q, r, a] for a, kept_Q in enumerate(kept_Q_A.T) if kept_Q.any()]
    M_A_D = np.stack([m.E_U_D[places].mean(axis=0) for places in own])
    n_questions = int(kept_Q_A.any(axis=1).sum())
    return _Spectrum(int(kept_Q_A.sum()), len(own), n_questions, entropy(M_A_D), entropy(M_A_D, centred=True))


def averaged(m: Measured, r: int, union: bool) -> Bools:
    """(questions, agents): the texts of the round that go into the agents' means.

    Without `union`: of the questions that all agents answered who say anything in the round.
    """
    there_Q_A = m.rounds_Q_R_A[:, r] >= 0
    if union:
        return there_Q_A
    common: Bools = there_Q_A & there_Q_A[:, there_Q_A.any(axis=0)].all(axis=1, keepdims=True)
    return common


def _cumulative(m: Measured, r: int) -> _Spectrum | None:
    """Of all texts of all questions up to the round, in one matrix."""
    import numpy as np

    from pluribus.diversity.kstar import entropy

    places = m.rounds_Q_R_A[:, : r + 1]
    there = places >= 0
    if not there.any():
        return None
    used, times = np.unique(places[there], return_counts=True)
    M_U_D, n, scale = m.E_U_D[used], int(times.sum()), np.sqrt(times)[:, None]
    # a text said k times is one row scaled by √k: the same MᵀM
    H, energy = entropy(M_U_D * scale), _energy(M_U_D, times)
    M_U_D -= times @ M_U_D / n
    flat = _energy(M_U_D, times) <= _ROUNDING * energy
    M_U_D *= scale
    n_agents, n_questions = int(there.any(axis=(0, 1)).sum()), int(there.any(axis=(1, 2)).sum())
    return _Spectrum(n, n_agents, n_questions, H, 0.0 if flat else entropy(M_U_D))


def _energy(M_U_D: Floats, times: Places) -> float:
    import numpy as np

    return float(times @ np.einsum("ud,ud->u", M_U_D, M_U_D))


_ROUNDING = 1e-20
"""Share of the energy that centring leaves of equal rows."""


def _per_question(m: Measured, r: int) -> _Spectrum | None:
    """Mean entropy over the questions of each question's texts of the round."""
    import numpy as np

    from pluribus.diversity.kstar import entropy_batch

    there_Q_A = m.rounds_Q_R_A[:, r] >= 0
    asked_Q = there_Q_A.any(axis=1)
    if not asked_Q.any():
        return None
    parts = [
        (entropy_batch(M, mask), entropy_batch(M, mask, centred=True))
        for _, M, mask in gathered(m, m.rounds_Q_R_A[asked_Q, r])
    ]
    H, H_centred = (float(np.concatenate(part).mean()) for part in zip(*parts, strict=True))
    return _Spectrum(int(there_Q_A.sum()), int(there_Q_A.any(axis=0).sum()), int(asked_Q.sum()), H, H_centred)
