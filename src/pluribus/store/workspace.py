"""The workspace: every record of every run in one file, `store.db` in the folder `.pluribus`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pluribus.codec import content_id
from pluribus.errors import UnknownName
from pluribus.store.blobs import pack, unpack
from pluribus.store.calls import CallCache
from pluribus.store.names import few
from pluribus.store.reader import Reader, create
from pluribus.store.sweeps import Sweeps
from pluribus.store.vectors import VectorCache
from pluribus.store.writer import Job, Statement, Writer
from pluribus.types import Decision, Key, Question, Status, Transcript

T = TypeVar("T")
FILE_NAME = "store.db"
DEFAULT_HOME = ".pluribus"
AttemptRow = tuple[str, str, int]
"""Attempt id, question id, position in the run."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the workspace lists it."""

    id: str
    name: str
    created: float
    """Unix time, s."""
    status: str
    """`running` until it is finished; one that was killed stays so."""
    finished: float | None = None
    """Unix time, s."""
    config: Mapping[str, Any] = field(default_factory=dict)
    totals: Mapping[str, Any] = field(default_factory=dict)


class Store:
    """A workspace, open. Puts return at once and are written in batches; every read sees every earlier put."""

    def __init__(self, path: Path) -> None:
        self.path = path
        db = create(path)
        self._reader = Reader(path)
        self._writer = Writer(db)
        self.calls = CallCache(self._reader, self._writer)
        self.vectors = VectorCache(self._reader, self._writer)
        self.sweeps = Sweeps(self._reader, self._writer)

    @classmethod
    def open(cls, home: Path | str | None = None) -> Store:
        """Opens the workspace folder, making it if need be.

        Args:
            home: the folder; None takes `PLURIBUS_HOME`, else `.pluribus` here.

        Raises StoreError if the folder can not be written, or its file is damaged, newer, or not ours.
        """
        return cls(cls.file(home))

    @staticmethod
    def file(home: Path | str | None = None) -> Path:
        """The file that `open` opens, whether it is there or not."""
        folder = Path(home if home is not None else os.environ.get("PLURIBUS_HOME") or DEFAULT_HOME)
        return folder.expanduser() / FILE_NAME

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Writes what is pending and closes the file; StoreError if some of it could not be written."""
        try:
            self._writer.close()
        finally:
            self._reader.close()

    def flush(self) -> None:
        """Waits until all earlier puts are on disk; StoreError if one could not be written."""
        self._writer.flush()

    def _put(self, statements: Callable[[], Sequence[Statement]]) -> None:
        self._writer.put(Job(statements))

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        self.flush()
        return self._reader.rows(sql, values)

    def _rows_of(self, sql: str, ids: Iterable[str], *values: Any) -> Iterator[tuple[Any, ...]]:
        self.flush()
        return self._reader.rows_of(sql, ids, *values)

    # calls

    def count_calls(self) -> int:
        """How many distinct calls are stored."""
        count: int = self._rows("SELECT count(*) FROM calls")[0][0]
        return count

    # transcripts

    def put_transcript(self, transcript: Transcript) -> None:
        """Keeps the transcript under its attempt's id. A failed one never replaces one that has answers."""
        now = time.time()
        self._put(lambda: [_transcript_row(transcript, now)])

    def get_transcript(self, attempt_id: str) -> Transcript | None:
        return next(self.transcripts([attempt_id]), None)

    def transcripts(self, attempt_ids: Iterable[str]) -> Iterator[Transcript]:
        """Those that are stored, in the order of the ids, a few hundred in memory at a time."""
        for attempt_id, blob in self._rows_of(_TRANSCRIPTS, attempt_ids):
            yield unpack(Transcript, blob, f"transcript {attempt_id}")

    def statuses(self, attempt_ids: Iterable[str]) -> dict[str, Status]:
        """Attempt id → status, of those that are stored."""
        return dict(self._rows_of(_STATUSES, attempt_ids))

    # questions

    def put_questions(self, pairs: Iterable[tuple[Question, Key | None]]) -> None:
        """Keeps questions with their keys. The same id with other content is another version, not a replacement."""
        kept = list(pairs)
        self._put(lambda: [_question_row(question, key) for question, key in kept])

    def questions(self, ids: Iterable[str]) -> dict[str, tuple[Question, Key | None]]:
        """Question id → the version put last, and its key."""
        return _questions(self._rows_of(_LATEST_QUESTIONS, ids))

    def run_questions(self, run_id: str) -> dict[str, tuple[Question, Key | None]]:
        """Question id → the version this run asked, and its key."""
        return _questions(self._rows(_RUN_QUESTIONS, run_id))

    # decisions, and what later steps keep about an attempt

    def put_decision(self, decision: Decision, tie: str) -> None:
        """Keeps the decision under its attempt, its rule and the tie rule."""
        self._put(lambda: [(_PUT_DECISION, (decision.attempt_id, decision.rule, tie, pack(decision)))])

    def decisions(self, attempt_ids: Iterable[str], rule: str, tie: str) -> dict[str, Decision]:
        """Attempt id → decision by this rule and tie rule, of those that are stored."""
        rows = self._rows_of(_DECISIONS, attempt_ids, rule, tie)
        return {attempt_id: unpack(Decision, blob, f"decision on {attempt_id}") for attempt_id, blob in rows}

    def all_decisions(self, attempt_id: str) -> list[tuple[str, Decision]]:
        """Every decision on one attempt with its tie rule."""
        rows = self._rows("SELECT tie, decision FROM decisions WHERE attempt_id = ? ORDER BY rule, tie", attempt_id)
        return [(tie, unpack(Decision, blob, f"decision on {attempt_id}")) for tie, blob in rows]

    def put_records(self, kind: str, rows: Iterable[tuple[str, Any]]) -> None:
        """Keeps (attempt id, record) pairs: labels, rewards, … The same record put twice is one."""
        kept = list(rows)
        self._put(lambda: [(_PUT_RECORD, (kind, content_id(record), at, pack(record))) for at, record in kept])

    def records(self, kind: str, cls: type[T], attempt_ids: Iterable[str]) -> dict[str, list[T]]:
        """Attempt id → its records of this kind, in the order they were first put."""
        found: dict[str, list[T]] = {}
        for attempt_id, blob in self._rows_of(_RECORDS, attempt_ids, kind):
            found.setdefault(attempt_id, []).append(unpack(cls, blob, f"{kind} of {attempt_id}"))
        return found

    # runs

    def begin_run(self, run_id: str, name: str, config: Mapping[str, Any], attempts: Iterable[AttemptRow]) -> None:
        """Lists the run as running, with its attempts, durably. A known id is resumed: its list is replaced."""
        rows = list(attempts)
        now = time.time()
        self._put(lambda: _run_rows(run_id, name, config, rows, now))
        self.flush()

    def put_run(self, run: RunRow, attempts: Iterable[AttemptRow]) -> None:
        """Lists a run of another workspace as it stands, durably; one with the same id is replaced."""
        rows = list(attempts)
        self._put(lambda: [_whole_run(run), *_attempt_rows(run.id, rows)])
        self.flush()

    def finish_run(self, run_id: str, status: str, totals: Mapping[str, Any]) -> None:
        """Sets how the run ended and its totals, durably; UnknownName if it never began."""
        now = time.time()
        self._by_id(run_id)
        self._put(lambda: [(_FINISH_RUN, (status, now, pack(totals), run_id))])
        self.flush()

    def run(self, name_or_id: str) -> RunRow:
        """The run with this id, else the latest with this name, else the one whose id or name begins so.

        Raises UnknownName, which lists the runs there are, or those that an ambiguous beginning fits.
        """
        runs = self.runs()
        exact = [run for run in runs if run.id == name_or_id] or [run for run in runs if run.name == name_or_id]
        if exact:
            return exact[0]
        near = [
            run for run in runs if name_or_id and (run.id.startswith(name_or_id) or run.name.startswith(name_or_id))
        ]
        if len(near) == 1:
            return near[0]
        raise UnknownName("run", name_or_id, few(name_or_id, (run.name or run.id for run in near or runs)))

    def _by_id(self, run_id: str) -> RunRow:
        rows = self._rows(f"{_RUNS} WHERE id = ?", run_id)
        if not rows:
            raise UnknownName("run", run_id, {run.id for run in self.runs()})
        return _run(rows[0])

    def runs(self) -> list[RunRow]:
        """All runs, the latest first."""
        return [_run(row) for row in self._rows(f"{_RUNS} ORDER BY created DESC, rowid DESC")]

    def run_attempts(self, run_id: str) -> list[tuple[str, str]]:
        """(attempt id, question id) of each attempt of the run, by position."""
        rows = self._rows("SELECT attempt_id, question_id FROM run_attempts WHERE run_id = ? ORDER BY position", run_id)
        return [(attempt_id, question_id) for attempt_id, question_id in rows]


