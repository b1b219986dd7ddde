"""What is known of a council's rewards: each judge, the council, and how both stand against the keys."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING

from pluribus.cli._reward_picks import Picks, picks
from pluribus.consensus.rewards import Null, Standing, krippendorff_alpha, leave_one_out, permutation_null
from pluribus.engines.asyncio import block
from pluribus.judging import Bench, Rewarded, bench
from pluribus.label import PROGRAM, TEXT, verdicts_on
from pluribus.load import load
from pluribus.reports import Scores
from pluribus.reward import Item, latest, reckon
from pluribus.run import stored_labels
from pluribus.stats import cluster_bootstrap, wilson
from pluribus.store import Store
from pluribus.types import Completion, Judgement, Reward, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STATUSES = ("agreed", "disputed", "adjudicated", "alone", "unscored")
_RESAMPLES = 500
_FEW = 10
"""Questions, below which resampling them says too little of the next one."""
_Z = NormalDist().inv_cdf(0.975)
_HALVINGS = 40
_UNREAD = "bad_form"
"""The failure of a reply that could not be read."""


@dataclass(frozen=True, slots=True)
class Chance:
    """A chance with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class JudgeFacts:
    """One judge of a council."""

    judge: str
    role: str | None
    kind: str
    model: str | None
    weight: float
    candidates: int
    verdicts: int
    failed: int
    """Candidates without a score because a call failed, …"""
    unread: int
    """… those where a reply came that could not be read, …"""
    undecided: int
    """… and those of which this kind can not say anything."""
    mean: float | None
    """Of its own scores, not normalised."""
    spread: float | None
    """Standard deviation of the same."""
    bias: float | None
    """Its mean minus that of the others' consensus, on the common scale."""
    correlation: float | None
    rank_correlation: float | None
    """With the others' consensus: Pearson's and Spearman's."""
    first_share: float | None
    """Share of its decided comparisons that the one shown first won: 0.5 is unbiased; None: it compares nothing."""
    flipped_share: float | None
    """Share of its comparisons that came out differently in the other order."""
    compared: int
    """Comparisons that were read in both orders."""
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    tokens_per_s: float | None
    """Completion tokens per second of a call."""
    latency_s: float | None
    """Mean over questions of the longest of its judgements, which are asked for side by side."""
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Keyed:
    """Rewards against the keys."""

    right: int
    wrong: int
    """Candidates with a reward."""
    auroc: Chance | None
    """Chance that a right answer has a higher reward than a wrong one, of any question; 0.5 is chance."""
    pairs: int
    """Pairs of a right and a wrong answer to one question."""
    accuracy: Chance | None
    """Share of them in which the right one has the higher reward; equal ones count half."""
    warns: Chance | None
    """Chance that a pair in the wrong order has a higher disagreement than one in the right order."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is said of the rewards of a run."""

    questions: int
    candidates: int
    statuses: Mapping[str, int]
    judges: tuple[JudgeFacts, ...]
    mean: float | None
    """Of the rewards."""
    variance: float | None
    """Mean disagreement over the candidates that have one, each judge having judged alone (round 0)."""
    variance_after: float | None
    """The same as it stands after disputed candidates were judged again; None: none was. It is lower by itself: what
    was high is drawn anew, and judges that read each other give way."""
    null: Null | None
    alpha: float | None
    latency_s: float | None
    """Mean over questions of the slowest judge: they are asked side by side."""
    summed_s: float | None
    """The same, one judge after the other."""
    keyed: Keyed | None
    picks: Picks | None
    warnings: tuple[str, ...] = field(default=())


def facts(found: Rewarded, rights: Mapping[Item, bool | None]) -> Facts:
    """Measures the rewards of a run.

    Args:
        rights: candidate → whether its answer is right; None: nobody can say.
    """
    first = _first_rewards(found)
    same_J_N, weights = _common(first, found.weights)
    several = sum(weight > 0 for weight in weights) > 1 and same_J_N.shape[1] > 1
    waits = _waits(found)
    heard = _judges(found, same_J_N, weights, waits)
    disagreements = _some(r.disagreement for r in first)
    again = any(r.rounds for r in found.rewards)
    return Facts(
        questions=sum(bool(one.candidates) for one in found.asked),
        candidates=len(found.rewards),
        statuses=counts(found.rewards),
        judges=heard,
        mean=_mean([r.value for r in found.rewards if r.value is not None]),
        variance=_mean(disagreements),
        variance_after=_mean(_some(r.disagreement for r in found.rewards)) if again else None,
        null=permutation_null(same_J_N, weights, seed=found.config.seed) if several and disagreements else None,
        alpha=krippendorff_alpha(same_J_N) if several else None,
        latency_s=_mean([max(each.values()) for each in waits]),
        summed_s=_mean([math.fsum(each.values()) for each in waits]),
        keyed=_keyed(found, rights),
        picks=picks(found, rights),
        warnings=tuple(_warnings(heard)),
    )


