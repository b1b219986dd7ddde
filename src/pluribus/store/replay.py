"""A run's outputs as a recorded file, so that it can be run again without its models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pluribus.codec import content_id
from pluribus.errors import UsageError
from pluribus.store.files import write_line, writing
from pluribus.store.workspace import Store
from pluribus.types import Completion, Seat, Transcript, Turn


def export_replay(store: Store, run: str, path: Path) -> list[str]:
    """Writes the run's outputs as a replay file, so that the run can be repeated without its models.

    Returns the model name of each seat in that file: `replay/PATH#NAME` seats it again. Seats of one model that
    were asked different things (another persona, another sampling) get names of their own: `m`, `m~2`, …
    Raises UsageError if a seat said several things in one round, which recorded outputs can not tell apart.
    """
    asked: dict[str, list[str]] = {}
    seats: list[str] = []
    seen: set[tuple[str, str, int, int]] = set()
    with writing(path) as file:
        for transcript in store.transcripts(attempt_id for attempt_id, _ in store.run_attempts(store.run(run).id)):
            models = {seat.index: _replay_name(seat, asked) for seat in transcript.attempt.agents}
            seats = seats or list(models.values())
            for turn in transcript.turns:
                if turn.completion is not None:
                    _once(seen, (transcript.attempt.question_id, models[turn.seat], turn.sample, turn.round))
                    write_line(file, _output(transcript, turn, models[turn.seat]))
    return seats


def _replay_name(seat: Seat, asked: dict[str, list[str]]) -> str:
    """The seat's model, told apart from seats of the same model that would ask something else."""
    model = seat.model.rpartition("@http")[0] or seat.model
    model = model.rpartition("#")[2] if model.startswith("replay/") else model
    asks = content_id(replace(seat, index=0, name="", model=model, weight=1.0, sample=0))
    known = asked.setdefault(model, [])
    if asks not in known:
        known.append(asks)
    return f"{model}~{known.index(asks) + 1}" if asks != known[0] else model


def _once(seen: set[tuple[str, str, int, int]], output: tuple[str, str, int, int]) -> None:
    if output in seen:
        question, model, sample, at = output
        raise UsageError(
            f"question {question!r} has two outputs of {model}, sample {sample}, round {at}",
            hint="recorded outputs hold one per seat and round; export this run as JSONL",
        )
    seen.add(output)


def _output(transcript: Transcript, turn: Turn, model: str) -> dict[str, Any]:
    completion = turn.completion
    assert completion is not None  # the caller leaves failed turns out: they are missing again in the replay
    line: dict[str, Any] = {
        "question_id": transcript.attempt.question_id,
        "model": model,
        "sample": turn.sample,
        "round": turn.round,
        "text": _text(completion),
        "finish_reason": completion.finish_reason,
        "scores": completion.scores,
        "usage": _usage(completion),
    }
    return {name: value for name, value in line.items() if value is not None}


def _text(completion: Completion) -> str:
    """What was said; what was thought stands before it as the models themselves write it."""
    return f"<think>{completion.reasoning}</think>{completion.text}" if completion.reasoning else completion.text


def _usage(completion: Completion) -> dict[str, int] | None:
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    usage = {name: getattr(completion, name) for name in names}
    return {name: count for name, count in usage.items() if count is not None} or None
