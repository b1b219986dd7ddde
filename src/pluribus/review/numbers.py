"""How far people agree with each other, and each person and all of them with each judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isclose
from statistics import median

from pluribus.review.material import COUNCIL, Material, Pair, Reply
from pluribus.types import Verdict
from pluribus.verdicts import Standing, Winner, adjudicated, choice_of, kappa, majority

EVERYBODY = "majority of the reviewers"
Labels = Mapping[str, Winner]
"""Pair → who is better, as a place in its sides; a pair without a verdict is not there."""


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    decided: int
    """Pairs, ties among them."""
    ties: int
    skipped: int
    seconds: float | None
    """Median from showing the pair to the verdict; None: not known."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of two raters, over the pairs on which both prefer one side."""

    one: str
    other: str
    n: int
    agreed: int
    kappa: float | None
    """Cohen's; None where it is not defined."""
    ties: int
    """Pairs that both rated and at least one called a tie: left out."""

    @property
    def share(self) -> float | None:
        return self.agreed / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Statistics:
    run: str
    """Its name."""
    votes: int
    pairs: int
    decided: int
    """Pairs that have the verdicts asked for."""
    first: int
    """Pairs whose winner most reviewers agree on, …"""
    ties: int
    """… and pairs that are a tie."""
    skipped: int
    """Skips that stand."""
    people: tuple[Person, ...]
    between: tuple[Agreement, ...]
    """Each two reviewers."""
    with_judges: tuple[Agreement, ...]
    """Each reviewer, and the majority where there are several, with each judge and with the whole council."""


def statistics(material: Material, stands: Standing, votes: int = 1) -> Statistics:
    """Counts and agreement over the pairs of the material."""
    there = {pair.id for pair in material.pairs}
    mine = {key: said for key, said in stands.items() if key[0] in there}
    names = sorted({who for _, who in mine})
    raters = {name: _labels(mine, name) for name in names}
    won = majority(mine)
    crowd = {**raters, **({EVERYBODY: won} if len(names) > 1 else {})}
    judges = {name: preferences(material.pairs, _by(name)) for name in (*material.judges, COUNCIL)}
    return Statistics(
        material.name, votes, len(material.pairs), len(adjudicated(mine, votes)),
        sum(choice != "tie" for choice in won.values()), sum(choice == "tie" for choice in won.values()),
        sum(said.choice == "skip" for said in mine.values()),
        tuple(_person(name, mine) for name in names),
        tuple(agreement(a, raters[a], b, raters[b]) for a, b in combinations(names, 2)),
        tuple(agreement(a, crowd[a], judge, judges[judge]) for a in crowd for judge in judges),
    )  # fmt: skip


def preferences(pairs: Sequence[Pair], score: Callable[[Reply], float | None]) -> dict[str, Winner]:
    """Pair → which side has the higher score; `tie` where they are equal, absent where one has none."""
    found: dict[str, Winner] = {}
    for pair in pairs:
        choice = preferred(*(score(reply) for reply in pair.replies))
        if choice is not None:
            found[pair.id] = choice
    return found


def preferred(first: float | None, second: float | None) -> Winner | None:
    """Which of two scores is higher; None where one is missing.

    >>> preferred(0.5, 0.7), preferred(0.1 + 0.2, 0.3), preferred(None, 0.7)
    ('second', 'tie', None)
    """
    if first is None or second is None:
        return None
    if isclose(first, second, rel_tol=1e-12):
        return "tie"
    return "first" if first > second else "second"


def agreement(one: str, ones: Labels, other: str, others: Labels) -> Agreement:
    """Of two raters over the pairs that both have rated.

    Which side of a pair is its first means nothing, so kappa is of each pair both ways round: chance agrees on half of
    them, even where the same seat of the council wins them all, and kappa is twice the share less one.
    """
    both = [(ones[pair], others[pair]) for pair in ones if pair in others]
    clear = [(a, b) for a, b in both if "tie" not in (a, b)]
    ways = clear + [(_OTHER[a], _OTHER[b]) for a, b in clear]
    agreed = sum(a == b for a, b in clear)
    found = kappa([a for a, _ in ways], [b for _, b in ways])
    return Agreement(one, other, len(clear), agreed, found, len(both) - len(clear))


_OTHER: Mapping[Winner, Winner] = {"first": "second", "second": "first", "tie": "tie"}


def _by(judge: str) -> Callable[[Reply], float | None]:
    if judge == COUNCIL:
        return lambda reply: reply.reward.value
    return lambda reply: reply.reward.scores.get(judge)


def _labels(stands: Standing, reviewer: str) -> dict[str, Winner]:
    mine = {pair: choice_of(said) for (pair, who), said in stands.items() if who == reviewer}
    return {pair: choice for pair, choice in mine.items() if choice is not None}


def _person(name: str, stands: Standing) -> Person:
    mine: list[Verdict] = [said for (_, who), said in stands.items() if who == name]
    decided = [said for said in mine if said.choice != "skip"]
    times = [said.seconds for said in decided if said.seconds is not None]
    ties = sum(said.choice == "tie" for said in decided)
    return Person(name, len(decided), ties, len(mine) - len(decided), median(times) if times else None)
