"""Asking in waves: never more at once than are needed to settle the vote, and nobody once it is settled."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.consensus.stopping import Halt, Rule, Stopping, Voters, cheapest_first, halt, wave
from pluribus.errors import ConfigError
from pluribus.types import Question, Seat, Turn

Stop = Literal["none", Rule]


def check(stop: str, eps: float, shadow: bool, window: int = 5) -> None:
    """Raises ValueError for settings that make no sense, whether or not they would be used."""
    if not 0 < eps < 1:
        raise ValueError(f"stop_eps is {eps}; name the doubt that is small enough, between 0 and 1")
    if window < 2:
        raise ValueError(f"stop_window is {window}; at least 2 answers can agree")
    if shadow and stop == "none":
        raise ValueError("stop_shadow is true and stop is none; name the rule that is to be watched")


async def in_waves(
    question: Question,
    say: Callable[[int], Awaitable[Turn]],
    order: Sequence[int],
    weights: Sequence[float],
    stopping: Stopping,
    shadow: bool,
) -> tuple[list[Turn], dict[str, Any]]:
    """The turns in the order of asking, and what is noted about stopping. A turn that failed is an abstention.

    Args:
        say: asks voter i.
        order: the voters as they are asked.
        weights: of voter i.
        shadow: all are asked at once and their turns come in the voters' own order; the note says where it would have
            stopped.
    """
    n = len(order)
    voters = Voters(tuple(weights[i] for i in order))
    if shadow:
        turns = list(await gather(*(say(i) for i in range(n))))
        return turns, _note(halt(heard(question, [turns[i] for i in order]), voters, stopping), n, stopping, shadow)
    turns = []
    votes: list[str | None] = []
    while more := wave(votes, voters, stopping):
        said = await gather(*(say(i) for i in order[len(turns) : len(turns) + more]))
        turns += said
        votes += heard(question, said)
    return turns, _note(halt([*votes, *[None] * (n - len(votes))], voters, stopping), n, stopping, shadow)


def heard(question: Question, turns: Sequence[Turn]) -> list[str | None]:
    """The vote of each turn; None: it failed, or gives no answer."""
    return [read(question, turn.text) if turn.ok else None for turn in turns]


def unpriced(seat: Seat) -> ConfigError:
    return ConfigError(
        f"seat {seat.index + 1} ({seat.model}) has no known price, so seats can not be asked by cost",
        hint="add it to a price file (--prices FILE), or order the seats by hand with stop_order=seats",
    )


def cheapest(agents: Sequence[Agent]) -> tuple[int, ...]:
    """The order of asking by price. Raises ConfigError for a seat whose price is not known."""
    prices = []
    for agent in agents:
        if agent.price is None:
            raise unpriced(agent.seat)
        prices.append(agent.price)
    return cheapest_first(prices, [agent.seat.weight for agent in agents])


def _note(at: Halt, of: int, stopping: Stopping, shadow: bool) -> dict[str, Any]:
    return note(stopping.rule, stopping.eps, shadow, at.asked, of, at.answer, at.doubt)


def note(
    rule: str, eps: float, shadow: bool, asked: int, of: int, answer: str | None, doubt: float | None
) -> dict[str, Any]:
    """What stopping did, or in shadow mode would have done: the same keys under every method.

    Args:
        asked, of: calls made (or needed), and calls without stopping.
        answer: the decision then; doubt: the rule's, None where nothing stopped it or the rule has none.
    """
    return {
        "rule": rule, "eps": eps, "asked": asked, "of": of, "answer": answer, "doubt": doubt, "shadow": shadow
    }  # fmt: skip
