"""What `pluribus reward` does: judges and a run to rewards, files, charts, and what is known of both."""

from __future__ import annotations

import dataclasses
import json as jsonlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from pluribus import cli
from pluribus.cli import _reward_facts, _reward_screen, _screen
from pluribus.cli._files import check_ours, check_place
from pluribus.cli._flags import LimitFlags, said
from pluribus.cli._progress import Watch
from pluribus.cli._reward_facts import Facts
from pluribus.cli._stores import is_export, reading
from pluribus.codec import content_id
from pluribus.config import read_config
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError, UsageError
from pluribus.judge_config import JudgesConfig, make_judges, read_judges
from pluribus.judging import REWARDER, Asked, Bench, CouncilReward, Rewarded, bench, candidates_of, reward_run
from pluribus.load import load
from pluribus.prefer import learn_weights
from pluribus.reports import rewards as charts
from pluribus.reports.drawing import draw, plotting
from pluribus.reports.plots import Plot
from pluribus.reward import Item, latest
from pluribus.sandbox import allowing, sandbox
from pluribus.store import Store
from pluribus.store.files import make_folder, whole, write_line, writing
from pluribus.traffic import Tally
from pluribus.types import Judgement, Label, Reward

ROLES = ("teacher", "critic", "diversity")
"""Of three `--judge` models, in their order."""


@dataclass(frozen=True, slots=True)
class Who:
    """The judges, as the flags say them."""

    file: Path | None
    models: Sequence[str]
    kind: str | None
    criteria: str | None
    samples: int | None
    normalise: str | None
    threshold: float | None
    max_rounds: int | None
    limits: LimitFlags

    def none(self) -> bool:
        return self.file is None and not self.models and self.kind is None


@dataclass(frozen=True, slots=True)
class How:
    """What is judged, and where it goes."""

    weights: str
    every: bool
    out: Path | None
    save: Path | None
    dry_run: bool
    demo: bool
    json: bool
    home: Path | None
    kept: bool = True
    """Whether the run is in a workspace, where the next command finds it; a file's rewards are in none."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A file of replies."""

    rewarder: Path | None
    prompt: str | None
    completion: str | None


@dataclass(frozen=True, slots=True)
class Door:
    """The service."""

    file: Path | None
    host: str | None
    port: int | None
    token: str | None


def go(run: str | None, who: Who, how: How, rows: Rows, door: Door) -> int:
    """One of: a service, the demo, the rows of a file, the replies of a run."""
    _check_flags(run, who, how, rows, door)
    if door.file is not None:
        return _serve(door, how)
    if how.demo:
        from pluribus.cli import _reward_demo

        return _reward_demo.go(how.out or Path("reward-demo"), how.home, json=how.json)
    if run is None and rows.rewarder is not None:
        raise UsageError(
            "--rewarder needs a file of rows",
            hint=f"say: pluribus reward ROWS.csv --rewarder {rows.rewarder} --out OUT.csv",
        )
    if run is None:
        raise UsageError("reward needs a run", hint="name one: pluribus reward RUN --judges FILE; or try --demo")
    if rows.rewarder is not None:
        from pluribus.cli import _reward_rows

        columns = _reward_rows.Columns(
            "prompt" if rows.prompt is None else rows.prompt,
            "completion" if rows.completion is None else rows.completion,
        )
        return _reward_rows.go(
            Path(run), rows.rewarder, columns, how.out, limits=who.limits, home=how.home, json=how.json
        )
    return _judge(run, who, how)


def _check_flags(run: str | None, who: Who, how: How, rows: Rows, door: Door) -> None:
    """A flag that would do nothing is refused."""
    modes = [
        ("--serve", door.file is not None), ("--demo", how.demo), ("--rewarder", rows.rewarder is not None),
    ]  # fmt: skip
    given = [name for name, on in modes if on]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} do not go together", hint="give one of them")
    if given and given[0] != "--rewarder" and run is not None:
        raise UsageError(f"{given[0]} takes no run, found {run!r}")
    alone = _judge_flags(who, how)
    if given and alone:
        raise UsageError(f"{alone[0]} can not be given with {given[0]}: it has its own judges")
    idle = [f"--{flag.replace('_', '-')}" for flag in said(who.limits)] + (["--out"] if door.file and how.out else [])
    if idle and (how.demo or door.file is not None):
        raise UsageError(f"{idle[0]} does nothing with {given[0]}", hint="drop it")
    _only_with(door.file, "--serve", {"--host": door.host, "--port": door.port, "--token": door.token})
    _only_with(rows.rewarder, "--rewarder", {"--prompt-column": rows.prompt, "--completion-column": rows.completion})


