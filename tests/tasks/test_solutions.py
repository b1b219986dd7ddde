"""The worked solutions that are published with a task go into its keys, and into nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pluribus.tasks import load_task


def solved(task: str, folder: Path, row: dict[str, Any]) -> str | None:
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    ((question, key),) = load_task(task, data=path).pairs
    assert key is not None
    assert "because" not in question.text and "because" not in str(question.metadata)
    return key.solution


AQUA = {"question": "How far?", "options": ["A)1", "B)2", "C)3", "D)4", "E)5"], "correct": "B"}


@pytest.mark.parametrize(
    ("task", "row", "solution"),
    [
        (
            "gsm8k",
            {"question": "How many?", "answer": "because 48/2 = <<48/2=24>>24.\n48+24 = <<48+24=72>>72.\n#### 72"},
            "because 48/2 = 24.\n48+24 = 72.",
        ),
        ("gsm8k", {"question": "How many?", "answer": "#### 72"}, None),
        ("gsm8k", {"question": "How many?", "answer": "72"}, None),
        (
            "math",
            {"problem": "1 + 1?", "solution": "because \\boxed{2} ", "type": "Algebra", "level": "Level 1"},
            "because \\boxed{2}",
        ),
        ("math", {"problem": "1 + 1?", "answer": "2"}, None),
        ("aqua", {**AQUA, "rationale": "because 1 + 1 = 2"}, "because 1 + 1 = 2"),
        ("aqua", {**AQUA, "rationale": ""}, None),
    ],
)
def test_a_published_solution_stands_in_the_key(
    task: str, row: dict[str, Any], solution: str | None, tmp_path: Path
) -> None:
    assert solved(task, tmp_path, row) == solution


def test_a_generated_task_works_its_questions_out() -> None:
    for _, key in load_task("sums", limit=30).pairs:
        assert key is not None and key.solution is not None
        assert key.solution.endswith(f"= {key.answer}.") and "final answer" not in key.solution


def test_real_solutions_hold_no_mark_of_the_calculator(shared_data: Path) -> None:
    pairs = load_task("gsm8k", data=shared_data / "benchmarks/gsm8k/test.jsonl.gz").pairs
    solutions = [key.solution for _, key in pairs if key is not None and key.solution is not None]
    assert len(solutions) == len(pairs) == 1319
    assert not any("<<" in text or "####" in text for text in solutions)
