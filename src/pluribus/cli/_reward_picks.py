"""The best of each question's replies by their reward, against the majority of the same replies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pluribus.judging import Rewarded
from pluribus.reward import Item
from pluribus.stats import Estimate, paired_difference, wilson


@dataclass(frozen=True, slots=True)
class Picks:
    """Shares of questions answered right, each by the same replies."""

    questions: int
    """With several replies that have a reward and are known to be right or wrong."""
    best: float
    """By the reply with the highest reward; equally high ones share."""
    low: float
    high: float
    """95 % interval of it."""
    majority: float
    """By the answer that most replies give; as many share."""
    drawn: float
    """By a reply drawn at random."""
    gain: Estimate
    """Best minus majority, paired."""


def picks(found: Rewarded, rights: Mapping[Item, bool | None]) -> Picks | None:
    """None where no question has several known replies."""
    rewards = iter(found.rewards)
    known = [
        [
            (reward.value, one.answer, right)
            for one, reward in ((one, next(rewards)) for one in part.candidates)
            if reward.value is not None and (right := rights.get((reward.attempt_id, reward.turn))) is not None
        ]
        for part in found.asked
    ]
    several = [each for each in known if len(each) > 1]
    if not several:
        return None
    best, majority = [_best(each) for each in several], [_majority(each) for each in several]
    drawn = [_share([right for *_, right in each]) for each in several]
    low, high = wilson(math.fsum(best), len(best))
    return Picks(
        len(several), _share(best), low, high, _share(majority), _share(drawn),
        paired_difference(best, majority, seed=found.config.seed),
    )  # fmt: skip


_Known = Sequence[tuple[float, str | None, bool]]
"""Reward, answer, and whether it is right."""


def _best(replies: _Known) -> float:
    """
    >>> _best([(0.9, "7", True), (0.9, "8", False), (0.1, "8", False)])
    0.5
    """
    highest = max(value for value, *_ in replies)
    return _share([right for value, _, right in replies if value == highest])


def _majority(replies: _Known) -> float:
    """No answer at all is wrong.

    >>> _majority([(0.9, "7", True), (0.9, "8", False), (0.1, "8", False)])
    0.0
    """
    votes = Counter(answer for _, answer, _ in replies if answer is not None)
    leaders = [answer for answer, count in votes.items() if count == max(votes.values())]
    rights = {answer: right for _, answer, right in replies}
    return _share([rights[answer] for answer in leaders]) if leaders else 0.0


def _share(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
