"""The command line in this process: the same `main` that the console script runs, its output and its exit code."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pluribus.cli import main

MODELS = [{"model": "scripted/keyed", "accuracy": 0.9}, {"model": "scripted/keyed", "accuracy": 0.7}, "scripted/number"]


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


@dataclass(frozen=True, slots=True)
class Kept:
    """A run of three scripted models in a workspace of its own, made once for many tests."""

    home: Path
    run: str
    data: Path

    @classmethod
    def make(cls, folder: Path, models: Sequence[Any], questions: int) -> Kept:
        """Questions each of which holds its key, for those who can read it."""
        data, file, out = folder / "questions.jsonl", folder / "council.yaml", io.StringIO()
        rows = [{"id": f"q{i}", "question": f"{i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(questions)]
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        file.write_text(yaml.safe_dump({"task": "jsonl", "data": str(data), "models": list(models)}), "utf-8")
        with redirect_stdout(out):
            assert main(["run", str(file), "--home", str(folder / "home"), "--json"]) == 0
        return cls(folder / "home", json.loads(out.getvalue())["run"], data)

    def lay_out(self) -> str:
        """Puts a copy of it into the test's own workspace; the run's name."""
        shutil.copytree(self.home, os.environ["PLURIBUS_HOME"])
        return self.run


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
        path = tmp_path / "council.yaml"
        path.write_text(yaml.safe_dump({"task": "jsonl", "data": str(data), "models": MODELS, **entries}), "utf-8")
        return path

    return write
