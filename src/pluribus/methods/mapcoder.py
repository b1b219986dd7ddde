"""MapCoder: recalls similar problems, plans after each, carries out the surest plan, debugs it, takes the next plan.

A retriever recalls k problems that are solved by similar means; a planner makes a plan after each, and says how sure it
is of it in a call of its own; a coder carries out the plans, the surest first; a debugger repairs what fails its trial,
up to t times, before the next plan's turn. What passes is the answer; when nothing does, it is the last version.

Trials run in the sandbox, where programs are allowed: on the examples that the question prints, or, where it prints
none, on the checks that the retriever worked out. Without a sandbox there is no trial, and the first version stands.

Source: Islam et al. 2024, arXiv 2405.11403. Differences: the retriever's own checks; on questions that do not ask for a
program, the solution ends with the answer in the asked form, a Python program in it is run, and the trial fails when it
crashes or prints another answer; plans are made at the same time. The four roles are taken by the seats in order, round
again when there are fewer; a failing seat's part goes to the next in line, and further seats stand by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from pluribus.agents import Agent
from pluribus.methods import missing, require
from pluribus.methods._programs import Talk, asserts, examples, trial
from pluribus.prompts import Peer
from pluribus.replies import fields, rating
from pluribus.types import Outcome, Question, Turn

AGENTS = 4
PROMPTS = ("mapcoder_recall", "mapcoder_plan", "mapcoder_confidence", "mapcoder_code", "mapcoder_debug", "repair")
RETRIEVER, PLANNER, CODER, DEBUGGER = range(4)


@dataclass(frozen=True, slots=True)
class Settings:
    k: int = 3
    """Similar problems that are recalled, and plans, at least 1."""
    t: int = 5
    """Repairs of one plan's program, at least 0."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k is {self.k}; at least 1 plan is made")
        if self.t < 0:
            raise ValueError(f"t is {self.t}; it counts repairs, 0 or more")


class Similar(BaseModel):
    problem: str
    solution: str


class Recalled(BaseModel):
    problems: list[Similar]
    technique: str = ""
    checks: list[str] = []


@dataclass(frozen=True, slots=True)
class Plan:
    text: str
    confidence: float | None
    """In [0, 100]; None: not said."""


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    planned = 1 + 2 * settings.k
    return planned + 1, planned + settings.k * (1 + settings.t)


def runs_programs(settings: Settings) -> bool:
    """Always: a door asks for permission first."""
    return True


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    talk = Talk(agents)
    recalled = await talk.ask(RETRIEVER, "mapcoder_recall", fields(Recalled), role="recall", k=str(settings.k))
    recalled = recalled or Recalled(problems=[])
    plans = await talk.at_once([_planner(recalled, place) for place in range(settings.k)])
    checks = examples(question.text) or asserts("\n".join(recalled.checks))
    standing: Turn | None = None
    for place, plan in enumerate(_surest_first(plans)):
        version, passed = await _carried_out(talk, question, plan, checks, settings.t, 3 + place)
        standing = version or standing
        if passed:
            break
    finals = (standing,) if standing else ()
    require(finals, talk.turns)
    return Outcome(tuple(talk.turns), finals, missing(talk.turns))


def _planner(recalled: Recalled, place: int) -> Callable[[Talk], Awaitable[Plan | None]]:
    """Makes the plan after the recalled problem at a place, counted round, and says how sure it is of it."""

    async def make(talk: Talk) -> Plan | None:
        heard = [Peer("The retriever", _told(recalled, place))]
        said = await talk.say(PLANNER, "mapcoder_plan", round=1, role="plan", sample=place, peers=heard)
        if said is None:
            return None
        sure = await talk.ask(
            PLANNER, "mapcoder_confidence", rating("confidence", 0, 100), round=2, role="confidence", sample=place,
            peers=[Peer("The planner", said.text)],
        )  # fmt: skip
        return Plan(said.text, sure)

    return make


def _told(recalled: Recalled, place: int) -> str:
    if not recalled.problems:
        return "Nothing similar came to mind."
    similar = recalled.problems[place % len(recalled.problems)]
    return f"Problem: {similar.problem}\n\nSolution: {similar.solution}\n\nTechnique: {recalled.technique}"


def _surest_first(plans: Sequence[Plan | None]) -> list[Plan]:
    """The plans by falling confidence, those of unknown confidence last; one that says so when none was made."""
    made = [plan for plan in plans if plan is not None] or [Plan("No plan could be made.", None)]
    return sorted(made, key=lambda plan: 1.0 if plan.confidence is None else -plan.confidence)


async def _carried_out(
    talk: Talk, question: Question, plan: Plan, checks: Sequence[str], repairs: int, round: int
) -> tuple[Turn | None, bool]:
    """The last version of a plan's solution, and whether it passed its trial; None when nobody wrote one."""
    planned = Peer("The planner", plan.text)
    standing = await talk.say(CODER, "mapcoder_code", round=round, role="code", peers=[planned])
    for repair in range(1, repairs + 2):
        if standing is None:
            return None, False
        found = await trial(question, standing.text, checks)
        if found.passed or repair > repairs:
            return standing, found.passed
        revised = await talk.say(
            DEBUGGER, "mapcoder_debug", round=round, role="code", own=standing.text,
            peers=[planned, Peer("The trial run", found.report)],
        )  # fmt: skip
        if revised is None:
            return standing, False
        standing = revised
    return standing, False
