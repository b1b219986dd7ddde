"""Recorded solutions that are programs, run in the sandbox: our verdict on what they print, against the source's.

    python benchmarks/recorded_programs.py [FOLDER of recorded runs] [--most N]

The styles NL+SL and noNL of the Faithful-COT recordings on GSM8K and SVAMP are Python that leaves its result in
`answer`. A hundred programs share one jail, each with its own names and time. Left out are programs that need SymPy, as
the jail has Python's standard library alone; AQuA's, whose source turns the result into a letter by another step; and
StrategyQA's, which are Datalog.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from extraction import PROGRAMS, RECORDED, questions, rows
from pluribus.answers import canonical
from pluribus.sandbox import Limits, Sandbox, run_program, sandbox
from pluribus.types import Question

REASONS: Counter[str] = Counter()
FOLDERS = ("gsm8k_24runs", "svamp_18runs")
TOGETHER = 100
DRIVER = """
import contextlib, datetime, io, json, math, signal, sys

def late(*_):
    raise TimeoutError("2 s")

signal.signal(signal.SIGALRM, late)
for source in json.loads(sys.stdin.read()):
    names, said = {"math": math, "datetime": datetime}, None
    signal.alarm(2)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, "program", "exec"), names)
        said, why = str(names["answer"]), None
    except BaseException as problem:
        said, why = None, f"{type(problem).__name__}: {problem}"[:60]
    signal.alarm(0)
    print(json.dumps([said, why]), flush=True)
"""


Result = tuple[str | None, str | None]
"""What a program left in `answer`, and why there is nothing."""


async def results(box: Sandbox, sources: Sequence[str]) -> list[Result]:
    parts = [sources[i : i + TOGETHER] for i in range(0, len(sources), TOGETHER)]
    limits = Limits(wall_s=300, cpu_s=250, output_kb=1024)
    runs = await asyncio.gather(*(run_program(box, DRIVER, json.dumps(part), limits) for part in parts))
    said: list[Result] = []
    for part, run in zip(parts, runs, strict=True):
        lines: list[Result] = [tuple(json.loads(line)) for line in run.stdout.splitlines()]
        said += (lines + [(None, f"stopped: {run.stopped}")] * len(part))[: len(part)]
    return said


def verdict(question: Question, key: str | None, answer: object) -> bool | None:
    """Whether a printed answer is right; None: there is none."""
    said = None if answer is None else canonical(question, str(answer))
    return None if said is None else _rounded(said) == _rounded(key)


def _rounded(number: str | None) -> float | str | None:
    """Floating point leaves its traces in what a program prints."""
    try:
        return None if number is None else round(float(number), 6)
    except ValueError:
        return number


async def measure(folder: Path, box: Sandbox, most: int | None) -> Mapping[str, Counter[str]]:
    asked, keys = questions(folder)
    by_run: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows(folder / "outputs.jsonl.gz"):
        if row["model"].endswith(PROGRAMS) and (most is None or len(by_run[row["model"]]) < most):
            by_run[row["model"]].append(row)
    found = {}
    for name, outputs in sorted(by_run.items()):
        said = await results(box, [row["text"] for row in outputs])
        tally = found[name] = Counter[str]()
        for row, (answer, why) in zip(outputs, said, strict=True):
            question, key = asked[row["question_id"]], keys[row["question_id"]]
            ours, theirs = verdict(question, key, answer), verdict(question, key, row["recorded_answer"])
            tally.update(outputs=1)
            if why is not None and "Symbol" in why:
                tally.update(sympy=1)
                continue
            tally.update(failed=ours is None, verdicts=theirs is not None)
            tally.update(agree=theirs is not None and ours == theirs, lost=theirs is not None and ours is None)
            if theirs is not None and ours != theirs:
                REASONS[why or "another number"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--most", type=int, help="outputs of each run at most")
    flags = parser.parse_args()
    box = sandbox(True)
    print("| run | outputs | need SymPy | verdicts | agree | only theirs gave a result | ours failed |")
    print("|---|---|---|---|---|---|---|")
    for name in FOLDERS:
        began = time.perf_counter()
        for run, told in asyncio.run(measure(flags.folder / name, box, flags.most)).items():
            share = told["agree"] / max(told["verdicts"], 1)
            cells = (
                f"{name} {run}",
                told["outputs"],
                told["sympy"],
                told["verdicts"],
                f"{share:.2%}",
                told["lost"],
                told["failed"],
            )
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
        print(f"  {time.perf_counter() - began:.0f} s")
    for why, times in REASONS.most_common(20):
        print(f"  {times} × {why}")


if __name__ == "__main__":
    main()
