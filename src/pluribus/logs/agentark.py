"""Inference records of AgentArk: one question a line, read and written.

A line has the data set's keys (`query`, `gt`, `tag`, `source`), `response` or `error`, and `token_stats`: model →
`num_llm_calls`, `prompt_tokens`, `completion_tokens`. A debate's response holds blocks `===== Solution i =====` (older
form `Solution i:`): each agent's last answer, and last of all what was made of them, which is the council's answer.
Their place is `results/<dataset>/<model>/<method>_infer.jsonl`. Files written here add `id`, `kind`, `choices`,
`labels` and `context`.

Labelled files have `solutions` with `id`, `text`, `is_correct`, and `labels`, the same verdicts as a list. Those
written here hold every answer of every round, and no decision: a solution adds `agent`, `model`, `round`, `sample` and
`by`, who says so; a line adds `label_set`, since `labels` is taken.

Source: Luo et al. 2026, arXiv 2602.03955.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pluribus.answers import read as read_answer
from pluribus.errors import DataError
from pluribus.evaluate import Usage
from pluribus.logs._files import writing
from pluribus.logs._kinds import key_of, kind_of, letters, said
from pluribus.logs._records import Output, Recording
from pluribus.logs._rows import first_row, rows
from pluribus.panel import Item, Panel, standing
from pluribus.types import KINDS, Key, Question

TITLE = "AgentArk inference records (JSONL)"

ERRORS = "questions that ended in an error"
DUPLICATES = "questions that stand twice: the first is taken"
NO_RESPONSE = "questions without a response"
UNEVEN = "questions with fewer solutions than the others"

_BLOCK = re.compile(r"^={3,} *Solution +(\d{1,4}) *={3,} *\n?", re.MULTILINE)
_OLDER = re.compile(r"^Solution +(\d{1,4}): *\n?", re.MULTILINE)
_KEYS = ("query", "gt", "tag", "source", "response", "error", "token_stats", "solutions", "labels")

Row = Mapping[str, Any]


def recognise(path: Path) -> bool:
    if ".jsonl" not in path.suffixes:
        return False
    row = first_row(path)
    return (
        row is not None and isinstance(row.get("query"), str) and bool({"response", "error", "solutions"} & row.keys())
    )


@dataclass(frozen=True, slots=True)
class _Said:
    """One line, taken apart."""

    id: str
    row: Row
    texts: tuple[str, ...]
    """Of the agents; empty: an error."""
    decision: str | None
    """What was made of several texts."""
    verdicts: tuple[bool | None, ...]
    """Of the agents, then of the decision, where the file is labelled."""
    places: tuple[_Place, ...] = ()
    """Where each text stands; empty where the line does not say."""


@dataclass(frozen=True, slots=True)
class _Place:
    agent: str
    model: str
    round: int
    sample: int


@dataclass(slots=True)
class _File:
    path: Path
    omitted: Counter[str] = field(default_factory=Counter)


def read(path: Path) -> list[Recording]:
    """The file's council, or its one agent. DataError: a malformed line, or no response at all."""
    file = _File(path)
    lines = _lines(file)
    if not any(line.texts for line in lines):
        raise DataError(str(path), "no response can be read", hint="each line ended in an error, or there is none")
    most = max(len(line.texts) for line in lines)
    file.omitted[UNEVEN] += sum(0 < len(line.texts) < most for line in lines)
    pairs = _questions(lines, _task(path, lines))
    models = _placed(lines) or _unplaced(path, lines, most)
    outputs = [output for line in lines for output in _outputs(line, list(models))]
    decided = [(pair[0], line) for pair, line in zip(pairs, lines, strict=True) if line.decision is not None]
    return [
        Recording(
            name=_name(path),
            source=str(path),
            task=pairs[0][0].task,
            pairs=tuple(pairs),
            agents=tuple(models),
            outputs=tuple(outputs),
            decided={question.id: read_answer(question, line.decision or "") for question, line in decided},
            decided_correct={q.id: line.verdicts[-1] for q, line in decided if len(line.verdicts) > len(line.texts)},
            omitted={reason: number for reason, number in file.omitted.items() if number},
            models=models,
            usage={line.id: usage for line in lines if (usage := _usage(line.row)) is not None},
            settings=_settings(path),
        )
    ]


