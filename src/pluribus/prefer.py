"""candidates, rewards, labels, verdicts → preferences: of two replies to one question, which is better and who says so.

Three sources. A label: one is right, the other wrong. A reward: the council gives one more. A person: a verdict on a
pair wins over both, and is never filtered. The file is JSON lines in the conversational form with an explicit prompt
that preference trainers read (TRL: DPOTrainer, RewardTrainer).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args

from pluribus.codec import content_id
from pluribus.consensus.pairs import JUDGED, Basis, LengthBias, form_pairs, length_bias, near_duplicates
from pluribus.consensus.rewards import learned_weights, pair_votes
from pluribus.errors import ConfigError
from pluribus.prompts import dialect, render
from pluribus.rows import CONVERSATION, REPLY, Field, Row, is_flag, is_number, is_place, is_prompt, is_reply, is_text
from pluribus.rows import numbered_rows as checked_rows
from pluribus.stats import cluster_bootstrap, wilson
from pluribus.types import Label, Message, PairSource, Preference, Question, Reward, Side, Verdict
from pluribus.verdicts import majority, sides, standing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

By = Literal["label", "reward", "both", "human"]
BY: tuple[By, ...] = get_args(By)
Item = tuple[str, int]
"""Attempt id and turn of a reply."""
Learn = Literal["labels", "agreement", "human"]
Span = tuple[float, float, float]
"""A share with its 95 % interval."""


class Reply(Protocol):
    """What a pair needs of a candidate."""

    @property
    def attempt_id(self) -> str: ...

    @property
    def turn(self) -> int: ...

    @property
    def text(self) -> str: ...


Replies = Sequence[tuple[Question, Sequence[Reply]]]
"""Each question with the candidates that answer it."""

COPY = "candidates that repeat an earlier one"
TIE = "pairs that people called a tie"
SKIPPED = "pairs that people skipped"
ELSEWHERE = "verdicts on replies that are no candidates, or the same text"
"""Reasons of this step, beside those of `consensus.pairs`; the first word says what is counted."""
PROMPT = "answer"
"""The plain question: what the student will be asked, whatever the council's method said around it."""
_MOST_VOTES = 20_000
"""Pairs that weights are learned from, at most."""


def bases(rewards: Collection[Reward], labels: Iterable[Label], verdicts: Iterable[Verdict]) -> tuple[By, ...]:
    """What can tell better from worse, the first of it being what is taken where nobody says.

    >>> bases([], [Label("a", 0, True)], [])
    ('label',)
    """
    there: dict[By, bool] = {
        "reward": bool(rewards),
        "label": any(one.correct is not None for one in labels),
        "human": bool(standing(verdicts)),
    }
    return tuple(by for by, found in there.items() if found)


@dataclass(frozen=True, slots=True)
class Preferred:
    pairs: tuple[Preference, ...]
    """In the order of the questions; within one, people's first, then by margin."""
    dropped: Mapping[str, int]
    """Why pairs were not taken → how many."""
    length: LengthBias | None
    """Lengths in words; None: there is no pair."""


