"""What `pluribus analyze` does: panels in, tables out."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pluribus import cli
from pluribus.analyze import (
    AgentRow,
    Analysis,
    FileRow,
    MoveRow,
    QuestionRow,
    RobustnessRow,
    RoundRow,
    analyze,
    mode_of,
    robustness,
)
from pluribus.cli import _screen
from pluribus.cli._embedding import embedding, opened
from pluribus.cli._panels import distinct, panels
from pluribus.store import Store
from pluribus.store.files import make_folder
from pluribus.tables import write_tables

_NAMES = 48
"""Columns of a name at most."""
_PARTS, _UNBOUNDED = 4, 1_000
_DETAILED = 3
"""Up to so many runs are printed in full; more are a line each."""
KINDS: Mapping[str, type] = {
    "file_summary": FileRow, "round_table": RoundRow, "question_table": QuestionRow, "agent_table": AgentRow,
    "move_table": MoveRow, "robustness": RobustnessRow,
}  # fmt: skip
"""Table → what a row of it is."""


def measure(
    runs: Sequence[str],
    mode: str,
    embedders: Sequence[str],
    *,
    text: Literal["concat", "last"],
    union: bool,
    sample: int | None,
    output_dir: Path | None,
    json: bool,
    home: Path | None,
) -> int:
    """Measures the runs under each embedder, writes the tables and prints what is in them."""
    kind = mode_of(mode)
    found = distinct(panels(runs, home))
    with Store.open(home) as store, embedding() as progress:
        folder = output_dir or store.path.parent / "analysis" / _folder_name([panel.name for panel in found])
        chosen = opened(embedders, store, progress)
        make_folder(folder)
        by_embedder = {
            embed.name: [
                analyze(panel, embed, embedder=embed.name, mode=kind, text=text, union=union, sample=sample)
                for panel in found
            ]
            for embed in chosen
        }
    alike = robustness(by_embedder)
    paths = _write(folder, by_embedder, alike)
    remarks = [
        f"{e.name}: {_screen.plural(e.windowed, 'long text')} read in several windows" for e in chosen if e.windowed
    ]
    for remark in remarks:
        _remark(remark)
    if json:
        print(jsonlib.dumps(_object(by_embedder, alike, paths), ensure_ascii=False, indent=2))
    else:
        _print(by_embedder, alike, folder, paths)
    return cli.OK


def _folder_name(names: Sequence[str]) -> str:
    """
    >>> _folder_name(["vote-gsm8k-1a"]), _folder_name(["a b/c", "d", "e"])
    ('vote-gsm8k-1a', 'a-b-c+2')
    """
    more = f"+{len(names) - 1}" if len(names) > 1 else ""
    return re.sub(r"[^\w.=+-]+", "-", names[0]).strip("-")[:80] + more if names else "nothing"


def _remark(words: str) -> None:
    _screen.err().print(_screen.text(words, style="dim"), soft_wrap=True)


# --- tables ----------------------------------------------------------------------------------------------------------


def _write(folder: Path, by_embedder: Mapping[str, Sequence[Analysis]], alike: Sequence[RobustnessRow]) -> list[Path]:
    """One folder of tables; with several embedders a folder each, and how they agree above them."""
    if len(by_embedder) == 1:
        (found,) = by_embedder.values()
        return write_tables(folder, tables(found), kinds=KINDS, remark=_remark)
    parts = [
        write_tables(folder / _folder_name([name]), tables(found), kinds=KINDS) for name, found in by_embedder.items()
    ]
    above = write_tables(folder, {"robustness": alike}, kinds=KINDS, remark=_remark)
    return [path for part in [above, *parts] for path in part]


def tables(found: Sequence[Analysis]) -> dict[str, Sequence[Any]]:
    """Name of the table → the rows of all analyses; `move_table` only where there is a second round."""
    whole: dict[str, Sequence[Any]] = {
        "file_summary": [one.file for one in found],
        "round_table": [row for one in found for row in one.rounds],
        "question_table": [row for one in found for row in one.questions],
        "agent_table": [row for one in found for row in one.agents],
    }
    if any(one.file.n_rounds > 1 for one in found):
        whole["move_table"] = [row for one in found for row in one.moves]
    return whole


def _object(
    by_embedder: Mapping[str, Sequence[Analysis]], alike: Sequence[RobustnessRow], paths: Sequence[Path]
) -> dict[str, Any]:
    """Everything but the questions, which are in their table."""
    runs = [
        {
            **asdict(one.file),
            "rounds": [asdict(row) for row in one.rounds],
            "agents": [asdict(row) for row in one.agents],
            "moves": [asdict(row) for row in one.moves],
            "omitted": dict(one.omitted),
        }
        for found in by_embedder.values()
        for one in found
    ]
    return {"runs": runs, "robustness": [asdict(row) for row in alike], "tables": [str(path) for path in paths]}


# --- on the screen ---------------------------------------------------------------------------------------------------


def _print(
    by_embedder: Mapping[str, Sequence[Analysis]],
    alike: Sequence[RobustnessRow],
    folder: Path,
    paths: Sequence[Path],
) -> None:
    console = _screen.out()
    every = [one for found in by_embedder.values() for one in found]
    short = len(by_embedder) > 1 or len(every) > _DETAILED
    for part in _lines(every, console) if short else _detailed(every, console):
        console.print(part)
        console.print()
    for one in next(iter(by_embedder.values())):
        if one.omitted:
            console.print(_screen.text(left_out(one), style="yellow"), soft_wrap=not console.is_terminal)
    if alike:
        console.print()
        console.print(_robust(alike))
        console.print()
    kinds = "CSV and Parquet" if any(path.suffix == ".parquet" for path in paths) else "CSV"
    console.print(_screen.text(f"tables ({kinds}): {folder}", style="dim"), soft_wrap=True)


def _detailed(found: Sequence[Analysis], console: Console) -> Iterator[RenderableType]:
    for one in found:
        yield _facts(one)
        if one.rounds:
            yield from _round_tables(one, console)
        if one.agents:
            yield from _agent_tables(one, console)


def _facts(one: Analysis) -> Table:
    file = one.file
    grid = _screen.grid()
    grid.add_row("run", _screen.text(file.file, style="bold"))
    grid.add_row("what", _screen.text(_what(file)))
    grid.add_row("K*", _kstar(file))
    grid.add_row("accuracy", _accuracy(file))
    if file.beta is not None:
        grid.add_row("all wrong", _beta(file))
    if file.error_correlation is not None:
        grid.add_row("errors", _errors(file))
    if file.kappa is not None or file.rho_disagreement is not None:
        grid.add_row("answers", _answers(file))
    if one.moves:
        grid.add_row("moves", _moves(one))
    return grid


def _what(file: FileRow) -> str:
    parts = [file.task, file.method, _screen.plural(file.n_agents, "agent"), _screen.plural(file.n_rounds, "round")]
    parts += [_screen.plural(file.n_questions, "question"), f"embedder {file.embedder}"]
    return ", ".join(part for part in parts if part)


def _kstar(file: FileRow) -> str:
    if file.Nstar is None:
        return "no text to measure"
    ways = _number(file.Nstar)
    if file.n_rounds > 1:
        ways = f"{_number(file.Nstar_first)} in the first round, {ways} in the last"
    return f"{ways} ({file.mode}); {_number(file.Nstar_question)} of {file.n_agents} on the average question"


def _accuracy(file: FileRow) -> str:
    if file.accuracy is None:
        unknown = "unknown: no key" if file.n_questions else "unknown: no question was answered"
        return unknown if file.mean_member is None else f"members {_members(file)}"
    interval = _between(file.accuracy_low, file.accuracy_high)
    return f"{_screen.share(file.accuracy)} {interval}; members {_members(file)}"


def _members(file: FileRow) -> str:
    return f"{_screen.share(file.mean_member)} on average, {_screen.share(file.best_member)} the best"


def _beta(file: FileRow) -> str:
    bound = f"no choice among the answers exceeds {_screen.share(file.oracle)}"
    return f"{_screen.share(file.beta)} {_between(file.beta_low, file.beta_high)} of the questions: {bound}"


def _errors(file: FileRow) -> str:
    interval = _between(file.error_correlation_low, file.error_correlation_high)
    return f"correlation {_signed(file.error_correlation)} {interval}; double fault {_screen.share(file.double_fault)}"


def _answers(file: FileRow) -> str:
    with_accuracy = f"{_signed(file.rho_accuracy)} with accuracy (n {_screen.count(file.rho_accuracy_n)})"
    rho = f"{_signed(file.rho_disagreement)} with disagreement (n {_screen.count(file.rho_n)}), {with_accuracy}"
    return f"kappa {_signed(file.kappa)}; correlation of a question's K* {rho}"


def _moves(one: Analysis) -> str:
    over = [row for row in one.moves if row.speaker is not None]
    moved, stayed = sum(row.moved for row in over), sum(row.stayed or 0 for row in over)
    to_right, to_wrong = sum(row.wrong_to_right or 0 for row in over), sum(row.right_to_wrong or 0 for row in over)
    alone = sum(row.moved for row in one.moves if row.speaker is None)
    return (
        f"{moved:,.0f} to another's answer ({to_right:,.0f} from wrong to right, {to_wrong:,.0f} from right to wrong), "
        f"{alone:,.0f} to one nobody else had; {stayed:,.0f} times an agent that heard another answer stayed"
    )


_Cells = tuple[str | Text, ...]


def _fitted(
    console: Console, lead: Sequence[str], heads: Sequence[str], rows: Sequence[tuple[_Cells, _Cells]]
) -> list[Table]:
    """One table, or where it is too wide several with a part of the columns each; all begin with the leading ones."""
    for parts in range(1, _PARTS + 1):
        step = -(-len(heads) // parts)
        spans = [slice(start, start + step) for start in range(0, len(heads), step)]
        made = [_columns(lead, heads, rows, span) for span in spans]
        if all(_width(console, table) <= console.width for table in made):
            break
    return made


def _width(console: Console, table: Table) -> int:
    return console.measure(table, options=console.options.update(max_width=_UNBOUNDED)).maximum


def _columns(lead: Sequence[str], heads: Sequence[str], rows: Sequence[tuple[_Cells, _Cells]], part: slice) -> Table:
    table = _screen.table()
    for name in lead:
        table.add_column(name, min_width=len(name), max_width=_NAMES)
    for name in heads[part]:
        table.add_column(name, justify="right", no_wrap=True)
    for who, cells in rows:
        table.add_row(*who, *cells[part])
    return table


def _round_tables(one: Analysis, console: Console) -> list[Table]:
    heads = ("K*", "change", "centred", "agreement", "accuracy", "settled", "texts", "agents", "questions")
    rows: list[tuple[_Cells, _Cells]] = [
        (
            (str(row.round),),
            (
                _number(row.Nstar), _signed(row.delta), _number(row.Nstar_centred), _signed(row.agreement),
                _screen.share(row.acc), *(_screen.count(n) for n in (row.settled, row.n_texts)),
                *(_screen.count(n) for n in (row.n_agents, row.n_questions)),
            ),
        )
        for row in one.rounds
    ]  # fmt: skip
    return _fitted(console, ["round"], heads, rows)


def _agent_tables(one: Analysis, console: Console) -> list[Table]:
    heads = ("delta K*", "95 % interval", "accuracy", "95 % interval", "first answer", "calls", "tokens", "cost")
    rows: list[tuple[_Cells, _Cells]] = [
        (
            (_screen.cell(_who(row)),),
            (
                _signed(row.delta_Nstar), _between(row.low, row.high), _screen.share(row.accuracy),
                _between(row.accuracy_low, row.accuracy_high), _screen.share(row.accuracy_first),
                _screen.count(row.calls), _screen.large(row.tokens), _screen.usd(row.cost_usd),
            ),
        )
        for row in one.agents
    ]  # fmt: skip
    return _fitted(console, ["agent"], heads, rows)


def _who(row: AgentRow) -> str:
    parts = [row.agent, _screen.model(row.model), row.persona]
    return ", ".join(dict.fromkeys(part for part in parts if part))


def _lines(found: Sequence[Analysis], console: Console) -> list[Table]:
    """A line per run and embedder."""
    several = len({one.file.embedder for one in found}) > 1
    heads = ("agents", "questions", "K*", "per question", "accuracy", "best member", "all wrong", "error corr.")
    rows: list[tuple[_Cells, _Cells]] = [
        (
            (_screen.cell(file.file), *([_screen.cell(file.embedder)] if several else [])),
            (
                _screen.count(file.n_agents), _screen.count(file.n_questions), _number(file.Nstar),
                _number(file.Nstar_question), _screen.share(file.accuracy), _screen.share(file.best_member),
                _screen.share(file.beta), _signed(file.error_correlation),
            ),
        )
        for file in (one.file for one in found)
    ]  # fmt: skip
    return _fitted(console, ["run", "embedder"] if several else ["run"], heads, rows)


_MEASURES = {
    "Nstar": "of the last round, over runs",
    "Nstar_question": "of the average question, over runs",
    "questions": "of each question",
}


def _robust(alike: Sequence[RobustnessRow]) -> Table:
    table = _screen.table()
    for name in ("embedder", "and", "K*"):
        table.add_column(name)
    for name in ("rank correlation", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in alike:
        table.add_row(row.first, row.second, _MEASURES[row.measure], _signed(row.rho), _screen.count(row.n))
    return table


def left_out(one: Analysis) -> str:
    """What the measures had to leave out, in one line."""
    reasons = [f"{reason}: {count:,}" for reason, count in one.omitted.items()]
    return f"{one.file.file}: left out or unknown: {'; '.join(reasons)}"


def _number(value: float | None) -> str:
    """
    >>> _number(1.23456), _number(None)
    ('1.235', '–')
    """
    return _screen.NOTHING if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    """
    >>> _signed(0.5), _signed(-0.25), _signed(None)
    ('+0.500', '−0.250', '–')
    """
    return _screen.NOTHING if value is None else f"{value:+.3f}".replace("-", "−")


def _between(low: float | None, high: float | None) -> str:
    """
    >>> _between(-0.1, 0.2), _between(None, None)
    ('[−0.100, 0.200]', '–')
    """
    if low is None or high is None:
        return _screen.NOTHING
    return f"[{low:.3f}, {high:.3f}]".replace("-", "−")