def _outputs(line: _Said, agents: Sequence[str]) -> Iterator[Output]:
    """The agents' texts, each at its place, or each another agent's."""
    verdicts = [*line.verdicts, *[None] * (len(line.texts) - len(line.verdicts))]
    places = line.places or [_Place(agent, "", 0, 0) for agent in agents]
    for place, text, verdict in zip(places, line.texts, verdicts, strict=False):
        yield Output(line.id, place.agent, text, place.round, place.sample, correct=verdict)


def _placed(lines: Sequence[_Said]) -> dict[str, str]:
    """Agent → model, where the lines say; empty where they do not."""
    return {place.agent: place.model for line in lines for place in line.places}


def _unplaced(path: Path, lines: Sequence[_Said], n: int) -> dict[str, str]:
    agents, model = _agents(path, lines, n)
    return dict.fromkeys(agents, model)


# --- lines -----------------------------------------------------------------------------------------------------------


def _lines(file: _File) -> list[_Said]:
    found: dict[str, _Said] = {}
    for place, row in rows(file.path, file.omitted):
        if not isinstance(row.get("query"), str):
            raise DataError(place, f"'query' is {type(row.get('query')).__name__}", hint="it must be a text")
        line = _said(row, file)
        if line.id in found:
            file.omitted[DUPLICATES] += 1
        else:
            found[line.id] = line
    return list(found.values())


def _said(row: Row, file: _File) -> _Said:
    id = str(row["id"]) if row.get("id") is not None else _hash(row)
    solutions, response = row.get("solutions"), row.get("response")
    if isinstance(solutions, list):
        texts, verdicts = _labelled(solutions, row.get("labels"))
    else:
        texts, verdicts = _solutions(response) if isinstance(response, str) else [], []
    if not texts:
        file.omitted[ERRORS if row.get("error") else NO_RESPONSE] += 1
    places = _places(solutions)
    if places:
        return _Said(id, row, tuple(texts), None, tuple(verdicts), places)
    if len(texts) < 2:
        return _Said(id, row, tuple(texts), None, tuple(verdicts))
    return _Said(id, row, tuple(texts[:-1]), texts[-1], tuple(verdicts))


def _hash(row: Row) -> str:
    return hashlib.sha256(row["query"].encode()).hexdigest()[:16]


def _labelled(solutions: Sequence[Any], labels: Any) -> tuple[list[str], list[bool | None]]:
    there = [one for one in solutions if isinstance(one, dict) and isinstance(one.get("text"), str)]
    marks = labels if isinstance(labels, list) and len(labels) == len(there) else [None] * len(there)
    verdicts = [one.get("is_correct", mark) for one, mark in zip(there, marks, strict=True)]
    return [one["text"] for one in there], [bool(v) if isinstance(v, bool | int) else None for v in verdicts]


def _places(solutions: Any) -> tuple[_Place, ...]:
    """Where the solutions stand, if each of them says so."""
    there = [one for one in solutions if isinstance(one, dict)] if isinstance(solutions, list) else []
    found = [
        _Place(one["agent"], str(one.get("model", one["agent"])), one["round"], one.get("sample", 0))
        for one in there
        if isinstance(one.get("agent"), str) and _is_count(one.get("round")) and _is_count(one.get("sample", 0))
    ]
    return tuple(found) if len(found) == len(there) else ()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _solutions(response: str) -> list[str]:
    """The texts of the blocks; a response without blocks is one text.

    >>> _solutions("===== Solution 1 =====\\nIt is 4.\\n===== Solution 2 =====\\nFour.\\n===== Solution 3 =====\\n4")
    ['It is 4.', 'Four.', '4']
    >>> _solutions("It is 4. See Solution 1: there."), _solutions("Solution 1:\\n4\\n\\nSolution 2:\\n5")
    (['It is 4. See Solution 1: there.'], ['4\\n', '5'])
    """
    for heading in (_BLOCK, _OLDER):
        marks = _counted(list(heading.finditer(response)))
        if marks and not response[: marks[0].start()].strip():
            ends = [mark.start() for mark in marks[1:]] + [len(response)]
            return [response[mark.end() : end].removesuffix("\n") for mark, end in zip(marks, ends, strict=True)]
    return [response]


