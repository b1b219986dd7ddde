"""Cells in several processes, each with its own GPU in view; this process hands out the cells and keeps the record.

A cell goes to the next free process, the largest first. Two cells that may ask the same are never under way in two
processes at once, unless a finished cell has made these calls already: so nothing is asked twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pluribus.codec import build
from pluribus.config import BudgetConfig
from pluribus.errors import ConfigError
from pluribus.store import Store
from pluribus.sweep.engine import Watch
from pluribus.sweep.plan import FirstCall, Plan, limited, rivals
from pluribus.sweep.record import FAILED, STOPPED, Ledger, Outcome

_GPU = re.compile(r"\d+|(GPU|MIG)-[\w/-]+|cpu")
_CPU = "cpu"
_PARTING_S = 10.0
"""How long a process that is told to end may take."""
_LONGEST_LINE = 2**24


def gpus(words: str) -> list[str]:
    """The devices of `--gpus`: numbers, names as `nvidia-smi -L` prints them, or `cpu` for processes that see none.

    >>> gpus("0,1")
    ['0', '1']

    Raises:
        ConfigError: none, one twice, or a word that names no device.
    """
    found = [word.strip() for word in words.split(",")]
    for word in found:
        if not _GPU.fullmatch(word):
            raise ConfigError(
                f"--gpus is {words!r}; {word!r} is no GPU", hint="write numbers, such as --gpus 0,1, or cpu"
            )
    if len(set(found)) < len(found):
        raise ConfigError(
            f"--gpus is {words!r}; it names one GPU twice", hint="for more processes on it: --jobs-per-gpu"
        )
    return found


@dataclass(slots=True)
class _Worker:
    """One process and what it last wrote to stderr."""

    gpu: str
    process: Process
    reader: asyncio.Task[None]
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def ask(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def answer(self) -> dict[str, Any] | None:
        """The next message; None: the process is gone."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None


async def run_in_workers(
    plan: Plan, store: Store, watch: Watch, devices: Sequence[str], per_device: int = 1
) -> list[Outcome]:
    """Every cell, in `len(devices) * per_device` processes; a process that dies costs its cell, and another takes over.

    Each process may take an equal part of the budget's calls, tokens and dollars.

    Returns: one per cell that began, in the order in which they ended.
    """
    slots = [gpu for _ in range(per_device) for gpu in devices][: len(plan.cells)]
    desk = _Desk(plan, store, watch, Ledger(store, plan), limited(plan.budget, len(slots)), len(slots))
    async with asyncio.TaskGroup() as group:
        for gpu in slots:
            group.create_task(desk.serve(gpu))
    return desk.outcomes


@dataclass(slots=True)
class _Desk:
    """Which cells wait, which are under way, and what was asked already."""

    plan: Plan
    store: Store
    watch: Watch
    ledger: Ledger
    budget: BudgetConfig
    processes: int
    outcomes: list[Outcome] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    asked: set[FirstCall] = field(default_factory=set)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self.waiting = list(range(len(self.plan.cells)))

    async def serve(self, gpu: str) -> None:
        """Keeps one process busy until no cell is left; starts another when it dies."""
        worker: _Worker | None = None
        try:
            while (place := await self._next()) is not None:
                if worker is None:
                    worker = await self._start(gpu)
                outcome = await self._run(worker, place)
                await self._end(outcome)
                if worker.process.returncode is not None:
                    worker = None
                if outcome.status == STOPPED:
                    return
        finally:
            if worker is not None:
                await _part(worker)

    async def _next(self) -> int | None:
        """The first waiting cell that shares no open call with one under way; waits for one; None: none is left."""
        async with self.changed:
            while self.waiting:
                for place in self.waiting:
                    if self._free(place):
                        self.waiting.remove(place)
                        self.running.add(place)
                        return place
                await self.changed.wait()
            return None

    def _free(self, place: int) -> bool:
        cells = self.plan.cells
        return not any(rivals(cells[place], cells[other], self.asked) for other in self.running)

    async def _end(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.ledger.end(outcome)
        self.watch.end(outcome)
        async with self.changed:
            self.running.discard(outcome.cell)
            if outcome.status not in (FAILED, STOPPED):
                self.asked |= self.plan.cells[outcome.cell].firsts
            self.changed.notify_all()

    async def _start(self, gpu: str) -> _Worker:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pluribus.sweep.worker", str(self.store.path.parent.resolve()),
            stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_LONGEST_LINE,
            env=_environment(gpu, self.processes),
            start_new_session=True,  # Ctrl-C is for this process, which then ends the others in order
        )  # fmt: skip
        errors: deque[str] = deque(maxlen=20)
        worker = _Worker(gpu, process, asyncio.create_task(_listen(process, errors)), errors)
        worker.ask({"budget": self.budget.model_dump(exclude_none=True)})
        self.watch.say(f"process {process.pid} on {_place(gpu)}")
        return worker

    async def _run(self, worker: _Worker, place: int) -> Outcome:
        began = asyncio.get_running_loop().time()
        self.watch.begin(place)
        prepared = self.plan.cells[place].prepared
        config = prepared.config.model_dump(mode="json", exclude_defaults=True)
        with suppress(ConnectionResetError, BrokenPipeError):
            worker.ask({"cell": place, "run": prepared.id, "config": config})
        while (message := await worker.answer()) is not None:
            if "outcome" in message:
                return build(Outcome, message["outcome"])
            self.watch.advance(place, message["done"], message["sent"])
        why = await _death(worker)
        self.watch.say(why)
        return Outcome(place, FAILED, asyncio.get_running_loop().time() - began, why)


def _place(gpu: str) -> str:
    return "the CPU" if gpu == _CPU else f"GPU {gpu}"


def _environment(gpu: str, processes: int) -> dict[str, str]:
    """One GPU in view; on the CPU none, and an equal part of the cores."""
    if gpu != _CPU:
        return {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}
    threads = max(1, len(os.sched_getaffinity(0)) // processes)
    return {"OMP_NUM_THREADS": str(threads), **os.environ, "CUDA_VISIBLE_DEVICES": ""}


async def _listen(process: Process, errors: deque[str]) -> None:
    """Keeps the last lines that a process writes to stderr."""
    assert process.stderr is not None
    async for line in process.stderr:
        if words := line.decode("utf-8", "replace").strip():
            errors.append(words)


async def _death(worker: _Worker) -> str:
    """Waits for the end of a process that went silent; why it ended, in words."""
    code = await worker.process.wait()
    await worker.reader
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    last = f": {worker.errors[-1]}" if worker.errors and code > 0 else ""
    return f"process {worker.process.pid} on {_place(worker.gpu)} {how}{last}"


async def _part(worker: _Worker) -> None:
    """Closes a process's input, which ends it; ends it by force if it does not."""
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    try:
        async with asyncio.timeout(_PARTING_S):
            await worker.process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            worker.process.kill()
        await worker.process.wait()
    await worker.reader
