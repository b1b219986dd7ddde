"""What views share: which replies may be learned from, and which of several is the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pluribus.codec import content_id
from pluribus.consensus.pairs import near_duplicates
from pluribus.distil import CUT_OFF, NO_LABEL, Case, Trace
from pluribus.types import Demonstration

COPY = "right replies that repeat an earlier one to the same question"


def right(case: Case, left_out: Counter[str]) -> list[Trace]:
    """The right replies to learn by heart, counting what else there is."""
    left_out[NO_LABEL] += sum(one.correct is None for one in case.traces)
    good = [one for one in case.traces if one.correct]
    left_out[CUT_OFF] += sum(one.cut_off for one in good)
    return [one for one in good if not one.cut_off]


def best_first(traces: Sequence[Trace], seed: int) -> list[Trace]:
    """What the council decided comes first, then by reward, then the later round; what is equal, in a drawn order.

    >>> early, late = Trace("r", "a", 0, "2"), Trace("r", "a", 1, "2", round=1)
    >>> [one.turn for one in best_first([early, late], 0)]
    [1, 0]
    """
    return sorted(traces, key=lambda one: (not one.decided, -_reward(one), -one.round, draw(one, seed)))


def _reward(one: Trace) -> float:
    """A reply without a reward stands behind every one that has one."""
    return -1.0 if one.reward is None or one.reward.value is None else one.reward.value


def draw(one: Trace, seed: int) -> str:
    """What replies are sorted by to be in a drawn order."""
    return content_id([seed, one.attempt_id, one.turn])


def different(traces: Sequence[Trace], threshold: float | None, left_out: Counter[str]) -> list[Trace]:
    """The replies without those that say (nearly) what an earlier one says.

    Args:
        threshold: share of common word 5-grams from which a reply is a copy, in (0, 1]; None: the same words only.
    """
    marks = near_duplicates([one.text for one in traces], ["q"] * len(traces), threshold=threshold or 1.0)
    kept = [one for one, copy in zip(traces, marks.tolist(), strict=True) if not copy]
    left_out[COPY] += len(traces) - len(kept)
    return kept


def demonstration(case: Case, one: Trace, text: str | None = None) -> Demonstration:
    """One reply as it was said, or with another text in its place."""
    said = one.text if text is None else text
    return Demonstration(case.question.id, said, one.attempt_id, one.turn, one.correct, one.corrective)


def repeated(examples: Sequence[Demonstration], weight: int) -> tuple[Demonstration, ...]:
    """Corrective replies as often as they are to count."""
    return tuple(one for one in examples for _ in range(weight if one.corrective else 1))


def check_weight(weight: int) -> None:
    """ValueError below 1."""
    if weight < 1:
        raise ValueError(f"corrective_weight is {weight}; expected 1 or more")


def check_share(threshold: float | None) -> None:
    """ValueError outside (0, 1]."""
    if threshold is not None and not 0 < threshold <= 1:
        raise ValueError(f"near_duplicates is {threshold:g}; expected a share above 0, at most 1")


LABEL_HINT = "take questions with keys, or label the replies with: pluribus label RUN --judge MODEL"
