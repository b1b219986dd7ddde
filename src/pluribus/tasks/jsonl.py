"""Your own questions: one JSON object a line.

`question`, and where wanted `id`, `answer`, `choices`, `labels`, `kind`, `context`, `metadata`. Without an `answer`
the question is asked and not scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pluribus.errors import UsageError
from pluribus.tasks._files import Pair, check_subset, pairs
from pluribus.tasks._questions import OWN

SPLITS = ("all",)
DEFAULT_SPLIT = "all"
SUBSETS: tuple[str, ...] = ()
FAMILY = "general"
FORMS = (OWN,)
HUB = None


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of `data`, in order."""
    check_subset("jsonl", subset, SUBSETS)
    if data is None:
        raise UsageError("task 'jsonl' reads your own questions and got no file", hint="pass --data FILE")
    return pairs("jsonl", data, FORMS, skipped=skipped)
