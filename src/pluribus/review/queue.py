"""Who sees which pair next. Nothing of it is kept: it is read out of the verdicts, and out of who looks at what now."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pluribus.review.material import Pair, Reply
from pluribus.verdicts import Standing, adjudicated

LEASE_S = 300.0
"""How long a pair that one person looks at is kept from the others."""


@dataclass(frozen=True, slots=True)
class Progress:
    total: int
    decided: int
    """Pairs that have the verdicts asked for."""
    left: int
    """Pairs that this reviewer may still decide."""
    skipped: int
    """Pairs that this reviewer passed, and nobody has decided since."""


@dataclass(slots=True)
class Queue:
    """The pairs in their order, and who holds which."""

    pairs: Sequence[Pair]
    votes: int = 1
    """Verdicts a pair needs, each of another person."""
    clock: Callable[[], float] = time.time
    _leases: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """(pair, reviewer) → since when, until when."""

    def next(self, stands: Standing, reviewer: str, *, skipped: bool = False) -> Pair | None:
        """The pair this reviewer gets, and holds from now on; None: there is none for them at this moment.

        Pairs with fewest verdicts come first, among them those with most disagreement; the one they already hold comes
        before all others.

        Args:
            skipped: one that they passed, the longest ago first.
        """
        open_ = self._passed(stands, reviewer) if skipped else self._open(stands, reviewer)
        counts = Counter(pair for (pair, _), verdict in stands.items() if verdict.choice != "skip")
        if not skipped:
            open_.sort(key=lambda pair: (not self._holds(pair.id, reviewer), counts[pair.id]))
        free = (pair for pair in open_ if counts[pair.id] + self._held(pair.id, reviewer) < self.votes)
        found = next(free, None)
        if found is not None:
            self.hold(found.id, reviewer)
        return found

    def hold(self, pair: str, reviewer: str) -> float:
        """Keeps the pair for this reviewer, and says since when they look at it (Unix time, s)."""
        now = self.clock()
        since = self._leases[pair, reviewer][0] if self._holds(pair, reviewer) else now
        self._leases[pair, reviewer] = (since, now + LEASE_S)
        return since

    def release(self, pair: str, reviewer: str) -> None:
        self._leases.pop((pair, reviewer), None)

    def progress(self, stands: Standing, reviewer: str) -> Progress:
        done = adjudicated(stands, self.votes)
        decided = sum(pair.id in done for pair in self.pairs)
        left, skipped = len(self._open(stands, reviewer)), len(self._passed(stands, reviewer))
        return Progress(len(self.pairs), decided, left, skipped)

    def _open(self, stands: Standing, reviewer: str) -> list[Pair]:
        """Neither decided by enough people nor answered, with a verdict or a skip, by this one."""
        done = adjudicated(stands, self.votes)
        return [pair for pair in self.pairs if pair.id not in done and (pair.id, reviewer) not in stands]

    def _passed(self, stands: Standing, reviewer: str) -> list[Pair]:
        done, there = adjudicated(stands, self.votes), {pair.id: pair for pair in self.pairs}
        mine = [pair for (pair, who), said in stands.items() if who == reviewer and said.choice == "skip"]
        return [there[pair] for pair in mine if pair in there and pair not in done]

    def _holds(self, pair: str, reviewer: str) -> bool:
        lease = self._leases.get((pair, reviewer))
        return lease is not None and lease[1] > self.clock()

    def _held(self, pair: str, but: str) -> int:
        """By how many others."""
        return sum(one == pair and who != but and self._holds(one, who) for one, who in self._leases)


def shown(pair: Pair, reviewer: str) -> tuple[Reply, Reply]:
    """Both replies in the order this reviewer sees them: random, and the same every time."""
    first, second = pair.replies
    flip = random.Random(f"{pair.id}/{reviewer}").random() < 0.5
    return (second, first) if flip else (first, second)
