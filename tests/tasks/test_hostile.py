"""Whatever stands in a file: a question, or one clear line; never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pluribus.codec import encode
from pluribus.errors import UsageError
from pluribus.tasks import load_task

ADAPTERS = {
    "instruction": "Please choose the correct answer to the question: Q?\n\nAnswer1: a Answer2: b\n\n"
    "Answer format: answer1/answer2",
    "answer": "answer2",
}
TARGETS: dict[str, Any] = {"question": "Q?", "mc1_targets": {"a": 1, "b": 0}}
SECTION = {"section_name": "a", "paragraphs": ["b"]}
SECTIONS = {"section_name": ["a"], "paragraphs": [["b"]]}
GIVEN = {"answer": [{"unanswerable": True}]}
SOUND: list[tuple[str, dict[str, Any]]] = [
    ("gsm8k", {"question": "Q?", "answer": "#### 4"}),
    ("arc", {"id": "i", "question": {"stem": "Q?", "choices": [{"text": "a", "label": "A"}]}, "answerKey": "A"}),
    ("arc", {"id": "i", "question": "Q?", "choices": {"text": ["a", "b"], "label": ["1", "2"]}, "answerKey": "2"}),
    ("arc", ADAPTERS),
    ("hellaswag", {"ind": 1, "ctx": "He", "endings": ["a", "b"], "label": "1"}),
    ("hellaswag", {"id": 1, "question": "He", "choices": {"A": "a", "B": "b"}, "answer": "B"}),
    ("truthfulqa", TARGETS),
    ("truthfulqa", {"question": "Q?", "mc1_targets": {"choices": ["a", "b"], "labels": [0, 1]}}),
    ("piqa", {"goal": "Q", "sol1": "a", "sol2": "b", "label": 1}),
    ("winogrande", {"qID": "i", "sentence": "Q _", "option1": "a", "option2": "b", "answer": "1"}),
    ("mmlu", {"split": "test", "subject": "anatomy", "question": "Q?", "choices": ["a", "b"], "answer": "B"}),
    ("jsonl", {"id": "i", "question": "Q?", "choices": ["a", "b"], "answer": "b", "context": "c", "metadata": {}}),
    ("jsonl", {"question": "Q?", "labels": ["a", "b"], "answer": "b", "kind": "label"}),
    ("aqua", {"question": "Q?", "options": ["A)1", "B)2", "C)3", "D)4", "E)5"], "correct": "B"}),
    ("svamp", {"ID": "i", "Body": "Ann sat", "Question": "How many?", "Answer": 2.0, "Type": "Addition"}),
    ("medmcqa", {"id": "i", "question": "Q?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 0}),
    ("medqa", {"question": "Q?", "options": {"A": "a", "B": "b"}, "answer_idx": "B", "answer": "b"}),
    ("mmlu_pro", {"question_id": 1, "question": "Q?", "options": ["a", "N/A", "b"], "answer": "C", "category": "law"}),
    ("commonsenseqa", {"id": "i", "question": "Q?", "choices": {"text": ["a", "b"], "label": ["A", "B"]}}),
    ("openbookqa", {"id": "i", "question_stem": "Q", "choices": {"text": ["a"], "label": ["A"]}, "answerKey": "A"}),
    ("strategyqa", {"qid": "i", "question": "Q?", "answer": True}),
    ("strategyqa", {"examples": [{"input": "Q?", "target_scores": {"Yes": 1, "No": 0}}]}),
    ("hotpotqa", {"_id": "i", "question": "Q?", "answer": "a", "context": [["a", ["b"]]]}),
    ("hotpotqa", {"id": "i", "question": "Q?", "answer": "a", "context": {"title": ["a"], "sentences": [["b"]]}}),
    ("hotpotqa", {"_id": "i", "input": "Q?", "context": "c", "answers": ["a", "b"], "dataset": "hotpotqa"}),
    ("qasper", {"i": {"full_text": [SECTION], "qas": [{"question": "Q?", "question_id": "i", "answers": []}]}}),
    ("qasper", {"full_text": SECTIONS, "qas": {"question": ["Q?"], "question_id": ["i"], "answers": [GIVEN]}}),
    ("qasper", {"paper": "a\tb", "questions": [{"question": "Q?", "answer": None}]}),
    ("qmsum", {"meeting_transcripts": [{"speaker": "a", "content": "b"}], "general_query_list": [{"query": "Q?"}]}),
    ("decisions", {"Text": "Q?", "Label": "A", "labels": ["a", "b"]}),
]
WORDS = st.sampled_from(["A", "B", "x", "#### 7", "number", "answer1", "2", "", "text", "choices", "labels", "a"])
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(allow_nan=True) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)


def outcome(name: str, path: Path) -> None:
    try:
        loaded = load_task(name, data=path, skip_bad=True)
    except UsageError as error:
        assert "\n" not in str(error)
        return
    for question, key in loaded.pairs:
        encode(question), encode(key)
        assert question.text and question.id
        if question.kind == "choice" and key is not None:
            assert key.answer is not None and "ABCDEFGHIJ".index(key.answer) < len(question.choices)


@pytest.mark.parametrize(("name", "sound"), SOUND)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_sound_row_beside_one_with_a_spoilt_field(
    name: str, sound: dict[str, Any], data: st.DataObject, tmp_path: Path
) -> None:
    field = data.draw(st.sampled_from(sorted(sound)))
    spoilt = {**sound, field: data.draw(VALUES)}
    rows = data.draw(st.permutations([sound, spoilt, data.draw(VALUES)]))
    path = tmp_path / "data"
    path.write_text(json.dumps(rows) if data.draw(st.booleans()) else "\n".join(map(json.dumps, rows)), "utf-8")
    outcome(name, path)


@pytest.mark.parametrize("name", ["jsonl", "mmlu", "truthfulqa"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_any_bytes(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(content)
    outcome(name, tmp_path / "data")


@pytest.mark.parametrize(
    ("value", "why"),
    [("NaN", "NaN is no JSON value"), ('"\\ud800"', "surrogates not allowed"), ("9" * 5000, "not readable as JSON")],
)
def test_values_that_no_file_could_keep_are_refused(tmp_path: Path, value: str, why: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(f'{{"question": "What?", "metadata": {{"x": {value}}}}}\n', "utf-8")
    with pytest.raises(UsageError, match=rf"q\.jsonl:1: .*{why}"):
        load_task("jsonl", data=path)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "What?", "metadata": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "utf-8")
    with pytest.raises(UsageError, match=r"q\.jsonl:1: not readable as JSON"):
        load_task("jsonl", data=path)
