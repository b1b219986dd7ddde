"""The door of an evaluation: what subjects answered to a task's questions → measures, intervals, paired comparisons.

A subject is a model, a council, a stored run or a file of answers; each gives a `Sheet`, and from there on they are
all alike. `pluribus.evaluate` scores one run as it stands; here several subjects are held against each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from pluribus import stats
from pluribus.answers import prefetch, read
from pluribus.errors import ConfigError, DataError, UnknownName
from pluribus.evaluate import Row, Usage, right_answers
from pluribus.metrics._text import answer_text
from pluribus.metrics.bertscore import Weighted, bertscore, inverse_frequencies
from pluribus.metrics.calibration import brier, expected_calibration_error
from pluribus.metrics.exact_match import exact_match
from pluribus.metrics.maj_at_k import maj_at_k
from pluribus.metrics.pass_at_k import pass_at_k
from pluribus.metrics.rouge import ROUGE, Stem, rouge
from pluribus.metrics.token_f1 import token_f1
from pluribus.run import reload, stored_labels
from pluribus.store import Store
from pluribus.types import Key, Label, Question, Transcript

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pluribus.embedders import Embedder
    from pluribus.embedders._tokens import TokenVectors

METRICS: Mapping[str, str] = {
    "accuracy": "share of the questions whose decision is right",
    "pass@k": "chance that at least one of k samples is right",
    "maj@k": "chance that the majority of k samples is right",
    "exact_match": "the answer is a reference, up to case, punctuation and articles (SQuAD 1.1)",
    "token_f1": "words shared with the reference (SQuAD 1.1)",
    "rouge1": "words shared with the reference summary",
    "rouge2": "pairs of words shared",
    "rougeL": "longest common subsequence",
    "rougeLsum": "the same line by line",
    "bertscore": "greedy matching of token vectors",
    "ece": "expected calibration error of the confidences, or of the vote shares",
    "brier": "mean squared distance of confidence and result",
}
"""Name → what it is; every one but `ece` and `brier` is better when larger."""
ALIASES: Mapping[str, str] = {"em": "exact_match", "f1": "token_f1", "acc": "accuracy"}
TEXT = ("exact_match", "token_f1", "rouge1", "rouge2", "rougeL", "bertscore")
"""What free text is measured by, unless said otherwise."""
CALIBRATION = ("ece", "brier")
_AT = re.compile(r"(pass|maj)@(\d{1,6})")
_RESAMPLES = 2000
_PAIRS_AT_ONCE = 64
"""Texts whose token vectors are held in memory together, about."""

Kind = Literal["model", "council", "run", "file"]


@dataclass(frozen=True, slots=True)
class Answered:
    """One question as one subject answered it."""

    question: Question
    key: Key | None
    text: str | None
    """The reply that stands as the decision; None: failed. A subject that gave no answer has its first reply."""
    answer: str | None
    """Canonical; None: failed, or no readable answer."""
    credit: float | None
    """How right the decision is, in [0, 1]; None: failed, or nobody can say."""
    samples: tuple[str | None, ...] = ()
    """The answers the decision was made of, canonical."""
    credits: tuple[float | None, ...] = ()
    """How right each of them is."""
    confidence: float | None = None
    """Chance that the vote is right, else the share of the votes where there are several, in [0, 1]."""
    vote_credit: float | None = None
    """How right the vote is, also where it was withheld for too low a confidence."""
    failed: bool = False
    reason: str | None = None
    """Why it failed."""
    usage: Usage | None = None
    """What it took; None: unknown."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What one subject answered to the questions of one task."""

    subject: str
    kind: Kind
    source: str
    """`run ID`, or the path of a file."""
    task: str
    rows: tuple[Answered, ...]
    remarks: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(row.question.id for row in self.rows)

    @property
    def samples(self) -> int:
        """Samples per question: the most frequent number of them; 0: nothing was answered."""
        counts = Counter(len(row.samples) for row in self.rows if not row.failed)
        return counts.most_common(1)[0][0] if counts else 0


# --- from a stored run -----------------------------------------------------------------------------------------------


