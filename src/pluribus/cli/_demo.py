"""What `pluribus demo` does: the whole walk on the embedded models, on a CPU, without key or network.

The best member is chosen on development questions; everything is then measured on the same test questions, councils
and controls at the same number of calls.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pluribus import cli, stats
from pluribus.cli import _demo_student, _screen
from pluribus.config import make_config
from pluribus.evaluate import Row
from pluribus.run import RunResult, prepare, run
from pluribus.store import Store
from pluribus.types import Question, Transcript
from pluribus.zoo import members

TASK = "sums"
CALLS = 8
"""Calls per question of every council and control."""
DEV_QUESTIONS = 120
"""At most; three for each test question."""
CONTEXT_TOKENS = 160
"""Longest reply of a zoo model; its solutions take about 50."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One line of the table."""

    title: str
    options: dict[str, Any] = field(default_factory=dict)


def go(questions: int, seed: int, home: Path | None) -> int:
    """Runs every arm, prints the table, one debate, and what was learned."""
    console = _screen.out()
    started = time.perf_counter()
    with Store.open(home) as store:
        dev = min(DEV_QUESTIONS, 3 * questions)
        best = _best_member(store, dev, seed, console)
        console.print(
            f"\nThe best member on {dev} development questions is [bold]{best}[/]. "
            f"Now {questions} test questions, everybody the same ones:\n"
        )
        arms = _arms(best)
        results = [_go(store, arm, "test", questions, seed, console) for arm in arms]
        alone = next(r for arm, r in zip(arms, results, strict=True) if arm.title == _alone(best))
        console.print(_table(arms, results, alone))
        console.print(_reading(arms, results, alone))
        _show_debate(store, results[-1], console)
        before = next(r for arm, r in zip(arms, results, strict=True) if arm.title == _alone(_demo_student.STUDENT))

        def ask(title: str, split: str, limit: int, options: dict[str, object]) -> RunResult:
            return _go(store, Arm(title, options), split, limit, seed, console)

        folder = Store.file(home).parent / "demo"
        console.print(_demo_student.go(store, folder, console, ask, before, questions, seed))
        names = ", ".join(result.name for result in results[-2:])
    seconds = time.perf_counter() - started
    console.print(f"\n{seconds:.0f} s. Everything is stored: `pluribus show RUN`, e.g. {names}.")
    return cli.OK


def _alone(member: str) -> str:
    return f"{member} alone"


def _arms(best: str) -> list[Arm]:
    everybody = [f"zoo/{name}" for name in members()]
    debate = {"method": "debate", "models": everybody, "settings": {"debate_rounds": 1}, "num_agents": 4}
    alone = [Arm(_alone(n), {"method": "single", "models": [f"zoo/{n}"]}) for n in members()]
    return [
        *alone,
        Arm(f"{best} self-consistency", {
            "method": "self_consistency", "models": [f"zoo/{best}"], "settings": {"parallel_num": CALLS},
        }),
        Arm(f"{best} × {CALLS} personas, vote", {
            "method": "vote", "models": [f"zoo/{best}"], "num_agents": CALLS, "personas": "mathematics",
        }),
        Arm("four members, vote", {"method": "vote", "models": everybody, "num_agents": 4}),
        Arm("four members × 2, vote", {"method": "vote", "models": everybody, "num_agents": CALLS}),
        *(
            Arm(f"four members, debate {topology}", debate | {"settings": {"debate_rounds": 1, "topology": topology}})
            for topology in ("centralized", "sparse", "decentralized")
        ),
    ]  # fmt: skip


def _best_member(store: Store, questions: int, seed: int, console: Console) -> str:
    arms = {n: Arm(f"{n} (development)", {"method": "single", "models": [f"zoo/{n}"]}) for n in members()}
    values = {n: _go(store, arm, "dev", questions, seed, console).score.value or 0.0 for n, arm in arms.items()}
    return max(values, key=lambda name: values[name])


def _go(store: Store, arm: Arm, split: str, limit: int, seed: int, console: Console) -> RunResult:
    said = {"task": TASK, "split": split, "limit": limit, "seed": seed, "sampling": {"max_tokens": CONTEXT_TOKENS}}
    started = time.perf_counter()
    with console.status(arm.title):
        result = run(prepare(make_config({**said, **arm.options}, "demo")), store)
    console.print(f"[dim]{arm.title}: {result.score.calls:,} calls, {time.perf_counter() - started:.1f} s[/]")
    return result


