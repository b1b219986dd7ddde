"""One process of a sweep: `python -m pluribus.sweep.worker WORKSPACE`. Cells come as JSON lines on stdin; progress and
outcomes go as JSON lines to stdout. It ends when its input does."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from pluribus.codec import plain
from pluribus.config import BudgetConfig, make_config
from pluribus.errors import ConfigError, PluribusError
from pluribus.run import Pool, make_budget
from pluribus.store import Store
from pluribus.sweep.engine import run_cell
from pluribus.sweep.plan import Tasks
from pluribus.sweep.record import FAILED, Outcome

_TELL_S = 0.3
"""Between two messages on one cell's progress pass so many seconds."""


def main(home: str) -> None:
    with _private_stdout() as out, Store.open(home) as store:
        asyncio.run(_serve(store, out))


@contextmanager
def _private_stdout() -> Iterator[TextIO]:
    """What a library prints goes to stderr, so that it can not stand between the messages."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        yield out


async def _serve(store: Store, out: TextIO) -> None:
    """Cell by cell, until the input ends, which also ends a cell under way; what it has stored stays."""
    messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(_work(store, out, messages))

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(messages.put_nowait, json.loads(line))
        loop.call_soon_threadsafe(work.cancel)

    threading.Thread(target=read, daemon=True).start()
    await asyncio.wait([work])
    if not work.cancelled() and (error := work.exception()):
        raise error


async def _work(store: Store, out: TextIO, messages: asyncio.Queue[dict[str, Any] | None]) -> None:
    first = await messages.get()
    assert first is not None
    pool = Pool(make_budget(BudgetConfig(**first["budget"])))
    tasks = Tasks()
    try:
        while (message := await messages.get()) is not None:
            outcome = await _cell(message, store, pool, tasks, out)
            _tell(out, {"outcome": plain(outcome)})
    finally:
        await pool.close()


async def _cell(message: dict[str, Any], store: Store, pool: Pool, tasks: Tasks, out: TextIO) -> Outcome:
    place, told = message["cell"], 0.0

    def advance(cell: int, done: int, sent: int) -> None:
        nonlocal told
        if time.monotonic() - told >= _TELL_S:
            told = time.monotonic()
            _tell(out, {"done": done, "sent": sent})

    try:
        prepared = tasks.prepared(make_config(message["config"], "a cell"))
        if prepared.id != message["run"]:
            raise ConfigError(
                f"the cell became run {prepared.id} here, expected {message['run']}", hint="did a file change?"
            )
        await pool.keep(prepared.table.specs)  # a GPU holds the models of one cell, not of all
    except PluribusError as error:
        return Outcome(place, FAILED, 0.0, str(error))
    return await run_cell(place, prepared, store, pool, advance)


def _tell(out: TextIO, message: dict[str, Any]) -> None:
    print(json.dumps(message), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
