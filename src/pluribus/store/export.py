"""A run out of one workspace and into another, as JSONL that loses nothing.

The file begins with one line about the run; every other line is one attempt with all that belongs to it.
Each line carries the hash of the rest of it, so a line that was changed on the way is found.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pluribus.codec import build, content_id, plain
from pluribus.errors import DataError
from pluribus.store.files import write_line, writing
from pluribus.store.workspace import RunRow, Store
from pluribus.types import Decision, Key, Question, Transcript

T = TypeVar("T")
FORMAT = "pluribus-run"
VERSION = 1
CHUNK = 200
"""Attempts in memory at once."""


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """One place of a run with all the workspace holds about it."""

    position: int
    attempt_id: str
    question_id: str
    question: Question | None
    key: Key | None = None
    transcript: Transcript | None = None
    """None: not asked yet."""
    decisions: tuple[StoredDecision, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredDecision:
    tie: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class Imported:
    run: RunRow
    attempts: int
    kept: int
    """Attempts the workspace had finished before; they stay as they were."""


def attempts_of(store: Store, run: RunRow) -> Iterator[StoredAttempt]:
    """Every attempt of the run by position, asked or not."""
    questions = store.run_questions(run.id)
    places = enumerate(store.run_attempts(run.id))
    while chunk := list(islice(places, CHUNK)):
        transcripts = {t.attempt.id: t for t in store.transcripts(attempt_id for _, (attempt_id, _) in chunk)}
        for position, (attempt_id, question_id) in chunk:
            question, key = questions.get(question_id, (None, None))
            decisions = tuple(StoredDecision(*pair) for pair in store.all_decisions(attempt_id))
            transcript = transcripts.get(attempt_id)
            yield StoredAttempt(position, attempt_id, question_id, question, key, transcript, decisions)


def export_jsonl(store: Store, run: str, path: Path) -> int:
    """Writes the run to `path` (compressed if it ends in `.gz`) and returns how many attempts it has.

    Raises UnknownName for the run and StoreError if the file can not be written; then nothing is left of it.
    """
    row = store.run(run)
    places = store.run_attempts(row.id)
    with writing(path) as file:
        write_line(file, _signed({"format": FORMAT, "version": VERSION, "attempts": len(places), "run": plain(row)}))
        for attempt in attempts_of(store, row):
            write_line(file, _signed(plain(attempt)))
    return len(places)


def _signed(line: Mapping[str, Any]) -> dict[str, Any]:
    return {**line, "digest": content_id(line)}


def import_jsonl(store: Store, path: Path) -> Imported:
    """Reads what `export_jsonl` wrote into this workspace. The run is listed last: a bad file leaves no run.

    Raises DataError with file and line for a line that is malformed or was changed.
    """
    lines = _lines(path)
    number, head = next(lines, (1, {}))
    run = _head(f"{path}:{number}", head)
    places: list[tuple[str, str, int]] = []
    kept = 0
    attempts = (_attempt(f"{path}:{number}", at, line) for at, (number, line) in enumerate(lines))
    while chunk := list(islice(attempts, CHUNK)):
        places += [(one.attempt_id, one.question_id, one.position) for one in chunk]
        kept += _keep(store, chunk)
    if len(places) != head.get("attempts"):
        raise DataError(
            f"{path}", f"the file has {len(places)} of {head.get('attempts')} attempts", hint="export it again"
        )
    store.put_run(run, places)
    return Imported(run, len(places), kept)


def _keep(store: Store, attempts: Sequence[StoredAttempt]) -> int:
    """Puts the attempts that are not finished here; how many were."""
    here = store.statuses(one.attempt_id for one in attempts)
    store.put_questions((one.question, one.key) for one in attempts if one.question is not None)
    new = [one for one in attempts if here.get(one.attempt_id, "failed") == "failed"]
    for one in new:
        if one.transcript is not None:
            store.put_transcript(one.transcript)
        for stored in one.decisions:
            store.put_decision(stored.decision, stored.tie)
    return len(attempts) - len(new)


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every line, its digest verified and taken off."""
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if raw.strip():
                    yield number, _verified(f"{path}:{number}", raw)
    except FileNotFoundError as error:
        raise DataError(str(path), "no such file") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}:{number + 1}", f"the file can not be read: {error}") from error


def _verified(place: str, raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except ValueError as error:
        raise DataError(place, f"not JSON: {error}") from error
    if not isinstance(line, dict) or "digest" not in line:
        raise DataError(place, "not a line of an exported run", hint="write one with: pluribus export RUN")
    if line.pop("digest") != content_id(line):
        raise DataError(place, "the line was changed: its content does not match its digest", hint="export it again")
    return line


def _head(place: str, line: Mapping[str, Any]) -> RunRow:
    if line.get("format") != FORMAT:
        raise DataError(place, "the first line does not describe a run", hint="write one with: pluribus export RUN")
    if line.get("version") != VERSION:
        raise DataError(place, f"format version {line.get('version')}, this pluribus reads {VERSION}")
    return _built(place, RunRow, line.get("run"))


def _attempt(place: str, position: int, line: Mapping[str, Any]) -> StoredAttempt:
    one = _built(place, StoredAttempt, line)
    if one.position != position:
        raise DataError(
            place, f"attempt {one.position} of the run where {position} was expected", hint="export it again"
        )
    claimed = {
        "question": (one.question_id, one.question and one.question.id),
        "key": (one.question_id, one.key and one.key.question_id),
        "transcript": (one.attempt_id, one.transcript and one.transcript.attempt.id),
        "transcript's question": (one.question_id, one.transcript and one.transcript.attempt.question_id),
        **{f"decision {n}": (one.attempt_id, d.decision.attempt_id) for n, d in enumerate(one.decisions)},
    }
    for what, (expected, found) in claimed.items():
        if found is not None and found != expected:
            raise DataError(place, f"the {what} belongs to {found!r}, the line to {expected!r}")
    return one


def _built(place: str, cls: type[T], value: Any) -> T:
    try:
        return build(cls, value)
    except (TypeError, ValueError) as error:
        raise DataError(place, str(error)) from error
