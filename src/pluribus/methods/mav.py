"""Multi-agent verification: verifiers, each of one aspect, approve of each candidate or not; most approvals win.

Source: BoN-MAV of Lifshitz et al. 2025, arXiv 2502.20379. One agent draws n candidates; `n_verifiers` verifiers are
drawn from all pairs of an aspect and a verifying model, the same for every candidate; a candidate's score is the share
of its verifiers that approve.

Seats: the first solves, the others verify; one agent does both; `verifier_models` names the seats that verify. Ties go
to the answer that most of the tied candidates give, then to the earliest. Differences: verifiers are drawn anew for
each question, by the seed, where the paper chooses them once on a development set. A verdict that is missing is none:
the share is that of the verdicts given, and a candidate without any can not win; without a single verdict the
candidates are voted on.
"""

from __future__ import annotations

import random
from asyncio import gather
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.errors import UnknownName
from pluribus.judges import verdict
from pluribus.methods import missing, require
from pluribus.replies import Reply
from pluribus.types import Outcome, Question, Turn

AGENTS = 1
PROMPTS = ("cot", *verdict.PROMPTS)
ASPECTS = (
    "whether the question was understood: what is asked for, under which conditions, in which form",
    "whether the facts and definitions it rests on are true",
    "whether every step follows from what stands before it",
    "whether the calculations, and every change from one form or unit to another, are carried out without a slip",
    "whether its final answer is right, by working the question out in another way and comparing",
)


@dataclass(frozen=True, slots=True)
class Settings:
    n_solutions: int = 2
    """Candidates drawn, at least 1."""
    n_verifiers: int = 2
    """Verifiers of each candidate, at least 1, drawn from aspects × verifying seats; when these are fewer, some of them
    judge again, with another draw."""
    aspects: tuple[str, ...] = ASPECTS
    """What may be examined, each the end of the sentence "Examine …"."""
    verifier_models: tuple[str, ...] = ()
    """The seats that verify, by the name of the seat or of its model; empty: all but the first."""
    reason_first: bool = False
    """A verifier reasons in a call of its own before its verdict."""

    def __post_init__(self) -> None:
        if self.n_solutions < 1:
            raise ValueError(f"n_solutions is {self.n_solutions}; draw at least 1 candidate")
        if self.n_verifiers < 1:
            raise ValueError(f"n_verifiers is {self.n_verifiers}; draw at least 1 verifier")
        if not self.aspects:
            raise ValueError("aspects is empty; name at least one, or leave it out for the built-in ones")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    n = settings.n_solutions * (1 + settings.n_verifiers * (2 if settings.reason_first else 1))
    return n, n


@dataclass(frozen=True, slots=True)
class _Verifier:
    agent: Agent
    aspect: str
    again: int
    """How many times this pair was drawn before."""


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    verifiers = _draw(agents, settings, random.Random(f"{seed}:{question.id}"))
    samples = await gather(*(agents[0].speak("cot", sample=i) for i in range(settings.n_solutions)))
    standing = [turn for turn in samples if turn.ok]
    require(standing, samples)
    rows = await gather(
        *(_verify(verifiers, turn, place, settings, len(agents)) for place, turn in enumerate(standing))
    )
    turns = (*samples, *(turn for replies in rows for reply in replies for turn in reply.turns))
    shares = {place: share for place, replies in enumerate(rows) if (share := _approval(replies)) is not None}
    finals = tuple(standing) if not shares else (standing[_best(question, standing, shares)],)
    notes = {
        "verifiers": [[verifier.agent.name, verifier.aspect] for verifier in verifiers],
        "approvals": [[reply.value for reply in replies] for replies in rows],
    }
    return Outcome(turns, finals, missing(turns), notes)


def _draw(agents: Sequence[Agent], settings: Settings, rng: random.Random) -> list[_Verifier]:
    """Verifiers without repetition as long as there are pairs left."""
    seats = _verifying(agents, settings.verifier_models)
    pairs = [(agent, aspect) for agent in seats for aspect in settings.aspects]
    drawn: list[_Verifier] = []
    while len(drawn) < settings.n_verifiers:
        again, left = len(drawn) // len(pairs), settings.n_verifiers - len(drawn)
        drawn += [_Verifier(*pair, again) for pair in rng.sample(pairs, min(left, len(pairs)))]
    return drawn


def _verifying(agents: Sequence[Agent], names: Sequence[str]) -> Sequence[Agent]:
    if not names:
        return agents[1:] or agents
    known = set[str]().union(*map(_names, agents))
    for name in names:
        if name not in known:
            raise UnknownName("seat in verifier_models", name, known)
    return [agent for agent in agents if _names(agent) & set(names)]


def _names(agent: Agent) -> set[str]:
    """Of a model also the name alone: what stands behind it in brackets, such as a folder's weights, nobody writes."""
    return {agent.name, agent.seat.model, agent.seat.model.partition("[")[0]}


async def _verify(
    verifiers: Sequence[_Verifier], candidate: Turn, place: int, settings: Settings, n_seats: int
) -> list[Reply[bool]]:
    """The verdicts on one candidate, in the verifiers' order."""
    # Multiples of the seats: a twin's draw of the same request would otherwise come a second time.
    samples = [(place + verifier.again * settings.n_solutions) * n_seats for verifier in verifiers]
    return await gather(
        *(
            verdict.judge(
                verifier.agent, candidate.text, aspect=verifier.aspect, reason_first=settings.reason_first, round=1,
                sample=sample,
            )
            for verifier, sample in zip(verifiers, samples, strict=True)
        )
    )  # fmt: skip


def _approval(replies: Sequence[Reply[bool]]) -> float | None:
    """Share of the verdicts that approve, in [0, 1]; None: there is no verdict."""
    given = [reply.value for reply in replies if reply.value is not None]
    return sum(given) / len(given) if given else None


def _best(question: Question, candidates: Sequence[Turn], shares: Mapping[int, float]) -> int:
    """Place of the candidate with most approvals; of tied ones that whose answer most of them give, then the first."""
    most = max(shares.values())
    tied = [place for place, share in shares.items() if share == most]
    answers = {place: read(question, candidates[place].text) for place in tied}
    votes = Counter(answer for answer in answers.values() if answer is not None)
    return max(tied, key=lambda place: (votes[answers[place] or ""], -place))
