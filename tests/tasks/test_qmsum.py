from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import UsageError
from pluribus.tasks import load_task

MEETING: dict[str, Any] = {
    "topic_list": [{"topic": "Cats", "relevant_text_span": [["0", "0"]]}],
    "general_query_list": [{"query": "Summarize the meeting.", "answer": "They met."}],
    "specific_query_list": [
        {"query": "What of cats?", "answer": "Ann likes them.", "relevant_text_span": [["1", "1"]]},
        {"query": "What of dogs?", "answer": "Nobody spoke of dogs.", "relevant_text_span": []},
    ],
    "meeting_transcripts": [
        {"speaker": "Chair", "content": "Good  afternoon.\nWelcome."},
        {"speaker": "Ann", "content": "I like cats."},
        {"speaker": "Bo", "content": ""},
    ],
}


def test_every_query_gets_the_whole_meeting(write: Any) -> None:
    pairs = load_task("qmsum", data=write(MEETING)).pairs
    assert [q.text for q, _ in pairs] == ["Summarize the meeting.", "What of cats?", "What of dogs?"]
    assert {q.context for q, _ in pairs} == {"Chair: Good afternoon. Welcome.\nAnn: I like cats.\nBo:"}
    assert [key.answer for _, key in pairs if key] == ["They met.", "Ann likes them.", "Nobody spoke of dogs."]
    assert {q.kind for q, _ in pairs} == {"text"}


def test_one_kind_of_query(write: Any) -> None:
    assert len(load_task("qmsum:general", data=write(MEETING)).pairs) == 1
    assert len(load_task("QMSum:specific", data=write(MEETING)).pairs) == 2


def test_a_meeting_in_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "meeting.json"
    path.write_text(json.dumps(MEETING, indent=4), "utf-8")
    assert len(load_task("qmsum", data=path).pairs) == 3


def test_it_says_where_the_files_are() -> None:
    with pytest.raises(UsageError, match=r"not on the hub and got no file; pass --data val\.jsonl of github\.com"):
        load_task("qmsum", "validation")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"meeting_transcripts": []}, "'meeting_transcripts' is empty"),
        ({"meeting_transcripts": [{"speaker": "Ann"}]}, "'content' of a speaker's turn must be text, found null"),
        ({"meeting_transcripts": [{"content": "Hello."}]}, "there is no field 'speaker'"),
        ({"specific_query_list": ["What?"]}, "'specific_query_list' must be a list of objects"),
        ({"general_query_list": [{"answer": "x"}], "specific_query_list": []}, "there is no field 'query'"),
    ],
)
def test_a_broken_meeting_is_named(refused: Any, change: dict[str, Any], why: str) -> None:
    assert why in refused("qmsum", {**MEETING, "specific_query_list": []}, {**MEETING, **change})


def test_the_real_file_loads_whole(shared_data: Path) -> None:
    path = shared_data / "benchmarks/qmsum/test_ALL.jsonl.gz"
    pairs = load_task("qmsum", data=path).pairs
    assert (len(pairs), len({q.id for q, _ in pairs}), len({q.context for q, _ in pairs})) == (281, 281, 35)
    assert len(load_task("qmsum:general", data=path).pairs) == 37
    assert all(key and key.answer for _, key in pairs)
