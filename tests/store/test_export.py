"""A run leaves one workspace and enters another unchanged; a line that was touched is found."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pluribus.codec import content_id
from pluribus.errors import DataError, StoreError, UnknownName
from pluribus.store import Store
from pluribus.store.export import attempts_of, export_jsonl, import_jsonl
from pluribus.types import Completion, Judgement, Label, Message, Transcript, Turn, Verdict

MakeTranscript = Callable[..., Transcript]


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_a_run_goes_to_another_workspace(full_run: Store, other: Store, tmp_path: Path, name: str) -> None:
    path = tmp_path / "out" / name
    assert export_jsonl(full_run, "first", path) == 4
    imported = import_jsonl(other, path)
    run = full_run.run("first")
    assert (imported.run, imported.attempts, imported.kept) == (run, 4, 0)
    assert other.run("run-1") == run
    assert other.run_attempts("run-1") == full_run.run_attempts("run-1")
    assert list(attempts_of(other, run)) == list(attempts_of(full_run, run))
    assert export_jsonl(other, "first", tmp_path / name) == 4
    assert (tmp_path / name).read_bytes() == path.read_bytes()


def test_each_attempt_is_one_line_with_all_that_belongs_to_it(full_run: Store, tmp_path: Path) -> None:
    export_jsonl(full_run, "first", tmp_path / "run.jsonl")
    head, *lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert (head["format"], head["version"], head["attempts"]) == ("pluribus-run", 2, 4)
    assert head["run"]["totals"] == {"asked": 3, "cost_usd": None}
    assert [line["attempt_id"] for line in lines] == ["attempt-a", "attempt-b", "attempt-c", "attempt-d"]
    assert [line.get("transcript", {}).get("status") for line in lines] == ["complete", "degraded", "failed", None]
    assert lines[0]["key"] == {"question_id": "question-a", "answer": "7", "aliases": ["seven"]}
    assert lines[0]["question"]["text"] == "What is a? ½ \ud83d"
    assert [(d["tie"], d["decision"]["answer"]) for d in lines[0]["decisions"]] == [("abstain", "7"), ("first", "7")]
    assert "key" not in lines[2]


def test_finished_attempts_of_the_workspace_stay(
    full_run: Store, other: Store, tmp_path: Path, transcript: MakeTranscript
) -> None:
    mine = transcript("a", text="I say 8. ")
    other.put_transcript(mine)
    other.put_transcript(transcript("b", "failed"))
    export_jsonl(full_run, "first", tmp_path / "run.jsonl")
    assert import_jsonl(other, tmp_path / "run.jsonl").kept == 1
    assert other.get_transcript("attempt-a") == mine
    assert other.decisions(["attempt-a", "attempt-b"], "plurality", "first").keys() == {"attempt-b"}
    assert other.get_transcript("attempt-b") == transcript("b", "degraded")
    assert import_jsonl(other, tmp_path / "run.jsonl").kept == 2, "again: all that is finished is here"


def test_more_attempts_than_fit_in_memory_at_once(store: Store, other: Store, tmp_path: Path) -> None:
    store.begin_run("r", "many", {}, [(f"a{i}", "q", i) for i in range(1001)])
    export_jsonl(store, "many", tmp_path / "run.jsonl")
    assert import_jsonl(other, tmp_path / "run.jsonl").attempts == 1001
    assert other.run_attempts("r") == [(f"a{i}", "q") for i in range(1001)]


def test_an_unknown_run_leaves_no_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown run 'x'"):
        export_jsonl(store, "x", tmp_path / "out" / "run.jsonl")
    assert not (tmp_path / "out").exists()


def test_a_place_that_can_not_be_written(full_run: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match=r"file/run\.jsonl can not be written: .*; choose another"):
        export_jsonl(full_run, "first", tmp_path / "file" / "run.jsonl")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_export_that_fails_leaves_the_old_file(full_run: Store, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("old")
    full_run.put_records("label", [("a", object())])  # can not be stored, which the export's first read finds out
    with pytest.raises(StoreError, match="could not be stored"):
        export_jsonl(full_run, "first", path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["run.jsonl"]


def signed(line: dict[str, object]) -> str:
    return json.dumps({**line, "digest": content_id(line)})


def changed(lines: list[str], number: int, **values: object) -> list[str]:
    """The file with some values of a line replaced, and the line's digest made right again."""
    line = json.loads(lines[number - 1])
    del line["digest"]
    return [*lines[: number - 1], signed({**line, **values}), *lines[number:]]


