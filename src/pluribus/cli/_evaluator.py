"""What `pluribus evaluate` does: subjects → sheets, asked where they have to be → measures, comparisons, tables."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pluribus import cli
from pluribus.cli import _evaluated_screen, _layers, _screen
from pluribus.cli._embedding import split
from pluribus.cli._evaluated_subjects import Entry, Named, Wishes, entries, identified
from pluribus.cli._flags import said
from pluribus.cli._progress import Watch
from pluribus.embedders import open_embedder
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError, MissingDependency, UnknownName
from pluribus.evaluating import (
    Against,
    Answered,
    Measured,
    Sheet,
    Similarity,
    Totals,
    Value,
    adjusted,
    against,
    check_metrics,
    check_shared,
    measured,
    of_run,
    similarities,
    spelled,
    totals,
    usual_metrics,
    value,
)
from pluribus.metrics.rouge import Stem
from pluribus.run import Pool, Prepared, execute, make_budget
from pluribus.store import Store
from pluribus.store.files import make_folder, whole
from pluribus.tables import write_tables

NOBODY = "none"
"""`--baseline none`: nothing is compared."""
_EMBEDDER = "minilm"


@dataclass(frozen=True, slots=True)
class Measures:
    """What is measured, and how."""

    metrics: tuple[str, ...]
    """Empty: by the kind of the questions."""
    ks: tuple[int, ...]
    baseline: str | None
    embedder: str | None
    idf: bool
    stem: bool
    seed: int


def make_measures(
    metrics: str | None, ks: str | None, baseline: str | None, embedder: str | None, *, idf: bool, stem: bool, seed: int
) -> Measures:
    """The flags, checked: names of metrics, and numbers of samples, with commas between."""
    names = [name.strip() for name in (metrics or "").split(",") if name.strip()]
    if metrics is not None and not names:
        raise ConfigError("--metrics names none", hint="leave it out for the usual ones")
    numbers = [part.strip() for part in (ks or "").split(",") if part.strip()]
    wrong = next((part for part in numbers if not part.isdecimal() or not int(part)), None)
    if wrong is not None:
        raise ConfigError(f"--k holds {wrong!r}", hint="expected samples from 1, such as --k 1,5")
    wanted = tuple(sorted({int(part) for part in numbers}))
    return Measures(check_metrics(names), wanted, baseline, embedder, idf, stem, seed)


@dataclass(frozen=True, slots=True)
class Line:
    """One sheet, measured."""

    entry: Entry
    sheet: Sheet
    totals: Totals
    values: dict[str, Value]
    found: dict[str, Measured]
    """Metric → question id → what was measured of it."""


@dataclass(slots=True)
class Evaluated:
    """Everything that is shown and written."""

    lines: list[Line]
    comparisons: list[Against]
    metrics: tuple[str, ...]
    baseline: str | None
    embedder: str | None
    """Of BERTScore; None: it was not measured."""
    seed: int
    stopped: str | None = None
    """Why not all was asked."""
    remarks: list[str] = field(default_factory=list)


def go(subjects: Sequence[str], wishes: Wishes, measures: Measures, out: Path | None, *, json: bool) -> int:
    """Asks what has to be asked, measures everything, shows and writes it; the exit code."""
    if not subjects:
        raise ConfigError("no subject is named", hint="say: pluribus evaluate MODEL|COUNCIL.yaml|RUN|FILE.jsonl")
    if wishes.samples < 1:
        raise ConfigError(f"--samples is {wishes.samples}", hint="expected 1 or more")
    folder = make_folder(out) if out is not None else None
    found = identified(subjects, wishes.home)
    told = entries(found, wishes)
    base = _baseline(measures.baseline, found)
    _check_ks(measures, told, wishes)
    if base is not None:
        _check_common(told, base)
    try:
        sheets, stopped = _asked(told, wishes)
    except KeyboardInterrupt:
        print("pluribus: interrupted; what was answered is stored; go on with the same command", file=sys.stderr)
        return cli.INTERRUPTED
    evaluated = _measured(sheets, base, measures, stopped)
    _evaluated_screen.show(_screen.err() if json else _screen.out(), evaluated)
    if folder is not None:
        _write(folder, evaluated)
    if json:
        print(jsonlib.dumps(as_object(evaluated), ensure_ascii=False, indent=2))
    failed = any(row.failed for line in evaluated.lines for row in line.sheet.rows if line.sheet.kind != "file")
    return cli.BUDGET if stopped else cli.FAILED if failed else cli.OK


def _baseline(wanted: str | None, found: Sequence[Named]) -> Named | None:
    """Against whom; None: nobody."""
    if wanted == NOBODY:
        return None
    if wanted is None:
        return found[0]
    by_name = {named.name: named for named in found}
    if wanted not in by_name:
        raise UnknownName("baseline", wanted, [*by_name, NOBODY])
    return by_name[wanted]


def _check_ks(measures: Measures, told: Sequence[Entry], wishes: Wishes) -> None:
    """A k that no subject can have is found before anybody is asked; a council may give any number of answers."""
    at = [int(name.partition("@")[2]) for name in measures.metrics if "@" in name and not name.endswith("@k")]
    ks = [*measures.ks, *at]
    if not ks or any(entry.named.kind == "council" for entry in told):
        return
    entry = max(told, key=lambda one: _samples(one, wishes))
    if max(ks) > (number := _samples(entry, wishes)):
        raise ConfigError(
            f"--k {max(ks)} is larger than the samples: {entry.named.name} has {number} per question",
            hint=f"say a k up to {number}, or ask a model more often with --samples {max(ks)}",
        )


def _samples(entry: Entry, wishes: Wishes) -> int:
    return entry.part.samples if isinstance(entry.part, Sheet) else wishes.samples


def _check_common(told: Sequence[Entry], base: Named) -> None:
    for task, own in _by_task(told).items():
        first = _base_of(own, base)
        for entry in own:
            if entry is not first and entry.ids.isdisjoint(first.ids):
                check_shared(_named_sheet(entry, task), _named_sheet(first, task))


def _named_sheet(entry: Entry, task: str) -> Sheet:
    if isinstance(entry.part, Sheet):
        return entry.part
    rows = tuple(Answered(question, key, None, None, None) for question, key in entry.part.task.pairs)
    return Sheet(entry.named.name, entry.named.kind, "", task, rows)


def _by_task(told: Sequence[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in told:
        found.setdefault(entry.task, []).append(entry)
    return found


def _base_of(own: Sequence[Entry], base: Named) -> Entry:
    """The baseline's entry of a task; where it has none, the first."""
    return next((entry for entry in own if entry.named is base), own[0])


