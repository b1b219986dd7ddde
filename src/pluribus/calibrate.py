"""panel → calibration: how far each seat can be believed, and how sure one can be of the vote.

The questions are split by a hash of their ids: what is learned on one part is measured on the other, so the report
speaks of the very calibration that is returned. The second half of this file is what a council does with one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pluribus import stats
from pluribus.codec import content_id, plain
from pluribus.config import CALIBRATION, CalibratedSeat, CalibrationConfig, ConfidenceConfig, RunConfig
from pluribus.consensus.confidence import KINDS, Calibration, confidence, fit, support
from pluribus.consensus.reliability import Reliability, from_agreement, from_labels
from pluribus.decide import RULES, Ballots, Calibrated
from pluribus.errors import ConfigError, DataError, UnknownName, UsageError
from pluribus.metrics.calibration import abstain_below, expected_calibration_error, risk_coverage
from pluribus.panel import Ballot, Panel
from pluribus.stats import Estimate
from pluribus.types import Seat

LEAST = 20
"""Fewer labelled questions are refused: what they say of a seat is mostly chance."""
_LEAST_FIT = 10
"""Of them at least so many must be left to learn from."""
_ENOUGH_ISOTONIC = 100
"""Below it a logistic curve says as much, and jumps less."""
_COVERAGES = (1.0, 0.8, 0.5)
_DIGITS = 4
"""Of a threshold, rounded down, so that it can be typed and still lets through what it let through."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is answered where only decisions of at least this confidence are."""

    threshold: float
    coverage: float
    """Share of the questions with a vote that are answered."""
    n: int
    accuracy: float
    interval: tuple[float, float]
    """95 % Wilson interval."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a calibration is worth on questions it has not seen."""

    n: int
    plain: float
    """Accuracy of the vote in which every seat counts alike; ties go to the answer seen first."""
    weighted: float
    """Accuracy of the vote by the learned weights."""
    gain: Estimate
    """Weighted minus plain, paired."""
    best: int
    """The seat that did best where the weights were learned."""
    best_accuracy: float
    over_best: Estimate
    """Weighted minus that seat alone, paired."""
    raw_error: float
    """Expected calibration error of the leader's share of all weight, taken as a confidence."""
    calibrated_error: float
    coverage: tuple[Kept, ...]
    """At the whole, at 80 % and at 50 %, or what lies next above: equal confidences stay together."""
    target: Kept | None = None
    """At the calibration's threshold; None: no accuracy was asked for, or nothing reached it, or all is below."""


@dataclass(frozen=True, slots=True)
class Learned:
    calibration: CalibrationConfig
    fit: int
    """Answered questions it was learned from."""
    report: Report | None
    """None: nothing was held out, or too few questions have a key."""
    notes: tuple[str, ...]
    """What the numbers do not say."""


@dataclass(frozen=True, slots=True)
class _Case:
    """One question as it was voted on."""

    id: str
    ballots: tuple[Ballot, ...]
    key: str | None

    @property
    def labelled(self) -> bool:
        return any(ballot.correct is not None for ballot in self.ballots)

    def right(self, answer: str | None) -> float:
        return float(any(ballot.answer == answer and ballot.correct == 1 for ballot in self.ballots))

    def of(self, seat: int) -> float | None:
        """How right a seat alone is: its first vote; None: it failed, or nobody can say."""
        return next((ballot.correct for ballot in self.ballots if ballot.seat == seat), None)


@dataclass(frozen=True, slots=True)
class _Voted:
    """What a vote gave on one question."""

    right: float
    support: float
    """0: nobody gave an answer."""


