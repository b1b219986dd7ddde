"""Programs in the sandbox: what a jail costs, whether published solutions pass, and whether recorded verdicts agree.

    python benchmarks/programs.py [--humaneval FILE] [--mbpp FILE] [--samples FILE] [--per-task N] [--weak]

Without a file only the cost is measured: programs per second in the jail against the bare interpreter, in one run.
With HumanEval's or MBPP's file every published solution is run with its tests, as it stands and as the project reads
it, and so is one that returns None. With recorded samples (JSON lines of task_id, samples, correct) the first N of
each task are read, run and compared with what is recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from pluribus.answers import canonical, read
from pluribus.label import try_tests
from pluribus.sandbox import Run, Sandbox, cores, run_program, sandbox
from pluribus.tasks import load_task
from pluribus.types import Key, Question

Case = tuple[str, str, tuple[str, ...]]
"""Name, program, tests."""
_SPLITS = {"humaneval": ("test",), "mbpp": ("prompt", "test", "validation", "train")}


async def per_second(work: Callable[[], Awaitable[object]], number: int) -> float:
    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(number)))
    return number / (time.perf_counter() - began)


async def cost(box: Sandbox, number: int) -> None:
    """A program that does nothing, in the jail and without it, as many at a time as there are cores."""
    slots = asyncio.Semaphore(cores())

    async def bare() -> None:
        async with slots:
            process = await asyncio.create_subprocess_exec(sys.executable, "-I", "-c", "print(1)", stdout=-1)
            await process.communicate()

    plain = await per_second(bare, number)
    jailed = await per_second(lambda: run_program(box, "print(1)"), number)
    print(f"{jailed:.0f} programs/s in the jail, {plain:.0f} bare: {jailed / plain:.2f} × ({cores()} cores)")


async def verdicts(box: Sandbox, cases: Sequence[Case]) -> list[tuple[bool, Run]]:
    return list(await asyncio.gather(*(try_tests(box, program, tests) for _, program, tests in cases)))


async def published(box: Sandbox, task: str, file: Path) -> bool:
    pairs = [pair for split in _SPLITS[task] for pair in load_task(task, split, data=file).pairs]
    keyed = [(question, key) for question, key in pairs if key is not None and key.answer is not None]
    good = [await share(box, f"{task}: {how}", made) for how, made in _versions(keyed)]
    broken = [(question.id, _broken(question), key.tests) for question, key in keyed]
    passing = [case[0] for case, (ok, _) in zip(broken, await verdicts(box, broken), strict=True) if ok]
    print(f"{task}: returns None: {len(passing)}/{len(broken)} pass {' '.join(passing)}")
    return all(good)


def _versions(keyed: Sequence[tuple[Question, Key]]) -> list[tuple[str, list[Case]]]:
    as_published = [(question.id, str(key.answer), key.tests) for question, key in keyed]
    as_read = [(question.id, str(canonical(question, str(key.answer))), key.tests) for question, key in keyed]
    return [("as published", as_published), ("as read", as_read)]


def _broken(question: Question) -> str:
    return f"def {question.metadata['entry_point']}(*arguments, **named):\n    return None"


async def share(box: Sandbox, name: str, cases: Sequence[Case]) -> bool:
    began = time.perf_counter()
    found = await verdicts(box, cases)
    seconds = time.perf_counter() - began
    print(f"{name}: {sum(ok for ok, _ in found)}/{len(cases)} pass, {len(cases) / seconds:.0f} programs/s")
    for (case, _, _), (ok, run) in zip(cases, found, strict=True):
        if not ok:
            print(f"  {case}: {run.stopped or run.exit_code}: {run.stderr.strip().rpartition(chr(10))[2][:120]}")
    return all(ok for ok, _ in found)


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).split(b"\n") if line]


async def recorded(box: Sandbox, humaneval: Path, rows: Sequence[dict], per_task: int) -> None:
    pairs = {question.id: (question, key) for question, key in load_task("humaneval", data=humaneval).pairs}
    cases: list[Case] = []
    expected: list[bool] = []
    unread: Counter[bool] = Counter()
    for row in rows:
        question, key = pairs[row["task_id"]]
        for number, (text, correct) in enumerate(zip(row["samples"], row["correct"], strict=True)):
            if number >= per_task or key is None:
                break
            program = read(question, text)
            if program is None:
                unread[bool(correct)] += 1
            else:
                cases.append((f"{question.id}#{number}", program, key.tests))
                expected.append(bool(correct))
    found = await verdicts(box, cases)
    differing = [
        f"  {name}: recorded {'right' if correct else 'wrong'}, {run.stopped or run.stderr.strip()[-100:]!r}"
        for (name, _, _), correct, (ok, run) in zip(cases, expected, found, strict=True)
        if ok is not correct
    ]
    same = len(cases) - len(differing) + unread[False]
    print(f"recorded verdicts: {same}/{len(cases) + unread.total()} agree; {unread.total()} replies held no program")
    print(*differing, sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("humaneval", "mbpp", "samples"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--per-task", type=int, default=10)
    parser.add_argument("--number", type=int, default=100, help="programs to measure the cost with")
    parser.add_argument("--weak", action="store_true", help="the sandbox of limits alone")
    said = parser.parse_args()
    return asyncio.run(measure(said, sandbox("rlimit" if said.weak else True)))


async def measure(said: argparse.Namespace, box: Sandbox) -> int:
    await cost(box, said.number)
    files = {"humaneval": said.humaneval, "mbpp": said.mbpp}
    good = [await published(box, task, file) for task, file in files.items() if file is not None]
    if said.samples is not None:
        await recorded(box, said.humaneval, lines(said.samples), said.per_task)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
