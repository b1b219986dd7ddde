"""Experts are recruited for the question, decide together, are evaluated, and start over with the advice.

Source: Chen et al. 2023, arXiv 2308.10848 (AgentVerse), the vertical structure of decision-making.

In each turn: (1) a recruiter describes `cnt_agents` experts, with the evaluation of the turn before at hand; (2) the
first expert proposes a solution; the others say whether they agree, and while one objects the first revises and all
are asked anew, at most `max_criticizing_rounds` times; an objection counts for the one revision that answers it, and
its author is asked whether it is settled; (3) an evaluator accepts the solution or gives advice.

Seats in order are the experts, then the evaluator, then the recruiter; with fewer agents the seats come round again.
A round is a state of the solution: it ends when the solution is revised.

Differences: nothing is acted out in an environment, because the answer is the action; critics do not read each other.
An opinion that can not be read neither agrees nor objects. Without a recruiter's reply the experts have a description
that fits any question; without an evaluator's the solution stands.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from pluribus.agents import Agent
from pluribus.methods import first_to_close, missing, require
from pluribus.prompts import Peer, fence, fragment
from pluribus.replies import Form, Reply, ask, fields
from pluribus.types import Outcome, Question, Turn

AGENTS = 4
PROMPTS = (
    "agentverse_recruit", "agentverse_recruit_again", "agentverse_solve", "agentverse_critique", "agentverse_recheck",
    "agentverse_revise", "agentverse_evaluate", "repair",
)  # fmt: skip
ANYBODY = "An expert in the field of this question, who works step by step and checks each step."
"""The description of an expert whom nobody recruited."""


@dataclass(frozen=True, slots=True)
class Settings:
    cnt_agents: int = 2
    """Experts, at least 1: one who solves, the others criticise."""
    max_turn: int = 3
    """Teams at most, at least 1."""
    max_criticizing_rounds: int = 3
    """Times the critics are asked in one turn at most, at least 0."""

    def __post_init__(self) -> None:
        if self.cnt_agents < 1:
            raise ValueError(f"cnt_agents is {self.cnt_agents}; a team has at least 1 expert")
        if self.max_turn < 1:
            raise ValueError(f"max_turn is {self.max_turn}; at least 1 team is needed")
        if self.max_criticizing_rounds < 0:
            raise ValueError(f"max_criticizing_rounds is {self.max_criticizing_rounds}; expected 0 or more")


class Opinion(BaseModel):
    """What a critic says of a solution."""

    remark: str
    agree: bool


class Evaluation(BaseModel):
    """What the evaluator says of a solution."""

    advice: str
    correct: bool


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    critics = settings.cnt_agents - 1
    rounds = settings.max_criticizing_rounds if critics else 0
    least = 3 + (critics if rounds else 0)
    return least, settings.max_turn * (3 + rounds * (critics + 1))


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    cast = _Cast(agents, settings.cnt_agents)
    turns: list[Turn] = []
    solution: Turn | None = None
    advice, round = "", 0
    for _ in range(settings.max_turn):
        experts = await _recruit(cast, turns, solution, advice, round)
        remarks = [Peer("the evaluator", advice)] if solution else []
        solution = await _propose(cast, turns, experts[0], solution, remarks, round) or solution
        if solution is None:
            break
        solution, round = await _criticise(cast, turns, experts, solution, settings.max_criticizing_rounds, round)
        evaluation = await _evaluate(cast, turns, solution, round)
        if evaluation is None or evaluation.correct:
            break
        advice, round = evaluation.advice, round + 1
    finals = (solution,) if solution else ()
    require(finals, turns)
    return Outcome(tuple(turns), finals, missing(turns))


@dataclass(frozen=True, slots=True)
class _Cast:
    """Which agent plays which part: 0 solves, then come the critics, the evaluator and the recruiter."""

    agents: Sequence[Agent]
    experts: int

    @property
    def critics(self) -> range:
        return range(1, self.experts)

    @property
    def evaluator(self) -> int:
        return self.experts

    @property
    def recruiter(self) -> int:
        return self.experts + 1

    def player(self, part: int) -> tuple[Agent, int]:
        """The agent of a part, and its sample: seats that come round again draw anew."""
        seat = part % len(self.agents)
        return self.agents[seat], part - seat


async def _recruit(cast: _Cast, turns: list[Turn], solution: Turn | None, advice: str, round: int) -> tuple[str, ...]:
    """The experts' descriptions."""
    about: dict[str, Any] = {"count": str(cast.experts), "round": round}
    prompt = "agentverse_recruit"
    if solution is not None:
        prompt += "_again"
        about["peers"] = [Peer("the team", solution.text), Peer("the evaluator", advice)]
    for place in range(len(cast.agents)):
        agent, sample = cast.player(cast.recruiter + place)
        reply = await ask(agent, prompt, _team(cast.experts), role="recruit", sample=sample, **about)
        turns += reply.turns
        if reply.value is not None:
            return tuple(reply.value.model_dump()["experts"])
    return (ANYBODY,) * cast.experts