def calibrate(
    panels: Sequence[Panel],
    *,
    labels: bool = True,
    kind: str = "isotonic",
    check: float = 0.5,
    seed: int = 0,
    target: float | None = None,
) -> Learned:
    """Learns vote weights, and how sure a vote is, from runs of one council.

    Args:
        panels: of stored runs of the same seats, method and settings; a question that several of them asked is on one
            side of the split.
        labels: weights from keys; False: from agreement alone. The confidence needs keys in either case.
        kind: isotonic or platt, see `consensus.confidence.fit`.
        check: share of the labelled questions held out for the report, at least 0 and below 1.
        seed: of the split and of the bootstrap.
        target: accuracy wanted of what is answered, in (0, 1): gives the calibration its threshold.

    Raises:
        DataError: too few questions, a run without votes, or one that stopped asking early.
        UsageError: runs of different councils, a share or a target that is none.
    """
    _check_wishes(kind, check, target)
    runs = sorted({panel.source: panel for panel in panels}.values(), key=lambda panel: panel.source)
    _check_runs(runs)
    cases = [_Case(i.question_id, i.ballots, i.key) for run in runs for i in run.items if i.ballots and not i.failed]
    labelled = [case for case in cases if case.labelled]
    _check_enough(runs[0], cases, labelled, labels)
    enough = len(labelled) >= LEAST
    held = _held_out([case.id for case in labelled], check if enough else 0.0, seed)
    first = [case for case in (labelled if labels else cases) if case.id not in held]
    calibration = _learned(runs, first, labels, kind if enough else None, target)
    second = [case for case in labelled if case.id in held]
    report = _report(calibration, first, second, seed) if second else None
    return Learned(calibration, len(first), report, tuple(_notes(calibration, len(labelled), check, target)))


def _check_wishes(kind: str, check: float, target: float | None) -> None:
    if kind not in KINDS:
        raise UnknownName("kind of confidence", kind, KINDS)
    if not 0 <= check < 1:
        raise UsageError(f"the share to check on is {check:g}", hint="give at least 0 and less than 1")
    if target is not None and not 0 < target < 1:
        raise UsageError(f"the target accuracy is {target:g}", hint="give a share above 0 and below 1")


def _check_runs(runs: Sequence[Panel]) -> None:
    if not runs:
        raise UsageError("no run is named", hint="see what there is with: pluribus list runs")
    for run in runs:
        if not run.seats or not any(item.ballots for item in run.items):
            raise DataError(run.source, "no votes are recorded", hint="give a stored run that answered questions")
        if stop_rule(run.settings):
            raise DataError(
                run.source, "the vote stopped asking early, so its seats answered different questions",
                hint="run it with --set stop_shadow=true",
            )  # fmt: skip
        if (reason := _other(runs[0], run)) is not None:
            raise UsageError(
                f"{run.name} is not of the council of {runs[0].name}: {reason}", hint="calibrate each by itself"
            )


def _other(one: Panel, other: Panel) -> str | None:
    """How two runs' councils differ."""
    seats = [[(bare(seat.model), seat.persona) for seat in run.seats] for run in (one, other)]
    if seats[0] != seats[1]:
        return "other seats"
    return _protocol(one.method, one.settings, other.method, other.settings)


def _check_enough(run: Panel, cases: Sequence[_Case], labelled: Sequence[_Case], labels: bool) -> None:
    there, what = (len(labelled), "with a key and a vote") if labels else (len(cases), "with a vote")
    if there < LEAST:
        more = "" if not labels else "; without keys: --without-labels"
        raise DataError(
            run.source, f"questions {what}: {there}; expected at least {LEAST}", hint=f"run it on more questions{more}"
        )


def _held_out(ids: Sequence[str], share: float, seed: int) -> frozenset[str]:
    """The questions to check on: a share of them, by a seeded hash of their ids."""
    order = sorted(set(ids), key=lambda id: hashlib.sha256(f"{seed} {id}".encode()).digest())
    held = round(share * len(order))
    if held and len(order) - held < _LEAST_FIT:
        raise UsageError(
            f"{len(order) - held} of {len(order)} labelled questions are left to learn from",
            hint=f"check on a smaller share, or run it on more questions: at least {_LEAST_FIT} are needed",
        )
    return frozenset(order[len(order) - held :])


# --- learning --------------------------------------------------------------------------------------------------------


