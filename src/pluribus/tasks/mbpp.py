"""MBPP: short Python functions from one sentence each; the tests decide.

Source: Austin et al. 2021, "Program Synthesis with Large Language Models", arXiv 2108.07732. Licence: CC BY 4.0.
Size: 974: 374 train, 90 validation, 500 test, 10 prompt, told apart by `task_id`. The question shows the first test,
which names the function and its arguments; the key's tests are all of them, and the published code is no measure.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, pairs, shown, text, texts
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test", "prompt")
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "programming"
HUB = Hub(
    "google-research-datasets/mbpp",
    "4bb6404fdc6cacfda99d4ac4205087b89d32030c",
    {split: f"full/{split}-00000-of-00001.parquet" for split in SPLITS},
)
_IDS = {"prompt": range(1, 11), "test": range(11, 511), "validation": range(511, 601), "train": range(601, 975)}
"""The published file holds all splits; this is how its paper divides it."""


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the split that the file `data` holds."""
    check_subset("mbpp", subset, SUBSETS)

    def of_split(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return row if row.get("task_id", _IDS[split].start) in _IDS[split] else None

    return pairs("mbpp", data or fetch(HUB, split), FORMS, prepare=of_split, skipped=skipped)


def _read(row: Mapping[str, Any]) -> Item:
    return _item(row, text(row, "text"), row.get("test_setup_code"))


def _read_sanitized(row: Mapping[str, Any]) -> Item:
    return _item(row, text(row, "prompt"), "\n".join(texts(row, "test_imports")))


def _item(row: Mapping[str, Any], wish: str, setup: Any) -> Item:
    tests = texts(row, "test_list")
    if not tests:
        raise BadRow("field 'test_list' is empty")
    code = text(row, "code").replace("\r\n", "\n")
    name = _function(tests[0], code)
    return Item(
        text=f"{wish}\n\nWrite it as a Python function `{name}`. This must hold:\n\n```python\n{tests[0]}\n```",
        kind="program",
        answer=code,
        metadata={"entry_point": name},
        id=f"mbpp/{row['task_id']}" if "task_id" in row else None,
        tests=tuple(part for part in (str(setup or "").replace("\r\n", "\n"), *tests) if part.strip()),
    )


def _function(test: str, code: str) -> str:
    """The function that a test calls: the first that the published code defines; some are named as built-in ones are.

    >>> _function("assert set(similar((3, 4), [5])) == {3}", "def similar(a, b): ...")
    'similar'
    """
    nodes = [*_nodes(test, "the first of 'test_list'")]
    calls = [node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    defined = {node.name for node in _nodes(code, "field 'code'") if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for name in calls:
        if name in defined:
            return name
    raise BadRow(f"the first of 'test_list' calls nothing that 'code' defines: {shown(test)}")


def _nodes(source: str, what: str) -> Iterator[ast.AST]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the published code's escapes and comparisons
            return ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        raise BadRow(f"{what} is no Python: {shown(source)}") from None


FORMS = (
    Form("MBPP's own rows (text, code, test_list)", has("text", "test_list"), _read),
    Form("the sanitized rows (prompt, code, test_list, test_imports)", has("prompt", "test_imports"), _read_sanitized),
    OWN,
)
