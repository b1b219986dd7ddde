"""What K* per question costs: against the d × d eigendecomposition, against the vendi-score package, and absolutely.

    python benchmarks/kstar.py [--quick] [direct | vendi | absolute | memory]

- direct: 1,319 questions × 16 agents at 4,096 and at 384 dimensions in one call, over `numpy.linalg.eigvalsh` of each
  question's MᵀM, which is timed on a few questions (3 at 4,096) and scaled to all.
- vendi: the same questions over the package's two routes, MᵀM and MMᵀ, called once per question without its own
  normalising; every value is compared.
- absolute: 10,000 questions × 16 agents × 384 dimensions, in seconds.
- memory: the most that is held beside the input, by tracemalloc, over the bound that `_spectra.MEMORY_BYTES` sets.

Embeddings are drawn: a direction per question, shared by its agents, plus one of each agent's own. Everything runs on
one thread and is timed in processor seconds, so that the ratios hold on a busy machine; `absolute` gives the clock too.
Ours is the best of several repetitions; in brackets the median.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from statistics import median

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np

from pluribus.diversity._spectra import MEMORY_BYTES
from pluribus.diversity.kstar import kstar_batch

Clock = Callable[[], float]

QUESTIONS, AGENTS = 1_319, 16
LEAST_OVER_DIRECT = {4_096: 10_000, 384: 100}
TIMED_DIRECTLY = {4_096: 3, 384: 200}
MOST_SECONDS = 2.0
SAME = 1e-9


def embeddings(questions: int, dims: int, dtype: type = np.float64) -> np.ndarray:
    """(questions, agents, dims), rows of unit length."""
    rng = np.random.default_rng(0)
    M = rng.standard_normal((questions, AGENTS, dims), dtype=np.float32)
    M += rng.standard_normal((questions, 1, dims), dtype=np.float32)
    M = M.astype(dtype, copy=False)
    M /= np.linalg.norm(M, axis=-1, keepdims=True)
    return M


def seconds(work: Callable[[], object], times: int, clock: Clock = time.process_time) -> tuple[float, float]:
    """Best and median."""
    took = []
    for _ in range(times):
        start = clock()
        work()
        took.append(clock() - start)
    return min(took), median(took)


def words(took: tuple[float, float]) -> str:
    return f"{took[0]:.3f} s [{took[1]:.3f}]"


def entropic(mu: np.ndarray) -> float:
    share = mu[mu > 0] / mu[mu > 0].sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def direct(quick: bool) -> bool:
    reached = []
    for dims, n in TIMED_DIRECTLY.items():
        M = embeddings(QUESTIONS, dims)
        ours = seconds(lambda M=M: kstar_batch(M), 7)
        start = time.process_time()
        values = [entropic(np.linalg.eigvalsh(M_N_D.T @ M_N_D)) for M_N_D in M[: 1 if quick else n]]
        theirs = (time.process_time() - start) / len(values) * QUESTIONS
        off = float(np.abs(kstar_batch(M[: len(values)]) - values).max())
        ratio = theirs / ours[0]
        print(
            f"direct: {QUESTIONS:,} questions × {AGENTS} × {dims:,}: {words(ours)}; eigvalsh of MᵀM {theirs:,.0f} s, "
            f"timed on {len(values)} questions and scaled: {ratio:,.0f} × faster (at least "
            f"{LEAST_OVER_DIRECT[dims]:,}); largest difference {off:.0e}",
            flush=True,
        )
        reached.append(ratio >= LEAST_OVER_DIRECT[dims] and off < SAME)
    return all(reached)


def vendi(quick: bool) -> bool:
    from vendi_score import vendi as package

    routes = {"MᵀM": package.score_dual, "MMᵀ": package.score_X}
    reached = []
    for dims, route, n in ((384, "MᵀM", 200), (384, "MMᵀ", QUESTIONS), (4_096, "MMᵀ", QUESTIONS)):
        M = embeddings(QUESTIONS, dims)
        ours = seconds(lambda M=M: kstar_batch(M), 7)
        part = M[: 20 if quick else n]
        start = time.process_time()
        with warnings.catch_warnings():  # the package names a place in SciPy that is deprecated
            warnings.simplefilter("ignore", DeprecationWarning)
            values = [routes[route](M_N_D, normalize=False) for M_N_D in part]
        theirs = (time.process_time() - start) / len(part) * QUESTIONS
        off = float(np.abs(kstar_batch(part) - values).max())
        scaled = "" if len(part) == QUESTIONS else f", timed on {len(part)} questions and scaled"
        print(
            f"vendi: {QUESTIONS:,} questions × {AGENTS} × {dims:,}: {words(ours)}; vendi-score by {route} "
            f"{theirs:.2f} s{scaled}: {theirs / ours[0]:,.1f} × faster; largest difference {off:.0e}",
            flush=True,
        )
        reached.append(theirs > ours[0] and off < SAME)
    return all(reached)


def absolute(quick: bool) -> bool:
    reached = []
    for dtype in (np.float32, np.float64):
        M = embeddings(1_000 if quick else 10_000, 384, dtype)
        ours, clock = (seconds(lambda M=M: kstar_batch(M), 7, by) for by in (time.process_time, time.perf_counter))
        print(
            f"absolute: {len(M):,} questions × {AGENTS} × 384, {dtype.__name__}: {words(ours)}; by the clock "
            f"{words(clock)} (under {MOST_SECONDS} s)"
        )
        reached.append(clock[0] < MOST_SECONDS)
    return all(reached)


def memory(quick: bool) -> bool:
    reached = []
    for shape in ((1_000 if quick else 10_000, 384), (200 if quick else QUESTIONS, 4_096)):
        M = embeddings(*shape, np.float32)
        tracemalloc.start()
        kstar_batch(M)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"memory: {len(M):,} questions × {AGENTS} × {shape[1]:,}, float32, {M.nbytes / 2**20:,.0f} MiB: at most "
            f"{peak / 2**20:.1f} MiB beside it; the bound is {MEMORY_BYTES / 2**20:.0f} MiB and the result"
        )
        reached.append(peak <= MEMORY_BYTES + 2**20)
    return all(reached)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="direct, vendi, absolute, memory; all when none is named")
    parser.add_argument("--quick", action="store_true", help="fewer questions for what is timed beside ours")
    args = parser.parse_args()
    parts = {"direct": direct, "vendi": vendi, "absolute": absolute, "memory": memory}
    unknown = set(args.parts) - set(parts)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are: {', '.join(parts)}")
    reached = [parts[name](args.quick) for name in args.parts or parts]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
