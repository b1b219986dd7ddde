"""Analysts: agents that are asked the same thing k times, each time by another draw."""

from __future__ import annotations

import math
import re
from asyncio import gather
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from pluribus import answers
from pluribus.agents import Agent, SeatPlan, seats
from pluribus.backends import Backend, ModelSpec, parse
from pluribus.backends._prices import price_of
from pluribus.config import RunConfig, make_config
from pluribus.consensus.stopping import Stopping, Voters, wave
from pluribus.council import make_question
from pluribus.engines.asyncio import block
from pluribus.errors import BudgetExceeded, ConfigError, failure
from pluribus.panel import short_name
from pluribus.personas import Persona, in_roles
from pluribus.prompts import STANDARD, dialect
from pluribus.run import Pool, make_budget
from pluribus.traffic import unwrap, wrap
from pluribus.types import Failure, Kind, Question, Seat, Turn

PROMPT = "cot"
ALIKE = 0.9
"""Texts whose sets of shingles overlap so far are near-duplicates."""
_SHINGLE = 3
_WORD = re.compile(r"\w+(?:[.,]\d+)*|[^\w\s]")


@dataclass(frozen=True)
class StrategyAgent:
    """An analyst: a model that is asked `k` times, as one persona or as several in turn.

    >>> analyst = StrategyAgent("zoo/qwen", k=3, personas="risk manager", temperature=1.2)
    >>> analyst.name, analyst.personas[0].style
    ('risk manager', 'risk')

    Raises ConfigError for values that can not be, and where temperature 0 would make several draws one.
    """

    model: str | Mapping[str, Any] | Backend
    """`service/model`, a mapping with options, or a backend of your own, which stays open."""
    k: int = 1
    """Draws per question, at least 1."""
    _: KW_ONLY
    name: str = ""
    """Left out: the persona's name where it has one persona, else the model's."""
    personas: str | Persona | Sequence[str | Persona] = ()
    """Names of personas (`pluribus list personas`), other words for a role, or personas; draws take them in turn."""
    weight: float = 1.0
    """Of its vote among other analysts, finite and ≥ 0."""
    temperature: float | None = None
    """None, as for top_p and max_tokens: the persona's, else the default of `Sampling`."""
    top_p: float | None = None
    max_tokens: int | None = None
    prompts: str | None = None
    """The dialect it is asked in; None: the one the model was made for."""

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ConfigError(f"k is {self.k!r}", hint="an analyst is asked a whole number of times, at least 1")
        if not isinstance(self.weight, int | float) or not (math.isfinite(self.weight) and self.weight >= 0):
            raise ConfigError(f"weight is {self.weight!r}", hint="a weight is a finite number of at least 0")
        if not isinstance(self.model, str | Mapping) and not hasattr(self.model, "complete"):
            raise ConfigError(f"model {self.model!r} is no model", hint="write service/model, or give a backend")
        people = _people(self.personas)
        model = self.model if isinstance(self.model, str | Mapping) else self.model.model
        name = self.name or (people[0].name if len(people) == 1 else short_name(_spec(model).model))
        object.__setattr__(self, "personas", people)
        object.__setattr__(self, "name", name)
        seated((self,))


