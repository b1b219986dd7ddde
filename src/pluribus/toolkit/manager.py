"""The manager: asks each analyst k times, votes inside the analyst, then across the analysts."""

from __future__ import annotations

import math
from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

from pluribus.codec import content_id
from pluribus.consensus.confidence import Calibration
from pluribus.consensus.stopping import Stopping
from pluribus.engines.asyncio import block, each
from pluribus.errors import ConfigError, UsageError
from pluribus.run import Pool, make_budget
from pluribus.toolkit.analysts import (
    Analysis,
    FailedCall,
    Live,
    Sample,
    StrategyAgent,
    drawn,
    make_asked,
    make_stopping,
    make_traffic,
    opened,
    seated,
)
from pluribus.toolkit.voting import (
    ConfidenceKind,
    MajorityVote,
    check_calibration,
    check_seed,
    check_share,
    confidence_in,
    leader,
    majority_vote,
)
from pluribus.types import Kind, Question

_AT_ONCE = 64
"""Questions under way."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one analyst came to."""

    analyst: str
    weight: float
    vote: MajorityVote
    """Of its own draws; no winner: it abstains among the analysts."""
    sample: Sample


@dataclass(frozen=True, slots=True)
class Dissent:
    """An analyst's draws for another answer."""

    analyst: str
    answer: str
    draws: int
    strength: float
    """Their part of all draws of this analyst, in (0, 1]."""
    voted: bool
    """This was the analyst's own vote; else a minority of its draws."""


@dataclass(frozen=True, slots=True)
class ManagerDecision:
    """A decision with everything it rests on."""

    question: Question
    decision: str | None
    """None: there is none, and `reason` says why."""
    reason: str | None
    vote: MajorityVote
    """Of the analysts: counts by weight, share, margin, tie. Its confidence counts analysts, not draws."""
    support: float
    """The part of all draws behind the decision, or behind the leader without one, each analyst's draws weighing
    together as much as the analyst; in [0, 1]."""
    confidence: float | None
    """How sure the decision, or the leader without one, is; from all draws, in [0, 1]. None: nobody answered."""
    confidence_kind: ConfidenceKind | None
    """As in `MajorityVote`."""
    opinions: tuple[Opinion, ...]
    """One per analyst, in order."""

    @property
    def dissent(self) -> tuple[Dissent, ...]:
        """Who said otherwise than the decision, or than the leader without one; the analysts that voted otherwise come
        first, then the stronger."""
        against = leader(self.vote)
        found = [one for opinion in self.opinions for one in _dissent(opinion, against)]
        return tuple(sorted(found, key=lambda one: (not one.voted, -one.strength)))

    @property
    def evidence(self) -> tuple[Analysis, ...]:
        return tuple(analysis for opinion in self.opinions for analysis in opinion.sample.analyses)

    @property
    def failures(self) -> tuple[FailedCall, ...]:
        return tuple(failed for opinion in self.opinions for failed in opinion.sample.failures)

    @property
    def calls(self) -> int:
        return sum(opinion.sample.calls for opinion in self.opinions)

    @property
    def tokens(self) -> int | None:
        """None: a service did not say."""
        known = [tokens for opinion in self.opinions if (tokens := opinion.sample.tokens) is not None]
        return sum(known) if len(known) == len(self.opinions) else None

    @property
    def cost_usd(self) -> float | None:
        """None: a draw is unpriced."""
        known = [cost for opinion in self.opinions if (cost := opinion.sample.cost_usd) is not None]
        return math.fsum(known) if len(known) == len(self.opinions) else None

    def plain(self, texts: bool = True) -> dict[str, Any]:
        """As dicts, lists and scalars, ready for JSON.

        Args:
            texts: with the analyses' texts; else the evidence is their ids.
        """
        return {
            "question_id": self.question.id,
            "question": self.question.text,
            "decision": self.decision,
            "reason": self.reason,
            "confidence": self.confidence,
            "confidence_kind": self.confidence_kind,
            "support": self.support,
            "votes": dict(self.vote.counts),
            "share": self.vote.share,
            "margin": self.vote.margin,
            "tie": list(self.vote.tie),
            "dissent": [asdict(one) for one in self.dissent],
            "analysts": [_summary(opinion) for opinion in self.opinions],
            "evidence": [asdict(one) if texts else one.id for one in self.evidence],
            "failures": [_failed(one) for one in self.failures],
            "calls": self.calls,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
        }


