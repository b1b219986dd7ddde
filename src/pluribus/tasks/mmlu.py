"""MMLU: four-option examination questions in 57 subjects; `mmlu:formal_logic` is one subject, `mmlu` all of them.

Source: Hendrycks et al. 2020, "Measuring Massive Multitask Language Understanding", arXiv 2009.03300. Licence: MIT.
Size: 14,042 test, 1,531 validation, 285 dev. The set repeats some of its questions; they are kept, as in every
published score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import (
    LETTERS,
    BadRow,
    Form,
    Item,
    Pair,
    check_subset,
    has,
    letter,
    pairs,
    shown,
    text,
    value,
)
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._questions import OWN

SPLITS = ("dev", "validation", "test")
DEFAULT_SPLIT = "test"
# fmt: off
SUBSETS = (
    "abstract_algebra", "anatomy", "astronomy", "business_ethics", "clinical_knowledge", "college_biology",
    "college_chemistry", "college_computer_science", "college_mathematics", "college_medicine", "college_physics",
    "computer_security", "conceptual_physics", "econometrics", "electrical_engineering", "elementary_mathematics",
    "formal_logic", "global_facts", "high_school_biology", "high_school_chemistry", "high_school_computer_science",
    "high_school_european_history", "high_school_geography", "high_school_government_and_politics",
    "high_school_macroeconomics", "high_school_mathematics", "high_school_microeconomics", "high_school_physics",
    "high_school_psychology", "high_school_statistics", "high_school_us_history", "high_school_world_history",
    "human_aging", "human_sexuality", "international_law", "jurisprudence", "logical_fallacies", "machine_learning",
    "management", "marketing", "medical_genetics", "miscellaneous", "moral_disputes", "moral_scenarios",
    "nutrition", "philosophy", "prehistory", "professional_accounting", "professional_law", "professional_medicine",
    "professional_psychology", "public_relations", "security_studies", "sociology", "us_foreign_policy", "virology",
    "world_religions",
)
# fmt: on
HUB = Hub(
    "cais/mmlu",
    "c30699e8356da336a370243923dbaf21066bb9fe",
    {split: f"{{config}}/{split}-00000-of-00001.parquet" for split in SPLITS},
)

_FAMILIES = {
    "medicine": [
        "anatomy",
        "clinical_knowledge",
        "college_medicine",
        "medical_genetics",
        "professional_medicine",
        "virology",
    ],
    "logic": ["formal_logic", "logical_fallacies"],
    "mathematics": [name for name in SUBSETS if name.endswith(("_mathematics", "_algebra", "_statistics"))],
}


def family(subset: str | None) -> str:
    """The persona set for a subject.

    >>> family("professional_medicine"), family("formal_logic"), family("prehistory"), family(None)
    ('medicine', 'logic', 'general', 'general')
    """
    return next((family for family, subjects in _FAMILIES.items() if subset in subjects), "general")


FAMILY = family


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split; of the file `data` those of the split and subject, where its rows name them."""
    check_subset("mmlu", subset, SUBSETS)
    path = data or fetch(HUB, split, subset or "all")
    wanted = {"split": split, "subject": subset or ""}
    for question, key in pairs("mmlu", path, FORMS, columns=_COLUMNS, skipped=skipped):
        if all(question.metadata.get(name, want) == want for name, want in wanted.items() if want):
            yield question, key


def _read(row: Mapping[str, Any]) -> Item:
    """`answer` is a letter in the authors' files and a number from 0 on the hub."""
    choices = _choices(value(row, "choices"))
    return _item(row, choices)


def _read_csv(row: Mapping[str, Any]) -> Item:
    return _item(row, tuple(text(row, name) for name in "ABCD"))


def _item(row: Mapping[str, Any], choices: tuple[str, ...]) -> Item:
    metadata = {name: row[name] for name in ("subject", "split") if row.get(name)}
    return Item(text(row, "question"), "choice", _answer(value(row, "answer"), choices), choices, metadata=metadata)


def _choices(found: Any) -> tuple[str, ...]:
    """Options as they stand: in ten questions of the set two of them are the same text."""
    if not isinstance(found, list) or len(found) < 2:
        raise BadRow(f"field 'choices' must be a list of texts, found {shown(found)}")
    return tuple(str(option).strip() for option in found)


def _answer(found: Any, choices: tuple[str, ...]) -> str:
    if isinstance(found, int) and not isinstance(found, bool):
        return letter(found, choices)
    if isinstance(found, str) and len(found.strip()) == 1 and found.strip() in LETTERS:
        return letter(LETTERS.index(found.strip()), choices)
    raise BadRow(f"field 'answer' must be a letter or a number from 0, found {shown(found)}")


_COLUMNS = ("question", "A", "B", "C", "D", "answer")

FORMS = (
    Form("JSON lines and the hub's rows (subject, question, choices, answer)", has("subject", "choices"), _read),
    Form("the authors' CSV (question, A, B, C, D, answer; no header)", has("A", "B", "C", "D"), _read_csv),
    OWN,
)