# --- asking ----------------------------------------------------------------------------------------------------------


def _asked(told: Sequence[Entry], wishes: Wishes) -> tuple[list[tuple[Entry, Sheet]], str | None]:
    """A sheet for every entry, in order, and why not all was asked."""
    if all(isinstance(entry.part, Sheet) for entry in told):
        return [(entry, entry.part) for entry in told if isinstance(entry.part, Sheet)], None
    with Store.open(wishes.home) as store:
        return block(_ask(told, wishes, store))


async def _ask(told: Sequence[Entry], wishes: Wishes, store: Store) -> tuple[list[tuple[Entry, Sheet]], str | None]:
    """One after the other, in one pool: a model's weights are loaded once, and the flags' budget is that of all."""
    shared = Pool(make_budget(_layers.make(None, limits=wishes.limits).budget))
    budgeted = any(name.startswith("budget_") for name in said(wishes.limits))
    sheets: list[tuple[Entry, Sheet]] = []
    stopped: str | None = None
    try:
        for entry in told:
            if isinstance(entry.part, Prepared):
                _check(entry.part, store, shared)
        for entry in told:
            if isinstance(entry.part, Prepared):
                sheet, why = await _run(entry, entry.part, store, shared, budgeted)
                stopped = stopped or why
            else:
                sheet = entry.part
            sheets.append((entry, sheet))
    finally:
        await shared.close()
    return sheets, stopped


def _check(prepared: Prepared, store: Store, shared: Pool) -> None:
    """What can be known before anybody is asked: a model is there."""
    if _stored(prepared, store) < len(prepared.attempts):
        for spec in prepared.table.specs:
            getattr(shared.backend(spec), "context_length", None)  # one that runs here reads its configuration


def _stored(prepared: Prepared, store: Store) -> int:
    """Questions with an answer."""
    statuses = store.statuses([attempt.id for attempt in prepared.attempts])
    return sum(status != "failed" for status in statuses.values())


