"""How sure one can be of a decision: the council's support turned into a chance of being right."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pluribus.errors import UnknownName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["isotonic", "platt"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_STEPS = 100
"""Newton steps at most; a few are enough."""
_SMALL = 1e-12


@dataclass(frozen=True, slots=True)
class Calibration:
    """Support → chance of being right."""

    kind: Kind
    points: tuple[tuple[float, float], ...] = ()
    """isotonic: (support, confidence), both ascending; between them a straight line."""
    slope: float | None = None
    intercept: float | None = None
    """platt: confidence = 1 / (1 + exp(−(slope · support + intercept)))."""
    n: int = 0
    """Questions it was fitted on."""


def support(counts: Mapping[str, float], total: float) -> float:
    """The leader's part of all weight, abstainers' included, in [0, 1]; 0 when nobody answered.

    max_a counts_a / total.

    >>> support({"4": 3.0, "5": 1.0}, 5.0), support({}, 5.0)
    (0.6, 0.0)

    Args:
        counts: answer → votes or weight, at least 0.
        total: weight of all who were asked, at least the sum of the counts. Three voters of five who agree while two
            are silent are less sure than five who agree, so who is silent counts here, though not in a vote's share.

    Raises ValueError where counts and total can not belong together.
    """
    cast = math.fsum(counts.values())
    if min(counts.values(), default=0.0) < 0 or not cast <= total * (1 + 1e-9) or not math.isfinite(total):
        raise ValueError(f"counts {dict(counts)} of a total of {total}: expected counts of at least 0 within the total")
    return min(1.0, max(counts.values()) / total) if cast > 0 else 0.0


def fit(support_Q: Sequence[float], right_Q: Sequence[float], kind: str = "isotonic") -> Calibration:
    """Fits the chance of being right on questions whose right answers are known.

    isotonic: the non-decreasing function of support with the least squared error, by pooling adjacent violators.
        Two made-up questions speak against it: one right at the least support, one wrong at the greatest. So n
        questions never give more than (n + 1) / (n + 2), nor less than 1 / (n + 2), and a small group at an end is
        pooled with its neighbours until it holds on its own.
    platt: the logistic function of support with the greatest likelihood, by Newton's method; a right answer counts as
        (R + 1) / (R + 2) right, a wrong one as 1 / (W + 2), for R right and W wrong answers. Its slope is at least 0:
        where more support goes with fewer right answers, all questions get one confidence.

    Questions of equal support are one point in both.

    >>> fit([0.4, 0.6, 0.6, 1.0], [0, 1, 0, 1]).points
    ((0.4, 0.5), (1.0, 0.5))
    >>> found = fit([0.4, 0.6, 1.0] * 20, [0, 0, 1] * 20)
    >>> [(support, round(chance, 3)) for support, chance in found.points]
    [(0.4, 0.024), (0.6, 0.024), (1.0, 0.952)]

    Args:
        support_Q: per question, in [0, 1], as `support` gives it.
        right_Q: how right the decision was, in [0, 1]; fractional where a tie gave part of the credit.
        kind: isotonic (any shape; needs a few hundred questions) or platt (one shape; a few dozen do).

    Raises UnknownName on another kind, ValueError on no questions, or on values outside [0, 1].

    Source: isotonic, Ayer et al. 1955, Ann. Math. Stat. 26, 641–647, and Zadrozny and Elkan 2002, KDD, 694–699;
        Platt 1999, Advances in Large Margin Classifiers, 61–74, computed as by Lin, Lin and Weng 2007, Mach. Learn.
        68, 267–276.
    """
    import numpy as np

    if kind not in KINDS:
        raise UnknownName("kind of calibration", kind, KINDS)
    _check_pairs(support_Q, right_Q, "supports")
    at_G, group_Q, counts = np.unique(np.asarray(support_Q, dtype=np.float64), return_inverse=True, return_counts=True)
    n_G = np.asarray(counts, dtype=np.float64)
    sum_G = np.bincount(group_Q.reshape(-1), np.asarray(right_Q, dtype=np.float64)).astype(np.float64)
    return (_platt if kind == "platt" else _isotonic)(at_G, sum_G, n_G)


def confidence(calibration: Calibration, support: float) -> float:
    """The chance of being right at a support, in (0, 1).

    >>> confidence(Calibration("isotonic", ((0.4, 0.2), (0.8, 0.6))), 0.5)
    0.3
    >>> confidence(Calibration("platt", slope=0.0, intercept=0.0), 0.9)
    0.5

    Args:
        support: in [0, 1]; below the first and above the last point of an isotonic fit, that point's confidence.

    Raises ValueError on a support outside [0, 1], and on a calibration without its numbers.
    """
    if not 0 <= support <= 1:
        raise ValueError(f"support {support} is not in [0, 1]")
    if calibration.slope is not None and calibration.intercept is not None:
        return _sigmoid(calibration.slope * support + calibration.intercept)
    if not calibration.points:
        raise ValueError(f"a {calibration.kind} calibration without its numbers; make it with fit")
    return _between(calibration.points, support)


def _check_pairs(chance_Q: Sequence[float], right_Q: Sequence[float], what: str) -> None:
    """ValueError unless both hold one number in [0, 1] per question, for at least one question."""
    if len(chance_Q) != len(right_Q) or not len(chance_Q):
        raise ValueError(f"{len(chance_Q)} {what} and {len(right_Q)} results: expected one each per question")
    for name, values in ((what, chance_Q), ("results", right_Q)):
        for place, value in enumerate(values):
            if not 0 <= value <= 1:
                raise ValueError(f"{name}: {value} of question {place} is not in [0, 1]")


def _between(points: Sequence[tuple[float, float]], support: float) -> float:
    place = bisect_left(points, support, key=lambda point: point[0])
    if place == 0:
        return points[0][1]
    if place == len(points):
        return points[-1][1]
    (left, low), (right, high) = points[place - 1], points[place]
    return low + (high - low) * (support - left) / (right - left)


def _sigmoid(x: float) -> float:
    """Kept off 0 and 1, where rounding would put it for |x| above 36."""
    odds = math.exp(-abs(x))
    low = max(odds / (1 + odds), _SMALL)
    return 1 - low if x > 0 else low


# --- isotonic --------------------------------------------------------------------------------------------------------


def _isotonic(at_G: NDArray[np.float64], sum_G: NDArray[np.float64], n_G: NDArray[np.float64]) -> Calibration:
    questions = int(n_G.sum())
    sum_G, n_G = sum_G.copy(), n_G.copy()
    sum_G[0] += 1
    n_G[0] += 1
    n_G[-1] += 1
    points: list[tuple[float, float]] = []
    for first, last, chance in _pooled(sum_G.tolist(), n_G.tolist()):
        points.append((float(at_G[first]), chance))
        if last > first:
            points.append((float(at_G[last]), chance))
    return Calibration("isotonic", tuple(points), n=questions)


def _pooled(sums: Sequence[float], counts: Sequence[float]) -> list[tuple[int, int, float]]:
    """(first group, last group, mean) of the blocks left after pooling adjacent violators; means ascend."""
    blocks: list[tuple[int, float, float]] = []
    for place, (total, count) in enumerate(zip(sums, counts, strict=True)):
        first = place
        while blocks and blocks[-1][1] * count >= total * blocks[-1][2]:
            first, before, many = blocks.pop()
            total, count = total + before, count + many
        blocks.append((first, total, count))
    ends = [first - 1 for first, _, _ in blocks[1:]] + [len(sums) - 1]
    return [(first, last, total / count) for (first, total, count), last in zip(blocks, ends, strict=True)]


# --- Platt -----------------------------------------------------------------------------------------------------------


def _platt(at_G: NDArray[np.float64], sum_G: NDArray[np.float64], n_G: NDArray[np.float64]) -> Calibration:
    right, n = float(sum_G.sum()), float(n_G.sum())
    wrong = n - right
    target_G = sum_G * ((right + 1) / (right + 2)) + (n_G - sum_G) / (wrong + 2)
    middle = float(at_G @ n_G / n)  # without it, slope and intercept of a narrow range are nearly the same thing
    slope, height = _newton(at_G - middle, target_G, n_G)
    if slope < 0:
        mean = float(target_G.sum() / n)
        slope, height = 0.0, math.log(mean / (1 - mean))
    return Calibration("platt", slope=slope, intercept=height - slope * middle, n=int(n))


def _newton(x_G: NDArray[np.float64], target_G: NDArray[np.float64], n_G: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and intercept of the greatest likelihood; a step that does not lower the loss is halved."""
    import numpy as np

    design_G_2 = np.column_stack([x_G, np.ones_like(x_G)])
    weights: NDArray[np.float64] = np.zeros(2)
    loss = _loss(design_G_2 @ weights, target_G, n_G)
    for _ in range(_STEPS):
        chance_G = 1 / (1 + np.exp(-design_G_2 @ weights))
        slope_2 = design_G_2.T @ (target_G - n_G * chance_G)
        if np.abs(slope_2).max() < 1e-10 * n_G.sum():
            break
        bend_2_2 = design_G_2.T @ ((n_G * chance_G * (1 - chance_G))[:, None] * design_G_2) + _SMALL * np.eye(2)
        step_2 = np.asarray(np.linalg.solve(bend_2_2, slope_2), dtype=np.float64)
        weights, loss = _shorter(weights, step_2, loss, design_G_2, target_G, n_G)
    return float(weights[0]), float(weights[1])


def _shorter(
    weights: NDArray[np.float64],
    step_2: NDArray[np.float64],
    loss: float,
    design_G_2: NDArray[np.float64],
    target_G: NDArray[np.float64],
    n_G: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    for halvings in range(40):
        tried = weights + step_2 / 2**halvings
        found = _loss(design_G_2 @ tried, target_G, n_G)
        if found <= loss:
            return tried, found
    return weights, loss


def _loss(logit_G: NDArray[np.float64], target_G: NDArray[np.float64], n_G: NDArray[np.float64]) -> float:
    """− Σ (target log p + (n − target) log (1 − p))."""
    import numpy as np

    return float((n_G * np.logaddexp(0, logit_G) - target_G * logit_G).sum())