def _judge_flags(who: Who, how: How) -> list[str]:
    """Flags about judges that were given."""
    flags = {
        "--judges": who.file, "--judge": who.models, "--kind": who.kind, "--criteria": who.criteria,
        "--samples": who.samples, "--normalise": who.normalise, "--threshold": who.threshold,
        "--max-rounds": who.max_rounds, "--every": how.every, "--save": how.save, "--dry-run": how.dry_run,
    }  # fmt: skip
    weighed = ["--weights"] if how.weights != "config" else []
    return [name for name, value in flags.items() if value not in (None, [], False)] + weighed


def _only_with(mode: object, name: str, flags: Mapping[str, object]) -> None:
    idle = [flag for flag, value in flags.items() if value is not None]
    if mode is None and idle:
        raise UsageError(f"{idle[0]} says something about {name} only", hint=f"give {name} FILE, or drop it")


def _serve(door: Door, how: How) -> int:
    from pluribus.server.reward import serve

    assert door.file is not None
    flags = {"host": door.host, "port": door.port, "token": door.token}
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    serve(door.file, **given, home=Store.file(how.home).parent, ready=_served)
    return cli.OK


def _served(url: str) -> None:
    for line in (f"rewards at {url}/reward", "Ctrl-C ends it"):
        _screen.out().print(_screen.text(line), soft_wrap=True)


# --- the judges ------------------------------------------------------------------------------------------------------


def make(who: Who) -> JudgesConfig:
    """The file's judges, or those of the flags; flags over the file.

    Raises ConfigError, which names the file or the command line.
    """
    if who.none():
        raise ConfigError("no judges are named", hint="say --judges FILE.yaml, or --judge MODEL for each of them")
    if who.file is None:
        return make_judges(_over(_of_flags(who), who), "the command line")
    idle = [("--judge", who.models), ("--kind", who.kind), ("--samples", who.samples)]
    given = [name for name, value in idle if value not in (None, [])]
    if given:
        raise ConfigError(f"{given[0]} and --judges {who.file} both say who judges", hint="write it into the file")
    read_judges(who.file)
    return make_judges(_over(read_config(who.file, "a judges file"), who), "the command line")


def _of_flags(who: Who) -> dict[str, Any]:
    """One judge per model; a kind that asks no model is one judge."""
    shared: dict[str, Any] = {"kind": who.kind or "score"}
    if who.samples is not None:
        shared["settings"] = {"samples": who.samples}
    if not who.models:
        return {"judges": [shared]}
    if len(who.models) == len(ROLES):
        return {"judges": [{**shared, "model": m, "role": role} for m, role in zip(who.models, ROLES, strict=True)]}
    return {"judges": [{**shared, "model": model} for model in who.models]}


def _over(values: Mapping[str, Any], who: Who) -> dict[str, Any]:
    """Values with what the flags say in their place."""
    mine = {
        "criteria": who.criteria, "normalise": who.normalise, "threshold": who.threshold, "max_rounds": who.max_rounds,
    }  # fmt: skip
    limits = {name: value for name, value in said(who.limits).items() if name != "allow_code_execution"}
    budget = {name.removeprefix("budget_"): v for name, v in limits.items() if name.startswith("budget_")}
    plain = {name: value for name, value in limits.items() if not name.startswith("budget_")}
    merged = {**values, **{name: value for name, value in mine.items() if value is not None}, **plain}
    return merged | {"budget": {**(merged.get("budget") or {}), **budget}} if budget else merged


def _check_criteria(who: Who, sat: Bench) -> None:
    """Criteria that nobody reads are an error, not a silence."""
    if who.criteria is not None and not any(hasattr(one.settings, "criteria") for one in sat.judges):
        kinds = ", ".join(sorted({one.kind for one in sat.judges}))
        raise ConfigError(f"--criteria: judges of kind {kinds} read no criteria", hint="drop it, or take kind score")


# --- a run -----------------------------------------------------------------------------------------------------------


def _judge(run: str, who: Who, how: How) -> int:
    if Path(run).is_file() and not is_export(Path(run)) and Path(run).suffix in (".csv", ".jsonl", ".json"):
        raise UsageError(
            f"{run} is a file of rows, not a run", hint="reward its rows with --rewarder FILE, which --save wrote"
        )
    config = make(who)
    sat = bench(config)
    _check_criteria(who, sat)
    console = _screen.err() if how.json else _screen.out()
    with reading(run, how.home) as (store, name), allowing(_jail(who.limits)):
        stored = store.run(name)
        asked = candidates_of(store, stored.id, every=how.every)
        if not any(one.candidates for one in asked):
            raise ConfigError(f"run {stored.name} has no reply to judge", hint="take a run with answers")
        forecast = _reward_screen.forecast(sat, asked)
        _reward_screen.before(console, stored.name, sat, asked, forecast, by_role=len(who.models) == len(ROLES))
        if how.dry_run:
            _print_json(how.json, {"dry_run": True, "run": stored.name, **_reward_screen.plan(sat, forecast)})
            return cli.OK
        folder = _folder(how.out or Path(f"reward-{stored.name}"), how.save)
        how = dataclasses.replace(how, kept=not Path(run).is_file())
        return _run(console, store, stored.id, sat, asked, how, folder)


