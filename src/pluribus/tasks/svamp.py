"""SVAMP: one-step arithmetic word problems, varied so that a shallow reading fails; the answer is one number.

Source: Patel et al. 2021, "Are NLP Models really able to Solve Simple Math Word Problems?", arXiv 2103.07191. Licence:
MIT. Size: 1,000 in the authors' one file, the set of most published scores; on the hub these are 700 train, 300 test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, pairs, shown, text, value
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "test")
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "mathematics"
HUB = Hub(
    "ChilleD/SVAMP",
    "5e0bf1e5e7c0e9c4bc39180d224f41f3f801b7ef",
    {split: f"data/{split}-00000-of-00001.parquet" for split in SPLITS},
)

_ASKING = re.compile(r"(?:How|What|Which|Who|Where|When|Did|Do|Does|Is|Are|Was|Were|Find|By|Total)\b")


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("svamp", subset, SUBSETS)
    return pairs("svamp", data or fetch(HUB, split), FORMS, skipped=skipped)


def _read(row: Mapping[str, Any]) -> Item:
    metadata = {"type": row["Type"]} if row.get("Type") else {}
    asked = _joined(text(row, "Body"), text(row, "Question"))
    id = text(row, "ID") if "ID" in row else None
    return Item(asked, "number", _number(value(row, "Answer")), metadata=metadata, id=id)


def _joined(body: str, question: str) -> str:
    """The story and its question as one text; a story that breaks off is the first half of the question's sentence.

    >>> _joined("If each costs 3 dollars", "How much are 4?"), _joined("Each costs 3 dollars.", "How much are 4?")
    ('If each costs 3 dollars, how much are 4?', 'Each costs 3 dollars. How much are 4?')
    """
    if body.endswith((".", "!", "?", ",", ";", ":")):
        return f"{body} {question}"
    return f"{body}, {question[0].lower() + question[1:] if _ASKING.match(question) else question}"


def _number(found: Any) -> str:
    """The key without the ".0" that the file writes behind whole numbers.

    >>> _number(51.0), _number("0.25"), _number("1234567.0")
    ('51', '0.25', '1234567')
    """
    written = str(found).strip()
    if isinstance(found, bool) or not re.fullmatch(r"-?\d+(\.\d+)?", written):
        raise BadRow(f"field 'Answer' must be a number, found {shown(found)}")
    return re.sub(r"\.0+$", "", written)


FORMS = (Form("SVAMP.json and the hub's rows (Body, Question, Answer)", has("Body", "Question", "Answer"), _read), OWN)
