"""StrategyQA: yes-or-no questions whose reasoning steps are implicit in the question; asked without its facts.

Source: Geva et al. 2021, "Did Aristotle Use a Laptop? A Question Answering Benchmark with Implicit Reasoning
Strategies", arXiv 2101.02235. Licence: MIT. Size: 2,290 with published answers, all of them in BIG-bench's file; the
hub's copy splits most of these into 1,603 train and 687 test. The authors' own 490 test questions have no published
answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, pairs, shown, table, tables, text
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("train", "test")
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "commonsense"
HUB = Hub(
    "ChilleD/StrategyQA",
    "705562638fe1d8ca6bb98c66fc8f94d45fda8c83",
    {
        "train": "data/train-00000-of-00001-506370352f622815.parquet",
        "test": "data/test-00000-of-00001-bae602f3ee37f4ca.parquet",
    },
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("strategyqa", subset, SUBSETS)
    return pairs("strategyqa", data or fetch(HUB, split), FORMS, skipped=skipped)


def _read(row: Mapping[str, Any]) -> Item:
    answer = row.get("answer")
    if answer is not None and not isinstance(answer, bool):
        raise BadRow(f"field 'answer' must be true or false, found {shown(answer)}")
    return Item(text(row, "question"), "boolean", _key(answer), id=text(row, "qid"))


def _read_bigbench(row: Mapping[str, Any]) -> Item:
    scores = table(row, "target_scores")
    if [scores.get("Yes"), scores.get("No")] not in ([1, 0], [0, 1]):
        raise BadRow(
            f"field 'target_scores' must give 1 to one of Yes and No and 0 to the other, found {shown(scores)}"
        )
    return Item(text(row, "input"), "boolean", _key(scores["Yes"] == 1))


def _key(answer: bool | None) -> str | None:
    return None if answer is None else "true" if answer else "false"


FORMS = (
    Form("StrategyQA's own JSON and the hub's rows (qid, question, answer)", has("qid", "question"), _read),
    Form(
        "BIG-bench's task.json (examples)", has("examples"), _read_bigbench, parts=lambda row: tables(row, "examples")
    ),
    OWN,
)