@dataclass(frozen=True, slots=True)
class Analysis:
    """One text of one analyst: a piece of evidence."""

    id: str
    """`question/analyst/draw`."""
    analyst: str
    draw: int
    """From 0."""
    persona: str | None
    model: str
    text: str
    answer: str | None
    """What the text commits itself to, canonical; None: nothing that could be read."""
    repeats: str | None = None
    """Id of the earlier analysis that it says again, word for word or nearly; None: it is new."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A draw that gave no text. It is no answer, and it is not asked again by itself."""

    analyst: str
    draw: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of asking one analyst k times."""

    analyst: str
    question: Question
    turns: tuple[Turn, ...]
    """All draws in order, as they were sent and came back."""
    analyses: tuple[Analysis, ...]
    """Those that came, near-duplicates included."""
    failures: tuple[FailedCall, ...]

    @property
    def answers(self) -> tuple[str | None, ...]:
        """One per draw, in order; None: failed, or nothing that could be read."""
        said = {analysis.draw: analysis.answer for analysis in self.analyses}
        return tuple(said.get(draw) for draw in range(len(self.turns)))

    @property
    def distinct(self) -> int:
        """Analyses that do not say an earlier one again."""
        return sum(analysis.repeats is None for analysis in self.analyses)

    @property
    def calls(self) -> int:
        """Draws that were asked; tries of one call are one."""
        return sum(bool(turn.messages) for turn in self.turns)

    @property
    def tokens(self) -> int | None:
        """Prompts' and replies'; None: a service did not say."""
        parts = [(said.prompt_tokens, said.completion_tokens) for turn in self.turns if (said := turn.completion)]
        known = [a + b for a, b in parts if a is not None and b is not None]
        return sum(known) if len(known) == len(parts) else None

    @property
    def cost_usd(self) -> float | None:
        """None: a draw is unpriced."""
        parts = [turn.completion.cost_usd for turn in self.turns if turn.completion]
        known = [cost for cost in parts if cost is not None]
        return math.fsum(known) if len(known) == len(parts) else None

    def first(self, k: int) -> Sample:
        """As if the analyst had been asked only the first `k` times."""
        return Sample(
            self.analyst,
            self.question,
            self.turns[:k],
            tuple(analysis for analysis in self.analyses if analysis.draw < k),
            tuple(failed for failed in self.failures if failed.draw < k),
        )


def sample(agent: StrategyAgent, prompt: str | Question, k: int | None = None, **about: Any) -> Sample:
    """Asks an analyst k times and waits; takes what `asample` takes, and works inside a running loop too.

    >>> analyst = StrategyAgent("scripted/number", k=3)
    >>> sample(analyst, "How many?", kind="number").distinct
    3
    """
    return block(asample(agent, prompt, k, **about))


async def asample(
    agent: StrategyAgent,
    prompt: str | Question,
    k: int | None = None,
    *,
    kind: Kind | None = None,
    choices: Sequence[str] = (),
    labels: Sequence[str] = (),
    stop: Stopping | str | None = None,
    seed: int = 0,
    retries: int = 5,
    concurrency: int = 256,
    budget: Mapping[str, float] | None = None,
) -> Sample:
    """k analyses of one question: distinct draws, the personas in turn, all at once.

    Args:
        k: draws; None: the agent's own.
        kind, choices, labels: what an answer is; None: choice with choices, label with labels, else text.
        stop: a rule of `pluribus.consensus.stopping` that may end it before k; None: all k.
        seed: each call's seed is a hash of it, the model, the messages, the sampling and the draw.
        retries: tries per call at most.
        concurrency: calls in flight per endpoint at most.
        budget: calls, tokens, usd or seconds; a draw that could pass it is a failed call.

    Raises ConfigError where k draws could only be copies.
    """
    asked = make_asked(prompt, kind, choices, labels)
    traffic = make_traffic(seed=seed, retries=retries, concurrency=concurrency, budget=budget)
    analyst = agent if k is None else replace(agent, k=k)
    async with opened((analyst,), traffic) as (live,):
        return await drawn(live, asked, seed, make_stopping(stop))


def make_asked(
    prompt: str | Question, kind: Kind | None = None, choices: Sequence[str] = (), labels: Sequence[str] = ()
) -> Question:
    """The question; ConfigError where its kind lacks what it needs."""
    if isinstance(prompt, Question):
        if kind or choices or labels:
            raise ConfigError(f"question {prompt.id} says itself what an answer is", hint="leave out kind and the like")
        return prompt
    for name, value, wanted in (("prompt", prompt, True), ("choices", choices, False), ("labels", labels, False)):
        if isinstance(value, str) is not wanted:
            expected = "a text or a Question" if wanted else "a list of texts"
            raise ConfigError(f"{name} is {value!r}", hint=f"give {expected}")
    if choices and labels:
        raise ConfigError("the question has choices and labels", hint="give one of them")
    asked = make_question(prompt, kind, choices, labels)
    for needed, given in (("choice", asked.choices), ("label", asked.labels)):
        if asked.kind == needed and len(set(given)) < 2:
            what = f"{needed}s {list(given)}" if given else f"no {needed}s"
            raise ConfigError(f"a question of kind {needed} has {what}", hint=f"give at least two different {needed}s")
    if asked.kind not in answers.kinds():
        raise ConfigError(f"unknown kind {asked.kind!r}", hint=f"there are: {', '.join(answers.kinds())}")
    return asked


def make_stopping(stop: Stopping | str | None) -> Stopping | None:
    """The rule, checked; None: everybody is asked."""
    stopping = Stopping(stop) if isinstance(stop, str) else stop
    if stopping is not None:
        wave((), Voters((1.0,)), stopping)
    return stopping


def make_traffic(**said: Any) -> RunConfig:
    """Seed, tries, concurrency and budget, checked."""
    return make_config({key: value for key, value in said.items() if value is not None}, "toolkit")


# --- seating ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Live:
    """An analyst with its models behind it: one agent per persona."""

    name: str
    k: int
    faces: tuple[Agent, ...]
    stride: int
    """Analysts that would ask the very same draw in turn: the n-th takes each n-th sample."""


def seated(analysts: Sequence[StrategyAgent]) -> list[tuple[Seat, ...]]:
    """Each analyst's seats, one per persona; ConfigError where a seat would be asked twice at temperature 0."""
    plans = [_plans(analyst) for analyst in analysts]
    table = iter(seats([plan for own in plans for plan in own]))
    found = [tuple(next(table) for _ in own) for own in plans]
    for analyst, own in zip(analysts, found, strict=True):
        _check_draws(analyst, own)
    return found


