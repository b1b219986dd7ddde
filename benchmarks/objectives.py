"""Inference-time objectives: how fast, how exact, and how much less the gradient estimates vary.

    python benchmarks/objectives.py [--quick] [speed | exact | variance | bernoulli]

- speed: max@k and majority@k on one thread, in processor seconds, over counting subsets out one by one (at a size where
  that can be done) and over random subsets until their standard error is 0.001.
- exact: majority@k of 64 samples against rational arithmetic.
- variance: traces of the covariance of g = Σ A_i ∇ log π(y_i) at n = 16, over every group that a softmax policy can
  draw, so exactly. `naive` and `loo` see k samples at a time: they get the mean over ⌊16 / k⌋ disjoint groups, and
  naive also the other groups' mean as its baseline (`naive − others`). All are unbiased.
- bernoulli: variances at n = k against their closed forms.

Nothing is random but the inputs of `speed`, drawn by seed 0. Takes under a minute.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np

from pluribus.objectives import Group, advantages, value

N = 16
ERROR = 1e-3
SAME = 1e-12
Floats = np.ndarray


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """Best of several, in processor seconds."""
    took = []
    for _ in range(times):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


# --- speed -----------------------------------------------------------------------------------------------------------


def drawn(n: int, answers: int) -> Group:
    """Votes that fall off as 1 / rank, each answer with a reward of its own."""
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, answers + 1)
    picks, rewards = rng.choice(answers, n, p=chance / chance.sum()), rng.normal(size=answers)
    return Group(rewards[picks].tolist(), [str(pick) for pick in picks])


def vote(votes: Sequence[str], reward_of: dict[str, float]) -> float:
    counts: dict[str, int] = {}
    for answer in votes:
        counts[answer] = counts.get(answer, 0) + 1
    most = max(counts.values())
    leaders = [reward_of[answer] for answer, count in counts.items() if count == most]
    return sum(leaders) / len(leaders)


def counted_out(group: Group, k: int) -> Floats:
    """loo1 by going through every subset, once with and once without each of its members."""
    answers = [str(answer) for answer in group.answers or ()]
    reward_of = dict(zip(answers, group.rewards, strict=True))
    out = np.zeros(len(answers))
    for subset in itertools.combinations(range(len(answers)), k):
        votes = [answers[i] for i in subset]
        whole = vote(votes, reward_of)
        for at, i in enumerate(subset):
            out[i] += whole - vote(votes[:at] + votes[at + 1 :], reward_of)
    return out / math.comb(len(answers), k)


def counted_best(rewards: Sequence[float], k: int) -> Floats:
    out = np.zeros(len(rewards))
    for subset in itertools.combinations(range(len(rewards)), k):
        best, second = sorted((rewards[i] for i in subset), reverse=True)[:2]
        for i in subset:
            out[i] += (best - second) * (rewards[i] == best)
    return out / math.comb(len(rewards), k)


def random_subsets(group: Group, k: int, times: int) -> tuple[float, float]:
    """Mean vote of random subsets, vectorised, and the standard deviation of one."""
    rng = np.random.default_rng(0)
    names = {answer: i for i, answer in enumerate(dict.fromkeys(group.answers or ()))}
    hot = np.zeros((len(group.rewards), len(names)))
    hot[np.arange(len(hot)), [names[answer] for answer in group.answers or ()]] = 1
    rewards = (hot.T @ np.array(group.rewards)) / hot.sum(axis=0)
    picked = rng.random((times, len(hot))).argpartition(k, axis=1)[:, :k]
    members = np.zeros((times, len(hot)))
    np.put_along_axis(members, picked, 1.0, axis=1)
    votes = members @ hot
    lead = votes == votes.max(axis=1, keepdims=True)
    worth = lead @ rewards / lead.sum(axis=1)
    return float(worth.mean()), float(worth.std())


def speed(quick: bool) -> bool:
    reached = []
    rewards = np.random.default_rng(0).normal(size=16_384).tolist()
    for n, k, most in ((16_384, 16, 0.05), (16_384, 8_192, 0.05)):
        group = Group(rewards)
        took = {name: seconds(partial(advantages, group, "max", k, name)) for name in ("loo1", "urloo")}
        print(f"speed: max@{k:,}, n = {n:,}: {told(took)} (under {1e3 * most:.0f} ms)", flush=True)
        reached.append(max(took.values()) < most)
    for n, k, most in ((64, 32, 0.1), (128, 64, 0.5)):
        for answers in (4, n):
            group = drawn(n, answers)
            kinds = len(set(group.answers or ()))
            took = {name: seconds(partial(advantages, group, "majority", k, name)) for name in ("loo1", "urloo")}
            took["value"] = seconds(partial(value, group, "majority", k))
            print(
                f"speed: majority@{k}, n = {n}, {kinds} answers: {told(took)} (under {1e3 * most:.0f} ms)", flush=True
            )
            reached.append(max(took.values()) < most)
    reached += [over_counting("max", 14 if quick else 18), over_counting("majority", 14 if quick else 16)]
    over_random(20_000)
    return all(reached)


def told(took: dict[str, float]) -> str:
    return ", ".join(f"{name} {1e3 * spent:.1f} ms" for name, spent in took.items())


def over_counting(objective: str, n: int) -> bool:
    group, k = drawn(n, 5), n // 2
    if objective == "max":
        group = Group(np.random.default_rng(0).normal(size=n).tolist())
    ours = seconds(lambda: advantages(group, objective, k, "loo1"), 20)
    start = time.process_time()
    known = counted_best(group.rewards, k) if objective == "max" else counted_out(group, k)
    theirs = time.process_time() - start
    off = float(np.abs(known - advantages(group, objective, k, "loo1")).max())
    print(
        f"speed: {objective}@{k}, n = {n}: {1e3 * ours:.2f} ms; all {math.comb(n, k):,} subsets one by one "
        f"{theirs:.2f} s: {theirs / ours:,.0f} × faster; largest difference {off:.0e}",
        flush=True,
    )
    return off < SAME and theirs > ours


def over_random(times: int) -> None:
    group, k = drawn(64, 64), 32
    ours = seconds(lambda: value(group, "majority", k))
    theirs = seconds(lambda: random_subsets(group, k, times), 3)
    mean, deviation = random_subsets(group, k, times)
    needed = (deviation / ERROR) ** 2
    print(
        f"speed: value of majority@{k}, n = 64: {1e3 * ours:.1f} ms; random subsets to a standard error of {ERROR}: "
        f"{needed:,.0f} of them, {theirs / times * needed:.2f} s (scaled from {times:,}): "
        f"{theirs / times * needed / ours:,.0f} × faster; they say {mean:.3f}, we {value(group, 'majority', k):.3f}",
        flush=True,
    )


# --- exact -----------------------------------------------------------------------------------------------------------


def rational(counts: Sequence[int], rewards: Sequence[float], abstained: int, k: int) -> Fraction:
    """U_k of the majority in whole numbers: Σ_v of products that keep how many classes tie as a power of their own."""
    total = Fraction(0)
    for v in range(1, k + 1):
        states: dict[tuple[int, int], tuple[int, Fraction]] = {
            (u, 0): (math.comb(abstained, u), Fraction(0)) for u in range(min(abstained, k) + 1)
        }
        for count, reward in zip(counts, rewards, strict=True):
            states = with_class(states, count, Fraction(reward), v, k)
        total += sum((led / ties for (size, ties), (_, led) in states.items() if size == k and ties), Fraction(0))
    return total / math.comb(sum(counts) + abstained, k)


def with_class(
    states: dict[tuple[int, int], tuple[int, Fraction]], count: int, reward: Fraction, v: int, k: int
) -> dict[tuple[int, int], tuple[int, Fraction]]:
    """State (votes, classes with v) → ways, and Σ over them of the rewards of the classes with v."""
    out: dict[tuple[int, int], tuple[int, Fraction]] = {}
    for (size, ties), (ways, led) in states.items():
        for u in range(min(count, v, k - size) + 1):
            key, times = (size + u, ties + (u == v)), math.comb(count, u)
            before = out.get(key, (0, Fraction(0)))
            gained = led + (ways * reward if u == v else 0)
            out[key] = before[0] + times * ways, before[1] + times * gained
    return out


def exact(quick: bool) -> bool:
    cases = {
        "four answers": ((22, 18, 12, 8), (1.0, 0.0, 0.0, 0.5), 4),
        "an even race": ((16, 16, 16, 16), (1.0, 0.0, 0.0, -1.0), 0),
        "long tail": ((12, 9, 7, 5, 4, 3, 3, 2, 2, *(1,) * 13), (1.0, *(0.0,) * 21), 4),
    }
    worst, k = 0.0, 32
    for name, (counts, rewards, abstained) in list(cases.items())[: 1 if quick else 3]:
        answers = [str(i) for i, count in enumerate(counts) for _ in range(count)] + [None] * abstained
        paid = [rewards[i] for i, count in enumerate(counts) for _ in range(count)] + [0.0] * abstained
        group, n = Group(paid, answers), len(answers)
        u = rational(counts, rewards, abstained, k)
        fewer = (counts[0] - 1, *counts[1:])
        same, below = (rational(fewer, rewards, abstained, size) for size in (k, k - 1))
        off = [abs(Fraction(value(group, "majority", k)) - u)]
        known = {"loo1": u - Fraction(n - k, n) * same - Fraction(k, n) * below, "urloo": u - same}
        off += [abs(Fraction(float(advantages(group, "majority", k, one)[0])) - known[one]) for one in known]
        worst = max(worst, *map(float, off))
        words = ", ".join(f"{float(x):.0e}" for x in off)
        print(f"exact: majority@{k}, n = {n}, {name}: value, loo1, urloo off by {words}")
    print(f"exact: at most {worst:.0e} (under {SAME:.0e})", flush=True)
    return worst < SAME


# --- variance --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """A softmax over a few answers; None abstains. The first is right."""

    name: str
    p: tuple[float, ...]
    answers: tuple[str | None, ...]

    @property
    def rewards(self) -> tuple[float, ...]:
        return (1.0, *(0.0 for _ in self.p[1:]))

    def group(self, counts: Sequence[int]) -> Group:
        order = [i for i, count in enumerate(counts) for _ in range(count)]
        return Group([self.rewards[i] for i in order], [self.answers[i] for i in order])


POLICIES = (
    Policy("right 0.1", (0.1, 0.9), ("A", "B")),
    Policy("right 0.3", (0.3, 0.7), ("A", "B")),
    Policy("right 0.6", (0.6, 0.4), ("A", "B")),
    Policy("right 0.3, wrong 0.5 + 0.2", (0.3, 0.5, 0.2), ("A", "B", "C")),
    Policy("right 0.4, wrong 0.3 + 0.3", (0.4, 0.3, 0.3), ("A", "B", "C")),
    Policy("right 0.4, wrong 0.35, none 0.25", (0.4, 0.35, 0.25), ("A", "B", None)),
)


def draws(p: Sequence[float], n: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every way to draw n, as counts, with its chance."""
    for bars in itertools.combinations(range(n + len(p) - 1), len(p) - 1):
        edges = (-1, *bars, n + len(p) - 1)
        counts = tuple(b - a - 1 for a, b in itertools.pairwise(edges))
        ways = math.factorial(n) // math.prod(map(math.factorial, counts))
        yield counts, ways * math.prod(q**c for q, c in zip(p, counts, strict=True))


