"""What is watched while a policy learns from its own samples, and when to worry. No torch here.

Shapes: _G prompts, _N samples of each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from pluribus import objectives
from pluribus.diversity import answers as answer_diversity
from pluribus.diversity.kstar import kstar_batch
from pluribus.embedders import Embedder
from pluribus.training._grpo_samples import Sample, leaders
from pluribus.training.config import GrpoConfig

LOOKED_AT = 8
"""Prompts whose samples are embedded each time."""
WINDOW = 3
"""Logged values that stand for what it was at first, and for what it is now."""
COLLAPSE, SHORTER, HELD_OUT = "alarm/collapse", "alarm/shorter", "alarm/held_out"
WORDS: Mapping[str, str] = {
    COLLAPSE: "the samples of a prompt have become alike: raise temperature or kl, lower the learning rate, or stop",
    SHORTER: "replies have become much shorter than at first: look at some; PRM rewards can be won by saying less",
    HELD_OUT: "held-out questions are answered worse than at the start: the wrong mode may be reinforced; stop here",
}
"""Alarm → what it says."""


def metrics(
    config: GrpoConfig, groups_G_N: Sequence[Sequence[Sample]], k: int, embed: Embedder | None
) -> dict[str, float]:
    """Numbers of one batch of samples, by name; what can not be known of it is left out.

    Args:
        groups_G_N: samples with their rewards.
        k: samples that the deployed procedure sees; for `mean` all of the group are taken for pass@k and maj@k.
        embed: for K*; None: without it.
    """
    everyone = [one for group in groups_G_N for one in group]
    at = len(groups_G_N[0]) if config.objective == "mean" else k
    rights = [_rights(group) for group in groups_G_N]
    found: dict[str, float | None] = {
        "k": float(k),
        f"pass@{at}": _mean(_value(*each, "pass", at) for each in zip(groups_G_N, rights, strict=True)),
        f"maj@{at}": _mean(_value(*each, "majority", at) for each in zip(groups_G_N, rights, strict=True)),
        "accuracy": _mean(None if one.right is None else float(one.right) for one in everyone),
        "unanswered": fmean(one.answer is None for one in everyone),
        "unscored": fmean(one.reward is None for one in everyone),
        "agreement": _mean(_agreement(group) for group in groups_G_N),
        "answers": _mean(answer_diversity.effective_number([one.answer for one in group]) for group in groups_G_N),
        "steps_per_reply": _mean(float(len(one.ends)) if one.steps is not None else None for one in everyone),
        "steps_unscored": fmean(one.steps is None for one in everyone) if config.prm is not None else None,
        "step_score": _mean(None if one.steps is None else fmean(one.steps) for one in everyone),
        "kstar": kstar(groups_G_N[:LOOKED_AT], embed) if embed is not None else None,
    }  # fmt: skip
    if config.self_labelled:
        found["own_label_right"] = _mean(map(_lead_right, groups_G_N))
    return {name: float(value) for name, value in found.items() if value is not None}


def _mean(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _rights(group_N: Sequence[Sample]) -> list[float] | None:
    known = [float(one.right) for one in group_N if one.right is not None]
    return known if len(known) == len(group_N) else None


def _value(group_N: Sequence[Sample], rights: list[float] | None, objective: str, k: int) -> float | None:
    if rights is None or len(group_N) < k:
        return None
    return objectives.value(objectives.Group(rights, answers=[one.answer for one in group_N]), objective, k)


def _agreement(group_N: Sequence[Sample]) -> float | None:
    """Share of the answers that the most frequent one has."""
    votes = Counter(one.answer for one in group_N if one.answer is not None)
    return max(votes.values()) / sum(votes.values()) if votes else None


def _lead_right(group_N: Sequence[Sample]) -> float | None:
    """Whether the group's own label is right, a shared lead counting by its share."""
    lead = leaders([one.answer for one in group_N])
    right = {one.answer: one.right for one in group_N if one.answer in lead}
    if not lead or None in right.values():
        return None
    return fmean(float(bool(value)) for value in right.values())


def kstar(groups_G_N: Sequence[Sequence[Sample]], embed: Embedder) -> float:
    """Effective number of different replies to a prompt, the mean over prompts; in [1, N]."""
    vectors_M_D = embed([one.text or " " for group in groups_G_N for one in group])
    return float(np.mean(kstar_batch(vectors_M_D.reshape(len(groups_G_N), len(groups_G_N[0]), -1))))


# --- alarms ----------------------------------------------------------------------------------------------------------


def alarms(config: GrpoConfig, log: Sequence[Mapping[str, Any]]) -> list[str]:
    """The alarms that what was logged so far gives, and that were not given before.

    >>> log = [{"kstar": value} for value in (3.0, 3.0, 3.0, 1.2, 1.1, 1.1)]
    >>> alarms(GrpoConfig(), log)
    ['alarm/collapse']
    """
    given = {name for entry in log for name in entry if name in WORDS}
    found = []
    if _fell(log, "kstar", config.collapse_alarm, floor=1.0):
        found.append(COLLAPSE)
    if _fell(log, "completions/mean_length", config.length_alarm, floor=0.0):
        found.append(SHORTER)
    looks = [entry["eval_change_high"] for entry in log if "eval_change_high" in entry]
    if any(max(pair) < 0 for pair in pairwise(looks)):  # of one look alone chance says so too often
        found.append(HELD_OUT)
    return [name for name in found if name not in given]


def _fell(log: Sequence[Mapping[str, Any]], name: str, share: float, floor: float) -> bool:
    """Whether the mean of the last values, above a floor, is below a share of that of the first."""
    values = [entry[name] for entry in log if isinstance(entry.get(name), int | float)]
    if len(values) < 2 * WINDOW:
        return False
    return fmean(values[-WINDOW:]) - floor < share * (fmean(values[:WINDOW]) - floor)


def change(before: Mapping[int, float], now: Mapping[int, float]) -> tuple[float, float, float] | None:
    """Mean change over the questions that both have, with its 95 % interval (normal, paired); None: below two."""
    both = [now[place] - before[place] for place in now if place in before]
    if len(both) < 2:
        return None
    mean = fmean(both)
    wide = 1.96 * math.sqrt(sum((one - mean) ** 2 for one in both) / (len(both) - 1) / len(both))
    return mean, mean - wide, mean + wide


Score = Callable[[Sequence[Any], Sequence[Any]], Any]
"""A council of judges as TRL asks it: prompts, completions → rewards."""