def _plans(analyst: StrategyAgent) -> list[SeatPlan]:
    said = {"temperature": analyst.temperature, "top_p": analyst.top_p, "max_tokens": analyst.max_tokens}
    sampling = make_traffic(sampling={key: value for key, value in said.items() if value is not None}).sampling
    words = analyst.prompts
    if isinstance(analyst.model, str | Mapping):
        spec = parse(analyst.model)
    else:
        spec, words = _spec(analyst.model.model), words or STANDARD
    people = _people(analyst.personas) or (None,)
    return [SeatPlan(spec, analyst.name, one, sampling.values(), analyst.weight, words) for one in people]


def _spec(model: str | Mapping[str, Any]) -> ModelSpec:
    """A model by its name alone; a backend of the user's own need not be of a known service."""
    if not isinstance(model, str):
        return parse(model)
    service, _, name = model.partition("/")
    return ModelSpec(service, name)


def _people(said: str | Persona | Sequence[str | Persona]) -> tuple[Persona, ...]:
    each = [said] if isinstance(said, str | Persona) else said
    return tuple(one if isinstance(one, Persona) else in_roles([one], "general")[0] for one in each)


def _check_draws(analyst: StrategyAgent, own: Sequence[Seat]) -> None:
    """At temperature 0 a seat says one thing: asked twice, it would outvote others with a copy."""
    if analyst.k > len(own) and any(seat.sampling.temperature == 0 for seat in own[: analyst.k - len(own)]):
        raise ConfigError(
            f"analyst {analyst.name!r} is asked {analyst.k} times at temperature 0",
            hint="equal answers are one: raise the temperature, name more personas, or take k=1",
        )


@asynccontextmanager
async def opened(
    analysts: Sequence[StrategyAgent], traffic: RunConfig, pool: Pool | None = None
) -> AsyncIterator[tuple[Live, ...]]:
    """The analysts with their models; `pool` stays open, one of its own is closed after."""
    own = pool or Pool(make_budget(traffic.budget))
    try:
        table = seated(analysts)
        stride = 1 + max(seat.sample for each in table for seat in each)
        yield tuple(
            Live(analyst.name, analyst.k, tuple(_agent(analyst, seat, traffic, own) for seat in each), stride)
            for analyst, each in zip(analysts, table, strict=True)
        )
    finally:
        if pool is None:
            await own.close()


