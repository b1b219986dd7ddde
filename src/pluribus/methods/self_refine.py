"""Self-refinement: answer, then in turns a critic's feedback and a better answer, until nothing is left to improve.

Source: Madaan et al. 2023, arXiv 2303.17651. As in the paper the refiner reads all its earlier versions with their
feedback (`memory=all`), and the feedback itself says when to stop.

Seats: the first answers and refines, the second gives the feedback; one agent does both, as in the paper; seats beyond
two stand in for one that fails. Differences: feedback is zero-shot, and reads the last version only. Feedback that
nobody can give in a readable form, or a refinement that nobody can write, ends it: the last answer stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pluribus.agents import Agent
from pluribus.methods import first_to_close, missing, require
from pluribus.methods._line import first_to_judge
from pluribus.prompts import fence, fragment
from pluribus.replies import ask, objects, verdict
from pluribus.types import Message, Outcome, Question, Turn

AGENTS = 1
PROMPTS = ("answer", "feedback", "refine")


@dataclass(frozen=True, slots=True)
class Settings:
    max_turns: int = 3
    """Rounds of feedback and refinement at most, at least 1."""
    memory: Literal["all", "last"] = "all"
    """What the refiner reads: all versions with their feedback, or the last one only, for models with short windows."""

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ValueError(f"max_turns is {self.max_turns}; it counts rounds of feedback and refinement, 1 or more")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return 2, 1 + 2 * settings.max_turns


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    turns, first = await first_to_close(agents, lambda agent: agent.speak("answer"))
    versions = [first] if first else []
    require(versions, turns)
    for round in range(1, settings.max_turns + 1):
        said, better = await _improve(agents, versions, round, settings.memory == "all")
        turns += said
        if better is None:
            break
        versions.append(better)
    return Outcome(tuple(turns), (versions[-1],), missing(turns))


async def _improve(
    agents: Sequence[Agent], versions: Sequence[Turn], round: int, remember: bool
) -> tuple[list[Turn], Turn | None]:
    """Feedback on the last version and a better one; None when there is none to be had or needed."""
    last = versions[-1]
    feedback = await first_to_judge(
        agents,
        lambda agent: ask(agent, "feedback", verdict(), role="critique", round=round, own=last.text),
        first=1,
    )
    if feedback.value is not False:
        return list(feedback.turns), None
    advice = _advice(feedback.turn.text)

    async def refine(agent: Agent) -> Turn:
        fenced = fragment(agent.words, "own", text=advice, fence=fence(advice))
        after = _history(versions, agent) if remember else ()
        return await agent.speak("refine", round=round, own=last.text, after=after, feedback=fenced)

    refined, better = await first_to_close(agents, refine, first=last.seat)
    return [*feedback.turns, *refined], better


def _history(versions: Sequence[Turn], agent: Agent) -> tuple[Message, ...]:
    """The conversation that led to the last version, if this agent led it; before the first refinement there is none,
    as the version is in the prompt."""
    last = versions[-1]
    if len(versions) == 1 or last.seat != agent.index:
        return ()
    return (*last.messages, Message("assistant", last.text))


def _advice(text: str) -> str:
    """The words of the feedback: its reason, where it came as JSON."""
    reasons = [found["reason"] for found in objects(text) if isinstance(found.get("reason"), str)]
    return reasons[-1] if reasons else text
