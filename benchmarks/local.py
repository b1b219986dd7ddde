"""Tokens per second of the local backend in a debate, against transformers' own `generate`.

    python benchmarks/local.py [--quick] [--cpu] [MEMBER]

A council of five seats debates questions of `sums` on one model of the zoo, as many questions at once as a run has.
Of the prompts that were sent, a sample is generated again in two other ways, with the same sampling:

- static: one `model.generate` call on the sample as one left-padded batch; the better of one thread and all of them.
- single: the same backend, one request after the other.

Tokens are those before and with a sequence's end; padding after it is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from pluribus.backends import Backend, Request, connect, parse
from pluribus.backends._loading import Source, ends, load_model, load_words
from pluribus.config import make_config
from pluribus.engines.asyncio import each
from pluribus.run import opened, seat_table
from pluribus.solve import solve
from pluribus.tasks import load_task
from pluribus.types import Question, Sampling, Transcript, Turn
from pluribus.zoo import folder

Clock = Callable[[], float]
"""Seconds."""

LEAST_OF_STATIC = 0.7
LEAST_OF_SINGLE = 8.0
SEATS = 5
SETTINGS = {"debate_rounds": 2}
MAX_TOKENS = 200
WIDTH = 256
"""Questions at once."""


async def debate(model: str, n: int, clock: Clock) -> tuple[float, list[Turn]]:
    """Tokens per second of a debate over `n` questions, and its turns."""
    config = make_config({
        "models": [model], "num_agents": SEATS, "method": "debate", "settings": SETTINGS,
        "sampling": {"max_tokens": MAX_TOKENS},
    })  # fmt: skip
    questions = [question for question, _ in load_task("sums", "test", limit=n).pairs]
    transcripts: list[Transcript] = []
    async with opened(seat_table(config), config, None) as live:

        async def ask(question: Question) -> bool:
            transcripts.append(await solve(question, live.agents, "debate", SETTINGS, seed=0))
            return True

        await solve(questions[0], live.agents, "vote", {}, seed=1)  # loads the model
        start = clock()
        await each(questions, ask, WIDTH)
        seconds = clock() - start
    turns = [turn for transcript in transcripts for turn in transcript.turns]
    failed = [turn.failure for turn in turns if turn.failure is not None]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(turns)} calls failed: {failed[0]}")
    return sum(_tokens(turn) for turn in turns) / seconds, turns


def _tokens(turn: Turn) -> int:
    assert turn.completion is not None and turn.completion.completion_tokens is not None
    return turn.completion.completion_tokens


def static(member: str, turns: Sequence[Turn], sampling: Sampling, clock: Clock) -> float:
    """Tokens per second of one `generate` call."""
    source = Source(str(folder(member)), max_batch=len(turns), device="cpu")
    model, words = load_model(source), load_words(source.path, None)
    stops = torch.tensor(sorted(ends(model, words.tokenizer)))
    prompts = [words.prompt(turn.messages)[1] for turn in turns]
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    start = clock()
    with torch.inference_mode():
        out = model.generate(
            ids, attention_mask=mask, do_sample=True, temperature=sampling.temperature, top_p=sampling.top_p, top_k=0,
            max_new_tokens=sampling.max_tokens, pad_token_id=0,
        )[:, width:]  # fmt: skip
    seconds = clock() - start
    open_before = torch.isin(out, stops).cumsum(-1).roll(1, -1)
    open_before[:, 0] = 0
    return int((open_before == 0).sum()) / seconds


def best_static(member: str, turns: Sequence[Turn], sampling: Sampling, clock: Clock) -> float:
    """Tiny operations may run faster on one thread."""
    every, best = torch.get_num_threads(), 0.0
    for threads in sorted({1, every}):
        torch.set_num_threads(threads)
        best = max(best, static(member, turns, sampling, clock))
    torch.set_num_threads(every)
    return best


async def single(backend: Backend, turns: Sequence[Turn], sampling: Sampling, clock: Clock) -> float:
    """Tokens per second of one request after the other."""
    tokens, start = 0, clock()
    for seed, turn in enumerate(turns):
        completion = await backend.complete(Request(turn.messages, replace(sampling, seed=seed)))
        tokens += completion.completion_tokens or 0
    return tokens / (clock() - start)


async def _single(model: str, turns: Sequence[Turn], sampling: Sampling, clock: Clock) -> float:
    backend = connect(parse(model))
    try:
        await single(backend, turns[:1], sampling, clock)  # loads the model
        return await single(backend, turns, sampling, clock)
    finally:
        await backend.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("member", nargs="?", default="qwen", help="a member of the zoo")
    parser.add_argument("--quick", action="store_true", help="fewer questions, a smaller batch")
    parser.add_argument("--cpu", action="store_true", help="count CPU seconds: for a machine that has other work")
    args = parser.parse_args()
    n, batch, few = (16, 64, 4) if args.quick else (200, 256, 16)
    clock, unit = (time.process_time, "tokens/CPU s") if args.cpu else (time.perf_counter, "tokens/s")
    model, sampling = f"zoo/{args.member}", Sampling(max_tokens=MAX_TOKENS)
    debating, turns = asyncio.run(debate(model, n, clock))
    sample = random.Random(0).sample(turns, min(batch, len(turns)))
    alone = asyncio.run(_single(model, sample[:few], sampling, clock))
    padded = best_static(args.member, sample, sampling, clock)
    reached = debating >= LEAST_OF_STATIC * padded and debating >= LEAST_OF_SINGLE * alone
    print(
        f"local batching, {model}: debate of {n} questions × {SEATS} seats × {1 + SETTINGS['debate_rounds']} rounds "
        f"{debating:.0f} {unit}; static batch of {len(sample)} {padded:.0f} {unit}: {debating / padded:.2f} × "
        f"(at least {LEAST_OF_STATIC}); one at a time {alone:.0f} {unit}: {debating / alone:.1f} × "
        f"(at least {LEAST_OF_SINGLE:.0f})"
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
