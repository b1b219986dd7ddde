"""What the arithmetic of a council's rewards costs: against plain Python, and absolutely.

    python benchmarks/rewards.py [--candidates N] [--group N] [--part N] [--seed N]

100,000 candidates, 6 to a question, three judges who each miss a few, texts of 50 to 200 words of which one in 50 is a
near-copy of the one before it: scores are normalised, averaged and given a status, pairs are formed by reward within a
limit of disagreement, near-copies and length bias are looked for. Each step is also written out in plain Python, as its
formula stands, timed on one question in --part (10) and scaled to all; both must find the same there. Scores and words
are drawn from the seed. Seconds are of the processor, so that the ratios hold on a busy machine; of all steps together
the clock is given too. Ends with 1 where a step finds something else than plain Python, or all steps take more than 10
seconds. The last rows, what a report says of the judges, are outside that sum.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from pluribus.consensus.pairs import form_pairs, length_bias, near_duplicates
from pluribus.consensus.rewards import (
    apply_scale,
    consensus,
    fit_scale,
    krippendorff_alpha,
    leave_one_out,
    permutation_null,
    statuses_N,
)

T = TypeVar("T")
Row = list[float | None]
WEIGHTS = (0.5, 0.3, 0.2)
LIMIT = 0.02
"""Of disagreement."""
MISSING, COPIED, WORDS = 0.03, 50, 5
MOST_SECONDS = 10.0
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Drawn:
    """Candidates, those of a question side by side."""

    group_N: list[int]
    scores_J_N: list[Row]
    texts: list[str]

    def first(self, n: int) -> Drawn:
        return Drawn(self.group_N[:n], [row[:n] for row in self.scores_J_N], self.texts[:n])


def drawn(n: int, group: int, seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    scores_J_N = 5 + 2 * rng.normal(size=n) + rng.normal(size=(len(WEIGHTS), n))
    scores_J_N[rng.random(scores_J_N.shape) < MISSING] = np.nan
    words = np.array([f"w{i}" for i in range(5000)], dtype=object)
    texts = [" ".join(words[rng.integers(0, len(words), length)]) for length in rng.integers(50, 201, n)]
    for place in range(COPIED, n, COPIED):
        texts[place] = texts[place - 1] + " indeed"
    rows = [[None if math.isnan(score) else round(score, 2) for score in row] for row in scores_J_N.tolist()]
    return Drawn([place // group for place in range(n)], rows, texts)


def ours(of: Drawn, clock: Clock) -> dict[str, Any]:
    """What each step finds."""
    same_J_N = clock("normalise", lambda: [apply_scale(fit_scale(row, "zscore"), row) for row in of.scores_J_N])
    found = clock("consensus", lambda: consensus(same_J_N, WEIGHTS))
    v_N, n_N = found.disagreement_N, found.verdicts_N
    statuses = clock("status", lambda: statuses_N(v_N, n_N, len(WEIGHTS), LIMIT))
    unknown = [None] * len(of.texts)
    pairs = clock("pairs", lambda: form_pairs(
        of.group_N, found.value_N, v_N, unknown, basis="reward", max_disagreement=LIMIT, per_question=0
    ))  # fmt: skip
    copies = clock("near-copies", lambda: near_duplicates(of.texts, of.group_N, n=WORDS))
    words_N = np.array([len(text.split()) for text in of.texts])
    chosen, rejected = words_N[pairs.chosen_P], words_N[pairs.rejected_P]
    bias = clock("length bias", lambda: length_bias(chosen, rejected, pairs.margin_P))
    return {
        "normalise": [x for row in same_J_N for x in row.tolist()],
        "consensus": [x for row in (found.value_N, v_N) for x in row.tolist()],
        "status": statuses,
        "pairs": sorted(zip(pairs.chosen_P.tolist(), pairs.rejected_P.tolist(), strict=True)),
        "near-copies": copies.tolist(),
        "length bias": [bias.share_longer, bias.difference, bias.correlation] if bias else [],
        "words": words_N.tolist(),
        "same": same_J_N,
    }


# --- plain Python ----------------------------------------------------------------------------------------------------


def plain(of: Drawn, clock: Clock) -> dict[str, Any]:
    same_J_N = clock("normalise", lambda: [zscores(row) for row in of.scores_J_N])
    both = clock("consensus", lambda: [mix(scores) for scores in zip(*same_J_N, strict=True)])
    statuses = clock("status", lambda: [state(v, sum(row[i] is not None for row in same_J_N))
                                        for i, (_, v) in enumerate(both)])  # fmt: skip
    pairs = clock("pairs", lambda: paired(of.group_N, both))
    copies = clock("near-copies", lambda: copied(of))
    words = [len(text.split()) for text in of.texts]
    bias = clock("length bias", lambda: lengths(
        [words[i] - words[j] for i, j in pairs], [(both[i][0] or 0) - (both[j][0] or 0) for i, j in pairs]
    ))  # fmt: skip
    return {
        "normalise": [none(x) for row in same_J_N for x in row],
        "consensus": [none(pair[place]) for place in (0, 1) for pair in both],
        "status": statuses,
        "pairs": sorted(pairs),
        "near-copies": copies,
        "length bias": bias,
    }


def none(value: float | None) -> float:
    return math.nan if value is None else value


def zscores(row: Row) -> Row:
    known = [score for score in row if score is not None]
    mean = math.fsum(known) / len(known)
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in known) / len(known))
    return [None if score is None else 1 / (1 + math.exp((mean - score) / spread)) for score in row]


def mix(scores: tuple[float | None, ...]) -> tuple[float | None, float | None]:
    given = [(s, w) for s, w in zip(scores, WEIGHTS, strict=True) if s is not None]
    if not given:
        return None, None
    total = math.fsum(w for _, w in given)
    value = math.fsum(w * s for s, w in given) / total
    return value, math.fsum(w * (s - value) ** 2 for s, w in given) / total if len(given) > 1 else None


def state(disagreement: float | None, verdicts: int) -> str:
    if verdicts < 2:
        return "alone" if verdicts else "unscored"
    return "disputed" if disagreement is not None and disagreement > LIMIT else "agreed"


def questions(group_N: list[int]) -> list[list[int]]:
    members: dict[int, list[int]] = {}
    for place, group in enumerate(group_N):
        members.setdefault(group, []).append(place)
    return list(members.values())


def paired(group_N: list[int], both: list[tuple[float | None, float | None]]) -> list[tuple[int, int]]:
    """Best margin first, each candidate in one pair at most."""
    found, busy = list[tuple[int, int]](), set[int]()
    for members in questions(group_N):
        could = []
        for i, j in combinations(members, 2):
            (a, v), (b, w) = both[i], both[j]
            if a is not None and b is not None and a != b and v is not None and w is not None and (v + w) / 2 <= LIMIT:
                could.append((b - a, i, j) if a > b else (a - b, j, i))
        for _, i, j in sorted(could):
            if i not in busy and j not in busy:
                found.append((i, j))
                busy |= {i, j}
    return found


def copied(of: Drawn) -> list[bool]:
    marks = [False] * len(of.texts)
    for members in questions(of.group_N):
        runs = []
        for place in members:
            words = of.texts[place].split()
            runs.append({tuple(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)})
        for (one, first), (_, other) in combinations(list(zip(members, runs, strict=True))[::-1], 2):
            marks[one] |= len(first & other) >= 0.9 * len(first | other)
    return marks


def lengths(apart: list[int], margins: list[float]) -> list[float]:
    n, longer = len(apart), sum((x > 0) + (x == 0) / 2 for x in apart)
    x, y = math.fsum(apart) / n, math.fsum(margins) / n
    top = math.fsum((a - x) * (b - y) for a, b in zip(apart, margins, strict=True))
    bottom = math.fsum((a - x) ** 2 for a in apart) * math.fsum((b - y) ** 2 for b in margins)
    return [longer / n, x, top / math.sqrt(bottom)]


# --- all -------------------------------------------------------------------------------------------------------------


class Clock:
    """Seconds of each step."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}

    def __call__(self, name: str, work: Callable[[], T]) -> T:
        start = time.process_time()
        found = work()
        self.took[name] = time.process_time() - start
        return found


