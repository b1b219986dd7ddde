"""TruthfulQA, multiple choice with one true answer (mc1): questions that people answer wrongly out of habit.

Source: Lin et al. 2021, "TruthfulQA: Measuring How Models Mimic Human Falsehoods", arXiv 2109.07958. Licence:
Apache-2.0. Size: 817 validation. At the source the true answer always stands first, so the options are put in the
order of a hash of question and option: the same in every run, on every machine and from every form of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, Pair, check_subset, has, letter, pairs, table, text, texts
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("validation",)
DEFAULT_SPLIT = "validation"
SUBSETS: tuple[str, ...] = ()
FAMILY = "general"
HUB = Hub(
    "truthfulqa/truthful_qa",
    "741b8276f2d1982aa3d5b832d3ee81ed3b896490",
    {"validation": "multiple_choice/validation-00000-of-00001.parquet"},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("truthfulqa", subset, SUBSETS)
    return pairs("truthfulqa", data or fetch(HUB, split), FORMS, columns=(), skipped=skipped)


def _read_csv(row: Mapping[str, Any]) -> Item:
    wrong = [option.strip() for option in text(row, "Incorrect Answers").split(";") if option.strip()]
    return _item(text(row, "Question"), text(row, "Best Answer"), wrong, {"category": text(row, "Category")})


def _read_targets(row: Mapping[str, Any]) -> Item:
    """`mc1_targets` is {option: 0 or 1}; on the hub {"choices": […], "labels": […]}."""
    targets = table(row, "mc1_targets")
    if isinstance(targets.get("choices"), list):
        labels = targets.get("labels")
        targets = dict(zip(texts(targets, "choices"), labels if isinstance(labels, list) else [], strict=False))
    true = [str(option) for option, label in targets.items() if label == 1]
    if len(true) != 1:
        raise BadRow(f"field 'mc1_targets' must mark one option with 1, found {len(true)}")
    return _item(text(row, "question"), true[0], [str(option) for option in targets if option != true[0]], {})


def _item(question: str, true: str, wrong: list[str], metadata: Mapping[str, Any]) -> Item:
    options = {_plain(option): option for option in (*wrong, true)}
    if len(options) < 2:
        raise BadRow("there is no wrong option beside the true one")
    keys = sorted(options, key=lambda option: hashlib.sha256(f"{question}\x1f{option}".encode()).digest())
    choices = tuple(options[key] for key in keys)
    return Item(question, "choice", letter(keys.index(_plain(true)), choices), choices, metadata=metadata)


def _plain(option: str) -> str:
    """An option without the full stop that one form of the file has and the other has not."""
    return option.strip().rstrip(".")


FORMS = (
    Form(
        "TruthfulQA.csv (Question, Best Answer, Incorrect Answers)", has("Best Answer", "Incorrect Answers"), _read_csv
    ),
    Form("mc_task.json and the hub's rows (question, mc1_targets)", has("mc1_targets"), _read_targets),
    OWN,
)
