from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pluribus.answers import canonical
from pluribus.errors import DataError
from pluribus.tasks import load_task

ROW: Mapping[str, Any] = {
    "task_id": 11,
    "text": "Write a function that sums the squares of a list.",
    "code": "def square(x):\r\n\treturn x * x\r\ndef sum(xs):\r\n\treturn square(xs[0]) + sum(xs[1:]) if xs else 0",
    "test_list": ["assert abs(sum([1, 2])) == 5", "assert sum([]) == 0"],
    "test_setup_code": "import math",
    "challenge_test_list": [],
}


def write(folder: Path, *rows: Mapping[str, Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_the_question_names_the_function_and_shows_the_first_test_only(tmp_path: Path) -> None:
    ((question, key),) = load_task("mbpp", data=write(tmp_path, ROW)).pairs
    assert (question.id, question.kind, question.metadata) == ("mbpp/11", "program", {"entry_point": "sum"})
    assert "abs(sum([1, 2])) == 5" in question.text and "sum([])" not in question.text and "`sum`" in question.text
    assert key is not None and key.tests == ("import math", *ROW["test_list"])
    assert key.answer is not None and "\r" not in key.answer
    assert canonical(question, key.answer) is not None


def test_the_splits_are_told_apart_by_the_published_numbers(tmp_path: Path) -> None:
    ids = {"prompt": (1, 10), "test": (11, 510), "validation": (511, 600), "train": (601, 974)}
    path = write(tmp_path, *({**ROW, "task_id": n, "text": f"Number {n}."} for pair in ids.values() for n in pair))
    for split, numbers in ids.items():
        found = [question.id for question, _ in load_task("mbpp", split, data=path).pairs]
        assert found == [f"mbpp/{number}" for number in numbers]


def test_the_sanitized_form(tmp_path: Path) -> None:
    row = {name: ROW[name] for name in ("task_id", "code", "test_list")}
    path = write(tmp_path, {**row, "prompt": "Sum the squares.", "test_imports": ["import math", "import re"]})
    ((question, key),) = load_task("mbpp", data=path).pairs
    assert question.text.startswith("Sum the squares.")
    assert key is not None and key.tests[0] == "import math\nimport re"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"test_list": []}, "field 'test_list' is empty"),
        ({"test_list": ["assert other(1)"]}, "calls nothing that 'code' defines"),
        ({"test_list": ["assert ("]}, "the first of 'test_list' is no Python"),
        ({"code": "def ("}, "field 'code' is no Python"),
        ({"text": " "}, "field 'text' is empty"),
    ],
)
def test_a_broken_row_is_named_with_its_line(tmp_path: Path, change: Mapping[str, Any], words: str) -> None:
    path = write(tmp_path, {**ROW, **change})
    with pytest.raises(DataError, match=r"rows\.jsonl:1") as problem:
        load_task("mbpp", data=path)
    assert words in str(problem.value)


def test_the_published_file_whole(shared_data: Path) -> None:
    path = shared_data / "benchmarks" / "mbpp" / "mbpp.jsonl.gz"
    sizes = {"prompt": 10, "test": 500, "validation": 90, "train": 374}
    for split, size in sizes.items():
        pairs = load_task("mbpp", split, data=path).pairs
        assert len(pairs) == size
        assert all(key is not None and len(key.tests) >= 3 for _, key in pairs)
        assert all(canonical(question, key.answer or "") for question, key in pairs if key is not None)
