"""Answers that are labelled: where they come from, what the workspace knows of them, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pluribus.answers import canonical, prefetch
from pluribus.cli._stores import is_export, reading
from pluribus.codec import content_id
from pluribus.config import make_config
from pluribus.decide import decide
from pluribus.engines.asyncio import each
from pluribus.errors import ConfigError, DataError, UsageError
from pluribus.label import CONSENSUS, PROGRAM, checked, checker, deciding
from pluribus.logs import Output, Recording, groups, merged, reader_of
from pluribus.logs.agentark import Labelled, Solution, write_labelled
from pluribus.run import decided, stored_labels, stored_table
from pluribus.sandbox import Sandbox, allowing
from pluribus.store import Store
from pluribus.tasks import LoadedTask
from pluribus.types import Attempt, Completion, Decision, Key, Label, Question, Sampling, Seat, Transcript, Turn

_LEAST_PREFIX = 20
"""Letters of a task's question that must begin a log's, which may go on with its options."""
_WIDTH = 64
"""Questions under way while programs are tried."""

Labels = Mapping[str, Sequence[Label]]
"""Attempt id → its labels."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question with what was answered."""

    question: Question
    key: Key | None
    transcript: Transcript

    @property
    def id(self) -> str:
        return self.transcript.attempt.id


@dataclass(frozen=True, slots=True)
class Source:
    """What is labelled."""

    name: str
    place: str
    """`run ID`, or the file's path."""
    cases: tuple[Case, ...]
    """Attempts that did not fail, in the run's order."""
    failed: int
    decision: Callable[[Case], Decision]
    store: Store | None
    """Where labels are kept; None: nowhere."""
    known: Labels
    """What the tests of the keys said of programs before."""
    remarks: tuple[str, ...] = ()


# --- where they come from --------------------------------------------------------------------------------------------


@contextmanager
def sourced(run: str, home: Path | None, task: LoadedTask | None = None) -> Iterator[Source]:
    """A run of the workspace, an exported one, or a log of another code; an existing file wins over a name.

    Args:
        task: whose questions and keys a log's are; None: its own.
    """
    path = Path(run)
    if path.is_dir():
        raise UsageError(f"{run} is a folder", hint="name one run or one file")
    if path.is_file() and not is_export(path) and reader_of(path) is not None:
        yield _of_log(path, task)
        return
    if task is not None:
        raise ConfigError(f"--task is for logs of other codes, and {run} knows its questions", hint="drop it")
    with reading(run, home) as (store, name):
        yield of_run(store, name, path if path.is_file() else None)


def of_run(store: Store, name: str, path: Path | None = None) -> Source:
    """A stored run; `path` is the file it was read from, whose workspace does not stay."""
    stored = store.run(name)
    config = make_config(stored.config, f"run {stored.name}")
    pairs = store.run_questions(stored.id)
    attempts = store.run_attempts(stored.id)
    transcripts = list(store.transcripts(attempt_id for attempt_id, _ in attempts))
    cases = tuple(Case(*pairs[t.attempt.question_id], t) for t in transcripts if t.status != "failed")
    known = stored_labels(store, {case.id: (case.question, case.key) for case in cases})

    def decision(case: Case) -> Decision:
        return decided(config, stored_table(case.transcript.attempt), case.question, case.transcript)

    failed, unasked = len(transcripts) - len(cases), len(attempts) - len(transcripts)
    remarks = (f"questions not asked: {unasked:,}",) if unasked else ()
    place = str(path) if path else f"run {stored.id}"
    return Source(stored.name, place, _read(cases), failed, decision, None if path else store, known, remarks)


