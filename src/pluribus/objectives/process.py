"""Process rewards: what each step of a reply adds, from a process reward model's scores of its steps.

Shapes: _T steps of one reply. p_t = P(good) − P(bad) ∈ [−1, 1] is a step's score, ℓ_t its tokens.

    credit      r_t = w_t p_t,  w = softmax(−p / τ), τ = 0.1: the worst step counts, softly
    baseline    step:  r_t − mean over the other samples j of (Σ_s r_js / their steps)
                token: r_t − ℓ_t · (Σ_j Σ_s r_js) / (Σ_j Σ_s ℓ_js), both over the other samples j
    advantage   A_t = Σ_{s ≥ t} r_s: for every token of step t

Both baselines leave the sample itself out, and each step or token still to come pays them. How many are to come is the
policy's own choice, so what is paid is not the same whatever it does, and the gradient is that of Σ r minus a price of
length: where the others' rewards are above 0 a policy is drawn to shorter replies, where they are below 0 to longer
ones. Length is to be watched, see `pluribus.training.grpo`.

Source: Cheng et al. 2025, "Stop Summation: Min-Form Credit Assignment Is All Process Reward Model Needs for Reasoning"
(PURE), arXiv 2504.15275; used for process-aware distillation by Luo et al. 2026, arXiv 2602.03955.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Baseline = Literal["step", "token"]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
TEMPERATURE = 0.1


def credit(scores_T: Sequence[float], temperature: float = TEMPERATURE) -> NDArray[np.float64]:
    """Each step's reward: r_t = softmax_t(−p_t / τ) p_t. Their sum is a soft minimum of the scores.

    >>> credit([0.9, -0.5, 0.8]).round(4).tolist()
    [0.0, -0.5, 0.0]
    >>> credit([0.2, 0.2]).tolist()
    [0.1, 0.1]

    Args:
        scores_T: in [−1, 1], at least one.
        temperature: τ > 0; the larger, the more the reward is shared by all steps.

    Returns: (T,), the sum within [min p, mean p].

    Raises ValueError on no step, a score out of range, and a temperature that is not above 0.
    """
    import numpy as np

    p_T = np.asarray(scores_T, np.float64)
    if p_T.ndim != 1 or not p_T.size:
        raise ValueError(f"scores have the shape {p_T.shape}: expected one per step, and at least one step")
    for step, score in enumerate(p_T.tolist()):
        if not -1 <= score <= 1:
            raise ValueError(f"score of step {step} is {score!r}: expected P(good) - P(bad), from -1 to 1")
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature!r}: expected a number above 0")
    weight_T = np.exp(-(p_T - p_T.min()) / temperature)
    credits: NDArray[np.float64] = weight_T / weight_T.sum() * p_T
    return credits


def process_advantages(
    scores: Sequence[Sequence[float] | None],
    tokens: Sequence[Sequence[int]],
    baseline: Baseline,
    temperature: float = TEMPERATURE,
) -> list[NDArray[np.float64] | None]:
    """What each step's tokens of each sample are reinforced with; see the head of this module.

    >>> first, second = process_advantages([[0.5], [-0.5, 0.9]], [[4], [2, 6]], "step")
    >>> first.round(3).tolist(), second.round(3).tolist()
    ([0.75], [-1.5, -0.5])

    Args:
        scores: of the samples of one prompt, step by step, in [−1, 1]; None: the sample was not scored, and is in
            nobody's baseline.
        tokens: of each step of each sample, at least 0.
        baseline: `step` or `token`.
        temperature: of `credit`.

    Returns: one array per sample, (its steps,); None where it was not scored. A sample that was scored alone has the
        baseline 0.

    Raises ValueError on an unknown baseline, unequal lengths, and as `credit` does.
    """
    if baseline not in BASELINES:
        raise ValueError(f"unknown baseline {baseline!r}: expected one of {', '.join(BASELINES)}")
    if len(scores) != len(tokens):
        raise ValueError(f"{len(tokens)} rows of tokens for {len(scores)} of scores: expected one per sample")
    for sample, (said, lengths) in enumerate(zip(scores, tokens, strict=True)):
        if said is not None and len(said) != len(lengths):
            raise ValueError(f"sample {sample} has {len(said)} scores for {len(lengths)} steps")
    known = {i: credit(said, temperature) for i, said in enumerate(scores) if said is not None}
    size = {i: float(len(known[i]) if baseline == "step" else max(sum(tokens[i]), 1)) for i in known}
    found: list[NDArray[np.float64] | None] = []
    for i, lengths in enumerate(tokens):
        others = [j for j in known if j != i]
        found.append(None if i not in known else _returns(known, size, i, others, lengths, baseline))
    return found


def _returns(
    known: dict[int, NDArray[np.float64]],
    size: dict[int, float],
    i: int,
    others: Sequence[int],
    tokens_T: Sequence[int],
    baseline: Baseline,
) -> NDArray[np.float64]:
    """Sums of what is left of the rewards, from each step to the last."""
    import numpy as np

    sums = {j: float(known[j].sum()) for j in others}
    if not others:
        less_T = np.zeros(len(tokens_T))
    elif baseline == "step":
        less_T = np.full(len(tokens_T), sum(sums[j] / size[j] for j in others) / len(others))
    else:
        less_T = np.asarray(tokens_T, np.float64) * (sum(sums.values()) / sum(size[j] for j in others))
    returns: NDArray[np.float64] = np.cumsum((known[i] - less_T)[::-1])[::-1]
    return returns
