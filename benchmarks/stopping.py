"""When can one stop asking? Every stopping rule of `pluribus.consensus.stopping` on votes that are all there: what it
would have asked, and what the answer would have lost.

    python benchmarks/stopping.py [--data FOLDER] [--cache FOLDER] [--zoo HOME] [--only NAME] [--orders N] [--json FILE]

Reads `../shared/data` beside the checkout, and of --zoo the finished runs of self_consistency with --draws samples;
says what it skips where one is absent. Nothing is asked of a model. The voters of a question are put in --orders random
orders, fewer where voters or questions are many; a rule sees their votes one by one, and its answer is compared with
that of all votes in the same order, ties to the answer seen first. The mean over the orders is taken before anything
else, so the 95 % intervals are over questions. Beside each rule stands a vote of fixed size that takes as many calls.
In a second table the seats of a council have the weights that the other half of the questions gives them; seats without
weight are not asked, and not counted in the calls of the full vote. Last come
made-up voters, who do what the rule `predictive` supposes. HumanEval's programs run in the sandbox, four minutes on two
cores; what they did is kept with --cache, as are readings. With everything there and kept it takes about 20 minutes of
one core; fewer --orders take less. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _panels import POOLS, Votes, game24, programs, recorded, runs
from pluribus import stats
from pluribus.consensus.reliability import Reliability, from_labels
from pluribus.consensus.stopping import Halt, Stopping, Voters, halt, wave
from pluribus.consensus.votes import plurality
from pluribus.errors import MissingSandbox
from pluribus.stats import Estimate

DATA = Path(__file__).parents[2] / "shared" / "data"
RULES: Mapping[str, Stopping] = {
    "unassailable": Stopping("unassailable"),
    "beta, eps 0.05": Stopping("beta", 0.05),
    "beta, eps 0.01": Stopping("beta", 0.01),
    "dirichlet, eps 0.05": Stopping("dirichlet", 0.05),
    "predictive, eps 0.05": Stopping("predictive", 0.05),
    "predictive, eps 0.01": Stopping("predictive", 0.01),
    "window 4": Stopping("window", window=4),
    "window 5": Stopping("window", window=5),
    "window 8": Stopping("window", window=8),
}
BOUND, LOSS = 0.1, 0.5
"""Points that a rule may lose, and the upper end of the interval of what it loses."""
AIM = {"samples": 0.7, "seats": 0.4}
"""Share of the calls that are to be saved."""
MOST, MOST_ALL = 800, 28_000
"""Votes of one question in all orders together, and orders of all questions together."""
Floats = NDArray[np.float64]


# --- one sequence of votes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Walk:
    """A sequence of votes, one by one."""

    leaders: tuple[int, ...]
    """After each vote, the first at place 0; −1: no answer so far."""
    asked: tuple[int, ...]
    """Calls of each rule."""


@dataclass(slots=True)
class Walker:
    """Follows sequences of equal voters; each sequence once."""

    voters: Voters
    known: dict[tuple[int, ...], Walk] = field(default_factory=dict)

    def walk(self, votes: tuple[int, ...]) -> Walk:
        """Votes are numbered in the order first seen; −1 is no answer."""
        if votes not in self.known:
            said, leaders = words(votes), leaders_of(votes)
            halts = [halt(said, self.voters, stopping) for stopping in RULES.values()]
            assert all(h.answer == words([leaders[h.asked - 1]])[0] for h in halts), votes
            self.known[votes] = Walk(leaders, tuple(h.asked for h in halts))
        return self.known[votes]

    def waves(self, votes: tuple[int, ...]) -> list[int]:
        """How often each rule asks, as many voters at once as can not be one too many."""
        said, asked = words(votes), self.walk(votes).asked
        return [_waves(said, self.voters, *each) for each in zip(RULES.values(), asked, strict=True)]


def _waves(said: Sequence[str | None], voters: Voters, stopping: Stopping, asked: int) -> int:
    place = waves = 0
    while more := wave(said[:place], voters, stopping):
        place, waves = place + more, waves + 1
    assert place == asked, f"{stopping} asks {place} in waves, {asked} one by one: {said}"
    return waves


def leaders_of(votes: tuple[int, ...]) -> tuple[int, ...]:
    counts, leader = list[int](), -1
    out = list[int]()
    for vote in votes:
        if vote == len(counts):
            counts.append(0)
        if vote >= 0:
            counts[vote] += 1
            if leader < 0 or (counts[vote], -vote) > (counts[leader], -leader):
                leader = vote
        out.append(leader)
    return tuple(out)


def words(votes: Sequence[int]) -> list[str | None]:
    return [None if vote < 0 else str(vote) for vote in votes]


def numbered(votes: NDArray[np.int64]) -> tuple[tuple[int, ...], list[int]]:
    """The votes renumbered in the order first seen, and what each number was before."""
    seen: dict[int, int] = {}
    row = tuple(-1 if vote < 0 else seen.setdefault(vote, len(seen)) for vote in votes.tolist())
    return row, list(seen)


# --- a panel ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over the orders, per question."""

    name: str
    sort: str
    voters: int
    orders: int
    calls_R_Q: Floats
    credit_R_Q: Floats
    differs_R_Q: Floats
    """How often the rule's answer is not that of all votes."""
    credit_M_Q: Floats
    """Of the first m votes; the last row is of all."""
    differs_M_Q: Floats
    waves_R_Q: Floats
    """In the last of the orders."""


