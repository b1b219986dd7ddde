"""QASPER: questions about one scientific paper whose full text is the context; a short text answers.

Source: Dasigi et al. 2021, "A Dataset of Information-Seeking Questions and Answers Anchored in Research Papers", arXiv
2105.03011. Licence: CC BY 4.0. Size: 1,451 questions in 416 test papers, 1,005 in 281 validation, 2,593 in 888 train.
One question per (paper, question); the key is the first annotator's answer, the others' are its aliases. As in the
authors' evaluation extracted spans are joined by commas, yes-or-no answers are "yes" and "no", and what the paper does
not say is "unanswerable".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pluribus.tasks._files import (
    BadRow,
    Form,
    Item,
    Pair,
    check_subset,
    has,
    pairs,
    shown,
    table,
    tables,
    text,
    texts,
    value,
)
from pluribus.tasks._hub import Hub, fetch
from pluribus.tasks._longbench import longbench
from pluribus.tasks._questions import OWN

SPLITS = ("train", "validation", "test")
DEFAULT_SPLIT = "test"
SUBSETS: tuple[str, ...] = ()
FAMILY = "general"
HUB = Hub(
    "allenai/qasper",
    "06806e4608976fc2fac0a090ac425d5b2b29caf4",
    {split: f"qasper/{split}/0000.parquet" for split in SPLITS},
)


def load(
    split: str, *, data: Path | None = None, subset: str | None = None, skipped: list[str] | None = None
) -> Iterator[Pair]:
    """The questions of a split, or those of the file `data`."""
    check_subset("qasper", subset, SUBSETS)
    return pairs("qasper", data or fetch(HUB, split), FORMS, skipped=skipped)


def _ask(question: str) -> str:
    return f"{question}\n\nIf the paper does not say, the answer is: unanswerable"


def _own_parts(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The authors' file is one object {paper id: paper}; `qas` is a list of questions."""
    return [part for paper in row.values() if isinstance(paper, dict) for part in _of_paper(paper)]


def _of_paper(paper: Mapping[str, Any]) -> list[dict[str, Any]]:
    sections = [(s.get("section_name"), s.get("paragraphs")) for s in tables(paper, "full_text")]
    context = _paper(paper, sections)
    return [{**question, "context": context, "answers": _answers(question)} for question in tables(paper, "qas")]


def _answers(question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [table(given, "answer") for given in tables(question, "answers")] if "answers" in question else []


def _row_parts(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """On the hub the same lists stand side by side: `qas.question`, `qas.question_id`, `qas.answers`."""
    full, asked = table(row, "full_text"), table(row, "qas")
    names, bodies = _lists(full, "section_name", "paragraphs")
    questions, ids, given = _lists(asked, "question", "question_id", "answers")
    tables(asked, "answers")
    context = _paper(row, list(zip(names, bodies, strict=True)))
    return [
        {"question": question, "question_id": id, "context": context, "answers": list(tables(answers, "answer"))}
        for question, id, answers in zip(questions, ids, given, strict=True)
    ]


def _lists(row: Mapping[str, Any], *names: str) -> tuple[list[Any], ...]:
    found = tuple(value(row, name) for name in names)
    if not all(isinstance(item, list) and len(item) == len(found[0]) for item in found):
        raise BadRow(f"fields {', '.join(map(repr, names))} must be lists of one length, found {shown(found)}")
    return found


def _paper(paper: Mapping[str, Any], sections: list[tuple[Any, Any]]) -> str:
    """Title, abstract and sections; a section's heading stands above its first paragraph."""
    parts = [str(paper.get("title") or ""), str(paper.get("abstract") or "")]
    for name, paragraphs in sections:
        if not isinstance(paragraphs, list) or not all(isinstance(p, str) for p in paragraphs):
            raise BadRow(f"the paragraphs of section {shown(name)} must be a list of texts, found {shown(paragraphs)}")
        body = [p.strip() for p in paragraphs if p.strip()]
        parts += [f"{name}\n{body[0]}" if name else body[0], *body[1:]] if body else []
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _read(row: Mapping[str, Any]) -> Item:
    answers = list(dict.fromkeys(_said(answer) for answer in row["answers"]))
    key, aliases = (answers[0], tuple(answers[1:])) if answers else (None, ())
    return Item(
        _ask(text(row, "question")),
        "text",
        key,
        context=row["context"] or None,
        id=text(row, "question_id"),
        aliases=aliases,
    )


def _said(answer: Mapping[str, Any]) -> str:
    """One annotator's answer as text.

    >>> _said({"unanswerable": True}), _said({"yes_no": False}), _said({"extractive_spans": ["GRU", "LSTM"]})
    ('unanswerable', 'no', 'GRU, LSTM')
    """
    if answer.get("unanswerable") is True:
        return "unanswerable"
    if answer.get("extractive_spans"):
        return ", ".join(texts(answer, "extractive_spans"))
    if answer.get("free_form_answer"):
        return text(answer, "free_form_answer")
    if isinstance(answer.get("yes_no"), bool):
        return "yes" if answer["yes_no"] else "no"
    raise BadRow(
        f"an annotator's answer must be unanswerable, spans, free text, or yes or no, found {shown(dict(answer))}"
    )


def _flat_parts(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A copy that is passed around: a paper's text with tabs between its paragraphs, and its questions."""
    paper = value(row, "paper")
    if not isinstance(paper, str):
        raise BadRow(f"field 'paper' must be text, found {shown(paper)}")
    paragraphs = (part.strip() for part in paper.split("\t"))
    context = "\n\n".join(part for part in paragraphs if part)
    return [{**question, "context": context} for question in tables(row, "questions")]


def _read_flat(row: Mapping[str, Any]) -> Item:
    answer = None if row.get("answer") is None else text(row, "answer")
    return Item(_ask(text(row, "question")), "text", answer, context=row["context"] or None)


def _is_own(row: Mapping[str, Any]) -> bool:
    return any(isinstance(paper, dict) and "qas" in paper for paper in row.values())


FORMS = (
    Form("the hub's rows (full_text.section_name, qas.question)", has("full_text", "qas"), _read, parts=_row_parts),
    Form("QASPER's own JSON ({paper id: full_text, qas})", _is_own, _read, parts=_own_parts),
    Form("JSONL of papers (paper, questions)", has("paper", "questions"), _read_flat, parts=_flat_parts),
    longbench("qasper", _ask),
    OWN,
)
