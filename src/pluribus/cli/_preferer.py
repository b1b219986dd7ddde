"""What `pluribus prefer` does: a stored run to preference pairs, their report and the files."""

from __future__ import annotations

import json as jsonlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from pluribus import cli
from pluribus.cli import _screen
from pluribus.cli._files import check_place
from pluribus.cli._stores import reading
from pluribus.consensus.pairs import LengthBias
from pluribus.distilling import Known, known, label_source, seat_of, threshold_of
from pluribus.errors import ConfigError, DataError, UsageError
from pluribus.judge_config import judge_names, judge_weights
from pluribus.judges import Candidate
from pluribus.judging import stored_rewards
from pluribus.prefer import (
    Accuracy,
    By,
    Learn,
    Preferred,
    Weighed,
    accuracy,
    bases,
    held_out,
    learn_weights,
    preferences,
    quartiles,
    read_rows,
    rows,
)
from pluribus.rows import Row
from pluribus.store import Store
from pluribus.store.files import write_line, writing
from pluribus.types import Preference, Question, Seat, Side


@dataclass(frozen=True, slots=True)
class Wishes:
    by: By | None
    margin: float
    max_disagreement: float | None
    per_question: int
    reuse: bool
    similar: float | None
    weights: str | None
    split: float | None
    seed: int


@dataclass(frozen=True, slots=True)
class Made:
    """Pairs with all that is said about them."""

    by: By
    why: str
    """What else there is to go by, in words."""
    limit: float | None
    """Most disagreement."""
    material: Known
    """Its rewards with the weights in use."""
    found: Preferred
    unfiltered: tuple[Preference, ...]
    """What the same run gives without margin and disagreement."""
    held: frozenset[str]
    """Questions held out."""
    learned: Weighed | None
    notes: tuple[str, ...]


def go(run: str | None, out: Path | None, wishes: Wishes, *, home: Path | None, json: bool) -> int:
    """Makes the pairs, writes them, and says what they are worth."""
    if run is None:
        raise ConfigError("no run is named", hint="say: pluribus prefer RUN --out FILE")
    if out is None:
        raise ConfigError("--out is missing", hint="say where the pairs go: --out preferences.jsonl")
    _check(wishes)
    files = _files(out, wishes.split)
    for file in files.values():
        _check_free(file)
    with reading(run, home) as (store, found):
        material = known(store, found)
        made = _make(store, material, wishes)
    written = _written(made)
    for part, file in files.items():
        with writing(file) as target:
            for row in written[part]:
                write_line(target, row)
    if json:
        print(jsonlib.dumps(_object(made, files, written, wishes), ensure_ascii=False, indent=2))
    else:
        _print(_screen.out(), made, files, written, wishes)
    return cli.OK


# --- what may be said ------------------------------------------------------------------------------------------------


def _check(wishes: Wishes) -> None:
    _between("--margin", wishes.margin, 0, 1)
    if wishes.max_disagreement is not None:
        _between("--max-disagreement", wishes.max_disagreement, 0, 1)
    if wishes.per_question < 0:
        raise ConfigError(f"--pairs-per-question is {wishes.per_question}", hint="expected at least 1, or 0 for all")
    if wishes.similar is not None and not 0 < wishes.similar <= 1:
        raise ConfigError(f"--near-duplicates is {wishes.similar:g}", hint="expected a share above 0, at most 1")
    if wishes.split is not None and not 0 < wishes.split < 1:
        raise ConfigError(f"--split is {wishes.split:g}", hint="expected a share between 0 and 1, such as 0.1")


