from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pluribus.answers import canonical, read
from pluribus.errors import DataError
from pluribus.tasks import load_task

ROW: Mapping[str, Any] = {
    "task_id": "HumanEval/900",
    "prompt": 'def twice(x: int) -> int:\n    """Two times x.\n    >>> twice(2)\n    4\n    """\n',
    "canonical_solution": "    return x + x\n",
    "test": "def check(candidate):\n    assert candidate(3) == 6\n",
    "entry_point": "twice",
}


def write(folder: Path, row: Mapping[str, Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    return path


def test_a_row_becomes_a_question_that_shows_the_beginning_and_a_key_of_tests(tmp_path: Path) -> None:
    ((question, key),) = load_task("humaneval", data=write(tmp_path, ROW)).pairs
    assert (question.id, question.kind, question.metadata["entry_point"]) == ("HumanEval/900", "program", "twice")
    assert "```python\ndef twice(x: int)" in question.text and ">>> twice(2)" in question.text
    assert key is not None and key.tests == (ROW["test"] + "\ncheck(twice)",)
    assert ROW["test"] not in repr(question) and "x + x" not in repr(question)
    assert canonical(question, key.answer or "") == "def twice(x: int) -> int:\n    return x + x"
    assert read(question, "    return x + x\n") == canonical(question, key.answer or "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prompt": ""}, "field 'prompt' must be Python source, found \"\""),
        ({"test": None}, "field 'test' must be Python source, found null"),
        ({"entry_point": "two times"}, "field 'entry_point' must be the name of a function"),
    ],
)
def test_a_broken_row_is_named_with_its_line(tmp_path: Path, change: Mapping[str, Any], words: str) -> None:
    path = write(tmp_path, {**ROW, **change})
    with pytest.raises(DataError, match=r"rows\.jsonl:1") as problem:
        load_task("humaneval", data=path)
    assert words in str(problem.value)


def test_the_published_file_whole(shared_data: Path) -> None:
    loaded = load_task("humaneval", data=shared_data / "benchmarks" / "humaneval" / "HumanEval.jsonl.gz")
    assert (len(loaded.pairs), loaded.family, loaded.split) == (164, "programming", "test")
    assert all(
        key is not None and key.tests and canonical(question, key.answer or "") for question, key in loaded.pairs
    )
