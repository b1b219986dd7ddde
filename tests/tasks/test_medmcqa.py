from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.tasks import load_task
from pluribus.tasks.medmcqa import HUB


def row(cop: Any, n: int = 0) -> dict[str, Any]:
    return {
        "id": f"q{n}-{cop}",
        "question": f"Which nerve, {n}?",
        "opa": "w",
        "opb": "x",
        "opc": "y",
        "opd": "z",
        "cop": cop,
        "subject_name": "Anatomy",
        "exp": "It is the vagus.",
    }


def keys(path: Path) -> list[str | None]:
    return [key.answer if key else None for _, key in load_task("medmcqa", data=path).pairs]


def test_a_zero_anywhere_counts_from_zero(write: Any) -> None:
    assert keys(write(row(1), row(3), row(0))) == ["B", "D", "A"]


def test_a_four_anywhere_counts_from_one(write: Any) -> None:
    assert keys(write(row(1), row(3), row(4))) == ["A", "C", "D"]


def test_neither_is_not_guessed(write: Any) -> None:
    with pytest.raises(DataError, match=r"data\.jsonl:1: field 'cop' is 1 .* can not be told; give the whole split"):
        keys(write(row(1), row(3)))


def test_rows_of_the_hub_itself_count_from_zero_whatever_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parquet: Any
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / f"datasets--{HUB.repository.replace('/', '--')}" / "snapshots" / HUB.revision / "data"
    folder.mkdir(parents=True)
    parquet(row(1), row(2)).rename(folder / "validation-00000-of-00001.parquet")
    assert [key.answer for _, key in load_task("medmcqa").pairs if key] == ["B", "C"]


def test_both_is_an_error_at_the_row_that_does_not_fit(write: Any) -> None:
    with pytest.raises(DataError, match=r"data\.jsonl:2: the answer is option number 5, but there are 4"):
        keys(write(row(0), row(4)))


@pytest.mark.parametrize("cop", [-1, None, ""])
def test_a_withheld_answer_is_no_key(write: Any, cop: Any) -> None:
    assert keys(write(row(cop))) == [None]


def test_an_answer_of_true_is_no_number(write: Any) -> None:
    with pytest.raises(DataError, match="must be a number from 0, found true"):
        keys(write(row(0), row(True)))


def test_the_explanation_stays_out_of_the_question(one: Any) -> None:
    question, _ = one("medmcqa", row(0))
    assert "vagus" not in str(question)
    assert (question.choices, question.metadata) == (("w", "x", "y", "z"), {"subject_name": "Anatomy"})


def test_a_missing_option_is_named(refused: Any) -> None:
    bad = row(1)
    del bad["opc"]
    assert "there is no field 'opc'" in refused("medmcqa", row(0), bad)


def test_the_real_file_counts_from_one(shared_data: Path) -> None:
    found = Counter(keys(shared_data / "benchmarks/medmcqa/dev.json.gz"))
    assert found == {"A": 1348, "B": 1085, "C": 925, "D": 825}
