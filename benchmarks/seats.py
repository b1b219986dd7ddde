"""What a council costs in time against its members: parallel seats, a quorum with a deadline, one device for three.

    python benchmarks/seats.py [--quick] [parallel | quorum | device]

- parallel: three members of 50, 100 and 200 ms behind the fake server; a council's latency over the slowest member's
  own, both measured, one question at a time.
- quorum: three members with heavy-tailed latencies; the council's 99th percentile with a quorum of 2 and a deadline
  over the one that waits for everybody. Who is late is recorded as late.
- device: three local zoo models on one device, asked at once, over the sum of each asked alone.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from statistics import median
from typing import Any, TypeVar

from pluribus.agents import Agent
from pluribus.config import make_config
from pluribus.fake_server import FakeServer
from pluribus.run import opened, seat_table
from pluribus.solve import solve
from pluribus.tasks import load_task
from pluribus.types import Question, Transcript
from pluribus.zoo import members

T = TypeVar("T")
MOST_OVER_SLOWEST = 1.05
MEMBERS_S = {"quick": 0.05, "steady": 0.1, "slow": 0.2}
DEADLINE_S = 0.3


@asynccontextmanager
async def council(models: Sequence[str], **options: Any) -> AsyncIterator[Sequence[Agent]]:
    """Live agents, one per model, with all their traffic and without a store."""
    config = make_config({"models": list(models), "num_agents": len(models), **options})
    async with opened(seat_table(config), config, None) as live:
        yield live.agents


def questions(n: int) -> list[Question]:
    return [question for question, _ in load_task("sums", "test", limit=n).pairs]


async def timed(
    question: Question, agents: Sequence[Agent], settings: Mapping[str, Any] | None = None, seed: int = 0
) -> tuple[float, Transcript]:
    start = time.perf_counter()
    transcript = await solve(question, agents, "vote", settings or {}, seed=seed)
    if transcript.status == "failed" or (settings is None and transcript.failure):
        raise SystemExit(f"a seat did not answer: {transcript.failure}")
    return time.perf_counter() - start, transcript


async def several(works: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """All of them, 20 at a time, so that a council's latency holds no time in a queue."""
    places = asyncio.Semaphore(20)

    async def one(work: Callable[[], Awaitable[T]]) -> T:
        async with places:
            return await work()

    return await asyncio.gather(*(one(work) for work in works))


async def parallel(n: int) -> bool:
    """Council and slowest member take turns, so that both see the same machine."""
    with FakeServer(latencies=MEMBERS_S) as server:
        async with council([f"vllm/{name}@{server.url}" for name in MEMBERS_S]) as agents:
            await timed(questions(1)[0], agents, seed=1)
            together, alone = [], []
            for question in questions(n):
                together.append((await timed(question, agents))[0])
                alone.append((await timed(question, agents[-1:], seed=2))[0])
    council_ms, slowest_ms = sum(together) / n * 1e3, sum(alone) / n * 1e3
    ratio = council_ms / slowest_ms
    print(
        f"parallel seats: council {council_ms:.1f} ms, slowest member alone {slowest_ms:.1f} ms: "
        f"{ratio:.3f} × the slowest (at most {MOST_OVER_SLOWEST})"
    )
    return ratio <= MOST_OVER_SLOWEST


async def quorum(n: int) -> bool:
    settings = {"quorum": 2, "deadline_s": DEADLINE_S}
    with FakeServer(latency_s=0.1, latency_sigma=1.0) as server:
        async with council([f"vllm/member-{i}@{server.url}" for i in range(3)]) as agents:
            await timed(questions(1)[0], agents, seed=1)
            patient = await several([partial(timed, q, agents) for q in questions(n)])
            hurried = await several([partial(timed, q, agents, settings) for q in questions(n)])
    waits, hurries = (sorted(seconds for seconds, _ in runs) for runs in (patient, hurried))
    late = [turn.failure.kind for _, t in hurried for turn in t.turns if turn.failure is not None]
    finals = min(len(t.finals) for _, t in hurried)
    p99 = int(0.99 * n)
    print(
        f"quorum: 99th percentile {hurries[p99]:.2f} s with 2 of 3 after {DEADLINE_S} s, {waits[p99]:.2f} s with all: "
        f"{hurries[p99] / waits[p99]:.2f} × (median {median(hurries):.2f} s and {median(waits):.2f} s); "
        f"{late.count('late')} of {3 * n} seats recorded as late, at least {finals} answers each"
    )
    return bool(late) and set(late) == {"late"} and finals >= 2 and hurries[p99] < waits[p99]


async def device(n: int) -> bool:
    """Every seat answers every question; alone one model after the other, together all three at once."""
    asked = questions(n)
    models = [f"zoo/{name}" for name in members()[:3]]
    alone = []
    async with council(models, sampling={"max_tokens": 200}) as agents:
        await asyncio.gather(*(timed(q, agents, seed=1) for q in asked[:8]))
        for agent in agents:
            start = time.perf_counter()
            await asyncio.gather(*(timed(q, [agent]) for q in asked))
            alone.append(time.perf_counter() - start)
        start = time.perf_counter()
        await asyncio.gather(*(timed(q, agents) for q in asked))
        together = time.perf_counter() - start
    each = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in zip(models, alone, strict=True))
    print(
        f"one device: {n} questions to three models at once in {together:.2f} s; alone {each}: "
        f"{together / sum(alone):.2f} × the sum, {together / max(alone):.2f} × the slowest"
    )
    return together <= 1.25 * sum(alone)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="parallel, quorum, device; all when none is named")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    parts = {"parallel": (parallel, 10, 50), "quorum": (quorum, 60, 300), "device": (device, 16, 100)}
    unknown = set(args.parts) - set(parts)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are: {', '.join(parts)}")
    reached = []
    for name in args.parts or parts:
        measure, few, many = parts[name]
        reached.append(asyncio.run(measure(few if args.quick else many)))
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
