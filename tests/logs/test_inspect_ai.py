"""Logs of Inspect AI: files that it wrote itself (in data/), and the forms of other versions and scorers."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.logs import Recording, inspect_ai, reader_of
from pluribus.logs._panels import combine, panel_of_recording
from pluribus.panel import answers, credits, right_Q_A

DATA = Path(__file__).parent / "data" / "inspect_ai"


def one(path: Path) -> Recording:
    (found,) = inspect_ai.read(path)
    return found


def test_an_archive_it_wrote_itself() -> None:
    path = DATA / "small-sums_alpha.eval"
    assert reader_of(path) is inspect_ai
    panel = panel_of_recording(one(path))
    assert (panel.name, panel.task, panel.omitted) == ("small_sums, mockllm/alpha", "small_sums", {})
    assert [(m.model, m.draw) for m in panel.members] == [("mockllm/alpha", 0), ("mockllm/alpha", 1)]
    assert [item.question_id for item in panel.items] == ["add-0", "add-1", "add-2", "add-3"]
    assert [item.key for item in panel.items] == ["1", "3", "5", "7"]
    assert answers(panel) == [["1", "1"], ["3", "3"], ["5", "5"], ["7", "7"]]
    word = panel.items[0].words[0][0]
    assert word is not None and (word.text, word.tokens) == ("I add them up.\nANSWER: 1", 18)


def test_a_json_log_it_wrote_itself() -> None:
    found = one(DATA / "small-choice_alpha.json")
    assert reader_of(DATA / "small-choice_alpha.json") is inspect_ai
    question, key = found.pairs[0]
    assert (question.kind, question.choices, key and key.answer) == ("choice", ("chair", "plum", "hammer"), "B")
    assert [(output.answer, output.correct) for output in found.outputs] == [("B", True), ("C", False)]


def test_logs_of_two_models_are_one_council() -> None:
    (panel,) = combine([one(path) for path in sorted(DATA.glob("small-sums_*.eval"))])
    assert [member.name for member in panel.members] == [
        "mockllm/alpha #1", "mockllm/alpha #2", "mockllm/beta #1", "mockllm/beta #2",
    ]  # fmt: skip
    assert right_Q_A(panel).tolist() == [[1, 1, 1, 0], [1, 1, 0, 1], [1, 1, 1, 0], [1, 1, 0, 1]]
    assert credits(panel).tolist() == [1, 1, 1, 1]


# --- other forms -----------------------------------------------------------------------------------------------------


def sample(id: Any, text: Any, value: Any = None, target: Any = "4", **more: Any) -> dict[str, Any]:
    scores = {} if value is None else {"scores": {"match": {"value": value, "answer": None}}}
    output = {"model": "m", "choices": [{"message": {"role": "assistant", "content": text}, "stop_reason": "stop"}]}
    return {"id": id, "epoch": 1, "input": "2 + 2?", "target": target, "output": output, **scores, **more}


def log(samples: Sequence[Any], **more: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": list(samples), **more}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(samples: Sequence[Any], **more: Any) -> Path:
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log(samples, **more)), "utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("value", "correct", "partial"),
    [("C", True, 0), ("I", False, 0), ("N", False, 0), (1, True, 0), (0.0, False, 0), (True, True, 0),
     (False, False, 0), ("P", None, 1), (0.5, None, 1), ({"a": 1}, None, 1), ("other", None, 1)],
)  # fmt: skip
def test_values_of_scores(written: Callable[..., Path], value: Any, correct: bool | None, partial: int) -> None:
    found = one(written([sample(1, "The answer is 4.", value)]))
    assert found.outputs[0].correct is correct
    assert found.omitted.get(inspect_ai.PARTIAL, 0) == partial


def test_a_score_without_an_answer_leaves_the_text_to_be_read(written: Callable[..., Path]) -> None:
    panel = panel_of_recording(one(written([sample(1, "The answer is 4.", "C"), sample(2, "Hm.", "N")])))
    assert answers(panel) == [["4"], [None]]


def test_the_first_scorer_that_decides_is_taken(written: Callable[..., Path]) -> None:
    scores = {"length": {"value": 0.3}, "match": {"value": "I", "answer": "5"}, "model": {"value": "C"}}
    found = one(written([sample(1, "5") | {"scores": scores}]))
    assert (found.outputs[0].answer, found.outputs[0].correct) == ("5", False)


def test_parts_reasoning_and_attachments(written: Callable[..., Path]) -> None:
    parts = [{"type": "reasoning", "reasoning": "5?"}, {"type": "text", "text": "attachment://abc"}]
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "attachment://q"}]
    found = one(written([sample(1, parts, input=asked, attachments={"abc": "ANSWER: 4", "q": "2 + 2, now?"})]))
    assert found.outputs[0].text == "ANSWER: 4"
    assert found.pairs[0][0].text == "2 + 2, now?"


def test_older_logs_keep_the_completion_alone(written: Callable[..., Path]) -> None:
    usage = {"input_tokens": 10, "input_tokens_cache_read": 5, "output_tokens": 3}
    found = one(written([sample(1, "") | {"output": {"completion": "It is 4.", "usage": usage}}]))
    (output,) = found.outputs
    assert (output.text, output.prompt_tokens, output.completion_tokens) == ("It is 4.", 15, 3)


def test_several_targets_are_one_key_with_its_like(written: Callable[..., Path]) -> None:
    _, key = one(written([sample(1, "Rome", target=["Rome", "Roma"])])).pairs[0]
    assert key is not None and (key.answer, key.aliases) == ("rome", ("roma",))


def test_what_is_left_out_is_counted(written: Callable[..., Path]) -> None:
    samples = [
        sample(1, "4", "C"),
        sample(1, "5", "I"),
        sample(2, "4", error={"message": "boom"}),
        {"id": 3, "epoch": 1},
    ]
    found = one(written(samples, status="cancelled"))
    assert found.omitted == {
        inspect_ai.DUPLICATES: 1, inspect_ai.ERRORS: 1, inspect_ai.NO_OUTPUT: 1, inspect_ai.UNFINISHED: 1,
    }  # fmt: skip
    assert len(found.outputs) == 1


def packed(path: Path, members: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(name, value if isinstance(value, str) else json.dumps(value))
    return path


def test_archives_of_older_versions_and_of_runs_that_were_stopped(tmp_path: Path) -> None:
    header = {key: value for key, value in log([]).items() if key != "samples"}
    samples = {
        "samples/1_epoch_1.json": sample(1, "4", "C"),
        "samples/1_epoch_2.json": sample(1, "5", "I") | {"epoch": 2},
    }
    started = {"version": 2, "eval": header["eval"]}
    whole = one(packed(tmp_path / "a.eval", {"header.json": header, **samples}))
    stopped = one(packed(tmp_path / "b.eval", {"_journal/start.json": started, **samples}))
    assert [(o.sample, o.correct) for o in whole.outputs] == [(0, True), (1, False)]
    assert whole.outputs == stopped.outputs
    assert (whole.omitted, stopped.omitted) == ({}, {inspect_ai.UNFINISHED: 1})


def test_broken_archives_are_errors_with_their_place(tmp_path: Path) -> None:
    good = (DATA / "small-sums_alpha.eval").read_bytes()
    cut = tmp_path / "cut.eval"
    cut.write_bytes(good[: len(good) // 2])
    damaged = tmp_path / "damaged.eval"
    at = good.index(b"samples/add-0_epoch_1.json") + 200
    damaged.write_bytes(good[:at] + bytes(64) + good[at + 64 :])
    empty = packed(tmp_path / "empty.eval", {"readme.txt": "hello"})
    nonsense = packed(tmp_path / "nonsense.eval", {"header.json": log([]), "samples/1_epoch_1.json": "{cut"})
    for path, message in ((cut, "can not be read"), (damaged, "damaged.eval"), (empty, "without a log"),
                          (nonsense, "samples/1_epoch_1.json: not JSON")):  # fmt: skip
        assert reader_of(path) is inspect_ai
        with pytest.raises(DataError, match=message):
            inspect_ai.read(path)


@pytest.mark.parametrize(("text", "message"), [
    ('{"version": 2, "status": "success", "eval": {"task": ', "not JSON"),
    ('{"version": 2, "status": "success", "eval": 3}', "no header"),
    (json.dumps(log([])), "no sample with an output"),
])  # fmt: skip
def test_broken_json_logs_are_errors(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text, "utf-8")
    assert reader_of(path) is inspect_ai
    with pytest.raises(DataError, match=message):
        inspect_ai.read(path)
