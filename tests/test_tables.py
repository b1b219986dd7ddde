"""Tables as files: what went in comes out, in CSV and in Parquet."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pluribus.errors import StoreError
from pluribus.tables import write_tables

parquet = pytest.importorskip("pyarrow.parquet")


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    value: float | None
    n: int
    sure: bool | None = None


LINES = [Line('a "b", c\nd', 0.1, 1, True), Line("", None, -2), Line("é", 1e-17, 3, False)]


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_csv_holds_every_digit_and_nothing_for_none(tmp_path: Path) -> None:
    path, _ = write_tables(tmp_path, {"lines": LINES})
    assert path.name == "lines.csv"
    head, *cells = rows(path)
    assert head == ["name", "value", "n", "sure"]
    assert cells == [['a "b", c\nd', "0.1", "1", "true"], ["", "", "-2", ""], ["é", "1e-17", "3", "false"]]
    assert [float(row[1]) for row in cells if row[1]] == [0.1, 1e-17]
    assert path.read_bytes().startswith(b'name,value,n,sure\r\n"a ""b"", c\nd",0.1')


def test_parquet_has_types_and_nulls(tmp_path: Path) -> None:
    _, path = write_tables(tmp_path, {"lines": LINES})
    table = parquet.read_table(path)
    assert [str(kind) for kind in table.schema.types] == ["string", "double", "int64", "bool"]
    assert table.to_pylist()[1] == {"name": "", "value": None, "n": -2, "sure": None}
    assert table.to_pylist()[2]["value"] == 1e-17


def test_the_types_of_a_dataclass_hold_for_a_table_without_a_row(tmp_path: Path) -> None:
    one, other = write_tables(tmp_path, {"lines": []}, kinds={"lines": Line})
    assert rows(one) == [["name", "value", "n", "sure"]]
    table = parquet.read_table(other)
    assert (table.num_rows, [str(kind) for kind in table.schema.types]) == (0, ["string", "double", "int64", "bool"])


def test_a_column_that_holds_whole_numbers_only_stays_a_float_where_the_dataclass_says_so(tmp_path: Path) -> None:
    _, path = write_tables(tmp_path, {"lines": [Line("a", 1, 1), Line("b", 2, 2)]})
    assert str(parquet.read_table(path).schema.field("value").type) == "double"


def test_mappings_may_differ_in_their_keys(tmp_path: Path) -> None:
    one, other = write_tables(tmp_path, {"mixed": [{"a": np.int64(1), "b": [1, None]}, {"a": 2.5, "c": "x"}]})
    assert rows(one) == [["a", "b", "c"], ["1", "[1, null]", ""], ["2.5", "", "x"]]
    assert parquet.read_table(other).to_pylist() == [
        {"a": 1.0, "b": "[1, null]", "c": None},
        {"a": 2.5, "b": None, "c": "x"},
    ]


def test_half_a_surrogate_pair_is_written_as_a_question_mark(tmp_path: Path) -> None:
    one, other = write_tables(tmp_path, {"odd": [{"a": "x\ud83d", "b": ["\ud83d"]}]})
    assert rows(one)[1] == ["x?", '["?"]']
    assert parquet.read_table(other).to_pylist() == [{"a": "x?", "b": '["?"]'}]


def test_a_table_of_nothing_known_is_an_empty_file(tmp_path: Path) -> None:
    one, other = write_tables(tmp_path, {"nothing": []})
    assert one.read_bytes() == b""
    assert parquet.read_table(other).num_columns == 0


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="can not be written"):
        write_tables(tmp_path / "file", {"lines": LINES})


def test_a_table_is_replaced_whole_and_leaves_no_part(tmp_path: Path) -> None:
    write_tables(tmp_path, {"lines": LINES})
    write_tables(tmp_path, {"lines": LINES[:1]})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lines.csv", "lines.parquet"]
    assert len(rows(tmp_path / "lines.csv")) == 2


def test_without_pyarrow_there_is_csv_and_a_remark(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathlib import Path; from pluribus.tables import write_tables\n"
        f"paths = write_tables(Path({str(tmp_path)!r}), {{'t': [{{'a': 1}}]}}, remark=print)\n"
        "print([path.name for path in paths])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert "pluribus[report]" in said[0]
    assert said[1] == "['t.csv']"
