"""Samples that lm-evaluation-harness writes with `--log_samples`: `samples_<task>_<time>.jsonl`, one file per task, in
a folder per model, the model's name in `results_<time>.json` beside it.

A question stands once per filter; one filter is taken for the whole file: the one that read an answer most often, the
first of them. Texts of `generate_until` are the answers' texts, its repeats the samples. Of `multiple_choice` the
answer is the option with the highest log-likelihood, and the text is that option.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from pluribus.errors import DataError
from pluribus.logs._kinds import answer_of, key_of, kind_of, said
from pluribus.logs._records import Output, Recording
from pluribus.logs._rows import first_row, rows
from pluribus.types import Key, Kind, Question

TITLE = "lm-evaluation-harness samples (JSONL)"
BESIDE = ("results_*.json",)
"""Files that are read together with the samples."""

DUPLICATES = "questions that stand twice: the first is taken"
NO_ANSWERS = "rows of log-likelihoods without options"
NO_RESPONSES = "rows without a response"

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[^_]+)\.jsonl")
_ASKED = ("question", "problem", "query", "input", "prompt", "goal", "text", "ctx", "sentence")
_VERDICTS = (
    "exact_match", "acc", "em", "pass@1", "pass_at_1", "math_verify", "prompt_level_strict_acc", "correct",
)  # fmt: skip
"""Metrics that say whether one answer is right."""
_INVALID = "[invalid]"
"""What a filter leaves where it finds nothing."""

Row = Mapping[str, Any]


def recognise(path: Path) -> bool:
    if ".jsonl" not in path.suffixes:
        return False
    row = first_row(path)
    return row is not None and isinstance(row.get("doc"), dict) and "resps" in row


def read(path: Path) -> list[Recording]:
    """The file's model. DataError: a malformed line, or no answer in the whole file."""
    omitted: Counter[str] = Counter()
    lines = [(place, row) for place, row in rows(path, omitted)]
    for place, row in lines:
        _check(place, row)
    docs = _documents([row for _, row in lines], omitted)
    task, model = _task(path), _model(path)
    found = _recorded(task, docs, omitted)
    if not found:
        raise DataError(
            str(path), "no answer can be read: log-likelihoods of given texts are no answers",
            hint="take the samples of a task that generates, or chooses among options",
        )  # fmt: skip
    pairs = tuple((question, key) for question, key, _ in found)
    outputs = tuple(output for *_, given in found for output in given)
    return [
        Recording(
            f"{task}, {model}", str(path), task, pairs, (model,),
            tuple(Output(o.question_id, model, o.text, 0, o.sample, o.answer, o.correct, unanswered=o.unanswered)
                  for o in outputs),
            omitted={reason: number for reason, number in omitted.items() if number},
        )
    ]  # fmt: skip


def _check(place: str, row: Row) -> None:
    if not isinstance(row.get("doc"), dict) or not isinstance(row.get("resps"), list):
        raise DataError(place, "no sample of lm-evaluation-harness", hint="'doc' and 'resps' are expected")


# --- where it comes from ---------------------------------------------------------------------------------------------


def _task(path: Path) -> str:
    found = _NAME.fullmatch(path.name.removesuffix(".gz"))
    return found["task"] if found else path.name.partition(".jsonl")[0].removeprefix("samples_")


def _model(path: Path) -> str:
    """From the results of the same time, any results beside it, or the folder's name."""
    found = _NAME.fullmatch(path.name.removesuffix(".gz"))
    same = path.with_name(f"results_{found['time']}.json") if found else None
    others = sorted(path.parent.glob("results_*.json"))
    names = (_model_in(file) for file in ([same] if same in others and same else []) + others)
    return next((name for name in names if name), None) or path.absolute().parent.name.replace("__", "/", 1)