@cache
def _team(count: int) -> Form[BaseModel]:
    """A JSON object with as many descriptions as there are experts."""
    description = Annotated[str, Field(min_length=1)]
    experts = Annotated[list[description], Field(min_length=count, max_length=count)]
    return fields(create_model("Team", experts=(experts, ...)))


async def _propose(
    cast: _Cast, turns: list[Turn], expert: str, solution: Turn | None, remarks: Sequence[Peer], round: int
) -> Turn | None:
    """The first expert's solution: a fresh one, or one that answers the remarks. None: nobody can give one."""

    async def say(agent: Agent) -> Turn:
        described = _described(agent, expert)
        if solution is None:
            return await agent.speak("agentverse_solve", round=round, expert=described)
        return await agent.speak("agentverse_revise", round=round, own=solution.text, peers=remarks, expert=described)

    said, proposed = await first_to_close(cast.agents, say)
    turns += said
    return proposed


def _described(agent: Agent, expert: str) -> str:
    """What tells an agent who it is: a model wrote it, so it stands between fences."""
    return fragment(agent.words, "own", text=expert, fence=fence(expert))


async def _criticise(
    cast: _Cast, turns: list[Turn], experts: Sequence[str], solution: Turn, rounds: int, round: int
) -> tuple[Turn, int]:
    """The solution when nobody objects any more, or the rounds are over; and the round it is from."""
    objections: dict[int, str] = {}
    for _ in range(rounds):
        opinions = await gather(
            *(_opinion(cast, critic, experts[critic], solution, objections, round) for critic in cast.critics)
        )
        turns += [turn for opinion in opinions for turn in opinion.turns]
        objections = {
            critic: opinion.value.remark
            for critic, opinion in zip(cast.critics, opinions, strict=True)
            if opinion.value is not None and not opinion.value.agree
        }
        if not objections:
            break
        remarks = [Peer(f"expert {critic + 1}", remark) for critic, remark in objections.items()]
        revised = await _propose(cast, turns, experts[0], solution, remarks, round + 1)
        if revised is None:
            break
        solution, round = revised, round + 1
    return solution, round


async def _opinion(
    cast: _Cast, critic: int, expert: str, solution: Turn, objections: Mapping[int, str], round: int
) -> Reply[Opinion]:
    """Whether a critic agrees; one that objected in the round before is reminded of its objection."""
    agent, sample = cast.player(critic)
    own = objections.get(critic)
    return await ask(
        agent, "agentverse_critique" if own is None else "agentverse_recheck", fields(Opinion), role="critique",
        round=round, sample=sample, own=own, peers=[Peer("the team", solution.text)], expert=_described(agent, expert),
    )  # fmt: skip


async def _evaluate(cast: _Cast, turns: list[Turn], solution: Turn, round: int) -> Evaluation | None:
    """The evaluator's word, or that of the next agent in line; None when nobody gives a readable one."""
    for place in range(len(cast.agents)):
        agent, sample = cast.player(cast.evaluator + place)
        reply = await ask(
            agent, "agentverse_evaluate", fields(Evaluation), role="verdict", round=round, sample=sample,
            peers=[Peer("the team", solution.text)],
        )  # fmt: skip
        turns += reply.turns
        if reply.value is not None:
            return reply.value
    return None
