"""When to stop asking: more votes can not, or will hardly, change the winner.

A rule looks at the votes so far and at who could still be asked. Five rules:

- `unassailable`: all weight still to come could not bring a rival level. The decision is that of the full vote.
- `beta`, `dirichlet`: Adaptive-Consistency. The leader is the most probable answer with probability ≥ 1 − eps.
- `window`: Early-Stopping Self-Consistency. The voters are asked in windows of w; all answers of one window are equal.
- `predictive`: the full vote will have the present leader as its only winner with probability ≥ 1 − eps.

**Abstentions** (None) use up a voter and count for nobody. While nobody has answered nothing is settled.
**Ties**: the leader is the answer seen first among those in front (tie rule `first`). A rule never counts on a tie: a
rival who comes level has caught the leader, so what is promised holds under every tie rule.
**Weights**: `beta` and `dirichlet` count effective votes, v = W Σw / Σw² (Kish 1965) over all voters, so that equal
weights count 1 each; `window` looks at answers only; the leader is always the one with most weight.

`predictive` in full. Let D be the event that the full vote's winner is not the leader L_τ at the time τ of stopping,
F_t what is known after t votes. The rule stops where P(D | F_t) ≤ eps, or when all were asked, where D is impossible.
τ depends on nothing but the votes seen, so by the tower property P(D) = E[P(D | F_τ)] ≤ eps: looking after every vote
costs nothing. It holds on average over questions, and as far as the model of the votes holds:

- *Accuracies known*: each of K answers is right with probability 1/K, voter i gives the right one with probability a_i
  and each wrong one with (1 − a_i) / (K − 1), voters err independently. The posterior of the right answer is naive
  Bayes, and given it the weighted votes still to come are independent: their sum is built up exactly. The risks of the
  rivals are added up (Boole), which is exact for K = 2 and too careful otherwise.
- *Exchangeable voters* (no accuracies): Hoppe's urn. The next voter repeats an answer given v times with probability
  v / (n + 1) and says something new with 1 / (n + 1); abstaining is one of the things to say. Third answers are counted
  exactly where weights are equal; all answers not seen yet are taken as one rival, which is too careful. With unequal
  weights the risks of the rivals are added up as above.

Sources: Aggarwal et al. 2023, arXiv 2305.11860 (their Beta is exact; their Dirichlet integral is sampled and keeps the
five most frequent answers; here both are exact). Li et al. 2024, arXiv 2401.10480 (their code then takes the window's
answer; here all votes so far are counted). Hoppe 1984, J. Math. Biol. 20, 91–94;
Blackwell and MacQueen 1973, Ann. Stat. 1, 353–355. `predictive` was worked out for this project.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from pluribus.consensus._doubt import (
    beta_doubt,
    cells,
    dirichlet_doubt,
    pair_doubt,
    table_doubt,
    truth_doubt,
    urn_doubt,
)
from pluribus.consensus.votes import MOST
from pluribus.errors import UnknownName, UsageError

Rule = Literal["unassailable", "beta", "dirichlet", "window", "predictive"]
RULES: tuple[Rule, ...] = get_args(Rule)
_TABLED = 64
"""Voters of unlike weight for whom a table is kept (50 MB for so many); the sums of more are built anew each time."""
_CELLS_PAIR, _CELLS_TRUTH = 480, 2000
"""Units into which the weight of all voters is divided where no common unit of the weights is found."""


@dataclass(frozen=True, slots=True)
class Stopping:
    rule: str = "beta"
    eps: float = 0.05
    """The doubt that is small enough, in (0, 1)."""
    window: int = 5
    """Width of a window of the rule `window`, at least 2: so many equal answers end it."""


@dataclass(frozen=True, slots=True)
class Voters:
    """All who could be asked, in the order of asking."""

    weights: tuple[float, ...]
    accuracies: tuple[float, ...] | None = None
    """How often each is right, in (0, 1), where it is known. The rule `predictive` uses it."""
    options: int | None = None
    """How many answers there are, whole and at least 2, for voters of known accuracy; None: those seen, 2 at least."""


@dataclass(frozen=True, slots=True)
class Halt:
    asked: int
    answer: str | None
    """The leader then, under the tie rule `first`; None: nobody answered."""
    doubt: float | None
    """Estimated chance that the leader is not the winner, in [0, 1]; None: the rule gives none, or never stopped."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """The votes so far."""

    votes: tuple[str | None, ...]
    totals: dict[str, float]
    """Answer → weight, in the order first seen."""
    counts: dict[str, int]
    """Answer → voters."""
    abstained: int

    @property
    def asked(self) -> int:
        return len(self.votes)


def settled(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> bool:
    """Whether the votes of the first `len(votes)` voters are enough; always so when all were asked.

    >>> settled(["a", "a", "a"], Voters((1.0,) * 5), Stopping("unassailable"))
    True
    >>> settled(["a", "a", "b"], Voters((1.0,) * 5), Stopping("unassailable"))
    False

    Args:
        votes: of the first voters in the order of asking, canonical; None abstains.

    Raises UsageError on unusable votes, voters or settings.
    """
    _check(votes, voters, stopping)
    return len(votes) == len(voters.weights) or _stops(votes, voters, stopping)


def wave(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> int:
    """How many to ask next, at once: no vote fewer could settle it. 0: enough.

    The smallest number of next voters who could settle the vote if they all agreed, with the leader or, where another
    answer could win sooner, among themselves. Nothing they say settles it earlier: asked one by one, as many would be
    asked, so a wave at once never costs a call more. Voters known to be worse than chance are asked one by one.

    >>> wave([], Voters((1.0,) * 40), Stopping("beta", eps=0.05))  # 2^-(4 + 1) < 0.05
    4
    >>> wave(["a", "b", "a", "a"], Voters((1.0,) * 40), Stopping("beta", eps=0.05))
    3

    Args, raises: as `settled`.
    """
    _check(votes, voters, stopping)
    left = len(voters.weights) - len(votes)
    if left == 0 or _stops(votes, voters, stopping):
        return 0
    if stopping.rule == "window":
        return min(left, _window_wave(votes, stopping.window))
    if _equal(voters):
        now = _stand(votes, voters)
        return _equal_wave(stopping.rule, stopping.eps, _sizes(now), now.abstained, left)
    return _wave(votes, voters, stopping)


def halt(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> Halt:
    """Where the rule stops in a full sequence of votes, one per voter.

    >>> halt(["a", "b", "a", "a", "a", "a", "b"], Voters((1.0,) * 7), Stopping("predictive"))
    Halt(asked=5, answer='a', doubt=0.0)

    Args, raises: as `settled`.
    """
    _check(votes, voters, stopping)
    if len(votes) < len(voters.weights):
        raise UsageError(f"{len(votes)} votes of {len(voters.weights)} voters", hint="give the votes of all of them")
    if stopping.rule != "window" and _equal(voters):
        return _equal_halt(votes, stopping)
    for asked in range(1, len(votes) + 1):
        said = votes[:asked]
        if _stops(said, voters, stopping):
            return Halt(asked, _leader(_stand(said, voters)), doubt(said, voters, stopping))
    return Halt(len(votes), _leader(_stand(votes, voters)), None)


def doubt(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> float | None:
    """The rule's estimate of the chance that the present leader is not the winner, settled or not.

    >>> doubt(["a", "b", "a", "a"], Voters((1.0,) * 5), Stopping("unassailable"))
    0.0

    Args, raises: as `settled`.

    Returns: in [0, 1], 0 or 1 under `unassailable`; None: nobody answered, or the rule is `window`, which has none.
    """
    _check(votes, voters, stopping)
    now = _stand(votes, voters)
    if stopping.rule == "window" or _leader(now) is None:
        return None
    return _doubt(now, voters, stopping)


def posterior(answer: str, votes: Sequence[str | None], weights: Sequence[float] | None = None) -> float:
    """The chance that an answer is the one these voters give most often, were they asked without end.

    P(p_answer is the largest), p ~ Dirichlet(v + 1) over the answers given, v effective votes: of the leader, 1 − the
    doubt of the rule `dirichlet` when all have voted.

    >>> [round(posterior(answer, ["a", "a", "a", "b"]), 4) for answer in "ab"]
    [0.8125, 0.1875]

    Args:
        answer: any of the votes, not only the leader.
        votes: canonical; None abstains.
        weights: one per voter, from 0 to 1e200, not all 0; None: one vote each.
    """
    voters = Voters(tuple(weights) if weights is not None else (1.0,) * len(votes))
    _check(votes, voters, Stopping())
    return 1 - dirichlet_doubt(_effective(_stand(votes, voters), answer, voters))


def cheapest_first(costs: Sequence[float], weights: Sequence[float]) -> tuple[int, ...]:
    """The order of asking: indices by cost, the heavier first among equal costs, else as they come.

    >>> cheapest_first([2.0, 0.5, 0.5], [1.0, 1.0, 3.0])
    (2, 1, 0)

    Args:
        costs, weights: one per voter, finite and ≥ 0; any unit.
    """
    if len(costs) != len(weights):
        raise UsageError(f"{len(costs)} costs for {len(weights)} voters", hint="give one cost per voter")
    _check_numbers("cost", costs)
    _check_numbers("weight", weights)
    return tuple(sorted(range(len(costs)), key=lambda i: (costs[i], -weights[i])))


def _check(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> None:
    _check_stopping(stopping)
    _check_voters(voters)
    if len(votes) > len(voters.weights):
        raise UsageError(f"{len(votes)} votes for {len(voters.weights)} voters", hint="give at most one vote per voter")


@lru_cache(maxsize=2**10)
def _check_stopping(stopping: Stopping) -> None:
    if stopping.rule not in RULES:
        raise UnknownName("stopping rule", stopping.rule, RULES)
    if not 0 < stopping.eps < 1:
        raise UsageError(f"eps is {stopping.eps!r}", hint="name the doubt that is small enough, between 0 and 1")
    if stopping.window < 2:
        raise UsageError(f"window is {stopping.window!r}", hint="at least 2 answers can agree")


@lru_cache(maxsize=2**10)
def _check_voters(voters: Voters) -> None:
    _check_numbers("weight", voters.weights)
    if not any(voters.weights):
        raise UsageError("no voter has a weight above 0", hint="give at least one voter a weight above 0")
    if voters.options is not None and not (voters.options >= 2 and voters.options == int(voters.options)):
        hint = "a question has a whole number of answers, at least 2; None: not known"
        raise UsageError(f"options is {voters.options!r}", hint=hint)
    if voters.accuracies is not None:
        _check_accuracies(voters.accuracies, len(voters.weights))


def _check_accuracies(accuracies: Sequence[float], voters: int) -> None:
    if len(accuracies) != voters:
        raise UsageError(f"{len(accuracies)} accuracies for {voters} voters", hint="give one accuracy per voter")
    for index, accuracy in enumerate(accuracies):
        if not 0 < accuracy < 1:
            raise UsageError(f"accuracy {accuracy!r} of voter {index} is not between 0 and 1")


def _check_numbers(what: str, values: Iterable[float]) -> None:
    for index, value in enumerate(values):
        if not 0 <= value <= MOST:
            raise UsageError(f"{what} {value!r} of voter {index} is not a number from 0 to 1e200")


@lru_cache(maxsize=2**10)
def _equal(voters: Voters) -> bool:
    """Whether every vote counts the same and nothing else is known of the voters."""
    return voters.accuracies is None and len(set(voters.weights)) == 1


def _stand(votes: Sequence[str | None], voters: Voters) -> _Standing:
    totals: dict[str, float] = {}
    counts: dict[str, int] = {}
    for vote, weight in zip(votes, voters.weights, strict=False):
        if vote is not None:
            totals[vote] = totals.get(vote, 0.0) + weight
            counts[vote] = counts.get(vote, 0) + 1
    return _Standing(tuple(votes), totals, counts, len(votes) - sum(counts.values()))


def _leader(now: _Standing) -> str | None:
    """The heaviest answer, the one seen first among equals; None: nobody with any weight answered."""
    most = max(now.totals.values(), default=0.0)
    return next((answer for answer, total in now.totals.items() if total and math.isclose(total, most)), None)


def _sizes(now: _Standing) -> tuple[int, ...]:
    return tuple(sorted(now.counts.values(), reverse=True))


def _stops(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> bool:
    """Whether the rule itself says so."""
    if stopping.rule == "window":
        return _window_stops(votes, stopping.window)
    now = _stand(votes, voters)
    return _leader(now) is not None and _small(_doubt(now, voters, stopping), stopping.eps)


def _small(risk: float, eps: float) -> bool:
    """Whether it is small enough; rounding must not cost a call."""
    return risk < 1 and risk <= eps * (1 + 1e-12)


def _doubt(now: _Standing, voters: Voters, stopping: Stopping) -> float:
    """The rule's doubt in the leader; there is one."""
    left = len(voters.weights) - now.asked
    if _equal(voters):
        return _equal_doubt(stopping.rule, _sizes(now), now.abstained, left)
    leader = _leader(now)
    assert leader is not None
    if stopping.rule in ("beta", "dirichlet"):
        return _effective_doubt(stopping.rule, now, leader, voters)
    if _unassailable(now, leader, voters):
        return 0.0
    if stopping.rule == "unassailable" or left == 0:
        return 1.0
    if voters.accuracies is None:
        return _exchangeable_doubt(now, leader, voters)
    return _known_doubt(now, leader, voters, voters.accuracies)