def of_run(store: Store, name: str, *, subject: str | None = None, kind: Kind = "run") -> Sheet:
    """A stored run as a sheet; no call is made.

    Args:
        subject: how it is called; None: by the run's name.

    Raises:
        UnknownName: no run of that name or id.
    """
    result = reload(store, name)
    rows = {row.attempt_id: row for row in result.rows}
    pairs = store.run_questions(result.id)
    transcripts = list(store.transcripts(rows))
    _prefetch(pairs, transcripts)
    labels = stored_labels(store, {t.attempt.id: pairs[t.attempt.question_id] for t in transcripts})
    answered = tuple(
        _of_attempt(*pairs[t.attempt.question_id], t, rows[t.attempt.id], labels.get(t.attempt.id, ()))
        for t in transcripts
    )
    unasked = result.asked - len(answered)
    remarks = (f"questions not asked: {unasked:,}",) if unasked else ()
    return Sheet(subject or result.name, kind, f"run {result.id}", result.task, answered, remarks)


def _prefetch(pairs: Mapping[str, tuple[Question, Key | None]], transcripts: Sequence[Transcript]) -> None:
    prefetch((pairs[t.attempt.question_id][0], t.turns[i].text) for t in transcripts for i in t.finals)


def _of_attempt(
    question: Question, key: Key | None, transcript: Transcript, row: Row, labels: Sequence[Label]
) -> Answered:
    if row.status == "failed":
        return Answered(question, key, None, None, None, failed=True, reason=row.reason, usage=row.usage)
    verdicts = {label.turn: label.correct for label in labels if label.step is None}
    right = right_answers(question, key) if question.kind != "program" else None
    texts = [transcript.turns[place].text for place in transcript.finals]
    answers = [read(question, text) for text in texts]
    credits = [
        float(answer in right) if right is not None else _known(verdicts.get(place))
        for place, answer in zip(transcript.finals, answers, strict=True)
    ]
    return Answered(
        question, key, standing(texts, answers, row.answer), row.answer, row.credit, tuple(answers), tuple(credits),
        confidence=row.confidence if row.confidence is not None else row.share if len(answers) > 1 else None,
        vote_credit=row.vote_credit, reason=row.reason, usage=row.usage,
    )  # fmt: skip


def _known(verdict: bool | None) -> float | None:
    return None if verdict is None else float(verdict)


def standing(texts: Sequence[str], answers: Sequence[str | None], decided: str | None) -> str:
    """The reply that stands for a decision: the first that gives its answer, else the first of all.

    >>> standing(["It is 3.", "It is 4.", "Four: 4"], ["3", "4", "4"], "4")
    'It is 4.'
    """
    found = (text for text, answer in zip(texts, answers, strict=True) if answer is not None and answer == decided)
    return next(found, texts[0] if texts else "")


# --- measures of each question ---------------------------------------------------------------------------------------

Measured = Mapping[str, float]
"""Question id → what was measured of it; questions that can not be measured are not in it."""
Similarity = Callable[[Sequence[tuple[str, Sequence[str]]]], list[float]]
"""(text, its references), several → how alike they are."""


def check_metrics(said: Sequence[str]) -> tuple[str, ...]:
    """The names of metrics, short ones resolved, each once; `pass@3` is one beside `pass@k`.

    >>> check_metrics(["em", "pass@3", "exact_match"])
    ('exact_match', 'pass@3')

    Raises UnknownName, which lists them.
    """
    names = [ALIASES.get(name, name) for name in said]
    for name in names:
        if name not in METRICS and not (_AT.fullmatch(name) and int(name.partition("@")[2])):
            raise UnknownName("metric", name, [*METRICS, *ALIASES])
    return tuple(dict.fromkeys(names))


def usual_metrics(sheets: Sequence[Sheet]) -> tuple[str, ...]:
    """What these sheets are measured by, unless said otherwise: by the kinds of their questions, and their samples."""
    kinds = {row.question.kind for sheet in sheets for row in sheet.rows}
    closed = ("accuracy",) if kinds - {"text"} else ()
    several = any(sheet.samples > 1 for sheet in sheets)
    sure = several or any(row.confidence is not None for sheet in sheets for row in sheet.rows)
    at = ("pass@k", "maj@k") if closed and several else ()
    return (*closed, *at, *(TEXT if "text" in kinds else ()), *(CALIBRATION if closed and sure else ()))


