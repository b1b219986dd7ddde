from __future__ import annotations

from dataclasses import replace

import pytest

from pluribus.agents import Agent, SeatPlan, approximate_tokens, plan, seats
from pluribus.backends import Request, parse
from pluribus.backends.scripted import Scripted
from pluribus.errors import ConfigError
from pluribus.personas import Persona, personas, sets
from pluribus.prompts import dialect
from pluribus.types import Question, Sampling, Seat

TWO = [parse("vllm/a@http://127.0.0.1:1/v1"), parse("vllm/b@http://127.0.0.1:2/v1")]
CALM = Persona("calm", "Stay calm and check each step twice before you answer.", "calm", 0.3, 0.8)
BOLD = Persona("bold", "Guess first, then see whether the guess can be defended at all.", "bold", 1.2, None)


def test_seats_cycle_over_models_and_personas() -> None:
    seated = seats(plan(TWO, 5, [CALM, BOLD, CALM]))
    assert [seat.model for seat in seated] == ["vllm/a", "vllm/b", "vllm/a", "vllm/b", "vllm/a"]
    assert [seat.persona for seat in seated] == ["calm", "bold", "calm", "calm", "bold"]


def test_twins_draw_different_samples_and_larger_councils_contain_smaller_ones() -> None:
    eight, sixteen = (seats(plan(TWO, n)) for n in (8, 16))
    assert [seat.sample for seat in eight] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert sixteen[:8] == eight


def test_sampling_precedence_is_explicit_seat_persona_preset_default() -> None:
    spoken = SeatPlan(TWO[0], persona=CALM, sampling={"top_p": 0.5})
    (seat,) = seats([spoken], sampling={"max_tokens": 7}, preset={"temperature": 0.5, "top_p": 0.6, "max_tokens": 512})
    assert (seat.sampling.temperature, seat.sampling.top_p, seat.sampling.max_tokens) == (0.3, 0.5, 7)
    (seat,) = seats([spoken], sampling={"temperature": 0.0})
    assert seat.sampling.temperature == 0.0
    (seat,) = seats([SeatPlan(TWO[0])])
    assert (seat.sampling.temperature, seat.sampling.top_p, seat.sampling.max_tokens) == (1.0, 0.9, 4096)


def test_baseline_a_has_the_length_and_sampling_of_the_persona_and_none_of_its_words() -> None:
    plain, padded = (seats(plan(TWO, 2, [CALM, BOLD]), control=c) for c in (None, "baseline_a"))  # type: ignore[arg-type]
    for seat, control in zip(plain, padded, strict=True):
        assert seat.system and control.system and control.system != seat.system
        assert abs(approximate_tokens(control.system) - approximate_tokens(seat.system)) <= 2
        assert control.sampling == seat.sampling


def test_baseline_b_shares_one_persona_and_keeps_each_seats_sampling() -> None:
    plain, shared = (seats(plan(TWO, 2, [CALM, BOLD]), control=c) for c in (None, "baseline_b"))  # type: ignore[arg-type]
    assert {seat.system for seat in shared} == {plain[0].system}
    assert [seat.sampling for seat in shared] == [seat.sampling for seat in plain]


def test_controls_without_personas_and_empty_councils_are_errors() -> None:
    with pytest.raises(ConfigError, match="baseline_a replaces personas"):
        seats(plan(TWO, 2), control="baseline_a")
    with pytest.raises(ConfigError, match="num_agents is 0"):
        plan(TWO, 0)
    with pytest.raises(ConfigError, match="no model is named"):
        plan([], 2)


@pytest.mark.parametrize("name", sets())
def test_embedded_personas_differ_in_name_words_and_style(name: str) -> None:
    people = personas(name)
    assert len(people) == 5
    for part in ("name", "prompt", "style"):
        assert len({getattr(person, part) for person in people}) == 5


async def test_wishes_reach_the_request_and_the_turn_is_what_comes_back() -> None:
    backend = Scripted(lambda request: "True")
    agent = Agent(Seat(0, "agent 1", "scripted/x"), backend, dialect("standard"))
    bound = agent.at(Question("q", "t", "Is it so?", "boolean"), 0)
    told = await bound.speak("answer", top_logprobs=5)
    read = await bound.speak("answer", continuation="It is so")
    assert [(request.top_logprobs, request.continuation) for request in backend.seen] == [(5, None), (0, "It is so")]
    assert told.completion is not None and told.completion.top_logprobs is not None
    assert "True" in told.completion.top_logprobs[0]
    assert read.text == "It is so" and read.completion is not None and read.completion.logprobs is not None
    await bound.speak("answer")
    plain = backend.seen[-1]
    assert plain == replace(backend.seen[0], top_logprobs=0, sampling=plain.sampling)


async def test_a_context_is_cut_to_the_models_window_and_the_question_is_not() -> None:
    heard: list[str] = []

    def reply(request: Request) -> str:
        heard.append(request.messages[-1].content)
        return "{final answer: Bo}"

    long = "\n\n".join(f"Paragraph {i} tells of somebody else." for i in range(500))
    question = Question("q", "t", "Who slept while Ann sang?", "text", context=long)
    seat = Seat(0, "agent 1", "scripted/x", sampling=Sampling(max_tokens=100))
    for window in (None, 100_000, 1_000):
        agent = Agent(seat, Scripted(reply), dialect("standard"), window=window, count=lambda text: len(text.split()))
        await agent.at(question, 0).speak("answer")
    whole, roomy, cut = heard
    assert whole == roomy and long in whole
    assert 700 < len(cut.split()) <= 900
    assert "Paragraph 0 tells" in cut and "Paragraph 499 tells" in cut and "[… cut …]" in cut
    assert whole.replace(long, "") == cut.replace(cut[cut.index("Paragraph 0") : cut.index("Who slept")].rstrip(), "")
