"""From a U-statistic to advantages: what each sample's log-probability is to be multiplied with.

Y = (y_1 … y_n) are independent samples of a policy, h_k(S) the value of k samples under the inference procedure,
U_k its mean over all k-subsets, U_k^{−i} the same without sample i, h_0 = 0. In the sum form g = Σ_i A_i ∇ log π(y_i),

| estimator | A_i | needs | Σ A_i |
|---|---|---|---|
| naive | h_k(Y) | n = k | |
| loo | h_k(Y) − h_{k−1}(Y without i) | n = k | |
| loo1 | U_k − ((n − k) U_k^{−i} + k U_{k−1}^{−i}) / n | n ≥ k ≥ 2 | |
| urloo | U_k − U_k^{−i} | n > k | 0 |

and each has E[g] = ∇ E[U_k] = ∇ J_k: what is subtracted from i's own part of k U_k does not depend on y_i. At n = k,
loo1 is loo; at k = 1, urloo is RLOO. Only urloo may be centred by a trainer: it is already.

Source: loo of Tang et al. 2025, arXiv 2503.19595; loo1 of Walder and Karkhanis 2025, arXiv 2505.15201; RLOO of Kool et
al. 2019 (Buy 4 REINFORCE samples, get a baseline for free).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ESTIMATORS = ("naive", "loo", "loo1", "urloo")


class Statistic(Protocol):
    """What an objective knows of one group."""

    def value(self, k: int) -> float:
        """U_k."""

    def loo1(self, k: int) -> NDArray[np.float64]:
        """What i adds to the subsets that hold it, (1 / C(n, k)) Σ_{S with i} (h_k(S) − h_{k−1}(S without i)): (n,)."""

    def urloo(self, k: int) -> NDArray[np.float64]:
        """U_k − U_k^{−i}, for k < n: (n,)."""


def check(estimator: str, n: int, k: int) -> None:
    """Raises ValueError where the estimator is not there for n samples and k.

    >>> check("urloo", 4, 4)
    Traceback (most recent call last):
    ValueError: estimator urloo needs more samples than k: n is 4 and k is 4; use loo or loo1
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"unknown estimator {estimator!r}: expected one of {', '.join(ESTIMATORS)}")
    if estimator in ("naive", "loo") and k < n:
        raise ValueError(f"estimator {estimator} needs as many samples as k: n is {n} and k is {k}; use loo1 or urloo")
    if estimator == "loo1" and k == 1:
        raise ValueError("estimator loo1 has no baseline at k = 1: expected k of at least 2; use urloo, which is RLOO")
    if estimator == "urloo" and k == n:
        raise ValueError(f"estimator urloo needs more samples than k: n is {n} and k is {k}; use loo or loo1")


def estimate(statistic: Statistic, estimator: str, n: int, k: int) -> NDArray[np.float64]:
    """A_i of one group, (n,)."""
    import numpy as np

    if estimator == "naive":
        return np.full(n, statistic.value(k))
    return statistic.urloo(k) if estimator == "urloo" else statistic.loo1(k)
