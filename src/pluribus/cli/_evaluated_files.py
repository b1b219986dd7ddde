"""Files of answers for `pluribus evaluate`: logs of other codes, recorded outputs, plain predictions.

A prediction is a line with a text (`prediction`, `response` or `text`) and its question, by `id`, `question_id` or the
question's own words. The task gives the keys, for predictions always, for logs where one is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pluribus.answers import canonical
from pluribus.consensus.votes import plurality
from pluribus.errors import ConfigError, DataError
from pluribus.evaluate import Usage
from pluribus.evaluating import Answered, Sheet, standing
from pluribus.logs import Output, Recording, panel_of_recording, reader_of, titles
from pluribus.logs._rows import first_row, rows
from pluribus.panel import Item, Panel, Word
from pluribus.panel import standing as last_words
from pluribus.tasks import LoadedTask
from pluribus.types import Key, Question

_TEXTS = ("prediction", "response", "text")
_IDS = ("question_id", "id")
_ASKED = ("question", "query")
_LEAST_PREFIX = 20
"""Letters of a task's question that must begin a log's, which may go on with its options."""
NOT_THERE = "no answer in the file"

Row = Mapping[str, Any]
Pairs = Sequence[tuple[Question, Key | None]]


def is_predictions(path: Path) -> bool:
    """Whether the first line is a prediction; a log of another code is none."""
    row = first_row(path) if ".jsonl" in path.suffixes else None
    return row is not None and reader_of(path) is None and _text(row) is not None and any(k in row for k in _WHOSE)


_WHOSE = (*_IDS, *_ASKED)


def sheets_of(path: Path, tasks: Sequence[LoadedTask]) -> list[Sheet]:
    """The subjects of a file: a council that decided is one, else every agent is one, its outputs the samples.

    Args:
        tasks: whose questions and keys they are; empty: the file's own.

    Raises:
        DataError: nobody can read it, it holds nothing, or no question of the tasks.
        ConfigError: predictions without a task.
    """
    if not path.stat().st_size:
        raise DataError(str(path), "the file is empty", hint="expected one JSON object a line")
    if is_predictions(path):
        if not tasks:
            raise ConfigError(
                f"{path} holds predictions and no keys", hint="say whose questions they answer: --task NAME"
            )
        return _on_tasks(lambda task: [_predictions(path, task)], path, tasks)
    member = reader_of(path)
    if member is None:
        raise DataError(
            str(path), "neither predictions nor a log of any format known here",
            hint=f"a prediction is a line with 'id' and 'prediction', a text; logs: {titles()}",
        )  # fmt: skip
    recordings: list[Recording] = member.read(path)
    if not tasks:
        return [sheet for recording in recordings for sheet in _sheets(recording)]
    return _on_tasks(lambda task: [_keyed(recording, task) for recording in recordings], path, tasks)


def _on_tasks(
    read_as: Callable[[LoadedTask], list[Recording | None]], path: Path, tasks: Sequence[LoadedTask]
) -> list[Sheet]:
    """The file against each task; against none of which it must not be."""
    found = [one for task in tasks for one in read_as(task) if one is not None]
    if not found:
        names = " or ".join(f"{task.task}, split {task.split}" for task in tasks)
        raise DataError(
            str(path), f"none of its questions is in task {names}", hint="name another --task, --split or --data"
        )
    return [sheet for recording in found for sheet in _sheets(recording)]


# --- whose question is it --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Finder:
    """A task's questions by id and by their words."""

    ids: frozenset[str]
    texts: Mapping[str, list[str]]
    """Words of a question → ids of the questions with these words."""
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, task: LoadedTask) -> _Finder:
        texts: dict[str, list[str]] = {}
        for question, _ in task.pairs:
            texts.setdefault(_plain(question.text), []).append(question.id)
        lengths = sorted({len(text) for text in texts if len(text) >= _LEAST_PREFIX}, reverse=True)
        return cls(frozenset(question.id for question, _ in task.pairs), texts, tuple(lengths))

    def find(self, id: str | None, words: str | None, place: str) -> str | None:
        """The question's id; None: the task has no such question. DataError where several have these words."""
        if id in self.ids:
            return id
        text = _plain(words or "")
        found = self.texts.get(text) or next((self.texts[text[:n]] for n in self.lengths if text[:n] in self.texts), [])
        if len(found) > 1:
            raise DataError(
                place, f"{len(found)} questions of the task have these words: {found[0]}, {found[1]}, …",
                hint="name the question by its 'id'",
            )  # fmt: skip
        return found[0] if found else None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


# --- predictions -----------------------------------------------------------------------------------------------------


def _text(row: Row) -> str | None:
    return next((row[name] for name in _TEXTS if isinstance(row.get(name), str)), None)


def _predictions(path: Path, task: LoadedTask) -> Recording | None:
    """The predictions as a recording; None: none is of this task."""
    finder, omitted = _Finder.of(task), Counter[str]()
    outputs: dict[tuple[str, str, int], Output] = {}
    drawn: Counter[tuple[str, str]] = Counter()
    for place, row in rows(path, omitted):
        id, text = _whose(row, finder, place), _text(row)
        if text is None:
            omitted["lines without a prediction"] += 1
        elif id is None:
            omitted[f"predictions of questions that are not in task {task.task}"] += 1
        else:
            agent = str(row.get("model") or _stem(path))
            sample = row["sample"] if isinstance(row.get("sample"), int) else drawn[id, agent]
            drawn[id, agent] += 1
            omitted["predictions given twice, of which the last counts"] += (id, agent, sample) in outputs
            asked, generated = (_count(row, name) for name in ("prompt_tokens", "completion_tokens"))
            outputs[id, agent, sample] = Output(
                id, agent, text, sample=sample, prompt_tokens=asked, completion_tokens=generated
            )
    if not outputs:
        return None
    agents = tuple(dict.fromkeys(output.agent for output in outputs.values()))
    return Recording(
        _stem(path), str(path), task.task, task.pairs, agents, tuple(outputs.values()), omitted=dict(+omitted)
    )


