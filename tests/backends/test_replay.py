from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pluribus.backends import Request, connect, parse
from pluribus.backends.replay import Replay, models
from pluribus.errors import ConfigError, DataError, NotRecorded, Refused, UnknownName, UsageError
from pluribus.types import Message, Sampling

ROW: dict[str, Any] = {"question_id": "q1", "model": "m", "sample": 0, "text": "The answer is 4"}


def write(folder: Path, *rows: dict[str, Any] | str, name: str = "out.jsonl") -> Path:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows) + "\n"
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def opened(path: Path, model: str = "m") -> Replay:
    backend = connect(parse(f"replay/{path}#{model}"))
    assert isinstance(backend, Replay)
    return backend


def request(question_id: str | None = "q1", sample: int = 0, round: int = 0) -> Request:
    return Request((Message("user", "anything"),), Sampling(), sample, question_id, round)


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
async def test_answers_by_question_sample_and_round(tmp_path: Path, name: str) -> None:
    second = ROW | {"sample": 1, "text": "5"}
    later = {"question_id": "q1", "model": "m", "round": 1, "text": "6"}
    backend = opened(write(tmp_path, ROW, "", second, later, ROW | {"model": "other", "text": "7"}, name=name))
    texts = [(await backend.complete(request(sample=s, round=r))).text for s, r in ((0, 0), (1, 0), (0, 1))]
    assert texts == ["The answer is 4", "5", "6"]
    assert models(backend.path) == ["m", "other"]


async def test_completions_carry_what_was_recorded_and_nothing_made_up(tmp_path: Path) -> None:
    rich = ROW | {
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "cost": 0.1}, "finish_reason": "length",
        "scores": {"reward": 1}, "recorded_correct": True, "text": "<think>2 + 2</think>It is 4",
    }  # fmt: skip
    path = write(tmp_path, rich, ROW | {"question_id": "q2"})
    full = await opened(path).complete(request())
    assert (full.text, full.reasoning) == ("It is 4", "2 + 2")
    assert (full.prompt_tokens, full.completion_tokens, full.cached_tokens) == (7, 3, None)
    assert (full.finish_reason, full.scores, full.cost_usd, full.latency_s) == ("length", {"reward": 1.0}, 0.0, None)
    assert full.model == f"replay/{path}#m"
    bare = await opened(path).complete(request("q2"))
    assert (bare.prompt_tokens, bare.finish_reason, bare.scores, bare.reasoning) == (None, None, None, None)


async def test_one_missing_output_is_a_failed_call_that_names_it(tmp_path: Path) -> None:
    backend = opened(write(tmp_path, ROW, ROW | {"question_id": "q2", "sample": 1}))
    with pytest.raises(NotRecorded, match="question 'q2', sample 0, round 0"):
        await backend.complete(request("q2"))
    with pytest.raises(NotRecorded):
        await backend.complete(request(None))


def test_samples_and_rounds_recorded_nowhere_are_errors_before_the_run(tmp_path: Path) -> None:
    backend = opened(write(tmp_path, ROW, ROW | {"question_id": "q2", "sample": 1}))
    backend.ensure(1, 0)
    with pytest.raises(UsageError, match=r"records 2 samples of round 0 of 'm'.*sample 2.*fewer seats"):
        backend.ensure(2, 0)
    with pytest.raises(UsageError, match=r"rounds \[0\] of 'm'.*round 1.*fewer rounds"):
        backend.ensure(0, 1)


def test_a_missing_file_or_model_says_what_there_is(tmp_path: Path) -> None:
    path = write(tmp_path, ROW, ROW | {"model": "n"})
    with pytest.raises(UnknownName, match=r"'x'.*there are: m, n"):
        opened(path, "x")
    with pytest.raises(ConfigError, match=r"records 2 models.*with m, n"):
        connect(parse(f"replay/{path}"))
    with pytest.raises(UsageError, match=r"no recorded outputs at .*nope\.jsonl"):
        opened(tmp_path / "nope.jsonl")
    with pytest.raises(UsageError, match="holds no outputs"):
        opened(write(tmp_path, "", name="empty.jsonl"))


def test_a_file_of_one_model_needs_no_name(tmp_path: Path) -> None:
    assert connect(parse(f"replay/{write(tmp_path, ROW)}")).model.endswith("out.jsonl")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object but list"),
        (ROW | {"text": None}, "'text' is None"),
        (ROW | {"question_id": 7}, "'question_id' is 7"),
        (ROW | {"model": ""}, "'model' is ''"),
        (ROW | {"sample": -1}, "'sample' is -1"),
        (ROW | {"round": True}, "'round' is True"),
        (ROW | {"usage": 5}, "'usage' is 5"),
        (ROW | {"usage": {"prompt_tokens": "7"}}, "'prompt_tokens' is '7'"),
        (ROW | {"scores": [1]}, r"'scores' is \[1\]"),
        (ROW | {"question_id": "q0"}, "a second output of 'm' for question 'q0', sample 0, round 0"),
    ],
)
def test_a_malformed_line_names_file_and_line(tmp_path: Path, line: dict[str, Any] | str, words: str) -> None:
    with pytest.raises(DataError, match=rf"out\.jsonl:3: .*{words}"):
        opened(write(tmp_path, ROW | {"question_id": "q0"}, "", line))


def test_a_damaged_gzip_file_is_a_data_error(tmp_path: Path) -> None:
    path = write(tmp_path, ROW, name="out.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"out\.jsonl\.gz.*can not be read"):
        opened(path)


async def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    odd = "one\u2028two\u0085three"
    backend = opened(write(tmp_path, ROW | {"text": odd}))
    assert (await backend.complete(request())).text == odd


async def test_seats_share_one_reading_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, ROW, ROW | {"model": "n"})
    assert opened(path).outputs is opened(path).outputs
    write(tmp_path, ROW | {"text": "changed after all"})
    assert (await opened(path).complete(request())).text == "changed after all"


def test_an_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="temperature"):
        parse({"model": f"replay/{write(tmp_path, ROW)}#m", "temperature": 1})


async def test_a_given_reply_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="records texts"):
        await opened(write(tmp_path, ROW)).complete(replace(request(), continuation="4"))


def test_real_recordings_load(shared_data: Path) -> None:
    path = shared_data / "recorded" / "math100_8samples" / "outputs.jsonl.gz"
    assert models(path) == ["qwen2.5-math"]
    backend = opened(path, "qwen2.5-math")
    backend.ensure(7, 0)
    with pytest.raises(UsageError):
        backend.ensure(8, 0)


async def test_a_recorded_text_does_not_go_on_from_another_beginning(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not how one that was begun would go on"):
        await opened(write(tmp_path, ROW)).complete(replace(request(), prefill="The"))