async def _run(
    entry: Entry, prepared: Prepared, store: Store, shared: Pool, budgeted: bool
) -> tuple[Sheet, str | None]:
    """A model or council, asked what is not stored yet."""
    stored = _stored(prepared, store)
    own = prepared.config.budget.model_dump(exclude_none=True) and not budgeted
    watch = Watch(len(prepared.attempts), stored)
    if stored < len(prepared.attempts):
        _remark(f"asking {entry.named.name} about {prepared.task.task}")
        await shared.keep(prepared.table.specs)
    with watch:
        result = await execute(prepared, store, progress=watch, tally=watch.tally, pool=None if own else shared)
    sheet = of_run(store, result.id, subject=entry.named.name, kind=entry.named.kind)
    return replace(sheet, task=prepared.task.task), result.stopped


# --- measuring -------------------------------------------------------------------------------------------------------


def _measured(
    sheets: Sequence[tuple[Entry, Sheet]], base: Named | None, measures: Measures, stopped: str | None
) -> Evaluated:
    tasks = list(dict.fromkeys(sheet.task for _, sheet in sheets))
    sheets = sorted(sheets, key=lambda pair: tasks.index(pair[1].task))
    answered = [sheet for _, sheet in sheets]
    wanted = measures.metrics or usual_metrics(answered)
    remarks = [f"{sheet.subject}: {remark}" for sheet in answered for remark in sheet.remarks]
    remarks += [said for sheet in answered if (said := _failures(sheet)) is not None]
    alike, embedder, remark = _similarity(wanted, measures)
    if alike is None:
        wanted = tuple(name for name in wanted if name != "bertscore")
    remarks += [remark] if remark else []
    metrics = spelled(wanted, measures.ks, max((sheet.samples for sheet in answered), default=1))
    stem = _stemmer() if measures.stem else None
    lines = [_line(entry, sheet, metrics, stem, alike, measures.seed) for entry, sheet in _distinct(sheets)]
    comparisons = _compared(lines, base, metrics, measures.seed) if base is not None else []
    used = embedder if any("bertscore" in line.values for line in lines) else None
    name = base.name if base is not None and comparisons else None
    return Evaluated(lines, comparisons, metrics, name, used, measures.seed, stopped, remarks)


def _failures(sheet: Sheet) -> str | None:
    """Why questions failed, by the first of them; what a file lacks is counted in the table."""
    reasons = [row.reason for row in sheet.rows if row.failed and row.reason] if sheet.kind != "file" else []
    return f"{sheet.subject}: {len(reasons):,} failed, the first: {reasons[0]}" if reasons else None


def _distinct(sheets: Sequence[tuple[Entry, Sheet]]) -> list[tuple[Entry, Sheet]]:
    """Subjects of one task under names that tell them apart."""
    names = [(sheet.task, sheet.subject) for _, sheet in sheets]
    return [
        (entry, sheet if names.count(name) == 1 else replace(sheet, subject=f"{sheet.subject} ({sheet.source})"))
        for (entry, sheet), name in zip(sheets, names, strict=True)
    ]


def _similarity(wanted: Sequence[str], measures: Measures) -> tuple[Similarity | None, str | None, str | None]:
    """BERTScore's measure, its embedder, and what to say of it; what was asked for by name must be there."""
    if "bertscore" not in wanted:
        return None, None, None
    names = split([measures.embedder or _EMBEDDER])
    if len(names) != 1:
        raise ConfigError(f"--embedder names {len(names)}: {', '.join(names)}", hint="name one")
    try:
        embed = open_embedder(names[0])
    except MissingDependency as error:
        if measures.metrics or measures.embedder:
            raise
        return None, None, f"without bertscore: {error}"
    remark = None if embed.contextual else f"bertscore: {embed.name} has no tokens in context, so words are matched"
    return similarities(embed, idf=measures.idf), embed.name, remark


def _stemmer() -> Stem:
    try:
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise ConfigError("--stem needs the package 'nltk'", hint="install it with: pip install nltk") from None
    stem: Stem = PorterStemmer().stem
    return stem


def _line(
    entry: Entry, sheet: Sheet, metrics: Sequence[str], stem: Stem | None, alike: Similarity | None, seed: int
) -> Line:
    found = {name: measured(sheet, name, stem=stem, similarity=alike) for name in metrics}
    values = {name: one for name in metrics if (one := value(sheet, name, found[name], seed=seed)) is not None}
    return Line(entry, sheet, totals(sheet), values, found)


