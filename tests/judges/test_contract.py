"""What holds for every kind of judge, whoever wrote it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.backends.scripted import SCRIPTS, Draws, Scripted
from pluribus.errors import BackendError, BudgetExceeded, ServerError
from pluribus.judges import Candidate, Heard, Juror
from pluribus.load import fill, load, names
from pluribus.prompts import dialect, dialects, own_fields
from pluribus.types import Completion, Question, Seat

KINDS = names("judges")
REQUIRED: dict[str, dict[str, Any]] = {"recorded": {"score": "gpt_4"}}
"""Settings that have no default."""
TEXTS = ("It is 19. {final answer: 19}", "It is 20. {final answer: 20}", "")


def follows(request: Request) -> Completion:
    """A model that keeps to whatever form it is asked for."""
    draws = Draws(repr((request.messages, request.sample)).encode())
    alternatives = {"true": math.log(0.3), "no": math.log(0.6)}
    return Completion(
        SCRIPTS["number"](request, draws, {}), "scripted/judge", scores={"reward": draws.number(0)},
        top_logprobs=(alternatives,) if request.top_logprobs else None,
    )  # fmt: skip


def garbage(request: Request) -> Completion:
    text = "}{ I would rather talk about the weather. ```\nprint('"
    return Completion(text, "scripted/judge", top_logprobs=({"}{": -0.1, "The": -3.0},))


def broken(request: Request) -> BackendError:
    return ServerError("500: out of order")


async def check(question: Question, text: str) -> bool | None:
    return "19" in text if text else None


def settings(kind: str) -> Any:
    return fill(load("judges", kind).Settings, f"judge {kind}", REQUIRED.get(kind, {}))


def sits(kind: str, question: Question, reply: Callable[[Request], Any], round: int = 0) -> tuple[Juror, Scripted]:
    backend = Scripted(reply)
    asks = load("judges", kind).MODEL != "none"
    agent = Agent(Seat(0, "critic", backend.model), backend, dialect("standard")).at(question, 0) if asks else None
    heard = [[Heard("judge 1", 0.5, "It adds up.")]] * len(TEXTS) if round else ()
    return Juror("critic", question, settings(kind), agent, round, heard, check, 0), backend


def replies(count: int) -> list[Candidate]:
    return [Candidate("run", turn, text, recorded={"gpt_4": turn}) for turn, text in enumerate(TEXTS[:count])]


@pytest.mark.parametrize("kind", KINDS)
def test_it_has_what_a_kind_has(kind: str) -> None:
    module = load("judges", kind)
    assert is_dataclass(module.Settings) and module.Settings.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert module.MODEL in ("chat", "scorer", "none")
    assert module.RANGE in (None, (0.0, 1.0))
    assert (module.MODEL == "none") == (not module.PROMPTS)
    assert inspect.iscoroutinefunction(module.judge_all)
    assert module.__doc__ and module.__doc__.splitlines()[0].endswith(".")


@pytest.mark.parametrize("kind", KINDS)
def test_its_settings_stand_or_are_asked_for_by_name(kind: str) -> None:
    cls = load("judges", kind).Settings
    needed = {f.name for f in fields(cls) if f.default is f.default_factory}
    assert needed == set(REQUIRED.get(kind, {}))
    assert isinstance(settings(kind), cls)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", dialects())
def test_its_prompts_are_in_every_dialect(kind: str, words: str) -> None:
    module = load("judges", kind)
    used = (*module.PROMPTS, *getattr(module, "AGAIN", ()))
    assert set(used) <= set(dialect(words).texts)
    assert bool(getattr(module, "AGAIN", ())) == module.REREADS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reply", [follows, garbage, broken])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("round", [0, 1])
async def test_each_candidate_has_one_opinion_with_a_score_or_a_failure(
    question: Question, kind: str, reply: Callable[[Request], Any], count: int, round: int
) -> None:
    module = load("judges", kind)
    juror, backend = sits(kind, question, reply, round)
    opinions = await module.judge_all(juror, replies(count))
    assert len(opinions) == count
    for opinion in opinions:
        assert (opinion.score is None) != (opinion.failure is None)
        if opinion.score is not None and module.RANGE is not None:
            assert module.RANGE[0] <= opinion.score <= module.RANGE[1]
        if opinion.failure is not None:
            assert opinion.failure.kind and opinion.failure.message
    turns = [turn for opinion in opinions for turn in opinion.turns]
    assert len(turns) == len(backend.seen)
    assert {turn.round for turn in turns} <= {round}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if load("judges", kind).MODEL == "chat"])
async def test_a_chat_model_that_answers_garbage_gets_no_verdict_invented(question: Question, kind: str) -> None:
    juror, _ = sits(kind, question, garbage)
    assert all(opinion.score is None for opinion in await load("judges", kind).judge_all(juror, replies(2)))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if load("judges", kind).MODEL != "none"])
async def test_a_spent_budget_is_the_doors_business(question: Question, kind: str) -> None:
    def spent(request: Request) -> str:
        raise BudgetExceeded("the budget of 0 calls is spent")

    juror, _ = sits(kind, question, spent)
    with pytest.raises(BudgetExceeded):
        await load("judges", kind).judge_all(juror, replies(2))


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_seed_gives_the_same_opinions(question: Question, kind: str) -> None:
    async def scores() -> list[float | None]:
        juror, _ = sits(kind, question, follows)
        return [opinion.score for opinion in await load("judges", kind).judge_all(juror, replies(3))]

    assert await scores() == await scores()


def test_a_prompt_that_judges_again_has_the_others_and_the_first_has_not() -> None:
    words = dialect("standard")
    again = {prompt for kind in KINDS for prompt in getattr(load("judges", kind), "AGAIN", ())} - {"repair"}
    assert again == {"score_again", "verify_again"}
    assert all("opinions" in own_fields(words, prompt) for prompt in again)
