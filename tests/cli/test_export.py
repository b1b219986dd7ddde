"""`pluribus export` and `pluribus import`: a run out of one workspace and into another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    return str(pluribus("run", council(), "--json").object["run"])


def test_what_was_exported_comes_back_whole(pluribus: Run, name: str, tmp_path: Path) -> None:
    said = pluribus("export", name, "--out", tmp_path / "run.jsonl.gz")
    assert (said.code, said.out) == (0, f"{tmp_path}/run.jsonl.gz: 12 attempts\n")
    other = tmp_path / "other"
    assert pluribus("import", tmp_path / "run.jsonl.gz", "--home", other).out == f"imported {name}: 12 attempts\n"
    assert pluribus("show", name, "--home", other, "--json").object == pluribus("show", name, "--json").object
    assert pluribus("show", tmp_path / "run.jsonl.gz", "--home", tmp_path / "empty", "--json").object["run"] == name
    assert "12 of them were here already" in pluribus("import", tmp_path / "run.jsonl.gz").out


def test_parquet_is_three_tables(pluribus: Run, name: str, tmp_path: Path) -> None:
    import pyarrow.parquet

    said = pluribus("export", name, "--format", "parquet", "--out", tmp_path / "tables")
    assert [Path(line).name for line in said.out.split()] == ["attempts.parquet", "turns.parquet", "decisions.parquet"]
    assert pyarrow.parquet.read_metadata(tmp_path / "tables" / "turns.parquet").num_rows == 36


def test_a_replay_file_runs_again_with_the_same_decisions(pluribus: Run, name: str, data: Path, tmp_path: Path) -> None:
    said = pluribus("export", name, "--format", "replay", "--out", tmp_path / "outputs.jsonl")
    models = ",".join(said.out.split())
    again = pluribus("run", "--task", "jsonl", "--data", data, "--agent-models", models, "--json")
    assert again.code == 0
    first = pluribus("show", name, "--json").object
    assert again.object["council"]["value"] == first["council"]["value"]
    assert [s["value"] for s in again.object["alone"]] == [s["value"] for s in first["alone"]]


def test_a_changed_file_is_refused(pluribus: Run, name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    pluribus("export", name, "--out", file)
    file.write_text(file.read_text("utf-8").replace("make it plain", "make it plainer", 1), "utf-8")
    assert "run.jsonl:2: the line was changed" in pluribus("import", file).complaint()
