"""The command line in this process: the same `main` that the console script runs, its output and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pluribus.cli import main

QUESTIONS = [{"id": f"q{i}", "question": f"{i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(12)]


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        """What `--json` printed; it must be all of stdout."""
        return json.loads(self.out)

    def complaint(self) -> str:
        """The one line a wrong input gets: exit code 2, nothing else on stderr, no traceback."""
        assert self.code == 2, self
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("pluribus: ")
        return lines[0]


@pytest.fixture
def pluribus(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str | Path) -> Said:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return run


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    """Writes a JSONL file of these rows; a row that is text stands as it is."""

    def write(rows: list[Any], name: str = "rows.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")
        return path

    return write


@pytest.fixture
def data(lines: Callable[..., Path]) -> Path:
    """Twelve questions, each with its key in the text for those who can read it."""
    return lines(
        [{"id": f"q{i}", "question": f"{i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(12)],
        "questions.jsonl",
    )


@pytest.fixture
def council(tmp_path: Path, data: Path) -> Callable[..., Path]:
    """Writes a council file: two seats that know the key sometimes, one that never does; entries may be replaced."""

    def write(**entries: Any) -> Path:
        models = [
            {"model": "scripted/keyed", "accuracy": 0.9},
            {"model": "scripted/keyed", "accuracy": 0.7},
            "scripted/number",
        ]
        path = tmp_path / "council.yaml"
        path.write_text(yaml.safe_dump({"task": "jsonl", "data": str(data), "models": models, **entries}), "utf-8")
        return path

    return write
