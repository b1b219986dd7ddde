"""A thread that owns the writing connection and commits what it is given in batches."""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from pluribus.errors import StoreError

BATCH_S = 0.05
BATCH_JOBS = 500
Statement = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Job:
    """Statements that belong together: all of them are committed or none."""

    statements: Callable[[], Sequence[Statement]]
    """Called in the writer's thread, so that encoding a record costs its caller nothing."""
    committed: Callable[[], object] | None = None


class Writer:
    """Accepts jobs from any thread, in order; `flush` returns when all accepted so far are on disk."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._accepted = 0
        self._written = 0
        self._hurry = False
        self._closed = False
        self._ended = False
        self._rejected: list[str] = []
        self._broken: str | None = None
        self._pid = os.getpid()
        # a daemon, since a forgotten close() must not keep the interpreter alive; atexit then still flushes
        self._thread = threading.Thread(target=self._work, name="pluribus-store", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def put(self, job: Job) -> None:
        with self._changed:
            if self._closed:
                raise StoreError("the store is closed")
            self._raise_if_broken()
            self._jobs.append(job)
            self._accepted += 1
            if len(self._jobs) in (1, BATCH_JOBS):
                self._changed.notify_all()

    def flush(self) -> None:
        """Waits until every earlier put is durable; StoreError names what could not be written."""
        with self._changed:
            goal = self._accepted
            if self._written < goal:
                self._hurry = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._written >= goal or self._ended)
            self._raise_if_broken()
            rejected, self._rejected = self._rejected, []
        if rejected:
            raise StoreError(f"{len(rejected)} record(s) could not be stored: {rejected[0]}")

    def close(self) -> None:
        """Flushes, ends the thread and closes the connection. Safe to call twice."""
        if self._closed or os.getpid() != self._pid:  # a forked child has the object but not the thread
            return
        atexit.unregister(self.close)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._db.close()
        self.flush()

    def _raise_if_broken(self) -> None:
        if self._broken:
            raise StoreError(f"nothing can be written any more: {self._broken}", hint="what was flushed is safe")

    def _work(self) -> None:
        try:
            while jobs := self._next_batch():
                self._write(jobs)
                with self._changed:
                    self._written += len(jobs)
                    self._changed.notify_all()
        finally:
            with self._changed:
                if not self._closed and not self._broken:  # a bug in a job: whoever waits must not wait for ever
                    self._broken = "the writer stopped"
                self._ended = True
                self._changed.notify_all()

    def _next_batch(self) -> list[Job]:
        """Waits for work, then a moment for more of it; empty when the writer is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed)
            self._changed.wait_for(self._is_urgent, timeout=BATCH_S)
            jobs, self._jobs, self._hurry = self._jobs, [], False
            return jobs

    def _is_urgent(self) -> bool:
        return self._hurry or self._closed or len(self._jobs) >= BATCH_JOBS

    def _write(self, jobs: Sequence[Job]) -> None:
        ready = [(job, statements) for job in jobs if (statements := self._prepared(job)) is not None]
        if self._broken or not ready:
            return
        try:
            self._commit([statement for _, statements in ready for statement in statements])
        except sqlite3.OperationalError as error:  # disk full, locked for too long: no other record would fare better
            self._broken = str(error)
        except (sqlite3.Error, OverflowError) as error:
            self._write_singly([job for job, _ in ready], error)
        else:
            for job, _ in ready:
                if job.committed is not None:
                    job.committed()

    def _prepared(self, job: Job) -> Sequence[Statement] | None:
        try:
            return job.statements()
        except (TypeError, ValueError, OverflowError) as error:
            self._rejected.append(str(error))
            return None

    def _write_singly(self, jobs: Sequence[Job], error: Exception) -> None:
        """One bad record must not cost the others of its batch."""
        if len(jobs) == 1:
            self._rejected.append(str(error))
            return
        for job in jobs:
            self._write([job])

    def _commit(self, statements: Sequence[Statement]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for sql, group in groupby(statements, key=itemgetter(0)):
                self._db.executemany(sql, map(itemgetter(1), group))
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk rolls back by itself
                self._db.execute("ROLLBACK")
            raise
