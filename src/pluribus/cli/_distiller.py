"""What `pluribus distil` does: stored runs to the rows of one view, and their file."""

from __future__ import annotations

import dataclasses
import json as jsonlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluribus import cli
from pluribus.backends import connect, parse
from pluribus.cli import _distilled, _embedding, _screen
from pluribus.cli._files import check_ours
from pluribus.cli._stores import reading
from pluribus.distilling import (
    VERL,
    Made,
    Source,
    Steps,
    Wishes,
    check_format,
    distil,
    formatted,
    is_ours,
    source,
    threshold_of,
    view_settings,
    write,
)
from pluribus.errors import ConfigError, UnknownName
from pluribus.load import load, names
from pluribus.steps import Cut


@dataclass(frozen=True, slots=True)
class Flags:
    view: str | None
    out: Path | None
    per_question: int | None
    corrective_weight: int | None
    near_duplicates: float | None
    embedder: str
    step_labels: Steps | None
    cut: Cut | None
    max_examples: int | None
    max_tokens: int | None
    tokenizer: str | None
    check_against: tuple[str, ...]
    max_overlap: float | None
    format: str
    seed: int


Count = Callable[[str], int] | None
"""How many tokens a text is; None: nobody counts."""
_OF_VIEWS = ("per_question", "corrective_weight", "near_duplicates", "cut")
"""Flags that are settings of some views."""


def go(runs: Sequence[str], flags: Flags, *, home: Path | None, json: bool) -> int:
    """Makes the rows, writes them, and says what they are."""
    out, wishes = _checked(runs, flags)
    count = _counter(flags.tokenizer)
    with ExitStack() as stack:
        places = [stack.enter_context(reading(run, home)) for run in dict.fromkeys(runs)]
        sources = [source(store, found, steps=flags.step_labels, cut=flags.cut or "auto") for store, found in places]
        progress = stack.enter_context(_embedding.embedding())
        embed = _embedding.one(flags.embedder, places[0][0], progress) if wishes.view == "da" else None
        made = distil(sources, _with_threshold(wishes, sources), embed=embed, count_tokens=count)
    write(formatted(made, flags.format), out, flags.format)
    _say(made, sources, flags, count, json=json)
    return cli.OK


def _say(made: Made, sources: Sequence[Source], flags: Flags, count: Count, *, json: bool) -> None:
    facts = _distilled.facts(made, [one.known.name for one in sources], count)
    if json:
        said = _distilled.as_object(made, facts, str(flags.out), flags.format, flags.seed)
        print(jsonlib.dumps(said, ensure_ascii=False, indent=2))
    else:
        _distilled.show(_screen.out(), made, facts, str(flags.out))


# --- what may be said ------------------------------------------------------------------------------------------------


def _checked(runs: Sequence[str], flags: Flags) -> tuple[Path, Wishes]:
    """What is wrong in itself, before anything is read."""
    if not runs:
        raise ConfigError("no run is named", hint="say: pluribus distil RUN --view rsft --out FILE")
    if flags.view is None:
        raise ConfigError("--view is missing", hint=f"say what to take: {', '.join(names('distil'))}")
    if flags.out is None:
        raise ConfigError("--out is missing", hint="say where the rows go: --out rows.jsonl")
    wishes = Wishes(
        flags.view, _settings(flags), flags.check_against, flags.max_overlap, flags.max_examples, flags.max_tokens,
        flags.seed,
    )  # fmt: skip
    view_settings(wishes)
    check_format(flags.view, flags.format)
    _check_limits(flags)
    _check_name(flags.out, flags.format)
    check_ours(flags.out, is_ours, "file of training rows")
    return flags.out, wishes


def _settings(flags: Flags) -> dict[str, Any]:
    """What was said of the view; ConfigError for what it has no use for."""
    known = {name: {one.name for one in dataclasses.fields(load("distil", name).Settings)} for name in names("distil")}
    if flags.view not in known:
        raise UnknownName("view", str(flags.view), known)
    said = {name: value for name in _OF_VIEWS if (value := getattr(flags, name)) is not None}
    for name, value in said.items():
        if name not in known[flags.view]:
            others = ", ".join(view for view, settings in known.items() if name in settings)
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} {value} does nothing with --view {flags.view}", hint=f"it is for {others}")
    if flags.step_labels is not None and flags.view != "steps":
        raise ConfigError(f"--step-labels {flags.step_labels} does nothing with --view {flags.view}", hint="drop it")
    return said


def _check_limits(flags: Flags) -> None:
    for flag, value in (("--max-examples", flags.max_examples), ("--max-tokens", flags.max_tokens)):
        if value is not None and value < 1:
            raise ConfigError(f"{flag} is {value}", hint="expected 1 or more")
    if flags.max_tokens is not None and flags.tokenizer is None:
        raise ConfigError(f"--max-tokens {flags.max_tokens} counts tokens", hint="say whose: --tokenizer MODEL")
    if flags.max_overlap is not None and not 0 <= flags.max_overlap <= 1:  # NaN is not either
        raise ConfigError(f"--max-overlap is {flags.max_overlap:g}", hint="expected a share from 0 to 1")


def _check_name(out: Path, format: str) -> None:
    parquet = out.suffix == ".parquet"
    if (format == VERL) != parquet:
        what = "Parquet: name the file .parquet" if format == VERL else "JSON lines: name the file .jsonl"
        raise ConfigError(f"--out {out} with --format {format}", hint=f"it writes {what}")


def _counter(model: str | None) -> Count:
    if model is None:
        return None
    counter: Callable[[str], int] | None = getattr(connect(parse(model)), "count_tokens", None)
    if counter is None:
        raise ConfigError(
            f"--tokenizer {model}: this service counts no tokens here", hint="name a model that runs here: local/FOLDER"
        )
    return counter


def _with_threshold(wishes: Wishes, sources: Sequence[Source]) -> Wishes:
    """By reward, pairs keep to the council's own limit of disagreement, as in `pluribus prefer`."""
    limits = [limit for one in sources if (limit := threshold_of(one.known.rewarded)) is not None]
    if wishes.view != "preferences" or not limits:
        return wishes
    return dataclasses.replace(wishes, settings={**wishes.settings, "max_disagreement": min(limits)})