def spelled(metrics: Sequence[str], ks: Sequence[int], samples: int) -> tuple[str, ...]:
    """The metrics with every k in the place of `k`; without any k all samples, for pass@k 1 as well.

    >>> spelled(["accuracy", "pass@k", "maj@k"], [], 4)
    ('accuracy', 'pass@1', 'pass@4', 'maj@4')
    """
    most = max(samples, 1)
    found: list[str] = []
    for metric in metrics:
        if not metric.endswith("@k"):
            found.append(metric)
            continue
        usual = sorted({1, most}) if metric == "pass@k" else [most]
        found += [f"{metric[:-1]}{k}" for k in ks or usual]
    return tuple(dict.fromkeys(found))


def measured(sheet: Sheet, metric: str, *, stem: Stem | None = None, similarity: Similarity | None = None) -> Measured:
    """One metric of every question that has it; of `ece`, which is one of all questions, nothing.

    Args:
        metric: as `spelled` gives them.
        stem: for ROUGE, see `pluribus.metrics.rouge`.
        similarity: for `bertscore`, see `similarities`.
    """
    if metric == "bertscore":
        return _alike(sheet, similarity)
    of = _measure(metric, stem)
    values = ((row.question.id, of(row)) for row in sheet.rows if not row.failed)
    return {id: value for id, value in values if value is not None}


def _measure(metric: str, stem: Stem | None) -> Callable[[Answered], float | None]:
    if at := _AT.fullmatch(metric):
        return partial(_pass if at[1] == "pass" else _majority, k=int(at[2]))
    if metric in ROUGE:
        return partial(_rouge, kind=metric, stem=stem)
    plain: Mapping[str, Callable[[Answered], float | None]] = {
        "accuracy": lambda row: row.credit if row.key is not None else None,
        "exact_match": lambda row: _against(row, exact_match),
        "token_f1": lambda row: _against(row, token_f1),
        "brier": _brier,
        "ece": lambda row: None,
    }
    return plain[metric]


def references(row: Answered) -> tuple[str, ...]:
    """The right answers as published; empty: nobody knows one."""
    return () if row.key is None or row.key.answer is None else (row.key.answer, *row.key.aliases)


def said(row: Answered) -> str:
    """What a text measure looks at: the answer within the reply; of a closed kind its canonical form."""
    return answer_text(row.text or "") if row.question.kind == "text" else row.answer or ""


def _against(row: Answered, measure: Callable[[str, Sequence[str]], float]) -> float | None:
    good = references(row)
    return measure(said(row), good) if good else None


def _rouge(row: Answered, kind: str, stem: Stem | None) -> float | None:
    return _against(row, lambda text, good: rouge(text, good, kind, stem).f1)


def _whole(row: Answered) -> list[float] | None:
    """How right each sample is; None where that is not known of all."""
    known = [credit for credit in row.credits if credit is not None]
    return known if known and len(known) == len(row.credits) and row.key is not None else None


def _pass(row: Answered, k: int) -> float | None:
    credits = _whole(row)
    return None if credits is None or len(credits) < k else pass_at_k(len(credits), round(sum(credits)), k)


def _majority(row: Answered, k: int) -> float | None:
    credits = _whole(row)
    return None if credits is None or len(credits) < k else maj_at_k(row.samples, credits, k)


def _sureness(row: Answered) -> tuple[float, float] | None:
    """Confidence, and how right the vote is."""
    right = row.credit if row.vote_credit is None else row.vote_credit
    known = not row.failed and row.confidence is not None and right is not None and row.key is not None
    return (row.confidence or 0.0, right or 0.0) if known else None


def _brier(row: Answered) -> float | None:
    sure = _sureness(row)
    return None if sure is None else brier([sure[0]], [sure[1]])


def _alike(sheet: Sheet, similarity: Similarity | None) -> Measured:
    if similarity is None:
        raise ConfigError("bertscore needs token vectors", hint="name an embedder with --embedder")
    rows = [row for row in sheet.rows if not row.failed and references(row)]
    values = similarity([(said(row), references(row)) for row in rows])
    return {row.question.id: value for row, value in zip(rows, values, strict=True)}


