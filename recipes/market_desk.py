"""A market desk: three analysts read each brief k times and vote. Does it help to ask more often?

    python recipes/market_desk.py [--questions 60] [--k 1 3 5 9] [--out desk]

The analysts are three models, each as one persona of the set `market`: market (trend follower), strategy (macro
strategist) and risk (risk manager). Each draws max(k) analyses of every brief; k = 3 takes the first three of them, so
all k are compared on the same draws. Inside an analyst the draws vote BULLISH, BEARISH or NEUTRAL, then the three
analysts vote. `--out` keeps a decision log (decisions.jsonl) and the analyses that its evidence ids name
(evidence.jsonl).

Why temperature 1.7 and top_p 1: at temperature 1 a single draw of the embedded models is right on 0.92 to 0.99 of the
briefs and mostly all nine agree, so there is nothing to vote on; at 2 the texts fall apart. In between the draws differ
and are still more often right than wrong. For models of your own say --temperature 0.7 or 1.

The briefs are made up by a seeded generator and so are the firms in them. Nothing here is trading advice.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pluribus.consensus.confidence import confidence, fit
from pluribus.errors import PluribusError, UsageError
from pluribus.evaluate import right_answers
from pluribus.metrics.calibration import expected_calibration_error
from pluribus.objectives import Group, value
from pluribus.stats import holm, mcnemar, paired_difference, wilson
from pluribus.store.files import make_folder
from pluribus.tasks import load_task
from pluribus.toolkit import Manager, ManagerDecision, StrategyAgent
from pluribus.types import Key, Question

MODELS = ("zoo/qwen", "zoo/olmo", "zoo/phi")
SEATS = (("market", "trend follower"), ("strategy", "macro strategist"), ("risk", "risk manager"))
NO_ADVICE = "Research text about made-up firms; nothing here is trading advice."
LEGEND = (
    "calls: per brief. accuracy: with its 95 % interval. maj@k: the mean over every choice of k draws, ties shared.",
    "share: the winner's part of the votes, mean over the briefs.",
    "p: McNemar's, adjusted for the number of comparisons.",
)
_ENOUGH = 20
"""Questions below which nothing is said about the confidence."""

Pair = tuple[Question, Key]


@dataclass(frozen=True)
class Line:
    """One row of the table: an analyst, or the desk, asked k times."""

    who: str
    k: int
    right: tuple[float, ...]
    """1 or 0 per brief."""
    calls: int
    """Per brief."""
    exact: float | None
    """An analyst's accuracy over all k-subsets of its draws (maj@k, ties shared); None for the desk."""
    share: float | None = None
    """Mean part of the votes that the winner has, of the briefs that have one."""

    @property
    def accuracy(self) -> float:
        return sum(self.right) / len(self.right)


def desk(models: Sequence[str], k: int, temperature: float, seed: int) -> Manager:
    analysts = [
        StrategyAgent(model, k, name=name, personas=persona, temperature=temperature, top_p=1.0, max_tokens=160)
        for model, (name, persona) in zip(models, SEATS, strict=True)
    ]
    return Manager(analysts, seed=seed)


def at(manager: Manager, found: ManagerDecision, k: int) -> ManagerDecision:
    """What the desk would have said after the first k draws of each analyst; it costs no call."""
    return manager.vote(found.question, [opinion.sample.first(k) for opinion in found.opinions])


def lines(manager: Manager, found: Sequence[ManagerDecision], pairs: Sequence[Pair], ks: Sequence[int]) -> list[Line]:
    by_k = {k: [at(manager, decision, k) for decision in found] for k in ks}
    table = [
        Line(
            analyst.name,
            k,
            _right([d.opinions[i].vote.winner for d in by_k[k]], pairs),
            k,
            exact(found, pairs, i, k),
            _mean([d.opinions[i].vote.share for d in by_k[k]]),
        )
        for i, analyst in enumerate(manager.analysts)
        for k in ks
    ]
    seats = len(manager.analysts)
    return table + [
        Line(
            "desk", k, _right([d.decision for d in by_k[k]], pairs), k * seats, None,
            _mean([d.vote.share for d in by_k[k]]),
        )
        for k in ks
    ]  # fmt: skip