def preferences(
    asked: Replies,
    rewards: Iterable[Reward] = (),
    labels: Iterable[Label] = (),
    verdicts: Iterable[Verdict] = (),
    *,
    by: By,
    margin: float = 0.0,
    max_disagreement: float | None = None,
    per_question: int = 1,
    reuse: bool = False,
    similar: float | None = None,
    seed: int = 0,
) -> Preferred:
    """Pairs within each question.

    A pair that people decided goes as they decided, by majority, whatever reward and label say; a tie or a skip is not
    taken. Their pairs are never filtered and come first; `per_question` limits what is formed beside them.

    >>> from pluribus.judges import Candidate
    >>> question = Question("q", "t", "1 + 1?", "number")
    >>> replies = [Candidate("a", 0, "It is 3."), Candidate("a", 1, "It is 2.")]
    >>> labels = [Label("a", 0, False), Label("a", 1, True)]
    >>> found = preferences([(question, replies)], labels=labels, by="label")
    >>> [(pair.chosen.text, pair.rejected.text, pair.by) for pair in found.pairs]
    [('It is 2.', 'It is 3.', 'label')]
    >>> said = [Verdict("p", "q", ("a", 0), ("a", 1), "first", "ada", 1.0)]
    >>> found = preferences([(question, replies)], labels=labels, verdicts=said, by="label")
    >>> [(pair.chosen.text, pair.by) for pair in found.pairs]
    [('It is 3.', 'human')]

    Args:
        rewards: in [0, 1]; a candidate without one is unscored.
        labels: of a reply the first that decides counts; one of a step does not.
        verdicts: every event, see `pluribus.verdicts`.
        by: `label`: right over wrong, rewards choose among several; `reward`: more over less; `both`: right over wrong
            that has less; `human`: people's alone.
        margin: least difference of the rewards, in [0, 1].
        max_disagreement: most mean disagreement of the two rewards; None: no limit.
        per_question: 0: all pairs.
        reuse: whether a reply may stand in several pairs that are formed.
        similar: from which share of common word n-grams a reply is a copy of an earlier one and left out, in (0, 1];
            None: from 1, the same text.
        seed: settles which of equal pairs are taken.
    """
    table = _Table.of(asked, rewards, labels)
    people = _people(table, verdicts)
    dropped = Counter(people.dropped)
    found: list[tuple[int, int, PairSource]] = [(*pair, "human") for pair in people.decided]
    if by != "human":
        limits = _Limits(by, margin, max_disagreement, per_question, reuse, seed)
        free_N = ~_copies(table, similar)
        dropped[COPY] += int((~free_N).sum())
        source: PairSource = "reward" if by == "reward" else "label"
        formed, why = _formed(table, free_N, people, limits)
        dropped += why
        found += [(*pair, source) for pair in formed]
    number = {name: i for i, name in enumerate(dict.fromkeys(table.questions))}
    found.sort(key=lambda one: number[table.questions[one[0]]])
    pairs = tuple(table.preference(*one) for one in found)
    return Preferred(pairs, {why: count for why, count in dropped.items() if count}, _length(pairs))


# --- forming ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limits:
    basis: Basis
    margin: float
    max_disagreement: float | None
    per_question: int
    reuse: bool
    seed: int


@dataclass(frozen=True, slots=True)
class _Table:
    """The candidates of all questions, one a row."""

    items: tuple[Item, ...]
    questions: tuple[str, ...]
    """Id of each one's question."""
    texts: tuple[str, ...]
    rewards: tuple[Reward | None, ...]
    correct: tuple[bool | None, ...]
    place: Mapping[Item, int]
    first: tuple[int, ...]
    """The first reply to the same question with the same text: mostly itself."""

    @classmethod
    def of(cls, asked: Replies, rewards: Iterable[Reward], labels: Iterable[Label]) -> _Table:
        given = {(one.attempt_id, one.turn): one for one in rewards}
        right = _settled(labels)
        rows = [(question.id, one) for question, candidates in asked for one in candidates]
        items = tuple((one.attempt_id, one.turn) for _, one in rows)
        seen: dict[tuple[str, str], int] = {}
        first = tuple(seen.setdefault((question, one.text), at) for at, (question, one) in enumerate(rows))
        return cls(
            items, tuple(question for question, _ in rows), tuple(one.text for _, one in rows),
            tuple(map(given.get, items)), tuple(map(right.get, items)), {item: i for i, item in enumerate(items)},
            first,
        )  # fmt: skip

    def group_N(self) -> NDArray[np.int64]:
        """Number of each one's question, in the order asked."""
        import numpy as np

        number = {name: i for i, name in enumerate(dict.fromkeys(self.questions))}
        return np.array([number[name] for name in self.questions], dtype=np.int64)

    def value_N(self) -> NDArray[np.float64]:
        return _numbers(None if one is None else one.value for one in self.rewards)

    def disagreement_N(self) -> NDArray[np.float64]:
        return _numbers(None if one is None else one.disagreement for one in self.rewards)

    def correct_N(self) -> NDArray[np.float64]:
        return _numbers(self.correct)

    def preference(self, chosen: int, rejected: int, by: PairSource) -> Preference:
        better, worse = self._side(chosen), self._side(rejected)
        margin = None if better.reward is None or worse.reward is None else better.reward - worse.reward
        return Preference(self.questions[chosen], better, worse, by, margin, self._disagreement(chosen, rejected))

    def _side(self, at: int) -> Side:
        reward = self.rewards[at]
        return Side(*self.items[at], self.texts[at], reward.value if reward else None, self.correct[at])

    def _disagreement(self, *places: int) -> float | None:
        known = [one.disagreement for one in (self.rewards[at] for at in places) if one is not None]
        both = [value for value in known if value is not None]
        return math.fsum(both) / len(both) if len(both) == len(places) else None