Damage = Callable[[list[str]], list[str]]
DAMAGES: list[tuple[Damage, str]] = [
    (lambda lines: [], r":1: the first line does not describe a run; write one with: pluribus export RUN"),
    (lambda lines: lines[1:], r":1: the first line does not describe a run"),
    (lambda lines: changed(lines, 1, version=3), r":1: format version 3, this pluribus reads 1 to 2"),
    (lambda lines: changed(lines, 1, run={"id": "x"}), r":1: .*missing .*'name'"),
    (lambda lines: [*lines[:2], lines[2][:-20], *lines[3:]], r":3: not JSON: .*column"),
    (lambda lines: [*lines[:2], "", "[1]", *lines[3:]], r":4: not a line of an exported run"),
    (lambda lines: [*lines[:2], '{"question": "x"}', *lines[3:]], r":3: not a line of an exported run"),
    (lambda lines: [line.replace("answer is 7", "answer is 8") for line in lines], r":2: the line was changed"),
    (lambda lines: changed(lines, 3, question_id="q"), r":3: the question belongs to 'question-b', the line to 'q'"),
    (lambda lines: changed(lines, 4, attempt_id="x"), r":4: the transcript belongs to 'attempt-c', the line to 'x'"),
    (lambda lines: changed(lines, 2, key={"question_id": "z", "answer": "1"}), r":2: the key belongs to 'z'"),
    (lambda lines: changed(lines, 2, surprise=1), r":2: .*unexpected keyword argument 'surprise'"),
    (lambda lines: changed(lines, 1, records=5), r":1: a list was expected, not int"),
    (lambda lines: changed(lines, 2, records=[{"kind": "label", "content": 7}]), r":2: a record of kind 'label' is no"),
    (lambda lines: changed(lines, 2, records=[{"kind": 3, "content": {}}]), r":2: a record of kind 3 is no object"),
    (lambda lines: changed(lines, 2, records=[{"kind": "label", "content": {"attempt_id": "x"}}]),
     r":2: the label 0 belongs to 'x', the line to 'attempt-a'"),
    (lambda lines: [*lines[:2], *lines[3:]], r":3: attempt 2 of the run where 1 was expected"),
    (lambda lines: lines[:-1], r"run\.jsonl: the file has 3 of 4 attempts"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), DAMAGES, ids=[message for _, message in DAMAGES])
def test_a_bad_line_is_named_and_no_run_is_listed(
    full_run: Store, other: Store, tmp_path: Path, damage: Damage, message: str
) -> None:
    path = tmp_path / "run.jsonl"
    export_jsonl(full_run, "first", path)
    path.write_text("".join(f"{line}\n" for line in damage(path.read_text().splitlines())))
    with pytest.raises(DataError, match=rf"run\.jsonl{message}" if message.startswith(":") else message):
        import_jsonl(other, path)
    assert other.runs() == []


