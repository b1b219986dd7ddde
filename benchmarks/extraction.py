"""How often our reading of recorded outputs gives the verdict their source published, run by run.

    python benchmarks/extraction.py [FOLDER of recorded runs] [--only NAME] [--reasons]

A run is one model under one prompt style. Columns: outputs; those with a verdict, in which the source's own parser
found an answer of the question's kind; outputs among them whose answer is not clear, because the text commits itself to
several different ones (sources take the first, we the last) or to none and the source guessed; agreement over the
verdicts on clear answers, and over all verdicts; outputs in which we find no answer; outputs in which only we find one;
verdicts right by ours only and by theirs only. Program outputs (styles NL+SL and noNL) are not read but run, which
needs the sandbox: they are counted as skipped.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pluribus.answers import canonical, read
from pluribus.answers._committed import committed, own
from pluribus.types import Question

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "recorded"
PROGRAMS = ("_NL+SL", "_noNL")
TARGET = 0.99
GUESSING = "mmlu_pro"
"""Sources whose parser takes the last capital letter A to J where it finds neither "answer is X" nor "answer: X"."""
_FOUND = re.compile(r"answer is \(?[A-J]\)?|[aA]nswer:\s*[A-J]")
_TWO = re.compile(r"[\s*_:$]*\(?([A-J])\)?\s*(?:,|and|or|&|/)+\s*(?:and|or)?\s*\(?([A-J])\)?(?![\w'’])")


@dataclass(slots=True)
class Run:
    """What one model's outputs under one prompt style came to."""

    outputs: int = 0
    verdicts: int = 0
    unclear: int = 0
    agree_clear: int = 0
    agree_all: int = 0
    unread: int = 0
    read_by_us_only: int = 0
    right_by_ours: int = 0
    right_by_theirs: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def clear(self) -> float:
        """Agreement where the text states one answer."""
        return self.agree_clear / max(1, self.verdicts - self.unclear)

    @property
    def all(self) -> float:
        return self.agree_all / max(1, self.verdicts)


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) as file:
        yield from (json.loads(line) for line in file)


def questions(folder: Path) -> tuple[dict[str, Question], dict[str, str | None]]:
    """The questions of a folder by id, and their canonical keys."""
    asked, keys = {}, {}
    for row in rows(folder / "questions.jsonl.gz"):
        question = Question(row["id"], folder.name, row["question"], row["kind"], tuple(row.get("choices", ())))
        asked[question.id], keys[question.id] = question, canonical(question, str(row["answer"]))
    return asked, keys


def measure(folder: Path) -> tuple[dict[str, Run], int]:
    """Every run of a folder, and how many outputs are programs."""
    asked, keys = questions(folder)
    runs: dict[str, Run] = {}
    programs = 0
    for row in rows(folder / "outputs.jsonl.gz"):
        if row["model"].endswith(PROGRAMS):
            programs += 1
            continue
        question = asked[row["question_id"]]
        count(runs.setdefault(row["model"], Run()), question, keys[question.id], row)
    return runs, programs


def count(run: Run, question: Question, key: str | None, row: dict[str, Any]) -> None:
    ours = read(question, row["text"])
    theirs, verdict = published(question, key, row)
    run.outputs += 1
    run.unread += ours is None
    run.read_by_us_only += verdict is None and ours is not None
    if verdict is None:
        return
    doubt = unclear(question, row["text"])
    agree = (ours == key) == verdict
    run.verdicts += 1
    run.unclear += doubt is not None
    run.agree_all += agree
    run.agree_clear += agree and doubt is None
    run.right_by_ours += not agree and ours == key
    run.right_by_theirs += not agree and ours != key
    if not agree:
        run.reasons[doubt or reason(ours, theirs, key, verdict)] += 1


def published(question: Question, key: str | None, row: dict[str, Any]) -> tuple[str | None, bool | None]:
    """The source's answer in canonical form and its verdict; no verdict where its parser found no such answer."""
    said = row.get("recorded_answer", row.get("recorded_pred"))
    theirs = None if said is None else canonical(question, str(said))
    if "recorded_answer" not in row and "recorded_pred" not in row:
        return None, bool(row["recorded_correct"])
    if theirs is None:
        return None, None
    return theirs, bool(row.get("recorded_correct", theirs == key))


def unclear(question: Question, text: str) -> str | None:
    """Why a text does not state one answer; None: it does."""
    if len(stated(question, text)) > 1:
        return "the text states several answers: they take the first, we the last"
    if question.task.startswith(GUESSING) and not _FOUND.search(text):
        return "no mark that their parser knows: it took the last capital letter A to J"
    return None


def stated(question: Question, text: str) -> set[str]:
    """The answers the text commits itself to, at whatever place."""
    found: set[str] = set()
    for span in committed(own(text)):
        if question.kind == "choice" and (two := _TWO.match(span.text)):
            found |= {two[1], two[2]}
        elif answer := read(question, f"The answer is {span.text}"):
            found.add(answer)
    return found


def reason(ours: str | None, theirs: str | None, key: str | None, verdict: bool) -> str:
    if theirs is not None and (theirs == key) != verdict:
        return "the source's verdict does not follow from its own answer and key"
    return "we find no answer" if ours is None else "we read another answer"


def line(name: str, run: Run) -> str:
    counts = (f"{n:,}" for n in (run.outputs, run.verdicts, run.unclear))
    shares = (f"{100 * share:.2f} %" for share in (run.clear, run.all))
    others = (f"{n:,}" for n in (run.unread, run.read_by_us_only, run.right_by_ours, run.right_by_theirs))
    return f"| {' | '.join((name, *counts, *shares, *others))} |"


def total(runs: list[Run]) -> Run:
    whole = Run()
    for run in runs:
        for name in Run.__slots__:
            if name == "reasons":
                whole.reasons.update(run.reasons)
            else:
                setattr(whole, name, getattr(whole, name) + getattr(run, name))
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--only", default="", help="part of a source's name")
    parser.add_argument("--reasons", action="store_true", help="why verdicts differ, per source")
    flags = parser.parse_args()
    print("| run | outputs | verdicts | unclear | agree, clear | agree, all | unread | only ours | + | - |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for folder in sorted(flags.folder.iterdir()):
        if flags.only not in folder.name:
            continue
        start = time.process_time()
        runs, programs = measure(folder)
        for name, run in sorted(runs.items(), key=lambda pair: pair[1].clear):
            print(line(f"{folder.name} {name}", run))
        whole, low = total(list(runs.values())), sum(run.clear < TARGET for run in runs.values())
        print(line(f"**{folder.name}, {len(runs)} runs**", whole))
        print(f"  {low} runs below {TARGET:.0%}; {programs} programs skipped: they need the sandbox", end="")
        print(f"; {time.process_time() - start:.0f} s of processor time", flush=True)
        for why, times in whole.reasons.most_common() if flags.reasons else ():
            print(f"  {times} × {why}")


if __name__ == "__main__":
    main()
