"""Recordings as panels: who wins where source and text differ, what is counted, which recordings belong together."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from pluribus.errors import DataError
from pluribus.evaluate import Usage
from pluribus.load import load, names
from pluribus.logs import Output, Recording, read
from pluribus.logs._panels import EMPTY, NO_KEY, SILENT, combine, panel_of_recording
from pluribus.panel import answers, credits, right_Q_A
from pluribus.types import Key, Question


def recording(agent: str = "m", ids: str = "ab", task: str = "t", **more: object) -> Recording:
    """One agent that says 4 to everything; the key is 4."""
    pairs = tuple((Question(id, task, f"{id}?", "number"), Key(id, "4")) for id in ids)
    outputs = tuple(Output(id, agent, "The answer is 4.", prompt_tokens=2, completion_tokens=5) for id in ids)
    made = Recording(f"{task} {agent}", f"logs/{agent}.jsonl", task, pairs, (agent,), outputs)
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", names("logs"))
def test_every_reader_has_its_parts(name: str, tmp_path: Path) -> None:
    member = load("logs", name)
    assert member.TITLE and member.__doc__
    nothing = tmp_path / "nothing.jsonl"
    nothing.write_bytes(b"")
    binary = tmp_path / "binary.json"
    binary.write_bytes(bytes(range(256)) * 10)
    for path in (nothing, binary, tmp_path / "nowhere.jsonl", tmp_path / "nowhere.eval"):
        assert member.recognise(path) is False


def test_a_file_nobody_knows_is_an_error_that_names_the_formats(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(DataError, match=r"notes\.txt: not a recorded run of any format known here; known: Agent"):
        read(path)


def test_recorded_answers_and_verdicts_win(tmp_path: Path) -> None:
    base = recording()
    first, second = base.outputs
    told = (replace(first, answer="7", correct=True), replace(second, unanswered=True))
    panel = panel_of_recording(replace(base, outputs=told))
    assert answers(panel) == [["7"], [None]]
    assert right_Q_A(panel).tolist() == [[1], [0]]
    assert [(i.decided, i.credit) for i in panel.items] == [("7", 1), (None, 0)]


def test_a_recorded_decision_wins_over_the_votes() -> None:
    panel = panel_of_recording(recording(decided={"a": "9", "b": None}, decided_correct={"a": True, "b": None}))
    assert [(item.decided, item.credit) for item in panel.items] == [("9", 1), (None, 0)]


def test_without_key_and_verdict_nobody_can_say() -> None:
    base = recording()
    panel = panel_of_recording(replace(base, pairs=tuple((question, None) for question, _ in base.pairs)))
    assert all(math.isnan(credit) for credit in credits(panel))
    assert panel.omitted == {NO_KEY: 2}


def test_usage_is_the_source_s_or_the_sum_of_the_words() -> None:
    usage = Usage(9, 100, 50, None)
    panel = panel_of_recording(recording(usage={"a": usage}))
    assert [item.usage for item in panel.items] == [usage, Usage(1, 2, 5, None)]


def test_models_with_questions_in_common_sit_side_by_side() -> None:
    (panel,) = combine([recording("m", "ab"), recording("n", "bc"), recording("m", "c")])
    assert [(m.name, m.model) for m in panel.members] == [("m", "m"), ("n", "n"), ("m (2)", "m")]
    assert [item.question_id for item in panel.items] == ["a", "b", "c"]
    assert panel.omitted == {SILENT: 4}
    assert (panel.name, panel.source) == ("t, 3 models", "logs (3 files)")


def test_other_tasks_other_questions_and_councils_stay_apart() -> None:
    council = recording("c", decided={"a": "4"})
    panels = combine([recording("m"), recording("n", task="u"), recording("o", "xy"), council, recording("p")])
    assert [[m.name for m in panel.members] for panel in panels] == [["m", "p"], ["n"], ["o"], ["c"]]


def test_empty_texts_are_words_without_an_answer_and_counted() -> None:
    base = recording()
    panel = panel_of_recording(replace(base, outputs=tuple(replace(o, text=" ") for o in base.outputs)))
    assert right_Q_A(panel).tolist() == [[0], [0]]
    assert panel.omitted == {EMPTY: 2}


def test_a_round_beyond_reason_is_an_error() -> None:
    base = recording()
    with pytest.raises(DataError, match="an output of round 999999"):
        panel_of_recording(replace(base, outputs=(replace(base.outputs[0], round=999_999),)))
