"""What `pluribus reward --demo` does: a council of three embedded models judges real replies, and makes real pairs.

Four embedded models answer, three judge. Everything is measured here; nothing is simulated. The models are tiny: what
is shown is that the machinery works and how it is read.
"""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from pluribus import cli
from pluribus.cli import _reward_facts, _reward_screen, _rewarder, _screen
from pluribus.cli._reward_facts import Facts
from pluribus.codec import plain
from pluribus.config import make_config
from pluribus.distilling import seat_of
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError
from pluribus.judge_config import JudgesConfig, make_judges
from pluribus.judging import CouncilReward, Rewarded, bench, reward_run
from pluribus.prefer import Accuracy, accuracy, preferences, rows
from pluribus.reports import rewards as charts
from pluribus.reports.drawing import plotting
from pluribus.reward import Item
from pluribus.run import prepare, run
from pluribus.store import Store
from pluribus.store.files import make_folder, write_line, writing
from pluribus.traffic import Tally
from pluribus.types import Label, Preference

TASK, QUESTIONS, DRAWS = "logic", 140, 2
"""Answers per question: two of each of the four members."""
JUDGES: Mapping[str, str] = {"teacher": "zoo/phi", "critic": "zoo/gemma", "diversity": "zoo/qwen"}
_TOKENS = 160
"""Longest reply; the models' own take about 50."""


def council() -> JudgesConfig:
    """The three judges; the weights are those of the roles."""
    judges = [{"role": role, "model": model, "max_tokens": _TOKENS} for role, model in JUDGES.items()]
    return make_judges({"judges": judges}, "demo")


def go(out: Path, home: Path | None, *, json: bool, questions: int = QUESTIONS) -> int:
    """Answers, judges, pairs; data in `out/data`, charts in `out`."""
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file", hint="name a folder for the rewards and the charts")
    plotting()
    data = make_folder(out / "data")
    console = _screen.err() if json else _screen.out()
    begun, tally = time.monotonic(), Tally()
    with Store.open(home) as store:
        found = _rewarded(store, questions, tally, console)
        rights = _reward_facts.rights(store, found)
    known = _reward_facts.facts(found, rights)
    every, kept = _pairs(found, rights, None), _pairs(found, rights, found.config.threshold)
    paths = _write(out, data, found, known, rights, kept)
    took_s = time.monotonic() - begun
    _reward_screen.after(console, found, known, tally, took_s)
    console.print()
    for line in (*_worth(every, kept, rights, found.config), _REMARK):
        console.print(_screen.text(line), soft_wrap=True)
    _reward_screen.written(console, paths, None)
    if json:
        worth = {
            name: {"n": len(some), **asdict(accuracy(some, rights, seed=found.config.seed))}
            for name, some in (("before_filter", every), ("after_filter", kept))
        }
        print(jsonlib.dumps(_object(found, known, worth, tally, paths, took_s), ensure_ascii=False, indent=2))
    return cli.OK


_REMARK = "These are tiny models of this project's own; the numbers support no sentence about large models."


def _rewarded(store: Store, questions: int, tally: Tally, console: Console) -> Rewarded:
    answering = make_config(
        {
            "task": TASK, "split": "test", "limit": questions, "method": "vote", "num_agents": 4 * DRAWS,
            "models": ["zoo/gemma", "zoo/olmo", "zoo/phi", "zoo/qwen"], "sampling": {"max_tokens": _TOKENS},
        },
        "demo",
    )  # fmt: skip
    console.print(_screen.line(f"four embedded models answer {questions} questions of {TASK}, twice each …", "dim"))
    answered = run(prepare(answering), store)
    config = council()
    names = ", ".join(f"{role} {model} ({one.weight:g})" for (role, model), one in
                      zip(JUDGES.items(), bench(config).judges, strict=True))  # fmt: skip
    console.print(_screen.line(f"three judge the replies, each in calls of its own: {names} …", "dim"))
    return block(reward_run(store, answered.id, config, tally=tally))


# --- pairs -----------------------------------------------------------------------------------------------------------


def _pairs(found: Rewarded, rights: Mapping[Item, bool | None], most: float | None) -> tuple[Preference, ...]:
    """The pair of each question with the largest margin, and the next; those that agree well enough."""
    replies = [(part.question, part.candidates) for part in found.asked]
    labels = [Label(id, turn, right, checker="key") for (id, turn), right in rights.items()]
    return preferences(
        replies,
        found.rewards,
        labels,
        by="reward",
        max_disagreement=most,
        per_question=2,
        reuse=True,
        seed=found.config.seed,
    ).pairs


def _worth(
    every: Sequence[Preference], kept: Sequence[Preference], rights: Mapping[Item, bool | None], config: JudgesConfig
) -> list[str]:
    before, after = (accuracy(pairs, rights, seed=config.seed) for pairs in (every, kept))
    return [
        f"preference pairs before the filter: {_judged(len(every), before)}",
        f"after it (disagreement at most {config.threshold:g}): {_judged(len(kept), after)}",
    ]


def _judged(n: int, known: Accuracy) -> str:
    def span(one: tuple[float, float, float] | None) -> str:
        return _screen.NOTHING if one is None else f"{one[0]:.3f} [{one[1]:.3f}, {one[2]:.3f}]"

    return (
        f"{n:,}; the chosen one right and the rejected one wrong {span(known.right)}, the other way round "
        f"{span(known.reversed)}, both alike {span(known.same)}"
    )


# --- files -----------------------------------------------------------------------------------------------------------


def _write(
    out: Path,
    data: Path,
    found: Rewarded,
    known: Facts,
    rights: Mapping[Item, bool | None],
    pairs: Sequence[Preference],
) -> list[Path]:
    """rewards, judgements, preferences and the rewarder in `data`; both charts in `out`."""
    lines = _rewarder.write_lines(data / "rewards.jsonl", found, rights)
    with writing(data / "judgements.jsonl") as file:
        for said in found.judgements:
            write_line(file, plain(said))
    with writing(data / "preferences.jsonl") as file:
        for row in _rows(found, pairs):
            write_line(file, row)
    CouncilReward.of(found).save(data / "rewarder.json")
    scores = _reward_facts.scores(found, known)
    drawn = _rewarder.draw_charts(out, charts.distribution(scores), charts.disagreement(scores))
    return [lines, data / "judgements.jsonl", data / "preferences.jsonl", data / "rewarder.json", *drawn]


def _rows(found: Rewarded, pairs: Sequence[Preference]) -> list[dict[str, Any]]:
    questions = {part.question.id: part.question for part in found.asked}
    seats = {
        (one.attempt_id, one.turn): seat_of(part.transcript, one.turn)
        for part in found.asked
        for one in part.candidates
    }
    return rows(
        pairs, questions, found.rewards, run=found.run,
        dialect_of=lambda side: seats[side.attempt_id, side.turn].dialect,
        model_of=lambda side: seats[side.attempt_id, side.turn].model,
    )  # fmt: skip


def _object(
    found: Rewarded,
    known: Facts,
    worth: Mapping[str, Any],
    tally: Tally,
    paths: Sequence[Path],
    took_s: float,
) -> dict[str, Any]:
    told = _rewarder.as_object(found, known, tally, paths, None)
    return {**told, "pairs": worth, "seconds": took_s, "remark": _REMARK}
