"""An assistant and a user proxy talk until one of them says TERMINATE; the proxy can run the assistant's programs.

Source: Wu et al. 2023, arXiv 2308.08155 (AutoGen), its two-agent chat.

The assistant solves, the proxy checks and answers, at most `max_turn` times the assistant speaks. A line TERMINATE of
either ends it. With `code_execute` the fenced Python of the assistant's reply is run in the sandbox, and the output is
the proxy's answer: no call. What stands is the assistant's last reply that holds an answer.

The first seat is the assistant, the second the proxy; an agent alone is both. Later seats stand in for one that fails.

Differences: the proxy is a model where the paper's may be a person. All fenced Python of one reply is one program.
Programs run only where they are allowed; `code_execute` without permission is refused before the first call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pluribus import sandbox
from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.methods import first_to_close, missing, require
from pluribus.methods._programs import blocks, shown
from pluribus.prompts import Peer
from pluribus.types import Message, Outcome, Question, Turn

AGENTS = 2
PROMPTS = (
    "autogen_start", "autogen_start_code", "autogen_check", "autogen_check_again", "autogen_reply", "autogen_result",
)  # fmt: skip
ASSISTANT, PROXY = range(2)

_TERMINATE = re.compile(r"^\W*TERMINATE\W*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Settings:
    max_turn: int = 3
    """Replies of the assistant at most, at least 1."""
    code_execute: bool = False
    """Whether the Python that the assistant writes is run in the sandbox."""

    def __post_init__(self) -> None:
        if self.max_turn < 1:
            raise ValueError(f"max_turn is {self.max_turn}; the assistant speaks at least once")


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    return 1, 2 * settings.max_turn - 1


def runs_programs(settings: Settings) -> bool:
    return settings.code_execute


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    box = sandbox.current() if settings.code_execute else None
    assistant = _Side(agents, ASSISTANT, "answer")
    proxy = _Side(agents, PROXY, "feedback")
    turns, solution = await assistant.say("autogen_start_code" if box else "autogen_start", 0)
    for round in range(1, settings.max_turn):
        if solution is None or _ended(solution):
            break
        said, prompt, answer = await _answer(proxy, box, solution, round - 1)
        turns += said
        if answer is None:
            break
        said, solution = await assistant.say(prompt, round, [answer])
        turns += said
    spoken = [turn for turn in turns if turn.ok and turn.role == "answer"]
    require(spoken, turns)
    readable = [turn for turn in spoken if read(question, turn.text) is not None]
    return Outcome(tuple(turns), ((readable or spoken)[-1],), missing(turns))


@dataclass(slots=True)
class _Side:
    """One partner with its own view of the conversation, as long as one question is worked on."""

    agents: Sequence[Agent]
    part: int
    role: str
    heard: tuple[Message, ...] = ()

    async def say(self, prompt: str, round: int, peers: Sequence[Peer] = ()) -> tuple[list[Turn], Turn | None]:
        """What was said, and the turn that stands: the partner's own, or that of the next agent in line."""

        async def speak(agent: Agent) -> Turn:
            return await agent.speak(prompt, round=round, role=self.role, peers=peers, after=self.heard)

        said, spoken = await first_to_close(self.agents, speak, self.part % len(self.agents))
        if spoken is not None:
            self.heard = (*spoken.messages, Message("assistant", spoken.text))
        return said, spoken


def _ended(turn: Turn) -> bool:
    return _TERMINATE.search(turn.text) is not None


async def _answer(
    proxy: _Side, box: sandbox.Sandbox | None, solution: Turn, round: int
) -> tuple[list[Turn], str, Peer | None]:
    """Turns, the prompt that hands the proxy's answer to the assistant, and that answer; None ends the conversation."""
    programs = blocks(solution.text) if box else []
    if box and programs:
        run = await sandbox.run_program(box, "\n\n".join(programs))
        return [], "autogen_result", Peer("the sandbox", shown(run))
    prompt = "autogen_check_again" if proxy.heard else "autogen_check"
    said, checked = await proxy.say(prompt, round, [Peer("the assistant", solution.text)])
    if checked is None or _ended(checked):
        return said, "autogen_reply", None
    return said, "autogen_reply", Peer("the user", checked.text)
