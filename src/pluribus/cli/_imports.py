"""What `pluribus import` does: exported runs as they are, logs as replay files and a run over them."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pluribus import cli
from pluribus.answers import read
from pluribus.cli import _screen
from pluribus.cli._panels import files_of, say_unknown
from pluribus.cli._stores import is_export
from pluribus.cli._tables import reason
from pluribus.config import make_config
from pluribus.errors import DataError, UsageError
from pluribus.logs import Output, Recording, groups, merged, panel_of_recording, reader_of, titles
from pluribus.logs._kinds import letters
from pluribus.panel import Panel
from pluribus.run import RunResult, prepare, run
from pluribus.store import Store
from pluribus.store.export import import_jsonl
from pluribus.store.files import whole, write_line, writing
from pluribus.types import Key, Question

_FILES = ("questions.jsonl.gz", "outputs.jsonl.gz")
_IMPORTS = "imports"
"""Folder in the workspace."""


@dataclass(frozen=True, slots=True)
class _Seat:
    """One agent and sample of a recording, and the recorded model it is written as."""

    agent: str
    sample: int
    model: str
    number: int
    """Its sample among all of that model."""


def go(paths: Sequence[Path], out: Path | None, home: Path | None) -> int:
    """Imports exports and logs, and says how each is called from now on."""
    unknown: list[Path] = []
    exports, recordings = _sorted_out(paths, unknown)
    say_unknown(unknown)
    together = [merged(group) for group in groups(recordings)]
    for recording in together:
        _refuse_programs(recording)
    for path in exports:
        _export(path, home)
    for recording, folder in zip(together, _folders(together, out, home), strict=True):
        _log(recording, folder, out is not None, home)
    return cli.OK


def _sorted_out(paths: Sequence[Path], unknown: list[Path]) -> tuple[list[Path], list[Recording]]:
    """Exported runs and recordings of all paths. A file that was named must be readable; one in a folder may be passed
    over.
    """
    exports: list[Path] = []
    recordings: list[Recording] = []
    for path, named in _each(paths):
        member = reader_of(path)
        if is_export(path) or (named and member is None and _is_run(path)):
            exports.append(path)
        elif member is not None:
            recordings += member.read(path)
        elif named:
            raise DataError(str(path), "not a run of any format known here", hint=f"known: exported runs; {titles()}")
        else:
            unknown.append(path)
    if not exports and not recordings:
        raise DataError(str(paths[0]), "the folder holds no run of any format known here", hint=f"known: {titles()}")
    return exports, recordings


def _is_run(path: Path) -> bool:
    """A JSONL file nobody knows is read as an export, which says what is wrong with it."""
    return ".jsonl" in path.suffixes or not path.exists()


def _each(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Every file once, and whether it was named itself."""
    seen: set[Path] = set()
    for path in paths:
        for file in files_of(path) if path.is_dir() else [path]:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield file, file == path


def _refuse_programs(recording: Recording) -> None:
    """Programs are judged by their tests, and no log carries them."""
    if any(question.kind == "program" for question, _ in recording.pairs):
        raise UsageError(
            f"{recording.source} records programs, and their tests are not in it",
            hint="measure the file itself, or import the run's own export",
        )


def _export(path: Path, home: Path | None) -> None:
    with Store.open(home) as store:
        found = import_jsonl(store, path)
    kept = f", {found.kept:,} of them were here already" if found.kept else ""
    if found.differing:
        kept += f"; {found.differing:,} with other turns here: their labels and judgements stay out"
    _say(f"imported {found.run.name}: {_screen.plural(found.attempts, 'attempt')}{kept}")


def _say(line: str) -> None:
    _screen.out().print(line, markup=False, soft_wrap=True)


# --- logs ------------------------------------------------------------------------------------------------------------


