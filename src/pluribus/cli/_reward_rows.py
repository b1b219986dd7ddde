"""What `pluribus reward FILE --rewarder FILE` does: a table of prompts and completions gets its rewards as columns.

The numbers are those that the reward function and the service give. A cell or field without a verdict is empty, which
is not 0.
"""

from __future__ import annotations

import csv
import gzip
import io
import json as jsonlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._files import check_ours, check_place
from pluribus.cli._flags import LimitFlags, said
from pluribus.cli._reward_facts import counts
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError, DataError, UsageError
from pluribus.judge_config import make_judges
from pluribus.judging import CouncilReward
from pluribus.store import Store
from pluribus.store.files import whole
from pluribus.tables import csv_cell
from pluribus.types import Reward

ADDED = ("reward", "disagreement", "status")
"""Columns that come first; then one per judge, its score on the common scale."""
CSV, JSONL = ".csv", ".jsonl"


@dataclass(frozen=True, slots=True)
class Columns:
    prompt: str
    completion: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of a file as they stand in it."""

    path: Path
    columns: tuple[str, ...]
    """Of a CSV file its head; of JSONL the fields of all lines, in the order they first come."""
    rows: tuple[Mapping[str, Any], ...]
    places: tuple[str, ...]
    """`file:line` of each row."""


def go(
    path: Path,
    rewarder: Path,
    columns: Columns,
    out: Path | None,
    *,
    limits: LimitFlags,
    home: Path | None,
    json: bool,
) -> int:
    """Reads, rewards, writes."""
    if out is None:
        raise UsageError("--rewarder writes a file", hint=f"say --out FILE{_kind(path)}")
    check_place(out, folder=False)
    if _kind(path) != _kind(out):
        raise ConfigError(f"--out {out} is not of the same form as {path}", hint=f"name a {_kind(path)} file")
    if out.exists() and out.samefile(path):
        raise ConfigError(f"--out {out} is the file that is read", hint="choose another file")
    check_ours(out, _is_rewarded, "file of rewarded rows")
    council = _council(rewarder, limits, home)
    _check_names(rewarder, [one.name for one in council.bench.judges])
    sheet = read(path)
    _check_columns(sheet, columns, [one.name for one in council.bench.judges])
    found = rewards(council, sheet, columns)
    _write(out, sheet, found, [one.name for one in council.bench.judges])
    _tell(sheet, found, out, json)
    return cli.OK if any(one is not None and one.value is not None for one in found) or not found else cli.FAILED


def _kind(path: Path) -> str:
    """.csv or .jsonl, compressed or not.

    >>> _kind(Path("a.jsonl.gz")), _kind(Path("A.CSV"))
    ('.jsonl', '.csv')
    """
    name = path.name.lower().removesuffix(".gz")
    for kind in (CSV, JSONL):
        if name.endswith(kind):
            return kind
    raise ConfigError(f"{path} is neither CSV nor JSONL", hint="name a file that ends in .csv or .jsonl")


def _council(path: Path, limits: LimitFlags, home: Path | None) -> CouncilReward:
    """The rewarder, its calls kept in the workspace, with the limits of the command line."""
    kept = Store.file(home).parent
    council = CouncilReward.load(path, home=kept)
    flags = {name: value for name, value in said(limits).items() if name != "allow_code_execution"}
    if not flags:
        return council
    config = council.bench.config
    budget = {n.removeprefix("budget_"): v for n, v in flags.items() if n.startswith("budget_")}
    others = {n: v for n, v in flags.items() if not n.startswith("budget_")}
    values = config.model_dump(exclude_none=True)
    made = make_judges({**values, **others, "budget": {**values["budget"], **budget}}, "the command line")
    return CouncilReward(made, council.scales, council.weights, home=kept)


def _check_names(rewarder: Path, judges: Sequence[str]) -> None:
    taken = [name for name in judges if name in ADDED]
    if taken:
        raise ConfigError(
            f"{rewarder}: a judge is named {taken[0]!r}, as one of the columns {', '.join(ADDED)} is",
            hint="give it another name in the judges file",
        )


def _is_rewarded(path: Path) -> bool:
    """Whether an earlier call wrote it."""
    try:
        with _opened(path) as file:
            first = file.readline()
        found = next(csv.reader([first]), []) if _kind(path) == CSV else jsonlib.loads(first)
    except (OSError, EOFError, ValueError, RecursionError, csv.Error):
        return False
    return isinstance(found, list | dict) and all(name in found for name in ADDED)


# --- reading ---------------------------------------------------------------------------------------------------------


def read(path: Path) -> Sheet:
    """The rows of a CSV or JSONL file.

    Raises:
        DataError: a line that is no row, with its place.
        ConfigError: the file can not be read.
    """
    kind = _kind(path)
    try:
        with _opened(path) as file:
            return (_read_csv if kind == CSV else _read_jsonl)(path, file)
    except (OSError, EOFError) as problem:
        raise ConfigError(f"{path}: {getattr(problem, 'strerror', None) or problem}", hint="name a file") from None
    except UnicodeDecodeError:
        raise DataError(str(path), "not UTF-8 text", hint="save it as UTF-8") from None


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as packed:
            assert isinstance(packed, io.TextIOWrapper)
            yield packed
    else:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file


def _read_csv(path: Path, file: TextIO) -> Sheet:
    csv.field_size_limit(sys.maxsize)  # a completion may be long
    lines = csv.reader(file, strict=True)
    rows, places = [], []
    try:
        head = next(lines, None)
        if head is None:
            raise DataError(str(path), "the file is empty", hint="its first line names the columns")
        twice = sorted({name for name in head if head.count(name) > 1})
        if twice:
            raise DataError(f"{path}:1", f"two columns are named {twice[0]!r}")
        for row in lines:
            if not row:
                continue
            if len(row) != len(head):
                raise DataError(f"{path}:{lines.line_num}", f"{len(row)} cells, and the head has {len(head)}")
            rows.append(dict(zip(head, row, strict=True)))
            places.append(f"{path}:{lines.line_num}")
    except csv.Error as problem:
        raise DataError(f"{path}:{lines.line_num}", f"not CSV: {problem}") from None
    return Sheet(path, tuple(head), tuple(rows), tuple(places))


def _read_jsonl(path: Path, file: TextIO) -> Sheet:
    columns: dict[str, None] = {}
    rows, places = [], []
    for number, line in enumerate(file, 1):
        if line.isspace():
            continue
        try:
            row = jsonlib.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f"{path}:{number}", "not JSON", hint="one object a line") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}", "no JSON object", hint="one object a line")
        if "\\ud" in line.lower():
            _check_text(row, f"{path}:{number}")
        columns |= dict.fromkeys(row)
        rows.append(row)
        places.append(f"{path}:{number}")
    return Sheet(path, tuple(columns), tuple(rows), tuple(places))


def _check_text(row: Mapping[str, Any], place: str) -> None:
    try:
        jsonlib.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DataError(place, "half a surrogate pair, which is no text", hint="repair its \\ud… escape") from None


def _check_columns(sheet: Sheet, columns: Columns, judges: Sequence[str]) -> None:
    there = ", ".join(sheet.columns) or "none"
    for flag, name in (("--prompt-column", columns.prompt), ("--completion-column", columns.completion)):
        if sheet.columns and name not in sheet.columns:
            raise DataError(
                str(sheet.path), f"there is no column {name!r}; the columns are: {there}", hint=f"name it with {flag}"
            )
    taken = [name for name in (*ADDED, *judges) if name in sheet.columns]
    if taken:
        raise DataError(str(sheet.path), f"there is a column {taken[0]!r} already", hint="rename or drop it first")


# --- rewarding -------------------------------------------------------------------------------------------------------


def rewards(council: CouncilReward, sheet: Sheet, columns: Columns) -> list[Reward | None]:
    """One per row; None: the row has no completion."""
    pairs = [_pair(row, place, columns) for row, place in zip(sheet.rows, sheet.places, strict=True)]
    given = [pair for pair in pairs if pair is not None]
    found = iter(block(_rewards(council, given)) if given else ())
    return [None if pair is None else next(found) for pair in pairs]


def _pair(row: Mapping[str, Any], place: str, columns: Columns) -> tuple[Any, Any] | None:
    completion = row.get(columns.completion)
    if completion is None or completion == "" or completion == []:
        return None
    prompt = row.get(columns.prompt)
    for name, value in ((columns.prompt, prompt), (columns.completion, completion)):
        if not _is_said(value):
            raise DataError(
                place, f"{name!r} is {value!r:.60}", hint="expected text, or a list of messages with role and content"
            )
    return prompt, completion


def _is_said(value: Any) -> bool:
    """Text, or messages.

    >>> _is_said("2"), _is_said([{"role": "user", "content": "1 + 1?"}]), _is_said([]), _is_said(2)
    (True, True, False, False)
    """
    if isinstance(value, str):
        return True
    return isinstance(value, list) and bool(value) and all(_is_message(one) for one in value)


def _is_message(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("role"), str) and isinstance(one.get("content"), str)


async def _rewards(council: CouncilReward, pairs: Sequence[tuple[Any, Any]]) -> list[Reward]:
    try:
        return await council.rewards([prompt for prompt, _ in pairs], [completion for _, completion in pairs])
    finally:
        await council.aclose()


# --- writing ---------------------------------------------------------------------------------------------------------


def added(reward: Reward | None, judges: Sequence[str]) -> dict[str, Any]:
    """The columns of a row.

    >>> added(None, ["critic"])
    {'reward': None, 'disagreement': None, 'status': 'unscored', 'critic': None}
    """
    if reward is None:
        return {"reward": None, "disagreement": None, "status": "unscored", **dict.fromkeys(judges)}
    scores = {name: reward.normalised.get(name) for name in judges}
    return {"reward": reward.value, "disagreement": reward.disagreement, "status": reward.status, **scores}


def _write(out: Path, sheet: Sheet, found: Sequence[Reward | None], judges: Sequence[str]) -> None:
    write = _write_csv if _kind(out) == CSV else _write_jsonl
    with whole(out) as part:
        if out.suffix == ".gz":
            with (
                part.open("wb") as raw,
                gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
                io.TextIOWrapper(packed, "utf-8", newline="") as text,
            ):
                write(text, sheet, found, judges)
        else:
            with part.open("w", encoding="utf-8", newline="") as text:
                write(text, sheet, found, judges)


def _write_csv(file: TextIO, sheet: Sheet, found: Sequence[Reward | None], judges: Sequence[str]) -> None:
    lines = csv.writer(file)
    lines.writerow([*sheet.columns, *ADDED, *judges])
    for row, reward in zip(sheet.rows, found, strict=True):
        lines.writerow([*row.values(), *map(csv_cell, added(reward, judges).values())])


def _write_jsonl(file: TextIO, sheet: Sheet, found: Sequence[Reward | None], judges: Sequence[str]) -> None:
    for row, reward in zip(sheet.rows, found, strict=True):
        file.write(jsonlib.dumps({**row, **added(reward, judges)}, ensure_ascii=False) + "\n")


def _tell(sheet: Sheet, found: Sequence[Reward | None], out: Path, json: bool) -> None:
    statuses = dict(counts([one for one in found if one is not None]))
    silent = sum(one is None for one in found)
    statuses["unscored"] += silent
    if json:
        said = {"file": str(out), "rows": len(found), "without_completion": silent, "statuses": statuses}
        print(jsonlib.dumps(said, ensure_ascii=False, indent=2))
        return
    counted = ", ".join(f"{n:,} {status}" for status, n in statuses.items() if n) or "nothing"
    left = f" ({silent:,} without a completion)" if silent else ""
    _screen.out().print(_screen.text(f"{_screen.plural(len(sheet.rows), 'row')}: {counted}{left}"), soft_wrap=True)
    _screen.out().print(_screen.text(f"written: {out}"), soft_wrap=True)
