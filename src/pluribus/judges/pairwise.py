"""Compares the candidates of a question two by two; the score is the mean over a candidate's comparisons, in [0, 1].

Source: the pairwise judge of Zheng et al. 2023, arXiv 2306.05685, with their remedy against position bias: both orders
are asked, and only who wins in both has won.

A comparison gives 1 for a win, 0 for a loss, ½ for a tie and where the two orders contradict each other; it gives
nothing when one of its orders could not be read. The same text twice is a tie, and nobody is asked. Who meets whom:
everybody, or `opponents` others on a ring that the seed draws. An odd number of candidates can not each meet an odd
number of others; each then meets one more.

A score says where a candidate stands among those it met, so it can not be compared with scores from another field, a
candidate alone has none, and this kind is not asked again about a few candidates: in later rounds its opinion stands.

Each opinion holds the calls in which its candidate was shown first, so every call is in one opinion; its reason is of
one of these. `notes["comparisons"]` lists the candidate's comparisons as plain values: `other` (attempt and turn),
`place` (1 or 2: which of the two the schedule names first), `sample`, `first` and `second` (win, loss or tie when it
was shown first and second; None: not read, or not asked), `points`. `position_bias` counts in them.
"""

from __future__ import annotations

import math
import random
from asyncio import gather
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pluribus.agents import Agent
from pluribus.judges import Candidate, Juror, Opinion
from pluribus.judges._asking import at_least_one, draws, reason_of, seated, why
from pluribus.prompts import Peer
from pluribus.replies import REPAIR, Reply, ask, choice
from pluribus.types import Failure

PROMPTS = ("pairwise", REPAIR)
MODEL = "chat"
RANGE = (0.0, 1.0)
REREADS = False
COMPARES = True
"""A candidate's score depends on the others."""
COMPARISONS = "comparisons"
"""The note that holds a candidate's comparisons."""
CRITERIA = "Is the final answer right, and does each step follow? After that, whether it is complete and clear."

Outcome = Literal["win", "loss", "tie"]
POINTS: Mapping[Outcome, float] = {"win": 1.0, "tie": 0.5, "loss": 0.0}
_TURNED: Mapping[Outcome, Outcome] = {"win": "loss", "loss": "win", "tie": "tie"}
_SAID: Mapping[str, Outcome] = {"1": "win", "2": "loss", "tie": "tie"}
"""The reply → what came of it for the candidate shown first."""


@dataclass(frozen=True, slots=True)
class Settings:
    criteria: str = CRITERIA
    """What counts, as the model reads it: a rubric of one's own, or of a task."""
    opponents: int = 0
    """How many others each candidate meets, at least 0; 0, or more than there are: all of them."""
    samples: int = 1
    """Times each comparison is made, at least 1."""

    def __post_init__(self) -> None:
        at_least_one(self.samples)
        if self.opponents < 0:
            raise ValueError(f"opponents is {self.opponents}; write 0 for all others, or how many each candidate meets")
        if not self.criteria.strip():
            raise ValueError("criteria is empty; say what counts, or leave it out for the built-in ones")


