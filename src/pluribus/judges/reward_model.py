"""Scores with a reward model: a language model with a classification head of one output, a number without bounds.

Source: learned rewards of Stiennon et al. 2020, arXiv 2009.01325, and Ouyang et al. 2022, arXiv 2203.02155. The head
reads the question as the user's message and the candidate as the assistant's, as such models are trained; nothing is
generated, and the score is the completion's `scores["reward"]`. Scores of different models have different zeros and
units, so they only mean something normalised. The model can not read reasons: in later rounds its opinion stands.
"""

from __future__ import annotations

import math
from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus.judges import Candidate, Juror, Opinion
from pluribus.judges._asking import seated, why
from pluribus.types import Failure

PROMPTS = ("reward_model",)
MODEL = "scorer"
RANGE = None
REREADS = False
REWARD = "reward"
"""The name of the head's output among a completion's scores."""


@dataclass(frozen=True, slots=True)
class Settings:
    """There is nothing to vary."""


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate: the head's output as it is."""
    return list(await gather(*(_opinion(juror, candidate.text) for candidate in candidates)))


async def _opinion(juror: Juror, text: str) -> Opinion:
    turn = await seated(juror).speak("reward_model", role="reward", round=juror.round, answer=text)
    if turn.completion is None:
        return Opinion(None, turns=(turn,), failure=why(turn))
    reward = (turn.completion.scores or {}).get(REWARD)
    if reward is None:
        problem = f"{turn.completion.model} gave no reward; take a sequence-classification model, with head: reward"
        return Opinion(None, turns=(turn,), failure=Failure("no_reward", problem))
    if not math.isfinite(reward):
        return Opinion(None, turns=(turn,), failure=Failure("no_reward", f"the reward is {reward}, not a number"))
    return Opinion(float(reward), turns=(turn,))
