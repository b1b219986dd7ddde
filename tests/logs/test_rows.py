"""Lines of a log: what is cut off is counted, what is broken is an error with its place."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.logs._rows import CUT_OFF, rows


def read(path: Path) -> tuple[list[dict[str, Any]], Counter[str]]:
    omitted: Counter[str] = Counter()
    return [row for _, row in rows(path, omitted)], omitted


def test_a_line_cut_off_at_the_end_is_counted(lines: Callable[..., Path]) -> None:
    found, omitted = read(lines([{"a": 1}, {"a": 2}, '{"a": 3, "b": "cut he']))
    assert found == [{"a": 1}, {"a": 2}]
    assert omitted == {CUT_OFF: 1}


def test_a_broken_line_in_the_middle_is_an_error_with_its_place(lines: Callable[..., Path]) -> None:
    path = lines([{"a": 1}, '{"a": 2\n', {"a": 3}])
    with pytest.raises(DataError, match=r"rows\.jsonl:2: not JSON"):
        read(path)


@pytest.mark.parametrize("line", ["[1, 2]\n", "3\n", '"text"\n'])
def test_a_line_that_is_no_object_is_an_error(lines: Callable[..., Path], line: str) -> None:
    with pytest.raises(DataError, match=r"rows\.jsonl:2: not a JSON object"):
        read(lines([{"a": 1}, line]))


def test_blank_lines_a_mark_at_the_start_and_line_separators_in_texts_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes('\ufeff{"a": "x\u2028y"}\n\n   \n{"a": 2}\n\n'.encode())
    assert read(path) == ([{"a": "x\u2028y"}, {"a": 2}], Counter())


def test_a_compressed_file_that_ends_early_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 100)[:-12])
    with pytest.raises(DataError, match="can not be read to its end"):
        read(path)


def test_a_line_nested_without_end_is_an_error_of_the_data(lines: Callable[..., Path]) -> None:
    with pytest.raises(DataError, match=r"rows\.jsonl:1: not JSON"):
        read(lines(["[" * 100_000 + "\n", {"a": 1}]))