def _settled(labels: Iterable[Label]) -> dict[Item, bool]:
    """Reply → the first label that decides."""
    found: dict[Item, bool] = {}
    for one in labels:
        if one.step is None and one.correct is not None:
            found.setdefault((one.attempt_id, one.turn), one.correct)
    return found


def _numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    import numpy as np

    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _People:
    """What people said of these candidates."""

    decided: tuple[tuple[int, int], ...]
    """(chosen, rejected), in the order of the verdicts."""
    judged: frozenset[frozenset[int]]
    """Every pair that stands under a verdict, by the first reply with each text: none of them is formed again."""
    dropped: Mapping[str, int]


def _people(table: _Table, verdicts: Iterable[Verdict]) -> _People:
    stands = standing(verdicts)
    won = majority(stands)
    decided, judged, dropped = [], set(), Counter[str]()
    for pair, both in {one.pair: sides(one) for one in stands.values()}.items():
        places = [table.place.get(item) for item in both]
        if not _pair_of_one_question(table, places):
            dropped[ELSEWHERE] += 1
            continue
        first, second = cast(list[int], places)
        judged.add(frozenset((table.first[first], table.first[second])))
        if won.get(pair) in (None, "tie"):
            dropped[TIE if pair in won else SKIPPED] += 1
        else:
            decided.append((first, second) if won[pair] == "first" else (second, first))
    return _People(tuple(decided), frozenset(judged), dropped)


def _pair_of_one_question(table: _Table, places: Sequence[int | None]) -> bool:
    """A file without such a pair would be no preference file: two replies to one question, not the same words."""
    if None in places:
        return False
    first, second = cast(Sequence[int], places)
    return table.questions[first] == table.questions[second] and table.texts[first] != table.texts[second]


def _copies(table: _Table, similar: float | None) -> NDArray[np.bool_]:
    import numpy as np

    if similar is not None:
        return near_duplicates(table.texts, table.group_N(), threshold=similar)
    return np.array([first != at for at, first in enumerate(table.first)], dtype=bool)


def _formed(
    table: _Table, free_N: NDArray[np.bool_], people: _People, limits: _Limits
) -> tuple[list[tuple[int, int]], Counter[str]]:
    """Pairs by label or reward beside people's: a question has as many fewer as people have decided there."""
    import numpy as np

    decided = Counter(table.questions[chosen] for chosen, _ in people.decided)
    decided_N = np.array([decided[question] for question in table.questions], dtype=np.int64)
    if not limits.reuse:
        free_N = free_N.copy()
        free_N[[table.first[at] for pair in people.decided for at in pair]] = False
    found, dropped = [], Counter[str]()
    for count in sorted(set(decided_N.tolist())):
        left = limits.per_question - count
        if limits.per_question and left < 1:
            break
        which_N = free_N & (decided_N == count)
        pairs, why = _pairs(table, which_N, people, replace(limits, per_question=left if limits.per_question else 0))
        found += pairs
        dropped += why
    return found, dropped


def _pairs(
    table: _Table, which_N: NDArray[np.bool_], people: _People, limits: _Limits
) -> tuple[list[tuple[int, int]], Counter[str]]:
    """What `form_pairs` makes of some of the candidates."""
    import numpy as np

    at_M = np.flatnonzero(which_N)
    inside = {at: place for place, at in enumerate(at_M.tolist())}
    judged = [[inside[at] for at in pair] for pair in people.judged if pair <= inside.keys()]
    formed = form_pairs(
        table.group_N()[at_M], table.value_N()[at_M], table.disagreement_N()[at_M], table.correct_N()[at_M],
        basis=limits.basis, margin=limits.margin, max_disagreement=limits.max_disagreement,
        per_question=limits.per_question, reuse=limits.reuse, judged=judged, seed=limits.seed,
    )  # fmt: skip
    pairs = zip(at_M[formed.chosen_P].tolist(), at_M[formed.rejected_P].tolist(), strict=True)
    # people's own pairs are counted where they are read
    return list(pairs), Counter({why: count for why, count in formed.dropped.items() if why != JUDGED})