# CROSS JOIN keeps the list of ids the outer loop: rows come in its order, each by one look-up in the index.
_TRANSCRIPTS = (
    "SELECT t.attempt_id, t.transcript FROM json_each(?) AS wanted "
    "CROSS JOIN transcripts AS t ON t.attempt_id = wanted.value"
)
_STATUSES = (
    "SELECT t.attempt_id, t.status FROM json_each(?) AS wanted "
    "CROSS JOIN transcripts AS t ON t.attempt_id = wanted.value"
)
_DECISIONS = (
    "SELECT d.attempt_id, d.decision FROM json_each(?) AS wanted "
    "CROSS JOIN decisions AS d ON d.attempt_id = wanted.value AND d.rule = ? AND d.tie = ?"
)
_RECORDS = (
    "SELECT r.attempt_id, r.record FROM json_each(?) AS wanted "
    "CROSS JOIN records AS r ON r.attempt_id = wanted.value AND r.kind = ? ORDER BY wanted.key, r.rowid"
)
_LATEST_QUESTIONS = (
    "SELECT q.id, q.question, q.key FROM json_each(?) AS wanted CROSS JOIN questions AS q ON q.id = wanted.value "
    "WHERE q.version = (SELECT max(version) FROM questions WHERE id = q.id)"
)
_LATEST_DIGEST = "(SELECT digest FROM questions WHERE id = {id} ORDER BY version DESC LIMIT 1)"
_RUN_QUESTIONS = (
    "SELECT q.id, q.question, q.key FROM run_attempts AS r "  # noqa: S608 (constants only)
    f"JOIN questions AS q ON q.digest = coalesce(r.digest, {_LATEST_DIGEST.format(id='r.question_id')}) "
    "WHERE r.run_id = ? ORDER BY r.position"
)
_RUNS = "SELECT id, name, created, finished, status, config, totals FROM runs"

