"""Writes JSONL files; a row that is text stands as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

Lines = Callable[..., Path]


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    def write(rows: Sequence[Any], name: str = "rows.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")
        return path

    return write
