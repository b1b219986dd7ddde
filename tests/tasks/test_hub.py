"""Pinned files from the hub: from a cache on disk, from a server on loopback, or a clear refusal."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError, UsageError
from pluribus.tasks import load_task
from pluribus.tasks.arc import HUB as ARC
from pluribus.tasks.gsm8k import HUB as GSM8K

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("huggingface_hub")

ROWS = [{"question": "How much?", "answer": "So it is\n#### 57,500"}, {"question": "How few?", "answer": "#### -5"}]
MC1 = [{"question": "Seeds?", "mc1_targets": {"choices": ["nothing", "melons", "death"], "labels": [1, 0, 0]}}]
CHOICES = {"text": ["helium", "neon"], "label": ["1", "2"]}


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def cached(home: Path, repository: str, revision: str, name: str, rows: list[dict[str, Any]]) -> None:
    """A hub cache as huggingface_hub lays it out."""
    folder = home / "hub" / f"datasets--{repository.replace('/', '--')}" / "snapshots" / revision
    parquet(folder / name, rows)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    return tmp_path / "hf"


def test_a_cached_file_is_read_without_network(home: Path) -> None:
    cached(home, GSM8K.repository, GSM8K.revision, "main/test-00000-of-00001.parquet", ROWS)
    loaded = load_task("gsm8k")
    assert [key.answer for _, key in loaded.pairs if key] == ["57,500", "-5"]


def test_a_subset_has_a_file_of_its_own(home: Path) -> None:
    rows = [{"id": "Q1", "question": "Which gas?", "choices": CHOICES, "answerKey": "2"}]
    cached(home, ARC.repository, ARC.revision, "ARC-Easy/test-00000-of-00001.parquet", rows)
    ((question, key),) = load_task("arc:easy").pairs
    assert (question.choices, key and key.answer) == (("helium", "neon"), "B")
    with pytest.raises(UsageError, match=r"ARC-Challenge/test-00000-of-00001\.parquet"):
        load_task("arc")


def test_the_same_file_may_be_given_by_hand(tmp_path: Path) -> None:
    ((question, key),) = load_task("truthfulqa", data=parquet(tmp_path / "any.name", MC1)).pairs
    assert key is not None and key.answer is not None
    assert question.choices["ABC".index(key.answer)] == "nothing"


def test_offline_without_a_copy_says_what_to_do(home: Path) -> None:
    with pytest.raises(UsageError, match=r"openai/gsm8k .* HF_HUB_OFFLINE is set; pass .*--data FILE, or set HF_HOME"):
        load_task("gsm8k")


def test_a_host_that_is_not_found_says_so_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.invalid")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with pytest.raises(UsageError, match=r"no network \(hub\.invalid is not found\)"):
        load_task("gsm8k")


def test_a_broken_parquet_file_is_a_data_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        load_task("gsm8k", data=path)


class _Hub(BaseHTTPRequestHandler):
    """As much of the hub as one download needs: the file's head and the file."""

    def __init__(self, *args: Any, root: Path, **kwargs: Any) -> None:
        self.root = root
        super().__init__(*args, **kwargs)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.root / self.path.lstrip("/")
        content = path.read_bytes() if path.is_file() else b""
        self.send_response(200 if path.is_file() else 404)
        if not path.is_file():
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("X-Repo-Commit", GSM8K.revision)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)


@pytest.fixture
def endpoint(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder whose files the server gives out."""
    root = tmp_path / "served"
    root.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Hub, root=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    yield root
    server.shutdown()
    server.server_close()


def in_a_new_process(code: str) -> str:
    """huggingface_hub settles at its import whether it is offline, so each case needs a process of its own."""
    script = f"from pluribus.errors import UsageError\nfrom pluribus.tasks import load_task\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_is_fetched_at_the_pinned_revision_and_then_kept(endpoint: Path) -> None:
    name = f"datasets/{GSM8K.repository}/resolve/{GSM8K.revision}/main/test-00000-of-00001.parquet"
    parquet(endpoint / name, ROWS)
    assert in_a_new_process("print(len(load_task('gsm8k').pairs))") == "2\n"
    (endpoint / name).unlink()
    assert in_a_new_process("print(len(load_task('gsm8k').pairs))") == "2\n"


def test_a_file_the_hub_does_not_have_is_one_clear_line(endpoint: Path) -> None:
    said = in_a_new_process("try: load_task('gsm8k')\nexcept UsageError as error: print(error)")
    assert re.fullmatch(r"dataset openai/gsm8k .* is not in the cache: 404 .*; pass .*--data FILE.*\n", said)
