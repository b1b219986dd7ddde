"""An agent: a seat at the table with a live model behind it. Methods make agents speak and know nothing else.

Seating decides who sits where: seats cycle over models and personas, and sampling is settled once, by
explicit value > seat > persona > preset > default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

from pluribus.backends import Backend, ModelSpec, Request, call_seed, dialect_of
from pluribus.errors import BackendError, ConfigError, failure
from pluribus.personas import Persona
from pluribus.prompts import STANDARD, Dialect, Peer, dialect, fragment, render
from pluribus.prompts._window import fit
from pluribus.types import Message, Question, Sampling, Seat, Turn


class Form(Protocol):
    """What a reply is to look like; `pluribus.replies` has them."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """For guided decoding; None: the reply is free text that holds the form."""
        ...

    def problem(self, text: str) -> str | None:
        """Why the text is not in this form, or None."""
        ...


Control = Literal["baseline_a", "baseline_b"]
Observer = Callable[[Turn], None]


@dataclass(frozen=True, slots=True)
class Agent:
    """Speaks from its seat. `at` binds it to one question before a method gets it."""

    seat: Seat
    backend: Backend
    words: Dialect
    question: Question | None = None
    seed: int = 0
    observe: Observer | None = None
    window: int | None = None
    """Most tokens of prompt and reply together: a question's context is cut to fit. None: not known, nothing is cut."""
    count: Callable[[str], int] | None = None
    """Tokens of a text for this model; None: estimated."""
    price: float | None = None
    """US dollars per million completion tokens; None: unpriced."""

    @property
    def index(self) -> int:
        return self.seat.index

    @property
    def name(self) -> str:
        return self.seat.name

    def at(self, question: Question, seed: int, observe: Observer | None = None) -> Agent:
        return replace(self, question=question, seed=seed, observe=observe)

    async def speak(
        self,
        prompt: str,
        *,
        round: int = 0,
        role: str = "answer",
        sample: int = 0,
        own: str | None = None,
        peers: Sequence[Peer] = (),
        form: Form | None = None,
        after: Sequence[Message] = (),
        top_logprobs: int = 0,
        continuation: str | None = None,
        prefill: str | None = None,
        **fields: str,
    ) -> Turn:
        """One call: the named prompt in this seat's dialect → a Turn. A model that fails gives a failed Turn.

        Args:
            prompt: name of a prompt file of the dialect.
            sample: draw number for a method that asks one agent the same thing several times.
            own: this agent's last text; peers: the others' texts.
            form: what the reply is to look like; a reply that is not so says why in `unread`.
            after: the conversation so far, which this prompt goes on; the persona has spoken there already.
            top_logprobs: for so many of the likeliest tokens at each place the log-probability is wanted, at most 20.
            continuation: nothing is generated; the text of the turn, with the log-probabilities of its tokens.
            prefill: the beginning of the reply; the turn's text is what follows it.

        Raises:
            BudgetExceeded: the attempt can not be finished as asked.
        """
        if self.question is None:
            raise ValueError(f"agent {self.name!r} sits at no question; bind it with at(question, seed)")
        system = None if after else self.seat.system

        def asked(question: Question) -> Sequence[Message]:
            return render(self.words, prompt, question, system=system, own=own, peers=peers, **fields)

        messages = (*after, *self._fitting(asked, after))
        draw = self.seat.sample + sample
        schema = form.schema if form else None
        wishes = (schema, top_logprobs, continuation, prefill)
        request = Request(messages, self.seat.sampling, draw, self.question.id, round, *wishes)
        if request.sampling.seed is None:
            seed = call_seed(self.seed, self.backend.model, request)
            request = replace(request, sampling=replace(request.sampling, seed=seed))
        turn = Turn(round, self.seat.index, role, messages, sample=draw, form=form.name if form else None)
        try:
            completion = await self.backend.complete(request)
            turn = replace(turn, completion=completion, unread=form.problem(completion.text) if form else None)
        except BackendError as error:
            turn = replace(turn, failure=failure(error))
        if self.observe is not None:
            self.observe(turn)
        return turn

    def _fitting(self, asked: Callable[[Question], Sequence[Message]], after: Sequence[Message]) -> Sequence[Message]:
        """The messages, with the question's context cut to what the model's window leaves beside all else."""
        assert self.question is not None
        messages = asked(self.question)
        if self.window is None or self.question.context is None:
            return messages
        count = self.count or _estimate
        reply = self.seat.sampling.max_tokens
        reply = reply if reply < self.window else self.window // 4
        sent = sum(count(message.content) + _MESSAGE_TOKENS for message in (*after, *messages))
        over = sent + reply - self.window
        if over <= 0:
            return messages
        return asked(fit(self.question, max(count(self.question.context) - over, 0), count))


@dataclass(frozen=True, slots=True)
class SeatPlan:
    """What the user said about one seat; None where nothing was said."""

    model: ModelSpec
    name: str | None = None
    persona: Persona | None = None
    sampling: Mapping[str, Any] | None = None
    weight: float = 1.0
    prompts: str | None = None


