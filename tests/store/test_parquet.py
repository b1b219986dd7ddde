"""A run as flat tables: every attempt, turn and decision is a row, and unknown is null."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pluribus.store import Store
from pluribus.store.parquet import TABLES, export_parquet

parquet = pytest.importorskip("pyarrow.parquet")


def test_a_run_as_three_tables(full_run: Store, tmp_path: Path) -> None:
    paths = export_parquet(full_run, "first", tmp_path / "tables")
    assert [path.name for path in paths] == ["attempts.parquet", "turns.parquet", "decisions.parquet"]
    attempts, turns, decisions = (parquet.read_table(path).to_pylist() for path in paths)

    assert [row["status"] for row in attempts] == ["complete", "degraded", "failed", None]
    assert [row["key"] for row in attempts] == ["7", "7", None, "7"]
    assert attempts[0]["question"] == "What is a? ½ ?", "half a surrogate pair fits no Arrow string"
    assert (attempts[2]["failure_kind"], attempts[2]["failure"]) == ("protocol_error", "every seat failed")
    assert (attempts[0]["settings"], attempts[0]["n_turns"], attempts[0]["run"]) == ('{"rounds":2}', 6, "first")

    assert len(turns) == 3 * 6
    assert (turns[0]["text"], turns[0]["agent"], turns[0]["cost_usd"]) == ("The answer is 7. ", "agent 0", None)
    assert turns[0]["messages"] == '[{"content":"Question, round 0","role":"user"}]'
    assert (turns[1]["text"], turns[1]["failure_kind"], turns[1]["completion_tokens"]) == (None, "timeout", None)
    assert [row["final"] for row in turns[:6]] == [False] * 5 + [True]

    assert [(row["attempt_id"], row["tie"]) for row in decisions] == [
        (f"attempt-{name}", tie) for name in "ab" for tie in ("abstain", "first")
    ]
    assert (decisions[0]["votes"], decisions[0]["confidence"]) == ('[["7",2.0],["8",1.0]]', None)


def test_an_empty_run_has_tables_with_columns(store: Store, tmp_path: Path) -> None:
    store.begin_run("r", "empty", {}, [])
    for path in export_parquet(store, "empty", tmp_path):
        table = parquet.read_table(path)
        assert (table.num_rows, table.column_names) == (0, list(TABLES[path.stem]))


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path) -> None:
    """In a process of its own, whose import path ends before the installed packages."""
    source = Path(sys.modules["pluribus"].__file__ or "").parent.parent
    program = (
        "from pathlib import Path; from pluribus.store import Store, parquet\n"
        "with Store.open('.') as store: parquet.export_parquet(store, 'x', Path())"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("'pyarrow'; install it with: pip install 'pluribus[report]'")
