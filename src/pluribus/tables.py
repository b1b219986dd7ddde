"""Tables as files for other tools: CSV (RFC 4180) and, with pyarrow, Parquet of the same name beside it."""

from __future__ import annotations

import csv
import importlib
import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from pluribus.errors import MissingDependency
from pluribus.store.files import whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = DataclassInstance | Mapping[str, Any]

_ARROW: Mapping[type, str] = {bool: "bool", int: "int64", float: "double", str: "string"}


def write_tables(
    folder: Path,
    tables: Mapping[str, Sequence[Record]],
    *,
    kinds: Mapping[str, type] | None = None,
    remark: Callable[[str], None] | None = None,
) -> list[Path]:
    """Writes `NAME.csv` and `NAME.parquet` of every table into the folder.

    A cell that is None is empty in CSV and null in Parquet; a float is written with all its digits; what is nested is
    JSON text. A file takes its name when it is whole.

    Args:
        tables: name → rows: dataclasses of one type, or mappings; columns in the order they first come.
        kinds: name → dataclass of a table that may have no row, so that its columns are known.
        remark: told in one line why there is no Parquet, where pyarrow is not installed.

    Returns: the paths, CSV first.

    Raises:
        StoreError: a file can not be written.
    """
    known = kinds or {}
    paths = [_write_csv(folder / f"{name}.csv", rows, known.get(name)) for name, rows in tables.items()]
    try:
        return [*paths, *(_write_parquet(folder / f"{n}.parquet", rows, known.get(n)) for n, rows in tables.items())]
    except MissingDependency as error:
        if remark:
            remark(f"no Parquet, only CSV: {error}")
        return paths


def csv_cell(value: Any) -> str:
    """A value as a CSV cell holds it.

    >>> csv_cell(None), csv_cell(0.1), csv_cell(True), csv_cell([1, None])
    ('', '0.1', 'true', '[1, null]')
    """
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return str(plain).lower()
    return repr(plain) if isinstance(plain, float) else str(plain)


def _write_csv(path: Path, rows: Sequence[Record], kind: type | None) -> Path:
    columns = _columns(rows, kind)
    with whole(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        if columns:
            out.writerow(columns)
        out.writerows([csv_cell(value) for value in _cells(row, columns)] for row in rows)
    return path


def _write_parquet(path: Path, rows: Sequence[Record], kind: type | None) -> Path:
    arrow, writer = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    columns = _columns(rows, kind)
    cells, hints = [_cells(row, columns) for row in rows], _hints(rows, kind)
    arrays = [_array(arrow, [row[i] for row in cells], hints.get(name)) for i, name in enumerate(columns)]
    with whole(path) as part:
        writer.write_table(arrow.Table.from_arrays(arrays, names=list(columns)), part)
    return path


def _array(arrow: Any, values: Sequence[Any], hint: type | None) -> Any:
    plain = [_plain(value) for value in values]
    name = (_ARROW.get(hint) if hint else None) or _inferred(plain)
    if name == "string":
        plain = [value if value is None else csv_cell(value) for value in plain]
    return arrow.array(plain, type=arrow.type_for_alias(name))


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependency("pyarrow", "report") from error


def _columns(rows: Sequence[Record], kind: type | None) -> tuple[str, ...]:
    if kind is not None and is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(_names(row)))
    return tuple(names)


def _names(row: Record) -> Iterable[str]:
    return row if isinstance(row, Mapping) else (field.name for field in fields(row))


def _cells(row: Record, columns: Sequence[str]) -> list[Any]:
    if isinstance(row, Mapping):
        return [row.get(name) for name in columns]
    return [getattr(row, name, None) for name in columns]


def _hints(rows: Sequence[Record], kind: type | None) -> Mapping[str, type]:
    """Column → its plain type, where a dataclass says it; `X | None` is X."""
    record: Any = kind or (type(rows[0]) if rows else None)
    if record is None or not is_dataclass(record):
        return {}
    return {name: _without_none(hint) for name, hint in get_type_hints(record).items()}


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    left = [part for part in get_args(hint) if part is not type(None)]
    return left[0] if len(left) == 1 else object


def _inferred(values: Sequence[Any]) -> str:
    """
    >>> _inferred([1, None, 2.5]), _inferred([1, 2]), _inferred([1, "a"]), _inferred([None])
    ('double', 'int64', 'string', 'string')
    """
    found = {type(value) for value in values if value is not None}
    if len(found) == 1 and (only := next(iter(found))) in _ARROW:
        return _ARROW[only]
    return "double" if found == {int, float} else "string"


def _plain(value: Any) -> Any:
    """A value as Python's own None, bool, int, float or text; numpy's numbers become Python's."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if hasattr(value, "item"):
        return value.item()
    return _plain(json.dumps(value, ensure_ascii=False, default=str))
