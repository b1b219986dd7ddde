"""The controls of the personas change the words of the system message only, in every round of every topology."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from pluribus.agents import Agent, Control, approximate_tokens, plan, seats
from pluribus.backends import ModelSpec, connect, parse
from pluribus.backends.scripted import Scripted
from pluribus.personas import personas, sets
from pluribus.prompts import dialect
from pluribus.solve import solve
from pluribus.types import Message, Question, Seat, Transcript

TOPOLOGIES = ("decentralized", "sparse", "centralized")
SPEC = parse("scripted/echo")


def approximate(spec: ModelSpec, text: str) -> int:
    return approximate_tokens(text)


@pytest.fixture(scope="module")
def byte_pairs() -> Callable[[ModelSpec, str], int]:
    """Counts with a real tokenizer, of few entries, to which one word is many tokens."""
    counted = connect(parse("zoo/qwen")).count_tokens  # type: ignore[attr-defined]
    return lambda spec, text: counted(text)


@pytest.mark.parametrize("name", sets())
@pytest.mark.parametrize("words", ["standard", "zoo"])
def test_baseline_a_is_as_long_as_the_persona_to_two_tokens(
    name: str, words: str, byte_pairs: Callable[[ModelSpec, str], int]
) -> None:
    for count in (approximate, byte_pairs):
        plans = plan([SPEC], 5, personas(name))
        plain = seats(plans, prompts=words)
        padded = seats(plans, control="baseline_a", prompts=words, count_tokens=count)
        for seat, control in zip(plain, padded, strict=True):
            assert seat.system and control.system
            assert abs(count(SPEC, seat.system) - count(SPEC, control.system)) <= 2, (seat.system, control.system)
            assert control.sampling == seat.sampling
            assert seat.persona != control.persona == "neutral"


async def debated(question: Question, seated: tuple[Seat, ...], topology: str) -> Transcript:
    agents = [Agent(seat, Scripted(lambda r: "so it is {final answer: 19}"), dialect(seat.dialect)) for seat in seated]
    return await solve(question, agents, "debate", {"debate_rounds": 2, "topology": topology})


def systems(transcript: Transcript) -> dict[tuple[int, int], str]:
    """(round, seat) → system message."""
    return {(turn.round, turn.seat): turn.messages[0].content for turn in transcript.turns}


def rest(transcript: Transcript) -> list[tuple[Message, ...]]:
    return [turn.messages[1:] for turn in transcript.turns]


@pytest.mark.parametrize(("topology", "control"), [*product(TOPOLOGIES, ("baseline_a", "baseline_b"))])
async def test_every_round_keeps_the_control_and_all_other_words(
    question: Question, topology: str, control: Control
) -> None:
    plans = plan([SPEC], 5, personas("mathematics"))
    plain = await debated(question, seats(plans), topology)
    other = await debated(question, seats(plans, control=control), topology)
    assert rest(plain) == rest(other)
    assert len(systems(plain)) == 15
    for place, words in systems(other).items():
        assert words != systems(plain)[place] or (control, place[1]) == ("baseline_b", 0)
        if control == "baseline_a":
            assert abs(approximate_tokens(words) - approximate_tokens(systems(plain)[place])) <= 2
    if control == "baseline_b":
        assert len(set(systems(other).values())) == 1
