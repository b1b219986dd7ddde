"""Role-playing: a user instructs and an assistant solves, turn by turn; a critic can choose among proposals of each.

Source: Li et al. 2023, arXiv 2303.17760 (CAMEL), its role-playing session with task specifier and critic in the loop.

A specifier makes the task precise. Then in each of `chat_turn_limit` turns the user writes one instruction and the
assistant carries it out and gives the whole answer as it stands; each goes on with its own conversation. The user ends
it with a line TASK_DONE, once there is an answer. With `with_critic` and `option_num` above 1 both make `option_num`
proposals each time, and the critic chooses the one that counts. The answer is the assistant's last.

Seats in order: assistant, user, specifier, critic; with fewer agents the seats come round again, and a fifth agent and
all after it only stand in for one that fails.

Differences: the partners have no professions drawn up for the task; personas do that. The assistant states the answer
in every turn, so that there is one whenever the user stops. The critic is not asked about a single proposal.
"""

from __future__ import annotations

import re
from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass, field

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.consensus.votes import plurality
from pluribus.methods import first_to_close, missing, require
from pluribus.prompts import Peer
from pluribus.replies import ask, choice
from pluribus.types import Message, Outcome, Question, Turn

AGENTS = 4
PROMPTS = (
    "camel_specify", "camel_user", "camel_user_next", "camel_assistant", "camel_assistant_next", "camel_pick", "answer",
    "repair",
)  # fmt: skip
ASSISTANT, USER, SPECIFIER, CRITIC = range(4)

_DONE = re.compile(r"^\W*TASK[_ ]DONE\W*$", re.MULTILINE)
_ROLES = {ASSISTANT: "answer", USER: "instruction"}
_WHAT = {ASSISTANT: "assistant's next solution", USER: "user's next instruction"}
_PROMPTS = {ASSISTANT: "camel_assistant", USER: "camel_user"}


@dataclass(frozen=True, slots=True)
class Settings:
    chat_turn_limit: int = 3
    """Turns of user and assistant at most, at least 1."""
    with_critic: bool = True
    """Whether a critic chooses among the proposals; without one there is a single proposal."""
    option_num: int = 1
    """Proposals of the user and of the assistant in each turn, at least 1."""

    def __post_init__(self) -> None:
        if self.chat_turn_limit < 1:
            raise ValueError(f"chat_turn_limit is {self.chat_turn_limit}; at least 1 turn is needed")
        if self.option_num < 1:
            raise ValueError(f"option_num is {self.option_num}; at least 1 proposal is needed")

    @property
    def options(self) -> int:
        return self.option_num if self.with_critic else 1


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    """At least one turn, after which the user may say that the task is done."""
    once = settings.options + (settings.options > 1)
    least = 1 + 2 * once + (once if settings.chat_turn_limit > 1 else 0)
    return least, 1 + 2 * once * settings.chat_turn_limit


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    said, specified = await first_to_close(
        agents, lambda agent: agent.speak("camel_specify", role="task"), SPECIFIER % len(agents)
    )
    task = Peer("the task", specified.text if specified else question.text)
    session = _Session(question, agents, settings.options, said)
    answer: Turn | None = None
    for round in range(settings.chat_turn_limit):
        heard = [Peer("the assistant", answer.text)] if answer else [task]
        instruction = await _say(session, USER, round, heard)
        if instruction is None or (answer is not None and _DONE.search(instruction.text)):
            break
        order = Peer("the user", instruction.text)
        reply = await _say(session, ASSISTANT, round, [order] if answer else [task, order])
        if reply is None:
            break
        answer = reply
    if answer is None:
        said, answer = await first_to_close(agents, lambda agent: agent.speak("answer"))
        session.turns.extend(said)
    finals = (answer,) if answer else ()
    require(finals, session.turns)
    return Outcome(tuple(session.turns), finals, missing(session.turns))


@dataclass(frozen=True, slots=True)
class _Session:
    """One question's conversation: what was said, and each partner's own side of it."""

    question: Question
    agents: Sequence[Agent]
    options: int
    turns: list[Turn]
    sides: dict[int, tuple[Message, ...]] = field(default_factory=dict)


async def _say(session: _Session, part: int, round: int, heard: Sequence[Peer]) -> Turn | None:
    """A partner's word, the critic's choice where there are several; None when no agent could play the part."""
    after = session.sides.get(part, ())
    prompt = _PROMPTS[part] + ("_next" if after else "")
    role = _ROLES[part] if session.options == 1 else "proposal"
    for place in range(len(session.agents)):
        agent = session.agents[(part + place) % len(session.agents)]
        said = await gather(
            *(agent.speak(prompt, round=round, role=role, sample=i, peers=heard, after=after)
              for i in range(session.options))
        )  # fmt: skip
        session.turns.extend(said)
        proposals = [turn for turn in said if turn.ok]
        if proposals:
            chosen = await _choose(session, part, round, proposals)
            session.sides[part] = (*chosen.messages, Message("assistant", chosen.text))
            return chosen
    return None


async def _choose(session: _Session, part: int, round: int, proposals: Sequence[Turn]) -> Turn:
    """The critic's choice, or that of the next agent in line; when nobody chooses, the vote does."""
    if len(proposals) == 1:
        return proposals[0]
    peers = [Peer(str(place), proposal.text) for place, proposal in enumerate(proposals, 1)]
    form = choice([peer.name for peer in peers])
    for place in range(len(session.agents)):
        critic = session.agents[(CRITIC + place) % len(session.agents)]
        reply = await ask(critic, "camel_pick", form, role="choice", round=round, peers=peers, what=_WHAT[part])
        session.turns.extend(reply.turns)
        if reply.value is not None:
            return proposals[int(reply.value) - 1]
    return _most_backed(session.question, proposals) if part == ASSISTANT else proposals[0]


def _most_backed(question: Question, proposals: Sequence[Turn]) -> Turn:
    """The first proposal with the answer that most proposals give."""
    answers = [read(question, proposal.text) for proposal in proposals]
    winner = plurality(answers).winner
    return proposals[answers.index(winner)] if winner is not None else proposals[0]