def counts(rewards: Sequence[Reward]) -> Mapping[str, int]:
    """Status → candidates, all of them named."""
    found = Counter(one.status for one in rewards)
    return {status: found[status] for status in STATUSES}  # type: ignore[index]  # the tuple holds the literal's words


def scores(found: Rewarded, known: Facts) -> Scores:
    """The rewards as the figures take them; disagreements as the judges had them alone, as chance has them too."""
    judges = {name: _some(r.normalised.get(name) for r in found.rewards) for name in found.weights}
    null = None if known.null is None else (known.null.mean, known.null.low, known.null.high)
    return Scores(
        found.name, f"run {found.run}", _some(r.value for r in found.rewards),
        _some(r.disagreement for r in _first_rewards(found)), judges, known.statuses, found.config.threshold, null,
        known.alpha,
    )  # fmt: skip


def _some(values: Iterator[float | None]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)


def _first_rewards(found: Rewarded) -> Sequence[Reward]:
    """The rewards before anybody was asked again: judges that read each other no longer agree of themselves."""
    if not any(reward.rounds for reward in found.rewards):
        return found.rewards
    alone = [said for said in found.judgements if not said.round]
    config = found.config
    return reckon(
        found.items, alone, found.weights, normalise=config.normalise, threshold=config.threshold, scales=found.scales
    ).rewards


def _common(rewards: Sequence[Reward], weighing: Mapping[str, float]) -> tuple[NDArray[np.float64], list[float]]:
    """(J, N) scores on the common scale, NaN where there is none, and the weights."""
    import numpy as np

    rows = [[r.normalised.get(name) for r in rewards] for name in weighing]
    table = np.array([[math.nan if value is None else value for value in row] for row in rows], dtype=float)
    return table.reshape(len(weighing), len(rewards)), list(weighing.values())


# --- judges ----------------------------------------------------------------------------------------------------------


def _judges(
    found: Rewarded,
    same_J_N: NDArray[np.float64],
    weights: Sequence[float],
    waits: Sequence[Mapping[str, float]],
) -> tuple[JudgeFacts, ...]:
    sat = bench(found.config)
    standings = leave_one_out(same_J_N, weights)
    of: dict[str, list[Judgement]] = {name: [] for name in found.weights}
    for said in found.judgements:
        of[said.judge].append(said)
    return tuple(
        _judge(sat, place, found, of[name], standings[place], [each[name] for each in waits if name in each])
        for place, name in enumerate(found.weights)
    )


def _judge(
    sat: Bench, place: int, found: Rewarded, said: Sequence[Judgement], stands: Standing, waits: Sequence[float]
) -> JudgeFacts:
    one, seat = sat.judges[place], sat.seats[place]
    own = _some(r.scores.get(one.name) for r in found.rewards)
    silent = Counter(_why(each) for each in latest(said) if each.score is None)
    calls = _calls(said)
    replies = [turn.completion for turn in calls if turn.completion is not None]
    bias = load("judges", "pairwise").position_bias(each.notes for each in said)
    return JudgeFacts(
        judge=one.name, role=one.role, kind=one.kind, model=seat.model if seat else None,
        weight=found.weights[one.name], candidates=len(found.rewards), verdicts=len(own), failed=silent["failed"],
        unread=silent["unread"], undecided=silent["undecided"], mean=_mean(own), spread=_spread(own), bias=stands.bias,
        correlation=stands.correlation, rank_correlation=stands.rank_correlation, first_share=bias.first_share,
        flipped_share=bias.flipped_share, compared=bias.compared, calls=len(calls),
        prompt_tokens=_total([reply.prompt_tokens for reply in replies]),
        completion_tokens=_total([reply.completion_tokens for reply in replies]),
        tokens_per_s=_pace(replies), latency_s=_mean(waits),
        cost_usd=_cost(replies),
    )  # fmt: skip


def _why(said: Judgement) -> str:
    """What kind of reason there is for no score."""
    if said.failure is not None and said.failure.kind == _UNREAD:
        return "unread"
    return "failed" if any(not turn.ok for turn in said.turns) else "undecided"


def _calls(said: Sequence[Judgement]) -> list[Turn]:
    return [turn for each in said for turn in each.turns]


def _total(values: Sequence[int | None]) -> int | None:
    """The sum of what was told; None: nobody told."""
    told = [value for value in values if value is not None]
    return sum(told) if told else None


def _pace(replies: Sequence[Completion]) -> float | None:
    timed = [(r.completion_tokens, r.latency_s) for r in replies if r.completion_tokens and r.latency_s]
    took_s = math.fsum(latency_s for _, latency_s in timed)
    return sum(tokens for tokens, _ in timed) / took_s if took_s else None


