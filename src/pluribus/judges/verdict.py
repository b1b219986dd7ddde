"""Approves one answer or not, in one respect: true or false.

Source: aspect verifiers of Lifshitz et al. 2025, arXiv 2502.20379. Direct, or after reasoning in a call of its own.
"""

from __future__ import annotations

from pluribus.agents import Agent
from pluribus.prompts import Peer
from pluribus.replies import Reply, ask, verdict

PROMPTS = ("verify", "verify_reason", "verify_conclude")
ASPECT = "whether its final answer is right"


async def judge(
    agent: Agent,
    candidate: str,
    *,
    aspect: str = ASPECT,
    reason_first: bool = False,
    round: int = 0,
    sample: int = 0,
) -> Reply[bool]:
    """Whether the judge approves of the candidate; the value is None when it gave no readable verdict.

    Args:
        aspect: what is examined, as the end of the sentence "Examine …".
        reason_first: one call to think, a second one to conclude; its failure ends the judgement.
    """
    peers = [Peer("answer", candidate)]
    if not reason_first:
        return await ask(
            agent, "verify", verdict(), role="verdict", round=round, sample=sample, peers=peers, aspect=aspect
        )
    thought = await agent.speak("verify_reason", role="reason", round=round, sample=sample, peers=peers, aspect=aspect)
    if not thought.ok:
        return Reply((thought,), None)
    concluded = await ask(
        agent, "verify_conclude", verdict(), role="verdict", round=round, sample=sample, peers=peers,
        own=thought.text, aspect=aspect,
    )  # fmt: skip
    return Reply((thought, *concluded.turns), concluded.value)
