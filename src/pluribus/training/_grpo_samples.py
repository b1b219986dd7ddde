"""What is known of each sample of a policy: its answer, whether it is right, and how good its steps are. No torch here.

Shapes: _N samples of one prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pluribus import objectives
from pluribus.answers import read
from pluribus.backends._think import CLOSE, split_think
from pluribus.label import verdicts_on
from pluribus.objectives.process import process_advantages
from pluribus.rows import Row
from pluribus.training._grpo_rows import key_of, question_of
from pluribus.training.config import GrpoConfig

LEAST_WEIGHT = 1e-6
"""Of a vote whose score is 0: weights are above 0."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample, as every process knows it."""

    text: str
    answer: str | None = None
    """Canonical; None: it has none."""
    right: bool | None = None
    """By the task's checker; None: nobody can say."""
    score: float | None = None
    """Of judges or of a process reward model; None: there is none."""
    steps: tuple[float, ...] | None = None
    """P(good) − P(bad) of each step; None: not scored."""
    ends: tuple[int, ...] = ()
    """Token behind the last one of each step; the last step goes to the end."""
    reward: float | None = None
    """Its outcome's; None: nobody can say, which is never 0."""


async def graded(rows: Sequence[Row], texts: Sequence[str]) -> list[Sample]:
    """Each text with its answer, and whether it is right; equal answers to one question are checked once.

    Args:
        rows: one per text; see `_grpo_rows`.
    """
    said = [split_think(text)[0] for text in texts]
    answers = [read(question_of(row), text) for row, text in zip(rows, said, strict=True)]
    by_row: dict[int, set[str | None]] = {}
    for row, answer in zip(rows, answers, strict=True):
        by_row.setdefault(id(row), set()).add(answer)
    known = {id(row): row for row in rows}
    right = {
        one: await verdicts_on(question_of(known[one]), key_of(known[one]), found) for one, found in by_row.items()
    }
    return [
        Sample(text, answer, right[id(row)][answer])
        for row, text, answer in zip(rows, texts, answers, strict=True)
    ]  # fmt: skip


def rewarded(config: GrpoConfig, group_N: Sequence[Sample], *, own_labels: bool) -> list[Sample]:
    """The samples of one prompt with their outcome's reward.

    Args:
        own_labels: right is what most of the group say, a shared lead being shared; no sample has a reward where none
            has an answer.
    """
    if own_labels:
        return _self_labelled(group_N)
    if config.reward_mode == "ORM":
        return [replace(one, reward=one.score) for one in group_N]
    return [replace(one, reward=None if one.right is None else float(one.right)) for one in group_N]


def _self_labelled(group_N: Sequence[Sample]) -> list[Sample]:
    """Zuo et al. 2025, "TTRL: Test-Time Reinforcement Learning", arXiv 2504.16084; with ties at their expectation."""
    lead = leaders([one.answer for one in group_N])
    if not lead:
        return [replace(one, reward=None) for one in group_N]
    return [replace(one, reward=1 / len(lead) if one.answer in lead else 0.0) for one in group_N]


def leaders(answers_N: Sequence[str | None]) -> set[str]:
    """The answers that most samples give.

    >>> sorted(leaders(["4", "4", "5", None, "5"]))
    ['4', '5']
    """
    votes = Counter(answer for answer in answers_N if answer is not None)
    most = max(votes.values(), default=0)
    return {answer for answer, count in votes.items() if count == most}


# --- advantages ------------------------------------------------------------------------------------------------------


def outcome_advantages(config: GrpoConfig, group_N: Sequence[Sample], k: int, *, seed: int = 0) -> np.ndarray[Any, Any]:
    """n · A_i of each sample of one prompt: a trainer averages over the n samples. 0 where nobody knows a reward.

    Samples without a reward are left out of the group; where too few are left for k, nothing is learned from it.

    Args:
        k: samples that the deployed procedure sees, now.
        seed: of the random subsets of weighted_majority.

    Returns: (N,).
    """
    found = np.zeros(len(group_N))
    known = [i for i, one in enumerate(group_N) if one.reward is not None and _has_score(config, one)]
    if config.estimator in ("loo", "naive"):
        k = min(k, len(known))
    estimator = "urloo" if config.estimator == "rloo" else config.estimator
    enough = {"urloo": k + 1, "loo1": max(k, 2)}.get(estimator, 1)
    if len(known) < enough:
        return found
    some = [group_N[i] for i in known]
    group = objectives.Group(
        [one.reward for one in some],  # type: ignore[misc]  # None was left out above
        answers=[one.answer for one in some],
        scores=[one.score or 0.0 for one in some],
        weights=[max(one.score or 0.0, LEAST_WEIGHT) for one in some],
    )
    found[known] = len(some) * objectives.advantages(group, config.objective, k, estimator, seed=seed)
    return found


def _has_score(config: GrpoConfig, one: Sample) -> bool:
    return config.objective not in ("best_of", "weighted_majority") or one.score is not None


def step_advantages(config: GrpoConfig, group_N: Sequence[Sample]) -> list[np.ndarray[Any, Any] | None]:
    """What the steps of each sample of one prompt add, without the outcome; None: not scored."""
    tokens = [np.diff([0, *one.ends]).tolist() for one in group_N]
    return list(
        process_advantages(
            [one.steps for one in group_N], tokens, config.reward_baseline, config.credit_temperature
        )
    )  # fmt: skip


# --- where steps end -------------------------------------------------------------------------------------------------


def step_ends(decode: Callable[[Sequence[int]], str], tokens: Sequence[int], steps: Sequence[str]) -> tuple[int, ...]:
    """For each step the number of tokens up to its end; the last one's is all of them.

    Text decides where a step ends, so that the model that marks steps may have other tokens than the one that writes.

    >>> step_ends(lambda tokens: "".join(map(chr, tokens)), [ord(sign) for sign in "Two. Four."], ["Two.", "Four."])
    (4, 10)

    Args:
        decode: tokens → text.
        tokens: of the whole sample.
        steps: in their order, as they stand in the text; what was thought before them belongs to the first.
    """
    whole = decode(tokens)
    at = whole.rfind(CLOSE) + len(CLOSE) if CLOSE in whole else 0  # a thought may hold the same words
    ends: list[int] = []
    for step in steps:
        found = whole.find(step, at)
        at = found + len(step) if found >= 0 else at
        ends.append(_tokens_up_to(decode, tokens, at, ends[-1] if ends else 0))
    if ends:
        ends[-1] = len(tokens)
    return tuple(ends)


def _tokens_up_to(decode: Callable[[Sequence[int]], str], tokens: Sequence[int], letters: int, low: int) -> int:
    """The fewest tokens whose text has so many letters."""
    high = len(tokens)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(decode(tokens[:middle])) >= letters else (middle + 1, high)
    return low