def _length(pairs: Sequence[Preference]) -> LengthBias | None:
    """In words."""
    chosen, rejected = ([len(_texts(pair)[side].split()) for pair in pairs] for side in (0, 1))
    return length_bias(chosen, rejected, [pair.margin for pair in pairs])


def _texts(pair: Preference) -> tuple[str, str]:
    return pair.chosen.text, pair.rejected.text


# --- what they are worth ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Pairs against what is known to be right: each a share of the `n` pairs both of whose replies are known."""

    n: int
    right: Span | None
    """Chosen right, rejected wrong. None: n is 0."""
    reversed: Span | None
    """Chosen wrong, rejected right."""
    same: Span | None
    """Both right, or both wrong."""
    unknown: int
    """Pairs of which nobody can say."""


def accuracy(pairs: Sequence[Preference], right: Mapping[Item, bool | None], *, seed: int = 0) -> Accuracy:
    """How often the better reply was chosen; intervals see that the pairs of one question are no strangers.

    >>> good, poor = Side("a", 0, "2"), Side("a", 1, "3")
    >>> pairs = [Preference("q", good, poor, "reward"), Preference("r", poor, good, "reward")]
    >>> found = accuracy(pairs, {("a", 0): True, ("a", 1): False})
    >>> found.n, [round(end, 2) for end in found.right]
    (2, [0.5, 0.09, 0.91])

    Args:
        right: reply → whether a key or tests say it is right; None, or not there: nobody can say.
    """
    marks = [(pair.question_id, mark) for pair in pairs if (mark := _mark(pair, right)) is not None]
    questions = [question for question, _ in marks]
    better, worse, same = (_span([mark == sign for _, mark in marks], questions, seed) for sign in (1, -1, 0))
    return Accuracy(len(marks), better, worse, same, len(pairs) - len(marks))


def _mark(pair: Preference, right: Mapping[Item, bool | None]) -> int | None:
    """1: only the chosen reply is right, -1: only the rejected one, 0: neither or both; None: nobody can say."""
    chosen, rejected = (right.get((side.attempt_id, side.turn)) for side in (pair.chosen, pair.rejected))
    return None if chosen is None or rejected is None else int(chosen) - int(rejected)


def _span(marks: Sequence[bool], questions: Sequence[str], seed: int) -> Span | None:
    """Wilson's interval, and where a question has several pairs no narrower than resampled questions give."""
    if not marks:
        return None
    share, (low, high) = sum(marks) / len(marks), wilson(sum(marks), len(marks))
    if len(set(questions)) < len(questions):
        found = cluster_bootstrap([float(mark) for mark in marks], questions, seed=seed)
        low, high = min(low, found.low), max(high, found.high)
    return share, low, high


def quartiles(values: Iterable[float | None]) -> tuple[float, ...] | None:
    """Least, lower quartile, median, upper quartile, greatest of what is known; None: nothing is.

    >>> quartiles([0.1, None, 0.3, 0.2])
    (0.1, 0.15, 0.2, 0.25, 0.3)
    """
    import numpy as np

    known = [value for value in values if value is not None]
    return tuple(np.quantile(known, [0, 0.25, 0.5, 0.75, 1]).round(12).tolist()) if known else None


# --- weights ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weighed:
    """What judges' votes are to count, learned."""

    weights: Mapping[str, float]
    accuracy: Mapping[str, float]
    """Judge → chance to prefer the better of two replies, shrunk."""
    pairs: int
    """Pairs it was learned from."""