def estimate(policy: Policy, counts: Sequence[int], objective: str, k: int, estimator: str) -> Floats:
    """g = Σ A_i (e_i − p), over the logits."""
    scores = np.repeat(np.eye(len(counts)), counts, axis=0) - np.array(policy.p)
    return np.asarray(advantages(policy.group(counts), objective, k, estimator) @ scores)


def spread(policy: Policy, n: int, objective: str, k: int, estimator: str) -> tuple[Floats, float]:
    """Mean and trace of the covariance of g, exactly."""
    chances, table = [], []
    for counts, chance in draws(policy.p, n):
        chances.append(chance)
        table.append(estimate(policy, counts, objective, k, estimator))
    mean = np.array(chances) @ np.array(table)
    return mean, float(chances @ ((np.array(table) - mean) ** 2).sum(axis=1))


def with_others_as_baseline(policy: Policy, groups: int, objective: str, k: int) -> float:
    """Trace of the covariance of (1/G) Σ_g S_g (h_g − mean of the other h), S_g the summed scores of group g.

    (E[(h − J)² |S|²] − |∇J|²) / G + (Var h · E|S|² + |∇J|²) / (G (G − 1)).
    """
    chances, worth, scores = [], [], []
    for counts, chance in draws(policy.p, k):
        chances.append(chance)
        worth.append(value(policy.group(counts), objective, k))
        scores.append(np.array(counts) - k * np.array(policy.p))
    P, h, S = np.array(chances), np.array(worth), np.array(scores)
    h = h - P @ h
    gradient, size = (P * h) @ S, (S**2).sum(axis=1)
    steep = float(gradient @ gradient)
    first = (float((P * h * h) @ size) - steep) / groups
    return first + (float(P @ (h * h)) * float(P @ size) + steep) / (groups * (groups - 1))


