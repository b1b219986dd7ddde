"""Worker processes for calculations that may hang, die or eat memory: what passes a job's limit is killed.

A worker is a plain Python program that reads one JSON job a line and writes one JSON reply a line. It is started by its
file, not forked and not through `multiprocessing`: so it works from any thread, inside a running event loop and in
programs without a `__main__` guard. It ends when its input closes, so it can not outlive its parent.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pluribus.errors import UsageError

Job = Mapping[str, Any]
_START_S = 120.0
"""Wall-clock seconds a worker may take to load its packages."""
_END_S = 1.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one job: exactly one of `value` and `failure` is there."""

    value: Mapping[str, Any] | None
    failure: Literal["timeout", "died"] | None = None


class Pool:
    """Up to `size` workers, each started when there is work for it."""

    def __init__(self, program: Path, *, size: int = 2, cpu_s: float = 5.0, wall_s: float = 120.0) -> None:
        """
        Args:
            program: the worker's file; it gets `cpu_s` and writes one line when it is ready.
            size: workers at most, from 1.
            cpu_s: seconds of processor time a job may take. A worker ends itself beyond them, so that what is read in
                time does not depend on how busy the machine is.
            wall_s: wall-clock seconds after which a worker is killed that neither calculates nor replies.
        """
        self._command = [sys.executable, "-P", str(program), str(cpu_s)]
        self.size = size
        self._wall_s = wall_s
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[_Worker] = []
        self._closed = False

    def ask(self, job: Job) -> Reply:
        """One job's reply; waits for a free worker. Raises UsageError when no worker can be started."""
        with self._slots:
            reply = self._try(job)
            # A worker that died may have been ended from outside while it waited: its job gets a new one, once.
            return self._try(job) if reply.failure == "died" else reply

    def _try(self, job: Job) -> Reply:
        worker = self._take()
        reply = worker.ask(job, self._wall_s)
        if reply.failure is None and not self._closed:
            self._idle.append(worker)
        else:
            worker.end()
        return reply

    def processes(self) -> list[int]:
        """The ids of the workers that wait for a job."""
        return [worker.process.pid for worker in self._idle]

    def close(self) -> None:
        """Ends all workers; they are waited for, so none is left as a zombie."""
        self._closed = True
        while self._idle:
            self._idle.pop().end()

    def _take(self) -> _Worker:
        try:
            return self._idle.pop()
        except IndexError:
            return _Worker(self._command)


class _Worker:
    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter and our own file
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        if self._line(_START_S) is None:
            self.end()
            raise UsageError(
                f"the program {Path(command[2]).name} did not start",
                hint="is math-verify installed? pip install pluribus",
            )

    def ask(self, job: Job, limit_s: float) -> Reply:
        pipe = self.process.stdin
        if pipe is None:
            return Reply(None, "died")
        try:
            pipe.write(json.dumps(job).encode() + b"\n")
        except OSError:
            return Reply(None, "died")
        value = self._line(limit_s)
        return Reply(value) if value is not None else Reply(None, self._why())

    def end(self) -> None:
        """Closes its input, which ends it; kills it when that does not help."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _line(self, limit_s: float) -> dict[str, Any] | None:
        """The next line as JSON; None when the worker is gone or the time is up."""
        pipe = self.process.stdout
        if pipe is None:
            return None
        said, deadline = b"", time.monotonic() + limit_s
        while not said.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                return None
            part = os.read(pipe.fileno(), 65536)
            if not part:
                return None
            said += part
        found: dict[str, Any] = json.loads(said)
        return found

    def _why(self) -> Literal["timeout", "died"]:
        """Still running: it passed the wall-clock limit. A worker whose processor time is up exits by SIGPROF."""
        try:
            code = self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "timeout"
        return "timeout" if code == -27 else "died"