@lru_cache(maxsize=2**17)
def _equal_doubt(rule: str, sizes: tuple[int, ...], abstained: int, left: int) -> float:
    """`_doubt` of equal votes: nothing but the sizes of the answer classes matters."""
    if rule == "beta":
        return beta_doubt(sizes[0], sum(sizes[1:2]))
    if rule == "dirichlet":
        return dirichlet_doubt(sizes)
    if rule == "unassailable":
        return 0.0 if sizes[0] - sum(sizes[1:2]) > left else 1.0
    return urn_doubt(sizes, abstained, left)


def _equal_halt(votes: Sequence[str | None], stopping: Stopping) -> Halt:
    """`halt` of equal votes, counted on from vote to vote."""
    counts: dict[str, int] = {}
    abstained = 0
    for asked, vote in enumerate(votes, 1):
        if vote is None:
            abstained += 1
        else:
            counts[vote] = counts.get(vote, 0) + 1
        if counts:
            sizes = tuple(sorted(counts.values(), reverse=True))
            risk = _equal_doubt(stopping.rule, sizes, abstained, len(votes) - asked)
            if _small(risk, stopping.eps):
                return Halt(asked, max(counts, key=counts.__getitem__), risk)
    return Halt(len(votes), max(counts, key=counts.__getitem__, default=None), None)