def _model_in(results: Path) -> str | None:
    try:
        told = json.loads(results.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    name = told.get("model_name") if isinstance(told, dict) else None
    return name if isinstance(name, str) and name else None


# --- one document, one filter ----------------------------------------------------------------------------------------


def _documents(lines: Sequence[Row], omitted: Counter[str]) -> list[tuple[str, Row]]:
    """(question id, row) of each document under the chosen filter, in the file's order."""
    chosen = _filter(lines)
    found: dict[str, Row] = {}
    hashes: dict[str, Any] = {}
    for row in lines:
        if _filter_of(row) != chosen:
            continue
        id = _hash(row)[:16]
        if id in hashes and hashes[id] != row.get("doc_id"):  # the same words asked under another number
            id = f"{id}-{row.get('doc_id')}"
        if id in found:
            omitted[DUPLICATES] += 1
            continue
        hashes.setdefault(id, row.get("doc_id"))
        found[id] = row
    return list(found.items())


def _hash(row: Row) -> str:
    """The document's hash: the same in the files of other models."""
    told = row.get("doc_hash")
    if isinstance(told, str) and told:
        return told
    return hashlib.sha256(json.dumps(row["doc"], sort_keys=True, default=str).encode()).hexdigest()


def _filter(lines: Sequence[Row]) -> str:
    """The filter that read an answer most often; of equals the first."""
    read: Counter[str] = Counter()
    for row in lines:
        given = row.get("filtered_resps")
        answers = given if isinstance(given, list) else []
        read[_filter_of(row)] += sum(_filtered(answer) is not None for answer in answers)
    return max(read, key=lambda name: read[name]) if read else "none"


def _filter_of(row: Row) -> str:
    return str(row.get("filter", "none"))


def _filtered(answer: Any) -> str | None:
    text = said(answer) if isinstance(answer, str | int | float) else None
    return None if text == _INVALID else text


# --- questions and outputs -------------------------------------------------------------------------------------------

Found = tuple[Question, Key | None, list[Output]]


def _recorded(task: str, docs: Sequence[tuple[str, Row]], omitted: Counter[str]) -> list[Found]:
    kind = kind_of([said(row.get("target")) for _, row in docs if _is_generated(row)])
    found = []
    for id, row in docs:
        if _is_generated(row):
            found.append(_generated(task, id, row, kind))
        elif not row["resps"]:
            omitted[NO_RESPONSES] += 1
        elif (chosen := _chosen(task, id, row)) is not None:
            found.append(chosen)
        else:
            omitted[NO_ANSWERS] += 1
    return found


def _is_generated(row: Row) -> bool:
    """One request whose responses are texts."""
    first = row["resps"][0] if row["resps"] else None
    return isinstance(first, str) or (isinstance(first, list) and bool(first) and isinstance(first[0], str))


def _generated(task: str, id: str, row: Row, kind: Kind) -> Found:
    first = row["resps"][0]
    texts = [first] if isinstance(first, str) else first
    question = Question(id, task, _words(row), kind, _lettered(row) if kind == "choice" else ())
    filtered = _per_sample(row, texts)
    verdict = _verdict(row) if len(texts) == 1 else None
    outputs = [
        Output(
            id, "", text if isinstance(text, str) else "", 0, sample, answer_of(question, answer), verdict,
            unanswered=answer is None and filtered is not None,
        )
        for sample, (text, answer) in enumerate(zip(texts, filtered or [None] * len(texts), strict=True))
    ]  # fmt: skip
    return question, key_of(question, said(row.get("target"))), outputs


def _lettered(row: Row) -> tuple[str, ...]:
    """The listed options, where the target is the letter of one of them."""
    options, target = _listed(row), (said(row.get("target")) or "").strip("().")
    fits = len(set(options)) >= 2 and target in ascii_uppercase[: len(options)] and len(options) <= 26
    return options if fits else ()


def _per_sample(row: Row, texts: Sequence[Any]) -> list[str | None] | None:
    """What the filter read out of each text; None: it read nothing but took the text, or one answer for them all."""
    given = row.get("filtered_resps")
    if not isinstance(given, list) or not given:
        return None
    answers = given[0] if isinstance(given[0], list) else given
    if len(answers) != len(texts) or list(answers) == list(texts):
        return None
    return [_filtered(answer) for answer in answers]


def _verdict(row: Row) -> bool | None:
    return next((row[name] == 1 for name in _VERDICTS if name in row and row[name] in (0, 1)), None)


def _words(row: Row) -> str:
    """The question without its worked examples, where the document has it; else the whole prompt."""
    doc = row["doc"]
    told = next((doc[name] for name in _ASKED if isinstance(doc.get(name), str) and doc[name].strip()), None)
    return told or _context(row, 0).strip() or json.dumps(doc, ensure_ascii=False, default=str)


def _arguments(row: Row) -> list[list[Any]]:
    """The requests' arguments, as objects or, in older files, as lists."""
    given = row.get("arguments")
    if isinstance(given, dict):
        return [list(one.values()) for one in given.values() if isinstance(one, dict)]
    return [one for one in given if isinstance(one, list)] if isinstance(given, list) else []


def _context(row: Row, request: int) -> str:
    arguments = _arguments(row)
    return str(arguments[request][0]) if request < len(arguments) and arguments[request] else ""


def _chosen(task: str, id: str, row: Row) -> Found | None:
    """The option with the highest log-likelihood; None where there is no choice to be made."""
    scores = [_score(response) for response in row["resps"]]
    requests = [one for one in _arguments(row) if len(one) > 1]
    if len(requests) == len(scores) and len(scores) % 2 == 0 and _second_half_is_unconditional(requests):
        scores, requests = scores[: len(scores) // 2], requests[: len(requests) // 2]
    options = _options(row, requests)
    if None in scores or len(options) != len(scores) or not len(set(options)) >= 2 or len(options) > 26:
        return None
    best = max(range(len(scores)), key=lambda place: scores[place] or 0.0)
    letter, verdict = ascii_uppercase[best], _verdict(row)
    question = Question(id, task, _words(row), "choice", options)
    key = _right(said(row.get("target")), options, best, verdict)
    output = Output(id, "", f"{letter}. {options[best]}", 0, 0, letter, verdict)
    return question, Key(id, key) if key else None, [output]


def _second_half_is_unconditional(requests: Sequence[Sequence[Any]]) -> bool:
    """Mutual information asks for every option a second time, without the question."""
    half = len(requests) // 2
    return all(not str(one[0]).strip() for one in requests[half:]) and any(str(one[0]).strip() for one in requests)


def _score(response: Any) -> float | None:
    """The log-likelihood in `[[value, is_greedy]]`; files hold it as text."""
    while isinstance(response, list) and response and isinstance(response[0], list):
        response = response[0]
    if not isinstance(response, list) or len(response) != 2:
        return None
    try:
        value = float(response[0])
    except (TypeError, ValueError):
        return None
    return -math.inf if math.isnan(value) else value


def _options(row: Row, requests: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """The continuations; their texts where those are letters; the beginnings where only those differ."""
    words = tuple(str(one[1]).strip() for one in requests)
    if len(words) > 1 and len(set(words)) == 1:
        return tuple(str(one[0]).strip() for one in requests)
    if all(word.strip("().") == ascii_uppercase[place : place + 1] for place, word in enumerate(words)):
        told = _listed(row)
        if len(told) == len(words):
            return told
    return words


def _listed(row: Row) -> tuple[str, ...]:
    """The options that the document lists."""
    told = row["doc"].get("choices") or row["doc"].get("options")
    told = told.get("text") if isinstance(told, dict) else told
    return tuple(str(option).strip() for option in told) if isinstance(told, list) else ()


def _right(target: str | None, options: Sequence[str], best: int, verdict: bool | None) -> str | None:
    """The key's letter: the target is an index, a letter or an option's text, whichever fits the verdict."""
    if target is None:
        return None
    places = [int(target)] if target.isdecimal() and len(target) < 3 else []
    places += (
        [ascii_uppercase.index(letter)] if len(letter := target.strip("().")) == 1 and letter in ascii_uppercase else []
    )
    places += [options.index(target.strip())] if target.strip() in options else []
    fitting = [place for place in places if place < len(options) and verdict in (None, place == best)]
    return ascii_uppercase[fitting[0]] if fitting else None
