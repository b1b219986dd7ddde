"""Runs the cells of a plan in this process; what they share is open once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from pluribus.engines.asyncio import each, rare_collections
from pluribus.errors import PluribusError, StoreError
from pluribus.evaluate import Row
from pluribus.run import Pool, Prepared, RunResult, execute, make_budget, opened
from pluribus.store import Store
from pluribus.sweep.plan import Plan, all_specs
from pluribus.sweep.record import FAILED, FINISHED, STOPPED, Ledger, Outcome
from pluribus.traffic import Tally


class Watch(Protocol):
    """Who looks on."""

    def begin(self, cell: int) -> None: ...

    def advance(self, cell: int, done: int, sent: int) -> None:
        """So many questions of the cell have an answer, and so many requests were sent for it."""
        ...

    def end(self, outcome: Outcome) -> None: ...

    def say(self, words: str) -> None:
        """A remark for people."""
        ...


async def check(plan: Plan, store: Store) -> None:
    """Opens every cell's models without asking them: a missing key, package, record or price is found before the first
    call is paid for.

    Raises:
        PluribusError: the first thing that is wrong, with the cell's label.
    """
    pool = Pool(make_budget(plan.budget))
    try:
        for cell in plan.cells:
            async with opened(cell.prepared.table, cell.prepared.config, store, pool=pool):
                pass
    finally:
        await pool.close()


async def run_here(plan: Plan, store: Store, watch: Watch, jobs: int = 1) -> list[Outcome]:
    """Every cell, `jobs` at a time; a cell that fails is an outcome, and the others go on.

    Returns: one per cell that began, in the order in which they ended.
    """
    pool = Pool(make_budget(plan.budget))
    ledger = Ledger(store, plan)
    left = dict(enumerate(plan.cells))
    outcomes: list[Outcome] = []

    async def work(place: int) -> bool:
        watch.begin(place)
        outcome = await run_cell(place, plan.cells[place].prepared, store, pool, watch.advance)
        outcomes.append(outcome)
        ledger.end(outcome)
        watch.end(outcome)
        del left[place]
        await pool.keep(all_specs(left.values()))
        return outcome.status != STOPPED

    try:
        with rare_collections():
            await each(range(len(plan.cells)), work, min(jobs, len(plan.cells)))
    finally:
        await pool.close()
    return outcomes


async def run_cell(
    place: int, prepared: Prepared, store: Store, pool: Pool, advance: Callable[[int, int, int], None]
) -> Outcome:
    """One cell as an ordinary run. What goes wrong with its models is its outcome; a broken workspace is raised."""
    began, tally, done = time.monotonic(), Tally(), 0

    def progress(row: Row, counters: Tally) -> None:
        nonlocal done
        done += 1
        advance(place, done, counters.calls)

    try:
        result = await execute(prepared, store, progress=progress, tally=tally, pool=pool)
    except StoreError:
        raise
    except PluribusError as error:
        return Outcome(place, FAILED, time.monotonic() - began, str(error), sent=tally.calls)
    return _outcome(place, result, time.monotonic() - began)


def _outcome(place: int, result: RunResult, seconds: float) -> Outcome:
    score, tally = result.score, result.tally
    status, reason = FINISHED, None
    if result.stopped:
        status, reason = STOPPED, result.stopped
    elif all(row.status == "failed" for row in result.rows):
        ((why, _),) = result.failures().most_common(1)
        status, reason = FAILED, f"no question was answered: {why}"
    return Outcome(
        place, status, seconds, reason, score, tally.calls, max(score.calls - tally.calls, 0), tally.prompt_tokens,
        tally.completion_tokens, tally.cost_usd, tally.unpriced, sum(row.status == "degraded" for row in result.rows),
    )  # fmt: skip
