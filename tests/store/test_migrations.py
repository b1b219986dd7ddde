"""Files of every age are brought up to date; what is not ours, damaged or newer is left alone."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pluribus.errors import StoreError
from pluribus.store import Store
from pluribus.store.migrations import APPLICATION_ID, MIGRATIONS, migrate
from pluribus.types import Completion, Transcript


def schema(path: Path) -> list[tuple[str, str]]:
    db = sqlite3.connect(path)
    rows = db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    db.close()
    return rows


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_a_file_of_any_version_opens(tmp_path: Path, version: int) -> None:
    old = tmp_path / "old" / "store.db"
    old.parent.mkdir()
    db = sqlite3.connect(old, isolation_level=None)
    migrate(db, version)
    if version:
        db.execute('INSERT INTO calls VALUES (\'k\', \'null\', \'{"model":"m","text":"kept"}\', 0.0)')
    db.close()
    with Store.open(old.parent) as store:
        assert store.calls.get("k") == (Completion("kept", "m") if version else None)
        assert store.runs() == []
    Store.open(tmp_path / "new").close()
    assert schema(old) == schema(tmp_path / "new" / "store.db")


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    migrate(db, 1)
    db.execute("CREATE TABLE runs (in_the_way INTEGER)")
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(db)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} == {"calls", "runs"}
    db.close()


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    db = sqlite3.connect(tmp_path / "store.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match=r"store\.db: the file has schema version 99, .* update pluribus"):
        Store.open(tmp_path)
    db = sqlite3.connect(tmp_path / "store.db")
    assert db.execute("PRAGMA user_version").fetchone() == (99,)
    db.close()


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "store.db")
    db.execute("CREATE TABLE bookmarks (url TEXT)")
    db.close()
    with pytest.raises(StoreError, match=r"store\.db: the file is another program's database"):
        Store.open(tmp_path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("not a database, " * 100)
    with pytest.raises(StoreError, match=r"store\.db is damaged or no database: .* move it away"):
        Store.open(tmp_path)


def test_a_damaged_file_is_an_error_not_an_answer(tmp_path: Path, transcript: Callable[..., Transcript]) -> None:
    names = [f"{i:03d}" for i in range(200)]
    with Store.open(tmp_path) as store:
        for name in names:
            store.put_transcript(transcript(name))
    path = tmp_path / "store.db"
    content = bytearray(path.read_bytes())
    start = 20 * 4096  # behind the schema, in the rows
    content[start:] = random.Random(0).randbytes(len(content) - start)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"), Store.open(tmp_path) as store:
        list(store.transcripts(f"attempt-{name}" for name in names))


def test_a_record_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.calls.put("k", None, Completion("x", "m"))
        store.flush()
        db = sqlite3.connect(store.path)
        db.execute("UPDATE calls SET completion = ?", (b'{"model":"m","text":"x","from_the_future":1}',))
        db.commit()
        with pytest.raises(StoreError, match=r"the stored call k can not be read: .*from_the_future.* newer pluribus"):
            store.calls.get("k")
        db.execute("UPDATE calls SET completion = ?", (b"x\x9cbroken",))
        db.commit()
        db.close()
        with pytest.raises(StoreError, match="the stored call k can not be read"):
            store.calls.get("k")
