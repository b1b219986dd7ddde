"""The schema, as numbered steps: a file at version n has seen the first n functions of MIGRATIONS.

A released step never changes; a new one is appended. Migrating is one transaction, so a process killed in the
middle leaves the old version, and of several processes that open an old file one migrates it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pluribus.errors import StoreError

APPLICATION_ID = 0x504C5552
"""Marks the file as ours in SQLite's header: "PLUR"."""


def _calls(db: sqlite3.Connection) -> None:
    # a rowid table with an index: long rows are appended, and only the short keys land in random places
    db.execute(
        "CREATE TABLE calls (key TEXT NOT NULL UNIQUE, request BLOB NOT NULL, completion BLOB NOT NULL, "
        "created REAL NOT NULL)"
    )


def _walk(db: sqlite3.Connection) -> None:
    # the same id with another text is another version: a run keeps the one it asked
    db.execute(
        "CREATE TABLE questions (digest TEXT NOT NULL UNIQUE, id TEXT NOT NULL, question BLOB NOT NULL, key BLOB, "
        "version INTEGER NOT NULL)"
    )
    db.execute("CREATE INDEX questions_id ON questions (id, version)")
    db.execute(
        "CREATE TABLE transcripts (attempt_id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, question_id TEXT NOT NULL, "
        "method TEXT NOT NULL, created REAL NOT NULL, transcript BLOB NOT NULL)"
    )
    db.execute(
        "CREATE TABLE decisions (attempt_id TEXT NOT NULL, rule TEXT NOT NULL, tie TEXT NOT NULL, "
        "decision BLOB NOT NULL, PRIMARY KEY (attempt_id, rule, tie)) WITHOUT ROWID"
    )
    db.execute(
        "CREATE TABLE records (kind TEXT NOT NULL, id TEXT NOT NULL, attempt_id TEXT NOT NULL, record BLOB NOT NULL, "
        "PRIMARY KEY (kind, attempt_id, id))"
    )


def _runs(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE runs (id TEXT PRIMARY KEY, name TEXT NOT NULL, created REAL NOT NULL, finished REAL, "
        "status TEXT NOT NULL, config BLOB NOT NULL, totals BLOB NOT NULL)"
    )
    db.execute(
        "CREATE TABLE run_attempts (run_id TEXT NOT NULL, position INTEGER NOT NULL, attempt_id TEXT NOT NULL, "
        "question_id TEXT NOT NULL, digest TEXT, PRIMARY KEY (run_id, position)) WITHOUT ROWID"
    )


def _measures(db: sqlite3.Connection) -> None:
    # a rowid table with an index, as for calls: vectors are long
    db.execute(
        "CREATE TABLE vectors (embedder TEXT NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL, "
        "UNIQUE (embedder, digest))"
    )
    db.execute(
        "CREATE TABLE sweeps (id TEXT PRIMARY KEY, name TEXT NOT NULL, created REAL NOT NULL, config BLOB NOT NULL, "
        "cells BLOB NOT NULL)"
    )


MIGRATIONS: Sequence[Callable[[sqlite3.Connection], None]] = (_calls, _walk, _runs, _measures)


def migrate(db: sqlite3.Connection, to: int = len(MIGRATIONS)) -> None:
    """Brings the file to version `to`; StoreError if it is newer than this program or not ours."""
    with _transaction(db, "BEGIN"):  # one moment's view, so that another process's migration is not seen half done
        if _version(db) >= to:
            return
    with _transaction(db, "BEGIN IMMEDIATE"):
        for step in MIGRATIONS[_version(db) : to]:
            step(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {to}")


@contextmanager
def _transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    owner = db.execute("PRAGMA application_id").fetchone()[0]
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (owner or version or tables):
        raise StoreError("the file is another program's database", hint="choose another workspace folder")
    if version > len(MIGRATIONS):
        raise StoreError(
            f"the file has schema version {version}, this pluribus knows up to {len(MIGRATIONS)}",
            hint="update pluribus or choose another workspace folder",
        )
    return version