def _agent(analyst: StrategyAgent, seat: Seat, traffic: RunConfig, pool: Pool) -> Agent:
    """A seat with its model and traffic; a backend of the user's own has no price and no limit of calls in flight."""
    if isinstance(analyst.model, str | Mapping):
        spec = parse(analyst.model)
        raw, limiter, price = pool.backend(spec), pool.limiter(spec, traffic.concurrency), price_of(spec)
    else:
        raw, limiter, price = analyst.model, None, None
    backend = wrap(
        raw, limiter=limiter, budget=pool.budget, price=price, seed=traffic.seed, attempts=traffic.retries
    )  # fmt: skip
    inner = unwrap(raw)
    window: int | None = getattr(inner, "context_length", None)
    return Agent(seat, backend, dialect(seat.dialect), window=window, count=getattr(inner, "count_tokens", None))


# --- drawing ---------------------------------------------------------------------------------------------------------


async def drawn(live: Live, question: Question, seed: int, stopping: Stopping | None = None) -> Sample:
    """All draws of one analyst at once, or in waves until they are enough."""
    faces = [face.at(question, seed) for face in live.faces]
    turns: list[Turn] = []
    while more := _more(live, question, turns, stopping):
        coming = range(len(turns), len(turns) + more)
        turns += await gather(*(_ask(faces[draw % len(faces)], draw // len(faces) * live.stride) for draw in coming))
    return _sample(live, question, turns)


def _more(live: Live, question: Question, turns: Sequence[Turn], stopping: Stopping | None) -> int:
    if stopping is None or len(turns) >= live.k:
        return live.k - len(turns)
    votes = [answers.read(question, turn.text) if turn.ok else None for turn in turns]
    return wave(votes, Voters((1.0,) * live.k), stopping)


async def _ask(agent: Agent, number: int) -> Turn:
    """One draw; the budget's end is a failure of this draw, not of the decision."""
    try:
        return await agent.speak(PROMPT, sample=number)
    except BudgetExceeded as error:
        return Turn(0, agent.index, "answer", (), failure=failure(error), sample=agent.seat.sample + number)


def _sample(live: Live, question: Question, turns: Sequence[Turn]) -> Sample:
    came = [(draw, turn) for draw, turn in enumerate(turns) if turn.ok]
    ids = [f"{question.id}/{live.name}/{draw}" for draw, _ in came]
    again = repeats([turn.text for _, turn in came])
    personas = {face.index: face.seat.persona for face in live.faces}
    analyses = tuple(
        Analysis(
            id=id,
            analyst=live.name,
            draw=draw,
            persona=personas[turn.seat],
            model=turn.completion.model if turn.completion else "",
            text=turn.text,
            answer=answers.read(question, turn.text),
            repeats=None if earlier is None else ids[earlier],
        )
        for id, (draw, turn), earlier in zip(ids, came, again, strict=True)
    )
    failed = tuple(FailedCall(live.name, draw, turn.failure) for draw, turn in enumerate(turns) if turn.failure)
    return Sample(live.name, question, tuple(turns), analyses, failed)


# --- near-duplicates -------------------------------------------------------------------------------------------------


def repeats(texts: Sequence[str], alike: float = ALIKE) -> list[int | None]:
    """For each text the first earlier one that it says again, or None.

    Two texts say the same when their words and signs are equal but for case and spaces, or when
    |A ∩ B| / |A ∪ B| ≥ alike, A and B their sets of 3 words in a row.

    >>> repeats(["Sales rose, so BULLISH.", "sales rose,  so bullish.", "Debt rose: BEARISH."])
    [None, 0, None]

    Args:
        texts: in the order drawn.
        alike: in (0, 1]; 1 leaves equal sets.

    Source: shingles and their resemblance, Broder 1997, Compression and Complexity of Sequences, 21–29.
    """
    kept: dict[int, frozenset[tuple[str, ...]]] = {}
    found: list[int | None] = []
    for index, text in enumerate(texts):
        own = _shingles(text)
        first = next((other for other, seen in kept.items() if resemblance(own, seen) >= alike), None)
        if first is None:
            kept[index] = own
        found.append(first)
    return found


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return frozenset(tuple(words[at : at + _SHINGLE]) for at in range(max(1, len(words) - _SHINGLE + 1)))


def resemblance(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    return len(a & b) / len(a | b)