def alike(one: Any, other: Any) -> bool:
    if one and isinstance(one[0], float):
        return bool(np.allclose(one, other, rtol=0, atol=SAME, equal_nan=True))
    return bool(one == other)


def report(same_J_N: Any) -> None:
    clock = Clock()
    clock("Krippendorff's alpha", lambda: krippendorff_alpha(same_J_N))
    clock("leave one out", lambda: leave_one_out(same_J_N, WEIGHTS))
    clock("null, 200 draws", lambda: permutation_null(same_J_N, WEIGHTS))
    for name, took in clock.took.items():
        print(f"| {name} | {took:.2f} | – | – | – |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--group", type=int, default=6, help="candidates of a question")
    parser.add_argument("--part", type=int, default=10, help="plain Python gets one question in so many")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    of = drawn(flags.candidates, flags.group, flags.seed)
    part = of.first(max(1, flags.candidates // flags.group // flags.part) * flags.group)
    clock, slow, start = Clock(), Clock(), time.perf_counter()
    found = ours(of, clock)
    wall, total = time.perf_counter() - start, sum(clock.took.values())
    here, there = ours(part, Clock()), plain(part, slow)
    print(f"{flags.candidates:,} candidates, {len(WEIGHTS)} judges, {np.mean(found['words']):.0f} words a text\n")
    print("| step | s | plain Python, s | ratio | same |\n|---|---|---|---|---|")
    times = len(of.texts) / len(part.texts)
    for name, took in clock.took.items():
        same = "yes" if alike(here[name], there[name]) else "NO"
        theirs = slow.took[name] * times
        print(f"| {name} | {took:.2f} | {theirs:.2f} | {theirs / took:.1f}× | {same} |")
    theirs = sum(slow.took.values()) * times
    print(f"| all (clock {wall:.1f} s) | {total:.2f} | {theirs:.2f} | {theirs / total:.1f}× | – |")
    report(found["same"])
    return int(total > MOST_SECONDS or not all(alike(here[name], there[name]) for name in clock.took))


if __name__ == "__main__":
    sys.exit(main())
