"""candidates → judgements → rewards: a council of judges gives each reply one number, and says how far it disagreed.

`judge` asks every judge about the candidates of one question, all at once. `reckon` makes rewards of judgements; it
asks nobody, so other weights, another normalisation, another threshold cost no call.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pluribus.agents import Agent
from pluribus.codec import content_id
from pluribus.consensus.rewards import Normalise, Scale, apply_scale, consensus, fit_scale, statuses_N
from pluribus.errors import first_of
from pluribus.judges import Candidate, Check, Heard, Juror, Opinion
from pluribus.load import load
from pluribus.types import Judgement, Question, Reward

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Item = tuple[str, int]
"""Attempt id and turn of a candidate."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge at its council's table."""

    name: str
    kind: str
    settings: Any
    """The kind's own Settings."""
    asked: str
    """Content id of all its scores depend on beside the candidate: kind, model, sampling, settings, prompts."""
    weight: float = 1.0
    role: str | None = None
    agent: Agent | None = None
    """None for a kind that asks no model."""


@dataclass(frozen=True, slots=True)
class Reckoned:
    rewards: tuple[Reward, ...]
    """One per candidate, in the order of `items`."""
    scales: Mapping[str, Scale]
    """Judge → how its scores were put on the common scale."""


# --- asking ----------------------------------------------------------------------------------------------------------


async def judge(
    question: Question,
    candidates: Sequence[Candidate],
    judges: Sequence[Judge],
    *,
    round: int = 0,
    before: Sequence[Judgement] = (),
    scales: Mapping[str, Scale] | None = None,
    check: Check | None = None,
    seed: int = 0,
) -> list[Judgement]:
    """Asks all judges about all candidates at once; a judge that fails leaves a judgement with the failure.

    Args:
        round: 0: alone. From 1 on every judge of a kind that rereads reads what the others said in `before`, without
            names, their scores put on the common scale by `scales`; the other kinds are not asked again.
        before: the judgements of the rounds so far, on these candidates.
        check: the task's own checker, for the kind `verifier`.

    Raises BudgetExceeded: the next call could pass the budget; finished calls are in the store.
    """
    asked = [one for one in judges if not round or rereads(one.kind)]
    heard = [hearing(one, candidates, judges, round, before, scales) for one in asked]
    jurors = [_juror(one, question, round, each, check, seed) for one, each in zip(asked, heard, strict=True)]
    said = await _at_once(
        [load("judges", one.kind).judge_all(juror, candidates) for one, juror in zip(asked, jurors, strict=True)]
    )
    return [
        _judgement(one, name, round, candidate, opinion)
        for one, each, opinions in zip(asked, heard, said, strict=True)
        for name, candidate, opinion in zip(identities(one, candidates, round, each), candidates, opinions, strict=True)
    ]


async def _at_once(sittings: Sequence[Coroutine[Any, Any, list[Opinion]]]) -> list[list[Opinion]]:
    """All judges side by side; what ends one, such as the budget, ends all."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in sittings]
    except BaseExceptionGroup as errors:
        raise first_of(errors) from None
    return [task.result() for task in tasks]


def rereads(kind: str) -> bool:
    """Whether a kind judges again after reading the others' reasons."""
    return getattr(load("judges", kind), "REREADS", False)


def hearing(
    by: Judge,
    candidates: Sequence[Candidate],
    judges: Sequence[Judge],
    round: int,
    before: Sequence[Judgement],
    scales: Mapping[str, Scale] | None,
) -> list[list[Heard]]:
    """For each candidate what a judge gets to read of the others; empty in round 0. Arguments as for `judge`."""
    known = _latest(before) if round else {}
    return [_heard(by, judges, known, scales or {}, candidate) for candidate in candidates]


def identities(one: Judge, candidates: Sequence[Candidate], round: int, heard: Sequence[Sequence[Heard]]) -> list[str]:
    """Content id, for each candidate, of what a judge is asked in a round: with those it compares, and with what it
    reads of the others, scores to the digits that are shown."""
    compares = getattr(load("judges", one.kind), "COMPARES", False)
    beside = [(c.attempt_id, c.turn) for c in candidates] if compares else []
    if not round:
        return [content_id([one.asked, beside, round, []]) if beside else one.asked] * len(candidates)
    read = [[(h.name, None if h.score is None else f"{h.score:.2f}", h.reason) for h in said] for said in heard]
    return [content_id([one.asked, beside, round, said]) for said in read]


def _juror(
    one: Judge, question: Question, round: int, heard: Sequence[Sequence[Heard]], check: Check | None, seed: int
) -> Juror:
    agent = one.agent.at(question, seed) if one.agent else None
    return Juror(one.name, question, one.settings, agent, round, heard, check, seed)


def _heard(
    by: Judge,
    judges: Sequence[Judge],
    known: Mapping[tuple[str, Item], Judgement],
    scales: Mapping[str, Scale],
    candidate: Candidate,
) -> list[Heard]:
    """What the others said of a candidate, by number: a judge is not to know whose reasons it reads."""
    found: list[Heard] = []
    for other in judges:
        said = known.get((other.name, (candidate.attempt_id, candidate.turn)))
        if other is by or said is None or said.score is None:
            continue
        scale = scales.get(other.name)
        score = said.score if scale is None else float(apply_scale(scale, [said.score])[0])
        found.append(Heard(f"judge {len(found) + 1}", score, said.reason))
    return found