def _read(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """The cases, their answers read ahead where that is faster."""
    prefetch((case.question, turn.text) for case in cases for turn in case.transcript.turns if turn.ok)
    return cases


def _of_log(path: Path, task: LoadedTask | None) -> Source:
    member = reader_of(path)
    assert member is not None
    together = groups(member.read(path))
    if len(together) != 1:
        raise UsageError(
            f"{path} holds {len(together)} runs", hint=f"make runs of them and label each: pluribus import {path}"
        )
    recording = merged(together[0])
    remarks = [f"{what}: {number:,}" for what, number in recording.omitted.items()]
    if task is not None:
        recording, strange = _with_keys(recording, task)
        remarks += [f"questions that are not in task {task.task}: {strange:,}"] if strange else []
    cases = tuple(_cases(recording))

    def decision(case: Case) -> Decision:
        return _recorded(recording, case)

    failed = len(recording.pairs) - len(cases)
    return Source(recording.name, str(path), _read(cases), failed, decision, None, {}, tuple(remarks))


def _with_keys(recording: Recording, task: LoadedTask) -> tuple[Recording, int]:
    """The recording with the task's questions and keys in the place of its own, found by their text; how many are not
    there."""
    texts = {_plain(question.text): (question, key) for question, key in task.pairs}
    lengths = sorted({len(text) for text in texts if len(text) >= _LEAST_PREFIX}, reverse=True)
    pairs, strange = [], 0
    for question, key in recording.pairs:
        text = _plain(question.text)
        found = texts.get(text) or next((texts[text[:n]] for n in lengths if text[:n] in texts), None)
        strange += found is None
        pairs.append((question, key) if found is None else _renamed(*found, question.id))
    if strange == len(pairs):
        raise DataError(
            recording.source, f"none of its {len(pairs)} questions is in task {task.task}, split {task.split}",
            hint="name another --task, --split or --data",
        )  # fmt: skip
    return replace(recording, pairs=tuple(pairs)), strange


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _renamed(question: Question, key: Key | None, id: str) -> tuple[Question, Key | None]:
    return replace(question, id=id), None if key is None else replace(key, question_id=id)


def _cases(recording: Recording) -> Iterator[Case]:
    """Questions with at least one text, as transcripts without prompts."""
    samples = sorted({(recording.agents.index(o.agent), o.sample) for o in recording.outputs})
    places = {(recording.agents[agent], sample): index for index, (agent, sample) in enumerate(samples)}
    seats = tuple(
        Seat(index, name if not sample else f"{name} #{sample + 1}", recording.models.get(name, name),
             sampling=Sampling(), sample=sample)
        for (name, sample), index in places.items()
    )  # fmt: skip
    said: dict[str, list[Output]] = {}
    for output in recording.outputs:
        said.setdefault(output.question_id, []).append(output)
    for question, key in recording.pairs:
        if question.id in said:
            yield Case(question, key, _transcript(recording, question, said[question.id], seats, places))


def _transcript(
    recording: Recording,
    question: Question,
    outputs: Sequence[Output],
    seats: tuple[Seat, ...],
    places: Mapping[tuple[str, int], int],
) -> Transcript:
    ordered = sorted(outputs, key=lambda o: (o.round, places[o.agent, o.sample]))
    turns = tuple(_turn(output, seats[places[output.agent, output.sample]]) for output in ordered)
    last = {turn.seat: index for index, turn in enumerate(turns)}
    id = content_id([recording.name, question.id, [(turn.round, turn.seat, turn.text) for turn in turns]])
    attempt = Attempt(id, question.id, "recorded", {}, seats, 0)
    return Transcript(attempt, turns, tuple(sorted(last.values())), "complete")


def _turn(output: Output, seat: Seat) -> Turn:
    said = Completion(
        output.text, seat.model, prompt_tokens=output.prompt_tokens, completion_tokens=output.completion_tokens
    )
    return Turn(output.round, seat.index, "answer", (), said, sample=output.sample)


def _recorded(recording: Recording, case: Case) -> Decision:
    """The recorded decision, with the share of the last answers that say the same; else the plurality of these."""
    voted = decide(case.question, case.transcript)
    if case.question.id not in recording.decided:
        return voted
    answer = recording.decided[case.question.id]
    answer = answer if answer is None else canonical(case.question, answer) or answer
    cast = sum(voted.votes.values())
    share = voted.votes.get(answer, 0.0) / cast if cast and answer is not None else None
    return replace(voted, answer=answer, share=share, tie=())


# --- what is known of them -------------------------------------------------------------------------------------------


async def check(source: Source, box: Sandbox | None) -> dict[str, list[Label]]:
    """Attempt id → what the checker says; None where it does not know.

    Args:
        box: where programs may run; None: nowhere, and only what was found out before is known of them.
    """
    found: dict[str, list[Label]] = {}

    async def work(case: Case) -> bool:
        before = list(source.known.get(case.id, ()))
        found[case.id] = before or await checked(case.question, case.key, case.transcript)
        return True

    with allowing(box):
        await each(source.cases, work, _WIDTH)
    return {case.id: found[case.id] for case in source.cases}


async def known(source: Source) -> dict[str, list[Label]]:
    """Attempt id → all that is known without asking anybody: the checker's word, and the stored labels of judges and of
    the consensus."""
    found = await check(source, None)
    stored = source.store.records("label", Label, found) if source.store else {}
    keys = {case.id: (case.question, case.key) for case in source.cases}
    return {
        id: [*labels, *(one for one in stored.get(id, ()) if _stands(one, *keys[id]))] for id, labels in found.items()
    }


def _stands(label: Label, question: Question, key: Key | None) -> bool:
    """Whether a stored label still says something: a key that may have changed, and other tests, do not."""
    if label.checker is None or label.checker.partition(" ")[0] == CONSENSUS:
        return True
    return key is None or (question.kind == PROGRAM and label.checker == checker(question, key))


# --- how they are written --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    file: str
    questions: int
    solutions: int
    undecided: int
    """Answers left out."""
    without: int
    """Questions left out: none of their answers is labelled."""


def write(source: Source, labels: Labels, path: Path) -> Written:
    """Every answer that is labelled, in AgentArk's form."""
    rows: list[Labelled] = [(case.question, case.key, solutions(case, labels[case.id])) for case in source.cases]
    filled = [row for row in rows if row[2]]
    write_labelled(filled, path)
    undecided = sum(one.correct is None for said in labels.values() for one in deciding(said).values())
    return Written(
        str(path), len(filled), sum(len(found) for *_, found in filled), undecided, len(rows) - len(filled)
    )  # fmt: skip


def solutions(case: Case, labels: Sequence[Label]) -> list[Solution]:
    """The answers whose label is decided, with who says so."""
    names = _names(case.transcript.attempt.agents)
    drawn: dict[tuple[int, int], int] = {}
    found = []
    for index, one in deciding(labels).items():
        turn = case.transcript.turns[index]
        sample = drawn.setdefault((turn.seat, turn.round), 0)
        drawn[turn.seat, turn.round] += 1
        if one.correct is not None:
            seat = case.transcript.attempt.agents[turn.seat]
            by = one.checker or one.judge
            found.append(Solution(turn.text, one.correct, names[turn.seat], seat.model, turn.round, sample, by))
    return found


def _names(seats: Sequence[Seat]) -> list[str]:
    """Names that tell the seats apart."""
    names = [seat.name for seat in seats]
    return [
        name if names.count(name) == 1 else f"{name} (seat {seat.index + 1})"
        for name, seat in zip(names, seats, strict=True)
    ]
