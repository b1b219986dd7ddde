"""HumanEval: Python functions to complete from their signature and docstring; the tests decide.

Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", arXiv 2107.03374. Licence: MIT.
Size: 164 test. The key is the published solution behind the prompt; only its tests are used to score. The function's
beginning stands in the metadata (`prompt`), so that a reply that gives the body alone is whole again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, pairs, shown, text, value
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("test",)
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "programming"
HUB = Hub(
    "openai/openai_humaneval",
    "7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544",
    {"test": "openai_humaneval/test-00000-of-00001.parquet"},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("humaneval", subset, SUBSETS)
    return pairs("humaneval", data or fetch(HUB, split), FORMS, skipped=skipped)


def _read(row: Mapping[str, Any]) -> Item:
    prompt, name = _source(row, "prompt"), text(row, "entry_point")
    if not name.isidentifier():
        raise BadRow(f"field 'entry_point' must be the name of a function, found {shown(name)}")
    return Item(
        text=f"Complete this Python function:\n\n```python\n{prompt.strip()}\n```",
        kind="program",
        answer=prompt + _source(row, "canonical_solution"),
        metadata={"entry_point": name, "prompt": prompt},
        id=text(row, "task_id"),
        tests=(f"{_source(row, 'test')}\ncheck({name})",),
    )


def _source(row: Mapping[str, Any], name: str) -> str:
    """A field's text as it stands: indentation counts."""
    found = value(row, name)
    if not isinstance(found, str) or not found.strip():
        raise BadRow(f"field {name!r} must be Python source, found {shown(found)}")
    return found


FORMS = (
    Form("HumanEval's own rows (prompt, canonical_solution, test, entry_point)", has("prompt", "test"), _read),
    OWN,
)