def _counted(marks: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The headings 1, 2, 3, … in order: an agent may quote one."""
    found: list[re.Match[str]] = []
    for mark in marks:
        if int(mark[1]) == len(found) + 1:
            found.append(mark)
    return found


# --- questions, agents, usage ----------------------------------------------------------------------------------------


def _questions(lines: Sequence[_Said], task: str) -> list[tuple[Question, Key | None]]:
    keys = [_gold(line.row) for line in lines]
    kind = kind_of(keys)
    options = letters(keys) if kind == "choice" else ()
    return [_pair(line, key, task, kind, options) for line, key in zip(lines, keys, strict=True)]


def _gold(row: Row) -> str | None:
    gold = row.get("gt")
    return said(gold[0] if isinstance(gold, list) and gold else None if isinstance(gold, list | dict) else gold)


def _pair(line: _Said, key: str | None, task: str, kind: Any, options: tuple[str, ...]) -> tuple[Question, Key | None]:
    row = line.row
    choices, labels = _strings(row.get("choices")), _strings(row.get("label_set")) or _strings(row.get("labels"))
    if row.get("kind") in KINDS:
        kind, options = row["kind"], choices
    about = {name: value for name in ("tag", "source") if (value := row.get(name)) is not None}
    question = Question(
        line.id, task, row["query"], kind, options, labels if kind == "label" else (), _text(row.get("context")), about
    )  # fmt: skip
    return question, key_of(question, key)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else ()


def _place(path: Path) -> tuple[str, str, str]:
    """(data set, model, method) from `results/<dataset>/<model, may be several folders>/<method>_infer.jsonl`."""
    parts = path.absolute().parts
    method = path.name.partition(".jsonl")[0].removesuffix("_infer")
    if "results" in parts[:-2]:
        at = len(parts) - 1 - parts[::-1].index("results")
        inner = parts[at + 1 : -1]
        if len(inner) >= 2:
            return inner[0], "/".join(inner[1:]), method
    return "", "", method


def _name(path: Path) -> str:
    return "-".join(part for part in _place(path) if part) or path.stem


def _task(path: Path, lines: Sequence[_Said]) -> str:
    sources = {str(line.row["source"]) for line in lines if line.row.get("source")}
    return _place(path)[0] or (sources.pop() if len(sources) == 1 else path.name.partition(".jsonl")[0])


def _agents(path: Path, lines: Sequence[_Said], n: int) -> tuple[list[str], str]:
    """Names for the agents, and their model: the only one with calls, else the folder's."""
    used = {model for line in lines for model in _stats(line.row)}
    model = used.pop() if len(used) == 1 else _place(path)[1] or "model"
    return [f"{model} #{i + 1}" for i in range(n)] if n > 1 else [model], model


def _stats(row: Row) -> dict[str, Any]:
    stats = row.get("token_stats")
    return {str(m): s for m, s in stats.items() if isinstance(s, dict)} if isinstance(stats, dict) else {}


def _usage(row: Row) -> Usage | None:
    stats = list(_stats(row).values())
    if not stats:
        return None
    calls, asked, generated = (
        [one.get(name) for one in stats] for name in ("num_llm_calls", "prompt_tokens", "completion_tokens")
    )
    return Usage(_sum(calls) or 0, _sum(asked), _sum(generated), None)


def _sum(counts: Sequence[Any]) -> int | None:
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if len(known) == len(counts) else None


def _settings(path: Path) -> dict[str, object]:
    method = _place(path)[2]
    return {"method": method} if method and path.name.partition(".jsonl")[0].endswith("_infer") else {}


# --- writing ---------------------------------------------------------------------------------------------------------


def write(panel: Panel, questions: Mapping[str, tuple[Question, Key | None]], path: Path) -> list[str]:
    """Writes the panel's last answers and decisions; a folder gets `results/<dataset>/<model>/<method>_infer.jsonl`.
    Returns the path. The form holds one answer per agent: earlier rounds stay behind.

    Args:
        questions: id → question and key, of all items.
    """
    target = path / place_of(panel) if path.is_dir() or not path.suffix else path
    with writing(target) as file:
        for item in panel.items:
            line = _line(panel, item, *questions[item.question_id])
            file.write(_encoded(line))
    return [str(target)]


def _encoded(line: Mapping[str, Any]) -> bytes:
    """One line of UTF-8; a text with half a surrogate pair, which that can not hold, in escapes."""
    try:
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(line).encode() + b"\n"


def place_of(panel: Panel) -> Path:
    """Where its own code would write it."""
    models = list(dict.fromkeys(_bare(member.model) for member in panel.members))
    model = models[0] if len(models) == 1 else f"MIXED{len(models)}"
    return Path("results", _safe(panel.task), *map(_safe, model.split("/")), f"{_safe(panel.method)}_infer.jsonl")


def _bare(model: str) -> str:
    """A model without its service and address."""
    return model.rpartition("#")[2] if "#" in model else model.partition("@http")[0].partition("/")[2] or model


def _safe(name: str) -> str:
    return re.sub(r"[^\w.+=-]+", "-", name).strip(".-") or "model"


def _line(panel: Panel, item: Item, question: Question, key: Key | None) -> dict[str, Any]:
    gold = key.answer if key is not None and key.answer is not None else item.key
    line: dict[str, Any] = {"query": question.text, "gt": gold, "tag": [panel.task], "source": panel.task}
    line |= _about(question, "labels")
    texts = [word.text if word else "" for word in standing(item)]
    if item.failed or not texts:
        return {**line, "error": "the attempt failed", "token_stats": _counts(panel, item)}
    response = texts[0] if len(texts) == 1 else _blocks([*texts, _decision(question, item.decided)])
    return {**line, "response": response, "token_stats": _counts(panel, item)}


def _about(question: Question, labels: str) -> dict[str, Any]:
    """What this form does not know and we would miss; `labels` is the name of the label set."""
    line: dict[str, Any] = {"id": question.id, "kind": question.kind}
    parts = {"choices": list(question.choices), labels: list(question.labels), "context": question.context}
    return line | {name: value for name, value in parts.items() if value}


def _decision(question: Question, decided: str | None) -> str:
    """What the council's own block says; empty where it decided nothing."""
    if decided is None:
        return ""
    return f"```python\n{decided}\n```" if question.kind == "program" else f"Final Answer: {decided}"


def _blocks(texts: Sequence[str]) -> str:
    return "\n".join(f"===== Solution {i} =====\n{text}" for i, text in enumerate(texts, 1))


def _counts(panel: Panel, item: Item) -> dict[str, dict[str, int | None]]:
    """Calls and tokens per model; of all of them together where the source has sums alone."""
    if item.usage is None:
        return {}
    models = list(dict.fromkeys(_bare(member.model) for member in panel.members))
    used = {"num_llm_calls": item.usage.calls, "prompt_tokens": item.usage.prompt_tokens,
            "completion_tokens": item.usage.completion_tokens}  # fmt: skip
    return {models[0] if len(models) == 1 else "all models": used}


@dataclass(frozen=True, slots=True)
class Solution:
    """One answer with its label."""

    text: str
    correct: bool
    agent: str
    model: str
    round: int = 0
    sample: int = 0
    by: str | None = None
    """Who says so: the checker or the judge."""


Labelled = tuple[Question, Key | None, Sequence[Solution]]


def write_labelled(rows: Iterable[Labelled], path: Path) -> None:
    """Writes questions with labelled solutions to a file; `read` gives back every solution, label and place."""
    with writing(path) as file:
        for question, key, solutions in rows:
            line = _labelled_line(question, key, solutions)
            file.write(_encoded(line))


def _labelled_line(question: Question, key: Key | None, solutions: Sequence[Solution]) -> dict[str, Any]:
    tag, source = question.metadata.get("tag", [question.task]), question.metadata.get("source", question.task)
    return {
        "query": question.text,
        "gt": key.answer if key is not None else None,
        "solutions": [_solution(place, one) for place, one in enumerate(solutions, 1)],
        "labels": [one.correct for one in solutions],
        "tag": tag,
        "source": source,
        **_about(question, "label_set"),
    }


def _solution(place: int, one: Solution) -> dict[str, Any]:
    line: dict[str, Any] = {"id": place, "text": one.text, "is_correct": one.correct}
    line |= {"agent": one.agent, "model": one.model, "round": one.round}
    line |= {"sample": one.sample} if one.sample else {}
    return line | ({"by": one.by} if one.by else {})
