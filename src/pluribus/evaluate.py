"""transcript, decision and key → score: plain arithmetic on what is stored; it costs no call.

Three things are told apart everywhere: right, not right (wrong or abstained), and failed. A failure is never
counted as wrong: it is left out of the accuracy and counted beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pluribus import stats
from pluribus.answers import canonical, read
from pluribus.decide import credit, leading
from pluribus.label import PROGRAM, read_turns
from pluribus.metrics.calibration import expected_calibration_error
from pluribus.metrics.pass_at_k import pass_at_k
from pluribus.stats import Estimate
from pluribus.types import Completion, Decision, Key, Label, Question, Score, Status, Transcript


@dataclass(frozen=True, slots=True)
class Usage:
    """What a transcript's turns took, whether they were sent or came out of the cache."""

    calls: int
    prompt_tokens: int | None
    """None: at least one turn has no count."""
    completion_tokens: int | None
    cost_usd: float | None
    """None: at least one turn is unpriced."""
    formed: int = 0
    """Replies asked for in a form (a rating, a ranking, …) that came."""
    unread: int = 0
    """Those of them that could not be read."""

    @property
    def tokens(self) -> int | None:
        return _sum([self.prompt_tokens, self.completion_tokens])


@dataclass(frozen=True, slots=True)
class Mark:
    """How one seat did on one question before it heard anybody."""

    answer: str | None
    correct: float | None
    """1 right, 0 not right, None without a key."""
    failed: bool
    tokens: int | None = None
    cost_usd: float | None = None
    """None: unpriced."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a vote stopped asking, or in shadow, where all were asked, would have stopped."""

    rule: str
    asked: int
    """Calls that were needed."""
    of: int
    """Calls without stopping."""
    answer: str | None
    """The leader then."""
    shadow: bool
    changed: bool
    """Whether the decision is another answer; without shadow only another tie rule makes it one."""
    credit: float | None
    """How right `answer` is: 1 or 0; None without a key."""
    doubt: float | None = None
    """The rule's own estimate of the chance that another answer wins; None: it gives none."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question of a run, scored."""

    question_id: str
    attempt_id: str
    status: Status
    answer: str | None
    key: str | None
    credit: float | None
    """In [0, 1]: 1 right, 0 not right, 1/t in a fractional tie of t; None: failed, or no key."""
    share: float | None
    margin: float | None
    seats: tuple[Mark | None, ...]
    """None: a seat that was not asked for an answer of its own, such as a judge."""
    rounds: tuple[tuple[str | None, ...], ...]
    usage: Usage
    reason: str | None
    """Why it failed, or who is missing."""
    passes: tuple[int, int] | None = None
    """Programs: how many of the final answers pass the tests, and how many there are; None: not run, or no program."""
    confidence: float | None = None
    """Chance that the vote is right, in (0, 1); None: the decision has no calibration, or there is no vote."""
    vote_credit: float | None = None
    """How right the vote is, also where its confidence was too low to answer; else the same as `credit`."""
    stopping: Stop | None = None
    """None: the method asks everybody, or the attempt failed."""


