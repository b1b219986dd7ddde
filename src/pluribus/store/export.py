"""A run out of one workspace and into another, as JSONL that loses nothing.

The file begins with one line about the run; every other line is one attempt with all that belongs to it: transcript,
decisions, and whatever later steps kept about it (labels, judgements, rewards, verdicts, …). Each line carries the
hash of the rest of it, so a line that was changed on the way is found.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pluribus.codec import build, content_id, plain
from pluribus.errors import DataError
from pluribus.store.blobs import unpack
from pluribus.store.files import write_line, writing
from pluribus.store.reader import Reader
from pluribus.store.workspace import RunRow, Store
from pluribus.types import Decision, Key, Question, Transcript

T = TypeVar("T")
FORMAT = "pluribus-run"
VERSION = 2
_READS = (1, 2)
"""Version 1 knew no records."""
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
    records: tuple[StoredRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredDecision:
    tie: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """What a later step kept: its kind is its place in the store, its content is plain."""

    kind: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Imported:
    run: RunRow
    attempts: int
    kept: int
    """Attempts the workspace had finished before; they stay as they were."""
    differing: int = 0
    """Of these, the ones with other turns than the file has: labels and the like of the file are not theirs, and stay
    out."""


def attempts_of(store: Store, run: RunRow) -> Iterator[StoredAttempt]:
    """Every attempt of the run by position, asked or not."""
    questions = store.run_questions(run.id)
    places = enumerate(store.run_attempts(run.id))
    while chunk := list(islice(places, CHUNK)):
        transcripts = {t.attempt.id: t for t in store.transcripts(attempt_id for _, (attempt_id, _) in chunk)}
        records = _records(store, [attempt_id for _, (attempt_id, _) in chunk])
        for position, (attempt_id, question_id) in chunk:
            question, key = questions.get(question_id, (None, None))
            decisions = tuple(StoredDecision(*pair) for pair in store.all_decisions(attempt_id))
            transcript, kept = transcripts.get(attempt_id), tuple(records.get(attempt_id, ()))
            yield StoredAttempt(position, attempt_id, question_id, question, key, transcript, decisions, kept)


_RECORDS = (
    "SELECT r.attempt_id, r.kind, r.record FROM json_each(?) AS wanted "
    "CROSS JOIN records AS r ON r.attempt_id = wanted.value ORDER BY wanted.key, r.rowid"
)


def _records(store: Store, ids: Iterable[str]) -> dict[str, list[StoredRecord]]:
    """Id → everything kept under it, of whatever kind, in the order it was first put."""
    found: dict[str, list[StoredRecord]] = {}
    store.flush()
    with closing(Reader(store.path)) as reader:
        for id, kind, blob in reader.rows_of(_RECORDS, ids):
            found.setdefault(id, []).append(StoredRecord(kind, unpack(dict, blob, f"{kind} of {id}")))
    return found


def _put(store: Store, id: str, records: Iterable[StoredRecord]) -> None:
    for record in records:
        store.put_records(record.kind, [(id, record.content)])


def export_jsonl(store: Store, run: str, path: Path) -> int:
    """Writes the run to `path` (compressed if it ends in `.gz`) and returns how many attempts it has.

    Raises UnknownName for the run and StoreError if the file can not be written; then nothing is left of it.
    """
    row = store.run(run)
    places = store.run_attempts(row.id)
    with writing(path) as file:
        write_line(file, _signed(_first(store, row, len(places))))
        for attempt in attempts_of(store, row):
            write_line(file, _signed(plain(attempt)))
    return len(places)


def _first(store: Store, row: RunRow, attempts: int) -> dict[str, Any]:
    """The line about the run, with what is kept under its own id."""
    line = {"format": FORMAT, "version": VERSION, "attempts": attempts, "run": plain(row)}
    own = plain(_records(store, [row.id]).get(row.id, []))
    return line | ({"records": own} if own else {})


def _signed(line: Mapping[str, Any]) -> dict[str, Any]:
    return {**line, "digest": content_id(line)}


def import_jsonl(store: Store, path: Path) -> Imported:
    """Reads what `export_jsonl` wrote into this workspace. The run is listed last: a bad file leaves no run.

    Raises DataError with file and line for a line that is malformed or was changed.
    """
    lines = _lines(path)
    number, head = next(lines, (1, {}))
    run, own = _head(f"{path}:{number}", head)
    places: list[tuple[str, str, int]] = []
    kept = differing = 0
    attempts = (_attempt(f"{path}:{number}", at, line) for at, (number, line) in enumerate(lines))
    while chunk := list(islice(attempts, CHUNK)):
        places += [(one.attempt_id, one.question_id, one.position) for one in chunk]
        here, others = _keep(store, chunk)
        kept, differing = kept + here, differing + others
    if len(places) != head.get("attempts"):
        raise DataError(
            f"{path}", f"the file has {len(places)} of {head.get('attempts')} attempts", hint="export it again"
        )
    store.put_run(run, places)
    if not differing:
        _put(store, run.id, own)
    return Imported(run, len(places), kept, differing)


def _keep(store: Store, attempts: Sequence[StoredAttempt]) -> tuple[int, int]:
    """Puts the attempts that are not finished here, and what belongs to them; how many were, and how many of these
    with other turns."""
    here = store.statuses(one.attempt_id for one in attempts)
    store.put_questions((one.question, one.key) for one in attempts if one.question is not None)
    old = [one for one in attempts if here.get(one.attempt_id, "failed") != "failed"]
    for one in attempts:
        if here.get(one.attempt_id, "failed") == "failed":
            _keep_whole(store, one)
    mine = {transcript.attempt.id: transcript for transcript in store.transcripts(one.attempt_id for one in old)}
    same = [one for one in old if mine[one.attempt_id] == one.transcript]
    for one in same:
        _put(store, one.attempt_id, one.records)
    return len(old), len(old) - len(same)


def _keep_whole(store: Store, one: StoredAttempt) -> None:
    if one.transcript is not None:
        store.put_transcript(one.transcript)
    for stored in one.decisions:
        store.put_decision(stored.decision, stored.tie)
    _put(store, one.attempt_id, one.records)


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


def _head(place: str, line: Mapping[str, Any]) -> tuple[RunRow, tuple[StoredRecord, ...]]:
    """The run, and what is kept under its own id."""
    if line.get("format") != FORMAT:
        raise DataError(place, "the first line does not describe a run", hint="write one with: pluribus export RUN")
    if line.get("version") not in _READS:
        raise DataError(place, f"format version {line.get('version')}, this pluribus reads {_READS[0]} to {_READS[-1]}")
    own = _built(place, tuple[StoredRecord, ...], line.get("records", []))
    _check_records(place, own)
    return _built(place, RunRow, line.get("run")), own


def _check_records(place: str, records: Iterable[StoredRecord]) -> None:
    for record in records:
        if not isinstance(record.kind, str) or not isinstance(record.content, dict):
            raise DataError(place, f"a record of kind {record.kind!r} is no object", hint="export it again")


def _attempt(place: str, position: int, line: Mapping[str, Any]) -> StoredAttempt:
    one = _built(place, StoredAttempt, line)
    if one.position != position:
        raise DataError(
            place, f"attempt {one.position} of the run where {position} was expected", hint="export it again"
        )
    _check_records(place, one.records)
    claimed = {
        "question": (one.question_id, one.question and one.question.id),
        "key": (one.question_id, one.key and one.key.question_id),
        "transcript": (one.attempt_id, one.transcript and one.transcript.attempt.id),
        "transcript's question": (one.question_id, one.transcript and one.transcript.attempt.question_id),
        **{f"decision {n}": (one.attempt_id, d.decision.attempt_id) for n, d in enumerate(one.decisions)},
        **{f"{r.kind} {n}": (one.attempt_id, r.content.get("attempt_id")) for n, r in enumerate(one.records)},
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
