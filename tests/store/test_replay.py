"""A run's outputs become a recorded file with one name for each seat that asked something of its own."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pluribus.backends import Request, connect, parse
from pluribus.errors import NotRecorded, UsageError
from pluribus.store import Store
from pluribus.store.replay import export_replay
from pluribus.types import Completion, Message, Sampling, Transcript, Turn

MakeTranscript = Callable[..., Transcript]


def lines(path: Path) -> list[dict[str, object]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def one(store: Store, transcript: Transcript) -> None:
    store.put_transcript(transcript)
    store.begin_run("r", "r", {}, [(transcript.attempt.id, transcript.attempt.question_id, 0)])


def test_every_output_of_a_run(full_run: Store, tmp_path: Path) -> None:
    path = tmp_path / "outputs.jsonl.gz"
    assert export_replay(full_run, "first", path) == ["openai/m"] * 3
    outputs = lines(path)
    assert outputs[0] == {
        "question_id": "question-a",
        "model": "openai/m",
        "sample": 0,
        "round": 0,
        "text": "The answer is 7. ",
        "finish_reason": "stop",
        "scores": {"judge": 0.5},
        "usage": {"prompt_tokens": 9, "completion_tokens": 17},
    }
    places = [(line["question_id"], line["sample"], line["round"]) for line in outputs]
    asked = [(f"question-{q}", sample, at) for q in "abc" for at in (0, 1) for sample in (0, 1, 2)]
    assert places == [place for place in asked if place[1:] != (1, 0)], "a failed turn is missing again in the replay"


async def test_the_replay_backend_gives_back_what_was_said(
    store: Store, transcript: MakeTranscript, tmp_path: Path
) -> None:
    said = transcript("a")
    thought = Completion(
        "It is 7.", "m", "length", "Let me see", 5, 6, cached_tokens=0, reasoning_tokens=4, scores={"judge": 1.0}
    )
    turns = (replace(said.turns[0], completion=thought), *said.turns[1:])
    one(store, replace(said, turns=turns))
    path = tmp_path / "o.jsonl"
    names = export_replay(store, "r", path)
    backend = connect(parse(f"replay/{path}#{names[0]}"))
    for turn in turns:
        request = Request(turn.messages, Sampling(), turn.sample, "question-a", turn.round)
        if turn.completion is None:
            with pytest.raises(NotRecorded):
                await backend.complete(request)
        else:
            again = await backend.complete(request)
            assert again == replace(turn.completion, model=backend.model, cost_usd=0.0)


def test_what_is_unknown_is_left_out(store: Store, transcript: MakeTranscript, tmp_path: Path) -> None:
    said = transcript("a")
    turn = Turn(0, 0, "answer", (Message("user", "x"),), Completion("bare", "m", completion_tokens=0))
    one(store, replace(said, turns=(turn,), finals=(0,)))
    export_replay(store, "r", tmp_path / "o.jsonl")
    assert lines(tmp_path / "o.jsonl") == [
        {
            "question_id": "question-a", "model": "openai/m", "sample": 0, "round": 0, "text": "bare",
            "usage": {"completion_tokens": 0},
        }
    ]  # fmt: skip


def test_seats_that_ask_differently_get_names_of_their_own(
    store: Store, transcript: MakeTranscript, tmp_path: Path
) -> None:
    said = transcript("a", rounds=1)
    first, second, third = said.attempt.agents
    seats = (
        replace(first, model="vllm/Q/x@http://127.0.0.1:1/v1"),
        replace(second, model="vllm/Q/x@http://127.0.0.1:2/v1", sample=0, persona="sceptic", system="Doubt."),
        replace(third, model="replay/old/file.jsonl#y", sampling=Sampling(temperature=0.0), sample=0),
    )
    turns = tuple(replace(turn, sample=0) for turn in said.turns)
    one(store, replace(said, attempt=replace(said.attempt, agents=seats), turns=turns))
    assert export_replay(store, "r", tmp_path / "o.jsonl") == ["vllm/Q/x", "vllm/Q/x~2", "y"]
    assert [line["model"] for line in lines(tmp_path / "o.jsonl")] == ["vllm/Q/x", "y"]


def test_two_outputs_of_a_seat_in_one_round_are_refused(
    store: Store, transcript: MakeTranscript, tmp_path: Path
) -> None:
    said = transcript("a", rounds=1)
    one(store, replace(said, turns=(*said.turns, replace(said.turns[2], role="critique"))))
    with pytest.raises(UsageError, match="'question-a' has two outputs of openai/m, sample 2, round 0; recorded"):
        export_replay(store, "r", tmp_path / "o.jsonl")
    assert not (tmp_path / "o.jsonl").exists()