def measure(found: Votes, orders: int, seed: int) -> Measured:
    orders = max(1, min(orders, MOST // found.voters, MOST_ALL // len(found.ids)))
    walker = Walker(Voters((1.0,) * found.voters))
    rows = [_question(found, q, orders, seed, walker) for q in range(len(found.ids))]
    columns = [np.stack(column, axis=1) for column in zip(*rows, strict=True)]
    return Measured(found.name, found.sort, found.voters, orders, *columns)


def _question(found: Votes, q: int, orders: int, seed: int, walker: Walker) -> list[Floats]:
    rng = np.random.default_rng([seed, q])
    sums = [np.zeros(n) for n in [len(RULES)] * 3 + [found.voters] * 2]
    for _ in range(orders):
        votes, before = numbered(rng.permutation(found.codes_Q_A[q])[: found.voters])
        walk = walker.walk(votes)
        leaders, asked = np.array(walk.leaders), np.array(walk.asked)
        credits = np.array([*found.credit_Q_C[q][before], 0.0])[leaders]  # the last is that of no answer, number −1
        differs = leaders != leaders[-1]
        parts = (asked, credits[asked - 1], differs[asked - 1], credits, differs)
        for total, part in zip(sums, parts, strict=True):
            total += part / orders
    return [*sums, np.array(walker.waves(votes), dtype=np.float64)]


def pooled(some: Sequence[Measured], name: str) -> Measured:
    """Panels of the same questions as one: each question with its mean, so that questions stay the unit."""
    names = ("calls_R_Q", "waves_R_Q", "credit_R_Q", "differs_R_Q", "credit_M_Q", "differs_M_Q")
    means = {each: np.mean([getattr(one, each) for one in some], axis=0) for each in names}
    return Measured(name, some[0].sort, some[0].voters, some[0].orders, **means)


# --- numbers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """What a rule did on one panel."""

    rule: str
    n: int
    calls: float
    saved: Estimate
    """Share of the calls."""
    full: float
    stopped: float
    difference: Estimate
    """Accuracy, stopped − full."""
    differs: Estimate
    """Share of decisions that are not those of all votes."""
    waves: float | None = None
    """None where the seats have weights."""
    over_fixed: Estimate | None = None
    """Accuracy, stopped − a vote of as many calls on every question; None where the seats have an order."""
    fixed_differs: float | None = None


def row(
    rule: str, asked: int | Floats, calls_Q: Floats, credit_Q: Floats, differs_Q: Floats, full_Q: Floats,
    waves_Q: Floats | None = None, fixed: tuple[Floats, Floats] | None = None,
) -> Row:  # fmt: skip
    """One line.

    Args:
        asked: calls of the full vote, the same for all questions or one each.
        fixed: credit and disagreement of the vote of fixed size.
    """
    none_Q = np.zeros(len(calls_Q))
    return Row(
        rule, len(calls_Q), float(calls_Q.mean()),
        stats.paired_bootstrap((1 - calls_Q / asked).tolist(), none_Q.tolist()),
        float(full_Q.mean()), float(credit_Q.mean()),
        stats.paired_difference(credit_Q.tolist(), full_Q.tolist()),
        stats.paired_difference(differs_Q.tolist(), none_Q.tolist()),
        None if waves_Q is None else float(waves_Q.mean()),
        stats.paired_difference(credit_Q.tolist(), fixed[0].tolist()) if fixed else None,
        float(fixed[1].mean()) if fixed else None,
    )  # fmt: skip


def rows(found: Measured) -> list[Row]:
    full, fixed = found.credit_M_Q[-1], partial(fixed_size, found.credit_M_Q, found.differs_M_Q)
    parts = zip(RULES, found.calls_R_Q, found.credit_R_Q, found.differs_R_Q, found.waves_R_Q, strict=True)
    return [
        row(name, found.voters, calls, credit, differs, full, waves, fixed(float(calls.mean())))
        for name, calls, credit, differs, waves in parts
    ]


def fixed_size(credit_M_Q: Floats, differs_M_Q: Floats, calls: float) -> tuple[Floats, Floats]:
    """Credit and disagreement of the first ⌊calls⌋ or ⌈calls⌉ votes, so often each that the mean is `calls`."""
    low = min(int(calls), len(credit_M_Q) - 1)
    share = calls - low
    credit, differs = ((1 - share) * part[low - 1] + share * part[low] for part in (credit_M_Q, differs_M_Q))
    return credit, differs


# --- weighted seats --------------------------------------------------------------------------------------------------


LEARNED = POOLS[:4]
"""Councils whose weighted vote is followed too; it takes most of the time."""
ORDERS = ("heaviest first", "random", "lightest first")


def weighted(found: Votes, seed: int) -> dict[str, list[Row]]:
    """Order of asking → rules on the weighted vote; weights from one half, votes of the other, both ways round."""
    first_Q = np.random.default_rng(seed).permutation(len(found.ids)) < len(found.ids) // 2
    learned = {half: learn(found, np.flatnonzero(first_Q == half)) for half in (True, False)}
    out = {}
    for order in ORDERS:
        rng = np.random.default_rng([seed, ORDERS.index(order)])
        asked = [_weighted(found, q, learned[not half], order, rng) for q, half in enumerate(first_Q.tolist())]
        columns = [np.stack(column, axis=-1) for column in zip(*asked, strict=True)]
        out[order] = _weighted_rows(*columns)
    return out


def _weighted_rows(
    calls_R_Q: Floats, credit_R_Q: Floats, differs_R_Q: Floats, credit_M_Q: Floats, differs_M_Q: Floats, seats_Q: Floats
) -> list[Row]:
    full_Q = credit_M_Q[-1]
    out = [row("the first seat alone", seats_Q, np.ones(len(full_Q)), credit_M_Q[0], differs_M_Q[0], full_Q)]
    for name, calls, credit, differs in zip(WEIGHTED, calls_R_Q, credit_R_Q, differs_R_Q, strict=True):
        fixed = fixed_size(credit_M_Q, differs_M_Q, float(calls.mean()))
        out.append(row(name, seats_Q, calls, credit, differs, full_Q, fixed=fixed))
    return out


KNOWN = ", accuracies known"
WEIGHTED = (
    *(name for name, stopping in RULES.items() if stopping.rule in ("unassailable", "beta", "predictive")),
    *(name + KNOWN for name, stopping in RULES.items() if stopping.rule == "predictive"),
)
"""The methods hand a rule the weights alone; from Python it can be told how often each voter is right."""


def halts_of(votes: Sequence[str | None], voters: Voters) -> list[Halt]:
    """Of each rule of `WEIGHTED`; the voters with their accuracies."""
    unknown = replace(voters, accuracies=None)
    return [halt(votes, voters if KNOWN in name else unknown, RULES[name.removesuffix(KNOWN)]) for name in WEIGHTED]


def learn(found: Votes, questions: NDArray[np.int64]) -> Reliability:
    said = [words(found.codes_Q_A[q]) for q in questions]
    right = [
        str(int(np.argmax(credit))) if credit.max() > 0 else "none of them" for credit in found.credit_Q_C[questions]
    ]
    return from_labels(said, right)


def _weighted(found: Votes, q: int, learned: Reliability, order: str, rng: np.random.Generator) -> list[Floats]:
    """Calls, credit and disagreement of each rule, credit and disagreement of the first m votes, and all calls."""
    weights, accuracies = np.array(learned.weights), np.array(learned.accuracy)
    seats = _order(np.flatnonzero(weights > 0), weights, order, rng)
    voters = Voters(tuple(weights[seats].tolist()), tuple(accuracies[seats].tolist()))
    votes = words(found.codes_Q_A[q][seats])
    firsts = [plurality(votes[:m], voters.weights[:m]).winner for m in range(1, len(seats) + 1)]
    firsts += firsts[-1:] * (found.voters - len(seats))
    halts = halts_of(votes, voters)
    answers = [h.answer for h in halts]
    parts: list[Any] = [[h.asked for h in halts]]
    parts += [told for some in (answers, firsts) for told in _told(found, q, some, firsts[-1])]
    return [np.array(part, dtype=np.float64) for part in (*parts, len(seats))]


def _told(found: Votes, q: int, answers: Sequence[str | None], everyone: str | None) -> tuple[list[float], list[bool]]:
    """Credit of each answer, and whether it is another one than everyone's."""
    return [_credit(found, q, answer) for answer in answers], [answer != everyone for answer in answers]


def _order(seats: NDArray[np.int64], weights: Floats, order: str, rng: np.random.Generator) -> NDArray[np.int64]:
    if order == "random":
        return rng.permutation(seats)
    by_weight = np.argsort(-weights[seats], kind="stable")
    return seats[by_weight if order == "heaviest first" else by_weight[::-1]]


def _credit(found: Votes, q: int, answer: str | None) -> float:
    return 0.0 if answer is None else float(found.credit_Q_C[q][int(answer)])


# --- made-up voters --------------------------------------------------------------------------------------------------


KINDS = ("40 equal voters", "15 voters of accuracy 0.4 to 0.9, weighted, in random order")


def made_up(questions: int, seed: int) -> dict[str, list[Row]]:
    """Independent voters of known accuracy and four answers; wrong votes fall on the other three alike."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[list[tuple[float, ...]]]] = {kind: [] for kind in KINDS}
    for _ in range(questions):
        for kind, accuracies in zip(
            KINDS, (np.full(40, rng.uniform(0.3, 0.9)), rng.uniform(0.4, 0.9, 15)), strict=True
        ):
            votes = [
                str(v)
                for v in np.where(rng.random(len(accuracies)) < accuracies, 0, rng.integers(1, 4, len(accuracies)))
            ]
            weights = np.log(3 * accuracies / (1 - accuracies)) if len(accuracies) == 15 else np.ones(40)
            voters = Voters(tuple(weights.tolist()), tuple(accuracies.tolist()))
            found[kind].append(_made_up(votes, voters))
    return {kind: _made_up_rows(np.array(values), 40 if kind == KINDS[0] else 15) for kind, values in found.items()}


def _made_up(votes: Sequence[str], voters: Voters) -> list[tuple[float, ...]]:
    everyone = plurality(votes, voters.weights).winner
    halts = halts_of(votes, voters)
    return [(h.asked, h.answer == "0", h.answer != everyone, everyone == "0") for h in halts]


def _made_up_rows(values_Q_R_4: Floats, voters: int) -> list[Row]:
    parts = zip(WEIGHTED, np.moveaxis(values_Q_R_4, 0, -1), strict=True)
    return [row(name, voters, *part) for name, part in parts]


# --- printing --------------------------------------------------------------------------------------------------------


HEADS = (
    "rule",
    "calls",
    "waves",
    "calls saved",
    "times fewer",
    "accuracy",
    "over the full vote, points",
    "another answer",
)
FIXED_HEADS = ("over a vote of as many calls, points", "another answer there")


def minus(text: str) -> str:
    return text.replace("-", "−")


def points(found: Estimate) -> str:
    return minus(f"{100 * found.value:+.2f} [{100 * found.low:+.2f}, {100 * found.high:+.2f}]")


def percent(found: Estimate) -> str:
    low, high = max(0.0, found.low), min(1.0, found.high)
    return f"{100 * found.value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def cells(found: Row) -> list[str]:
    times = f"{1 / (1 - found.saved.value):.1f}" if found.saved.value < 1 else "–"
    out = [
        found.rule,
        f"{found.calls:.1f}",
        "–" if found.waves is None else f"{found.waves:.1f}",
        percent(found.saved),
        times,
        f"{found.stopped:.3f}",
    ]
    out += [points(found.difference), percent(found.differs)]
    if found.over_fixed is not None and found.fixed_differs is not None:
        out += [points(found.over_fixed), f"{100 * found.fixed_differs:.1f} %"]
    return out


def table(some: Sequence[Row]) -> None:
    heads = [*HEADS, *(FIXED_HEADS if some[-1].over_fixed else ())]
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for one in some:
        print(f"| {' | '.join([*cells(one), '–', '–'][: len(heads)])} |")
    print(flush=True)


def verdict(some: Sequence[Row], sort: str) -> str:
    """Which rules reach the aim, for everyone to see when none does."""
    aim = AIM[sort]
    good = [one.rule for one in some if one.rule.removesuffix(KNOWN) in RULES and reaches(one, aim)]
    return (
        f"Aim: {aim:.0%} of the calls saved, at most {BOUND} points lost, at most {LOSS} at the end of the interval. "
        f"Reached by: {', '.join(good) or 'none'}."
    )


def reaches(found: Row, aim: float) -> bool:
    return found.saved.value >= aim and -100 * found.difference.value <= BOUND and -100 * found.difference.low <= LOSS


def head(name: str, n: int, voters: int, full: float, what: str, orders: int) -> None:
    times = "one order" if orders == 1 else f"{orders} orders"
    said = f"{n:,} questions, {voters} {what}, {times}; all of them together {full:.3f}"
    print(f"### {name}: {said}", flush=True)


# --- from start to end -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    data: Path
    cache: Path
    zoo: Path | None
    only: str
    orders: int
    draws: int
    seed: int


Found = dict[str, list[Row]]


def plain(given: Given) -> Found:
    """Equal votes: samples of one model, and seats in random order."""
    out: Found = {}
    for group in (councils(given), several_samples(given), zoo(given)):
        measured = []
        for votes in group:
            started = time.perf_counter()
            measured.append(measure(votes, given.orders, given.seed))
            out[votes.name] = told(measured[-1], votes.note)
            print(f"{time.perf_counter() - started:.0f} s\n", flush=True)
            out |= weighted_tables(votes, given) if votes.name in LEARNED else {}
        out |= together(measured)
    return out


def councils(given: Given) -> Iterator[Votes]:
    if not (given.data / "recorded").is_dir():
        print(f"skipped: no recorded outputs in {given.data / 'recorded'}\n")
        return
    yield from recorded(given.data, given.cache, given.only)


def several_samples(given: Given) -> Iterator[Votes]:
    if not (given.data / "samples").is_dir():
        print(f"skipped: no samples in {given.data / 'samples'}\n")
        return
    if given.only in "humaneval":
        try:
            yield from programs(given.data, given.cache)
        except MissingSandbox as missing:
            print(f"skipped: HumanEval; {missing}\n")
    if given.only in "game24":
        yield from game24(given.data)


def zoo(given: Given) -> Iterator[Votes]:
    if given.only not in "zoo":
        return
    if given.zoo is None:
        print("skipped: the zoo; --zoo names the folder of a workspace with runs of self_consistency, such as those of "
              f"`pluribus run --task sums --limit 500 --method self_consistency --set parallel_num={given.draws} "
              "--agent-models zoo/qwen`\n")  # fmt: skip
        return
    yield from runs(given.zoo, given.draws)


def told(found: Measured, note: str = "") -> list[Row]:
    some = rows(found)
    head(found.name, some[0].n, found.voters, some[0].full, found.sort, found.orders)
    if note:
        print(f"\n{note}.")
    table(some)
    print(f"{verdict(some, found.sort)}\n")
    return some


def together(measured: Sequence[Measured]) -> Found:
    """Runs of different models on the same questions of one task."""
    tasks: dict[tuple[str, int], list[Measured]] = {}
    for one in measured:
        tasks.setdefault((one.name.rpartition(", ")[2], one.credit_M_Q.shape[1]), []).append(one)
    out: Found = {}
    for (task, _), some in tasks.items():
        if len(some) > 1 and some[0].name.startswith("zoo/"):
            name = f"{len(some)} zoo models, {task}"
            out[name] = told(pooled(some, name))
    return out


def weighted_tables(votes: Votes, given: Given) -> Found:
    started = time.perf_counter()
    out: Found = {}
    for order, some in weighted(votes, given.seed).items():
        name = f"{votes.name}, weighted, {order}"
        head(name, some[0].n, votes.voters, some[0].full, votes.sort, 1)
        table(some)
        print(f"{verdict(some, votes.sort)}\n")
        out[name] = some
    print(f"{time.perf_counter() - started:.0f} s\n", flush=True)
    return out


def simulated(given: Given) -> Found:
    out = made_up(2000, given.seed) if given.only in "made-up" else {}
    for kind, some in out.items():
        head(f"made-up: {kind}", some[0].n, 40 if kind == KINDS[0] else 15, some[0].full, "voters", 1)
        table(some)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds recorded/, samples/ and benchmarks/")
    parser.add_argument("--cache", type=Path, help="where readings and classes are kept; else nowhere")
    parser.add_argument("--zoo", type=Path, help="folder of a workspace with finished runs of self_consistency")
    parser.add_argument("--only", default="", help="part of: a recorded pool's name, humaneval, game24, zoo, made-up")
    parser.add_argument("--orders", type=int, default=20, help="random orders of the voters, for each question")
    parser.add_argument("--draws", type=int, default=40, help="samples a question that the runs of --zoo have")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write all numbers to this file")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        cache = flags.cache or Path(scratch)
        cache.mkdir(parents=True, exist_ok=True)
        given = Given(flags.data, cache, flags.zoo, flags.only, flags.orders, flags.draws, flags.seed)
        found = plain(given) | simulated(given)
    if flags.json:
        flags.json.write_text(json.dumps(found, default=_plain, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def _plain(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


if __name__ == "__main__":
    sys.exit(main())
