"""Recordings as panels: what the source recorded wins; where it says nothing, the texts are read here."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from pluribus.answers import canonical, prefetch, read
from pluribus.consensus.votes import plurality
from pluribus.errors import DataError
from pluribus.evaluate import Usage, right_answers
from pluribus.logs._records import Output, Recording
from pluribus.panel import Item, Member, Panel, Word
from pluribus.types import Key, Question

SILENT = "answers missing: an agent without a text in a round of a question"
EMPTY = "empty texts"
NO_TEXT = "questions without any text"
_MOST_ROUNDS = 1000
NO_KEY = "questions without a key or verdict"


@dataclass(frozen=True, slots=True)
class _Seat:
    """One member and where its words come from."""

    member: Member
    agent: str
    sample: int


def panel_of_recording(recording: Recording) -> Panel:
    """One recording as a panel. Its decision is the recorded one, else the plurality of the last answers, the first
    of the tied where several lead.
    """
    said: dict[str, dict[tuple[str, int, int], Output]] = {}
    for output in recording.outputs:
        said.setdefault(output.question_id, {})[(output.agent, output.sample, output.round)] = output
    prefetch(_unread(recording))
    seats = _seats(recording)
    rounds = 1 + max((output.round for output in recording.outputs), default=-1)
    if rounds > _MOST_ROUNDS:
        raise DataError(recording.source, f"an output of round {rounds - 1}", hint=f"at most {_MOST_ROUNDS} are read")
    items = tuple(_item(recording, pair, said.get(pair[0].id, {}), seats, rounds) for pair in recording.pairs)
    return Panel(
        recording.name, recording.source, recording.task, _method(recording, rounds),
        tuple(seat.member for seat in seats), items, recording.settings, _omitted(recording, items),
    )  # fmt: skip


def _unread(recording: Recording) -> list[tuple[Question, str]]:
    """The texts that will be read here."""
    questions = {question.id: question for question, _ in recording.pairs}
    return [(questions[o.question_id], o.text) for o in recording.outputs if o.answer is None and not o.unanswered]


def _seats(recording: Recording) -> list[_Seat]:
    """One member per agent and sample, in the source's order."""
    samples: dict[str, set[int]] = {agent: set() for agent in recording.agents}
    for output in recording.outputs:
        samples[output.agent].add(output.sample)
    return [
        _seat(recording, place, agent, sample, len(found))
        for place, (agent, found) in enumerate(samples.items())
        for sample in sorted(found)
    ]


def _seat(recording: Recording, place: int, agent: str, sample: int, samples: int) -> _Seat:
    name = f"{agent} #{sample + 1}" if samples > 1 else agent
    member = Member(name, recording.models.get(agent, agent), recording.personas.get(agent), place, sample)
    return _Seat(member, agent, sample)


def _item(
    recording: Recording,
    pair: tuple[Question, Key | None],
    said: Mapping[tuple[str, int, int], Output],
    seats: Sequence[_Seat],
    rounds: int,
) -> Item:
    question, key = pair
    right = right_answers(question, key) if question.kind != "program" else None
    words = tuple(
        tuple(_word(question, right, said.get((seat.agent, seat.sample, round))) for seat in seats)
        for round in range(rounds)
    )
    decided = _decided(recording, question, words)
    failed = not any(chain.from_iterable(words))
    credit = None if failed else _credit(recording, question, decided, right, words)
    usage = recording.usage.get(question.id) or _usage(words)
    return Item(question.id, key.answer if key else None, words, decided, credit, usage, failed)


def _word(question: Question, right: frozenset[str | None] | None, output: Output | None) -> Word | None:
    if output is None:
        return None
    answer = output.answer
    if answer is None and not output.unanswered:
        answer = read(question, output.text)
    correct = output.correct if output.correct is not None or right is None else answer in right
    said = None if correct is None else float(correct)
    return Word(output.text, answer, said, output.prompt_tokens, output.completion_tokens)


def _last(words: Sequence[Sequence[Word | None]]) -> list[Word | None]:
    """Each member's last word."""
    return [next((word for word in reversed(column) if word), None) for column in zip(*words, strict=True)]


def _decided(recording: Recording, question: Question, words: Sequence[Sequence[Word | None]]) -> str | None:
    if question.id in recording.decided:
        answer = recording.decided[question.id]
        return answer if answer is None else canonical(question, answer) or answer
    return plurality([word.answer if word else None for word in _last(words)], tie="first").winner