def _learned(
    runs: Sequence[Panel], cases: Sequence[_Case], labels: bool, kind: str | None, target: float | None
) -> CalibrationConfig:
    """What the cases teach; without a kind no confidence."""
    one = runs[0]
    seats, options = _weighed_seats(one.seats, cases, labels)
    rule: Literal["plurality", "weighted"] = "weighted" if len({seat.weight for seat in seats}) > 1 else "plurality"
    votes = [_vote(case, rule, [seat.weight for seat in seats]) for case in cases if case.labelled]
    votes = [vote for vote in votes if vote.support > 0]
    chance = _config(fit([v.support for v in votes], [v.right for v in votes], kind)) if votes and kind else None
    return CalibrationConfig(
        format=CALIBRATION,
        version=1,
        task=", ".join(sorted({run.task for run in runs})),
        runs=[f"{run.name} ({run.source})" for run in runs],
        method=one.method,
        settings={name: value for name, value in one.settings.items() if name not in _FREE},
        seats=seats,
        labels=labels,
        options=options,
        rule=rule,
        confidence=chance,
        threshold=_threshold(chance, votes, target),
        n=len(cases),
    )


def _weighed_seats(seats: Sequence[Seat], cases: Sequence[_Case], labels: bool) -> tuple[list[CalibratedSeat], float]:
    """Each seat with its weight, and the answers a question has. Weights that are all equal, or all 0, are 1."""
    voting = sorted({ballot.seat for case in cases for ballot in case.ballots})
    found = _reliability(cases, voting, labels)
    alike = len(set(found.weights)) == 1
    of = {seat: place for place, seat in enumerate(voting)}
    calibrated = [
        CalibratedSeat(
            model=bare(seat.model),
            persona=seat.persona,
            accuracy=found.accuracy[of[seat.index]] if seat.index in of else None,
            weight=1.0 if alike else found.weights[of[seat.index]] if seat.index in of else 0.0,
            answered=found.answered[of[seat.index]] if seat.index in of else 0,
        )
        for seat in seats
    ]
    return calibrated, found.options


def _reliability(cases: Sequence[_Case], voting: Sequence[int], labels: bool) -> Reliability:
    """Several votes of one seat on a question are as many rows, in which the others say nothing more."""
    rows: list[list[str | None]] = []
    right: list[str | None] = []
    for case in cases:
        by_seat = [[ballot for ballot in case.ballots if ballot.seat == seat] for seat in voting]
        for draw in range(max(map(len, by_seat))):
            rows.append([_said(votes[draw], case, labels) if len(votes) > draw else None for votes in by_seat])
            right.append(_truth(case))
    return from_labels(rows, right) if labels else from_agreement(rows)


def _said(ballot: Ballot, case: _Case, labels: bool) -> str | None:
    """The answer; where keys are looked at, all right ones under one name, since a key may have aliases."""
    return _truth(case) if labels and ballot.correct == 1 else ballot.answer


def _truth(case: _Case) -> str | None:
    """The right answer: the first one given, else the key's; None: not labelled."""
    if not case.labelled:
        return None
    return next((ballot.answer for ballot in case.ballots if ballot.correct == 1), case.key)


def _vote(case: _Case, rule: str, weights: Sequence[float]) -> _Voted:
    """Counted as `decide` counts: see `pluribus.decide`."""
    cast = tuple(weights[ballot.seat] if rule == "weighted" else 1.0 for ballot in case.ballots)
    vote = RULES[rule](Ballots(tuple(ballot.answer for ballot in case.ballots), cast, "first", 0))
    if vote.winner is None:
        return _Voted(0.0, 0.0)
    return _Voted(case.right(vote.winner), support(vote.counts, math.fsum(cast)))


def _config(found: Calibration) -> ConfidenceConfig:
    points = [list(point) for point in found.points]
    return ConfidenceConfig(kind=found.kind, points=points, slope=found.slope, intercept=found.intercept, n=found.n)


def map_of(known: ConfidenceConfig) -> Calibration:
    points = tuple((low, high) for low, high in known.points)
    return Calibration(known.kind, points, known.slope, known.intercept, known.n)


def _threshold(chance: ConfidenceConfig | None, votes: Sequence[_Voted], target: float | None) -> float | None:
    if chance is None or target is None:
        return None
    sure = _sure(chance, votes)
    least = abstain_below(sure, [vote.right for vote in votes], target)
    return None if least is None else math.floor(least * 10**_DIGITS) / 10**_DIGITS


