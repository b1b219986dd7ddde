"""Files of training rows: what is read, and where and why a line is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.rows import demonstrations

ROW: dict[str, Any] = {
    "prompt": [{"role": "user", "content": "1 + 1?"}],
    "completion": [{"role": "assistant", "content": "2"}],
    "task": "t",
}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return path


def test_rows_come_back_as_they_are_and_blank_lines_are_none(tmp_path: Path) -> None:
    other = {**ROW, "completion": [{"role": "assistant", "content": "zwei\u2028Zeilen"}]}
    plain = write(tmp_path / "rows.jsonl", ROW, "  ", other)
    assert demonstrations(plain) == [ROW, other]
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert demonstrations(packed) == [ROW, other]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "rows.jsonl:2: not JSON"),
        ("[1]", "rows.jsonl:2: not an object but list; expected one demonstration a line"),
        ({"question": "1 + 1?", "answer": "2"}, "rows.jsonl:2: prompt is missing"),
        ({**ROW, "completion": "2"}, 'rows.jsonl:2: completion is "2"; expected a list of assistant messages'),
        ({**ROW, "completion": []}, "rows.jsonl:2: completion is []"),
        ({**ROW, "prompt": ROW["completion"]}, "rows.jsonl:2: prompt is"),
        ({**ROW, "task": None}, "rows.jsonl:2: task is null"),
        ({"prompt": ROW["prompt"], "completion": ROW["completion"]}, "rows.jsonl:2: task is missing; line 1 has it"),
        ({**ROW, "run": "r"}, "rows.jsonl:2: run is there; line 1 has none"),
    ],
)
def test_a_line_that_a_trainer_would_stumble_over_is_named(tmp_path: Path, line: Any, complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        demonstrations(write(tmp_path / "rows.jsonl", ROW, line))
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_without_rows_and_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no demonstration is in it; write one with: pluribus distil"):
        demonstrations(write(tmp_path / "empty.jsonl", ""))
    with pytest.raises(DataError, match=r"nope\.jsonl: can not be read: No such file"):
        demonstrations(tmp_path / "nope.jsonl")