def _table(arms: Sequence[Arm], results: Sequence[RunResult], alone: RunResult) -> Table:
    table = Table(title=f"{TASK} test, {alone.asked} questions", title_justify="left")
    for name, justify in [("who", "left"), ("calls", "right"), ("tokens", "right"), ("accuracy", "right"),
                          ("95 % interval", "right"), ("against the best alone", "right"), ("p", "right")]:  # fmt: skip
        table.add_column(name, justify=justify)  # type: ignore[arg-type]  # a list widens the literal
    for arm, result in zip(arms, results, strict=True):
        table.add_row(arm.title, *_cells(result, alone))
    table.caption = "calls and tokens per question; difference in points with its 95 % interval; p: exact McNemar"
    return table


def _cells(result: RunResult, alone: RunResult) -> list[str]:
    score, n = result.score, max(result.asked, 1)
    if score.value is None or score.interval is None:
        return ["-"] * 6
    low, high = score.interval
    cells = [f"{score.calls / n:.0f}", f"{(score.tokens or 0) / n:.0f}", f"{score.value:.3f}", f"{low:.3f}–{high:.3f}"]
    if result is alone:
        return [*cells, "", ""]
    ours, theirs = _paired(result.rows, alone.rows)
    gain = stats.paired_bootstrap(ours, theirs, seed=0)
    test = stats.mcnemar([x == 1 for x in ours], [x == 1 for x in theirs])
    points = f"{100 * gain.value:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
    return [*cells, points, f"{test.p:.3f}" if test.p >= 0.001 else "<0.001"]


def _paired(a: Sequence[Row], b: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Credits on the questions on which neither failed."""
    others = {row.question_id: row.credit for row in b}
    pairs = [(row.credit, others.get(row.question_id)) for row in a]
    both = [(x, y) for x, y in pairs if x is not None and y is not None]
    return [x for x, _ in both], [y for _, y in both]


def _reading(arms: Sequence[Arm], results: Sequence[RunResult], alone: RunResult) -> Text:
    """What the table says at equal calls, in words."""
    control = next(r for arm, r in zip(arms, results, strict=True) if "self-consistency" in arm.title)
    council = next(r for arm, r in zip(arms, results, strict=True) if arm.title == "four members × 2, vote")
    ours, theirs = _paired(council.rows, control.rows)
    gain = stats.paired_bootstrap(ours, theirs, seed=0)
    points = f"{100 * gain.value:+.1f} points [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
    verdict = "pays" if gain.low > 0 else "does not pay" if gain.high <= 0 else "is not shown to pay"
    return Text(
        f"\nAt {CALLS} calls a question, the vote of the four members {verdict} against the best member's "
        f"self-consistency: {points}. These are tiny models; the numbers say nothing about large ones.\n"
    )


def _show_debate(store: Store, result: RunResult, console: Console) -> None:
    """The first question on which the debate turned a wrong first vote into a right decision."""
    row = next((r for r in result.rows if _turned(r)), result.rows[0])
    transcript = store.get_transcript(row.attempt_id)
    question, key = store.questions([row.question_id])[row.question_id]
    if transcript is None:
        return
    console.print(_debate_panel(question, key.answer if key else None, transcript, row))


def _turned(row: Row) -> bool:
    first = row.rounds[0] if row.rounds else ()
    right = sum(mark is not None and mark.correct == 1 for mark in row.seats)
    return row.credit == 1 and 0 < right < len(first) / 2


def _debate_panel(question: Question, key: str | None, transcript: Transcript, row: Row) -> Panel:
    text = _screen.text(f"{question.text}\n")
    last = -1
    for turn in transcript.turns:
        if turn.round != last:
            last = turn.round
            text.append(f"\nround {last}{', after reading the others' if last else ', alone'}\n", style="bold")
        answer = row.rounds[turn.round][turn.seat]
        said = " ".join(turn.text.split()) if turn.ok else "failed"
        style = "green" if answer == key else "red"
        text.append(f"  {transcript.attempt.agents[turn.seat].model:<12} ", style="dim")
        text.append(f"{said}\n", style=style)
    text.append(f"\ndecision: {row.answer}   key: {key}", style="bold")
    return Panel(text, title="one debate, round by round", title_align="left")
