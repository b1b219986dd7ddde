"""Several processes in one workspace, and processes that are killed while they write."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pluribus.errors import StoreError
from pluribus.store import Store
from pluribus.types import Attempt, Completion, Transcript

WRITER = """
import sys
import threading
from pluribus.store import Store
from pluribus.types import Attempt, Completion, Transcript

home, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = Store.open(home)
print("open", flush=True)
sys.stdin.readline()
i = 0
while i != count:
    key = f"{name}-{i}"
    store.calls.put(key, {"model": "m"}, Completion(key * 100, "m"))
    store.put_transcript(Transcript(Attempt(key, "q", "vote", {}, (), i), (), (), "complete"))
    i += 1
    if i % 7 == 0:
        store.flush()
        print(i, flush=True)
store.close()
"""


def start(home: Path, name: str, count: int = -1) -> subprocess.Popen[str]:
    """A process that writes calls and transcripts, and says how many it has flushed."""
    command = [sys.executable, "-c", WRITER, str(home), name, str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def kill(process: subprocess.Popen[str]) -> int:
    """Kills the process and returns how many records it had flushed by its own word."""
    process.kill()
    said, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    lines = said.splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    return int(whole[-1]) if whole else 0


def check(home: Path) -> None:
    db = sqlite3.connect(home / "store.db")
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


def expect(store: Store, name: str, count: int) -> None:
    keys = [f"{name}-{i}" for i in range(count)]
    assert [t.attempt.id for t in store.transcripts(keys)] == keys
    assert all(store.calls.get(key) == Completion(key * 100, "m") for key in keys)


def test_what_was_flushed_survives_sigkill(tmp_path: Path) -> None:
    dice = random.Random(11)
    total = 0
    for trial in range(5):
        process = start(tmp_path, f"kill{trial}")
        go(process)
        time.sleep(dice.uniform(0.0, 0.3))
        flushed = kill(process)
        check(tmp_path)
        with Store.open(tmp_path) as store:
            expect(store, f"kill{trial}", flushed)
            last = Attempt(f"after-{trial}", "q", "vote", {}, (), 0)
            store.put_transcript(Transcript(last, (), (), "complete"))
            assert store.statuses([last.id]) == {last.id: "complete"}
        total += flushed
    assert total > 0, "every process was killed before its first flush: nothing was tested"


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    # both are open before either writes, so their batches do meet
    processes = [start(tmp_path, name, 700) for name in ("one", "two")]
    for process in processes:
        go(process)
    with Store.open(tmp_path) as store:
        for i in range(100):
            store.calls.put(f"three-{i}", None, Completion("x", "m"))
            store.flush()
        for process in processes:
            process.communicate(timeout=60)
            assert process.returncode == 0
        expect(store, "one", 700)
        expect(store, "two", 700)
        assert store.count_calls() == 1500


def test_a_new_workspace_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "new"), "x", "0"]
    processes = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        _, complaint = process.communicate(timeout=60)
        assert (process.returncode, complaint) == (0, "")
    check(tmp_path / "new")


def test_a_forgotten_close_still_writes(tmp_path: Path) -> None:
    forgetful = WRITER.replace("store.close()", "")
    command = [sys.executable, "-c", forgetful, str(tmp_path), "x", "5"]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=60)
    with Store.open(tmp_path) as store:
        expect(store, "x", 5)


def test_a_locked_file_is_waited_for(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        blocker = sqlite3.connect(store.path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        store.calls.put("k", None, Completion("x", "m"))
        time.sleep(0.3)
        with Store.open(tmp_path) as reader:
            assert reader.calls.get("k") is None, "readers do not wait for writers"
        blocker.execute("COMMIT")
        blocker.close()
        store.flush()
        assert store.count_calls() == 1


def test_a_full_disk_is_an_error_that_keeps_what_was_written(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.calls.put("before", None, Completion("x", "m"))
    store.flush()
    limit_pages(store, 20)
    store.calls.put("big", None, Completion(random.Random(0).randbytes(200_000).hex(), "m"))
    with pytest.raises(StoreError, match=r"nothing can be written any more: .*full; what was flushed is safe"):
        store.flush()
    with pytest.raises(StoreError, match="full"):
        store.calls.put("after", None, Completion("x", "m"))
    with pytest.raises(StoreError, match="full"):
        store.close()
    with Store.open(tmp_path) as again:
        assert again.calls.get("before") == Completion("x", "m")
        assert again.count_calls() == 1


def limit_pages(store: Store, pages: int) -> None:
    """SQLite's own limit on the file's size, which fails as a full disk does."""
    store._writer._db.execute(f"PRAGMA max_page_count = {pages}")


def test_a_new_file_is_made_once_by_whoever_is_first(tmp_path: Path) -> None:
    """Each thread has its own connections, as processes have, and a barrier makes them meet."""
    for trial in range(12):
        barrier = threading.Barrier(6)
        troubles: list[BaseException] = []

        def arrive(home: Path, barrier: threading.Barrier, troubles: list[BaseException]) -> None:
            barrier.wait()
            try:
                Store.open(home).close()
            except StoreError as error:
                troubles.append(error)

        threads = [threading.Thread(target=arrive, args=(tmp_path / f"{trial}", barrier, troubles)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert troubles == []
