"""Plurality of answers, plain or weighted, with the tie rule said out loud."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pluribus.errors import UnknownName, UsageError

Tie = Literal["first", "random", "abstain", "fractional"]
TIES: tuple[Tie, ...] = get_args(Tie)
MOST = 1e200
"""Greatest weight: sums of many, and their squares, stay finite."""


@dataclass(frozen=True, slots=True)
class Vote:
    winner: str | None
    """None: no vote was cast, or a tie under the rule `abstain`."""
    counts: Mapping[str, float]
    """Answer → votes or weights, in the order first seen."""
    share: float | None
    """The winner's part of all votes cast, in (0, 1]; None without a winner."""
    margin: float | None
    """Leader's minus runner-up's part of the votes cast, in [0, 1]; 0 in a tie; None when no vote was cast."""
    tie: tuple[str, ...] = ()
    """The answers that share the lead, in the order first seen; empty when one leads."""
    abstained: int = 0
    """Voters without an answer."""


def plurality(
    answers: Sequence[str | None], weights: Sequence[float] | None = None, tie: str = "first", seed: int = 0
) -> Vote:
    """The answer with most votes, or with most weight.

    winner = argmax_a Σ_i w_i [answers_i = a], with w_i = 1 where no weights are given.

    >>> plurality(["4", "5", "4", "4", None])
    Vote(winner='4', counts={'4': 3.0, '5': 1.0}, share=0.75, margin=0.5, tie=(), abstained=1)
    >>> plurality(["4", "5"], tie="abstain").winner is None
    True

    Args:
        answers: one per voter, canonical; None abstains.
        weights: one per voter, from 0 to 1e200, not all 0.
        tie: `first` the tied answer seen first; `random` one of the tied, by the seed, whatever their order;
            `abstain` none; `fractional` shows the first, and scoring gives each of t tied answers 1/t.
        seed: of the rule `random`.

    Raises UsageError on an unknown tie rule or unusable weights.
    Source: plurality as self-consistency uses it, Wang et al. 2022, 2203.11171.
    """
    if tie not in TIES:
        raise UnknownName("tie rule", tie, TIES)
    counts = _counts(answers, _checked(weights, len(answers)))
    abstained = sum(answer is None for answer in answers)
    total = math.fsum(counts.values())
    if total == 0:
        return Vote(None, counts, None, None, (), abstained)
    ranked = sorted(counts.values(), reverse=True)
    leaders = tuple(answer for answer, votes in counts.items() if _same(votes, ranked[0]))
    winner = _winner(leaders, tie, seed)
    share = None if winner is None else counts[winner] / total
    margin = 0.0 if len(leaders) > 1 else (ranked[0] - sum(ranked[1:2])) / total
    return Vote(winner, counts, share, margin, leaders if len(leaders) > 1 else (), abstained)


def _checked(weights: Sequence[float] | None, voters: int) -> Sequence[float]:
    if weights is None:
        return [1.0] * voters
    if len(weights) != voters:
        raise UsageError(f"{len(weights)} weights for {voters} voters", hint="give one weight per voter")
    for index, weight in enumerate(weights):
        if weight > MOST and weight != math.inf:
            raise UsageError(f"weight {weight!r} of voter {index} is above 1e200", hint="divide all by one number")
        if not (math.isfinite(weight) and weight >= 0):
            raise UsageError(f"weight {weight!r} of voter {index} is not a number of at least 0")
    if voters and not any(weights):
        raise UsageError("all weights are 0", hint="give at least one voter a weight above 0")
    return weights


def _counts(answers: Sequence[str | None], weights: Sequence[float]) -> dict[str, float]:
    parts: dict[str, list[float]] = {}
    for answer, weight in zip(answers, weights, strict=True):
        if answer is not None:
            parts.setdefault(answer, []).append(weight)
    return {answer: math.fsum(part) for answer, part in parts.items()}


def _same(a: float, b: float) -> bool:
    """Whether two sums of weights are equal but for rounding: 0.1 + 0.2 ties with 0.3."""
    return math.isclose(a, b, rel_tol=1e-9)


def _winner(leaders: tuple[str, ...], tie: str, seed: int) -> str | None:
    if len(leaders) == 1 or tie in ("first", "fractional"):
        return leaders[0]
    return None if tie == "abstain" else random.Random(seed).choice(sorted(leaders))
