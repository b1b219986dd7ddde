"""ChatDev: a team of officers, programmer, reviewer and tester that talk in pairs, phase after phase.

Demand: the director writes the assignment, the product officer the specification. Design: the technical officer
designs, the product officer objects. Code: the technical officer instructs, the programmer writes. Complete: the
programmer finishes what is missing. Review: the reviewer comments and the programmer revises, until nothing is left to
change or `max_review` times. Test: the tester writes tests, which run in the sandbox; while they fail, the tester finds
out why and the programmer revises, `max_review` times at most. Document: needs and manual. The programmer's last
version is the answer.

Where programs may not run the tests are written and do not run.

Source: Qian et al. 2023, arXiv 2307.07924. Differences: one solution in one reply takes the place of a tree of files,
so modality, language and drawings are not chosen; each pair exchanges one instruction and one answer, without asking
back; the tests are written without sight of the solution, and on questions that do not ask for a program they are a
program that works the answer out by itself. `max_calls` bounds everything, repairs of unreadable replies included: when
it is reached, the last version stands. The six roles are taken by the seats in order, round again when there are fewer;
a failing seat's part goes to the next in line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from pluribus import sandbox
from pluribus.agents import Agent
from pluribus.methods import missing, require
from pluribus.methods._programs import Talk, on_test
from pluribus.prompts import Peer
from pluribus.replies import fields
from pluribus.types import Outcome, Question, Turn

AGENTS = 6
_STEPS = (
    "demand", "specify", "design", "approve", "assign", "code", "complete", "review", "revise", "test", "diagnose",
    "environment", "manual",
)  # fmt: skip
PROMPTS = (*(f"chatdev_{step}" for step in _STEPS), "repair")
DIRECTOR, PRODUCT, TECHNICAL, PROGRAMMER, REVIEWER, TESTER = range(6)
DEMAND, DESIGN, CODE, COMPLETE, REVIEW, TEST, DOCUMENT = range(7)
LEAST_CALLS = 11


@dataclass(frozen=True, slots=True)
class Settings:
    max_review: int = 3
    """Rounds of review, and again of repair after failing tests, 0 or more."""
    max_calls: int = 60
    """Calls for one question at most, at least 11."""

    def __post_init__(self) -> None:
        if self.max_review < 0:
            raise ValueError(f"max_review is {self.max_review}; it counts rounds of review, 0 or more")
        if self.max_calls < LEAST_CALLS:
            raise ValueError(f"max_calls is {self.max_calls}; the phases take at least {LEAST_CALLS}")


class Review(BaseModel):
    comments: str
    done: bool


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return LEAST_CALLS - (settings.max_review == 0), settings.max_calls


def runs_programs(settings: Settings) -> bool:
    """Always: a door asks for permission first."""
    return True


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    talk = Talk(agents, settings.max_calls)
    specified, instructed = await _planned(talk)
    written = await talk.say(PROGRAMMER, "chatdev_code", round=CODE, role="code", peers=instructed)
    require([written] if written else [], talk.turns)
    assert written is not None  # else `require` has raised
    done = await talk.say(PROGRAMMER, "chatdev_complete", round=COMPLETE, role="code", own=written.text) or written
    done = await _reviewed(talk, specified, done, settings.max_review)
    done = await _tested(talk, question, specified, done, settings.max_review)
    await _documented(talk, done)
    return Outcome(tuple(talk.turns), (done,), missing(talk.turns))


async def _planned(talk: Talk) -> tuple[list[Peer], list[Peer]]:
    """Demand and design: the specification, and the programmer's instructions; empty where nobody wrote them."""
    demand = await talk.say(DIRECTOR, "chatdev_demand", round=DEMAND, role="plan")
    specified = await talk.say(PRODUCT, "chatdev_specify", round=DEMAND, role="plan", peers=_by("director", demand))
    specification = _by("product officer", specified)
    design = await talk.say(TECHNICAL, "chatdev_design", round=DESIGN, role="plan", peers=specification)
    designed = _by("technical officer", design)
    objections = await talk.say(
        PRODUCT, "chatdev_approve", round=DESIGN, role="critique", peers=[*specification, *designed]
    )
    objected = _by("product officer", objections)
    instructions = await talk.say(TECHNICAL, "chatdev_assign", round=CODE, role="plan", peers=[*designed, *objected])
    return specification, _by("technical officer", instructions)


def _by(who: str, turn: Turn | None) -> list[Peer]:
    return [Peer(f"The {who}", turn.text)] if turn else []


async def _reviewed(talk: Talk, specified: list[Peer], done: Turn, most: int) -> Turn:
    """The programmer's version that the reviewer has nothing against, or the last one."""
    for _ in range(most):
        found = await talk.ask(
            REVIEWER, "chatdev_review", fields(Review), round=REVIEW, role="critique",
            peers=[*specified, *_by("programmer", done)],
        )  # fmt: skip
        if found is None or found.done:
            break
        done = await _revised(talk, done, Peer("The reviewer", found.comments), REVIEW)
    return done


async def _revised(talk: Talk, done: Turn, found: Peer, round: int) -> Turn:
    return await talk.say(PROGRAMMER, "chatdev_revise", round=round, role="code", own=done.text, peers=[found]) or done


async def _tested(talk: Talk, question: Question, specified: list[Peer], done: Turn, most: int) -> Turn:
    """The programmer's version that passes the tests, or the last one."""
    tests = await talk.say(TESTER, "chatdev_test", round=TEST, role="test", peers=specified)
    if tests is None or sandbox.allowed() is None:
        return done
    for _ in range(most):
        found = await on_test(question, done.text, tests.text)
        if found is None or found.passed:
            break
        why = await talk.say(
            TESTER, "chatdev_diagnose", round=TEST, role="critique", own=tests.text,
            peers=[*_by("programmer", done), Peer("The test run", found.report)],
        )  # fmt: skip
        if why is None:
            break
        done = await _revised(talk, done, Peer("The tester", why.text), TEST)
    return done


async def _documented(talk: Talk, done: Turn) -> None:
    finished = _by("programmer", done)
    needs = await talk.say(TECHNICAL, "chatdev_environment", round=DOCUMENT, role="document", peers=finished)
    heard = [*finished, *_by("technical officer", needs)]
    await talk.say(PRODUCT, "chatdev_manual", round=DOCUMENT, role="document", peers=heard)