def plan(models: Sequence[ModelSpec], n: int, personas: Sequence[Persona] = ()) -> tuple[SeatPlan, ...]:
    """`n` seats that cycle over the models (with their base URLs) and over the personas."""
    if n < 1:
        raise ConfigError(f"num_agents is {n}", hint="a council has at least 1 agent")
    if not models:
        raise ConfigError("no model is named", hint="say --agent-models zoo/qwen,zoo/olmo or any service/model")
    return tuple(
        SeatPlan(models[i % len(models)], persona=personas[i % len(personas)] if personas else None) for i in range(n)
    )


def seats(
    plans: Sequence[SeatPlan],
    *,
    control: Control | None = None,
    sampling: Mapping[str, Any] | None = None,
    preset: Mapping[str, Any] | None = None,
    prompts: str | None = None,
    count_tokens: Callable[[ModelSpec, str], int] | None = None,
) -> tuple[Seat, ...]:
    """The seating: who sits where, as whom, and with which sampling values.

    Args:
        control: `baseline_a` puts neutral text of the same token length in the place of each persona's words;
            `baseline_b` gives every seat the first persona's words. Both keep the sampling of the persona replaced.
        sampling: explicit values; they win over everything.
        preset: values that win over the defaults only.
        prompts: dialect of every seat; None: the one the model was made for.
        count_tokens: length of a text for a model, in tokens; None: words and signs are counted.
    """
    shared = next((p.persona for p in plans if p.persona is not None), None)
    if control is not None and shared is None:
        raise ConfigError(f"{control} replaces personas, but no seat has one", hint="name a set with --personas")
    seated: list[Seat] = []
    for index, seat_plan in enumerate(plans):
        seat = _seat(index, seat_plan, sampling or {}, preset or {}, prompts)
        if control == "baseline_a":
            seat = _padded(seat, partial(count_tokens or _approximate, seat_plan.model))
        elif control == "baseline_b" and shared is not None:
            seat = replace(seat, persona=shared.name, system=_persona_words(dialect(seat.dialect), shared))
        seated.append(replace(seat, sample=sum(_twins(seat, other) for other in seated)))
    return tuple(seated)


def _padded(seat: Seat, count: Callable[[str], int]) -> Seat:
    """The seat with neutral words of the same token length in the place of its persona's."""
    if not seat.system:
        return seat
    neutral = _neutral(dialect(seat.dialect), count(seat.system), count)
    return replace(seat, persona="neutral", system=neutral)


def _approximate(model: ModelSpec, text: str) -> int:
    return approximate_tokens(text)


def _seat(
    index: int, seat_plan: SeatPlan, explicit: Mapping[str, Any], preset: Mapping[str, Any], prompts: str | None
) -> Seat:
    persona = seat_plan.persona
    own = {"temperature": persona.temperature, "top_p": persona.top_p} if persona else {}
    settled: dict[str, Any] = {}
    for layer in (preset, own, seat_plan.sampling or {}, explicit):
        settled.update({key: value for key, value in layer.items() if value is not None})
    name = seat_plan.prompts or prompts or dialect_of(seat_plan.model) or STANDARD
    return Seat(
        index=index,
        name=seat_plan.name or f"agent {index + 1}",
        model=seat_plan.model.model,
        persona=persona.name if persona else None,
        system=_persona_words(dialect(name), persona) if persona else None,
        sampling=Sampling(**settled),
        weight=seat_plan.weight,
        dialect=name,
    )


def _persona_words(words: Dialect, persona: Persona) -> str:
    return fragment(words, "persona", name=persona.name, prompt=persona.prompt, style=persona.style)


def _twins(a: Seat, b: Seat) -> bool:
    return (a.model, a.system, a.sampling, a.dialect) == (b.model, b.system, b.sampling, b.dialect)


_MESSAGE_TOKENS = 8
"""What a chat template puts around a message, at most."""


def _estimate(text: str) -> int:
    """Tokens, rather too many than too few."""
    return round(1.2 * approximate_tokens(text))


def approximate_tokens(text: str) -> int:
    """Tokens of English text to about 10 %, for models whose tokenizer is not at hand: 4 characters a token.

    >>> approximate_tokens("abcdefgh")
    2
    """
    return max(1, round(len(text) / 4)) if text else 0


def _neutral(words: Dialect, length: int, count: Callable[[str], int]) -> str:
    """Neutral prose of `length` tokens, or a few fewer: the passage from its beginning, cycled when short, without
    the words that would make it too long. Never empty."""
    pool = words.texts.get("neutral", dialect(STANDARD).texts["neutral"]).split()
    while count(" ".join(pool)) < length:
        pool = pool + pool
    low, high = 0, len(pool)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(" ".join(pool[:middle])) <= length else (low, middle - 1)
    return _filled(pool[:low], pool[low:], length, count) or min(pool, key=lambda word: (count(word), len(word)))


def _filled(taken: list[str], rest: Sequence[str], length: int, count: Callable[[str], int]) -> str:
    """The words taken, and those of the rest that still fit."""
    for word in rest:
        if count(" ".join(taken)) >= length:
            break
        if count(" ".join((*taken, word))) <= length:
            taken = [*taken, word]
    return " ".join(taken)
