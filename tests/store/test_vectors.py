"""The cache of vectors: what was put is there at once, stays as it was first, and outlives the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pluribus.store import Store

KEYS = [i.to_bytes(16, "big") for i in range(1300)]


def test_a_get_after_a_put_hits_before_and_after_the_commit(store: Store) -> None:
    store.vectors.put_many("one", {key: key * 4 for key in KEYS})
    assert store.vectors.get_many("one", KEYS) == {key: key * 4 for key in KEYS}
    store.flush()
    assert store.vectors._pending == {}
    assert store.vectors.get_many("one", [*KEYS, b"unknown"]) == {key: key * 4 for key in KEYS}
    assert store.vectors.get_many("two", KEYS) == {} and store.vectors.get_many("one", []) == {}
    assert store.vectors.count() == len(KEYS)


def test_the_first_vector_of_a_text_stays(store: Store) -> None:
    store.vectors.put_many("one", {KEYS[0]: b"first"})
    store.flush()
    store.vectors.put_many("one", {KEYS[0]: b"second", KEYS[1]: b"new"})
    store.flush()
    assert store.vectors.get_many("one", KEYS[:2]) == {KEYS[0]: b"first", KEYS[1]: b"new"}


def test_embedders_do_not_share_vectors(store: Store) -> None:
    store.vectors.put_many("one", {KEYS[0]: b"1"})
    store.vectors.put_many("two", {KEYS[0]: b"2"})
    assert [store.vectors.get_many(name, KEYS[:1])[KEYS[0]] for name in ("one", "two")] == [b"1", b"2"]


def test_another_process_finds_them(tmp_path: Path) -> None:
    program = (
        "import sys; from pluribus.store import Store\n"
        "with Store.open(sys.argv[1]) as store: store.vectors.put_many('one', {b'key': bytes([0, 255, 128])})"
    )
    with Store.open(tmp_path) as store:
        assert store.vectors.get_many("one", [b"key"]) == {}
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
        assert store.vectors.get_many("one", [b"key"]) == {b"key": bytes([0, 255, 128])}
