"""What people said of pairs, as arithmetic: which verdicts stand, who wins a pair, how far two raters agree.

Verdicts are only ever added, so what counts is read out of them: an `undo` takes one back, of several the last counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pluribus.types import Verdict

Winner = Literal["first", "second", "tie"]
Item = tuple[str, int]
"""Attempt id and turn of a reply."""
Standing = Mapping[tuple[str, str], Verdict]
"""(pair, reviewer) → that person's verdict that counts."""
_OTHER: Mapping[Winner, Winner] = {"first": "second", "second": "first", "tie": "tie"}


def sides(verdict: Verdict) -> tuple[Item, Item]:
    """Both replies in an order that does not depend on which was shown left.

    >>> sides(Verdict("p", "q", ("b", 0), ("a", 3), "tie", "ada", 1.0))
    (('a', 3), ('b', 0))
    """
    low, high = sorted((verdict.first, verdict.second))
    return low, high


def choice_of(verdict: Verdict) -> Winner | None:
    """Who wins by this verdict, as a place in `sides`; None: it decides nothing (`skip`, `undo`).

    >>> choice_of(Verdict("p", "q", ("b", 0), ("a", 3), "first", "ada", 1.0))
    'second'
    """
    if verdict.choice == "skip" or verdict.choice == "undo":
        return None
    return verdict.choice if verdict.first == sides(verdict)[0] else _OTHER[verdict.choice]


def standing(events: Iterable[Verdict]) -> dict[tuple[str, str], Verdict]:
    """What stands of everything that was ever said: (pair, reviewer) → verdict, in the order of time.

    Args:
        events: all of them, in any order; those of the same moment count in the order given.

    Returns:
        The last one of each person on each pair that was not taken back. A `skip` can stand; it decides nothing.

    >>> said = [Verdict("p", "q", ("a", 0), ("b", 0), choice, "ada", at)
    ...         for at, choice in enumerate(["tie", "first", "undo"])]
    >>> [(key, verdict.choice) for key, verdict in standing(said).items()]
    [(('p', 'ada'), 'tie')]
    """
    stacks: dict[tuple[str, str], list[Verdict]] = {}
    for event in sorted(events, key=lambda event: event.at):
        stack = stacks.setdefault((event.pair, event.reviewer), [])
        if event.choice != "undo":
            stack.append(event)
        elif stack:
            stack.pop()
    last = {key: stack[-1] for key, stack in stacks.items() if stack}
    return dict(sorted(last.items(), key=lambda entry: entry[1].at))


def majority(stands: Standing) -> dict[str, Winner]:
    """Pair → the winner by most votes, as a place in `sides`; a shared lead is a tie, and a skip is no vote.

    >>> said = [Verdict("p", "q", ("a", 0), ("b", 0), "first", "ada", 1.0),
    ...         Verdict("p", "q", ("b", 0), ("a", 0), "second", "bob", 2.0)]
    >>> majority(standing(said))
    {'p': 'first'}
    """
    votes: dict[str, Counter[Winner]] = {}
    for (pair, _), verdict in stands.items():
        if (choice := choice_of(verdict)) is not None:
            votes.setdefault(pair, Counter())[choice] += 1
    return {pair: _leader(counts) for pair, counts in votes.items()}


def _leader(counts: Counter[Winner]) -> Winner:
    most = max(counts.values())
    leaders = [choice for choice, count in counts.items() if count == most]
    return leaders[0] if len(leaders) == 1 else "tie"


def adjudicated(stands: Standing, votes: int = 1) -> frozenset[str]:
    """The pairs on which at least `votes` people have decided; a skip decides nothing."""
    counts = Counter(pair for (pair, _), verdict in stands.items() if verdict.choice != "skip")
    return frozenset(pair for pair, count in counts.items() if count >= votes)


def kappa(first_N: Sequence[str | None], second_N: Sequence[str | None]) -> float | None:
    """Cohen's kappa: how far two raters agree beyond what their own habits would give by chance.

    kappa = (p_o - p_e) / (1 - p_e), p_o the share of equal labels, p_e = Σ_label p_first(label) p_second(label).

    Args:
        first_N, second_N: labels of the same N things; places where either is None are left out.

    Returns:
        At most 1; 0 is chance, less is worse than chance. None: no place has both, or chance alone agrees always.

    References:
        Cohen, A coefficient of agreement for nominal scales, 1960.

    >>> kappa(["a", "a", "b", "b"], ["a", "a", "b", "a"])
    0.5
    """
    pairs = [(a, b) for a, b in zip(first_N, second_N, strict=True) if a is not None and b is not None]
    if not pairs:
        return None
    n = len(pairs)
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    by_chance = sum(left[label] * right[label] for label in left)
    if by_chance == n * n:
        return None
    equal = sum(a == b for a, b in pairs)
    return (equal * n - by_chance) / (n * n - by_chance)
