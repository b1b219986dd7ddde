"""The cache of model calls that the doors hand to the traffic layer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pluribus.store.blobs import pack, unpack
from pluribus.store.reader import Reader
from pluribus.store.writer import Job, Statement, Writer
from pluribus.types import Completion

# the first answer to a call stays, whoever else asked the same at the same time: a resumed run sees no other
_PUT = "INSERT INTO calls (key, request, completion, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_GET = "SELECT completion FROM calls WHERE key = ?"


class CallCache:
    """Completions by the hash of what was asked. A get after a put hits before the commit."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer
        self._pending: dict[str, Completion] = {}

    def get(self, key: str) -> Completion | None:
        pending = self._pending.get(key)
        if pending is not None:
            return pending
        rows = self._reader.rows(_GET, (key,))
        return unpack(Completion, rows[0][0], f"call {key}") if rows else None

    def put(self, key: str, request: Any, completion: Completion) -> None:
        """Keeps the completion. `request` (a record or plain values) is kept beside it for people to read."""
        if self._pending.setdefault(key, completion) is completion:
            now = time.time()
            self._writer.put(Job(lambda: _insert(key, request, completion, now), lambda: self._pending.pop(key, None)))


def _insert(key: str, request: Any, completion: Completion, now: float) -> Sequence[Statement]:
    return [(_PUT, (key, pack(request), pack(completion), now))]
