"""Runs of programs from the command line: permission first, then the table with pass@k."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

walls = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
CODE = "```python\ndef add(x):\n    return {}\n```"


@pytest.fixture
def council(lines: Run, council: Run) -> Path:
    question = {"id": "q1", "question": "Add one.", "tests": ["assert add(2) == 3"], "metadata": {"entry_point": "add"}}
    said = [CODE.format(body) for body in ("x + 1", "1 + x", "0", "x + 1")]
    outputs = [{"question_id": "q1", "model": "m", "sample": i, "text": text} for i, text in enumerate(said)]
    written: Path = council(
        data=str(lines([question], "questions.jsonl")),
        models=[f"replay/{lines(outputs, 'outputs.jsonl')}"],
        method="self_consistency",
        settings={"parallel_num": 4},
    )
    return written


def test_a_task_of_programs_is_refused_unless_it_is_allowed(pluribus: Run, council: Path) -> None:
    words = "pluribus: task jsonl runs programs that models write; allow it with --allow-code-execution"
    for extra in ([], ["--dry-run"]):
        assert pluribus("run", council, *extra).complaint() == words


def test_only_two_sandboxes_have_a_name(pluribus: Run, council: Path) -> None:
    complaint = pluribus("run", council, "--allow-code-execution=docker").complaint()
    assert "docker" in complaint and "rlimit" in complaint


@walls
def test_the_table_shows_what_samples_pass(pluribus: Run, council: Path) -> None:
    said = pluribus("run", council, "--allow-code-execution")
    assert said.code == 0, said.err
    assert "pass@1 0.750, pass@2 1.000, pass@4 1.000" in said.out
    shown = pluribus("show", "self_consistency-jsonl")
    assert "pass@1 0.750" in shown.out


@walls
def test_json_has_every_k(pluribus: Run, council: Path) -> None:
    found = pluribus("run", council, "--allow-code-execution", "--json").object
    assert found["pass_at"] == {"1": 0.75, "2": 1.0, "3": 1.0, "4": 1.0}
    assert found["council"]["value"] == 1.0
    assert found["config"]["allow_code_execution"] is True


def test_the_weaker_sandbox_has_its_word(pluribus: Run, council: Path) -> None:
    said = pluribus("run", council, "--allow-code-execution=rlimit", "--json")
    assert said.code == 0, said.err
    assert said.object["config"]["allow_code_execution"] == "rlimit" and said.object["pass_at"]["1"] == 0.75


@walls
def test_a_resumed_run_keeps_its_permission(pluribus: Run, council: Path) -> None:
    pluribus("run", council, "--allow-code-execution")
    assert pluribus("run", "--resume", "self_consistency-jsonl").code == 0
