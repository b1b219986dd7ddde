"""How a council of judges and its rewards look: who judges and what it takes before, what came of it after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pluribus.cli import _screen
from pluribus.cli._progress import spent
from pluribus.cli._reward_facts import Chance, Facts, JudgeFacts, Keyed
from pluribus.cli._reward_picks import Picks
from pluribus.judge_config import JudgeConfig, total_gb, weights_gb
from pluribus.judging import Asked, Bench, Rewarded
from pluribus.load import load
from pluribus.reward import latest
from pluribus.traffic import Tally


@dataclass(frozen=True, slots=True)
class Forecast:
    """What judging takes if nothing is stored yet."""

    questions: int
    candidates: int
    calls: int
    """Every judge once about every candidate."""
    most_calls: int
    """If every candidate is disputed in every round, and every reply has to be asked for once more."""


def forecast(sat: Bench, asked: Sequence[Asked]) -> Forecast:
    sizes = [len(one.candidates) for one in asked if one.candidates]
    once = [sum(_calls(one.kind, one.settings, n) for n in sizes) for one in sat.judges]
    rounds = sat.config.max_rounds if len(sat.judges) > 1 else 0
    again = [rounds if getattr(load("judges", one.kind), "REREADS", False) else 0 for one in sat.judges]
    most = sum(2 * calls * (1 + more) for calls, more in zip(once, again, strict=True))
    return Forecast(len(sizes), sum(sizes), sum(once), most)


def _calls(kind: str, settings: Any, candidates: int) -> int:
    """Calls of one judge about the candidates of one question.

    >>> from pluribus.judges import pairwise, score, verdict
    >>> _calls("score", score.Settings(samples=2), 5), _calls("verdict", verdict.Settings(reason_first=True), 5)
    (10, 10)
    >>> _calls("pairwise", pairwise.Settings(), 5), _calls("verifier", None, 5)
    (20, 0)
    """
    member = load("judges", kind)
    if member.MODEL == "none":
        return 0
    times = int(getattr(settings, "samples", 1)) * (2 if getattr(settings, "reason_first", False) else 1)
    if not getattr(member, "COMPARES", False):
        return times * candidates
    schedule = getattr(member, "schedule", None)
    pairs = candidates * (candidates - 1) // 2
    if schedule is not None and candidates > 1:
        pairs = len(schedule(candidates, getattr(settings, "opponents", 0), 0))
    return 2 * times * pairs


# --- before ----------------------------------------------------------------------------------------------------------


def before(console: Console, name: str, sat: Bench, asked: Sequence[Asked], ahead: Forecast, *, by_role: bool) -> None:
    """The judges, their memory, and what it will take."""
    console.print(_screen.text(f"{name}: {_what(ahead)}"), soft_wrap=True)
    console.print()
    console.print(_judges(sat))
    if by_role:
        console.print(
            _screen.line("weights by role, in the order given: teacher 0.5, critic 0.3, diversity 0.2", "dim")
        )
    elif len({one.weight for one in sat.judges}) == 1 and len(sat.judges) > 1:
        console.print(_screen.line("all judges weigh the same", "dim"))
    if line := _memory(sat):
        console.print(_screen.text(line), soft_wrap=True)
    config = sat.config
    console.print(
        _screen.text(
            f"common scale {config.normalise}, threshold {config.threshold:g}, at most "
            f"{_screen.plural(config.max_rounds, 'more round')} where the judges disagree; about {ahead.calls:,} "
            f"calls, at most {ahead.most_calls:,}"
        ),
        soft_wrap=True,
    )


def _what(ahead: Forecast) -> str:
    replies = _screen.plural(ahead.candidates, "reply", "replies")
    return f"{replies} to {_screen.plural(ahead.questions, 'question')}"


def _judges(sat: Bench) -> Table:
    table = _screen.table()
    for head in ("judge", "role", "kind", "model"):
        table.add_column(head)
    table.add_column("address", overflow="fold")  # its end, the port, tells the servers of one machine apart
    for head in ("weight", "precision", "memory"):
        table.add_column(head, justify="right", no_wrap=True)
    for place, one in enumerate(sat.judges):
        said, spec = sat.config.judges[place], sat.specs[place]
        model = _screen.model(spec.model) if spec else _screen.NOTHING
        address = (spec.base_url if spec else None) or _screen.NOTHING
        table.add_row(
            _screen.cell(one.name), _screen.cell(one.role or _screen.NOTHING), one.kind, _screen.cell(model),
            _screen.cell(address), f"{one.weight:g}", said.precision or _screen.NOTHING, _gb(said),
        )  # fmt: skip
    return table


def _gb(judge: JudgeConfig) -> str:
    held = weights_gb(judge)
    return _screen.NOTHING if held is None else f"{held:.1f} GB"


def _memory(sat: Bench) -> str:
    needed, device = total_gb(sat.config), sat.config.device_gb
    if needed is None:
        return ""
    known = f"weights take {needed:.1f} GB"
    if device is None:
        return known
    return f"{known} of {device:g} GB: {device - needed:.1f} GB are left for key-value caches and the rest"


def plan(sat: Bench, ahead: Forecast) -> dict[str, Any]:
    """The same for `--json`."""
    judges = [
        {
            "judge": one.name, "role": one.role, "kind": one.kind, "weight": one.weight,
            "model": spec.model if spec else None, "address": spec.base_url if spec else None,
            "precision": said.precision, "parameters_b": said.parameters_b, "memory_gb": weights_gb(said),
        }
        for one, said, spec in zip(sat.judges, sat.config.judges, sat.specs, strict=True)
    ]  # fmt: skip
    memory = {"memory_gb": total_gb(sat.config), "device_gb": sat.config.device_gb}
    return {"judges": judges, **memory, "forecast": asdict(ahead)}


# --- after -----------------------------------------------------------------------------------------------------------


def after(console: Console, found: Rewarded, known: Facts, tally: Tally, took_s: float) -> None:
    """Judges, agreement, rewards against keys, spend; warnings last, where they are seen."""
    console.print()
    console.print(_verdicts(known.judges))
    for line in _why(found):
        console.print(_screen.text(line, style="yellow"), soft_wrap=True)
    console.print()
    console.print(_standings(known.judges))
    console.print(_screen.line(_OWN, "dim"))
    console.print()
    console.print(_spend(known.judges))
    console.print(_screen.line(_ALL, "dim"))
    console.print()
    lines = (*(keyed(known.keyed) if known.keyed else ()), *(picked(known.picks) if known.picks else ()))
    for line in (*agreement(known), _statuses(found, known), *lines):
        console.print(_screen.text(line), soft_wrap=True)
    for line in speed(known, tally, took_s):
        console.print(_screen.text(line), soft_wrap=True)
    for warning in known.warnings:
        console.print(_screen.text(f"WARNING: {warning}", style="yellow"), soft_wrap=True)
    if found.stopped:
        again = "say the same again, with a larger budget, to go on"
        console.print(_screen.text(f"stopped: {found.stopped}; {again}", style="yellow"), soft_wrap=True)


_OWN = "mean and spread of its own scores; bias and correlation against the others' consensus, on the common scale"
_ALL = "of all its judgements, stored ones too; tokens/s: generated per second of a call, its waiting included"


def failures(found: Rewarded) -> dict[str, Counter[str]]:
    """Judge → why it gave no score, with counts: calls that failed, replies that could not be read."""
    said: dict[str, Counter[str]] = {name: Counter() for name in found.weights}
    for one in latest(found.judgements):
        if one.failure is not None and one.judge in said:
            said[one.judge][one.failure.message] += 1
    return {name: why for name, why in said.items() if why}


def _why(found: Rewarded) -> Iterator[str]:
    """The commonest reason of each judge."""
    for name, why in failures(found).items():
        ((reason, number),) = why.most_common(1)
        others = why.total() - number
        more = f" (and {others:,} for other reasons)" if others else ""
        yield f"{name}: {_screen.plural(number, 'candidate')} without a score: {reason}{more}"


def _verdicts(judges: Sequence[JudgeFacts]) -> Table:
    table = _screen.table()
    table.add_column("judge")
    for head in ("weight", "verdicts", "failed", "unread", "undecided"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in judges:
        numbers = [_screen.count(n) for n in (one.verdicts, one.failed, one.unread, one.undecided)]
        table.add_row(_screen.cell(one.judge), f"{one.weight:.3g}", *numbers)
    return table


def _standings(judges: Sequence[JudgeFacts]) -> Table:
    table = _screen.table()
    table.add_column("judge")
    heads = ["mean", "spread", "bias", "r", "rank r"]
    compares = any(one.compared for one in judges)
    for head in [*heads, *(["first wins", "flips"] if compares else [])]:
        table.add_column(head, justify="right", no_wrap=True)
    for one in judges:
        own = [_decimal(one.mean), _decimal(one.spread), _signed(one.bias), _decimal(one.correlation)]
        order = [_screen.share(one.first_share), _screen.share(one.flipped_share)] if compares else []
        table.add_row(_screen.cell(one.judge), *own, _decimal(one.rank_correlation), *order)
    return table


def _spend(judges: Sequence[JudgeFacts]) -> Table:
    table = _screen.table()
    for head in ("judge", "model"):
        table.add_column(head)
    for head in ("calls", "tokens", "tokens/s", "s per question", "cost"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in judges:
        told = [one.prompt_tokens, one.completion_tokens]
        tokens = None if None in told else sum(n for n in told if n is not None)
        table.add_row(
            _screen.cell(one.judge), _screen.cell(_screen.model(one.model) if one.model else _screen.NOTHING),
            _screen.count(one.calls), _screen.large(tokens), _rounded(one.tokens_per_s), _decimal(one.latency_s),
            _screen.usd(one.cost_usd) if one.calls else _screen.NOTHING,
        )  # fmt: skip
    return table


def agreement(known: Facts) -> Iterator[str]:
    """The variance never stands alone: chance gives some, and equal scores none."""
    if known.variance is None:
        yield "consensus variance: none, no candidate has two verdicts"
        return
    alone = "" if known.variance_after is None else ", each judge alone"
    line = f"consensus variance {known.variance:.4f} (mean over the candidates{alone})"
    if known.null is not None:
        line += (
            f"; the same scores dealt to the candidates at random: {known.null.mean:.4f} "
            f"[95 %: {known.null.low:.4f}, {known.null.high:.4f}]"
        )
    if known.alpha is not None:
        line += f"; Krippendorff's α {known.alpha:.3f}"
    yield line
    if known.variance_after is not None:
        yield f"after the disputed ones were judged again: {known.variance_after:.4f}, lower by itself"
    if known.null is not None:
        yield f"the judges {_agree(known)}"


def _agree(known: Facts) -> str:
    assert known.variance is not None and known.null is not None
    if known.variance < known.null.low:
        return "agree on the candidates more than chance"
    if known.variance > known.null.high:
        return "disagree on the candidates more than chance: what one likes another does not"
    return "are not seen to agree more than chance: the consensus is their scales' doing, not their judgement"


def _statuses(found: Rewarded, known: Facts) -> str:
    counted = ", ".join(f"{n:,} {status}" for status, n in known.statuses.items() if n)
    mean = "" if known.mean is None else f"; mean reward {known.mean:.3f}"
    return f"rewards: {counted} of {known.candidates:,} (threshold {found.config.threshold:g}){mean}"


def keyed(known: Keyed) -> Iterator[str]:
    """Whether the rewards know right from wrong, and whether disagreement warns."""
    yield (
        f"against the keys, {known.right:,} right and {known.wrong:,} wrong: "
        + (f"AUROC {_chance(known.auroc)}" if known.auroc else "one side is missing, nothing to tell apart")
    )
    if known.accuracy is not None:
        yield (
            f"of {_screen.plural(known.pairs, 'pair')} of a right and a wrong answer to one question, the right one "
            f"has the higher reward in {_chance(known.accuracy)}"
        )
    if known.warns is not None:
        yield f"disagreement {_warns(known.warns)}: AUROC {_chance(known.warns)} for pairs in the wrong order"


def picked(known: Picks) -> Iterator[str]:
    """What the highest reward is worth against a count of the same replies."""
    low, high = 100 * known.gain.low, 100 * known.gain.high
    yield (
        f"of {_screen.plural(known.questions, 'question')} with several replies, the one with the highest reward is "
        f"right on {known.best:.3f} [95 %: {known.low:.3f}, {known.high:.3f}], the majority on {known.majority:.3f}, "
        f"one drawn at random on {known.drawn:.3f}; best − majority {100 * known.gain.value:+.1f} points "
        f"[{low:+.1f}, {high:+.1f}]"
    )


def _warns(found: Chance) -> str:
    if found.low > 0.5:
        return "warns of wrong orders"
    return "is lower where the order is wrong" if found.high < 0.5 else "is not shown to warn of wrong orders"


def _chance(found: Chance | None) -> str:
    return _screen.NOTHING if found is None else f"{found.value:.3f} [95 %: {found.low:.3f}, {found.high:.3f}]"


def speed(known: Facts, tally: Tally, took_s: float) -> Iterator[str]:
    if known.latency_s is not None and known.summed_s is not None:
        yield (
            f"latency per question, beside all others under way: the council {_screen.seconds(known.latency_s)}, which "
            f"is its slowest judge; one judge after the other {_screen.seconds(known.summed_s)}"
        )
    stored = f", {tally.hits:,} more came from the store" if tally.hits else ""
    if not tally.calls:
        yield f"no call sent{stored}, {_screen.seconds(took_s)}"
        return
    pace = tally.completion_tokens / took_s if took_s else 0.0
    tokens = f"{_screen.large(tally.prompt_tokens + tally.completion_tokens)} tokens"
    yield (
        f"{_screen.plural(tally.calls, 'call')} sent ({spent(tally)}){stored}, {tokens} in {_screen.seconds(took_s)}: "
        f"{pace:,.0f} generated tokens/s of the whole council"
    )


def written(console: Console, paths: Sequence[Path], save: Path | None) -> None:
    for path in paths:
        console.print(_screen.text(f"written: {path}"), soft_wrap=True)
    if save is not None:
        console.print(_screen.text(f"written: {save}; use it with: {_use(save)}"), soft_wrap=True)


def onward(console: Console, found: Rewarded, known: Facts) -> None:
    """What comes next: people where judges disagree, pairs where they do not."""
    if number := known.statuses.get("disputed", 0):
        line = f"{number:,} disputed: let people decide with: pluribus review {found.name}"
        console.print(_screen.text(line), soft_wrap=True)
    if any(reward.value is not None for reward in found.rewards):
        line = f"pairs for training: pluribus prefer {found.name} --out preferences.jsonl"
        console.print(_screen.text(line), soft_wrap=True)


def _use(save: Path) -> str:
    return f"pluribus reward ROWS.csv --rewarder {save} --out OUT.csv, or pluribus reward --serve {save}"


def _decimal(value: float | None) -> str:
    return _screen.NOTHING if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return _screen.NOTHING if value is None else f"{value:+.3f}"


def _rounded(value: float | None) -> str:
    return _screen.NOTHING if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