def similarities(embed: Embedder, *, idf: bool = False) -> Similarity:
    """BERTScore's F1 with the tokens of an embedder.

    Args:
        idf: tokens count by how rare they are in the references; False: all the same.
    """

    def alike(pairs: Sequence[tuple[str, Sequence[str]]]) -> list[float]:
        rare = _rarity(embed, pairs) if idf else None
        parts = [pairs[start : start + _PAIRS_AT_ONCE] for start in range(0, len(pairs), _PAIRS_AT_ONCE)]
        return [value for part in parts for value in _matched(embed, part, rare)]

    return alike


def _rarity(embed: Embedder, pairs: Sequence[tuple[str, Sequence[str]]]) -> Callable[[int], float]:
    """By the token ids alone, a few texts at a time: vectors of all references together take much memory."""
    texts = [good for _, many in pairs for good in many]
    parts = (texts[start : start + _PAIRS_AT_ONCE] for start in range(0, len(texts), _PAIRS_AT_ONCE))
    return inverse_frequencies(tokens.ids_T for part in parts for tokens in embed.tokens(part))


def _matched(
    embed: Embedder, pairs: Sequence[tuple[str, Sequence[str]]], rare: Callable[[int], float] | None
) -> Iterator[float]:
    read = iter(embed.tokens([text for said, good in pairs for text in (said, *good)]))
    for _, good in pairs:
        candidate, *wanted = (_weighted(next(read), rare) for _ in range(1 + len(good)))
        yield bertscore(candidate, wanted).f1


def _weighted(tokens: TokenVectors, rare: Callable[[int], float] | None) -> Weighted:
    """The marks around a text weigh nothing, as in the package `bert-score`."""
    import numpy as np

    marks = zip(tokens.ids_T, tokens.special_T, strict=True)
    return Weighted(
        tokens.vectors_T_D, np.array([0.0 if mark else rare(id) if rare else 1.0 for id, mark in marks], np.float64)
    )


# --- values with intervals -------------------------------------------------------------------------------------------

Interval = Literal["wilson", "bootstrap"]


@dataclass(frozen=True, slots=True)
class Value:
    """One metric of one sheet."""

    metric: str
    n: int
    """Questions it is the mean of."""
    value: float
    low: float
    high: float
    """95 %."""
    interval: Interval


@dataclass(frozen=True, slots=True)
class Totals:
    """What was asked, what came, and what it took."""

    n: int
    """Questions with a key."""
    answered: int
    failed: int
    calls: int | None
    """None: a source does not say; so below."""
    tokens_per_question: float | None
    cost_usd: float | None


def value(sheet: Sheet, metric: str, found: Measured, *, seed: int = 0) -> Value | None:
    """A metric's mean over the questions, with its 95 % interval; None: no question has it.

    Wilson's interval for accuracy and exact match, which count right answers; for all others the percentile bootstrap
    over questions. `ece` is one value of all questions; its bootstrap draws questions as well.
    """
    if metric == "ece":
        return _calibration_error(sheet, seed)
    values = list(found.values())
    if not values:
        return None
    mean = sum(values) / len(values)
    if metric in ("accuracy", "exact_match"):
        return Value(metric, len(values), mean, *stats.wilson(min(sum(values), len(values)), len(values)), "wilson")
    span = stats.cluster_bootstrap(values, list(found), resamples=_RESAMPLES, seed=seed)
    return Value(metric, len(values), mean, span.low, span.high, "bootstrap")


def _calibration_error(sheet: Sheet, seed: int) -> Value | None:
    pairs = [sure for row in sheet.rows if (sure := _sureness(row)) is not None]
    if not pairs:
        return None
    confidence, right = [sure for sure, _ in pairs], [good for _, good in pairs]
    error = expected_calibration_error(confidence, right)
    low, high = _resampled_error(confidence, right, seed)
    return Value("ece", len(pairs), error, low, high, "bootstrap")


