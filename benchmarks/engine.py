"""What the engine costs: a debate of 10,000 calls against the ideal and against the bare SDK, in one run.

    python benchmarks/engine.py [--quick]

1,000 questions × 5 agents × 2 rounds go to the package's fake server, which answers each call after 200 ms from a
process of its own; at most 256 calls are in flight. Ideal is calls × latency / concurrency. The bare SDK then sends
the very same messages with nothing around it. Both are warmed up, so that neither pays for imports.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence

from pluribus.codec import plain
from pluribus.config import RunConfig, make_config
from pluribus.fake_server import FakeServer
from pluribus.run import RunResult, execute, prepare
from pluribus.store import Store

MOST_OVER_IDEAL = 1.25
LEAST_OVER_SDK = 0.9


def config(url: str, questions: int, concurrency: int, seed: int) -> RunConfig:
    return make_config(
        {
            "task": "sums",
            "split": "test",
            "limit": questions,
            "method": "debate",
            "settings": {"debate_rounds": 1},
            "models": [f"vllm/fake@{url}"],
            "num_agents": 5,
            "concurrency": concurrency,
            "seed": seed,
        }
    )


async def engine(url: str, questions: int, concurrency: int, seed: int) -> tuple[float, RunResult, list[list[dict]]]:
    """Seconds from the first question to the last record on disk, the run, and the messages it sent."""
    with tempfile.TemporaryDirectory() as home, Store.open(home) as store:
        prepared = prepare(config(url, questions, concurrency, seed))
        start = time.perf_counter()
        result = await execute(prepared, store)
        seconds = time.perf_counter() - start
        ids = [attempt.id for attempt in prepared.attempts]
        sent = [[plain(m) for m in turn.messages] for t in store.transcripts(ids) for turn in t.turns]
    return seconds, result, sent


async def bare_sdk(url: str, bodies: Sequence[list[dict]], concurrency: int) -> float:
    """Seconds for the same messages through AsyncOpenAI over aiohttp, `concurrency` workers, nothing else."""
    from openai import AsyncOpenAI, DefaultAioHttpClient

    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=DefaultAioHttpClient()) as client:
        queue = iter(bodies)

        async def worker() -> None:
            for messages in queue:
                reply = await client.chat.completions.create(
                    model="fake", messages=messages, temperature=1.0, top_p=0.9, max_tokens=4096
                )
                assert reply.choices[0].message.content

        start = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        return time.perf_counter() - start


async def measure(url: str, questions: int, concurrency: int, latency_s: float) -> bool:
    _, _, warm = await engine(url, 20, concurrency, seed=1)
    await bare_sdk(url, warm, concurrency)
    seconds, result, sent = await engine(url, questions, concurrency, seed=0)
    calls = result.tally.calls
    assert calls == len(sent) == questions * 10, f"{calls} calls, {len(sent)} turns: {result.failures()}"
    sdk_seconds = await bare_sdk(url, sent, concurrency)
    over_ideal = seconds / (calls * latency_s / concurrency)
    over_sdk = sdk_seconds / seconds
    print(
        f"engine: {calls:,} calls in {seconds:.2f} s = {over_ideal:.2f} × the ideal (at most {MOST_OVER_IDEAL}); "
        f"{calls / seconds:,.0f} calls/s = {over_sdk:.2f} × the bare SDK's {calls / sdk_seconds:,.0f} "
        f"(at least {LEAST_OVER_SDK})"
    )
    return over_ideal <= MOST_OVER_IDEAL and over_sdk >= LEAST_OVER_SDK


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 questions instead of 1,000")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    args = parser.parse_args()
    questions = args.questions or (200 if args.quick else 1000)
    with FakeServer(latency_s=args.latency) as server:
        reached = asyncio.run(measure(server.url, questions, args.concurrency, args.latency))
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
