"""MedMCQA: four-option questions from Indian medical entrance examinations; scored on validation, test has no keys.

Source: Pal et al. 2022, "MedMCQA: A Large-scale Multi-Subject Multi-Choice Dataset for Medical domain Question
Answering", arXiv 2203.14371. Licence: MIT (Apache-2.0 on the hub). Size: 182,822 train, 4,183
validation; the 6,150 test questions have no published answer.

The option's number `cop` counts from 0 on the hub and from 1 in the authors' files, under the same field names. A file
where some row says 0 counts from 0, one where some row says 4 from 1; a file with neither is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, numbered, pairs, shown, text
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test")
DEFAULT_SPLIT = "validation"
SUBSETS: tuple[str, ...] = ()
FAMILY = "medicine"
HUB = Hub(
    "openlifescienceai/medmcqa",
    "91c6572c454088bf71b679ad90aa8dffcd0d5868",
    {split: f"data/{split}-00000-of-00001.parquet" for split in SPLITS},
)

_OPTIONS = ("opa", "opb", "opc", "opd")


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("medmcqa", subset, SUBSETS)
    if data is None:
        return pairs("medmcqa", fetch(HUB, split), (_HUB_ROWS,), skipped=skipped)
    return pairs("medmcqa", data, FORMS, skipped=skipped)


def _from(first: int) -> Callable[[Mapping[str, Any]], Item]:
    return lambda row: _item(row, lambda choices: numbered(row.get("cop"), first, choices))


def _read_either(row: Mapping[str, Any]) -> Item:
    return _item(row, lambda choices: _withheld(row.get("cop")))


def _withheld(cop: Any) -> None:
    if cop in ("", None, -1, "-1"):
        return
    raise BadRow(
        f"field 'cop' is {shown(cop)} and no row of the file says 0 or 4, so whether it counts from 0 (hub) or from 1 "
        "(authors) can not be told; give the whole split"
    )


def _item(row: Mapping[str, Any], key: Callable[[tuple[str, ...]], str | None]) -> Item:
    choices = tuple(text(row, name) for name in _OPTIONS)
    metadata = {name: row[name] for name in ("subject_name", "topic_name", "choice_type") if row.get(name)}
    id = text(row, "id") if "id" in row else None
    return Item(text(row, "question"), "choice", key(choices), choices, metadata=metadata, id=id)


def _says(cop: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda row: "opa" in row and str(row.get("cop")) == cop


_HUB_ROWS = Form("the hub's rows (question, opa to opd, cop from 0)", has("opa"), _from(0))

FORMS = (
    replace(_HUB_ROWS, fits=_says("0")),
    Form("MedMCQA's own JSONL (question, opa to opd, cop from 1)", _says("4"), _from(1)),
    Form("either without keys", has("opa"), _read_either),
    OWN,
)
