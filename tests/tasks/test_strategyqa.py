from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.tasks import load_task

ROW = {"qid": "e1", "term": "Ann", "question": "Can Ann fly?", "answer": False, "facts": ["Ann has no wings."]}


def bigbench(*answers: bool) -> dict[str, Any]:
    examples = [
        {"input": f"Is it {n}?", "target_scores": {"Yes": int(yes), "No": int(not yes)}, "target": "Because."}
        for n, yes in enumerate(answers)
    ]
    return {"name": "strategyqa", "examples": examples}


@pytest.mark.parametrize(("answer", "key"), [(True, "true"), (False, "false")])
def test_the_published_form_without_its_facts(one: Any, answer: bool, key: str) -> None:
    question, found = one("strategyqa", {**ROW, "answer": answer})
    assert (question.id, question.kind, question.text, found.answer) == ("e1", "boolean", "Can Ann fly?", key)
    assert "wings" not in str(question)


def test_the_test_split_has_no_keys(one: Any) -> None:
    assert one("strategyqa", {name: ROW[name] for name in ("qid", "question")})[1] is None


@pytest.mark.parametrize("indent", [None, 2])
def test_bigbench_task_file_on_one_line_or_many(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(bigbench(True, False), indent=indent), "utf-8")
    pairs = load_task("strategyqa", data=path).pairs
    assert [(q.text, key.answer) for q, key in pairs if key] == [("Is it 0?", "true"), ("Is it 1?", "false")]


@pytest.mark.parametrize("scores", [{"Yes": 1, "No": 1}, {"Yes": "1", "No": "0"}, {"yes": 1, "no": 0}, {}])
def test_a_broken_example_is_named_by_its_place(tmp_path: Path, scores: dict[str, Any]) -> None:
    task = bigbench(True, False)
    task["examples"][1]["target_scores"] = scores
    path = tmp_path / "task.json"
    path.write_text(json.dumps(task, indent=1), "utf-8")
    with pytest.raises(DataError, match=r"task\.json:1, question 2: field 'target_scores' must give 1"):
        load_task("strategyqa", data=path)
    assert len(load_task("strategyqa", data=path, skip_bad=True).pairs) == 1


def test_a_cut_task_file_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(bigbench(True, False), indent=1)[:-20], "utf-8")
    with pytest.raises(DataError, match=r"task\.json:\d+: "):
        load_task("strategyqa", data=path)


@pytest.mark.parametrize("answer", ["yes", 1, "true"])
def test_an_answer_that_is_no_boolean_is_named(refused: Any, answer: Any) -> None:
    assert "'answer' must be true or false" in refused("strategyqa", ROW, {**ROW, "qid": "e2", "answer": answer})


def test_real_files_load_whole_and_agree_with_the_recorded_runs(
    shared_data: Path, recorded: Callable[[str], list[dict[str, Any]]]
) -> None:
    folder = shared_data / "benchmarks/strategyqa"
    assert len(load_task("strategyqa", data=folder / "dev229.json.gz").pairs) == 229
    pairs = load_task("strategyqa", data=folder / "bigbench_task2290.json.gz").pairs
    rows = recorded("strategyqa_18runs")
    assert [(q.text, key.answer) for q, key in pairs if key] == [(row["question"], row["answer"]) for row in rows]
    assert len(rows) == 2290
