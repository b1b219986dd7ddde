r"""MATH: competition problems in seven subjects and five levels, answered by a number, a formula or words in LaTeX.

`math` is all of it; `math:algebra` one subject, `math:level5` one level, `math:500` the 500 test problems of Lightman
et al. 2023 (2305.20050). Source: Hendrycks et al. 2021, "Measuring Mathematical Problem Solving With the MATH Dataset",
arXiv 2103.03874. Licence: MIT. Size: 7,500 train, 5,000 test. The key is what the solution's last `\boxed{…}` holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pluribus.answers.latex import boxed
from pluribus.errors import UsageError
from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, optional, pairs, shown, text
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "test")
DEFAULT_SPLIT = "test"
SUBJECTS = (
    "algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory", "prealgebra",
    "precalculus",
)  # fmt: skip
LEVELS = tuple(f"level{n}" for n in range(1, 6))
SUBSETS = (*SUBJECTS, *LEVELS, "500")
FAMILY = "mathematics"
HUB = Hub(
    "EleutherAI/hendrycks_math",
    "21a5633873b6a120296cce3e2df9d5550074f4a3",
    {split: f"{{config}}/{split}-00000-of-00001.parquet" for split in SPLITS},
)
HUB_500 = Hub("HuggingFaceH4/MATH-500", "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be", {"test": "test.jsonl"})


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split; of the file `data` those of the subject or level, where its rows name theirs."""
    check_subset("math", subset, SUBSETS)
    paths = [data] if data is not None else _fetched(split, subset)
    found = chain.from_iterable(pairs("math", path, FORMS, skipped=skipped) for path in paths)
    return (pair for pair in found if _belongs(pair[0].metadata, subset))


def _fetched(split: str, subset: str | None) -> Iterator[Path]:
    if subset == "500":
        if split not in HUB_500.files:
            raise UsageError(
                f"math:500 has no split {split!r}, only 'test'", hint="take --split test, or the task math"
            )
        yield fetch(HUB_500, split)
        return
    for subject in (subset,) if subset in SUBJECTS else SUBJECTS:
        yield fetch(HUB, split, subject or "")


def _belongs(metadata: Mapping[str, Any], subset: str | None) -> bool:
    if subset in SUBJECTS:
        return bool(metadata.get("subject", subset) == subset)
    if subset in LEVELS:
        return f"level{metadata.get('level', subset[5:])}" == subset
    return True


def _read(row: Mapping[str, Any]) -> Item:
    """`answer` where the row has it, as in the 500, else what the solution puts in a box."""
    subject = _subject(row)
    metadata = ({"subject": subject} if subject else {}) | ({"level": _level(row["level"])} if "level" in row else {})
    name = row.get("unique_id")
    return Item(
        text(row, "problem"),
        "latex",
        _key(row),
        metadata=metadata,
        id=name if isinstance(name, str) else None,
        solution=optional(row, "solution"),
    )


def _key(row: Mapping[str, Any]) -> str:
    answer = row.get("answer")
    if isinstance(answer, str) and answer.strip():
        return answer.strip()
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return str(int(answer) if answer == int(answer) else answer)
    if answer is not None:
        raise BadRow(f"field 'answer' must be text or a number, found {shown(answer)}")
    key = boxed(text(row, "solution"))
    if key is None:
        raise BadRow("field 'solution' must hold the answer as '\\boxed{ANSWER}'")
    return key


def _subject(row: Mapping[str, Any]) -> str | None:
    """The subset's name of a subject.

    >>> _subject({"type": "Counting & Probability"}), _subject({"subject": "Precalculus"}), _subject({})
    ('counting_and_probability', 'precalculus', None)
    """
    found = row.get("subject", row.get("type"))
    return found.strip().lower().replace("&", "and").replace(" ", "_") if isinstance(found, str) else None


def _level(found: Any) -> int | None:
    """1 to 5; a few rows of the set have "Level ?".

    >>> _level("Level 5"), _level(3), _level("Level ?"), _level(None)
    (5, 3, None, None)
    """
    digit = re.fullmatch(r"(?:Level )?([1-5])", str(found))
    return int(digit[1]) if digit else None


FORMS = (
    Form("MATH's own JSON and the hub's rows (problem, level, type, solution)", has("problem", "solution"), _read),
    Form("rows of problem and answer", has("problem", "answer"), _read),
    OWN,
)