_PUT_TRANSCRIPT = (
    "INSERT INTO transcripts (attempt_id, status, question_id, method, created, transcript) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (attempt_id) DO UPDATE SET status = excluded.status, question_id = excluded.question_id, "
    "method = excluded.method, created = excluded.created, transcript = excluded.transcript "
    "WHERE excluded.status != 'failed' OR status = 'failed'"
)
_PUT_QUESTION = (
    "INSERT INTO questions (digest, id, question, key, version) "
    "VALUES (?, ?, ?, ?, (SELECT coalesce(max(version), 0) + 1 FROM questions WHERE id = ?)) "
    "ON CONFLICT (digest) DO UPDATE SET key = coalesce(excluded.key, key), version = excluded.version"
)
_PUT_DECISION = "INSERT OR REPLACE INTO decisions (attempt_id, rule, tie, decision) VALUES (?, ?, ?, ?)"
_PUT_RECORD = "INSERT INTO records (kind, id, attempt_id, record) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_BEGIN_RUN = (
    "INSERT INTO runs (id, name, created, status, config, totals) VALUES (?, ?, ?, 'running', ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET name = excluded.name, status = 'running', finished = NULL, "
    "config = excluded.config"
)
_PUT_RUN = (
    "INSERT OR REPLACE INTO runs (id, name, created, finished, status, config, totals) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_FINISH_RUN = "UPDATE runs SET status = ?, finished = ?, totals = ? WHERE id = ?"
_CLEAR_ATTEMPTS = "DELETE FROM run_attempts WHERE run_id = ?"
_PUT_ATTEMPT = (
    "INSERT INTO run_attempts (run_id, attempt_id, question_id, position, digest) "  # noqa: S608 (constants only)
    f"VALUES (?, ?, ?, ?, {_LATEST_DIGEST.format(id='?')})"
)


def _transcript_row(transcript: Transcript, now: float) -> Statement:
    attempt = transcript.attempt
    facts = (attempt.id, transcript.status, attempt.question_id, attempt.method, now)
    return _PUT_TRANSCRIPT, (*facts, pack(transcript))


def _question_row(question: Question, key: Key | None) -> Statement:
    packed = None if key is None else pack(key)
    return _PUT_QUESTION, (content_id(question), question.id, pack(question), packed, question.id)


def _questions(rows: Iterable[tuple[Any, ...]]) -> dict[str, tuple[Question, Key | None]]:
    return {
        name: (
            unpack(Question, question, f"question {name}"),
            None if key is None else unpack(Key, key, f"key of {name}"),
        )
        for name, question, key in rows
    }


def _run_rows(
    run_id: str, name: str, config: Mapping[str, Any], rows: Sequence[AttemptRow], now: float
) -> Sequence[Statement]:
    return [
        (_BEGIN_RUN, (run_id, name, now, pack(config), pack({}))),
        *_attempt_rows(run_id, rows),
    ]


def _attempt_rows(run_id: str, rows: Sequence[AttemptRow]) -> Sequence[Statement]:
    return [
        (_CLEAR_ATTEMPTS, (run_id,)),
        *((_PUT_ATTEMPT, (run_id, attempt, question, at, question)) for attempt, question, at in rows),
    ]


def _whole_run(run: RunRow) -> Statement:
    facts = (run.id, run.name, run.created, run.finished, run.status)
    return _PUT_RUN, (*facts, pack(run.config), pack(run.totals))


def _run(row: tuple[Any, ...]) -> RunRow:
    run_id, name, created, finished, status, config, totals = row
    return RunRow(run_id, name, created, status, finished, unpack(dict, config, "run"), unpack(dict, totals, "totals"))
