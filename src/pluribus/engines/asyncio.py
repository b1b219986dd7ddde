"""Many attempts at once on this machine's event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pluribus.errors import first_of

T = TypeVar("T")


async def each(items: Iterable[T], work: Callable[[T], Awaitable[bool]], width: int) -> None:
    """Runs `work` on every item, `width` at a time, in order of start.

    An item whose work returns False stops new items from being started; those under way are finished. An exception
    or a cancellation ends all of them.
    """
    queue = iter(items)
    stopped = False

    async def worker() -> None:
        nonlocal stopped
        for item in queue:
            if stopped or not await work(item):
                stopped = True
                return

    with rare_collections():
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(width):
                    group.create_task(worker())
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None


@contextmanager
def rare_collections() -> Iterator[None]:
    """Fewer garbage collections: the records of a run live on, and looking through all of them again and again took
    a fifth of the engine's time."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 20_000), max(before[1], 20), max(before[2], 20))
    try:
        yield
    finally:
        gc.set_threshold(*before)


def block(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end from synchronous code, also inside a running loop (a notebook): there on a private
    loop in a thread of its own."""
    return _on_private_loop(work) if _inside_a_loop() else asyncio.run(work)


def _inside_a_loop() -> bool:
    """Asked apart from the work, whose errors would else carry "no running event loop" as what they came from."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _on_private_loop(work: Coroutine[Any, Any, T]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(asyncio.run(work))
        except BaseException as error:  # handed to the caller below, whatever it is
            errors.append(error)

    thread = threading.Thread(target=target, name="pluribus")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