def test_a_file_that_is_not_there_or_cut_off(full_run: Store, other: Store, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl: no such file"):
        import_jsonl(other, tmp_path / "none.jsonl")
    path = tmp_path / "run.jsonl.gz"
    export_jsonl(full_run, "first", path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"run\.jsonl\.gz:\d+: the file can not be read"):
        import_jsonl(other, path)
    path.write_bytes(gzip.compress(b"x")[:5] + b"garbage")
    with pytest.raises(DataError, match=r"run\.jsonl\.gz:1: the file can not be read"):
        import_jsonl(other, path)
    assert other.runs() == []


# --- what later steps kept -------------------------------------------------------------------------------------------

LABELS = [Label("attempt-a", 0, True, checker="key"), Label("attempt-a", 2, False, judge="vllm/J 1a2b"),
          Label("attempt-a", 3, True, step=1, checker="key")]  # fmt: skip
SAID = Turn(0, 0, "verdict", (Message("user", "Is it right? ½"),), Completion('{"verdict": true}' * 200, "J"))
JUDGEMENTS = [
    Judgement("attempt-b", 0, "critic", "id", 7.0, samples=(7.0, None), turns=(SAID,), notes={"n": [1, None]}),
    Judgement("attempt-b", 2, "critic", "id", None),
]
VERDICTS = [Verdict("pair", "question-b", ("attempt-b", 0), ("attempt-b", 2), "first", "ada", 1.5, note="plain")]
LEFT = {"at": 1.0, "weights": {"critic": 0.3}, "text": "long " * 1000}


@pytest.fixture
def labelled(full_run: Store) -> Store:
    """The run with labels, judgements and verdicts, and what a step left under the run's own id."""
    full_run.put_records("label", [("attempt-a", each) for each in LABELS])
    full_run.put_records("judgement", [("attempt-b", each) for each in JUDGEMENTS])
    full_run.put_records("verdict", [("attempt-b", each) for each in VERDICTS])
    full_run.put_records("left", [("run-1", LEFT)])
    full_run.put_records("label", [("attempt-of-another-run", Label("attempt-of-another-run", 0, True))])
    return full_run


def kept(store: Store) -> tuple[object, ...]:
    ids = ["attempt-a", "attempt-b", "run-1", "attempt-of-another-run"]
    return (
        store.records("label", Label, ids), store.records("judgement", Judgement, ids),
        store.records("verdict", Verdict, ids), store.records("left", dict, ids),
    )  # fmt: skip


def test_records_of_every_kind_come_along_in_their_order(labelled: Store, other: Store, tmp_path: Path) -> None:
    export_jsonl(labelled, "first", tmp_path / "run.jsonl")
    import_jsonl(other, tmp_path / "run.jsonl")
    assert kept(other) == (
        {"attempt-a": LABELS}, {"attempt-b": JUDGEMENTS}, {"attempt-b": VERDICTS}, {"run-1": [LEFT]},
    )  # fmt: skip
    export_jsonl(other, "first", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "run.jsonl").read_bytes()
    assert import_jsonl(other, tmp_path / "run.jsonl").differing == 0
    other.put_records("label", [("attempt-a", LABELS[0])])
    export_jsonl(other, "first", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "run.jsonl").read_bytes(), "nothing stands twice"


def test_labels_made_elsewhere_come_to_the_run_that_is_here(labelled: Store, other: Store, tmp_path: Path) -> None:
    first = labelled.get_transcript("attempt-a")
    assert first is not None
    other.put_transcript(first)
    other.put_records("label", [("attempt-a", LABELS[1])])
    export_jsonl(labelled, "first", tmp_path / "run.jsonl")
    assert import_jsonl(other, tmp_path / "run.jsonl").kept == 1
    assert other.records("label", Label, ["attempt-a"]) == {"attempt-a": [LABELS[1], LABELS[0], LABELS[2]]}


def test_labels_of_other_turns_stay_out(
    labelled: Store, other: Store, tmp_path: Path, transcript: MakeTranscript
) -> None:
    other.put_transcript(transcript("a", text="I say 8. "))
    export_jsonl(labelled, "first", tmp_path / "run.jsonl")
    imported = import_jsonl(other, tmp_path / "run.jsonl")
    assert (imported.kept, imported.differing) == (1, 1)
    assert kept(other) == ({}, {"attempt-b": JUDGEMENTS}, {"attempt-b": VERDICTS}, {})


def test_a_file_of_version_1_is_read(full_run: Store, other: Store, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    export_jsonl(full_run, "first", path)
    path.write_text("".join(f"{line}\n" for line in changed(path.read_text().splitlines(), 1, version=1)))
    assert import_jsonl(other, path).attempts == 4
    run = full_run.run("first")
    assert list(attempts_of(other, run)) == list(attempts_of(full_run, run))
