"""Groups and policies on which the objectives are tested: ties, abstentions, negative and graded rewards."""

from __future__ import annotations

import numpy as np
from tests.objectives.reference import Policy, Sample, Samples


def spelled(letters: str, **rewards: float) -> Samples:
    """One sample per letter, `-` abstains; an answer without a reward is worth 0."""
    return tuple(Sample(None, 0.0) if one == "-" else Sample(one, rewards.get(one, 0.0)) for one in letters)


def drawn(n: int, seed: int, rewards: tuple[float, ...] = (1.0, 0.0, -0.5, 0.25), abstain: float = 0.2) -> Samples:
    """A random group: one answer per reward, scores and weights from few values so that they tie."""
    rng = np.random.default_rng([n, seed])
    picks = rng.integers(len(rewards), size=n)
    silent = rng.random(n) < abstain
    scores, weights = rng.integers(3, size=n) / 2, rng.integers(1, 4, size=n) / 2
    return tuple(
        Sample(None if silent[i] else "ABCDEFGH"[picks[i]], rewards[picks[i]], float(scores[i]), float(weights[i]))
        for i in range(n)
    )


BINARY = (1.0, 0.0, 0.0)
GROUPS: dict[str, Samples] = {
    "one right": spelled("A", A=1.0),
    "one abstains": spelled("-"),
    "all abstain": spelled("-----"),
    "all agree": spelled("AAAAAA", A=0.75),
    "all differ": spelled("ABCDEF", A=1.0, B=-1.0, C=0.5),
    "pairs tie": spelled("AABBCC", A=1.0, C=0.25),
    "a lead of one": spelled("AAABB-C-", A=-2.0, B=3.0),
    "two right answers": spelled("AABBCCC", A=1.0, B=1.0),
    "silence is rewarded": (Sample(None, 1.0), Sample(None, -1.0), *spelled("AAB-", A=0.5, B=-0.5)),
    "scores tie": tuple(Sample("AB"[i % 2], float(i % 2), float(i // 3)) for i in range(8)),
    "one score": tuple(Sample("AB"[i % 2], float(i % 2), 1.5) for i in range(5)),
    "weights tie": (Sample("A", 1.0, 0.0, 2.0), Sample("B", 0.0), Sample("B", 0.0), Sample("C", 0.5, 0.0, 2.0)),
    "reward falls with score": tuple(Sample("ABCDEF"[i], 1.0 - i, float(i)) for i in range(6)),
    **{f"graded {n}": drawn(n, 0) for n in range(1, 9)},
    **{f"binary {n}": drawn(n, 1, BINARY) for n in range(1, 9)},
    **{f"negative {n}": drawn(n, 2, (-1.0, -2.5, -0.125), 0.4) for n in range(2, 9, 2)},
    **{f"many answers {n}": drawn(n, 3, (0.5, -1.0, 2.0, 0.0, 0.5, 1.0, -3.0, 0.25), 0.1) for n in (7, 8)},
}

POLICIES: dict[str, Policy] = {
    "binary": Policy((Sample("A", 1.0, 0.5), Sample("B", 0.0, 1.0), Sample("C", 0.0, -1.0)), (0.3, -0.2, 0.1)),
    "abstains": Policy(
        (Sample("A", 1.0, 1.0, 1.5), Sample("B", 0.0, 1.0, 1.0), Sample(None, 0.0, 2.0, 1.0)), (-0.4, 0.2, 0.5)
    ),
    "graded": Policy(
        (
            Sample("A", 0.7, 0.25, 0.5),
            Sample("B", 0.7, 0.5, 1.0),
            Sample("C", -0.4, 0.5, 1.5),
            Sample("D", 0.1, 0.75, 1.0),
        ),
        (0.1, -0.3, 0.4, 0.0),
    ),
    "negative": Policy(
        (Sample("A", -1.0, 3.0, 2.0), Sample("B", -2.5, 2.0, 1.0), Sample("C", -0.25, 1.0, 1.0)), (0.0, 0.6, -0.7)
    ),
    "one answer in two texts": Policy(
        (
            Sample("A", 1.0, 0.2, 1.0),
            Sample("A", 1.0, 0.9, 2.0),
            Sample("B", 0.0, 0.9, 1.5),
            Sample("C", 0.0, 0.1, 1.5),
            Sample(None, 1.0, 0.9, 3.0),
        ),
        (0.2, -0.5, 0.6, 0.0, -0.3),
    ),
}


def fits(objective: str, samples: Samples) -> bool:
    """pass@k is for rewards of 0 and 1."""
    return objective != "pass" or {one.reward for one in samples} <= {0.0, 1.0}
