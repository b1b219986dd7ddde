"""Fetches one file of a dataset at a pinned revision from the Hugging Face hub, or finds it in the local cache.

`HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT` and `HF_HUB_OFFLINE` are read here, at use.
"""

from __future__ import annotations

import os
import socket
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any
from urllib.parse import urlsplit

from pluribus.errors import DataError, MissingDependency, UsageError


@dataclass(frozen=True, slots=True)
class Hub:
    """Where a dataset lives."""

    repository: str
    revision: str
    """Full commit hash: the data can not change under a result."""
    files: Mapping[str, str]
    """Split → path in the repository; `{config}` stands for the name a subset has there."""


def fetch(hub: Hub, split: str, config: str = "") -> Path:
    """The local path of a split's file; a cached copy costs no request.

    Raises:
        MissingDependency: huggingface_hub is not installed.
        UsageError: neither the cache nor the hub gave the file.
    """
    name = hub.files[split].format(config=config)
    cached = _download(hub, name, local=True)
    if isinstance(cached, Path):
        return cached
    reason = _unreachable() or _download(hub, name, local=False)
    if isinstance(reason, Path):
        return reason
    raise UsageError(
        f"dataset {hub.repository} ({name} at revision {hub.revision[:7]}) is not in the cache: {reason}",
        hint="pass a local copy with --data FILE, or set HF_HOME to a cache that holds it",
    )


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a Parquet file as dicts."""
    try:
        import pyarrow.parquet as parquet  # type: ignore[import-untyped]  # pyarrow ships no types
    except ImportError:
        raise MissingDependency("pyarrow", "hub") from None
    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # Arrow's own errors are ValueErrors
        raise DataError(str(path), f"not a readable Parquet file: {error}", hint="fetch it again") from None
    return rows


def _download(hub: Hub, name: str, *, local: bool) -> Path | str:
    """The file's path, or why there is none."""
    try:
        from huggingface_hub import errors, hf_hub_download
    except ImportError:
        raise MissingDependency("huggingface_hub", "hub") from None
    cut_off: type[Exception] = errors.HTTPError  # type: ignore[attr-defined]  # httpx's in 1.x, httpx2's in 2.x
    try:
        path = hf_hub_download(
            hub.repository,
            name,
            repo_type="dataset",
            revision=hub.revision,
            cache_dir=_cache(),
            endpoint=os.environ.get("HF_ENDPOINT"),
            local_files_only=local,
        )
    except (OSError, errors.EntryNotFoundError, cut_off) as error:
        return shorten(str(error), 160, placeholder=" …")
    return Path(path)


def _cache() -> str | None:
    """The hub's cache folder; None leaves it where huggingface_hub puts it."""
    if folder := os.environ.get("HF_HUB_CACHE"):
        return folder
    home = os.environ.get("HF_HOME")
    return str(Path(home).expanduser() / "hub") if home else None


def _unreachable() -> str | None:
    """Why asking would be useless: huggingface_hub itself takes half a minute of retries to say so."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return "HF_HUB_OFFLINE is set"
    host = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co").hostname
    if host is None or urllib.request.getproxies():
        return None
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return f"there is no network ({host} is not found)"
    return None