def _jail(limits: LimitFlags) -> Any:
    kind = limits.allow_code_execution
    return None if kind is None else sandbox(True if kind == "bubblewrap" else kind)


_FILES = ("rewards.jsonl", "reward_distribution.png", "consensus_variance.png")
_MOST_BYTES = 2**24
"""A rewarder is never as long."""


def _is_rewarder(path: Path) -> bool:
    try:
        found = None if path.stat().st_size > _MOST_BYTES else jsonlib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("format") == REWARDER


def _folder(out: Path, save: Path | None) -> Path:
    """The folder of the results, made before anybody is asked."""
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file", hint="name a folder for the rewards and the charts")
    for name in _FILES:
        check_place(out / name, folder=False)
    if save is not None:
        check_ours(save, _is_rewarder, "rewarder", "--save")
    plotting()
    return make_folder(out)


def _run(console: Console, store: Store, run: str, sat: Bench, asked: Sequence[Asked], how: How, folder: Path) -> int:
    begun, tally = time.monotonic(), Tally()
    try:
        found = _rewards(store, run, sat, how, tally)
    except KeyboardInterrupt:
        print("pluribus: interrupted; what was judged is stored: say the same again to go on", file=sys.stderr)
        return cli.INTERRUPTED
    rights = _reward_facts.rights(store, found)
    known = _reward_facts.facts(found, rights)
    known = dataclasses.replace(known, warnings=(*known.warnings, *_cautions(sat, known, how)))
    paths = write(folder, found, known, rights)
    if how.save is not None:
        CouncilReward.of(found).save(how.save)
    _reward_screen.after(console, found, known, tally, time.monotonic() - begun)
    _reward_screen.written(console, paths, how.save)
    if how.kept:
        _reward_screen.onward(console, found, known)
    _print_json(how.json, as_object(found, known, tally, paths, how.save))
    return _code(found, known)


def _cautions(sat: Bench, known: Facts, how: How) -> Iterator[str]:
    """What the numbers, or the rewarder, do not say by themselves."""
    if how.weights == "labels" and known.keyed is not None:
        yield (
            "the weights were learned from the keys of this run, which flatters what is said against the keys; write "
            "them into the judges file and judge another run"
        )
    silent = [one.name for one in sat.judges if load("judges", one.kind).MODEL == "none"]
    if how.save is not None and silent:
        yield (
            f"{', '.join(silent)} can say nothing of prompts and completions, which come without keys and recorded "
            f"scores: through {how.save} the other judges alone count"
        )


def _rewards(store: Store, run: str, sat: Bench, how: How, tally: Tally) -> Rewarded:
    """Judged with the weights that are wanted; learned ones come from what the judges said alone."""
    if how.weights == "config":
        return _asked(store, run, sat.config, how, tally)
    if how.weights == "uniform":
        return _asked(store, run, weighed(sat.config, {one.name: 1.0 for one in sat.judges}), how, tally)
    alone = _asked(store, run, sat.config.model_copy(update={"max_rounds": 0}), how, tally)
    if alone.stopped:
        return alone
    return _asked(store, run, weighed(sat.config, _learned(store, alone, how.weights)), how, tally)


def weighed(config: JudgesConfig, weights: Mapping[str, float]) -> JudgesConfig:
    """The judges with these weights, in their order."""
    judges = [
        one.model_copy(update={"weight": weight}) for one, weight in zip(config.judges, weights.values(), strict=True)
    ]
    return config.model_copy(update={"judges": judges})


def _learned(store: Store, alone: Rewarded, how: str) -> Mapping[str, float]:
    rights = _reward_facts.rights(store, alone)
    labels = [Label(id, turn, right, checker="key") for (id, turn), right in rights.items()]
    replies = [(part.question, part.candidates) for part in alone.asked]
    learned = learn_weights(how, replies, alone.rewards, labels, seed=alone.config.seed)  # type: ignore[arg-type]  # the flag has the same words
    return {name: learned.weights[name] for name in alone.weights}


def _asked(store: Store, run: str, config: JudgesConfig, how: How, tally: Tally) -> Rewarded:
    watch = _Watch(0, 0, tally)
    with watch:
        return block(reward_run(store, run, config, every=how.every, progress=watch.judged, tally=tally))


