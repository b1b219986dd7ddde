from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.tasks import load_task

NOTHING = {"unanswerable": False, "extractive_spans": [], "yes_no": None, "free_form_answer": "", "evidence": []}
GIVEN: list[list[dict[str, Any]]] = [
    [{**NOTHING, "unanswerable": True}, {**NOTHING, "free_form_answer": "Three"}],
    [{**NOTHING, "extractive_spans": ["GRU", "LSTM "]}, {**NOTHING, "extractive_spans": ["GRU", "LSTM"]}],
    [{**NOTHING, "yes_no": False}, {**NOTHING, "yes_no": True}],
    [{**NOTHING, "free_form_answer": "1470 sentences"}],
]
SECTIONS = [("Introduction", ["One.", "Two."]), ("", ["Three."]), ("Empty", []), (None, ["Four."])]
CONTEXT = "A Title\n\nAn abstract.\n\nIntroduction\nOne.\n\nTwo.\n\nThree.\n\nFour."
ANSWERS = [
    ("unanswerable", ("Three",)),
    ("GRU, LSTM", ()),
    ("no", ("yes",)),
    ("1470 sentences", ()),
]


def own(given: list[list[dict[str, Any]]] = GIVEN) -> dict[str, Any]:
    return {
        "1909.1": {
            "title": "A Title",
            "abstract": "An abstract.",
            "full_text": [{"section_name": name, "paragraphs": body} for name, body in SECTIONS],
            "qas": [
                {"question": f"Q{n}?", "question_id": f"id{n}", "answers": [{"answer": a} for a in answers]}
                for n, answers in enumerate(given)
            ],
        }
    }


def hub() -> dict[str, Any]:
    return {
        "id": "1909.1",
        "title": "A Title",
        "abstract": "An abstract.",
        "full_text": {"section_name": [s[0] for s in SECTIONS], "paragraphs": [s[1] for s in SECTIONS]},
        "qas": {
            "question": [f"Q{n}?" for n in range(len(GIVEN))],
            "question_id": [f"id{n}" for n in range(len(GIVEN))],
            "answers": [{"answer": answers, "annotation_id": ["x"] * len(answers)} for answers in GIVEN],
        },
    }


def check(path: Path) -> None:
    pairs = load_task("qasper", data=path).pairs
    assert [question.id for question, _ in pairs] == ["id0", "id1", "id2", "id3"]
    assert [(key.answer, key.aliases) for _, key in pairs if key] == ANSWERS
    assert {question.context for question, _ in pairs} == {CONTEXT}
    assert pairs[1][0].text.startswith("Q1?\n") and "unanswerable" in pairs[1][0].text
    assert {question.kind for question, _ in pairs} == {"text"}


@pytest.mark.parametrize("indent", [None, 1])
def test_the_authors_object_of_papers(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "qasper-test-v0.3.json"
    path.write_text(json.dumps(own(), indent=indent), "utf-8")
    check(path)


def test_the_hubs_rows_as_json_lines(write: Any) -> None:
    check(write(hub()))


def test_the_hubs_rows_as_parquet(parquet: Any) -> None:
    check(parquet(hub()))


def test_papers_as_lines_with_tabs(write: Any) -> None:
    questions = [{"question": "Q0?", "answer": "Three"}, {"question": "Q1?", "answer": None}]
    pairs = load_task("qasper", data=write({"paper": "A Title\tAn abstract.\t\tOne.", "questions": questions})).pairs
    assert [key.answer if key else None for _, key in pairs] == ["Three", None]
    assert {question.context for question, _ in pairs} == {"A Title\n\nAn abstract.\n\nOne."}


def test_a_question_whose_answer_says_nothing_is_named_and_skipped_alone(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(json.dumps(own([GIVEN[0], [NOTHING], GIVEN[2]])), "utf-8")
    with pytest.raises(DataError, match=r"q\.json:1, question 2: an annotator's answer must be unanswerable, spans"):
        load_task("qasper", data=path)
    assert [q.id for q, _ in load_task("qasper", data=path, skip_bad=True).pairs] == ["id0", "id2"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"full_text": []}, "'full_text' must be an object"),
        ({"full_text": {"section_name": ["x"], "paragraphs": []}}, "must be lists of one length"),
        ({"full_text": {"section_name": ["x"], "paragraphs": ["text"]}}, "must be a list of texts"),
        ({"qas": {"question": ["Q?"]}}, "there is no field 'question_id'"),
    ],
)
def test_a_broken_paper_is_named(refused: Any, write: Any, change: dict[str, Any], why: str) -> None:
    good = {**hub(), "qas": {name: column[:1] for name, column in hub()["qas"].items()}}
    assert why in refused("qasper", good, {**hub(), **change})


def test_the_real_file_loads_whole(shared_data: Path) -> None:
    path = shared_data / "benchmarks/qasper/test_80papers_partial.jsonl.gz"
    pairs = load_task("QASPER", data=path).pairs
    assert (len(pairs), sum(key is not None for _, key in pairs)) == (270, 82)
    assert sum(question.context is None for question, _ in pairs) == 4, "one paper of the file has no text"
    assert len({question.context for question, _ in pairs}) == 80
