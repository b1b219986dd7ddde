"""Opening the file, and reading it from any thread."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pluribus.errors import StoreError
from pluribus.store.migrations import migrate

BUSY_S = 60.0
"""How long a writer waits for the other processes' transactions, which take milliseconds each."""
CHUNK = 500
"""How many records are in memory at once when many are read."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the file, in WAL mode; StoreError if it can not be opened or is no database."""
    db = None
    try:
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        _retry_while_locked(lambda: db.execute("PRAGMA journal_mode = WAL"))
        db.execute("PRAGMA synchronous = FULL")  # a flush holds through a power cut as well
        return db
    except sqlite3.Error as error:
        if db is not None:
            db.close()
        raise _unreadable(path, error) from error


def create(path: Path) -> sqlite3.Connection:
    """As `connect`, for a file that may be missing or of an older version."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the workspace folder {path.parent} can not be made: {error.strerror}",
            hint="choose another with --home or PLURIBUS_HOME",
        ) from error
    db = connect(path)
    try:
        migrate(db)
        return db
    except sqlite3.Error as error:
        db.close()
        raise _unreadable(path, error) from error
    except StoreError as error:
        db.close()
        raise StoreError(f"{path}: {error}") from error


def _retry_while_locked(action: Callable[[], object]) -> None:
    """Switching a new file to WAL needs it alone, and SQLite does not wait for that by itself."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _unreadable(path: Path, error: sqlite3.Error) -> StoreError:
    if isinstance(error, sqlite3.OperationalError):
        return StoreError(
            f"the workspace file {path} can not be opened: {error}",
            hint="is the folder writable and on a local disk? choose another with --home or PLURIBUS_HOME",
        )
    return StoreError(f"{path} is damaged or no database: {error}", hint="move it away and run again, or import a copy")


class Reader:
    """One connection for all threads of the process; every read is over when it returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = connect(path)
        self._lock = threading.Lock()

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.ProgrammingError as error:
                raise StoreError(f"the store can not be read: {error}") from error
            except sqlite3.Error as error:
                raise _unreadable(self._path, error) from error

    def rows_of(self, sql: str, ids: Iterable[str], *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows for many ids, a chunk at a time; the statement's first `?` is the chunk as a JSON list."""
        wanted = list(ids)
        for start in range(0, len(wanted), CHUNK):
            yield from self.rows(sql, (json.dumps(wanted[start : start + CHUNK]), *values))

    def close(self) -> None:
        with self._lock:
            self._db.close()
