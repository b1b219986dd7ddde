"""What `pluribus distil` says of the rows it made: in words, or as one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from pluribus.cli import _screen
from pluribus.contamination import N
from pluribus.distil._rows import replies
from pluribus.distil.steps import Facts as StepFacts
from pluribus.distil.steps import facts as step_facts
from pluribus.distilling import SIMILAR, Made, near_copies
from pluribus.prefer import quartiles
from pluribus.types import StepMarks


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of some texts, in words or tokens."""

    mean: float
    quartiles: tuple[float, ...]
    """Least, lower quartile, median, upper quartile, greatest."""


@dataclass(frozen=True, slots=True)
class Facts:
    runs: tuple[str, ...]
    covered: int
    """Questions with a row."""
    corrective: float | None
    """Share of the rows; None: the view has none."""
    words: Mapping[str, Lengths]
    """Of what was chosen, and of what could have been."""
    tokens: Mapping[str, Lengths]
    """The same in tokens; empty where nobody counts them."""
    copies: float
    """Share of the rows whose reply nearly repeats an earlier one to the same question."""
    steps: StepFacts | None
    models: Mapping[str, int]
    """Who said them → rows; empty where nobody did."""


def facts(made: Made, runs: Sequence[str], count: Callable[[str], int] | None) -> Facts:
    texts = {"chosen": [replies(row)[0] for row in made.rows], "available": list(made.found.available)}
    corrective = [row["corrective"] for row in made.rows if "corrective" in row]
    kept = {(row.get("attempt"), row.get("turn")) for row in made.rows}
    marks = [one for one in made.found.examples if isinstance(one, StepMarks) and (one.attempt_id, one.turn) in kept]
    return Facts(
        runs=tuple(runs),
        covered=len({row["question_id"] for row in made.rows}),
        corrective=sum(corrective) / len(corrective) if corrective else None,
        words=_lengths(texts, lambda text: len(text.split())),
        tokens=_lengths(texts, count) if count else {},
        copies=near_copies(made.rows),
        steps=step_facts(marks) if marks else None,
        models=Counter(cast(str, row["model"]) for row in made.rows if "model" in row),
    )


def _lengths(texts: Mapping[str, Sequence[str]], size: Callable[[str], int]) -> dict[str, Lengths]:
    found = {}
    for name, several in texts.items():
        sizes = [size(text) for text in several]
        ends = quartiles(sizes)
        if ends is not None:
            found[name] = Lengths(sum(sizes) / len(sizes), ends)
    return found


def as_object(made: Made, found: Facts, file: str, format: str, seed: int) -> dict[str, Any]:
    """The same as is shown, for programs."""
    return {
        "file": file,
        "format": format,
        "view": made.view,
        "rows": len(made.rows),
        "runs": list(found.runs),
        "questions": {"asked": made.asked, "covered": found.covered},
        "corrective": found.corrective,
        "tokens": made.tokens,
        "length": {"words": _plain(found.words), "tokens": _plain(found.tokens)},
        "near_duplicates": found.copies,
        "steps": asdict(found.steps) if found.steps else None,
        "models": dict(found.models),
        "left_out": dict(made.found.left_out),
        "beyond": made.beyond,
        "checked": [asdict(one) for one in made.checked],
        "seed": seed,
        "notes": list(made.notes),
    }


def _plain(lengths: Mapping[str, Lengths]) -> dict[str, Any]:
    return {name: asdict(one) for name, one in lengths.items()}


# --- in words --------------------------------------------------------------------------------------------------------


def show(console: Console, made: Made, found: Facts, file: str) -> None:
    """The summary."""

    def say(line: str, style: str = "") -> None:
        console.print(_screen.text(line, style=style), soft_wrap=True)

    for line in _lines(made, found):
        say(line)
    for line in _contamination(made):
        say(line)
    for note in made.notes:
        say(f"note: {note}", "yellow")
    for table in (_left_out(made), _length_table(found)):
        if table.row_count:
            console.print()
            console.print(table)
    console.print()
    say(f"written: {file}: {_screen.plural(len(made.rows), 'row')}")


def _lines(made: Made, found: Facts) -> Iterator[str]:
    runs = ", ".join(found.runs)
    asked = _screen.plural(made.asked, "question")
    yield f"{runs}: view {made.view}: {_screen.plural(len(made.rows), 'row')} on {found.covered:,} of {asked}"
    if found.models:
        yield "said by: " + ", ".join(f"{_screen.model(name)} {many:,}" for name, many in found.models.items())
    if found.corrective is not None:
        yield f"corrective (wrong the round before): {_screen.share(found.corrective)} of the rows"
    if made.tokens is not None:
        yield f"tokens of the replies: {made.tokens:,}"
    if found.steps is not None:
        yield _step_words(found.steps)
    if found.copies:
        share = _screen.share(found.copies)
        yield f"nearly repeat an earlier reply to the question ({SIMILAR:g} of the 5-grams): {share} of the rows"


def _step_words(found: StepFacts) -> str:
    first = "" if found.first_error is None else f", the first at step {found.first_error:.2f} in the mean"
    return (
        f"steps: {found.steps:,}, good {_screen.share(found.good)}; replies with a bad step: "
        f"{_screen.share(found.with_error)}{first}"
    )


def _contamination(made: Made) -> Iterator[str]:
    for one in made.checked:
        above = f", {one.above:,} above --max-overlap left out" if one.above else ""
        asked = _screen.plural(one.questions, "question")
        yield (
            f"held against {one.name} ({asked}): {one.equal:,} equal left out{above}; {N}-word runs in common: "
            f"{_screen.share(one.touched)} of the rows have one, {_screen.share(one.shared)} of all runs"
        )


def _left_out(made: Made) -> Table:
    table = _screen.table()
    table.add_column("left out")
    table.add_column("", justify="right", no_wrap=True)
    for why, count in made.found.left_out.items():
        table.add_row(_screen.text(why), _screen.count(count))
    if made.beyond:
        table.add_row("rows beyond --max-examples or --max-tokens", _screen.count(made.beyond))
    return table


def _length_table(found: Facts) -> Table:
    table = _screen.table()
    table.add_column("length of replies")
    for head in ("mean", "least", "1/4", "median", "3/4", "greatest"):
        table.add_column(head, justify="right", no_wrap=True)
    for unit, lengths in (("words", found.words), ("tokens", found.tokens)):
        for name, one in lengths.items():
            table.add_row(f"{name}, {unit}", f"{one.mean:.1f}", *(f"{end:g}" for end in one.quartiles))
    return table