class Manager:
    """Analysts that decide together. Each is asked its k times; all calls of a question are sent at once.

    Args:
        analysts: at least one, each with a name of its own.
        tie: of both votes, inside an analyst and across them; see `majority_vote`.
        min_agreement: across the analysts, in (0, 1]; see `majority_vote`.
        abstain_below: in (0, 1]; there is no decision where the confidence is lower.
        calibration: fitted on `ManagerDecision.support` of questions with known answers; None: posterior.
        stop: a rule of `pluribus.consensus.stopping` that may end an analyst's draws before k; None: all k.
        seed: of the calls' seeds and of random ties.
        retries, concurrency: tries per call, and calls in flight per endpoint, at most.
        budget: calls, tokens, usd or seconds of one call of `decide` or `decide_all`, or of an `async with`.

    >>> desk = Manager([StrategyAgent({"model": "scripted/constant", "text": "{final answer: 4}"}, k=3)])
    >>> found = desk.decide("How much is 2 + 2?", kind="number")
    >>> found.decision, found.support, found.calls
    ('4', 1.0, 3)

    `async with Manager(…) as desk:` keeps the models open between several `adecide`.
    """

    def __init__(
        self,
        analysts: Sequence[StrategyAgent],
        *,
        tie: str = "first",
        min_agreement: float | None = None,
        abstain_below: float | None = None,
        calibration: Calibration | None = None,
        stop: Stopping | str | None = None,
        seed: int = 0,
        retries: int = 5,
        concurrency: int = 256,
        budget: Mapping[str, float] | None = None,
    ) -> None:
        self.analysts = _checked(analysts)
        self.tie, self.min_agreement, self.abstain_below = tie, min_agreement, abstain_below
        self.calibration, self.stop, self.seed = calibration, make_stopping(stop), seed
        self._traffic = make_traffic(seed=seed, retries=retries, concurrency=concurrency, budget=budget)
        self._pool: Pool | None = None
        check_share("min_agreement", min_agreement)
        check_share("abstain_below", abstain_below)
        check_seed(seed)
        check_calibration(calibration)
        majority_vote(["a"], tie=tie)

    async def __aenter__(self) -> Self:
        if self._pool is not None:
            raise ConfigError("this manager is open already", hint="share it inside one `async with`")
        self._pool = Pool(make_budget(self._traffic.budget))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    def decide(self, question: str | Question, **about: Any) -> ManagerDecision:
        """Decides one question and waits; takes what `adecide` takes, and works inside a running loop too."""
        return block(self._decide_all([make_asked(question, **about)], None))[0]

    async def adecide(
        self,
        question: str | Question,
        *,
        kind: Kind | None = None,
        choices: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> ManagerDecision:
        """Decides one question.

        Args:
            kind, choices, labels: what an answer is; None: choice with choices, label with labels, else text.
        """
        return (await self._decide_all([make_asked(question, kind, choices, labels)], self._pool))[0]

    def decide_all(self, questions: Sequence[str | Question], **about: Any) -> list[ManagerDecision]:
        """Decides many questions at once, in order; takes what `adecide` takes for all of them."""
        return block(self._decide_all([make_asked(one, **about) for one in questions], None))

    async def adecide_all(self, questions: Sequence[str | Question], **about: Any) -> list[ManagerDecision]:
        return await self._decide_all([make_asked(one, **about) for one in questions], self._pool)

    async def _decide_all(self, questions: Sequence[Question], pool: Pool | None) -> list[ManagerDecision]:
        found: dict[int, ManagerDecision] = {}
        async with opened(self.analysts, self._traffic, pool) as live:

            async def work(place: int) -> bool:
                found[place] = self.vote(questions[place], await self._ask(live, questions[place]))
                return True

            await each(range(len(questions)), work, min(len(questions), _AT_ONCE))
        return [found[place] for place in range(len(questions))]

    async def _ask(self, live: Sequence[Live], question: Question) -> list[Sample]:
        return await gather(*(drawn(analyst, question, self.seed, self.stop) for analyst in live))

    def vote(self, question: Question, samples: Sequence[Sample]) -> ManagerDecision:
        """Decides by samples that are there already, one per analyst in order; it calls nobody.

        `manager.vote(question, [opinion.sample.first(3) for opinion in found.opinions])` is what k = 3 would have said.
        """
        if len(samples) != len(self.analysts):
            raise UsageError(f"{len(samples)} samples for {len(self.analysts)} analysts", hint="give one per analyst")
        opinions = tuple(
            Opinion(analyst.name, analyst.weight, self._inside(analyst, sample), sample)
            for analyst, sample in zip(self.analysts, samples, strict=True)
        )
        vote = majority_vote(
            [opinion.vote.winner for opinion in opinions],
            [opinion.weight for opinion in opinions],
            self.tie,
            self.min_agreement,
            seed=_seed(self.seed, question.id),
        )
        first = leader(vote)
        said, weights = _pooled(opinions)
        backing = _backing(first, said, weights)
        sure, kind = confidence_in(first, said, weights, backing, self.calibration)
        reason = _reason(vote, opinions) or self._doubt(first, sure)
        decision = None if reason else vote.winner
        return ManagerDecision(question, decision, reason, vote, backing, sure, kind, opinions)

    def _inside(self, analyst: StrategyAgent, sample: Sample) -> MajorityVote:
        return majority_vote(
            sample.answers, tie=self.tie, seed=_seed(self.seed, f"{sample.question.id}/{analyst.name}")
        )  # fmt: skip

    def _doubt(self, first: str | None, sure: float | None) -> str | None:
        if self.abstain_below is None or sure is None or sure >= self.abstain_below:
            return None
        return f"the confidence in {first!r} is {sure:.3g}, below the {self.abstain_below:g} of abstain_below"


def _checked(analysts: Sequence[StrategyAgent]) -> tuple[StrategyAgent, ...]:
    for analyst in analysts:
        if not isinstance(analyst, StrategyAgent):
            raise ConfigError(f"analyst {analyst!r} is no StrategyAgent", hint="write StrategyAgent(model, k=5)")
    names = [analyst.name for analyst in analysts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two analysts are named {twice!r}", hint="give each a name= of its own")
    if not any(analyst.weight for analyst in analysts):
        raise ConfigError(
            "no analyst has a weight above 0" if names else "there are no analysts", hint="give at least one"
        )
    seated(analysts)
    return tuple(analysts)


def _pooled(opinions: Sequence[Opinion]) -> tuple[list[str | None], list[float]]:
    """Every draw as a voter; an analyst's draws share its weight."""
    said = [
        (answer, opinion.weight / len(opinion.sample.turns))
        for opinion in opinions
        for answer in opinion.sample.answers
    ]
    return [answer for answer, _ in said], [weight for _, weight in said]


def _backing(answer: str | None, said: Sequence[str | None], weights: Sequence[float]) -> float:
    behind = math.fsum(weight for one, weight in zip(said, weights, strict=True) if one is not None and one == answer)
    return min(1.0, behind / math.fsum(weights))


def _reason(vote: MajorityVote, opinions: Sequence[Opinion]) -> str | None:
    """Why there is no decision, as far as the vote goes."""
    failed = [one for opinion in opinions for one in opinion.sample.failures]
    if failed and len(failed) == sum(len(opinion.sample.turns) for opinion in opinions):
        return f"every call failed; the first said: {failed[0].failure.message}"
    return vote.reason


def _dissent(opinion: Opinion, against: str | None) -> list[Dissent]:
    asked = len(opinion.sample.turns)
    return [
        Dissent(opinion.analyst, answer, int(count), count / asked, answer == opinion.vote.winner)
        for answer, count in opinion.vote.counts.items()
        if against is not None and answer != against
    ]


def _failed(one: FailedCall) -> dict[str, Any]:
    return {"analyst": one.analyst, "draw": one.draw, **asdict(one.failure)}


def _summary(opinion: Opinion) -> dict[str, Any]:
    return {
        "analyst": opinion.analyst,
        "weight": opinion.weight,
        "answer": opinion.vote.winner,
        "counts": dict(opinion.vote.counts),
        "support": opinion.vote.support,
        "asked": len(opinion.sample.turns),
        "distinct": opinion.sample.distinct,
    }


def _seed(seed: int, about: str) -> int:
    """Another seed for each vote: one for all would settle every tie alike."""
    return int(content_id([seed, about])[:15], 16)
