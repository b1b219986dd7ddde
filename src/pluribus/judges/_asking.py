"""What the kinds of judge share: which draws they take, what they show of the others, how replies become an opinion."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pluribus.agents import Agent
from pluribus.judges import Heard, Juror, Opinion
from pluribus.prompts import Dialect, fence, fragment
from pluribus.replies import Reply, objects
from pluribus.types import Failure, Turn

T = TypeVar("T")

_SEATS = 1024
"""Seats with the same model and sampling that still draw apart: a seat's own number is added to a draw's."""
_ROUNDS = 16
"""Rounds of judging that still draw apart."""
_LONGEST = 2000
"""Characters of another judge's reasons that are shown."""


def seated(juror: Juror) -> Agent:
    """The agent that is asked."""
    if juror.agent is None:
        raise ValueError(f"judge {juror.name!r} has no model to ask; give the juror an agent")
    return juror.agent


def at_least_one(samples: int) -> None:
    if samples < 1:
        raise ValueError(f"samples is {samples}; ask at least once")


def draws(juror: Juror, samples: int) -> list[int]:
    """The numbers of a judge's draws in its round; no other round and no twin of its seat takes one of them.

    >>> from pluribus.types import Question
    >>> judge = Juror("critic", Question("q", "t", "1 + 1?", "number"), None)
    >>> draws(judge, 2), draws(replace(judge, round=1), 2)
    ([0, 16384], [1024, 17408])
    """
    return [(number * _ROUNDS + juror.round) * _SEATS for number in range(samples)]


def opinions(words: Dialect, juror: Juror, place: int) -> str | None:
    """What the other judges said of the candidate at `place`, each between fences, in an order drawn by the seed.

    The order depends on what they said and on nothing else, so that the same reply is asked about in the same words,
    whichever replies it is judged beside. None where there is nothing to read: in round 0, or when no other judge gave
    a verdict.
    """
    heard = [one for one in juror.heard[place] if _words(one)] if juror.heard else []
    texts = [(one.name, _words(one)) for one in heard]
    texts.sort(key=lambda said: random.Random(f"{juror.seed}:{juror.name}:{juror.round}:{said}").random())
    return "\n".join(fragment(words, "peer", name=name, text=text, fence=fence(text)) for name, text in texts) or None


def _words(heard: Heard) -> str:
    """
    >>> _words(Heard("judge 1", 0.25, "Step 2 adds 7, not 6."))
    'score: 0.25\\nStep 2 adds 7, not 6.'
    """
    score = "" if heard.score is None else f"score: {heard.score:.2f}"
    reason = heard.reason or ""
    reason = reason if len(reason) <= _LONGEST else reason[:_LONGEST] + " …"
    return "\n".join(part for part in (score, reason) if part)


def averaged(replies: Sequence[Reply[T]], scores: Sequence[float | None]) -> Opinion:
    """The mean of the samples that were read; a failure where none was.

    Args:
        replies: one a sample.
        scores: what each of them comes to; None: no verdict.
    """
    turns = tuple(turn for reply in replies for turn in reply.turns)
    read = [score for score in scores if score is not None]
    if not read:
        return Opinion(None, tuple(scores), turns=turns, failure=nothing_read(replies))
    first = next(reply for reply, score in zip(replies, scores, strict=True) if score is not None)
    return Opinion(math.fsum(read) / len(read), tuple(scores), reason_of(first), turns)


def nothing_read(replies: Sequence[Reply[T]]) -> Failure:
    """Why none of the replies gave a verdict."""
    last = why(replies[-1].turn)
    if len(replies) == 1:
        return last
    return replace(last, message=f"none of {len(replies)} samples gave a verdict; the last: {last.message}")


def why(turn: Turn) -> Failure:
    """Why a turn gave no verdict: its call failed, or the reply could not be read."""
    return turn.failure or Failure("bad_form", turn.unread or "the reply could not be read")


def reason_of(reply: Reply[T]) -> str | None:
    """The reasons of a verdict that was read: the thoughts it was concluded from, or what its own reply says."""
    thought = reply.turns[0]
    return thought.text.strip() or None if thought.form is None else reason(reply.turn.text)


def reason(text: str) -> str | None:
    """The `reason` of the last JSON object that gives one, else what stands before the verdict's braces.

    >>> reason('{"reason": "a slip", "score": 3}'), reason("7 - 4 = 3. {score: 10}"), reason("{score: 10}")
    ('a slip', '7 - 4 = 3.', None)
    """
    said = text.rpartition("</think>")[2]
    given = [found["reason"] for found in objects(said) if isinstance(found.get("reason"), str)]
    before, brace, _ = said.rpartition("{")
    return (given[-1] if given else before if brace else said).strip() or None
