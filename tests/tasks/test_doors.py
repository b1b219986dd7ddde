"""Names, splits, subsets and what every task must have."""

from __future__ import annotations

from pathlib import Path

import pytest

from pluribus.errors import UnknownName, UsageError
from pluribus.load import load, names
from pluribus.personas import sets
from pluribus.tasks import ALIASES, known, load_task
from pluribus.tasks.mmlu import FAMILY, SUBSETS


@pytest.mark.parametrize("name", names("tasks"))
def test_every_task_has_what_a_task_has(name: str) -> None:
    module = load("tasks", name)
    assert module.DEFAULT_SPLIT in module.SPLITS
    family = module.FAMILY(None) if callable(module.FAMILY) else module.FAMILY
    assert family in sets()
    assert name == "jsonl" or "Source:" in module.__doc__


@pytest.mark.parametrize("name", [name for name in names("tasks") if hasattr(load("tasks", name), "FORMS")])
def test_every_task_that_reads_files_pins_its_source_and_reads_the_projects_form(name: str, tmp_path: Path) -> None:
    module = load("tasks", name)
    if module.HUB is not None:
        assert len(module.HUB.revision) == 40 and set(module.HUB.revision) <= set("0123456789abcdef")
        assert set(module.HUB.files) == set(module.SPLITS)
    path = tmp_path / "own.jsonl"
    path.write_text('{"question": "Which?", "choices": ["x", "y"], "answer": "y", "id": "own-1"}\n', "utf-8")
    ((question, key),) = load_task(name, data=path).pairs
    assert (question.id, question.task, question.choices) == ("own-1", name, ("x", "y"))
    assert key is not None and key.answer == "B"


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(UnknownName, match=r"unknown task 'gsm9k'; did you mean 'gsm8k'\? there are: .*formal_logic"):
        load_task("gsm9k")
    with pytest.raises(UnknownName, match=r"unknown split of gsm8k 'dev'; there are: test, train"):
        load_task("gsm8k", "dev")
    with pytest.raises(UnknownName, match=r"unknown subset of arc 'hard'; there are: challenge, easy"):
        load_task("arc:hard")
    with pytest.raises(UnknownName, match=r"unknown subset of mmlu 'formal_logik'; did you mean 'formal_logic'"):
        load_task("mmlu:formal_logik")
    with pytest.raises(UsageError, match="task 'gsm8k' has no subsets, found gsm8k:easy"):
        load_task("gsm8k:easy")
    with pytest.raises(UnknownName, match="unknown task"):
        load_task("../tasks/gsm8k")


def test_aliases_lead_to_tasks_that_exist() -> None:
    for target in ALIASES.values():
        task, _, subset = target.partition(":")
        assert task in names("tasks") and subset in load("tasks", task).SUBSETS
    assert set(ALIASES) < set(known())


def test_mmlu_has_its_57_subjects_and_their_families() -> None:
    assert len(set(SUBSETS)) == 57
    assert {FAMILY(subject) for subject in SUBSETS} == {"general", "mathematics", "medicine", "logic"}
    assert (FAMILY("college_mathematics"), FAMILY("professional_medicine")) == ("mathematics", "medicine")


def test_a_task_that_makes_its_questions_takes_no_file_and_no_endless_split(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reads no file"):
        load_task("sums", data=tmp_path / "x.jsonl")
    with pytest.raises(UsageError, match="'train' of sums has no end; say how many"):
        load_task("sums", "train")
    assert len(load_task("sums", "train", limit=3).pairs) == 3


def test_the_page_names_every_task_alias_and_pinned_revision() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text("utf-8")
    for name in known():
        assert f"`{name}`" in page, name
    for name in names("tasks"):
        hub = getattr(load("tasks", name), "HUB", None)
        assert hub is None or f"| `{name}` | `{hub.repository}` | `{hub.revision}` |" in page, name
