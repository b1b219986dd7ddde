"""Starts a jailed program, reads what it writes, and ends it when it passes a limit."""

from __future__ import annotations

import json
import os
import resource
import select
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pluribus.sandbox._jail import Limits, Sandbox, command

_POLL_S = 0.1
_END_S = 10.0
_PIECE = 1 << 16
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108  # the jail's own
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
}
"""All the environment there is, for the jail's own processes too; with fixed hashes a program always says the same."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a program."""

    exit_code: int | None
    """As a shell counts: 0 is fine, 128 + n ended by signal n; None: it was stopped."""
    stdout: str
    stderr: str
    stopped: str | None
    """The limit it passed: wall time, CPU time, memory or output; None: it ended by itself."""
    seconds: float
    """Wall-clock time, the jail's own included."""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


def watched(box: Sandbox, code: str, stdin: str, limits: Limits, cancelled: threading.Event) -> Run:
    """Runs one program to its end or to the first limit it passes, or until `cancelled` is set."""
    began = time.monotonic()
    with ExitStack() as stack:
        program = _in_memory(stack, code)
        info, told = (stack.enter_context(end) for end in _pipe())
        folder = "/" if box.kind == "bubblewrap" else _folder(stack)
        process = subprocess.Popen(  # noqa: S603  # the jail's command line; what is untrusted is only in the file
            command(box, limits, program, told.fileno()),
            stdin=_in_memory(stack, stdin),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_ENVIRONMENT | ({} if folder == "/" else {"HOME": folder, "TMPDIR": folder}),
            cwd=folder,
            pass_fds=(program, told.fileno()),
            start_new_session=True,
        )
        told.close()
        with process:
            watch = _Watch(process, limits, began + limits.wall_s, cancelled)
            try:
                watch.until_end()
            finally:
                _kill(process)
        if box.kind == "bubblewrap":
            _until_gone(info)
    return watch.record(time.monotonic() - began)


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    read, write = os.pipe()
    return os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb", buffering=0)


def _in_memory(stack: ExitStack, text: str) -> int:
    """A handle to read the text from; the file has no name that anybody could find."""
    handle = os.memfd_create("text")
    stack.callback(os.close, handle)
    with open(handle, "wb", closefd=False) as file:
        file.write(text.encode("utf-8", "replace"))
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _folder(stack: ExitStack) -> str:
    """Where a program without walls starts; gone afterwards."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pluribus-", ignore_cleanup_errors=True))
    if os.geteuid() == 0:
        Path(folder).chmod(0o777)  # nobody has to write there
    return folder


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The whole group; behind walls its end is the end of the namespace and of everything in it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _until_gone(info: IO[bytes]) -> None:
    """Waits for the end of the namespace, which dies a moment after the process that was started and killed."""
    os.set_blocking(info.fileno(), False)
    written = info.read(_PIECE)
    if not written:  # it ended before there was a namespace
        return
    with suppress(ProcessLookupError):
        first = os.pidfd_open(json.loads(written)["child-pid"])
        try:
            select.select([first], [], [], _END_S)
        finally:
            os.close(first)


class _Watch:
    def __init__(
        self, process: subprocess.Popen[bytes], limits: Limits, deadline: float, cancelled: threading.Event
    ) -> None:
        self.process, self.limits, self.deadline, self.cancelled = process, limits, deadline, cancelled
        self.said = {pipe.fileno(): bytearray() for pipe in (process.stdout, process.stderr) if pipe is not None}
        self.most = limits.output_kb << 10
        self.stopped: str | None = None

    def until_end(self) -> None:
        """Returns when the process has ended or must end."""
        end = os.pidfd_open(self.process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                for handle in (end, *self.said):
                    os.set_blocking(handle, False)
                    selector.register(handle, selectors.EVENT_READ)
                while not self._ended(selector, end) and self.stopped is None:
                    self.stopped = self._passed()
        finally:
            os.close(end)

    def _ended(self, selector: selectors.BaseSelector, end: int) -> bool:
        left = min(_POLL_S, self.deadline - time.monotonic())
        ready = {key.fd for key, _ in selector.select(max(left, 0))}
        for handle in self.said:
            # What was written before the end is read to its end.
            while (handle in ready or end in ready) and (more := self._read(handle)) is not None:
                if not more:
                    ready.discard(handle)
                    self._forget(selector, handle)
                    break
        return end in ready

    def _read(self, handle: int) -> bytes | None:
        """The next piece, empty at the end; None: there is none now, or it was enough."""
        if len(self.said[handle]) > self.most:
            return None
        try:
            more = os.read(handle, _PIECE)
        except BlockingIOError:
            return None
        self.said[handle] += more
        return more

    @staticmethod
    def _forget(selector: selectors.BaseSelector, handle: int) -> None:
        if handle in selector.get_map():
            selector.unregister(handle)

    def _passed(self) -> str | None:
        """The limit that was passed."""
        if self.cancelled.is_set():
            return "cancelled"
        if any(len(text) > self.most for text in self.said.values()):
            return "output"
        if time.monotonic() >= self.deadline:
            return "wall time"
        return "memory" if _memory(self.process.pid) > self.limits.memory_mb << 20 else None

    def record(self, seconds: float) -> Run:
        """What came of it; after the process was waited for."""
        out, err = (bytes(text[: self.most]).decode("utf-8", "replace") for text in self.said.values())
        code = self.process.returncode
        code = 128 - code if code < 0 else code
        full = any(len(text) > self.most for text in self.said.values())
        stopped = self.stopped or ("output" if full else _stopped_inside(code, err))
        return Run(None if stopped else code, out, err, stopped, seconds)


def _stopped_inside(code: int, err: str) -> str | None:
    """The limit that ended a program from inside."""
    if code == 128 + signal.SIGXCPU:
        return "CPU time"
    last = err.rstrip().rpartition("\n")[2]
    return "memory" if code and last.startswith("MemoryError") else None


def _memory(pid: int) -> int:
    """Bytes that a process and all below it hold of their own."""
    return sum(map(_own_memory, _tree(pid)))


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        with suppress(OSError):
            found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii").split())
    return found


def _own_memory(pid: int) -> int:
    """Bytes of anonymous memory; 0 for a process that has ended."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text("ascii").split())
    except OSError:
        return 0
    return (resident - shared) * resource.getpagesize()