@lru_cache(maxsize=2**17)
def _equal_wave(rule: str, eps: float, sizes: tuple[int, ...], abstained: int, left: int) -> int:
    first, *others = sizes or (0,)
    for more in range(1, left):
        if _small(_equal_doubt(rule, (first + more, *others), abstained, left - more), eps):
            return more
    return left


def _wave(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> int:
    """`wave` for any weights: the fewest that settle it for one of the answers, a new one included."""
    left = len(voters.weights) - len(votes)
    if stopping.rule == "predictive" and min(voters.accuracies or (1,)) < 1 / (voters.options or 2):
        return 1
    new = "\0"  # no canonical answer
    said = dict.fromkeys(vote for vote in (*votes, new) if vote is not None)
    for more in range(1, left):
        if any(_stops([*votes, *[answer] * more], voters, stopping) for answer in said):
            return more
    return left


def _window_stops(votes: Sequence[str | None], width: int) -> bool:
    windows = [votes[at : at + width] for at in range(0, len(votes) - width + 1, width)]
    return any(_agree(window) for window in windows)


def _agree(window: Sequence[str | None]) -> bool:
    return window[0] is not None and len(set(window)) == 1


def _window_wave(votes: Sequence[str | None], width: int) -> int:
    """The rest of the window under way, and a whole one more where that has no chance any longer."""
    begun = votes[len(votes) - len(votes) % width :]
    return width - len(begun) + (width if begun and not _agree(begun) else 0)


def _unassailable(now: _Standing, leader: str, voters: Voters) -> bool:
    second = max((total for answer, total in now.totals.items() if answer != leader), default=0.0)
    to_come = math.fsum(voters.weights[now.asked :])
    return now.totals[leader] - second - to_come > 1e-9 * math.fsum(voters.weights)


def _effective_doubt(rule: str, now: _Standing, leader: str, voters: Voters) -> float:
    """beta and dirichlet on effective votes."""
    votes = _effective(now, leader, voters)
    return beta_doubt(votes[0], sum(votes[1:2])) if rule == "beta" else dirichlet_doubt(votes)


def _effective(now: _Standing, answer: str, voters: Voters) -> tuple[float, ...]:
    """Effective votes of an answer, then of its rivals, the most first."""
    heaviest = max(voters.weights)  # squares of the weights themselves may be more or less than a number can hold
    parts = [weight / heaviest for weight in voters.weights]
    scale = math.fsum(parts) / math.fsum(part * part for part in parts)
    rivals = sorted((total for other, total in now.totals.items() if other != answer), reverse=True)
    return tuple(round(total / heaviest * scale, 9) for total in (now.totals.get(answer, 0.0), *rivals))


def _exchangeable_doubt(now: _Standing, leader: str, voters: Voters) -> float:
    """Sum of the risks that each rival, or something not said yet, catches up with the leader."""
    whole, unit = cells(voters.weights, _CELLS_PAIR)
    slack, first, risk = _slack(whole, unit, now, voters), now.counts[leader], 0.0
    rivals = [(now.totals[answer], count) for answer, count in now.counts.items() if answer != leader]
    for total, count in [*rivals, (0.0, 1)]:
        lead = round((now.totals[leader] - total) / unit - slack, 6)
        alphas = (first, count, now.asked + 1 - first - count)
        if len(whole) <= _TABLED:
            risk += table_doubt(lead, whole, now.asked, alphas)
        else:
            risk += pair_doubt(lead, tuple(sorted(whole[now.asked :])), alphas)
    return min(risk, 1.0)


def _slack(whole: Sequence[int], unit: float, now: _Standing, voters: Voters) -> float:
    """The most that rounding the votes to come can hide, in units: a lead is trusted for what is above it."""
    to_come = zip(whole[now.asked :], voters.weights[now.asked :], strict=True)
    return math.fsum(abs(weight / unit - units) for units, weight in to_come)


def _known_doubt(now: _Standing, leader: str, voters: Voters, accuracies: tuple[float, ...]) -> float:
    """The same for voters of known accuracy."""
    whole, unit = cells(voters.weights, _CELLS_TRUTH)
    options = max(voters.options or 2, len(now.counts))
    rivals = [answer for answer in now.totals if answer != leader]
    lead = now.totals[leader] / unit - _slack(whole, unit, now, voters)
    leads = [lead - total / unit for total in (*(now.totals[answer] for answer in rivals), 0.0)]
    unseen = options - len(now.counts)
    beliefs = _beliefs((leader, *rivals), unseen, now.votes, accuracies, options)
    return truth_doubt(leads, beliefs, unseen, whole[now.asked :], accuracies[now.asked :], options)


def _beliefs(
    answers: Sequence[str], unseen: int, votes: Sequence[str | None], accuracies: Sequence[float], options: int
) -> list[float]:
    """Naive Bayes: the chance of each answer, and last of each unseen one, to be right."""
    logs = [0.0] * (len(answers) + 1)
    for vote, accuracy in zip(votes, accuracies, strict=False):
        if vote is not None:
            logs[answers.index(vote)] += math.log(accuracy * (options - 1) / (1 - accuracy))
    odds = [math.exp(log - max(logs)) for log in logs]
    total = math.fsum(odds[:-1]) + unseen * odds[-1]
    return [one / total for one in odds]