def _sure(chance: ConfidenceConfig, votes: Sequence[_Voted]) -> list[float]:
    found = map_of(chance)
    return [confidence(found, vote.support) for vote in votes]


# --- what it is worth on the questions held out ----------------------------------------------------------------------


def _report(known: CalibrationConfig, first: Sequence[_Case], second: Sequence[_Case], seed: int) -> Report | None:
    weights = [seat.weight for seat in known.seats]
    plain_votes = [_vote(case, "plurality", weights) for case in second]
    votes = [_vote(case, known.rule, weights) for case in second]
    cast = [vote for vote in votes if vote.support > 0]
    if not cast or known.confidence is None:
        return None
    right, ids = [vote.right for vote in votes], [case.id for case in second]
    best = _best(first, len(known.seats))
    alone = [case.of(best) for case in second]
    pairs = [(mine, other, id) for mine, other, id in zip(right, alone, ids, strict=True) if other is not None]
    sure, good = _sure(known.confidence, cast), [vote.right for vote in cast]
    return Report(
        n=len(second),
        plain=_mean([vote.right for vote in plain_votes]),
        weighted=_mean(right),
        gain=_difference(right, [vote.right for vote in plain_votes], ids, seed),
        best=best,
        best_accuracy=_mean([other for _, other, _ in pairs]),
        over_best=_difference([mine for mine, _, _ in pairs], [other for _, other, _ in pairs],
                              [id for _, _, id in pairs], seed),
        raw_error=expected_calibration_error([vote.support for vote in cast], good),
        calibrated_error=expected_calibration_error(sure, good),
        coverage=_coverages(sure, good),
        target=None if known.threshold is None else _kept(sure, good, known.threshold),
    )  # fmt: skip


def _best(cases: Sequence[_Case], seats: int) -> int:
    """The seat with the highest accuracy, the first of equals."""

    def accuracy(seat: int) -> float:
        marks = [mark for case in cases if (mark := case.of(seat)) is not None]
        return _mean(marks) if marks else -1.0

    return max(range(seats), key=accuracy)


def _coverages(sure: Sequence[float], right: Sequence[float]) -> tuple[Kept, ...]:
    """From the surest down, until each share is covered."""
    curve = risk_coverage(sure, right)
    found = []
    for wanted in _COVERAGES:
        at = next(t for t, c in zip(curve.threshold, curve.coverage, strict=True) if c >= wanted - 1e-9)
        found.append(_kept(sure, right, at))
    return tuple(dict.fromkeys(kept for kept in found if kept is not None))


def _kept(sure: Sequence[float], right: Sequence[float], threshold: float) -> Kept | None:
    marks = [good for chance, good in zip(sure, right, strict=True) if chance >= threshold]
    if not marks:
        return None
    interval = stats.wilson(sum(marks), len(marks))
    return Kept(threshold, len(marks) / len(sure), len(marks), _mean(marks), interval)


def _difference(first: Sequence[float], second: Sequence[float], ids: Sequence[str], seed: int) -> Estimate:
    """Paired; a question that several runs asked is drawn with all its answers."""
    if len(set(ids)) == len(ids):
        return stats.paired_difference(first, second, seed=seed)
    return stats.cluster_bootstrap([a - b for a, b in zip(first, second, strict=True)], ids, seed=seed)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _notes(known: CalibrationConfig, labelled: int, check: float, target: float | None) -> list[str]:
    notes = []
    if known.rule == "plurality" and len(known.seats) > 1:
        notes.append("the seats do not differ beyond chance, or none is better than chance: their votes count alike")
    if known.confidence is None:
        notes.append(f"{labelled} questions with a key are too few for a confidence: weights alone, nothing held out")
    elif check == 0:
        notes.append("learned from all questions, nothing is held out: no number says how good it is on new ones")
    if known.confidence is not None and known.confidence.kind == "isotonic" and known.confidence.n < _ENOUGH_ISOTONIC:
        notes.append(f"isotonic from {known.confidence.n} questions is rough: --confidence platt needs fewer")
    if target is not None and known.confidence is not None and known.threshold is None:
        notes.append(f"no confidence is shown to reach an accuracy of {target:g} on the questions learned from")
    return notes


