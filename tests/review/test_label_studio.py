"""To Label Studio and back: the same pairs, its verdicts, and what it says when a file is not one of ours."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.review.desk import Planted, plain, plant, rewarded, varied

from pluribus.errors import DataError
from pluribus.review.label_studio import read, tasks, write
from pluribus.review.material import Pair, every_pair, gather
from pluribus.types import Verdict
from pluribus.verdicts import standing


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    home = tmp_path_factory.mktemp("studio")
    plant(home, [Planted("Which?", plain(0).replies, ("one", "two"), "A context."), *varied(2)], reason="so it is")
    found = rewarded(home)
    assert len(gather(found).pairs) == 3
    return every_pair(found)


def annotation(selected: str | None, **others: Any) -> dict[str, Any]:
    """As Label Studio's documentation of its JSON shows one."""
    result = {"id": "Dx_aB91ISN", "from_name": "pw", "to_name": "text1,text2", "type": "pairwise", "origin": "manual"}
    made = [] if selected is None else [{**result, "value": {"selected": selected}}]
    times = {"created_at": "2026-03-09T22:16:08.728353Z", "updated_at": "2026-03-09T22:17:08.500000Z"}
    return {
        "id": 1001, "result": made, "was_cancelled": False, "ground_truth": False, **times, "lead_time": 4.288,
        "task": 1, "completed_by": 10, **others,
    }  # fmt: skip


@pytest.fixture
def exported(tmp_path: Path, pairs: dict[str, Pair]) -> Callable[..., Path]:
    """The file that comes back: the tasks with an annotation each, changed by a function."""

    def make(*said: dict[str, Any], change: Callable[[list[Any]], Any] = lambda rows: rows) -> Path:
        rows: list[Any] = [
            {"id": 70 + i, "annotations": [copy.deepcopy(said[i])] if i < len(said) else [], **task, "project": 83}
            for i, task in enumerate(tasks("r1", pairs.values()))
        ]
        path = tmp_path / "project.json"
        path.write_text(json.dumps(change(rows)), "utf-8")
        return path

    return make


def test_a_task_shows_the_replies_and_nothing_of_who_wrote_them_or_what_the_judges_said(pairs: dict[str, Pair]) -> None:
    made = [task["data"] for task in tasks("r1", pairs.values())]
    for data, pair in zip(made, pairs.values(), strict=True):
        assert {data["text1"], data["text2"]} == {reply.text for reply in pair.replies}
        assert data["pluribus_pair"] == pair.id
        assert pair.reply(tuple(data["pluribus_left"])).text == data["text1"]
    assert made[0]["question"] == "Which?\nA. one\nB. two" and made[0]["context"] == "A context."
    assert not any(word in json.dumps(made) for word in ("scripted", "teacher", "so it is", "0.9", "sceptic"))


def test_written_tasks_are_json_whatever_is_in_a_text(tmp_path: Path) -> None:
    plant(tmp_path / "home", [Planted("?", [("half \ud83d sign", (0.9, 0.2, 0.6)), ("\u2028 <b>", (0.3, 0.8, 0.4))])])
    found = gather(rewarded(tmp_path / "home"))
    assert write(tmp_path / "out.json", "r1", found.pairs) == 1
    data = json.loads((tmp_path / "out.json").read_text("utf-8"))[0]["data"]
    assert {data["text1"], data["text2"]} == {reply.text for reply in found.pairs[0].replies}


def test_verdicts_come_back_with_who_gave_them_when_and_how_long_it_took(
    pairs: dict[str, Pair], exported: Callable[..., Path]
) -> None:
    path = exported(
        annotation("left"),
        annotation("right", completed_by={"id": 3, "email": "ada@example.org", "first_name": ""}),
        annotation(None, completed_by="bob@example.org", lead_time=None),
    )
    found = read(path, "r1", pairs)
    made = [task["data"] for task in tasks("r1", pairs.values())]
    assert [v.choice for v in found] == ["first", "second", "tie"]
    assert [v.reviewer for v in found] == ["label studio 10", "ada@example.org", "bob@example.org"]
    assert [list(v.first) for v in found] == [data["pluribus_left"] for data in made]
    assert [v.seconds for v in found] == [4.288, 4.288, None]
    assert {v.at for v in found} == {1773094628.5}
    assert read(path, "r1", pairs) == found, "the same file says the same"
    assert len(standing(found)) == 3 and all(isinstance(v, Verdict) for v in found)