def _folders(recordings: Sequence[Recording], out: Path | None, home: Path | None) -> list[Path]:
    """A folder for each: the one that was named, or one by name below it."""
    if out is not None and len(recordings) == 1:
        return [out]
    with Store.open(home) as store:
        base = out or store.path.parent / _IMPORTS
    seen: Counter[str] = Counter()
    folders = []
    for recording in recordings:
        name = _plain(recording.name)
        seen[name] += 1
        folders.append(base / (f"{name}-{seen[name]}" if seen[name] > 1 else name))
    return folders


def _plain(name: str) -> str:
    """A name that is safe in a path, a model's name and a list of them."""
    return re.sub(r"[^\w.=+/-]+", "-", name).replace("/", "-").strip("-.") or "log"


def _log(recording: Recording, wanted: Path, named: bool, home: Path | None) -> None:
    """Writes both files, votes on them, and says so."""
    found = panel_of_recording(recording)
    if not found.members:
        raise DataError(recording.source, "no text of any agent is recorded", hint="there is nothing to vote on")
    seats = _seats(recording, found)
    folder, differing = _written(recording, found, seats, wanted, named)
    questions, outputs = (folder / name for name in _FILES)
    models = [f"replay/{outputs}#{seat.model}" for seat in seats]
    result = _voted(models, questions, found, home)
    _report(recording, found, result, questions, outputs, models, differing)


def _written(
    recording: Recording, found: Panel, seats: Sequence[_Seat], wanted: Path, named: bool
) -> tuple[Path, tuple[int, int]]:
    """Both files in their folder, and how many answers are read differently. What a folder holds is never replaced:
    a run over it would go on with answers that are no longer there.
    """
    options = _options(recording)
    pairs = [(_fit(question, options), key) for question, key in recording.pairs]
    with TemporaryDirectory() as made:
        _write_questions(Path(made, _FILES[0]), pairs, found)
        asked = {question.id: question for question, _ in pairs}
        differing = _write_outputs(Path(made, _FILES[1]), recording, seats, asked)
        folder = _free(wanted, Path(made), named)
        for name in _FILES:
            with whole(folder / name) as part:
                shutil.copyfile(Path(made, name), part)
    return folder, differing


def _free(wanted: Path, made: Path, named: bool) -> Path:
    """The folder, or one with a number behind it, that is empty or holds just this."""
    for number in count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        there = [name for name in _FILES if (folder / name).exists()]
        if all((folder / name).read_bytes() == (made / name).read_bytes() for name in there):
            return folder
        if named:
            raise UsageError(f"{folder} holds other questions or outputs", hint="name another folder with --out")
    raise AssertionError("there is always another number")


def _seats(recording: Recording, found: Panel) -> list[_Seat]:
    """The members as seats; those of one model and persona are samples of one recorded model."""
    used: Counter[str] = Counter()
    seats = []
    for member in found.members:
        model = _plain(member.model.rpartition("#")[2] or member.model)
        name = f"{model}~{_plain(member.persona)}" if member.persona else model
        agent = recording.agents[member.seat]
        seats.append(_Seat(agent, member.draw, name, used[name]))
        used[name] += 1
    return seats


def _options(recording: Recording) -> tuple[str, ...]:
    """Letters that stand for the options of choice questions whose options the log does not carry."""
    given = [key.answer for _, key in recording.pairs if key is not None]
    return letters(given + [output.answer for output in recording.outputs])


def _fit(question: Question, options: tuple[str, ...]) -> Question:
    """The question with the options and labels that its kind takes, and no others."""
    if question.kind == "choice":
        whole = tuple(option.strip() or "(empty)" for option in question.choices)
        return replace(question, choices=whole if len(set(whole)) > 1 else options, labels=())
    if question.kind == "label" and len({label.strip() for label in question.labels} - {""}) < 2:
        return replace(question, kind="text", choices=(), labels=())
    return replace(question, choices=(), labels=question.labels if question.kind == "label" else ())