class _Watch(Watch):
    """The bar of a run, for questions that are judged."""

    def judged(self, done: int, of: int, tally: Tally) -> None:
        if done < self.done:  # another round
            self._told = 0
        self.total, self.done, self.failed = of, done, max(0, sum(tally.errors.values()) - tally.retries)
        if not isinstance(self._live, Live):
            self._tell()


def _code(found: Rewarded, known: Facts) -> int:
    if found.stopped:
        return cli.BUDGET
    nobody = all(reward.value is None for reward in found.rewards)
    return cli.FAILED if nobody or any(judge.failed for judge in known.judges) else cli.OK


# --- files -----------------------------------------------------------------------------------------------------------


def write(folder: Path, found: Rewarded, known: Facts, rights: Mapping[Item, bool | None]) -> list[Path]:
    """`rewards.jsonl` and the charts; a chart that has nothing to show is left out, an old one of it removed."""
    lines = write_lines(folder / "rewards.jsonl", found, rights)
    scores = _reward_facts.scores(found, known)
    return [lines, *draw_charts(folder, charts.distribution(scores), charts.disagreement(scores))]


def write_lines(path: Path, found: Rewarded, rights: Mapping[Item, bool | None]) -> Path:
    """One line per candidate."""
    with writing(path) as file:
        for line in _lines(found, rights):
            write_line(file, line)
    return path


def draw_charts(folder: Path, distribution: Plot | None, variance: Plot | None) -> list[Path]:
    """Both charts as PNG, those that there are."""
    plots = {"reward_distribution": distribution, "consensus_variance": variance}
    paths = []
    for name, plot in plots.items():
        path = folder / f"{name}.png"
        if plot is None:
            path.unlink(missing_ok=True)
            continue
        with whole(path) as part:
            part.write_bytes(draw(plot).png)
        paths.append(path)
    return paths


def _lines(found: Rewarded, rights: Mapping[Item, bool | None]) -> Iterator[dict[str, Any]]:
    said = {(one.judge, (one.attempt_id, one.turn)): one for one in latest(found.judgements)}
    rewards = iter(found.rewards)
    for part in found.asked:
        for _ in part.candidates:
            reward = next(rewards)
            turn = part.transcript.turns[reward.turn]
            yield {
                "question_id": part.question.id,
                "attempt": reward.attempt_id,
                "turn": reward.turn,
                "round": turn.round,
                "seat": turn.seat,
                "model": part.transcript.attempt.agents[turn.seat].model,
                "correct": rights.get((reward.attempt_id, reward.turn)),
                **_of_reward(reward),
                **_of_judges(reward, {name: said.get((name, _item(reward))) for name in found.weights}),
            }


def _item(reward: Reward) -> Item:
    return reward.attempt_id, reward.turn


def _of_reward(reward: Reward) -> dict[str, Any]:
    return {
        "value": reward.value, "disagreement": reward.disagreement, "status": reward.status, "rounds": reward.rounds,
        "scores": dict(reward.scores), "normalised": dict(reward.normalised),
    }  # fmt: skip


def _of_judges(reward: Reward, said: Mapping[str, Judgement | None]) -> dict[str, Any]:
    """Reasons, and which judgement each score is."""
    return {
        "reasons": {name: one.reason if one else None for name, one in said.items()},
        "judgements": {name: _provenance(one) if one else None for name, one in said.items()},
    }


def _provenance(said: Judgement) -> dict[str, Any]:
    failure = {"kind": said.failure.kind, "message": said.failure.message} if said.failure else None
    return {"id": content_id(said), "asked": said.asked, "round": said.round, "failure": failure}


# --- as JSON ---------------------------------------------------------------------------------------------------------


def _print_json(wanted: bool, value: Any) -> None:
    if wanted:
        print(jsonlib.dumps(value, ensure_ascii=False, indent=2))


def as_object(found: Rewarded, known: Facts, tally: Tally, paths: Sequence[Path], save: Path | None) -> dict[str, Any]:
    """A rewarded run for `--json`."""
    return {
        "run": found.name,
        "id": found.run,
        "weights": dict(found.weights),
        "normalise": found.config.normalise,
        "threshold": found.config.threshold,
        "max_rounds": found.config.max_rounds,
        "every": found.every,
        **asdict(known),
        "failures": {name: dict(why) for name, why in _reward_screen.failures(found).items()},
        "scales": {name: dataclasses.asdict(scale) for name, scale in found.scales.items()},
        "stopped": found.stopped,
        "sent": {**asdict(tally), "errors": dict(tally.errors)},
        "files": [str(path) for path in paths],
        "rewarder": None if save is None else str(save),
    }
