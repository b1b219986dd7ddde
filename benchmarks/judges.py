"""What a council of judges costs in time: against its slowest judge, and on the zoo's models.

    python benchmarks/judges.py [--quick] [latency | device]

- latency: three judges at three endpoints of 200, 120 and 60 ms behind real HTTP, each reply about 5 % sooner or later;
  the time in which the council judges the candidates of a question over the time in which its slowest judge does
  alone, both measured, one question at a time, council and judge in turns. What a council adds is this process's own
  work for the other judges' requests, which is printed too: it counts against 200 ms here, and less against a model.
- device: the zoo's models as judges of one device, asked at once; tokens per second, written and read.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from statistics import median

from pluribus.engines.asyncio import each
from pluribus.fake_server import FakeServer
from pluribus.judge_config import make_judges
from pluribus.judges import Candidate
from pluribus.judging import bench, sitting
from pluribus.reward import Judge, judge
from pluribus.tasks import load_task
from pluribus.types import Judgement, Key, Question
from pluribus.zoo import members

MOST_OVER_SLOWEST = 1.05
JUDGES_S = {"teacher": 0.2, "critic": 0.12, "diversity": 0.06}
"""The slowest first, as roles are usually listed."""
JITTER = 0.05
"""Sigma of the log-normal latency."""
CANDIDATES = (1, 4, 8)
WIDTH = 64
"""Questions at once on one device."""


@asynccontextmanager
async def council(models: dict[str, str], **changes: object) -> AsyncIterator[Sequence[Judge]]:
    """Live judges of kind `score` by role, without a store: nothing is remembered, every call is made."""
    judges = [{"role": role, "model": model, **changes} for role, model in models.items()]
    async with sitting(bench(make_judges({"judges": judges})), None) as live:
        yield live


def pairs(n: int) -> list[tuple[Question, Key]]:
    return [(question, key) for question, key in load_task("sums", "test", limit=n).pairs if key is not None]


def candidates(question: Question, key: Key, n: int) -> list[Candidate]:
    """The right answer and wrong ones, as a council might have given them."""
    right = int(key.answer or 0)
    return [
        Candidate(f"{question.id}/{i}", 0, f"So it is {right + i}. {{final answer: {right + i}}}", str(right + i))
        for i in range(n)
    ]


async def timed(question: Question, asked: Sequence[Candidate], judges: Sequence[Judge], seed: int = 0) -> float:
    """Seconds until every candidate has every verdict."""
    start = time.perf_counter()
    said = await judge(question, asked, judges, seed=seed)
    seconds = time.perf_counter() - start
    failed = [one.failure for one in said if one.failure is not None]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(said)} verdicts failed: {failed[0]}")
    return seconds


async def compare(judges: Sequence[Judge], n_candidates: int, n: int) -> float:
    """Median over questions of council and slowest judge; prints and returns their ratio."""
    together, alone, work_s = [], [], 0.0
    for question, key in pairs(n):
        asked, before = candidates(question, key, n_candidates), time.process_time()
        together.append(await timed(question, asked, judges))
        work_s += time.process_time() - before
        alone.append(await timed(question, asked, judges[:1], seed=1))
    council_ms, slowest_ms = median(together) * 1e3, median(alone) * 1e3
    ratio, verdicts = council_ms / slowest_ms, n * n_candidates * len(judges)
    print(
        f"latency: {n_candidates} candidates, {n} questions: council {council_ms:.1f} ms, slowest judge alone "
        f"{slowest_ms:.1f} ms: {ratio:.3f} × the slowest (at most {MOST_OVER_SLOWEST}; one judge after the other "
        f"{sum(JUDGES_S.values()) / max(JUDGES_S.values()):.1f} ×); {work_s / verdicts * 1e3:.2f} "
        "ms of this process's work per verdict"
    )
    return ratio


async def latency(quick: bool) -> bool:
    with ExitStack() as servers:
        urls = {
            role: servers.enter_context(FakeServer(latency_s=seconds, latency_sigma=JITTER)).url
            for role, seconds in JUDGES_S.items()
        }
        async with council({role: f"vllm/{role}@{url}" for role, url in urls.items()}) as judges:
            question, key = pairs(1)[0]
            await timed(question, candidates(question, key, max(CANDIDATES)), judges, seed=2)  # opens the connections
            ratios = [await compare(judges, n, 10 if quick else 40) for n in CANDIDATES]
    return max(ratios) <= MOST_OVER_SLOWEST


async def device(quick: bool) -> bool:
    """Every judge rates three candidates of every question, all models at once."""
    asked = [(question, candidates(question, key, 3)) for question, key in pairs(16 if quick else 100)]
    said: list[Judgement] = []
    models = dict(zip(JUDGES_S, (f"zoo/{name}" for name in members()), strict=False))
    async with council(models, max_tokens=128) as judges:
        await judge(*asked[0], judges, seed=1)  # loads the models

        async def rate(one: tuple[Question, Sequence[Candidate]]) -> bool:
            said.extend(await judge(*one, judges))
            return True

        start = time.perf_counter()
        await each(asked, rate, WIDTH)
        seconds = time.perf_counter() - start
    done = [turn.completion for one in said for turn in one.turns if turn.completion is not None]
    written, read = (sum(getattr(one, name) or 0 for one in done) for name in ("completion_tokens", "prompt_tokens"))
    unread = Counter(one.judge for one in said if one.score is None)
    print(
        f"device: {', '.join(models.values())} rate {len(said)} times in {seconds:.1f} s: {len(said) / seconds:.0f} "
        f"verdicts, {written / seconds:.0f} tokens written and {read / seconds:.0f} read per second; "
        f"without a verdict: {dict(unread) or 'none'}"
    )
    return bool(written)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="latency, device; both when none is named")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    parts = {"latency": latency, "device": device}
    unknown = set(args.parts) - set(parts)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are: {', '.join(parts)}")
    reached = [asyncio.run(parts[name](args.quick)) for name in args.parts or parts]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
