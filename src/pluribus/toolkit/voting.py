"""One decision out of several answers: the vote as applications call it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pluribus.consensus import confidence as calibrated
from pluribus.consensus.confidence import Calibration, support
from pluribus.consensus.stopping import posterior
from pluribus.consensus.votes import Vote, plurality
from pluribus.errors import ConfigError, UsageError

ConfidenceKind = Literal["posterior", "calibrated"]
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class MajorityVote:
    """What a vote came to."""

    winner: str | None
    """None: there is none, and `reason` says why."""
    share: float | None
    """The winner's part of the votes cast, in (0, 1]; abstentions are not votes cast."""
    counts: Mapping[str, float]
    """Answer → votes or weight, in the order first seen."""
    margin: float | None
    """Leader's minus runner-up's part of the votes cast, in [0, 1]; 0 in a tie; None when no vote was cast."""
    tie: tuple[str, ...]
    """The answers that share the lead, in the order first seen; empty when one leads."""
    abstained: int
    """Voters without an answer."""
    support: float
    """The leader's part of all voters' weight, abstainers' included, in [0, 1]; `min_agreement` is compared with it."""
    confidence: float | None
    """How sure the leading answer is, in [0, 1]; `confidence_kind` says in which sense. None: nobody answered."""
    confidence_kind: ConfidenceKind | None
    """`posterior`: the chance that the leader is what these voters say most often. It is no chance of being right.
    `calibrated`: the chance of being right, as a calibration learned it from questions with known answers."""
    reason: str | None = None
    """Why there is no winner."""


def majority_vote(
    answers: Sequence[str | None],
    weights: Sequence[float] | None = None,
    tie: str = "first",
    min_agreement: float | None = None,
    *,
    calibration: Calibration | None = None,
    seed: int = 0,
) -> MajorityVote:
    """The answer that most voters give, or the one with most weight behind it, and how sure it is.

    winner = argmax_a Σ_i w_i [answers_i = a], unless Σ_i w_i [answers_i = winner] / Σ_i w_i < min_agreement.

    >>> vote = majority_vote(["BULLISH", "BEARISH", "BULLISH", None])
    >>> vote.winner, vote.share, vote.support, vote.abstained
    ('BULLISH', 0.6666666666666666, 0.5, 1)
    >>> majority_vote(["BULLISH", "BEARISH", "BULLISH", None], min_agreement=0.6).reason
    "'BULLISH' has 0.5 of all votes, less than the 0.6 that min_agreement asks for"

    Args:
        answers: one per voter, at least one; None abstains. Equal strings are equal answers and nothing else is:
            "4" and "4.0" are two (`pluribus.answers.canonical` makes them one).
        weights: one per voter, finite and ≥ 0, not all 0; None: one vote each.
        tie: `first` takes the tied answer seen first, `random` one of the tied by the seed, `abstain` none;
            `fractional` shows the first, and scoring gives each of t tied answers 1/t.
        min_agreement: in (0, 1]; with a smaller part of all voters' weight behind it, abstainers' included, the
            leader does not win. None: any lead is enough.
        calibration: of `pluribus.consensus.confidence`; None: the confidence is a posterior.
        seed: of the rule `random`.

    Returns: the same for every order of the voters, but for the order of `counts` and `tie` and what `first` takes.

    Raises UsageError on no voters, on answers that are not strings, on unusable weights and unknown tie rules.
    Source: plurality as self-consistency uses it, Wang et al. 2022, 2203.11171.
    """
    said, heard = _answers(answers), _weights(weights)
    check_share("min_agreement", min_agreement)
    check_seed(seed)
    check_calibration(calibration)
    vote = plurality(said, heard, tie, seed)
    total = math.fsum(heard) if heard is not None else float(len(said))
    backing = support(vote.counts, total)
    reason = _reason(vote, backing, min_agreement)
    sure, kind = confidence_in(leader(vote), said, heard, backing, calibration)
    return MajorityVote(
        winner=None if reason else vote.winner,
        share=None if reason else vote.share,
        counts=vote.counts,
        margin=vote.margin,
        tie=vote.tie,
        abstained=vote.abstained,
        support=backing,
        confidence=sure,
        confidence_kind=kind,
        reason=reason,
    )


def confidence_in(
    answer: str | None,
    said: Sequence[str | None],
    weights: Sequence[float] | None,
    backing: float,
    calibration: Calibration | None,
) -> tuple[float | None, ConfidenceKind | None]:
    """How sure an answer is that some of the voters gave, and in which sense.

    Args:
        backing: its support, in [0, 1].
    """
    if answer is None:
        return None, None
    if calibration is not None:
        return calibrated.confidence(calibration, backing), "calibrated"
    return posterior(answer, said, weights), "posterior"


def leader(vote: Vote | MajorityVote) -> str | None:
    """The winner, or who would be it but for the tie rule and the agreement asked for; None: nobody leads."""
    if vote.winner is not None or not any(vote.counts.values()):
        return vote.winner
    return max(vote.counts, key=lambda answer: vote.counts[answer])


def check_share(name: str, value: float | None) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ConfigError(f"{name} is {value!r}", hint="it is a share above 0 and at most 1; leave it out for none")


def check_seed(seed: Any) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ConfigError(f"seed is {seed!r}", hint="give a whole number: the same one gives the same result")


def check_calibration(calibration: Any) -> None:
    if calibration is not None and not isinstance(calibration, Calibration):
        raise ConfigError(
            f"calibration is {calibration!r}",
            hint="give what pluribus.consensus.confidence.fit returns; a file of `pluribus calibrate` is for Council",
        )


def _reason(vote: Vote, backing: float, least: float | None) -> str | None:
    """Why nobody wins; None where somebody does."""
    first = leader(vote)
    if first is None:
        return "nobody answered" if not vote.counts else "nobody who answered has a weight above 0"
    if vote.winner is None:
        return f"{' and '.join(map(repr, vote.tie))} share the lead"
    if least is not None and backing < least - _ROUNDING:
        return f"{first!r} has {backing:.3g} of all votes, less than the {least:g} that min_agreement asks for"
    return None


def _answers(answers: Any) -> list[str | None]:
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise UsageError(f"answers is of type {type(answers).__name__}", hint="give a list: one answer per voter")
    if not answers:
        raise UsageError("there are no voters", hint="give at least one answer; None is an abstention")
    for index, answer in enumerate(answers):
        if answer is not None and not isinstance(answer, str):
            raise UsageError(
                f"answer {index} is {answer!r}, of type {type(answer).__name__}",
                hint="answers are strings or None; write each value one way, as pluribus.answers.canonical does",
            )
        if answer is not None and not answer.strip():
            raise UsageError(f"answer {index} is an empty text", hint="None is an abstention")
    return list(answers)


def _weights(weights: Any) -> list[float] | None:
    if weights is None:
        return None
    if isinstance(weights, str) or not isinstance(weights, Sequence):
        raise UsageError(f"weights is of type {type(weights).__name__}", hint="give a list: one weight per voter")
    for index, weight in enumerate(weights):
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise UsageError(f"weight {weight!r} of voter {index} is not a number of at least 0")
    return list(weights)
