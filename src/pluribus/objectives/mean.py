"""The mean reward of k samples: what is deployed is one sample, so every k has the same value and gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Mean:
    """U_k = mean r.

    >>> Mean([1.0, 0.0, 0.0, 0.0]).urloo(2).tolist()
    [0.25, -0.08333333333333333, -0.08333333333333333, -0.08333333333333333]
    """

    rewards: Sequence[float]

    def value(self, k: int) -> float:
        import numpy as np

        return float(np.mean(self.rewards))

    def loo1(self, k: int) -> NDArray[np.float64]:
        """(r_i − mean of the others) / n, which is (r_i − mean r) / (n − 1); of one sample alone r."""
        import numpy as np

        rewards = np.array(self.rewards)
        if k == 1:
            return rewards / len(rewards)
        out: NDArray[np.float64] = (rewards - rewards.mean()) / (len(rewards) - 1)
        return out

    def urloo(self, k: int) -> NDArray[np.float64]:
        """The same: RLOO, for every k."""
        return self.loo1(2)
