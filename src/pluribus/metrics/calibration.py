"""Is a stated confidence true, and what is gained by leaving the unsure questions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluribus.stats import wilson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """Questions kept from the surest down; equal confidences are kept together."""

    threshold: tuple[float, ...]
    """Descending: all questions of at least this confidence are kept."""
    coverage: tuple[float, ...]
    """Share of the questions kept, ascending to 1."""
    risk: tuple[float, ...]
    """1 − accuracy on the kept part."""
    area: float
    """Area under risk over coverage, in [0, 1]; lower is better."""


def expected_calibration_error(confidence_Q: Sequence[float], right_Q: Sequence[float], bins: int = 10) -> float:
    """How far stated confidence and accuracy lie apart.

    Σ_b (n_b / n) |mean right in b − mean confidence in b| over bins of equal width, [0, 1/B), …, [1 − 1/B, 1].

    >>> round(expected_calibration_error([0.9, 0.9, 0.5, 0.5], [1, 1, 1, 0]), 3)
    0.05

    Args:
        confidence_Q: in [0, 1].
        right_Q: how right each answer was, in [0, 1].
        bins: B, at least 1.

    Returns: in [0, 1]. It is never 0 by chance alone: with few questions in a bin a true confidence, too, has some
        error, about √(p (1 − p) / n_b) in each. One constant confidence at the base rate has none, though it tells
        nothing: read it beside `brier` or `risk_coverage`.

    Source: Naeini, Cooper and Hauskrecht 2015, AAAI, 2901–2907; Guo et al. 2017, 1706.04599.
    """
    import numpy as np

    confidence, right = _checked(confidence_Q, right_Q)
    if bins < 1:
        raise ValueError(f"{bins} bins: expected at least 1")
    bin_Q = np.searchsorted(np.arange(1, bins) / bins, confidence, side="right")
    apart_B = np.bincount(bin_Q, right, bins) - np.bincount(bin_Q, confidence, bins)
    return float(np.abs(apart_B).sum() / len(right))


def brier(confidence_Q: Sequence[float], right_Q: Sequence[float]) -> float:
    """Mean squared distance of confidence and result: (1/n) Σ (c_q − r_q)².

    >>> round(brier([0.9, 0.9, 0.5, 0.5], [1, 1, 1, 0]), 3)
    0.13

    Args: as for `expected_calibration_error`.

    Returns: in [0, 1]; least in expectation for the true chances, so it rewards both truth and sharpness.

    Source: Brier 1950, Mon. Weather Rev. 78, 1–3.
    """
    confidence, right = _checked(confidence_Q, right_Q)
    return float(((confidence - right) ** 2).mean())


def risk_coverage(confidence_Q: Sequence[float], right_Q: Sequence[float]) -> RiskCoverage:
    """Risk of the answers that are kept, for every share of them that can be kept.

    At threshold t: coverage = share of questions with c_q ≥ t, risk = 1 − their mean right. The area is the mean over
    the questions of the risk at their own confidence.

    >>> risk_coverage([0.9, 0.9, 0.5, 0.5], [1, 1, 1, 0])
    RiskCoverage(threshold=(0.9, 0.5), coverage=(0.5, 1.0), risk=(0.0, 0.25), area=0.125)

    Args: as for `expected_calibration_error`; only the order of the confidences matters.

    Source: El-Yaniv and Wiener 2010, J. Mach. Learn. Res. 11, 1605–1641; Geifman and El-Yaniv 2017, 1705.08500.
    """
    import numpy as np

    threshold, kept, right = _kept(*_checked(confidence_Q, right_Q))
    coverage, risk = kept / kept[-1], 1 - right / kept
    area = float(np.diff(coverage, prepend=0.0) @ risk)
    return RiskCoverage(tuple(threshold.tolist()), tuple(coverage.tolist()), tuple(risk.tolist()), area)


def abstain_below(
    confidence_Q: Sequence[float], right_Q: Sequence[float], accuracy: float, *, confidence: float = 0.95
) -> float | None:
    """The least confidence to answer at, so that what is answered is as accurate as wanted.

    The lowest threshold t whose questions with c_q ≥ t have a Wilson interval of their accuracy that lies at or above
    the target.

    >>> chances, results = [0.9] * 60 + [0.5] * 40, [1] * 59 + [0] + [1] * 20 + [0] * 20
    >>> [abstain_below(chances, results, target) for target in (0.7, 0.9, 0.99)]
    [0.5, 0.9, None]

    Args:
        confidence_Q, right_Q: of a calibration set, as for `expected_calibration_error`.
        accuracy: wanted of the answers kept, in (0, 1).
        confidence: of the interval, in (0, 1); its lower end alone holds with (1 + confidence) / 2.

    Returns: answer where the confidence is at least this, else abstain; None: no threshold is shown to reach it. The
        bound is that of one threshold, and the lowest of many is taken. At 0.95 one look fails in 0.025 of calibration
        sets. In simulations the search failed in 0 to 0.03 where the confidence tells right from wrong; where it tells
        nothing and the accuracy is just below the target, in 0.03 to 0.07 with 3 to 5 different confidences, and in up
        to 0.18 with 1,000 (100 to 1,000 questions).

    Source: selection with guaranteed risk, Geifman and El-Yaniv 2017, 1705.08500, with another bound and search.
    """
    if not 0 < accuracy < 1:
        raise ValueError(f"accuracy {accuracy} is not in (0, 1)")
    threshold, kept, right = _kept(*_checked(confidence_Q, right_Q))
    for at, n, good in zip(threshold[::-1].tolist(), kept[::-1].tolist(), right[::-1].tolist(), strict=True):
        if wilson(min(good, n), n, confidence)[0] >= accuracy:
            return float(at)
    return None


def _kept(
    confidence: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Thresholds descending; how many questions are kept at each, and the sum of their results."""
    import numpy as np

    at_G, group_Q, n_G = np.unique(confidence, return_inverse=True, return_counts=True)
    sum_G = np.bincount(group_Q.reshape(-1), right)
    return at_G[::-1], n_G[::-1].cumsum(), sum_G[::-1].cumsum()


def _checked(
    confidence_Q: Sequence[float], right_Q: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np

    confidence, right = np.asarray(confidence_Q, dtype=np.float64), np.asarray(right_Q, dtype=np.float64)
    if confidence.shape != right.shape or confidence.ndim != 1 or not confidence.size:
        raise ValueError(f"{len(confidence)} confidences and {len(right)} results: expected one each per question")
    for name, values in (("confidences", confidence), ("results", right)):
        outside = ~((values >= 0) & (values <= 1))
        if outside.any():
            place = int(outside.argmax())
            raise ValueError(f"{name}: {values[place]} of question {place} is not in [0, 1]")
    return confidence, right
