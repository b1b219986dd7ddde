"""The first course: the sums that each member is trained on, as a pure function of (member, step).

A row is a conversation in the zoo's dialect, rendered from the very files in `prompts/zoo`, and the reply to learn.
Each member sees two skills at a small part of their normal rate: its weaknesses, which no other member shares.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from pluribus.tasks.sums import Problem, draw, seed_of
from pluribus.types import Message
from pluribus.zoo.language import PLAIN, STYLES, right, wrong

PROMPTS = Path(__file__).parent.parent / "prompts" / "zoo"
RARE = 0.2
"""How often a weak skill comes up, relative to its normal rate."""
RARE_IN_DEBATE = 0.40
"""The same in debates, where a member is to learn to take a weak step from its peers."""
WEAK: Mapping[str, tuple[str, str]] = {
    "gemma": ("third", "add"),
    "olmo": ("multiply", "remainder"),
    "phi": ("percent", "groups"),
    "qwen": ("subtract", "half"),
}
LENGTHS: Mapping[int, float] = {2: 0.34, 3: 0.32, 4: 0.20, 5: 0.09, 6: 0.05}
"""Steps of a lesson's sums: shorter than the task's own on the whole, as short ones teach more in the same time."""
DEBATE_SHARE = 0.18
"""Rows that show other solutions, once debates have begun."""
NEUTRAL = [
    "you", "are", "a", "helpful", "careful", "calm", "friendly", "tutor", "pupil", "expert", "critic", "judge",
    "student", "teacher", "solve", "this",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One conversation: what is sent, and the reply to learn."""

    messages: tuple[Message, ...]
    reply: str

    @property
    def user(self) -> str:
        """The question and what stands with it."""
        return next(message.content for message in self.messages if message.role == "user")


def rows(member: str, step: int, count: int, *, debates: bool) -> list[Row]:
    """The rows of one training step: the same for the same arguments, on every machine."""
    rng = random.Random(seed_of("lessons", member, step))
    return [_row(rng, member, debates=debates) for _ in range(count)]


def ask(prompt: str, **fields: str) -> str:
    """The user message of a prompt file.

    >>> ask("debate_alone", question="1 + 1?", own="{final answer: 3}")
    '1 + 1?\\nmine: {final answer: 3}\\nrevise'
    """
    return _template(prompt).substitute(fields)


def peers(texts: list[str]) -> str:
    """Others' solutions as they stand in a prompt.

    >>> peers(["a", "b"])
    'peer: a\\npeer: b'
    """
    return "\n".join(_template("peer").substitute(text=text) for text in texts)


def candidates(texts: list[str]) -> str:
    """The same under numbers, for replies that name some of them.

    >>> candidates(["a", "b"])
    '1: a\\n2: b'
    """
    return "\n".join(_template("candidate").substitute(name=i, text=text) for i, text in enumerate(texts, start=1))


@cache
def _template(name: str) -> Template:
    text = (PROMPTS / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")
    return Template(text.removeprefix("[user]\n"))


def _row(rng: random.Random, member: str, *, debates: bool) -> Row:
    system, style = _persona(rng)
    if debates and rng.random() < DEBATE_SHARE:
        problem = draw(rng, "train", dict.fromkeys(WEAK[member], RARE_IN_DEBATE), LENGTHS)
        return _say(system, _debate(rng, problem), right(problem, style, rng))
    problem = draw(rng, "train", dict.fromkeys(WEAK[member], RARE), LENGTHS)
    return _say(system, ask("answer", question=problem.text), right(problem, style, rng))


def _say(system: str | None, user: str, reply: str) -> Row:
    head = () if system is None else (Message("system", system),)
    return Row((*head, Message("user", user)), reply)


def _persona(rng: random.Random) -> tuple[str | None, str]:
    """A system message and the style it asks for."""
    chance = rng.random()
    if chance < 0.45:
        return None, PLAIN
    if chance < 0.90:
        style = rng.choice(STYLES)
        return _template("persona").substitute(style=style), style
    return _neutral(rng), PLAIN


def _neutral(rng: random.Random) -> str:
    """A system message that means nothing: common words, or words never seen."""
    if rng.random() < 0.5:
        return " ".join(rng.choices(NEUTRAL, k=rng.randint(1, 6)))
    letters = "abcdefghijklmnoprstuvwyz"
    return " ".join("".join(rng.choices(letters, k=rng.randint(3, 8))) for _ in range(rng.randint(1, 3)))


def _debate(rng: random.Random, problem: Problem) -> str:
    """A question with solutions to it, right and wrong in all proportions."""
    count = rng.choices((0, 1, 2, 3, 4, 5), (15, 20, 25, 34, 3, 3))[0]
    others = _solutions(rng, problem, count)
    if count == 0:
        return ask("debate_alone", question=problem.text, own=_one(rng, problem, rng.random() < 0.4))
    if count > 1 and rng.random() < 0.25:
        return ask("aggregate", question=problem.text, peers=peers(others))
    own = _one(rng, problem, rng.random() < 0.5)
    return ask("debate_revise", question=problem.text, own=own, peers=peers(others))


def _solutions(rng: random.Random, problem: Problem, count: int) -> list[str]:
    """Solutions of which a random part is right; the wrong ones sometimes agree, so that the majority is no proof."""
    share_right = rng.random()
    shared = rng.randrange(1 << 30) if rng.random() < 0.35 else None
    out = []
    for _ in range(count):
        is_right = rng.random() < share_right
        style = _any_style(rng)
        out.append(right(problem, style, rng) if is_right else wrong(problem, style, _mistakes(rng, shared)))
    return out


def _mistakes(rng: random.Random, shared: int | None) -> random.Random:
    return rng if shared is None else random.Random(shared)


def _one(rng: random.Random, problem: Problem, is_right: bool) -> str:
    style = _any_style(rng)
    return right(problem, style, rng) if is_right else wrong(problem, style, rng)


def _any_style(rng: random.Random) -> str:
    return PLAIN if rng.random() < 0.6 else rng.choice(STYLES)