def _write_questions(path: Path, pairs: Sequence[tuple[Question, Key | None]], found: Panel) -> None:
    with writing(path) as file:
        for question, key in pairs:
            row: dict[str, Any] = {"id": question.id, "question": question.text or "(empty)", "kind": question.kind}
            row |= {"answer": key.answer} if key is not None and key.answer is not None else {}
            row |= {"choices": list(question.choices)} if question.choices else {}
            row |= {"labels": list(question.labels)} if question.labels else {}
            row |= {"context": question.context} if question.context else {}
            write_line(file, row | {"metadata": {**question.metadata, "task": found.task}})


def _write_outputs(
    path: Path, recording: Recording, seats: Sequence[_Seat], questions: dict[str, Question]
) -> tuple[int, int]:
    """Writes every output; of those with a recorded answer (how many are read differently here, how many there are)."""
    written_as = {(seat.agent, seat.sample): seat for seat in seats}
    differing = recorded = 0
    with writing(path) as file:
        for output in recording.outputs:
            seat = written_as[output.agent, output.sample]
            write_line(file, _row(output, seat))
            if output.answer is not None:
                recorded += 1
                differing += read(questions[output.question_id], output.text) != output.answer
    return differing, recorded


def _row(output: Output, seat: _Seat) -> dict[str, Any]:
    usage = {"prompt_tokens": output.prompt_tokens, "completion_tokens": output.completion_tokens}
    known = {name: count for name, count in usage.items() if count is not None}
    said = {"recorded_answer": output.answer, "recorded_correct": output.correct}
    row = {"question_id": output.question_id, "model": seat.model, "sample": seat.number, "round": output.round}
    extras = {name: value for name, value in said.items() if value is not None}
    return {**row, "text": output.text, **({"usage": known} if known else {}), **extras}


def _voted(models: Sequence[str], questions: Path, found: Panel, home: Path | None) -> RunResult:
    """The run over the recorded outputs: a vote, or a debate where several rounds are recorded."""
    method: dict[str, Any] = {"method": "vote"}
    if found.rounds > 1:
        topology = {"topology": found.settings["topology"]} if "topology" in found.settings else {}
        method = {"method": "debate", "settings": {"debate_rounds": found.rounds - 1, **topology}}
    config = make_config(
        {"task": "jsonl", "data": str(questions), "models": list(models), "num_agents": len(models), **method}
    )
    with Store.open(home) as store:
        return run(prepare(config), store)


def _report(
    recording: Recording,
    found: Panel,
    result: RunResult,
    questions: Path,
    outputs: Path,
    models: Sequence[str],
    differing: tuple[int, int],
) -> None:
    asked, seats = _screen.plural(len(recording.pairs), "question"), _screen.plural(len(models), "seat")
    _say(f"imported {result.name}: {asked}, {seats}, from {recording.source}")
    _say(f"  {questions}")
    _say(f"  {outputs}")
    method = f" --method debate --debate-rounds {found.rounds - 1}" if found.rounds > 1 else ""
    method += f" --topology {found.settings['topology']}" if method and "topology" in found.settings else ""
    again = f"--task jsonl --data {shlex.quote(str(questions))}{method} --agent-models {shlex.quote(','.join(models))}"
    _say(f"  again: pluribus run {again}")
    remarks = [f"{what}: {number:,}" for what, number in found.omitted.items()]
    if differing[0]:
        remarks.append(f"{differing[0]:,} of {differing[1]:,} answers are read differently here than the log recorded")
    decided = {item.question_id: item.decided for item in found.items}
    others = sum(row.answer != decided[row.question_id] for row in result.rows if row.status != "failed")
    if others:
        remarks.append(f"{others:,} of {asked} are decided differently here than the log recorded")
    failed = Counter(reason(row) for row in result.rows if row.status == "failed")
    remarks += [f"{number:,} of {asked} failed: {words}" for words, number in failed.most_common()]
    for remark in remarks:
        _screen.err().print(_screen.line(f"{recording.name}: {remark}", "dim"), soft_wrap=True)