def learn_weights(
    how: Learn,
    asked: Replies,
    rewards: Iterable[Reward],
    labels: Iterable[Label] = (),
    verdicts: Iterable[Verdict] = (),
    *,
    seed: int = 0,
) -> Weighed:
    """Weights of the judges by how they order pairs of replies to one question.

    Args:
        how: `labels`: pairs of a right and a wrong reply; `human`: pairs people decided; `agreement`: all pairs, and
            the judges are measured by each other.
        rewards: their `scores`, each judge's own.
        seed: draws the pairs where there are more than 20,000.

    Raises ConfigError where there is no such pair, or no judge is seen to be better than chance.

    >>> from pluribus.judges import Candidate
    >>> asked = [(Question(q, "t", "?", "number"), [Candidate(q, 0, "2"), Candidate(q, 1, "3")]) for q in "1234"]
    >>> labels = [Label(q, turn, turn == 0) for q in "1234" for turn in (0, 1)]
    >>> rewards = [Reward(q, turn, {"good": 1 - turn, "poor": turn}, {}, None, None, "agreed")
    ...            for q in "1234" for turn in (0, 1)]
    >>> found = learn_weights("labels", asked, rewards, labels)
    >>> found.pairs, found.weights["good"] > found.weights["poor"]
    (4, True)
    """
    table = _Table.of(asked, rewards, labels)
    judges = next((tuple(one.scores) for one in table.rewards if one is not None), ())
    pairs = _votable(how, table, verdicts, seed)
    if not judges or not pairs:
        raise ConfigError(f"--weights {how}: {_NOTHING[how] if judges else 'the run has no rewards'}", hint=_INSTEAD)
    scores_J_N = [[one.scores.get(name) if one else None for one in table.rewards] for name in judges]
    votes_P_J = pair_votes(scores_J_N, pairs)
    found = learned_weights(votes_P_J, None if how == "agreement" else ["first"] * len(pairs))
    if not any(found.weights):
        said = f"on {len(pairs):,} pairs no judge is seen to be better than chance"
        raise ConfigError(f"--weights {how}: {said}", hint=_INSTEAD)
    named = dict(zip(judges, found.weights, strict=True)), dict(zip(judges, found.accuracy, strict=True))
    return Weighed(*named, len(pairs))


_INSTEAD = "take --weights config or uniform"
_NOTHING: Mapping[Learn, str] = {
    "labels": "no question has a right and a wrong reply by label",
    "human": "people have decided no pair of this run",
    "agreement": "no question has two different replies",
}


def _votable(how: Learn, table: _Table, verdicts: Iterable[Verdict], seed: int) -> list[tuple[int, int]]:
    """Pairs to learn from, the better reply first where that is known."""
    if how == "human":
        return list(_people(table, verdicts).decided)
    members: dict[str, list[int]] = {}
    for at, question in enumerate(table.questions):
        members.setdefault(question, []).append(at)
    pairs = [
        (first, second)
        for places in members.values()
        for first in places
        for second in places
        if _tells(how, table, first, second)
    ]
    return pairs if len(pairs) <= _MOST_VOTES else random.Random(seed).sample(pairs, _MOST_VOTES)


def _tells(how: Learn, table: _Table, first: int, second: int) -> bool:
    if how == "labels":
        return table.correct[first] is True and table.correct[second] is False
    return first < second and table.texts[first] != table.texts[second]


# --- a part held out -------------------------------------------------------------------------------------------------


def held_out(questions: Iterable[Question], share: float, *, seed: int = 0) -> frozenset[str]:
    """Ids of the questions that are kept for testing; questions with the same words are one, whatever their ids.

    >>> questions = [Question(str(i), "t", f"{i} + 1?", "number") for i in range(10)]
    >>> len(held_out(questions, 0.2))
    2

    Args:
        share: in (0, 1), of the questions.
        seed: another one draws others.

    Raises ConfigError where no question would be left on one side.
    """
    same: dict[str, list[str]] = {}
    for one in questions:
        words = [" ".join(part.split()).casefold() for part in (one.context or "", one.text, *one.choices)]
        same.setdefault(content_id(words), []).append(one.id)
    count = round(share * len(same)) if 0 < share < 1 else 0
    if not 0 < count < len(same):
        raise ConfigError(
            f"--split {share:g} of {len(same):,} questions leaves one part empty",
            hint="give a share between 0 and 1, such as 0.1, and enough questions",
        )
    drawn = sorted(same, key=lambda words: content_id([seed, words]))[:count]
    return frozenset(id for words in drawn for id in same[words])


# --- the file --------------------------------------------------------------------------------------------------------

OPTIONAL = (
    "chosen_reward", "rejected_reward", "margin", "disagreement", "chosen_correct", "rejected_correct",
)  # fmt: skip
"""Columns that stand in every row or in none: a loader fills what one row lacks with null."""
_SCORES = ("chosen_scores", "rejected_scores")