# --- a calibration in use --------------------------------------------------------------------------------------------


def bare(model: str) -> str:
    """A model without its address: neither the base URL nor the path of a file of recorded outputs.

    >>> bare("vllm/Qwen/Qwen3-8B@http://127.0.0.1:8000/v1"), bare("replay//data/outputs.jsonl.gz#small")
    ('vllm/Qwen/Qwen3-8B', 'replay/#small')
    """
    service, _, name = model.partition("@http")[0].partition("/")
    return f"{service}/#{name.rpartition('#')[2]}" if service == "replay" and "#" in name else f"{service}/{name}"


def weighed(seats: Sequence[Seat], known: CalibrationConfig) -> tuple[Seat, ...]:
    """The seats with the calibration's weights; raises ConfigError where it is of another council."""
    hint = "calibrate a run of this very council"
    if len(seats) != len(known.seats):
        raise ConfigError(f"the calibration is of {len(known.seats)} seats, the council has {len(seats)}", hint=hint)
    for number, (seat, one) in enumerate(zip(seats, known.seats, strict=True), 1):
        if (bare(seat.model), seat.persona) != (one.model, one.persona):
            there, here = _who(one.model, one.persona), _who(bare(seat.model), seat.persona)
            raise ConfigError(f"seat {number} of the calibration is {there}, of the council {here}", hint=hint)
        if seat.weight != 1:
            raise ConfigError(
                f"seat {number} has a weight of its own, {seat.weight:g}, and the calibration gives it another",
                hint="drop the seats' weights, or the calibration",
            )
    if known.rule == "plurality":
        return tuple(seats)
    return tuple(dataclasses.replace(s, weight=one.weight) for s, one in zip(seats, known.seats, strict=True))


def _who(model: str, persona: str | None) -> str:
    return model + (f" as {persona}" if persona else "")


def stop_rule(settings: Mapping[str, Any]) -> str | None:
    """The rule by which a method with these settings stops asking; None: it asks everybody, if only in shadow."""
    rule = settings.get("stop")
    return None if rule in (None, "none") or settings.get("stop_shadow") else str(rule)


def no_confidence(known: CalibrationConfig, method: str, settings: Mapping[str, Any]) -> str | None:
    """Why a calibration gives the decisions of a method with these settings no confidence; None: it does."""
    if known.confidence is None:
        return "the calibration has none, it was learned without keys"
    if rule := stop_rule(settings):
        return f"the vote stops asking (stop={rule}), and the calibration is of votes of all"
    reason = _protocol(known.method, known.settings, method, settings)
    return None if reason is None else f"the calibration is of another protocol: {reason}"


def _protocol(method: str, settings: Mapping[str, Any], other: str, others: Mapping[str, Any]) -> str | None:
    """How two protocols differ in what makes a vote more or less sure; None: they do not."""
    if method != other:
        return f"method {method} there, {other} here"
    for name in sorted((settings.keys() & others.keys()) - _FREE):
        if plain(settings[name]) != plain(others[name]):
            return f"{name} {settings[name]} there, {others[name]} here"
    return None


STOPPING = frozenset({"stop", "stop_eps", "stop_window", "stop_shadow", "stop_order"})
"""Settings about stopping early."""
_FREE = STOPPING | {"quorum", "deadline_s"}
"""Settings that change who is waited for, not what a vote of all of them says."""


def calibrated(config: RunConfig, method: str, settings: Mapping[str, Any]) -> Calibrated | None:
    """What gives a council's decisions their confidence; None: nothing does.

    Args:
        config: with the content of its calibration in place of the file's path.
    """
    known = config.calibration
    if not isinstance(known, CalibrationConfig) or known.confidence is None or no_confidence(known, method, settings):
        return None
    content = {"confidence": known.confidence.model_dump(mode="json"), "abstain_below": config.abstain_below}
    return Calibrated(map_of(known.confidence), config.abstain_below, content_id(content)[:8])