def _mean(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else None


def exact(found: Sequence[ManagerDecision], pairs: Sequence[Pair], analyst: int, k: int) -> float:
    """Mean over briefs of maj@k, each over all k-subsets of the analyst's draws."""
    groups = []
    for decision, (question, key) in zip(found, pairs, strict=True):
        answers = decision.opinions[analyst].sample.answers
        groups.append(Group([_credit(answer, question, key) for answer in answers], answers))
    return sum(value(group, "majority", k) for group in groups) / len(groups)


def _credit(answer: str | None, question: Question, key: Key) -> float:
    return float(answer is not None and answer in (right_answers(question, key) or ()))


def _right(answers: Sequence[str | None], pairs: Sequence[Pair]) -> tuple[float, ...]:
    return tuple(_credit(answer, *pair) for answer, pair in zip(answers, pairs, strict=True))


def show(table: Sequence[Line]) -> list[str]:
    """The table as text: accuracy with its Wilson interval, maj@k, and the paired comparison with the smallest k.

    p is McNemar's, adjusted for the number of comparisons (Holm).
    """
    base = {line.who: line for line in reversed(table)}
    later = [line for line in table if line is not base[line.who]]
    adjusted = holm([mcnemar(line.right, base[line.who].right).p for line in later])
    against = {id(line): _against(line, base[line.who], p) for line, p in zip(later, adjusted, strict=True)}
    rows = [
        f"{'who':9}{'k':>3}{'calls':>7}  {'accuracy':22}{'maj@k':>7}{'share':>7}  {'against the smallest k':26}{'p':>8}"
    ]
    for line in table:
        low, high = wilson(sum(line.right), len(line.right))
        exactly, share = ("" if one is None else f"{one:.3f}" for one in (line.exact, line.share))
        score = f"{line.accuracy:.3f} [{low:.3f}, {high:.3f}]"
        rows.append(
            f"{line.who:9}{line.k:3}{line.calls:7}  {score:22}{exactly:>7}{share:>7}  "
            f"{against.get(id(line), '')}".rstrip()
        )
    return rows


def _against(line: Line, base: Line, p: float) -> str:
    gain = paired_difference(line.right, base.right)
    return (
        f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]".ljust(26)
        + f"{f'{p:.4f}' if p >= 0.0001 else '<0.0001':>8}"
    )


def sureness(found: Sequence[ManagerDecision], right: Sequence[float]) -> list[str]:
    """Is the stated confidence true? A calibration is fitted on one half of the briefs, both are read on the other."""
    half = len(found) // 2
    said = [0.0 if decision.confidence is None else decision.confidence for decision in found[half:]]
    learned = fit([decision.support for decision in found[:half]], right[:half], "platt")
    calibrated = [confidence(learned, decision.support) for decision in found[half:]]
    test = right[half:]
    return [f"On the second {len(test)} briefs the desk is right {sum(test) / len(test):.3f} of the time."] + [
        f"{name:28}mean {sum(each) / len(each):.3f}, expected calibration error "
        f"{expected_calibration_error(each, test):.3f}"
        for name, each in (("posterior", said), (f"calibrated on the first {half}", calibrated))
    ]


def keep(folder: Path, manager: Manager, found: Sequence[ManagerDecision], ks: Sequence[int]) -> None:
    """The decision log, one brief a line, and the analyses its evidence ids name."""
    with (folder / "decisions.jsonl").open("w", encoding="utf-8") as log:
        for decision in found:
            by_k = {k: at(manager, decision, k).decision for k in ks}
            log.write(json.dumps({**decision.plain(texts=False), "by_k": by_k, "note": NO_ADVICE}) + "\n")
    with (folder / "evidence.jsonl").open("w", encoding="utf-8") as log:
        for analysis in (one for decision in found for one in decision.plain()["evidence"]):
            log.write(json.dumps(analysis) + "\n")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs=3, default=MODELS, metavar=tuple(name.upper() for name, _ in SEATS))
    parser.add_argument("--questions", type=int, default=60, help="how many briefs; 60 unless told")
    parser.add_argument("--task", default="briefs", help="briefs, or decisions:BUY/HOLD/SELL with --data")
    parser.add_argument("--data", type=Path, help="your own questions")
    parser.add_argument("--temperature", type=float, default=1.7)
    parser.add_argument("--k", type=int, nargs="+", default=[1, 3, 5, 9], help="draws to compare; 1 3 5 9 unless told")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder of the decision log, which is written anew")
    given = parser.parse_args(arguments)
    if min(given.k) < 1:
        parser.error(f"--k {min(given.k)}: an analyst is asked at least once")
    return given


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    given = parsed(arguments)
    ks = sorted(set(given.k))
    if given.out is not None:
        make_folder(given.out)
    task = load_task(given.task, data=given.data, limit=given.questions)
    pairs = [(question, key) for question, key in task.pairs if key is not None]
    if not pairs:
        raise UsageError(f"no question of {task.task} has a key", hint="give questions with answers")
    manager = desk(given.models, ks[-1], given.temperature, given.seed)
    began = time.perf_counter()
    found = manager.decide_all([question for question, _ in pairs])
    seconds = time.perf_counter() - began
    if given.out is not None:
        keep(given.out, manager, found, ks)
    whole = [i for i, decision in enumerate(found) if not decision.failures]
    print(f"{NO_ADVICE}\n")
    print(f"{len(pairs)} questions of {task.task}, temperature {given.temperature:g}, top_p 1, seed {given.seed};")
    print(f"{sum(decision.calls for decision in found)} calls in {seconds:.0f} s. Each analyst draws {ks[-1]} times;")
    print("a smaller k takes the first of the same draws.")
    print(f"{len(found) - len(whole)} questions with a failed call are left out of what follows.\n")
    table = lines(manager, [found[i] for i in whole], [pairs[i] for i in whole], ks) if whole else []
    print("\n".join([*show(table), *LEGEND]))
    if len(whole) >= _ENOUGH:
        print("\n" + "\n".join(sureness([found[i] for i in whole], table[-1].right)))
    if given.out is not None:
        print(f"\ndecision log: {given.out / 'decisions.jsonl'}; texts: {given.out / 'evidence.jsonl'}")
    return table


if __name__ == "__main__":
    try:
        main()
    except PluribusError as problem:
        print(f"market_desk.py: {problem}", file=sys.stderr)
        sys.exit(2 if isinstance(problem, UsageError) else 1)