def _judgement(one: Judge, asked: str, round: int, candidate: Candidate, opinion: Opinion) -> Judgement:
    return Judgement(
        candidate.attempt_id, candidate.turn, one.name, asked, opinion.score, round, opinion.samples, opinion.reason,
        opinion.turns, opinion.failure, opinion.notes,
    )  # fmt: skip


# --- arithmetic ------------------------------------------------------------------------------------------------------


def reckon(
    items: Sequence[Item],
    judgements: Sequence[Judgement],
    weights: Mapping[str, float],
    *,
    normalise: Normalise = "zscore",
    threshold: float,
    scales: Mapping[str, Scale] | None = None,
    adjudicated: frozenset[Item] = frozenset(),
) -> Reckoned:
    """Rewards out of judgements: normalised per judge over all items, weighted mean, weighted variance, status.

    The scale of a judge is fitted on its scores of round 0 and stays: a candidate that is judged again moves itself
    and nobody else.

    >>> said = [Judgement("a", turn, judge, "", score) for judge, turn, score in
    ...         [("x", 0, 0.9), ("x", 1, 0.1), ("y", 0, 0.8), ("y", 1, 0.6)]]
    >>> found = reckon([("a", 0), ("a", 1)], said, {"x": 1.0, "y": 1.0}, threshold=0.02)
    >>> [(round(r.value, 2), r.disagreement, r.status) for r in found.rewards]
    [(0.73, 0.0, 'agreed'), (0.27, 0.0, 'agreed')]

    Args:
        items: the candidates; one without a judgement is unscored.
        judgements: of any round; of each judge the last with a score counts.
        weights: judge → weight; its order is the judges' order everywhere.
        scales: fitted elsewhere; None: fitted here.
        adjudicated: items a person has decided; they stay decided, whatever the judges say later.

    Raises ValueError on weights that are negative, not finite or all 0, and on scores outside [0, 1] under `none`.
    """
    import numpy as np

    names = list(weights)
    first_J_N = _table(items, [j for j in judgements if j.round == 0], names)
    last_J_N = _table(items, judgements, names)
    scales = scales or {name: fit_scale(first_J_N[i], normalise) for i, name in enumerate(names)}
    same_J_N = np.array([apply_scale(scales[name], last_J_N[i]) for i, name in enumerate(names)])
    same_J_N = same_J_N.reshape(len(names), len(items))
    found = consensus(same_J_N, [weights[name] for name in names])
    decided_N = np.array([item in adjudicated for item in items], dtype=bool)
    judging = sum(weight > 0 for weight in weights.values())
    status_N = statuses_N(found.disagreement_N, found.verdicts_N, judging, threshold, decided_N)
    rounds = _rounds(judgements)
    value_N, variance_N = _optional(found.value_N), _optional(found.disagreement_N)
    scores_N, normal_N = _by_judge(names, last_J_N), _by_judge(names, same_J_N)
    rewards = tuple(
        Reward(*item, scores_N[i], normal_N[i], value_N[i], variance_N[i], status_N[i], rounds.get(item, 0))
        for i, item in enumerate(items)
    )
    return Reckoned(rewards, scales)


def _latest(judgements: Sequence[Judgement]) -> dict[tuple[str, Item], Judgement]:
    """(judge, item) → its last judgement with a score, else its last."""
    found: dict[tuple[str, Item], Judgement] = {}
    for one in judgements:
        at = (one.judge, (one.attempt_id, one.turn))
        held = found.get(at)
        if held is None or (one.score is not None, one.round) >= (held.score is not None, held.round):
            found[at] = one
    return found


def latest(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Of each judge on each candidate the judgement that counts: the last with a score, else the last."""
    return list(_latest(judgements).values())


def _table(items: Sequence[Item], judgements: Sequence[Judgement], names: Sequence[str]) -> NDArray[np.float64]:
    import numpy as np

    scores_J_N = np.full((len(names), len(items)), math.nan)
    column = {item: i for i, item in enumerate(items)}
    row = {name: i for i, name in enumerate(names)}
    for (name, item), said in _latest(judgements).items():
        if said.score is not None and name in row and item in column:
            scores_J_N[row[name], column[item]] = said.score
    return scores_J_N


def _rounds(judgements: Sequence[Judgement]) -> dict[Item, int]:
    """Times each candidate was judged again."""
    found: dict[Item, int] = {}
    for one in judgements:
        if one.round:
            item = (one.attempt_id, one.turn)
            found[item] = max(found.get(item, 0), one.round)
    return found


def _optional(values_N: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values_N.tolist()]


def _by_judge(names: Sequence[str], table_J_N: NDArray[np.float64]) -> list[dict[str, float | None]]:
    columns = [_optional(row) for row in table_J_N]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


# --- pairs -----------------------------------------------------------------------------------------------------------


def pair_id(one: Item, other: Item) -> str:
    """Names a pair of replies, whichever comes first.

    >>> pair_id(("a", 0), ("b", 1)) == pair_id(("b", 1), ("a", 0))
    True
    """
    return content_id([list(item) for item in sorted((tuple(one), tuple(other)))])
