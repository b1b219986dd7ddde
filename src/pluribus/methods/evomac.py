"""EvoMAC: a team whose workflow is rewritten by what its tests find out.

An organiser divides the work into subtasks; coders do them one after the other, each after those it depends on, and
each writes the whole solution on. A second organiser, who sees the question only, names tests; testers write them at
the same time. They run in the sandbox; while some fail, the organiser reads how, strikes tests that are wrong and
writes the subtasks that are left, and the coders go on: `iteration` times at most.

Where programs may not run there are no tests, and the first solution stands.

Source: Hu et al. 2024, arXiv 2410.16946. Differences: finding the cause of the failures and rewriting the workflow are
one call; the tests stay, but for those struck as wrong; `max_calls` bounds everything, repairs of unreadable replies
included, and when it is reached the last solution stands. On questions that do not ask for a program a test is a
program that works the answer out by itself, and fails when it prints another. Seats: the two organisers are the first
two, coders and testers follow in order, round again; a failing seat's part goes to the next in line.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from pluribus import sandbox
from pluribus.agents import Agent
from pluribus.methods import missing, require
from pluribus.methods._programs import Talk, on_test
from pluribus.prompts import Peer
from pluribus.replies import fields
from pluribus.types import Outcome, Question, Turn

AGENTS = 4
PROMPTS = (
    "evomac_organise", "evomac_begin", "evomac_code", "evomac_plan_tests", "evomac_test", "evomac_update", "repair"
)  # fmt: skip
ORGANISER, TEST_ORGANISER, FIRST_CODER, FIRST_TESTER = range(4)
MOST = 5
"""Subtasks, and tests, of one workflow at most."""
LEAST_CALLS = 3
"""One to organise, which may have to be asked again, and one to code."""


@dataclass(frozen=True, slots=True)
class Settings:
    iteration: int = 5
    """Times the workflow is rewritten at most, 0 or more."""
    max_calls: int = 60
    """Calls for one question at most, at least 3."""

    def __post_init__(self) -> None:
        if self.iteration < 0:
            raise ValueError(f"iteration is {self.iteration}; it counts how often the workflow is rewritten, 0 or more")
        if self.max_calls < LEAST_CALLS:
            raise ValueError(f"max_calls is {self.max_calls}; at least {LEAST_CALLS} are needed")


class Subtask(BaseModel):
    name: str
    task: str
    after: list[str] = []


class Workflow(BaseModel):
    subtasks: list[Subtask] = Field(min_length=1, max_length=MOST)


class Probe(BaseModel):
    name: str
    task: str


class Probes(BaseModel):
    tests: list[Probe] = Field(min_length=1, max_length=MOST)


class Rewritten(BaseModel):
    wrong_tests: list[str]
    subtasks: list[Subtask] = Field(max_length=MOST)


WHOLE = Subtask(name="whole", task="Solve the whole question.")
"""The workflow of a team whose organiser gave none."""


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return 2, settings.max_calls


def runs_programs(settings: Settings) -> bool:
    """Always: a door asks for permission first."""
    return True


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    talk = Talk(agents, settings.max_calls)
    workflow = await talk.ask(ORGANISER, "evomac_organise", fields(Workflow), role="plan")
    subtasks = workflow.subtasks if workflow else [WHOLE]
    first = await _coded(talk, subtasks, None, 0)
    require([first] if first else [], talk.turns)
    assert first is not None  # else `require` has raised
    product = await _rewritten(talk, question, subtasks, first, settings.iteration)
    return Outcome(tuple(talk.turns), (product,), missing(talk.turns))


async def _coded(talk: Talk, subtasks: Sequence[Subtask], product: Turn | None, round: int) -> Turn | None:
    """The solution after all subtasks; a subtask that nobody could do leaves it as it was."""
    for place, subtask in enumerate(in_order(subtasks)):
        heard = [Peer("The leader", f"{subtask.name}: {subtask.task}")]
        prompt, own = ("evomac_code", product.text) if product else ("evomac_begin", None)
        written = await talk.say(FIRST_CODER + place, prompt, round=round, role="code", own=own, peers=heard)
        product = written or product
    return product


def in_order(subtasks: Sequence[Subtask]) -> list[Subtask]:
    """Each subtask after those it names; names that nobody has are passed over, a circle is cut at its first.

    >>> subtasks = [Subtask(name="b", task="", after=["a", "x"]), Subtask(name="a", task="", after=["a"])]
    >>> [subtask.name for subtask in in_order(subtasks)]
    ['a', 'b']
    """
    left, ordered = list(subtasks), list[Subtask]()
    while left:
        waits_for = {subtask.name for subtask in left}
        ready = next((one for one in left if not waits_for & set(one.after) - {one.name}), left[0])
        left.remove(ready)
        ordered.append(ready)
    return ordered


async def _rewritten(talk: Talk, question: Question, subtasks: Sequence[Subtask], product: Turn, times: int) -> Turn:
    """The solution when its tests pass, when nothing is left to be done, or after so many rewritten workflows."""
    tests = await _tests(talk) if sandbox.allowed() and times else {}
    for round in range(1, times + 1):
        failing = await _failing(question, product, tests)
        workflow = await _update(talk, subtasks, product, tests, failing, round) if failing else None
        if workflow is None or not (workflow.subtasks or failing.keys() & set(workflow.wrong_tests)):
            break
        tests = {name: test for name, test in tests.items() if name not in workflow.wrong_tests}
        subtasks = workflow.subtasks
        product = await _coded(talk, subtasks, product, round) or product
    return product


async def _tests(talk: Talk) -> dict[str, str]:
    """Name → text of each test that was written."""
    plan = await talk.ask(TEST_ORGANISER, "evomac_plan_tests", fields(Probes), role="plan")
    probes = plan.tests if plan else []
    written = await talk.at_once([_tester(probe, place) for place, probe in enumerate(probes)])
    return {probe.name: test.text for probe, test in zip(probes, written, strict=True) if test}


def _tester(probe: Probe, place: int) -> Callable[[Talk], Awaitable[Turn | None]]:
    heard = [Peer("The leader", f"{probe.name}: {probe.task}")]
    return lambda talk: talk.say(FIRST_TESTER + place, "evomac_test", role="test", peers=heard)


async def _failing(question: Question, product: Turn, tests: Mapping[str, str]) -> dict[str, str]:
    """Name → report of each test that the solution fails."""
    found = await gather(*(on_test(question, product.text, test) for test in tests.values()))
    return {name: one.report for name, one in zip(tests, found, strict=True) if one and not one.passed}


async def _update(
    talk: Talk,
    subtasks: Sequence[Subtask],
    product: Turn,
    tests: Mapping[str, str],
    failing: Mapping[str, str],
    round: int,
) -> Rewritten | None:
    led = "\n".join(f"{subtask.name}: {subtask.task}" for subtask in subtasks)
    failed = [Peer(f"The tester of {name}", f"{tests[name]}\n\n{report}") for name, report in failing.items()]
    return await talk.ask(
        ORGANISER, "evomac_update", fields(Rewritten), round=round, role="plan", own=product.text,
        peers=[Peer("The leader", led), *failed],
    )  # fmt: skip