def _cost(replies: Sequence[Completion]) -> float | None:
    """None where a call is unpriced."""
    prices = [reply.cost_usd for reply in replies]
    return None if None in prices else math.fsum(price for price in prices if price is not None)


def _waits(found: Rewarded) -> list[dict[str, float]]:
    """For each question: judge → seconds until it had judged all candidates, each round after the other."""
    question = {(one.attempt_id, one.turn): place for place, part in enumerate(found.asked) for one in part.candidates}
    longest: dict[tuple[int, str, int], float] = {}
    for said in found.judgements:
        at = (question[said.attempt_id, said.turn], said.judge, said.round)
        if took_s := _took(said):
            longest[at] = max(longest.get(at, 0.0), took_s)
    waits: dict[int, dict[str, float]] = {}
    for (place, judge, _), took_s in longest.items():
        each = waits.setdefault(place, {})
        each[judge] = each.get(judge, 0.0) + took_s
    return [waits[place] for place in sorted(waits)]


def _took(said: Judgement) -> float:
    """Seconds until a judgement was there: samples and comparisons run side by side, the calls of one after another."""
    apart: dict[object, float] = {}
    for number, turn in enumerate(said.turns):
        if turn.completion is not None and turn.completion.latency_s is not None:
            lane = number if "comparisons" in said.notes else turn.sample
            apart[lane] = apart.get(lane, 0.0) + turn.completion.latency_s
    return max(apart.values(), default=0.0)


def _warnings(judges: Sequence[JudgeFacts]) -> Iterator[str]:
    """Judges that tell nothing."""
    for one in judges:
        if not one.verdicts:
            why = f"{one.failed:,} failed, {one.unread:,} not read, {one.undecided:,} undecided"
            yield f"{one.judge} gave no verdict on any of {one.candidates:,} candidates ({why}): it counts for nothing"
        elif one.candidates > 1 and not one.spread:
            yield (
                f"{one.judge} has no spread: all its {one.verdicts:,} scores are {one.mean:g}; it counts as 0.5 for "
                "each and tells no two candidates apart"
            )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _spread(values: Sequence[float]) -> float | None:
    middle = _mean(values)
    if middle is None:
        return None
    if len(set(values)) == 1:  # not the rounding of a mean
        return 0.0
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / len(values))


# --- against the keys ------------------------------------------------------------------------------------------------


def rights(store: Store, found: Rewarded) -> dict[Item, bool | None]:
    """Candidate → whether its answer is right; a program is right by its stored label, or is tried where it may run.

    Free text that is not the key's may say the same in other words: None.
    """
    known = {part.transcript.attempt.id: (part.question, part.key) for part in found.asked if part.transcript}
    labels = {(id, each.turn): each.correct for id, several in stored_labels(store, known).items() for each in several}
    return labels | block(_checked(found, labels))


async def _checked(found: Rewarded, labels: Mapping[Item, bool | None]) -> dict[Item, bool | None]:
    right: dict[Item, bool | None] = {}
    for part in found.asked:
        open_ = [one for one in part.candidates if labels.get((one.attempt_id, one.turn)) is None]
        if part.key is None or not open_ or (part.question.kind == PROGRAM and not part.key.tests):
            continue
        said = await verdicts_on(part.question, part.key, {one.answer for one in open_})
        for one in open_:
            other_words = part.question.kind == TEXT and one.answer is not None and not said[one.answer]
            right[one.attempt_id, one.turn] = None if other_words else said[one.answer]
    return right


def _keyed(found: Rewarded, rights: Mapping[Item, bool | None]) -> Keyed | None:
    """None where no candidate with a reward is known to be right or wrong."""
    known = [
        (place, reward, right)
        for place, part in enumerate(_by_question(found))
        for reward in part
        if reward.value is not None and (right := rights.get((reward.attempt_id, reward.turn))) is not None
    ]
    if not known:
        return None
    good = sum(is_right for _, _, is_right in known)
    values = [reward.value or 0.0 for _, reward, _ in known]
    pairs = list(_pairs(known))
    return Keyed(
        good, len(known) - good,
        auroc(values, [is_right for *_, is_right in known], [place for place, *_ in known], seed=found.config.seed),
        len(pairs),
        _accuracy(pairs),
        _warns(pairs, found.config.seed),
    )  # fmt: skip


def _by_question(found: Rewarded) -> list[Sequence[Reward]]:
    rewards = iter(found.rewards)
    return [[next(rewards) for _ in part.candidates] for part in found.asked]


@dataclass(frozen=True, slots=True)
class _Pair:
    question: int
    credit: float
    """1: the right answer is ahead, 0: behind, 0.5: level."""
    disagreement: float | None