def _compared(lines: Sequence[Line], base: Named, metrics: Sequence[str], seed: int) -> list[Against]:
    found: list[Against] = []
    for task in dict.fromkeys(line.sheet.task for line in lines):
        own = [line for line in lines if line.sheet.task == task]
        first = next((line for line in own if line.entry.named is base), own[0])
        for line in own:
            pairs = ((name, against(line.sheet, first.sheet, name, line.found[name], first.found[name], seed=seed))
                     for name in metrics if line is not first)  # fmt: skip
            found += [one for _, one in pairs if one is not None]
    return adjusted(found)


# --- as JSON and as files --------------------------------------------------------------------------------------------


def as_object(evaluated: Evaluated) -> dict[str, Any]:
    """For `--json` and results.json."""
    return {
        "metrics": list(evaluated.metrics),
        "baseline": evaluated.baseline,
        "embedder": evaluated.embedder,
        "seed": evaluated.seed,
        "stopped": evaluated.stopped,
        "remarks": evaluated.remarks,
        "scores": [_score(line) for line in evaluated.lines],
        "comparisons": [asdict(one) for one in evaluated.comparisons],
    }


def _score(line: Line) -> dict[str, Any]:
    sheet = line.sheet
    about = {"task": sheet.task, "subject": sheet.subject, "kind": sheet.kind, "source": sheet.source}
    values = {name: {k: v for k, v in asdict(one).items() if k != "metric"} for name, one in line.values.items()}
    return {**about, "samples": sheet.samples, **asdict(line.totals), "values": values}


def _write(folder: Path, evaluated: Evaluated) -> None:
    """table.csv, questions.csv (both as Parquet, too, where pyarrow is there) and results.json."""
    tables = {"table": _table_rows(evaluated), "questions": _question_rows(evaluated)}
    paths = write_tables(folder, tables, remark=_remark)
    with whole(folder / "results.json") as part:
        part.write_text(jsonlib.dumps(as_object(evaluated), ensure_ascii=False, indent=2) + "\n", "utf-8")
    for path in (*paths, folder / "results.json"):
        _remark(f"wrote {path}")


def _remark(words: str) -> None:
    _screen.err().print(_screen.line(words, "dim"), soft_wrap=True)


def _table_rows(evaluated: Evaluated) -> list[dict[str, Any]]:
    """One line per task, subject and metric, the comparison with the baseline beside it."""
    against = {(one.task, one.subject, one.metric): one for one in evaluated.comparisons}
    return [
        {
            "task": line.sheet.task, "subject": line.sheet.subject, "kind": line.sheet.kind, **asdict(one),
            **_beside(against.get((line.sheet.task, line.sheet.subject, name))),
            "asked": line.totals.n, "answered": line.totals.answered, "failed": line.totals.failed,
            "calls": line.totals.calls, "tokens_per_question": line.totals.tokens_per_question,
            "cost_usd": line.totals.cost_usd,
        }
        for line in evaluated.lines
        for name, one in line.values.items()
    ]  # fmt: skip


def _beside(one: Against | None) -> dict[str, Any]:
    names = ("baseline", "difference", "low", "high", "test", "p", "p_adjusted")
    found = {name: getattr(one, name) if one is not None else None for name in names}
    found["difference_low"], found["difference_high"] = found.pop("low"), found.pop("high")
    return found


def _question_rows(evaluated: Evaluated) -> list[dict[str, Any]]:
    return [
        {
            "task": line.sheet.task, "subject": line.sheet.subject, "question_id": row.question.id,
            "status": "failed" if row.failed else "answered" if row.answer is not None else "unanswered",
            "key": row.key.answer if row.key is not None else None, "answer": row.answer,
            "samples": len(row.samples), "confidence": row.confidence,
            **{name: line.found[name].get(row.question.id) for name in evaluated.metrics if name != "ece"},
            "calls": row.usage.calls if row.usage else None, "tokens": row.usage.tokens if row.usage else None,
            "cost_usd": row.usage.cost_usd if row.usage else None, "text": row.text, "reason": row.reason,
        }
        for line in evaluated.lines
        for row in line.sheet.rows
    ]  # fmt: skip
