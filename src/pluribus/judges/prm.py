"""Scores with a process reward model: the chance that each step of a reply is good, brought to one number in [0, 1].

The model (`local/FOLDER` of `pluribus train prm`) reads the question as it is asked for an answer, as in the rows that
`pluribus distil --view steps` writes, and the reply step by step; nothing is generated. It cuts the reply as it was
taught to. The steps' scores are in the opinion's notes. It can not read reasons: in later rounds its opinion stands.

Source: product and minimum of the steps, Lightman et al. 2023, arXiv 2305.20050; minimum, Wang et al. 2023, arXiv
2312.08935; last step, Snell et al. 2024, arXiv 2408.03314.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pluribus.judges import Candidate, Juror, Opinion
from pluribus.judges._asking import seated, why
from pluribus.types import Failure

PROMPTS = ("prm",)
MODEL = "scorer"
HEAD = "prm"
RANGE = (0.0, 1.0)
REREADS = False


@dataclass(frozen=True, slots=True)
class Settings:
    aggregate: Literal["min", "mean", "last", "product"] = "min"
    """What the steps come to."""


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate."""
    return list(await gather(*(_opinion(juror, candidate.text) for candidate in candidates)))


async def _opinion(juror: Juror, text: str) -> Opinion:
    turn = await seated(juror).speak("prm", role="reward", round=juror.round, answer=text)
    if turn.completion is None:
        return Opinion(None, turns=(turn,), failure=why(turn))
    scores = turn.completion.scores or {}
    score, steps = scores.get(juror.settings.aggregate), steps_of(scores)
    if score is None or not steps:
        problem = f"{turn.completion.model} marks no steps; take a model of pluribus train prm, with head: prm"
        return Opinion(None, turns=(turn,), failure=Failure("no_reward", problem))
    if not 0 <= score <= 1:
        problem = f"the {juror.settings.aggregate} of the steps is {score}, not in [0, 1]"
        return Opinion(None, turns=(turn,), failure=Failure("no_reward", problem))
    return Opinion(float(score), turns=(turn,), notes={"steps": steps})


def steps_of(scores: Mapping[str, float]) -> list[float]:
    """P(good) of each step, in order.

    >>> steps_of({"step 1": 0.9, "step 2": 0.2, "min": 0.2})
    [0.9, 0.2]
    """
    found: list[float] = []
    while (value := scores.get(f"step {len(found) + 1}")) is not None:
        found.append(float(value))
    return found