def test_none_and_both_are_ties_cancelled_is_a_skip_and_no_annotation_is_nothing(
    pairs: dict[str, Pair], exported: Callable[..., Path]
) -> None:
    both = annotation("left")
    both["result"].append({**both["result"][0], "value": {"selected": "right"}})
    found = read(exported(both, annotation("left", was_cancelled=True)), "r1", pairs)
    assert [v.choice for v in found] == ["tie", "skip"]
    assert [v.choice for v in read(exported(annotation("none")), "r1", pairs)] == ["tie"]
    assert read(exported(), "r1", pairs) == []


def test_several_people_at_one_task_and_other_controls_beside(
    pairs: dict[str, Pair], exported: Callable[..., Path]
) -> None:
    more = annotation("right", completed_by=11)
    more["result"].append({"type": "textarea", "from_name": "why", "to_name": "text1", "value": {"text": ["clear"]}})
    path = exported(annotation("left"), change=lambda rows: [{**rows[0], "annotations": [annotation("left"), more]}])
    assert [(v.reviewer, v.choice) for v in read(path, "r1", pairs)] == [
        ("label studio 10", "first"),
        ("label studio 11", "second"),
    ]


def put(name: str, value: Any) -> Callable[[list[Any]], Any]:
    """Changes a field of the data of the second task."""

    def change(rows: list[Any]) -> list[Any]:
        rows[1]["data"][name] = value
        return rows

    return change


def said(name: str, value: Any) -> Callable[[list[Any]], Any]:
    """Changes a field of the annotation of the second task."""

    def change(rows: list[Any]) -> list[Any]:
        rows[1]["annotations"][0][name] = value
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("pluribus_pair", "nobody"), "task 2 (id 71): data.pluribus_pair: there is no pair 'nobody'"),
        (put("pluribus_pair", None), "task 2 (id 71): data.pluribus_pair: expected a pair's id, found None"),
        (put("pluribus_run", "r2"), "task 2 (id 71): data.pluribus_run is 'r2', and this run is r1"),
        (put("pluribus_left", ["a9", 0]), "task 2 (id 71): data.pluribus_left and data.pluribus_right are not"),
        (put("pluribus_right", "a1"), "are not the replies of this pair"),
        (said("result", [{"type": "pairwise", "value": {"selected": "up"}}]), "annotation 1: selected: expected"),
        (said("result", [{"type": "pairwise"}]), "expected 'left' or 'right', found None"),
        (said("result", "left"), "result: expected a list of objects, found 'left'"),
        (said("completed_by", None), "completed_by: expected a person's number or email, found None"),
        (said("completed_by", True), "completed_by: expected"),
        (said("updated_at", "yesterday"), "updated_at: expected a time"),
        (lambda rows: [rows[0], "x"], "task 2: expected an object with data and annotations, found 'x'"),
        (lambda rows: [rows[0], {**rows[1], "annotations": 3}], "annotations: expected a list of objects, found 3"),
        (lambda rows: {"tasks": rows}, "expected a list of tasks"),
        # JSON-MIN: the fields of data beside each other, nothing of an annotation but its number
        (lambda rows: [{**rows[0]["data"], "id": 1, "annotator": 1}], "as JSON (not JSON-MIN or CSV)"),
    ],
)  # fmt: skip
def test_whatever_is_wrong_is_named_with_its_task_and_nothing_is_taken(
    pairs: dict[str, Pair], exported: Callable[..., Path], change: Callable[[list[Any]], Any], words: str
) -> None:
    path = exported(*[annotation("left")] * 3, change=change)
    with pytest.raises(DataError) as caught:
        read(path, "r1", pairs)
    assert words in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize("lasted", [10**400, -5, True, float("nan"), float("inf"), "4"])
def test_what_is_no_length_of_time_is_not_known(
    pairs: dict[str, Pair], exported: Callable[..., Path], lasted: Any
) -> None:
    assert read(exported(annotation("left", lead_time=lasted)), "r1", pairs)[0].seconds is None


def test_a_reviewer_is_named_by_signs_that_can_be_seen(pairs: dict[str, Pair], exported: Callable[..., Path]) -> None:
    path = exported(annotation("left", completed_by="ada\x1b[2J\n\u202e@example.org \ud800"))
    assert read(path, "r1", pairs)[0].reviewer == "ada [2J @example.org"
    with pytest.raises(DataError, match="completed_by"):
        read(exported(annotation("left", completed_by="\u202e\x00")), "r1", pairs)


@pytest.mark.parametrize("content", [b"", b"id,text1\n1,x\n", b"\xff\xfe", b"[" * 100_000])
def test_files_that_are_no_json(tmp_path: Path, pairs: dict[str, Pair], content: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match="this is not JSON"):
        read(path, "r1", pairs)


def test_a_file_that_is_not_there(tmp_path: Path, pairs: dict[str, Pair]) -> None:
    with pytest.raises(DataError, match="can not be read"):
        read(tmp_path / "none.json", "r1", pairs)
