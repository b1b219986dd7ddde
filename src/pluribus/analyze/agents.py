"""Questions and agents: K* of one question, and what each agent adds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluribus.analyze.numbers import mean, or_none, share, total
from pluribus.analyze.rows import AgentRow, QuestionRow
from pluribus.analyze.texts import Measured, gathered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Extended:
    """Of each agent's mean embedding over its rounds, per question; NaN: undefined."""

    correct_Q: Floats
    wrong_Q: Floats
    effective_Q: Floats
    weighted_Q: Floats
    delta_Q_A: Floats


def extended(m: Measured) -> Extended:
    import numpy as np

    from pluribus.diversity.kstar import conditioned_batch, delta_batch, weighted_batch

    q, a = m.right_Q_A.shape
    correct, wrong, effective, weighted = (np.full(q, np.nan) for _ in range(4))
    delta_Q_A = np.full((q, a), np.nan)
    if len(m.E_U_D):
        for at, M, mask in _over_rounds(m):
            groups = conditioned_batch(M, m.right_Q_A[at], mask)
            correct[at], wrong[at], effective[at] = groups.correct_Q, groups.wrong_Q, groups.effective_Q
            weighted[at] = weighted_batch(M, m.right_Q_A[at], mask)
            delta_Q_A[at] = delta_batch(M, mask)
    return Extended(correct, wrong, effective, weighted, delta_Q_A)


def _over_rounds(m: Measured) -> Iterator[tuple[slice, Floats, Bools]]:
    """Each agent's mean embedding over its rounds, (questions, agents, dimensions), some questions at a time."""
    import numpy as np

    for at, first, there in gathered(m, m.rounds_Q_R_A[:, 0]):
        total, count = first * there[..., None], there.astype(np.int64)
        for r in range(1, m.panel.rounds):
            places = m.rounds_Q_R_A[at, r]
            total += m.E_U_D[places] * (places >= 0)[..., None]
            count += places >= 0
        yield at, total / np.maximum(count, 1)[..., None], count > 0


def question_rows(m: Measured, found: Extended) -> tuple[QuestionRow, ...]:
    """One row per question with a text."""
    import numpy as np

    from pluribus.consensus.subsets import codes, plurality_credit
    from pluribus.diversity.kstar import entropy_batch

    if not len(m.E_U_D):
        return ()
    H_Q = np.concatenate([entropy_batch(M, mask) for _, M, mask in gathered(m, m.whole_Q_A)])
    every = np.ones((1, len(m.panel.members)), dtype=np.bool_)
    majority_Q = plurality_credit(codes(m.answers), m.right_Q_A, every, "first")[0]
    asked = np.flatnonzero((m.whole_Q_A >= 0).any(axis=1))
    return tuple(_question_row(m, int(q), float(H_Q[q]), float(majority_Q[q]), found) for q in asked)


def _question_row(m: Measured, q: int, H: float, majority: float, found: Extended) -> QuestionRow:
    from pluribus.diversity.answers import consensus, effective_number, entropy, gini

    given = m.answers[q]
    valid = sum(answer is not None for answer in given)
    return QuestionRow(
        file=m.panel.name,
        q_idx=m.q_idx[q],
        n_agents=int((m.whole_Q_A[q] >= 0).sum()),
        H=H / math.log(2),
        Nstar=math.exp(H),
        gini=gini(given),
        consensus=consensus(given),
        acc01=or_none(majority) if valid else None,
        valid_answers=valid,
        question_id=m.panel.items[q].question_id,
        answer_entropy=entropy(given),
        effective_answers=effective_number(given),
        Nstar_correct=or_none(found.correct_Q[q]),
        Nstar_wrong=or_none(found.wrong_Q[q]),
        Nstar_effective=or_none(found.effective_Q[q]),
        Nstar_weighted=or_none(found.weighted_Q[q]),
    )


def agent_rows(m: Measured, found: Extended, seed: int) -> tuple[AgentRow, ...]:
    low_A, high_A = _intervals(found.delta_Q_A, seed)
    return tuple(
        _agent_row(m, a, found.delta_Q_A[:, a], or_none(low_A[a]), or_none(high_A[a]))
        for a in range(len(m.panel.members))
    )


def _agent_row(m: Measured, a: int, delta_Q: Floats, low: float | None, high: float | None) -> AgentRow:
    member = m.panel.members[a]
    accuracy, accuracy_low, accuracy_high = share(m.alone_Q_A[:, a])
    words = [word for item in m.given.items for row in item.words if (word := row[a]) is not None]
    return AgentRow(
        file=m.panel.name,
        agent=member.name,
        model=member.model,
        persona=member.persona,
        delta_Nstar=mean(delta_Q),
        low=low,
        high=high,
        n_questions=int((delta_Q == delta_Q).sum()),
        accuracy=accuracy,
        accuracy_low=accuracy_low,
        accuracy_high=accuracy_high,
        calls=len(words),
        tokens=total([word.tokens for word in words]),
        cost_usd=total([word.cost_usd for word in words]),
        accuracy_first=share(m.alone_first_Q_A[:, a])[0],
    )


_RESAMPLES = 2_000
_CELLS = 4_000_000
"""Numbers of resamples in memory at once."""


def _intervals(values_Q_A: Floats, seed: int) -> tuple[Floats, Floats]:
    """95 % percentile bootstrap interval of each column's mean over questions; NaN: fewer than two questions.

    The columns share their resamples, so that thousands of questions take a second and not one each.
    """
    import numpy as np

    known, filled = (~np.isnan(values_Q_A)).astype(np.float64), np.nan_to_num(values_Q_A)
    enough = known.sum(axis=0) > 1
    q, a = values_Q_A.shape
    if not enough.any():
        return np.full(a, np.nan), np.full(a, np.nan)
    rng, means = np.random.default_rng(seed), []
    step = max(1, _CELLS // q)
    for start in range(0, _RESAMPLES, step):
        times = rng.multinomial(q, np.full(q, 1 / q), size=min(step, _RESAMPLES - start)).astype(np.float64)
        counts = times @ known
        means.append(np.where(counts > 0, times @ filled / np.maximum(counts, 1), np.nan))
    drawn = np.where(enough, np.concatenate(means), 0.0)
    low, high = np.nanquantile(drawn, [0.025, 0.975], axis=0)
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)
