"""Model-written programs in a jail: no network, no host files, no environment, and a limit on all they can use.

`sandbox(allow)` finds what this machine offers; `run_program` runs one program in it. Under bubblewrap a program lives
in namespaces of its own, as nobody, and sees the system's libraries and a Python read-only, a small private /tmp, and
nothing else: no home, no /proc, no other process. Nothing runs unless somebody said so: a door says it with
`allowing`, a method asks with `current` or `allowed`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from weakref import WeakKeyDictionary

from pluribus.errors import CodeNotAllowed, MissingSandbox
from pluribus.sandbox._jail import Allow, Kind, Limits, Sandbox, candidates
from pluribus.sandbox._watch import Run, watched

__all__ = [
    "Allow",
    "Kind",
    "Limits",
    "Run",
    "Sandbox",
    "allowed",
    "allowing",
    "cores",
    "current",
    "run_program",
    "sandbox",
]

_current: ContextVar[Sandbox | None] = ContextVar("sandbox", default=None)


def sandbox(allow: Allow, limits: Limits | None = None) -> Sandbox:
    """The sandbox of this machine, tried out.

    Args:
        allow: True for bubblewrap; "rlimit" for the weaker one, which has limits but no walls; False raises.
        limits: of each program; None takes the usual ones.

    Raises:
        CodeNotAllowed: `allow` is False.
        MissingSandbox: there is no bubblewrap, or it does not work here; says why and what to do.
    """
    if allow is False:
        raise CodeNotAllowed("this runs programs that models write")
    found = _found("bubblewrap" if allow is True else allow)
    return replace(found, limits=limits or Limits())


@contextmanager
def allowing(box: Sandbox | None) -> Iterator[None]:
    """Within it `current` gives this sandbox: for doors, around everything that asks a method."""
    token = _current.set(box)
    try:
        yield
    finally:
        _current.reset(token)


def allowed() -> Sandbox | None:
    """The sandbox that programs may run in here; None: they may not run.

    >>> allowed() is None
    True
    """
    return _current.get()


def current() -> Sandbox:
    """The sandbox that programs may run in here; CodeNotAllowed when nobody allowed it."""
    if (box := _current.get()) is None:
        raise CodeNotAllowed("this runs programs that models write")
    return box


async def run_program(box: Sandbox, code: str, stdin: str = "", limits: Limits | None = None) -> Run:
    """Runs one Python program; whatever it does, a record comes back and none of its processes is left.

    As many run at a time as there are cores; the others wait, and waiting does not count as time.

    Args:
        box: where; see `sandbox`.
        code: the source.
        stdin: what the program reads.
        limits: in the place of the sandbox's own.
    """
    cancelled = threading.Event()
    async with _slots():
        job = asyncio.ensure_future(asyncio.to_thread(watched, box, code, stdin, limits or box.limits, cancelled))
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.wait([job])
            raise


def cores() -> int:
    """Programs that run at a time."""
    return len(os.sched_getaffinity(0))


_slots_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _slots() -> asyncio.Semaphore:
    return _slots_by_loop.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(cores()))


@cache
def _found(kind: Kind) -> Sandbox:
    """The first jail of a kind that runs a program as it should."""
    why = ""
    for box in candidates(kind):
        run = watched(box, "print(6 * 7)", "", box.limits, threading.Event())
        if run.ok and run.stdout == "42\n":
            return box
        why = why or run.stopped or run.stderr.strip().rpartition("\n")[2] or f"exit code {run.exit_code}"
    raise MissingSandbox(f"the {kind} sandbox does not work here ({why})", hint=_WEAKER if kind != "rlimit" else None)


_WEAKER = "or allow the weaker one, limits without walls, with --allow-code-execution=rlimit"
