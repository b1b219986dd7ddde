"""Wait for everybody, but not for ever: a quorum with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Late:
    """Stands where a result would stand: this one was not there when the others went on."""

    waited_s: float


async def gather_quorum(
    coros: Sequence[Coroutine[Any, Any, T]],
    quorum: int,
    deadline_s: float,
    *,
    counts: Callable[[T], bool] = lambda _: True,
) -> list[T | Late]:
    """All results in order, but after the deadline it goes on as soon as `quorum` of them are there.

    Who is late is cancelled, and a Late stands in its place. Fewer than `quorum` at the deadline: it waits on until
    the quorum is reached or all are done. An exception ends it as in `asyncio.gather`, the others are cancelled.

    Args:
        quorum: results needed to go on without the rest, in [1, len(coros)].
        deadline_s: seconds from now.
        counts: whether a result counts for the quorum; a seat that failed does not.

    >>> async def seat(seconds: float) -> str:
    ...     await asyncio.sleep(seconds)
    ...     return "here"
    >>> asyncio.run(gather_quorum([seat(0), seat(60), seat(0)], quorum=2, deadline_s=0.01))
    ['here', Late(waited_s=...), 'here']
    """
    if not 1 <= quorum <= len(coros):
        for coro in coros:
            coro.close()
        raise ValueError(f"quorum is {quorum}, expected 1 to {len(coros)}")
    loop = asyncio.get_running_loop()
    start = loop.time()
    tasks = [asyncio.ensure_future(coro) for coro in coros]
    try:
        await _wait(tasks, quorum, start + deadline_s, counts)
        waited_s = loop.time() - start
        return [task.result() if task.done() else Late(waited_s) for task in tasks]
    finally:
        await _cancel(tasks)


async def _wait(tasks: Sequence[asyncio.Task[T]], quorum: int, deadline: float, counts: Callable[[T], bool]) -> None:
    loop = asyncio.get_running_loop()
    pending = set(tasks)
    while pending:
        left_s = deadline - loop.time()
        there = sum(task.done() and counts(task.result()) for task in tasks)
        if left_s <= 0 and there >= quorum:
            return
        _, pending = await asyncio.wait(
            pending, timeout=left_s if left_s > 0 else None, return_when=asyncio.FIRST_COMPLETED
        )


async def _cancel(tasks: Sequence[asyncio.Task[T]]) -> None:
    """Ends those still at work and waits until they have let go of what they hold."""
    late = [task for task in tasks if not task.done()]
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
