"""What is in a model's folder, as a few letters: two trainings into one folder are two models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

_WHOLE_BYTES = 16 << 20
"""A file up to this size is read whole, …"""
_EDGE_BYTES = 1 << 20
"""… of a larger one its beginning and end, …"""
_BLOCKS, _BLOCK_BYTES = 1_024, 4_096
"""… and so many blocks between, evenly spread: what an adapter changed when it was merged lies in some layers only."""
_MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt")
_NOTES = ("training.json", "trainer_state.json", "results.json")
"""What is only said of it."""


def model_digest(folder: Path) -> str:
    """8 hex digits that change when weights, settings or tokenizer of a model folder do; "" where it has none.

    Copies of a folder have the same. Reading all of a large model would take longer than asking it something: of large
    files it is a sample, 6 MiB each.
    """
    files = {path for pattern in _MODEL_FILES for path in folder.glob(pattern) if path.name not in _NOTES}
    return folder_digest(folder, files, 4)


def folder_digest(folder: Path, files: Iterable[Path], digest_size: int = 6) -> str:
    """A digest of names, sizes and content, sampled where they are large, of files below a folder; "" of no file.

    Args:
        digest_size: bytes, each two hex digits of what comes back.
    """
    found = sorted((path.relative_to(folder).as_posix(), path) for path in files if path.is_file())
    if not found:
        return ""
    digest = hashlib.blake2b(digest_size=digest_size)
    for name, path in found:
        stat = path.stat()
        digest.update(repr((name, stat.st_size)).encode())
        digest.update(_sampled(path, stat.st_size, stat.st_mtime_ns, stat.st_ino))
    return digest.hexdigest()


@lru_cache(maxsize=4_096)
def _sampled(path: Path, size: int, _written: int, _inode: int) -> bytes:
    """Digest of a file's sampled content; read once as long as it stays as it is."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        if size <= _WHOLE_BYTES:
            digest.update(file.read())
            return digest.digest()
        digest.update(file.read(_EDGE_BYTES))
        for block in range(_BLOCKS):
            file.seek(_EDGE_BYTES + (size - 2 * _EDGE_BYTES) * block // _BLOCKS)
            digest.update(file.read(_BLOCK_BYTES))
        file.seek(size - _EDGE_BYTES)
        digest.update(file.read())
    return digest.digest()