def usage(transcript: Transcript) -> Usage:
    """Sums over the turns that gave a completion."""
    said = [turn.completion for turn in transcript.turns if turn.completion is not None]
    costs = [completion.cost_usd for completion in said]
    return Usage(
        calls=len(transcript.turns),
        prompt_tokens=_sum([completion.prompt_tokens for completion in said]),
        completion_tokens=_sum([completion.completion_tokens for completion in said]),
        cost_usd=sum(cost for cost in costs if cost is not None) if None not in costs else None,
        formed=sum(turn.ok and turn.form is not None for turn in transcript.turns),
        unread=sum(turn.unread is not None for turn in transcript.turns),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def row(
    question: Question,
    key: Key | None,
    transcript: Transcript,
    decision: Decision | None,
    labels: Sequence[Label] = (),
) -> Row:
    """Scores one attempt.

    Args:
        decision: None exactly when the transcript failed.
        labels: of the turns, see `pluribus.label`; programs are scored by them, and not at all without them.
    """
    passed = _passed(question, transcript, labels)
    right = right_answers(question, key, passed)
    vote = replace(decision, answer=leading(decision)) if decision else None
    return Row(
        question_id=question.id,
        attempt_id=transcript.attempt.id,
        status=transcript.status,
        answer=decision.answer if decision else None,
        key=_key_words(key),
        credit=credit(decision, key, question, passed) if decision else None,
        share=decision.share if decision else None,
        margin=decision.margin if decision else None,
        seats=_marks(question, right, transcript, decision),
        rounds=decision.answers if decision else (),
        usage=usage(transcript),
        reason=transcript.failure.message if transcript.failure else None,
        passes=_passes(question, transcript, labels),
        confidence=decision.confidence if decision else None,
        vote_credit=credit(vote, key, question, passed) if vote else None,
        stopping=_stop(transcript.notes.get("stopping"), vote, right),
    )


def _stop(note: Mapping[str, Any] | None, vote: Decision | None, right: Collection[str | None] | None) -> Stop | None:
    if note is None or vote is None:
        return None
    answer = note["answer"]
    return Stop(
        rule=note["rule"],
        asked=note["asked"],
        of=note["of"],
        answer=answer,
        shadow=note["shadow"],
        changed=answer != vote.answer,
        credit=None if right is None else float(answer in right),
        doubt=note.get("doubt"),
    )


def _key_words(key: Key | None) -> str | None:
    """The key's answer; a key may have tests alone."""
    if key is None or key.answer is not None:
        return key.answer if key else None
    return "tests" if key.tests else None


def _passed(question: Question, transcript: Transcript, labels: Sequence[Label]) -> frozenset[str] | None:
    """The programs that passed their tests; None: they were not run, or the question asks for none."""
    verdicts = {label.turn: label.correct for label in labels if label.step is None}
    if question.kind != PROGRAM or not labels or None in verdicts.values():
        return None
    reads = read_turns(question, transcript)
    return frozenset(answer for turn, answer in reads.items() if answer is not None and verdicts.get(turn))


def _passes(question: Question, transcript: Transcript, labels: Sequence[Label]) -> tuple[int, int] | None:
    """Right finals, and finals; a final that gave no program is one that does not pass."""
    verdicts = {label.turn: label.correct for label in labels if label.step is None}
    if question.kind != PROGRAM or not verdicts or None in verdicts.values() or not transcript.finals:
        return None
    return sum(bool(verdicts.get(turn)) for turn in transcript.finals), len(transcript.finals)


def _marks(
    question: Question, right: Collection[str | None] | None, transcript: Transcript, decision: Decision | None
) -> tuple[Mark | None, ...]:
    """Each seat's answer of the first round, as the decision read it."""
    asked = [turn for turn in transcript.turns if turn.round == 0 and turn.role == "answer"]
    spoke = {turn.seat: turn.completion for turn in reversed(asked) if turn.completion is not None}
    first = decision.answers[0] if decision and decision.answers else _first_answers(question, transcript)
    silent = {turn.seat for turn in asked} - set(spoke)
    if not asked and transcript.status == "failed":
        silent = set(range(len(first)))
    return tuple(
        Mark(answer, float(answer in right) if right is not None else None, False, *_used(spoke[index]))
        if index in spoke
        else Mark(None, None, True)
        if index in silent
        else None
        for index, answer in enumerate(first)
    )


def _used(said: Completion) -> tuple[int | None, float | None]:
    """Tokens and US dollars."""
    return _sum([said.prompt_tokens, said.completion_tokens]), said.cost_usd


def _first_answers(question: Question, transcript: Transcript) -> list[str | None]:
    """Read afresh: a failed attempt has no decision, yet some of its seats may have answered."""
    said = {turn.seat: turn for turn in transcript.turns if turn.round == 0 and turn.role == "answer" and turn.ok}
    indexes = range(len(transcript.attempt.agents))
    return [read(question, said[index].text) if index in said else None for index in indexes]


def right_answers(
    question: Question, key: Key | None, passed: Collection[str] | None = None
) -> frozenset[str | None] | None:
    """The canonical right answers; None without a key. `passed` as in `credit`."""
    if question.kind == PROGRAM:
        return None if key is None or passed is None else frozenset(passed)
    if key is None or key.answer is None:
        return None
    return frozenset(canonical(question, good) for good in (key.answer, *key.aliases)) - {None}


def score(subject: str, task: str, rows: Sequence[Row]) -> Score:
    """The council's accuracy with its 95 % Wilson interval, and what it took."""
    keyed = [r for r in rows if r.key is not None]
    marks = [r.credit for r in keyed if r.credit is not None]
    tokens = [r.usage.tokens for r in rows if r.status != "failed"]
    costs = [r.usage.cost_usd for r in rows if r.status != "failed"]
    return Score(
        subject=subject,
        task=task,
        n=len(keyed),
        answered=sum(r.answer is not None for r in keyed),
        failed=sum(r.status == "failed" for r in keyed),
        value=_mean(marks),
        interval=stats.wilson(sum(marks), len(marks)) if marks else None,
        calls=sum(r.usage.calls for r in rows),
        tokens=_sum(tokens),
        cost_usd=sum(c for c in costs if c is not None) if None not in costs else None,
    )


def pass_at(rows: Sequence[Row]) -> Mapping[int, float]:
    """k → mean pass@k over the questions whose programs were run, for each k up to the fewest samples of a question.

    Empty where there are no programs, or one sample of each.
    """
    counted = [r.passes for r in rows if r.passes is not None]
    most = min((n for _, n in counted), default=0)
    if most < 2:
        return {}
    return {k: sum(pass_at_k(n, c, k) for c, n in counted) / len(counted) for k in range(1, most + 1)}


@dataclass(frozen=True, slots=True)
class Stopped:
    """What stopping early saved over a run, and in shadow what it would have cost."""

    rule: str
    shadow: bool
    n: int
    """Questions whose vote could stop."""
    asked: int
    """Calls that were needed, in shadow those that would have been."""
    of: int
    """Calls without stopping."""
    saved: Estimate
    """Share of the calls that were not needed, with its 95 % bootstrap interval over questions."""
    changed: int | None = None
    """Decisions that stopping would have changed; None: without shadow nobody knows."""
    accuracy: float | None = None
    """Of the answers at the stop; this and the two below None without shadow or without keys."""
    full: float | None = None
    """Of the full votes, on the same questions."""
    difference: Estimate | None = None
    """At the stop minus full, paired."""


def stopping(rows: Sequence[Row], *, seed: int = 0) -> Stopped | None:
    """What stopping saved; None where nothing could stop.

    saved = Σ_q (of_q − asked_q) / Σ_q of_q.

    Args:
        seed: of the bootstrap, which resamples questions.
    """
    stops = [r.stopping for r in rows if r.stopping is not None]
    asked, of = sum(stop.asked for stop in stops), sum(stop.of for stop in stops)
    if not of:
        return None
    spared = [float(call >= stop.asked) for stop in stops for call in range(stop.of)]
    places = [place for place, stop in enumerate(stops) for _ in range(stop.of)]
    saved = stats.cluster_bootstrap(spared, places, seed=seed)
    found = Stopped(stops[0].rule, stops[0].shadow, len(stops), asked, of, saved)
    return _in_shadow(found, rows, seed) if found.shadow else found


def _in_shadow(found: Stopped, rows: Sequence[Row], seed: int) -> Stopped:
    changed = sum(r.stopping.changed for r in rows if r.stopping is not None)
    pairs = [
        (r.stopping.credit, r.vote_credit)
        for r in rows
        if r.stopping is not None and r.stopping.credit is not None and r.vote_credit is not None
    ]
    if not pairs:
        return replace(found, changed=changed)
    early, full = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    difference = stats.paired_difference(early, full, seed=seed)
    return replace(found, changed=changed, accuracy=_mean(early), full=_mean(full), difference=difference)


def stopped_short(row: Row) -> bool:
    """Whether the vote stopped before every seat was asked: then the last seats answered the hard questions only."""
    return row.stopping is not None and not row.stopping.shadow and None in row.seats


@dataclass(frozen=True, slots=True)
class Sureness:
    """A run's confidence held against its keys, and what withholding unsure answers gave."""

    n: int
    """Questions with a confidence and a key."""
    mean: float
    """Mean confidence."""
    accuracy: float
    """Of all their votes, those withheld included."""
    interval: tuple[float, float]
    """95 % Wilson interval of it."""
    calibration_error: float
    """Expected calibration error, in [0, 1]."""
    answered: int
    """Those with an answer."""
    answered_accuracy: float | None
    """None: nothing was answered."""
    answered_interval: tuple[float, float] | None


def sureness(rows: Sequence[Row]) -> Sureness | None:
    """How true a run's confidences are; None where no question has both confidence and key."""
    known = [
        (r.confidence, r.vote_credit, r.answer) for r in rows if r.confidence is not None and r.vote_credit is not None
    ]
    if not known:
        return None
    sure, right = [one[0] for one in known], [one[1] for one in known]
    kept = [good for _, good, answer in known if answer is not None]
    return Sureness(
        n=len(known),
        mean=sum(sure) / len(sure),
        accuracy=sum(right) / len(right),
        interval=stats.wilson(sum(right), len(right)),
        calibration_error=expected_calibration_error(sure, right),
        answered=len(kept),
        answered_accuracy=_mean(kept),
        answered_interval=stats.wilson(sum(kept), len(kept)) if kept else None,
    )


def seat_score(subject: str, task: str, rows: Sequence[Row], seat: int) -> Score:
    """One seat's accuracy alone: its first answers, before it heard anybody."""
    keyed = [mark for r in rows if r.key is not None and r.usage.calls > 0 and (mark := r.seats[seat]) is not None]
    marks = [m.correct for m in keyed if m.correct is not None]
    said = [m for m in keyed if not m.failed]
    costs = [m.cost_usd for m in said]
    return Score(
        subject=subject,
        task=task,
        n=len(keyed),
        answered=sum(m.answer is not None for m in keyed),
        failed=sum(m.failed for m in keyed),
        value=_mean(marks),
        interval=stats.wilson(sum(marks), len(marks)) if marks else None,
        calls=len(keyed),
        tokens=_sum([m.tokens for m in said]),
        cost_usd=sum(c for c in costs if c is not None) if None not in costs else None,
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
