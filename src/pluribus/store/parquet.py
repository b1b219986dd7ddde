"""A run as three flat tables for any data tool: attempts, turns and decisions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from pluribus.codec import encode
from pluribus.errors import MissingDependency
from pluribus.store.export import StoredAttempt, attempts_of
from pluribus.store.files import whole
from pluribus.store.workspace import Store
from pluribus.types import Completion, Failure, Transcript, Turn

ATTEMPTS = {
    "run_id": "string", "run": "string", "position": "int64", "attempt_id": "string", "question_id": "string",
    "task": "string", "kind": "string", "question": "string", "key": "string", "method": "string",
    "settings": "string", "seed": "int64", "n_agents": "int64", "status": "string", "failure_kind": "string",
    "failure": "string", "n_turns": "int64",
}  # fmt: skip
TURNS = {
    "attempt_id": "string", "question_id": "string", "turn": "int64", "round": "int64", "seat": "int64",
    "sample": "int64", "agent": "string", "model": "string", "persona": "string", "role": "string", "final": "bool",
    "messages": "string", "text": "string", "reasoning": "string", "finish_reason": "string",
    "prompt_tokens": "int64", "completion_tokens": "int64", "cached_tokens": "int64", "reasoning_tokens": "int64",
    "latency_s": "double", "cost_usd": "double", "failure_kind": "string", "failure": "string",
}  # fmt: skip
DECISIONS = {
    "attempt_id": "string", "question_id": "string", "rule": "string", "tie": "string", "answer": "string",
    "votes": "string", "share": "double", "margin": "double", "tied": "string", "abstained": "int64",
    "answers": "string", "confidence": "double",
}  # fmt: skip
"""Column → Arrow type. What is nested (settings, messages, votes, …) is JSON text, which every tool can read."""
TABLES: Mapping[str, Mapping[str, str]] = {"attempts": ATTEMPTS, "turns": TURNS, "decisions": DECISIONS}
CHUNK = 1000
"""Attempts in one row group."""

Row = dict[str, Any]


def export_parquet(store: Store, run: str, folder: Path) -> list[Path]:
    """Writes `attempts.parquet`, `turns.parquet` and `decisions.parquet` into the folder and returns their paths.

    What is unknown is null, never 0. Raises MissingDependency without pyarrow, UnknownName for the run, StoreError
    if the files can not be written; then none of them is there.
    """
    arrow, writer = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    row = store.run(run)
    paths = {name: folder / f"{name}.parquet" for name in TABLES}
    with ExitStack() as files:
        parts = {name: files.enter_context(whole(path)) for name, path in paths.items()}
        schemas = {name: _schema(arrow, columns) for name, columns in TABLES.items()}
        tables = {
            name: files.enter_context(writer.ParquetWriter(parts[name], schema)) for name, schema in schemas.items()
        }
        attempts = attempts_of(store, row)
        while chunk := list(islice(attempts, CHUNK)):
            for name, rows in _rows(row.id, row.name, chunk).items():
                tables[name].write_table(arrow.Table.from_pylist(rows, schema=schemas[name]))
    return list(paths.values())


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependency("pyarrow", "report") from error


def _schema(arrow: Any, columns: Mapping[str, str]) -> Any:
    return arrow.schema([(name, arrow.type_for_alias(kind)) for name, kind in columns.items()])


def _rows(run_id: str, run: str, attempts: Sequence[StoredAttempt]) -> dict[str, list[Row]]:
    return {
        "attempts": [{"run_id": run_id, "run": run, **_attempt_row(one)} for one in attempts],
        "turns": [row for one in attempts if one.transcript for row in _turn_rows(one.transcript)],
        "decisions": [row for one in attempts for row in _decision_rows(one)],
    }


def _attempt_row(one: StoredAttempt) -> Row:
    question = one.question
    row = {
        "position": one.position,
        "attempt_id": one.attempt_id,
        "question_id": one.question_id,
        "task": question and question.task,
        "kind": question and question.kind,
        "question": question and _utf8(question.text),
        "key": one.key and one.key.answer,
    }
    return row if one.transcript is None else row | _transcript_row(one.transcript)


def _transcript_row(transcript: Transcript) -> Row:
    attempt = transcript.attempt
    return {
        "method": attempt.method,
        "settings": encode(attempt.settings),
        "seed": attempt.seed,
        "n_agents": len(attempt.agents),
        "status": transcript.status,
        "n_turns": len(transcript.turns),
        **_failure_row(transcript.failure),
    }


def _turn_rows(transcript: Transcript) -> Iterator[Row]:
    attempt = transcript.attempt
    for number, turn in enumerate(transcript.turns):
        yield {
            "attempt_id": attempt.id,
            "question_id": attempt.question_id,
            "turn": number,
            "final": number in transcript.finals,
            **_said_row(turn),
            **_seat_row(transcript, turn),
            **_completion_row(turn.completion),
            **_failure_row(turn.failure),
        }


def _said_row(turn: Turn) -> Row:
    return {
        "round": turn.round,
        "seat": turn.seat,
        "sample": turn.sample,
        "role": turn.role,
        "messages": encode(turn.messages),
    }


def _seat_row(transcript: Transcript, turn: Turn) -> Row:
    seat = {seat.index: seat for seat in transcript.attempt.agents}.get(turn.seat)
    return {} if seat is None else {"agent": seat.name, "model": seat.model, "persona": seat.persona}


def _completion_row(completion: Completion | None) -> Row:
    if completion is None:
        return {}
    return {
        "text": _utf8(completion.text),
        "reasoning": completion.reasoning and _utf8(completion.reasoning),
        "finish_reason": completion.finish_reason,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "cached_tokens": completion.cached_tokens,
        "reasoning_tokens": completion.reasoning_tokens,
        "latency_s": completion.latency_s,
        "cost_usd": completion.cost_usd,
    }


def _failure_row(failure: Failure | None) -> Row:
    return {} if failure is None else {"failure_kind": failure.kind, "failure": _utf8(failure.message)}


def _decision_rows(one: StoredAttempt) -> Iterator[Row]:
    for stored in one.decisions:
        decision = stored.decision
        yield {
            "attempt_id": one.attempt_id,
            "question_id": one.question_id,
            "rule": decision.rule,
            "tie": stored.tie,
            "answer": decision.answer,
            "votes": encode(list(decision.votes.items())),
            "share": decision.share,
            "margin": decision.margin,
            "tied": encode(decision.tie),
            "abstained": decision.abstained,
            "answers": encode(decision.answers),
            "confidence": decision.confidence,
        }


def _utf8(text: str) -> str:
    """The text with `?` for half a surrogate pair, which no Arrow string can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