def _resampled_error(confidence_Q: Sequence[float], right_Q: Sequence[float], seed: int) -> tuple[float, float]:
    import numpy as np

    rng = np.random.default_rng(seed)
    confidence, right = np.array(confidence_Q), np.array(right_Q)
    drawn: NDArray[np.int64] = rng.integers(0, len(right), (_RESAMPLES // 4, len(right)))
    errors = [expected_calibration_error(confidence[row].tolist(), right[row].tolist()) for row in drawn]
    low, high = np.quantile(errors, [0.025, 0.975])
    return float(low), float(high)


def totals(sheet: Sheet) -> Totals:
    """Counts over the questions with a key; calls, tokens and cost over all, failed ones left out of the tokens."""
    keyed = [row for row in sheet.rows if row.key is not None]
    usages = [row.usage for row in sheet.rows if not row.failed]
    used = [usage for usage in usages if usage is not None]
    known = len(used) == len(usages)
    tokens = [usage.tokens for usage in used if usage.tokens is not None]
    costs = [usage.cost_usd for usage in used if usage.cost_usd is not None]
    calls = sum(row.usage.calls for row in sheet.rows if row.usage is not None)
    return Totals(
        n=len(keyed),
        answered=sum(row.answer is not None for row in keyed),
        failed=sum(row.failed for row in keyed),
        calls=calls if known and used else None,
        tokens_per_question=sum(tokens) / len(tokens) if known and tokens and len(tokens) == len(used) else None,
        cost_usd=sum(costs) if known and used and len(costs) == len(used) else None,
    )


# --- one subject against another -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Against:
    """A subject against the baseline, on the questions that both have the metric of."""

    task: str
    subject: str
    baseline: str
    metric: str
    n: int
    difference: float
    """The subject's mean minus the baseline's, on these questions."""
    low: float
    high: float
    test: Literal["McNemar", "bootstrap"]
    p: float
    only_subject: int | None = None
    """Questions on which it alone is right; None under the bootstrap."""
    only_baseline: int | None = None
    p_adjusted: float | None = None
    """Holm's, over all comparisons of this metric."""


def against(
    sheet: Sheet, other: Sheet, metric: str, ours: Measured, theirs: Measured, *, seed: int = 0
) -> Against | None:
    """One metric of two sheets on the questions they share; None: they share none that both have it of.

    Accuracy and exact match: McNemar's exact test, and the interval of `stats.paired_difference`. All others: the
    paired bootstrap over questions.

    Args:
        sheet, other: the subject and the baseline.
        ours, theirs: what `measured` gave for them.
    """
    shared = [id for id in theirs if id in ours]
    if not shared:
        return None
    first, second = [ours[id] for id in shared], [theirs[id] for id in shared]
    names = (sheet.task, sheet.subject, other.subject, metric, len(shared))
    if metric in ("accuracy", "exact_match"):
        span = stats.paired_difference(first, second, seed=seed)
        test = stats.mcnemar(_settled(sheet, shared, first), _settled(other, shared, second))
        return Against(
            *names, span.value, span.low, span.high, "McNemar", test.p, test.only_first, test.only_second
        )  # fmt: skip
    span = stats.paired_bootstrap(first, second, resamples=_RESAMPLES, seed=seed)
    return Against(*names, span.value, span.low, span.high, "bootstrap", span.p)


def _settled(sheet: Sheet, ids: Sequence[str], values: Sequence[float]) -> list[float]:
    """0 or 1 for McNemar's test: of tied answers that share the credit the one that is shown."""
    rows = {row.question.id: row for row in sheet.rows}
    return [value if value in (0, 1) else _shown(rows[id]) for id, value in zip(ids, values, strict=True)]


def _shown(row: Answered) -> float:
    """The shown answer's own credit."""
    pairs = zip(row.samples, row.credits, strict=True)
    return next((credit for answer, credit in pairs if answer == row.answer and credit is not None), 0.0)


def adjusted(found: Sequence[Against]) -> list[Against]:
    """The same with Holm's p-values: all comparisons of one metric, over subjects and tasks, are one family."""
    by_metric: dict[str, list[int]] = {}
    for place, one in enumerate(found):
        by_metric.setdefault(one.metric, []).append(place)
    held = {
        place: p
        for places in by_metric.values()
        for place, p in zip(places, stats.holm([found[i].p for i in places]), strict=True)
    }
    return [replace(one, p_adjusted=held[place]) for place, one in enumerate(found)]


def check_shared(sheet: Sheet, other: Sheet) -> None:
    """DataError if two sheets of one task have no question in common."""
    if sheet.ids.isdisjoint(other.ids):
        raise DataError(
            f"{sheet.subject} and {other.subject}", f"they have no question of {sheet.task} in common",
            hint="name the same --task, --split and --data for both, or compare nothing with --baseline none",
        )  # fmt: skip
