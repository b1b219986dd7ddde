"""Who is asked when the first one can not say: agents in line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from pluribus.agents import Agent
from pluribus.replies import Reply
from pluribus.types import Turn

T = TypeVar("T")


async def first_to_judge(
    agents: Sequence[Agent], judge: Callable[[Agent], Awaitable[Reply[T]]], first: int = 0
) -> Reply[T]:
    """A judge's reply in a form; when it has no value, the next agent in line is asked, each at most once.

    Args:
        judge: how an agent judges.
        first: index of the one that is asked first; after the last comes agent 0.

    Returns: the turns of all that were asked, and the first value; None when nobody gave one.
    """
    turns: tuple[Turn, ...] = ()
    for place in range(len(agents)):
        reply = await judge(agents[(first + place) % len(agents)])
        turns += reply.turns
        if reply.value is not None:
            return Reply(turns, reply.value)
    return Reply(turns, None)
