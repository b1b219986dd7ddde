"""What there is to review: a run's rewards → pairs of replies to one question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pluribus.judging import Asked, Rewarded
from pluribus.reward import latest, pair_id
from pluribus.types import Judgement, Question, Reward, Verdict
from pluribus.verdicts import Item, sides

COUNCIL = "council"
"""All judges together, by their weighted mean, where raters are compared."""


@dataclass(frozen=True, slots=True)
class Voice:
    """What one judge said of a reply in the last round it gave a score in."""

    judge: str
    score: float | None
    """The judge's own; None: no verdict."""
    normalised: float | None
    """On the common scale, in [0, 1]."""
    said: str | None
    """Its reason, or why it has no score."""


@dataclass(frozen=True, slots=True)
class Reply:
    attempt_id: str
    turn: int
    text: str
    answer: str | None
    model: str
    persona: str | None
    reward: Reward
    voices: tuple[Voice, ...]

    @property
    def item(self) -> Item:
        return self.attempt_id, self.turn


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replies to one question, in the order of `sides`."""

    id: str
    question: Question
    replies: tuple[Reply, Reply]

    @property
    def disagreement(self) -> float | None:
        """Mean of both rewards' disagreements; of the one that is known, else None."""
        known = [d for reply in self.replies if (d := reply.reward.disagreement) is not None]
        return sum(known) / len(known) if known else None

    def reply(self, item: Item) -> Reply:
        return next(reply for reply in self.replies if reply.item == tuple(item))


@dataclass(frozen=True, slots=True)
class Material:
    """A run as people review it."""

    run: str
    """Its id."""
    name: str
    weights: Mapping[str, float]
    """Judge → weight, in the judges' order."""
    pairs: tuple[Pair, ...]
    """In the order they are to be decided in: most disagreement first."""
    alone: int
    """Disputed replies that no other reply of their question differs from: there is nothing to compare them with."""

    @property
    def judges(self) -> tuple[str, ...]:
        return tuple(self.weights)

    def pair(self, id: str) -> Pair | None:
        return next((pair for pair in self.pairs if pair.id == id), None)


def gather(
    rewarded: Rewarded, events: Sequence[Verdict] = (), *, every: bool = False, limit: int | None = None
) -> Material:
    """The pairs of a run: those that somebody has judged before, and then as few as hold every disputed reply.

    A person's verdict says most where the judges disagree most, so of each question's pairs those with the highest mean
    disagreement are taken, first such in which both replies are disputed, until each disputed reply is in one. Among
    equals the replies that give different answers go first, then those whose rewards are nearest to each other: there
    the council itself is least sure of the order. Replies with the same text make no pair.

    Args:
        events: verdicts so far; their pairs stay, whatever became of the rewards since.
        every: one pair of each question in which nothing is disputed too.
        limit: so many pairs, those with most disagreement.
    """
    replies = _replies(rewarded)
    found: list[Pair] = []
    alone = 0
    for question, group in _by_question(rewarded.asked):
        mine = [replies[item] for item in group]
        known = _known(question, mine, events)
        pairs, left = _cover(question, mine, known, every)
        found += pairs
        alone += left
    found.sort(key=lambda pair: (-_worth(pair), pair.id))
    return Material(rewarded.run, rewarded.name, dict(rewarded.weights), tuple(found[:limit]), alone)


def every_pair(rewarded: Rewarded) -> dict[str, Pair]:
    """Pair id → pair, of all pairs of replies to one question; what an import may speak of."""
    replies = _replies(rewarded)
    return {
        pair.id: pair
        for question, group in _by_question(rewarded.asked)
        for pair in (_pair(question, *two) for two in combinations([replies[item] for item in group], 2))
    }


def _by_question(asked: Iterable[Asked]) -> Iterable[tuple[Question, list[Item]]]:
    groups: dict[str, tuple[Question, list[Item]]] = {}
    for part in asked:
        group = groups.setdefault(part.question.id, (part.question, []))[1]
        group += [(one.attempt_id, one.turn) for one in part.candidates]
    return groups.values()


def _replies(rewarded: Rewarded) -> dict[Item, Reply]:
    rewards = {(reward.attempt_id, reward.turn): reward for reward in rewarded.rewards}
    said: dict[Item, dict[str, Judgement]] = {}
    for heard in latest(rewarded.judgements):
        said.setdefault((heard.attempt_id, heard.turn), {})[heard.judge] = heard
    found = {}
    for part in rewarded.asked:
        for one in part.candidates:
            item = one.attempt_id, one.turn
            voices = _voices(rewards[item], said.get(item, {}), rewarded.weights)
            found[item] = Reply(*item, one.text, one.answer, *_author(part, one.turn), rewards[item], voices)
    return found


def _author(part: Asked, turn: int) -> tuple[str, str | None]:
    """Model and persona of who wrote a turn."""
    said = part.transcript.turns[turn]
    for seat in part.transcript.attempt.agents:
        if seat.index == said.seat:
            return seat.model, seat.persona
    return said.completion.model if said.completion else "unknown", None


def _voices(reward: Reward, said: Mapping[str, Judgement], judges: Iterable[str]) -> tuple[Voice, ...]:
    return tuple(
        Voice(judge, reward.scores.get(judge), reward.normalised.get(judge), _said(said.get(judge))) for judge in judges
    )


def _said(judgement: Judgement | None) -> str | None:
    if judgement is None:
        return None
    return judgement.failure.message if judgement.score is None and judgement.failure else judgement.reason


def _pair(question: Question, one: Reply, other: Reply) -> Pair:
    low, high = sorted((one, other), key=lambda reply: reply.item)
    return Pair(pair_id(low.item, high.item), question, (low, high))


def _known(question: Question, replies: Sequence[Reply], events: Iterable[Verdict]) -> list[Pair]:
    """The pairs of these replies that somebody has said something of."""
    there = {reply.item: reply for reply in replies}
    said = {sides(event): None for event in events if event.question_id == question.id}
    return [_pair(question, there[one], there[other]) for one, other in said if one in there and other in there]


def _cover(question: Question, replies: Sequence[Reply], known: Sequence[Pair], every: bool) -> tuple[list[Pair], int]:
    """The question's pairs, and how many disputed replies no pair can hold."""
    chosen = list(known)
    covered = {reply.item for pair in known for reply in pair.replies}
    open_ = {reply.item for reply in replies if reply.reward.status == "disputed"} - covered
    if not open_ and (chosen or not every):
        return chosen, 0
    ranked = sorted(_candidates(question, replies), key=_rank)
    for least in (2, 1):  # two disputed replies at once as long as there are two
        for pair in ranked:
            inside = open_ & {reply.item for reply in pair.replies}
            if len(inside) >= least:
                chosen.append(pair)
                open_ -= inside
    if every and not chosen:
        chosen = ranked[:1]
    return chosen, len(open_)


def _candidates(question: Question, replies: Sequence[Reply]) -> list[Pair]:
    return [_pair(question, *two) for two in combinations(replies, 2) if two[0].text.strip() != two[1].text.strip()]


def _worth(pair: Pair) -> float:
    return -1.0 if pair.disagreement is None else pair.disagreement


def _rank(pair: Pair) -> tuple[float, bool, float, str]:
    one, other = pair.replies
    values = one.reward.value, other.reward.value
    apart = 1.0 if values[0] is None or values[1] is None else abs(values[0] - values[1])
    return -_worth(pair), one.answer == other.answer, apart, pair.id
