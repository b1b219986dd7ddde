"""The cache of text vectors: what an embedder made of a text is not made again, by any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pluribus.store.reader import CHUNK, Reader
from pluribus.store.writer import Job, Statement, Writer

# the first vector of a text stays, whoever else embedded it at the same time
_PUT = "INSERT INTO vectors (embedder, digest, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_GET = "SELECT digest, vector FROM vectors WHERE embedder = ? AND digest IN ({marks})"


class VectorCache:
    """Vectors, as bytes, by embedder and digest of the text. A get after a put hits before the commit."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer
        self._pending: dict[tuple[str, bytes], bytes] = {}

    def get_many(self, embedder: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Digest → vector, of those that are stored."""
        found = {digest: vector for digest in digests if (vector := self._pending.get((embedder, digest))) is not None}
        wanted = [digest for digest in digests if digest not in found]
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            found.update(self._reader.rows(_GET.format(marks=",".join("?" * len(some))), (embedder, *some)))
        return found

    def put_many(self, embedder: str, vectors: Mapping[bytes, bytes]) -> None:
        """Keeps them all, in one transaction."""
        rows = {(embedder, digest): vector for digest, vector in vectors.items()}
        self._pending.update(rows)
        self._writer.put(Job(lambda: [_insert(key, rows[key]) for key in rows], partial(self._forget, rows)))

    def _forget(self, rows: Mapping[tuple[str, bytes], bytes]) -> None:
        """They are in the file now."""
        for key in rows:
            self._pending.pop(key, None)

    def count(self) -> int:
        """How many vectors the file holds, those of this process's last moment left out."""
        count: int = self._reader.rows("SELECT count(*) FROM vectors")[0][0]
        return count


def _insert(key: tuple[str, bytes], vector: bytes) -> Statement:
    embedder, digest = key
    return _PUT, (embedder, digest, vector)
