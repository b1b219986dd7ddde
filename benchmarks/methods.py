"""Every method, run: accuracy, calls and tokens a question, and how many replies could not be read.

    python benchmarks/methods.py --on zoo  [--questions 100] [--task sums] [--method NAME …]
    python benchmarks/methods.py --on fake [--questions 100]

`zoo`: the embedded models on a generated task. A method works there when at most one reply in ten could not be read
(answers and forms together); else it is only tested by its traces. `fake`: a fake OpenAI server on loopback, on real
HTTP, whose every answer is right with probability 0.6, wrong ones scatter, and whose verdicts are drawn at random.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pluribus.answers import read
from pluribus.config import make_config
from pluribus.fake_server import FakeServer
from pluribus.load import load, names
from pluribus.run import Prepared, RunResult, execute, prepare
from pluribus.store import Store
from pluribus.tasks import load_task
from pluribus.types import Transcript

MEMBERS = ("gemma", "olmo", "phi", "qwen")
WORKS = 0.10
"""Unread share up to which a method works on a model."""


def configs(on: str, url: str | None, home: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    models = [f"zoo/{name}" for name in MEMBERS] if on == "zoo" else [f"vllm/{name}@{url}" for name in MEMBERS]
    asked = {"task": given.task} if on == "zoo" else {"task": "jsonl", "data": str(_keyed(home, given))}
    for method in given.method or names("methods"):
        yield {
            **asked,
            "limit": given.questions,
            "method": method,
            "models": models,
            "seed": given.seed,
            "sampling": {"max_tokens": given.max_tokens},
            "allow_code_execution": True,
        }


def _keyed(home: Path, given: argparse.Namespace) -> Path:
    """The task's questions as the fake server's script `keyed` can answer them."""
    pairs = load_task(given.task, limit=given.questions).pairs
    rows = [{"question": f"{q.text} [key: {key.answer}]", "answer": key.answer} for q, key in pairs if key]
    path = home / "keyed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def unread(store: Store, prepared: Prepared, result: RunResult) -> tuple[int, int]:
    """(replies that could not be read, replies that had to be): answers that stand, and whatever has a form."""
    questions = {question.id: question for question, _ in prepared.task.pairs}
    bad = total = 0
    for row in result.rows:
        transcript = store.get_transcript(row.attempt_id)
        assert transcript is not None
        for stands, turn in _turns(transcript):
            if turn.ok and (turn.form is not None or stands):
                no_answer = stands and read(questions[row.question_id], turn.text) is None
                bad += turn.unread is not None or no_answer
                total += 1
    return bad, total


def _turns(transcript: Transcript) -> Iterator[tuple[bool, Any]]:
    for index, turn in enumerate(transcript.turns):
        yield turn.role == "answer" or index in transcript.finals, turn


def line(on: str, config: dict[str, Any], store: Store) -> str:
    prepared = prepare(make_config(config))
    method = load("methods", config["method"])
    least, most = method.calls(prepared.table.settings, len(prepared.table.seats))
    started = time.perf_counter()
    result = asyncio.run(execute(prepared, store))
    seconds = time.perf_counter() - started
    score, n = result.score, len(result.rows)
    bad, total = unread(store, prepared, result)
    share = bad / max(total, 1)
    accuracy = "–" if score.value is None or score.interval is None else (
        f"{score.value:.2f} [{score.interval[0]:.2f}, {score.interval[1]:.2f}]"
    )  # fmt: skip
    tokens = "–" if score.tokens is None else f"{score.tokens / n:,.0f}"
    works = ("works" if share <= WORKS else "trace-tested only") if on == "zoo" else ""
    said = f"{config['method']:20} {accuracy:18} {score.calls / n:6.1f} {f'{least}–{most}':>8} {tokens:>7} {share:7.1%}"
    return f"{said} {score.failed:5} {seconds:6.0f} s  {works}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", choices=("zoo", "fake"), required=True)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--task", default="sums")
    parser.add_argument("--method", action="append")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    print(f"{'method':20} {'accuracy [95 %]':18} {'calls':>6} {'forecast':>8} {'tokens':>7} {'unread':>7} failed")
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(Store.open(home))
        url = stack.enter_context(FakeServer(answers="keyed")).url if given.on == "fake" else None
        for config in configs(given.on, url, home, given):
            print(line(given.on, config, store), flush=True)


if __name__ == "__main__":
    main()
