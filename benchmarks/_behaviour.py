"""Which of many programs for one task do the same, for votes on programs: private to `stopping.py`.

Two programs are of one class when every call that the official tests make gives equal values, or an exception of the
same type. So the classes use the inputs of the tests and not the outputs they expect: in the place of the program the
tests are handed the value of the published solution, so that none of their asserts fails. A program that never returns
anything but None (it is empty, does not compile, raises each time, or is too slow) answers nothing.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluribus.sandbox import Limits, Sandbox, run_program, sandbox

SAMPLES = Path("samples", "codet_humaneval_100samples", "humaneval_codegen16B_n100_labelled.jsonl.gz")
TASKS = Path("benchmarks", "humaneval", "HumanEval.jsonl.gz")
LIMITS = Limits(wall_s=900, cpu_s=60, memory_mb=2048, output_kb=4096)

DRIVER = '''
import copy, hashlib, json, os, random, resource, select, signal, sys, time

CALL_S, CHILD_S, MEMORY = 1.0, 20.0, 512 << 20
"""Processor seconds of one call, wall seconds and bytes of one program."""

class Late(BaseException):
    pass

def late(*_):
    raise Late

def plain(x):
    """A text that is equal for values that `==` calls equal, but for the seventh digit behind the point."""
    if x is None:
        return "None"
    if isinstance(x, (bool, int)):
        return str(int(x))
    if isinstance(x, float):
        near = round(x, 6)
        return str(int(near)) if near.is_integer() else repr(near)
    if isinstance(x, (list, tuple)):
        return type(x).__name__ + "(" + ",".join(map(plain, x)) + ")"
    if isinstance(x, (set, frozenset)):
        return "set(" + ",".join(sorted(map(plain, x))) + ")"
    if isinstance(x, dict):
        return "dict(" + ",".join(sorted(plain(k) + ":" + plain(v) for k, v in x.items())) + ")"
    return type(x).__name__ + ":" + repr(x) if type(x).__repr__ is not object.__repr__ else type(x).__name__

def called(function, args, names):
    signal.setitimer(signal.ITIMER_VIRTUAL, CALL_S)
    try:
        return "= " + plain(function(*args, **names))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

def observed(program, task):
    """What the program did in each call of the tests, in their order; ends at the first call that is too slow."""
    known = {"__name__": "solution"}
    exec(task["prompt"] + task["canonical_solution"] + "\\n" + task["test"], known)
    names, seen = {"__name__": "program"}, []
    reference = known[task["entry_point"]]
    try:
        exec(compile(program, "program", "exec"), names)
        tried = names[task["entry_point"]]
    except Exception:
        return []
    def candidate(*args, **more):
        given = copy.deepcopy((args, more))
        try:
            seen.append(called(tried, *given))
        except Exception as problem:
            seen.append("! " + type(problem).__name__)
        except Late:
            seen.append("! late")
            raise
        return reference(*args, **more)
    random.seed(0)
    try:
        known["check"](candidate)
    except Late:
        pass
    return seen

def child(program, task, pipe):
    signal.signal(signal.SIGVTALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nowhere, handle)
    seen = observed(program, task)
    name = hashlib.sha256("\\n".join(seen).encode("utf-8", "backslashreplace")).hexdigest()[:16]
    said = [one for one in seen if one[0] == "=" and one != "= None"]
    told = [name if said else None, len(seen), seen[-1:] == ["! late"]]
    os.write(pipe, json.dumps(told).encode())

def forked(program, task):
    """[class, calls seen, whether one was too slow]; [None, 0, False]: the process died."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(read)
        try:
            child(program, task, write)
        finally:
            os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], CHILD_S)
    told = os.read(read, 4096) if ready else b""
    os.close(read)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return json.loads(told) if told else [None, 0, False]

task = json.loads(sys.stdin.read())
for program in task["programs"]:
    print(json.dumps(forked(program, task)), flush=True)
'''


@dataclass(frozen=True, slots=True)
class Programs:
    """The samples of one task."""

    task_id: str
    classes: tuple[str | None, ...]
    """One per sample; None: it never returned a value."""
    correct: tuple[bool, ...]
    """Whether it passes the official tests, as recorded."""


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one program."""

    kind: str | None
    calls: int
    late: bool


def humaneval(data: Path, cache: Path) -> list[Programs]:
    """The 100 recorded samples of each of the 164 tasks with their classes; runs what is not kept in `cache`."""
    rows, tasks = list(lines(data / SAMPLES)), {row["task_id"]: row for row in lines(data / TASKS)}
    kept = cache / f"behaviour-{_fingerprint(data)}.json"
    known: dict[str, list[str | None]] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    missing = [row for row in rows if row["task_id"] not in known]
    if missing:
        known |= asyncio.run(_classes(missing, tasks))
        kept.write_text(json.dumps(known), "utf-8")
    return [Programs(row["task_id"], tuple(known[row["task_id"]]), tuple(map(bool, row["correct"]))) for row in rows]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) as file:
        yield from (json.loads(line) for line in file)


def _fingerprint(data: Path) -> str:
    """Changes with the samples, with the tests, and with the way they are run."""
    parts = ((data / SAMPLES).read_bytes(), (data / TASKS).read_bytes(), f"{DRIVER}{LIMITS}".encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


async def _classes(rows: Sequence[Mapping[str, Any]], tasks: Mapping[str, Any]) -> dict[str, list[str | None]]:
    box, done = sandbox(True), 0

    async def one(row: Mapping[str, Any]) -> list[str | None]:
        nonlocal done
        programs = [row["prompt_used"] + body(sample) for sample in row["samples"]]
        distinct = list(dict.fromkeys(programs))
        told = await _told(box, tasks[row["task_id"]], distinct)
        done += 1
        print(f"\rprograms of {done:,} of {len(rows):,} tasks", end="", file=sys.stderr, flush=True)
        return [told[program].kind for program in programs]

    found = await asyncio.gather(*map(one, rows))
    print(file=sys.stderr)
    return {row["task_id"]: classes for row, classes in zip(rows, found, strict=True)}


def body(sample: str) -> str:
    """A completion up to its first line that is no part of the function.

    >>> body("    return 1\\n\\nprint(2)\\n")
    '    return 1\\n'
    """
    kept = []
    for line in sample.split("\n"):
        if line.strip() and not line[0].isspace():
            break
        kept.append(line)
    return "\n".join(kept)


async def _told(box: Sandbox, task: Mapping[str, Any], programs: Sequence[str]) -> dict[str, Told]:
    """Runs all programs of a task in one jail, each in a process of its own; what ends the jail answers nothing."""
    given = {name: task[name] for name in ("prompt", "canonical_solution", "test", "entry_point")}
    reference = task["prompt"] + task["canonical_solution"]
    asked, found = [reference, *programs], list[Told]()
    while len(found) < len(asked):
        run = await run_program(box, DRIVER, json.dumps({**given, "programs": asked[len(found) :]}), LIMITS)
        whole = run.stdout[: run.stdout.rfind("\n") + 1]
        found += [Told(*json.loads(line)) for line in whole.splitlines()]
        if len(found) < len(asked):
            found.append(Told(None, 0, False))
    if found[0].kind is None or found[0].late:
        raise RuntimeError(f"{task['task_id']}: the published solution does not get through the calls of its tests")
    return dict(zip(programs, found[1:], strict=True))
