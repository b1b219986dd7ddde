"""Rates one answer against criteria, from 0 to 10.

Source: the rubric judge of Zheng et al. 2023, arXiv 2306.05685 (single-answer grading, reason before grade).
"""

from __future__ import annotations

from pluribus.agents import Agent
from pluribus.prompts import Peer
from pluribus.replies import Reply, ask, rating

PROMPTS = ("score",)
LOW, HIGH = 0.0, 10.0
CRITERIA = "Is the final answer right, and does each step follow? After that, whether it is complete and clear."


async def judge(
    agent: Agent, candidate: str, *, criteria: str = CRITERIA, round: int = 0, sample: int = 0
) -> Reply[float]:
    """How good the judge finds the candidate, in [0, 10]; the value is None when it gave no readable rating."""
    return await ask(
        agent, "score", rating("score", LOW, HIGH), role="score", round=round, sample=sample,
        peers=[Peer("answer", candidate)], criteria=criteria,
    )  # fmt: skip