def _pairs(known: Sequence[tuple[int, Reward, bool]]) -> Iterator[_Pair]:
    sides: dict[int, tuple[list[Reward], list[Reward]]] = {}
    for place, reward, right in known:
        sides.setdefault(place, ([], []))[right].append(reward)
    for place, (wrong, good) in sides.items():
        for a, b in product(good, wrong):
            ahead = (a.value or 0.0) - (b.value or 0.0)
            both = (a.disagreement, b.disagreement)
            mean = None if None in both else math.fsum(v for v in both if v is not None) / 2
            yield _Pair(place, 0.5 if ahead == 0 else float(ahead > 0), mean)


def _accuracy(pairs: Sequence[_Pair]) -> Chance | None:
    if not pairs:
        return None
    found = cluster_bootstrap([one.credit for one in pairs], [one.question for one in pairs])
    ahead, behind = (len({one.question for one in pairs if one.credit != credit}) for credit in (0.0, 1.0))
    questions = len({one.question for one in pairs})
    n = questions if min(ahead, behind) < _FEW else len(pairs)
    low, high = wilson(found.value * n, n)
    return Chance(found.value, min(found.low, low), max(found.high, high))


def _warns(pairs: Sequence[_Pair], seed: int) -> Chance | None:
    """Whether pairs in the wrong order are those with more disagreement; level ones decide nothing."""
    told = [one for one in pairs if one.disagreement is not None and one.credit != 0.5]
    if not told:
        return None
    values = [one.disagreement or 0.0 for one in told]
    return auroc(values, [one.credit == 0 for one in told], [one.question for one in told], seed=seed)


def auroc(values: Sequence[float], true: Sequence[bool], groups: Sequence[int], *, seed: int = 0) -> Chance | None:
    """Chance that a true one has a higher value than one that is not, ties counting half; None without one of each.

    >>> auroc([0.9, 0.8, 0.3, 0.1], [True, False, True, False], [0, 0, 1, 1]).value
    0.75

    Args:
        groups: what is drawn again for the 95 % interval: questions. Where fewer than 10 of them hold a true one, or
            one that is not, or the order is perfect, the interval is no narrower than Newcombe's for so many questions.

    Source: Hanley and McNeil 1982, Radiology 143, 29–36; Newcombe 2006, Stat. Med. 25, 559–573, method 5; resampling of
        groups.
    """
    import numpy as np

    levels, at_N = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    names, group_N = np.unique(np.asarray(groups), return_inverse=True)
    true_N = np.asarray(true, dtype=bool)
    whole = _auroc(len(levels), at_N, true_N, np.ones(len(true_N)))
    if whole is None:
        return None
    chance = np.random.default_rng(seed)
    drawn = []
    for _ in range(_RESAMPLES):
        times = np.bincount(chance.integers(len(names), size=len(names)), minlength=len(names))
        again = _auroc(len(levels), at_N, true_N, times[group_N].astype(float))
        drawn += [] if again is None else [again]
    low, high = np.quantile(drawn, [0.025, 0.975]) if drawn else (whole, whole)
    held = [len(np.unique(group_N[mark])) for mark in (true_N, ~true_N)]
    least, most = _newcombe(whole, *held) if min(held) < _FEW or whole in (0, 1) else (whole, whole)
    return Chance(whole, min(float(low), least), max(float(high), most))


def _newcombe(area: float, true: int, false: int) -> tuple[float, float]:
    """The areas θ whose own standard error, times 1.96, reaches the one that was found.

    >>> [round(end, 2) for end in _newcombe(1.0, 1, 30)], [round(end, 2) for end in _newcombe(0.8, 50, 50)]
    ([0.42, 1.0], [0.7, 0.87])
    """

    def apart(theta: float) -> float:
        more = (true + false) / 2 - 1
        spread = theta * (1 - theta) * (1 + more * ((1 - theta) / (2 - theta) + theta / (1 + theta)))
        return abs(area - theta) - _Z * math.sqrt(spread / (true * false))

    return _root(apart, 0.0, area), _root(apart, 1.0, area)


def _root(apart: Callable[[float], float], outside: float, inside: float) -> float:
    """Where it turns from above 0 to below, by halving."""
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        outside, inside = (middle, inside) if apart(middle) > 0 else (outside, middle)
    return inside


def _auroc(
    levels: int, at_N: NDArray[np.intp], true_N: NDArray[np.bool_], weight_N: NDArray[np.float64]
) -> float | None:
    """Weighted: by the number of times each was drawn.

    Args:
        at_N: the place of each value among all different ones, ascending.
    """
    import numpy as np

    true = np.bincount(at_N, weight_N * true_N, levels)
    false = np.bincount(at_N, weight_N * ~true_N, levels)
    of = true.sum() * false.sum()
    if not of:
        return None
    return float((true * (np.cumsum(false) - false / 2)).sum() / of)