def _between(flag: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{flag} is {value:g}", hint=f"expected a number from {low} to {high}")


def _files(out: Path, split: float | None) -> dict[str, Path]:
    """Part → its file: `pairs.jsonl` alone, or `pairs.train.jsonl` beside `pairs.test.jsonl`."""
    if split is None:
        return {"all": out}
    ends = "".join(out.suffixes[-2:] if out.suffix == ".gz" else out.suffixes[-1:])
    stem = out.name.removesuffix(ends)
    return {part: out.with_name(f"{stem}.{part}{ends}") for part in ("train", "test")}


def _check_free(out: Path) -> None:
    """Nothing but older pairs, or an empty file, is written over: no run, no config, no device."""
    check_place(out, folder=False)
    if not out.exists() or not out.stat().st_size:
        return
    try:
        read_rows(out)
    except DataError:
        raise ConfigError(
            f"--out {out} is there already and is no preference file", hint="choose another file"
        ) from None


# --- pairs -----------------------------------------------------------------------------------------------------------


def _make(store: Store, material: Known, wishes: Wishes) -> Made:
    by, why = _basis(material, wishes.by)
    notes: list[str] = []
    held = _held_out(material, wishes)
    weights, learned = _weights(material, wishes, held)
    if weights is not None:
        material = replace(material, rewarded=stored_rewards(store, material.run, weights=weights))
    limit = _limit(material, wishes, by, notes)
    if learned and wishes.weights == "labels" and not held:
        notes.append("the weights were learned on these very questions, which flatters the accuracy; see --split")
    found = _preferences(material, wishes, by, wishes.margin, limit)
    if not found.pairs:
        raise _nothing(material, by, found)
    filtering = by != "human" and (wishes.margin or limit is not None)
    before = _preferences(material, wishes, by, 0.0, None).pairs if filtering else found.pairs
    return Made(by, why, limit, material, found, before, held, learned, tuple(notes))


def _basis(material: Known, by: By | None) -> tuple[By, str]:
    """What tells better from worse, and why that; ConfigError where the run has none of it."""
    found = bases(material.rewarded.rewards if material.rewarded else (), material.labels, material.verdicts)
    if by is None:
        if not found:
            raise ConfigError(
                f"run {material.name} has neither rewards, labels nor verdicts of people",
                hint=f"make some with: pluribus reward {material.name} --judges FILE, or pluribus label, or review",
            )
        others = [f"--by {each}" for each in found[1:]]
        return found[0], f"; {' or '.join(others)} is there too" if others else ""
    if not set(("reward", "label") if by == "both" else (by,)) <= set(found):
        raise _missing(material, by, "reward" in found)
    return by, ""


def _missing(material: Known, by: By, rewarded: bool) -> ConfigError:
    name = material.name
    if by == "human":
        return ConfigError(f"--by human: nobody has judged a pair of run {name}", hint=f"see: pluribus review {name}")
    if by == "label" or rewarded:
        return ConfigError(
            f"--by {by}: no reply of run {name} has a label",
            hint=f"take questions with keys, or label the replies with: pluribus label {name} --judge MODEL",
        )
    return ConfigError(
        f"--by {by}: run {name} has no rewards", hint=f"make them with: pluribus reward {name} --judges FILE"
    )


def _held_out(material: Known, wishes: Wishes) -> frozenset[str]:
    if wishes.split is None:
        return frozenset()
    return held_out(material.questions.values(), wishes.split, seed=wishes.seed)


def _weights(
    material: Known, wishes: Wishes, held: frozenset[str]
) -> tuple[Mapping[str, float] | None, Weighed | None]:
    """Other weights than the rewards were made with, or None; held-out questions teach nothing."""
    if wishes.weights is None:
        return None, None
    if material.rewarded is None:
        raise ConfigError(
            f"--weights {wishes.weights}: run {material.name} has no rewards",
            hint=f"make them with: pluribus reward {material.name} --judges FILE",
        )
    config = material.rewarded.config
    names = judge_names(config)
    if wishes.weights == "uniform":
        return dict.fromkeys(names, 1.0), None
    if wishes.weights == "config":
        return dict(zip(names, judge_weights(config), strict=True)), None
    how = cast(Learn, wishes.weights)
    learned = learn_weights(
        how, _replies(material, held), material.rewarded.rewards, material.labels, material.verdicts, seed=wishes.seed
    )
    return learned.weights, learned


def _limit(material: Known, wishes: Wishes, by: By, notes: list[str]) -> float | None:
    """Most disagreement: said, else by reward the council's threshold; one judge alone disagrees with nobody."""
    if wishes.max_disagreement is not None or by not in ("reward", "both") or material.rewarded is None:
        return wishes.max_disagreement
    limit = threshold_of(material.rewarded)
    if limit is None:
        notes.append("the rewards are one judge's: there is no disagreement to filter by")
    return limit


def _replies(material: Known, without: frozenset[str] = frozenset()) -> list[tuple[Question, Sequence[Candidate]]]:
    return [(part.question, part.candidates) for part in material.asked if part.question.id not in without]


def _preferences(material: Known, wishes: Wishes, by: By, margin: float, limit: float | None) -> Preferred:
    rewards = material.rewarded.rewards if material.rewarded else ()
    return preferences(
        _replies(material), rewards, material.labels, material.verdicts,
        by=by, margin=margin, max_disagreement=limit, per_question=wishes.per_question, reuse=wishes.reuse,
        similar=wishes.similar, seed=wishes.seed,
    )  # fmt: skip


def _nothing(material: Known, by: By, found: Preferred) -> UsageError:
    why = "; ".join(f"{reason}: {count:,}" for reason, count in found.dropped.items())
    return UsageError(
        f"run {material.name} gives no pair by {by} ({why or 'no question has two replies'})",
        hint="loosen --margin, --max-disagreement or --near-duplicates, or take another --by; where only one judge "
        "gave verdicts, judge again with: pluribus reward",
    )


def _written(made: Made) -> dict[str, list[Row]]:
    """Part → its lines."""
    material = made.material
    seats = {part.transcript.attempt.id: part.transcript for part in material.asked}

    def seat(side: Side) -> Seat:
        return seat_of(seats[side.attempt_id], side.turn)

    found = rows(
        made.found.pairs, material.questions, material.rewarded.rewards if material.rewarded else (),
        run=material.run, dialect_of=lambda side: seat(side).dialect, model_of=lambda side: seat(side).model,
    )  # fmt: skip
    if not made.held:
        return {"all": found}
    parts: dict[str, list[Row]] = {"train": [], "test": []}
    for row in found:
        parts["test" if row["question_id"] in made.held else "train"].append(row)
    for part, lines in parts.items():
        if not lines:
            raise ConfigError(f"--split leaves no pair in the {part} part", hint="take another share or --seed")
    return parts


def _lacking(made: Made, written: Mapping[str, Sequence[Row]]) -> dict[str, int]:
    """Column that some pairs have a value for, but not all → how many have none: it is left out of all."""
    there = set(next(iter(written.values()))[0])
    found = {}
    for column, value in _VALUES.items():
        lost = sum(value(pair) is None for pair in made.found.pairs)
        if column not in there and lost < len(made.found.pairs):
            found[column] = lost
    return found


_VALUES: Mapping[str, Callable[[Preference], object]] = {
    "chosen_reward": lambda pair: pair.chosen.reward,
    "rejected_reward": lambda pair: pair.rejected.reward,
    "margin": lambda pair: pair.margin,
    "disagreement": lambda pair: pair.disagreement,
    "chosen_correct": lambda pair: pair.chosen.correct,
    "rejected_correct": lambda pair: pair.rejected.correct,
}


# --- what is said ----------------------------------------------------------------------------------------------------


def _accuracies(made: Made, seed: int) -> dict[str, Accuracy]:
    """Which pairs → how they do against keys and tests; empty where nothing is known."""
    kept, right = made.found.pairs, made.material.right
    parts = {"before the filter": made.unfiltered} if made.unfiltered != kept else {}
    parts["kept"] = kept
    if made.held:
        parts["kept, held out"] = tuple(pair for pair in kept if pair.question_id in made.held)
    found = {name: accuracy(pairs, right, seed=seed) for name, pairs in parts.items()}
    return {name: one for name, one in found.items() if one.n}


def _object(made: Made, files: Mapping[str, Path], written: Mapping[str, Sequence[Row]], wishes: Wishes) -> Any:
    pairs, material = made.found.pairs, made.material
    return {
        "run": material.name,
        "id": material.run,
        "by": made.by,
        "questions": len(material.asked),
        "pairs": len(pairs),
        "sources": dict(Counter(pair.by for pair in pairs)),
        "labels": dict(_label_sources(material)),
        "dropped": dict(made.found.dropped),
        "filter": {"margin": wishes.margin, "max_disagreement": made.limit, "per_question": wishes.per_question},
        "margin": quartiles(pair.margin for pair in pairs),
        "disagreement": quartiles(pair.disagreement for pair in pairs),
        "accuracy": {name: asdict(one) for name, one in _accuracies(made, wishes.seed).items()},
        "length": asdict(made.found.length) if made.found.length else None,
        "weights": dict(material.rewarded.weights) if material.rewarded else None,
        "learned": asdict(made.learned) if made.learned else None,
        "seed": wishes.seed,
        "files": {part: {"file": str(file), "pairs": len(written[part])} for part, file in files.items()},
        "left_out": _lacking(made, written),
        "notes": [*made.notes, *_warnings(made)],
    }


def _label_sources(material: Known) -> Counter[str]:
    return Counter(label_source(one) for one in material.labels if one.correct is not None)


def _warnings(made: Made) -> Iterator[str]:
    found = made.found.length
    if found is not None and found.low > 0.5:
        yield (
            f"the chosen reply is the longer one in {found.share_longer:.0%} of the pairs, clearly more than half: a "
            "student of these pairs learns to be long; see docs/preferences.md"
        )


def _print(
    console: Console, made: Made, files: Mapping[str, Path], written: Mapping[str, Sequence[Row]], wishes: Wishes
) -> None:
    def say(line: str, style: str = "") -> None:
        console.print(_screen.text(line, style=style), soft_wrap=True)

    say(_basis_words(made))
    for line in _facts(made, wishes):
        say(line)
    for note in (*made.notes, *_warnings(made)):
        say(f"note: {note}", "yellow")
    for column, lost in _lacking(made, written).items():
        say(f"note: {column} is left out of the file: {_screen.plural(lost, 'pair')} would have none", "yellow")
    for table in (_dropped(made), _spread(made), _against_keys(made, wishes.seed)):
        if table.row_count:
            console.print()
            console.print(table)
    console.print()
    for part, file in files.items():
        say(f"written: {file}: {_screen.plural(len(written[part]), 'pair')}")
    first = next(iter(files.values()))
    say(f"one in full: pluribus prefer --trace {first}:1")


def _basis_words(made: Made) -> str:
    words = {
        "reward": "by the council's reward", "label": "by label",
        "both": "by label, where the reward agrees", "human": "by people's verdicts alone",
    }  # fmt: skip
    return f"{made.material.name}: pairs {words[made.by]}{made.why}"


def _facts(made: Made, wishes: Wishes) -> Iterator[str]:
    pairs, material = made.found.pairs, made.material
    sources = ", ".join(f"{count:,} by {name}" for name, count in Counter(pair.by for pair in pairs).items())
    asked = len({pair.question_id for pair in pairs})
    total = _screen.plural(len(material.asked), "question")
    yield f"{_screen.plural(len(pairs), 'pair')} from {asked:,} of {total}: {sources}"
    if made.by != "human":
        limit = "any" if made.limit is None else f"at most {made.limit:g}"
        yield f"filter: margin at least {wishes.margin:g}, disagreement {limit}"
    if material.labels and (told := _label_sources(material)):
        yield "labels: " + ", ".join(f"{count:,} by {name}" for name, count in told.items())
    if wishes.weights is not None and material.rewarded is not None:
        yield _weight_words(material.rewarded.weights, wishes.weights, made.learned)
    if made.found.length is not None:
        yield _length_words(made.found.length)


def _weight_words(weights: Mapping[str, float], how: str, learned: Weighed | None) -> str:
    said = ", ".join(f"{judge} {weight:.3f}" for judge, weight in weights.items())
    basis = f", learned from {_screen.plural(learned.pairs, 'pair')}" if learned else ""
    return f"weights ({how}{basis}): {said}"


def _length_words(found: LengthBias) -> str:
    tied = "" if found.correlation is None else f"; correlation with the margin {found.correlation:.2f}"
    return (
        f"length: the chosen reply is the longer one in {found.share_longer:.4f} "
        f"(95 %: {_screen.between((found.low, found.high))}), by {found.difference:+.1f} words in the mean{tied}"
    )


def _dropped(made: Made) -> Table:
    table = _screen.table()
    table.add_column("not taken")
    table.add_column("", justify="right", no_wrap=True)
    for why, count in made.found.dropped.items():
        table.add_row(_screen.text(why), _screen.count(count))
    return table


def _spread(made: Made) -> Table:
    table = _screen.table()
    table.add_column("of the pairs")
    for head in ("least", "1/4", "median", "3/4", "greatest"):
        table.add_column(head, justify="right", no_wrap=True)
    for name in ("margin", "disagreement"):
        known = quartiles(getattr(pair, name) for pair in made.found.pairs)
        if known:
            table.add_row(name, *(f"{value:.4f}" for value in known))
    return table


def _against_keys(made: Made, seed: int) -> Table:
    """Left out where the pairs are made by these very labels alone."""
    table = _screen.table()
    table.add_column("against the keys")
    table.add_column("")
    for head in ("pairs", "share", "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    if {pair.by for pair in made.found.pairs} == {"label"}:
        return table
    for name, one in _accuracies(made, seed).items():
        shares = {"only chosen right": one.right, "only rejected right": one.reversed, "same": one.same}
        for place, (what, span) in enumerate(shares.items()):
            first = (name, _screen.count(one.n)) if place == 0 else ("", "")
            table.add_row(first[0], what, first[1], *_span(span))
        if one.unknown:
            table.add_row("", "not known", _screen.count(one.unknown), "", "")
    return table


def _span(span: tuple[float, float, float] | None) -> tuple[str, str]:
    return (_screen.NOTHING, "") if span is None else (f"{span[0]:.4f}", _screen.between(span[1:]))