def variance_row(policy: Policy, objective: str, k: int) -> tuple[list[str], bool]:
    groups = N // k
    truth, alone = spread(policy, k, objective, k, "naive")
    found = {"naive": alone / groups}
    found["naive − others"] = with_others_as_baseline(policy, groups, objective, k)
    found["loo, groups"] = spread(policy, k, objective, k, "loo")[1] / groups
    mean, found["loo1"] = spread(policy, N, objective, k, "loo1")
    other, found["urloo"] = spread(policy, N, objective, k, "urloo")
    off = max(float(np.abs(mean - truth).max()), float(np.abs(other - truth).max()))
    row = [f"{objective}@{k}", policy.name, f"{math.sqrt(truth @ truth):.2g}", f"{found['loo1']:.2g}"]
    row += [f"{found[name] / found['loo1']:,.1f}" for name in ("naive", "naive − others", "loo, groups", "urloo")]
    return row, off < 1e-9 and found["loo1"] < found["naive"]


def variance(quick: bool) -> bool:
    heads = (
        "objective",
        "policy",
        "length of ∇J",
        "variance of loo1",
        "naive",
        "naive − others",
        "loo, groups",
        "urloo",
    )
    print(f"\nn = {N}; the four columns on the right are variances over that of loo1\n")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    reached = []
    jobs = [("pass", k, policy) for k in (2, 4, 8) for policy in POLICIES[:3]]
    jobs += [("majority", k, policy) for k in (3, 5, 8) for policy in POLICIES[1:]]
    for objective, k, policy in jobs[:: 4 if quick else 1]:
        row, right = variance_row(policy, objective, k)
        print(f"| {' | '.join(row)} |", flush=True)
        reached.append(right)
    print()
    return all(reached)


# --- bernoulli -------------------------------------------------------------------------------------------------------


def bernoulli(quick: bool) -> bool:
    """With the logit as parameter; a softmax of two answers has the same g in both logits, with opposite signs."""
    worst = 0.0
    for p, k in itertools.product((0.05, 0.2, 0.5, 0.9), (1, 2, 4, 8, 16)):
        policy = Policy("", (p, 1 - p), ("A", "B"))
        m = k * p * (1 - p) ** k
        naive = k * p * (1 - p) - (1 - p) ** k * k**2 * p**2 - m**2
        loo = k * p * (1 - p) ** (k + 1) - m**2
        for name, known in (("naive", naive), ("loo", loo)):
            worst = max(worst, abs(spread(policy, k, "pass", k, name)[1] / 2 - known))
    print(f"bernoulli: pass@k, n = k: naive and loo off their closed variances by at most {worst:.0e}", flush=True)
    return worst < SAME


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="speed, exact, variance, bernoulli; all when none is named")
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    args = parser.parse_args()
    parts = {"speed": speed, "exact": exact, "variance": variance, "bernoulli": bernoulli}
    unknown = set(args.parts) - set(parts)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are: {', '.join(parts)}")
    reached = [parts[name](args.quick) for name in args.parts or parts]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