def _whose(row: Row, finder: _Finder, place: str) -> str | None:
    id = next((str(row[name]) for name in _IDS if row.get(name) is not None), None)
    words = next((row[name] for name in _ASKED if isinstance(row.get(name), str)), None)
    if id is None and words is None:
        raise DataError(place, "whose prediction this is it does not say", hint="give 'id' or 'question'")
    return finder.find(id, words, place)


def _count(row: Row, name: str) -> int | None:
    usage = row.get("usage")
    found = usage.get(name) if isinstance(usage, dict) else row.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _stem(path: Path) -> str:
    return path.name.partition(".jsonl")[0]


# --- logs ------------------------------------------------------------------------------------------------------------


def _keyed(recording: Recording, task: LoadedTask) -> Recording | None:
    """A log with a task's questions and keys in the place of its own; what its source held right is left aside."""
    finder = _Finder.of(task)
    whose = {question.id: finder.find(question.id, question.text, recording.source) for question, _ in recording.pairs}
    questions = {question.id: question for question, _ in task.pairs}
    outputs = [
        replace(output, question_id=id, answer=_own(questions[id], output.answer), correct=None)
        for output in recording.outputs
        if (id := whose.get(output.question_id)) is not None
    ]
    if not outputs:
        return None
    strange = sum(id is None for id in whose.values())
    remarks = {f"questions that are not in task {task.task}": strange} if strange else {}
    return replace(
        recording, task=task.task, pairs=task.pairs, outputs=tuple(outputs), decided_correct={},
        decided={new: answer for old, answer in recording.decided.items() if (new := whose.get(old)) is not None},
        usage={new: usage for old, usage in recording.usage.items() if (new := whose.get(old)) is not None},
        omitted={**recording.omitted, **remarks},
    )  # fmt: skip


def _own(question: Question, answer: str | None) -> str | None:
    """What the source read, where it is an answer of the question's kind; else the text is read here."""
    return None if answer is None else canonical(question, answer)


# --- recordings as sheets --------------------------------------------------------------------------------------------


def _sheets(recording: Recording) -> Iterator[Sheet]:
    panel = panel_of_recording(recording)
    remarks = tuple(f"{what}: {number:,}" for what, number in panel.omitted.items() if what in recording.omitted)
    if recording.decided:
        rows = tuple(_decided(recording, pair, item) for pair, item in zip(recording.pairs, panel.items, strict=True))
        yield Sheet(recording.name, "file", recording.source, recording.task, rows, remarks)
        return
    for place, agent in enumerate(recording.agents):
        name = recording.name if len(recording.agents) == 1 else agent
        yield Sheet(name, "file", recording.source, recording.task, _alone(recording, panel, place), remarks)


def _decided(recording: Recording, pair: tuple[Question, Key | None], item: Item) -> Answered:
    """A council: its last words voted, and it said what came of it."""
    words = [word for word in last_words(item) if word is not None]
    return _answered(*pair, words, item.decided, item.credit, item.usage, stand=item.decided or "")


def _alone(recording: Recording, panel: Panel, place: int) -> tuple[Answered, ...]:
    """One agent; several draws of it vote."""
    columns = [i for i, member in enumerate(panel.members) if member.seat == place]
    found = []
    for pair, item in zip(recording.pairs, panel.items, strict=True):
        latest = last_words(item)
        words = [word for i in columns if latest and (word := latest[i]) is not None]
        winner = plurality([word.answer for word in words], tie="first").winner if words else None
        right = next((word.correct for word in words if word.answer == winner and winner is not None), None)
        known = any(word.correct is not None for word in words)
        credit = right if winner is not None else 0.0 if known else None
        usage = recording.usage.get(pair[0].id) if len(recording.agents) == 1 else None
        found.append(_answered(*pair, words, winner, credit, usage or _usage(words)))
    return tuple(found)


def _answered(
    question: Question,
    key: Key | None,
    words: Sequence[Word],
    decided: str | None,
    credit: float | None,
    usage: Usage | None,
    stand: str = "",
) -> Answered:
    if not words:
        return Answered(question, key, None, None, None, failed=True, reason=NOT_THERE, usage=usage)
    texts, answers = [word.text for word in words], [word.answer for word in words]
    text = stand if stand and decided not in answers else standing(texts, answers, decided)
    share = answers.count(decided) / _votes(answers) if decided in answers and decided is not None else None
    return Answered(
        question, key, text, decided, credit, tuple(answers), tuple(word.correct for word in words),
        confidence=share if len(words) > 1 else None, usage=usage,
    )  # fmt: skip


def _votes(answers: Sequence[str | None]) -> int:
    return sum(answer is not None for answer in answers)


def _usage(words: Sequence[Word]) -> Usage | None:
    """Sums over the words; None: nobody counted any."""
    asked, said = [word.prompt_tokens for word in words], [word.completion_tokens for word in words]
    if not words or all(count is None for count in asked + said):
        return None
    return Usage(len(words), _sum(asked), _sum(said), None)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
