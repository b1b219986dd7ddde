"""How tests of datasets write files and read them back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.tasks import load_task
from pluribus.types import Key, Question

Write = Callable[..., Path]
One = Callable[..., tuple[Question, Key | None]]
Refused = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """JSON lines of the rows; a row that is text stands as it is."""

    def make(*rows: dict[str, Any] | str, name: str = "data.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8")
        return path

    return make


@pytest.fixture
def parquet(tmp_path: Path) -> Write:
    """Parquet of the rows, as on the hub."""
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    def make(*rows: dict[str, Any]) -> Path:
        path = tmp_path / "data.parquet"
        pyarrow.parquet.write_table(arrow.Table.from_pylist(list(rows)), path)
        return path

    return make


@pytest.fixture
def one(write: Write) -> One:
    """The one question of a file of one row, with its key."""

    def load(task: str, row: dict[str, Any] | Path) -> tuple[Question, Key | None]:
        path = row if isinstance(row, Path) else write(row)
        ((question, key),) = load_task(task, data=path).pairs
        assert key is None or key.question_id == question.id
        return question, key

    return load


@pytest.fixture
def refused(write: Write) -> Refused:
    """What is said of a bad row that stands second, behind a good one; without it the file is read."""

    def load(task: str, good: dict[str, Any], bad: dict[str, Any]) -> str:
        path = write(good, bad)
        with pytest.raises(DataError) as caught:
            load_task(task, data=path)
        assert len(load_task(task, data=path, skip_bad=True).pairs) == 1
        said = str(caught.value)
        assert said.startswith(f"{path}:2") and "\n" not in said and len(said) < 500
        return said

    return load


@pytest.fixture
def recorded(shared_data: Path) -> Callable[[str], list[dict[str, Any]]]:
    """The questions of a folder of recorded outputs."""

    def load(folder: str) -> list[dict[str, Any]]:
        raw = gzip.decompress((shared_data / "recorded" / folder / "questions.jsonl.gz").read_bytes())
        return [json.loads(line) for line in raw.decode().split("\n") if line]

    return load