@dataclass(frozen=True, slots=True)
class _Match:
    """One comparison, by the candidates' places; `there` shows `one` first, `back` shows `other` first."""

    one: int
    other: int
    sample: int
    there: Reply[str] | None
    """None: both texts are the same, and nobody was asked."""
    back: Reply[str] | None


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate; `samples` holds the points of its comparisons, None where one was not read."""
    if len(candidates) < 2:
        alone = Failure("no_comparison", "there is no other candidate of this question; pairwise compares 2 or more")
        return [Opinion(None, failure=alone) for _ in candidates]
    settings: Settings = juror.settings
    drawn = list(enumerate(draws(juror, settings.samples)))
    pairs = schedule(len(candidates), settings.opponents, f"{juror.seed}:{juror.question.id}")
    texts = [candidate.text for candidate in candidates]
    played = await gather(*(_play(juror, texts, *pair, *which) for pair in pairs for which in drawn))
    return [_opinion(place, played, candidates) for place in range(len(candidates))]


async def judge(
    agent: Agent, first: str, second: str, *, criteria: str = CRITERIA, round: int = 0, sample: int = 0
) -> Reply[str]:
    """Which of two candidates is better, shown in this order: "1", "2" or "tie"; None: no readable verdict."""
    return await ask(
        agent, "pairwise", choice(list(_SAID)), role="comparison", round=round, sample=sample,
        peers=[Peer("1", first), Peer("2", second)], criteria=criteria,
    )  # fmt: skip


def schedule(n: int, opponents: int, seed: int | str) -> list[tuple[int, int]]:
    """Who meets whom: pairs of places, each pair once, everybody in equally many of them.

    Args:
        n: candidates, at least 2.
        opponents: how many others each meets; 0: all. Where both are odd it is one more, since n × opponents ends of
            pairs can not be odd.
        seed: draws the ring on which candidates meet those next to them.

    >>> schedule(4, 1, 0)
    [(3, 0), (1, 2)]
    >>> len(schedule(100, 6, 0)), len(schedule(5, 0, 0))
    (300, 10)
    """
    ring = random.Random(seed).sample(range(n), n)
    each = min(opponents or n - 1, n - 1)
    each += n % 2 and each % 2
    pairs = [(ring[at], ring[(at + step) % n]) for step in range(1, each // 2 + 1) for at in range(n)]
    across = [(ring[at], ring[at + n // 2]) for at in range(n // 2)] if each % 2 else []
    return pairs + across


async def _play(juror: Juror, texts: Sequence[str], one: int, other: int, sample: int, draw: int) -> _Match:
    if texts[one] == texts[other]:
        return _Match(one, other, sample, None, None)
    agent, criteria = seated(juror), juror.settings.criteria
    there, back = await gather(
        judge(agent, texts[one], texts[other], criteria=criteria, round=juror.round, sample=draw),
        judge(agent, texts[other], texts[one], criteria=criteria, round=juror.round, sample=draw),
    )
    return _Match(one, other, sample, there, back)


def _opinion(place: int, played: Sequence[_Match], candidates: Sequence[Candidate]) -> Opinion:
    mine = [match for match in played if place in (match.one, match.other)]
    comparisons = [_comparison(place, match, candidates) for match in mine]
    points = tuple(one["points"] for one in comparisons)
    first = [reply for match in mine if (reply := _order(match, place)) is not None]
    turns = tuple(turn for reply in first for turn in reply.turns)
    notes = {COMPARISONS: comparisons}
    read = [point for point in points if point is not None]
    if not read:
        return Opinion(None, points, turns=turns, failure=_unread(mine), notes=notes)
    given = next((found for reply in first if reply.value is not None and (found := reason_of(reply))), None)
    reason = given and f"As answer 1 of 2: {given}"
    return Opinion(math.fsum(read) / len(read), points, reason, turns, notes=notes)


def _order(match: _Match, place: int) -> Reply[str] | None:
    """The order in which a candidate was shown first."""
    return match.there if place == match.one else match.back


def _comparison(place: int, match: _Match, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """A comparison as one of its two candidates sees it."""
    opponent = match.other if place == match.one else match.one
    first, second = _said(_order(match, place)), _turned(_said(_order(match, opponent)))
    return {
        "other": [candidates[opponent].attempt_id, candidates[opponent].turn],
        "place": 1 if place == match.one else 2,
        "sample": match.sample,
        "first": first,
        "second": second,
        "points": POINTS["tie"] if match.there is None else _points(first, second),
    }


def _said(reply: Reply[str] | None) -> Outcome | None:
    """What came of an order for the candidate shown first."""
    return None if reply is None or reply.value is None else _SAID[reply.value]


def _turned(outcome: Outcome | None) -> Outcome | None:
    """The same for the other candidate."""
    return None if outcome is None else _TURNED[outcome]


def _points(first: Outcome | None, second: Outcome | None) -> float | None:
    """
    >>> _points("win", "win"), _points("win", "loss"), _points("win", "tie"), _points("loss", None)
    (1.0, 0.5, 0.5, None)
    """
    if first is None or second is None:
        return None
    return POINTS[first] if first == second else POINTS["tie"]


def _unread(matches: Sequence[_Match]) -> Failure:
    """Why no comparison of a candidate was read in both orders."""
    orders = [reply for match in matches for reply in (match.there, match.back) if reply is not None]
    last = why([reply for reply in orders if reply.value is None][-1].turn)
    message = f"none of {len(matches)} comparisons was read in both orders; the last: {last.message}"
    return Failure(last.kind, message, last.retryable)


# --- position bias ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PositionBias:
    """How much the place decides. A judge without bias names the first in half of the calls and flips never."""

    decided: int
    """Calls that named a winner; a tie names none."""
    first: int
    """… and named the candidate shown first."""
    compared: int
    """Comparisons that were read in both orders."""
    flipped: int
    """… and came out differently in the second."""

    @property
    def first_share(self) -> float | None:
        """Share of the decided calls that named the candidate shown first, in [0, 1]; None: there is none."""
        return self.first / self.decided if self.decided else None

    @property
    def flipped_share(self) -> float | None:
        """Share of the comparisons that came out differently in the other order, in [0, 1]; None: there is none."""
        return self.flipped / self.compared if self.compared else None


def position_bias(notes: Iterable[Mapping[str, Any]]) -> PositionBias:
    """Counts what the order did, over the notes of a pairwise judge's judgements.

    Source: Zheng et al. 2023, arXiv 2306.05685 (position bias; one less the share that flips is their consistency).

    Args:
        notes: of each judgement; those of other kinds hold no comparisons and count for nothing. A comparison stands
            in the notes of both its candidates and is counted once.

    >>> always_first = {"place": 1, "first": "win", "second": "loss"}
    >>> found = position_bias([{"comparisons": [always_first]}, {"comparisons": [always_first | {"place": 2}]}])
    >>> found, found.first_share, found.flipped_share
    (PositionBias(decided=2, first=2, compared=1, flipped=1), 1.0, 1.0)
    """
    once = [one for said in notes for one in said.get(COMPARISONS, ()) if one["place"] == 1]
    firsts = [one["first"] for one in once] + [_turned(one["second"]) for one in once]
    both = [one for one in once if None not in (one["first"], one["second"])]
    return PositionBias(
        decided=sum(outcome in ("win", "loss") for outcome in firsts),
        first=firsts.count("win"),
        compared=len(both),
        flipped=sum(one["first"] != one["second"] for one in both),
    )