def _credit(
    recording: Recording,
    question: Question,
    decided: str | None,
    right: frozenset[str | None] | None,
    words: Sequence[Sequence[Word | None]],
) -> float | None:
    """How right the decision is: the source's verdict on it, on a voter with this answer, else the key's."""
    verdict = recording.decided_correct.get(question.id)
    if verdict is not None:
        return float(verdict)
    last = [word for word in _last(words) if word is not None and word.correct is not None]
    if decided is None:
        return 0.0 if right is not None or last else None
    voters = [word.correct for word in last if word.answer == decided]
    if voters:
        return voters[0]
    return None if right is None else float(decided in right)


def _usage(words: Sequence[Sequence[Word | None]]) -> Usage | None:
    """Sums over the words; None: nobody counted any."""
    there = [word for word in chain.from_iterable(words) if word is not None]
    asked = [word.prompt_tokens for word in there]
    said = [word.completion_tokens for word in there]
    if all(count is None for count in asked + said):
        return None
    return Usage(len(there), _sum(asked), _sum(said), None)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _method(recording: Recording, rounds: int) -> str:
    method = recording.settings.get("method")
    return str(method) if method else "debate" if rounds > 1 else "vote"


def _omitted(recording: Recording, items: Sequence[Item]) -> dict[str, int]:
    """What the reader counted, and what the table shows to be missing."""
    silent = sum(word is None for item in items for row in item.words if any(row) for word in row)
    empty = sum(word is not None and not word.text.strip() for item in items for word in chain(*item.words))
    counts = Counter(recording.omitted)
    counts.update({
        SILENT: silent,
        EMPTY: empty,
        NO_TEXT: sum(item.failed for item in items),
        NO_KEY: sum(item.credit is None and not item.failed for item in items),
    })  # fmt: skip
    return {reason: number for reason, number in counts.items() if number}


# --- several files ---------------------------------------------------------------------------------------------------


def combine(recordings: Sequence[Recording]) -> list[Panel]:
    """Recordings of one model each, of one task and with questions in common, side by side as one council; a recording
    that is a council of its own (several agents, or a decision) stays one. In the order of the first of each.
    """
    return [panel_of_recording(merged(group)) for group in groups(recordings)]


def groups(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """What `combine` puts together."""
    found: list[tuple[set[str], list[Recording]]] = []
    for recording in recordings:
        asked = {question.id for question, _ in recording.pairs}
        home = next((g for g in found if _belongs(recording, asked, *g)), None)
        if home is None:
            found.append((asked, [recording]))
        else:
            home[0].update(asked)
            home[1].append(recording)
    return [group for _, group in found]


def _belongs(recording: Recording, asked: set[str], known: set[str], group: Sequence[Recording]) -> bool:
    alone = _is_one_model(recording) and _is_one_model(group[0])
    return alone and recording.task == group[0].task and not asked.isdisjoint(known)


def _is_one_model(recording: Recording) -> bool:
    return len(recording.agents) == 1 and not recording.decided


def merged(group: Sequence[Recording]) -> Recording:
    """One recording with the agents of all; its questions are those that any of them was asked, keys where any has."""
    if len(group) == 1:
        return group[0]
    names = _distinct([recording.agents[0] for recording in group])
    pairs: dict[str, tuple[Question, Key | None]] = {}
    for question, key in chain.from_iterable(recording.pairs for recording in group):
        known = pairs.get(question.id)
        pairs[question.id] = (question, key) if known is None else (known[0], known[1] or key)
    omitted: Counter[str] = Counter()
    for recording in group:
        omitted.update(recording.omitted)
    first = group[0]
    return replace(
        first,
        name=f"{first.task}, {len(group)} models",
        source=_place([recording.source for recording in group]),
        pairs=tuple(pairs.values()),
        agents=tuple(names),
        outputs=tuple(replace(o, agent=name) for name, r in zip(names, group, strict=True) for o in r.outputs),
        models={name: r.models.get(r.agents[0], r.agents[0]) for name, r in zip(names, group, strict=True)},
        personas={name: p for name, r in zip(names, group, strict=True) for p in r.personas.values()},
        usage={},
        omitted=dict(omitted),
        settings={**first.settings, "files": [recording.source for recording in group]},
    )  # fmt: skip


def _distinct(names: Sequence[str]) -> list[str]:
    """
    >>> _distinct(["small", "large", "small"])
    ['small', 'large', 'small (2)']
    """
    seen: Counter[str] = Counter()
    out = []
    for name in names:
        seen[name] += 1
        out.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return out


def _place(sources: Sequence[str]) -> str:
    folder = os.path.commonpath([Path(source).parent for source in sources]) if sources else ""
    return f"{folder or '.'} ({len(sources)} files)"