def rows(
    pairs: Sequence[Preference],
    questions: Mapping[str, Question],
    rewards: Iterable[Reward],
    *,
    run: str,
    dialect_of: Callable[[Side], str],
    model_of: Callable[[Side], str],
) -> list[Row]:
    """The lines of a preference file, one a pair.

    The prompt is the plain question in the dialect of the chosen reply's seat: no persona, nothing of the debate. A
    column that some pair has no value for is left out of all of them.

    Args:
        questions: id → question, of every pair.
        rewards: whose scores stand beside the replies.
        run: id of the run, for who wants to trace a row.
        dialect_of: the name of the dialect a reply's seat was asked in.
        model_of: the model that wrote a reply.
    """
    given = {(one.attempt_id, one.turn): one for one in rewards}
    found = [
        {
            **_row(pair, questions[pair.question_id], given, run, dialect_of(pair.chosen)),
            "chosen_model": model_of(pair.chosen),
            "rejected_model": model_of(pair.rejected),
        }
        for pair in pairs
    ]
    lacking = {name for name in OPTIONAL if any(row[name] is None for row in found)}
    lacking |= {name for name in _SCORES if not any(row[name] for row in found)}
    return [{name: value for name, value in row.items() if name not in lacking} for row in found]


def _row(pair: Preference, question: Question, given: Mapping[Item, Reward], run: str, words: str) -> Row:
    chosen, rejected = pair.chosen, pair.rejected
    return {
        "prompt": [_message(one) for one in render(dialect(words), PROMPT, question)],
        "chosen": [_message(Message("assistant", chosen.text))],
        "rejected": [_message(Message("assistant", rejected.text))],
        "chosen_reward": chosen.reward,
        "rejected_reward": rejected.reward,
        "margin": pair.margin,
        "disagreement": pair.disagreement,
        "by": pair.by,
        "chosen_scores": _scores(given.get((chosen.attempt_id, chosen.turn))),
        "rejected_scores": _scores(given.get((rejected.attempt_id, rejected.turn))),
        "question_id": question.id,
        "task": question.task,
        "run": run,
        "chosen_attempt": chosen.attempt_id,
        "chosen_turn": chosen.turn,
        "rejected_attempt": rejected.attempt_id,
        "rejected_turn": rejected.turn,
        "chosen_correct": chosen.correct,
        "rejected_correct": rejected.correct,
    }


def _message(one: Message) -> Row:
    return {"role": one.role, "content": one.content}


def _scores(reward: Reward | None) -> list[Row]:
    """No verdict is no entry."""
    scores = reward.scores if reward else {}
    return [{"judge": judge, "score": float(score)} for judge, score in scores.items() if score is not None]


def read_rows(path: Path) -> list[Row]:
    """The rows of a preference file, checked.

    Raises DataError, with file and line, for a file without rows and for a row that a trainer would stumble over: a
    field that is missing, of another type, or null; a chosen reply that is the rejected one.
    """
    return [row for _, row in numbered_rows(path)]


def numbered_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """`read_rows` with the number of each line; blank lines are none."""
    write = "write one with: pluribus prefer RUN --out FILE"
    return checked_rows(path, _FIELDS, "preference pair", write, _wrong)


def _wrong(row: Row) -> str | None:
    same = row["chosen"] == row["rejected"]
    return "chosen and rejected are the same; expected two different replies" if same else None


def _is_scores(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and isinstance(one.get("judge"), str) and is_number(one.get("score")) for one in value
    )


_SCORED = 'a list of {"judge": text, "score": number}'
_FIELDS: Mapping[str, Field] = {
    "prompt": (True, is_prompt, CONVERSATION),
    "chosen": (True, is_reply, REPLY),
    "rejected": (True, is_reply, REPLY),
    **dict.fromkeys(OPTIONAL[:4], (False, is_number, "a number")),
    **dict.fromkeys(OPTIONAL[4:], (False, is_flag, "true or false")),
    **dict.fromkeys(_SCORES, (False, _is_scores, _SCORED)),
    **dict.fromkeys(("question_id", "task", "run", "chosen_attempt", "rejected_attempt"), (False, is_text, "a text")),
    **dict.fromkeys(("chosen_model", "rejected_model"), (False, is_text, "a model's name")),
    **dict.fromkeys(("chosen_turn", "rejected_turn"), (False, is_place, "a whole number from 0 on")),
    "by": (False, lambda value: value in get_args(PairSource), "label, reward or human"),
}
