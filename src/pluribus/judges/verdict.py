"""Approves one answer or not, in one respect; the score is the share of the samples that approve, in [0, 1].

Source: aspect verifiers of Lifshitz et al. 2025, arXiv 2502.20379. Direct, or after reasoning in a call of its own.

Each candidate is judged in calls of its own. A reply without a readable verdict is asked for once more; then that
sample is none, and the share is that of the others.

From round 1 on the judge reads what the others said of the candidate and may keep or change its verdict, in one call
(prompt `verify_again`); a candidate on which no other judge gave a verdict is judged as in round 0. Every round takes
draws of its own. In the zoo's dialect both prompts are the same: its models were never trained to read judges, so
there a second round is a second, independent draw.

`grade` holds an answer against reference answers, for free text that no program can compare.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.agents import Agent
from pluribus.judges import Candidate, Juror, Opinion
from pluribus.judges._asking import at_least_one, averaged, draws, opinions, seated
from pluribus.prompts import Peer, fence, fragment
from pluribus.replies import REPAIR, Reply, ask, verdict

PROMPTS = ("verify", "verify_reason", "verify_conclude")
AGAIN = ("verify_again", REPAIR)
"""The prompts with which it judges again."""
GRADING = ("grade", REPAIR)
"""The prompts of `grade`."""
MODEL = "chat"
RANGE = (0.0, 1.0)
REREADS = True
ASPECT = "whether its final answer is right"


@dataclass(frozen=True, slots=True)
class Settings:
    aspect: str = ASPECT
    """What is examined, as the end of the sentence "Examine …"."""
    samples: int = 1
    """Verdicts drawn on each candidate, at least 1; the share that approves is the score."""
    reason_first: bool = False
    """One call to think, a second one to conclude."""

    def __post_init__(self) -> None:
        at_least_one(self.samples)
        if not self.aspect.strip():
            raise ValueError("aspect is empty; say what is examined, or leave it out for the final answer")


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate; `samples` holds 1 or 0 for each verdict, None where it was not read."""
    return list(await gather(*(_opinion(juror, place, one) for place, one in enumerate(candidates))))


async def _opinion(juror: Juror, place: int, candidate: Candidate) -> Opinion:
    agent, settings = seated(juror), juror.settings
    heard = opinions(agent.words, juror, place)
    replies = await gather(
        *(
            judge(
                agent, candidate.text, aspect=settings.aspect, reason_first=settings.reason_first,
                round=juror.round, sample=draw, heard=heard,
            )
            for draw in draws(juror, settings.samples)
        )
    )  # fmt: skip
    return averaged(replies, [None if reply.value is None else float(reply.value) for reply in replies])


async def judge(
    agent: Agent,
    candidate: str,
    *,
    aspect: str = ASPECT,
    reason_first: bool = False,
    round: int = 0,
    sample: int = 0,
    heard: str | None = None,
) -> Reply[bool]:
    """Whether the judge approves of the candidate; the value is None when it gave no readable verdict.

    Args:
        aspect: what is examined, as the end of the sentence "Examine …".
        reason_first: one call to think, a second one to conclude; its failure ends the judgement.
        heard: what other judges said of it, already between fences; then one call does. None: it is judged alone.
    """
    peers = [Peer("answer", candidate)]
    if heard is not None or not reason_first:
        prompt = "verify" if heard is None else "verify_again"
        return await ask(
            agent, prompt, verdict(), role="verdict", round=round, sample=sample, peers=peers, aspect=aspect,
            opinions=heard or "",
        )  # fmt: skip
    thought = await agent.speak("verify_reason", role="reason", round=round, sample=sample, peers=peers, aspect=aspect)
    if not thought.ok:
        return Reply((thought,), None)
    concluded = await ask(
        agent, "verify_conclude", verdict(), role="verdict", round=round, sample=sample, peers=peers,
        own=thought.text, aspect=aspect,
    )  # fmt: skip
    return Reply((thought, *concluded.turns), concluded.value)


async def grade(
    agent: Agent,
    candidate: str,
    reference: str,
    *,
    aliases: Sequence[str] = (),
    round: int = 0,
    sample: int = 0,
) -> Reply[bool]:
    """Whether the candidate's final answer says the same as a reference answer; the value is None when the judge gave
    no readable verdict.

    In the zoo's dialect the reference is not shown: its models were not trained to read one, and answer as to `verify`.

    Args:
        candidate: the whole reply.
        reference: the answer as published.
        aliases: further answers that count as right.
    """
    accepted = "\n".join(fragment(agent.words, "own", text=text, fence=fence(text)) for text in (reference, *aliases))
    return await ask(
        agent, "grade", verdict(), role="grade", round=round, sample=sample, peers=[Peer("answer", candidate)],
        reference=accepted,
    )  # fmt: skip
