"""Wrappers Backend → Backend: what stands between an agent and a model service.

From outside to inside, as `wrap` puts them together; each is left out when it has nothing to do:

    cached → timed → retried → limited → budgeted → counted → the backend

- cached: a call made before is not made again, nor is one that is being made at this moment.
- timed: nothing goes on after the budget's seconds are over.
- retried: errors that are `retryable` are tried again, with seeded exponential backoff.
- limited: calls at once per endpoint; additive increase, multiplicative decrease on 429 and 5xx.
- budgeted: calls, tokens and US dollars are reserved before a call and settled after it.
- counted: live totals for a progress bar.

Everything here runs in one event loop; nothing takes a lock.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections import Counter, deque
from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from pluribus.backends import Backend, Request, extras
from pluribus.backends._prices import Price, cost, worst_case
from pluribus.errors import (
    BackendError,
    BudgetExceeded,
    ConfigError,
    NotRecorded,
    RateLimited,
    Refused,
    ServerError,
    failure,
)
from pluribus.types import Completion

ATTEMPTS = 5
"""Tries of one call, the first included."""
PATIENCE_S = 300.0
"""The longest Retry-After that is waited for; a service that asks for more is given up."""


class Wrapper:
    """A backend around a backend. Whatever else the inner one offers is found with `unwrap`."""

    __slots__ = ("inner", "model")

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self.model = inner.model

    async def complete(self, request: Request) -> Completion:
        return await self.inner.complete(request)

    async def close(self) -> None:
        await self.inner.close()


def unwrap(backend: Backend) -> Backend:
    """The backend inside all wrappers, with the attributes of its own: `ensure`, `count_tokens`, …"""
    while isinstance(backend, Wrapper):
        backend = backend.inner
    return backend


def wrap(
    backend: Backend,
    *,
    calls: Calls | None = None,
    flights: Flights | None = None,
    limiter: Limiter | None = None,
    budget: Budget | None = None,
    price: Price | None = None,
    tally: Tally | None = None,
    seed: int = 0,
    attempts: int = ATTEMPTS,
) -> Backend:
    """All wrappers in the right order. Recorded outputs (`backend.recorded`) are only counted: they cost nothing.

    Args:
        calls: the store of finished calls; None: nothing is remembered.
        flights: the calls under way, shared by backends that serve the same model; None: this backend's own.
        limiter: shared by all backends of one endpoint.
        budget: shared by all backends of a run.
        price: of this backend's model; None: unpriced.
        seed: of the backoff's jitter.
        attempts: tries of one call, at least 1.

    Raises:
        ConfigError: a budget in US dollars on an unpriced model.
    """
    tally = Tally() if tally is None else tally
    backend = Counted(backend, tally, price)
    if getattr(unwrap(backend), "recorded", False):
        return backend
    if budget is not None:
        backend = Budgeted(backend, budget, price)
    if limiter is not None:
        backend = Limited(backend, limiter)
    if attempts > 1:
        backend = Retried(backend, attempts=attempts, seed=seed, tally=tally)
    if budget is not None and budget.seconds is not None:
        backend = Timed(backend, budget)
    return backend if calls is None else Cached(backend, calls, tally=tally, flights=flights)


# --- counted ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """Live totals of a run."""

    calls: int = 0
    """Requests sent, retries included."""
    hits: int = 0
    """Calls answered from the store, or by an identical call under way."""
    retries: int = 0
    in_flight: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unmetered: int = 0
    """Completions whose usage the service did not tell."""
    cost_usd: float = 0.0
    """Of the priced completions."""
    unpriced: int = 0
    """Completions without a price; their cost is not in `cost_usd`."""
    errors: Counter[str] = field(default_factory=Counter)
    """Kind of failure → requests that ended so, whether or not they were tried again."""


class Counted(Wrapper):
    """Counts what is sent and what comes back, and writes the price into a completion that has none."""

    __slots__ = ("price", "tally")

    def __init__(self, inner: Backend, tally: Tally, price: Price | None = None) -> None:
        super().__init__(inner)
        self.tally = tally
        self.price = price

    async def complete(self, request: Request) -> Completion:
        tally = self.tally
        tally.calls += 1
        tally.in_flight += 1
        try:
            completion = await self.inner.complete(request)
        except BackendError as error:
            tally.errors[failure(error).kind] += 1
            raise
        finally:
            tally.in_flight -= 1
        completion = _priced(completion, self.price)
        _count(tally, completion)
        return completion


def _priced(completion: Completion, price: Price | None) -> Completion:
    if price is None or completion.cost_usd is not None:
        return completion
    return replace(completion, cost_usd=cost(price, completion))


def _count(tally: Tally, completion: Completion) -> None:
    tally.prompt_tokens += completion.prompt_tokens or 0
    tally.completion_tokens += completion.completion_tokens or 0
    tally.unmetered += completion.prompt_tokens is None or completion.completion_tokens is None
    tally.cost_usd += completion.cost_usd or 0.0
    tally.unpriced += completion.cost_usd is None


# --- cached -----------------------------------------------------------------------------------------------------


class Calls(Protocol):
    """Finished calls by content. `get` sees a call as soon as `put` returned, written to disk or not."""

    def get(self, key: str) -> Completion | None: ...

    def put(self, key: str, request: Request, completion: Completion) -> None: ...


@dataclass(slots=True)
class Flight:
    """One call under way and how many wait for it."""

    task: asyncio.Task[Completion]
    waiters: int = 0


Flights = MutableMapping[str, Flight]


def call_key(model: str, request: Request) -> str:
    """The content of a call: model, messages, sampling with its seed, sample index, and what else is asked for; ids and
    round are left out.

    Every part goes into the hash with its length, so no two requests run into each other.

    >>> from pluribus.types import Message, Sampling
    >>> ask = Request((Message("user", "2 + 2?"),), Sampling())
    >>> call_key("m", ask) == call_key("m", replace(ask, round=3, question_id="q"))
    True
    >>> call_key("m", ask) == call_key("m", replace(ask, sample=1))
    False
    """
    sampling = request.sampling
    head = [
        model,
        request.sample,
        float(sampling.temperature),
        float(sampling.top_p),
        sampling.max_tokens,
        sampling.stop,
        sampling.seed,
        len(request.messages),
    ]
    digest = hashlib.sha256(json.dumps(head, separators=(",", ":")).encode())
    for message in request.messages:
        content = message.content.encode("utf-8", "surrogatepass")
        digest.update(f"\0{message.role}\0{len(content)}\0".encode())
        digest.update(content)
    if request.schema is not None:
        digest.update(b"\0schema\0" + json.dumps(request.schema, sort_keys=True).encode())
    digest.update(extras(request))
    return digest.hexdigest()[:32]


class Cached(Wrapper):
    """Answers from the store; identical calls under way are made once.

    A call belongs to all who wait for it: one who is cancelled leaves the others their answer, the last to leave
    cancels the call. An error goes to all who wait (it has been retried inside) and is not stored: who comes later
    asks again.
    """

    __slots__ = ("calls", "flights", "tally")

    def __init__(
        self, inner: Backend, calls: Calls, *, tally: Tally | None = None, flights: Flights | None = None
    ) -> None:
        super().__init__(inner)
        self.calls = calls
        self.tally = Tally() if tally is None else tally
        self.flights: Flights = {} if flights is None else flights

    async def complete(self, request: Request) -> Completion:
        key = call_key(self.model, request)
        found = self.calls.get(key)
        if found is not None:
            self.tally.hits += 1
            return found
        flight = self.flights.get(key)
        if flight is None:
            flight = self.flights[key] = Flight(asyncio.ensure_future(self._ask(key, request)))
        else:
            self.tally.hits += 1
        return await self._wait(key, flight)

    async def _ask(self, key: str, request: Request) -> Completion:
        try:
            completion = await self.inner.complete(request)
            self.calls.put(key, request, completion)
            return completion
        finally:
            self._land(key, asyncio.current_task())

    async def _wait(self, key: str, flight: Flight) -> Completion:
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                self._land(key, flight.task)
                flight.task.cancel()

    def _land(self, key: str, task: asyncio.Task[Completion] | None) -> None:
        """Takes the call off the list; nobody may join one that is over, and a successor must stay."""
        flight = self.flights.get(key)
        if flight is not None and flight.task is task:
            del self.flights[key]


# --- retried ----------------------------------------------------------------------------------------------------


class Retried(Wrapper):
    """Tries again what may help: exponential backoff with full jitter, never sooner than the service asks."""

    __slots__ = ("attempts", "base_s", "cap_s", "random", "tally")

    def __init__(
        self,
        inner: Backend,
        *,
        attempts: int = ATTEMPTS,
        base_s: float = 0.5,
        cap_s: float = 30.0,
        seed: int = 0,
        tally: Tally | None = None,
    ) -> None:
        if attempts < 1:
            raise ConfigError(f"attempts is {attempts}", hint="a call is tried at least 1 time")
        super().__init__(inner)
        self.attempts = attempts
        self.base_s = base_s
        self.cap_s = cap_s
        self.random = random.Random(seed)
        self.tally = Tally() if tally is None else tally

    async def complete(self, request: Request) -> Completion:
        tries = 0
        while True:
            tries += 1
            try:
                return await self.inner.complete(request)
            except BackendError as error:
                pause_s = self._pause_s(error, tries)
            await asyncio.sleep(pause_s)
            self.tally.retries += 1

    def _pause_s(self, error: BackendError, tries: int) -> float:
        """Seconds until the next try; raises the error when there is none."""
        if not error.retryable:
            _give_up(error, tries, "")
        if tries >= self.attempts:
            _give_up(error, tries, "gave up")
        jitter_s = self.random.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** (tries - 1)))
        asked_s = _retry_after_s(error)
        if asked_s > PATIENCE_S:
            _give_up(error, tries, f"gave up, the service asks to wait {asked_s:.0f} s")
        return asked_s + jitter_s


def _give_up(error: BackendError, tries: int, why: str) -> NoReturn:
    """Raises the last error, with the number of its tries in words when there was more than one."""
    words = " ".join(part for part in (why, f"after {tries} tries" if tries > 1 else "") if part)
    if words:
        error.args = (f"{error.args[0]} ({words})",)
    raise error


def _retry_after_s(error: BackendError) -> float:
    """What the service asked for, or 0."""
    asked_s = error.retry_after_s if isinstance(error, RateLimited | ServerError) else None
    return max(0.0, asked_s or 0.0)


# --- limited ----------------------------------------------------------------------------------------------------


class Limiter:
    """How many calls one endpoint gets at once; first come, first served.

    It starts at `concurrency`. With b the share of 429 and 5xx among as many replies as half the limit,

        limit ← min(concurrency, limit · (1 − b/2) + step · (1 − b)),  step = max(1, concurrency / 64)

    so a storm halves it, stray faults do not stop a healthy endpoint, and success grows it back. It shrinks at most
    once a round trip: after that, replies to calls sent before say nothing and are not counted. Retry-After holds all
    calls of the endpoint back.

    Source: additive increase, multiplicative decrease: Chiu and Jain 1989; in proportion to the marked share: DCTCP,
    Alizadeh et al. 2010.
    """

    __slots__ = (
        "_bad",
        "_paused",
        "_queue",
        "_replies",
        "_sent",
        "_shrunk_at",
        "concurrency",
        "in_flight",
        "limit",
        "step",
    )

    def __init__(self, concurrency: int) -> None:
        if concurrency < 1:
            raise ConfigError(f"concurrency is {concurrency}", hint="an endpoint takes at least 1 call at once")
        self.concurrency = concurrency
        self.limit = float(concurrency)
        self.step = max(1.0, concurrency / 64)
        self.in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._paused: asyncio.TimerHandle | None = None
        self._sent = 0
        self._shrunk_at = 0
        self._replies = 0
        self._bad = 0

    async def enter(self) -> int:
        """Waits for a place; returns the call's number, which `leave` takes back."""
        if self._paused or self.in_flight >= int(self.limit):
            await self._turn()
        else:
            self.in_flight += 1
        self._sent += 1
        return self._sent

    async def _turn(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # the place was given in the same moment: it goes on
                self._free()
            raise

    def leave(self, number: int, error: BaseException | None) -> None:
        """Gives the place back and learns from how the call ended."""
        if isinstance(error, RateLimited | ServerError):
            self._learn(number, bad=True)
            self._hold(_retry_after_s(error))
        elif error is None:
            self._learn(number, bad=False)
        self._free()

    def _free(self) -> None:
        self.in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        queue, most = self._queue, int(self.limit)
        while queue and self.in_flight < most and self._paused is None:
            place = queue.popleft()
            if not place.done():  # else its owner was cancelled
                self.in_flight += 1
                place.set_result(None)

    def _learn(self, number: int, *, bad: bool) -> None:
        if number <= self._shrunk_at:
            return
        self._replies += 1
        self._bad += bad
        if self._replies < self.limit / 2:
            return
        share = self._bad / self._replies
        self.limit = max(1.0, min(self.concurrency, self.limit * (1 - share / 2) + self.step * (1 - share)))
        if self._bad:
            self._shrunk_at = self._sent
        self._replies = self._bad = 0

    def _hold(self, seconds: float) -> None:
        """Stops admitting for a while. A wait longer than anybody's patience is the caller's failure, not a pause."""
        if not 0 < seconds <= PATIENCE_S:
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._paused is None or self._paused.when() < until:
            if self._paused is not None:
                self._paused.cancel()
            self._paused = loop.call_at(until, self._resume)

    def _resume(self) -> None:
        self._paused = None
        self._admit()


class Limited(Wrapper):
    """Enters the endpoint's limiter before each call."""

    __slots__ = ("limiter",)

    def __init__(self, inner: Backend, limiter: Limiter) -> None:
        super().__init__(inner)
        self.limiter = limiter

    async def complete(self, request: Request) -> Completion:
        number = await self.limiter.enter()
        try:
            completion = await self.inner.complete(request)
        except BaseException as error:
            self.limiter.leave(number, error)
            raise
        self.limiter.leave(number, None)
        return completion


# --- budgeted ---------------------------------------------------------------------------------------------------

_UNITS_PER_USD = 10**12
_TEMPLATE_TOKENS = 128
_MESSAGE_TOKENS = 16
_MORE = "raise the budget and resume the run"
_UNBILLED = (RateLimited, ServerError, Refused, NotRecorded)


@dataclass(frozen=True, slots=True)
class Need:
    """The most a call can take: tokens, and 10⁻¹² US dollars as whole numbers, so that sums are exact."""

    tokens: int
    money: int


class Budget:
    """Calls, tokens, US dollars and seconds that a run may take; None: not bounded.

    Every request sent is a call, whether or not it is answered. Tokens and dollars are reserved at their worst case
    before the call and settled at what was used. When a reservation does not fit only because others are open, it
    waits for them, first come, first served; when it could not fit even if they all came back unused, it is refused.
    The seconds run from the first call.
    """

    __slots__ = (
        "_queue",
        "_started",
        "calls",
        "reserved_money",
        "reserved_tokens",
        "seconds",
        "spent_calls",
        "spent_money",
        "spent_tokens",
        "tokens",
        "usd",
    )

    def __init__(
        self,
        calls: int | None = None,
        tokens: int | None = None,
        usd: float | None = None,
        seconds: float | None = None,
    ) -> None:
        for name, value in (("calls", calls), ("tokens", tokens), ("usd", usd), ("seconds", seconds)):
            if value is not None and not value >= 0:
                raise ConfigError(f"budget {name} is {value}", hint="a budget is 0 or more")
        self.calls = calls
        self.tokens = tokens
        self.usd = usd
        self.seconds = seconds
        self.spent_calls = self.spent_tokens = self.spent_money = 0
        self.reserved_tokens = self.reserved_money = 0
        self._queue: deque[tuple[Need, asyncio.Future[None]]] = deque()
        self._started: float | None = None

    @property
    def spent_usd(self) -> float:
        return self.spent_money / _UNITS_PER_USD

    def remaining_s(self) -> float | None:
        """Seconds left; the clock starts when first asked."""
        if self.seconds is None:
            return None
        if self._started is None:
            self._started = time.monotonic()
        return self.seconds - (time.monotonic() - self._started)

    async def reserve(self, need: Need) -> None:
        """Takes one call and the need, or waits, or raises BudgetExceeded with nothing taken."""
        self._refuse_hopeless(need)
        if not self._queue and self._fits(need):
            self._take(need)
            return
        place = asyncio.get_running_loop().create_future()
        self._queue.append((need, place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._return(need)
            raise

    def settle(self, need: Need, tokens: int, money: int) -> None:
        """Puts what was used in the place of what was reserved."""
        self.reserved_tokens -= need.tokens
        self.reserved_money -= need.money
        self.spent_tokens += tokens
        self.spent_money += money
        self._admit()

    def _return(self, need: Need) -> None:
        """Gives back a reservation with which nothing was sent."""
        self.spent_calls -= 1
        self.settle(need, 0, 0)

    def _take(self, need: Need) -> None:
        self.spent_calls += 1
        self.reserved_tokens += need.tokens
        self.reserved_money += need.money

    def _fits(self, need: Need) -> bool:
        return self._over(need.tokens + self.reserved_tokens, need.money + self.reserved_money) is None

    def _over(self, tokens: int, money: int) -> str | None:
        """Which bound one more call with these tokens and this money would pass, in words."""
        if self.calls is not None and self.spent_calls >= self.calls:
            return f"{self.spent_calls} of {self.calls} calls are made"
        if self.tokens is not None and self.spent_tokens + tokens > self.tokens:
            return f"{self.spent_tokens} of {self.tokens} tokens are used and the next call may take {tokens}"
        if self.usd is not None and self.spent_money + money > round(self.usd * _UNITS_PER_USD):
            most = money / _UNITS_PER_USD
            return f"${self.spent_usd:.6g} of ${self.usd:.6g} are spent and the next call may cost ${most:.6g}"
        return None

    def _refuse_hopeless(self, need: Need) -> None:
        problem = self._over(need.tokens, need.money)
        if problem:
            raise BudgetExceeded(f"the budget is used up: {problem}", hint=_MORE)

    def _admit(self) -> None:
        """Serves the queue in order, up to the first that has to wait on."""
        while self._queue:
            need, place = self._queue[0]
            if not place.done():
                try:
                    self._refuse_hopeless(need)
                except BudgetExceeded as error:
                    place.set_exception(error)
                else:
                    if not self._fits(need):
                        return
                    self._take(need)
                    place.set_result(None)
            self._queue.popleft()


def prompt_bound(request: Request) -> int:
    """At most how many tokens the prompt has.

    A byte-level or byte-fallback tokenizer makes no more tokens than the text has UTF-8 bytes; the chat template adds
    the role's marks to each message and may add a system message of its own, for which 16 and 128 are allowed.
    """
    said = [message.content for message in request.messages]
    own = (request.continuation or "", request.prefill or "")
    texts = sum(len(text.encode("utf-8", "surrogatepass")) for text in (*said, *own))
    return texts + _MESSAGE_TOKENS * len(request.messages) + _TEMPLATE_TOKENS


class Budgeted(Wrapper):
    """Reserves the worst case before a call and settles what was used.

    An error that says no completion was made (429, 5xx, other 4xx) gives tokens and money back. After a timeout, a
    cut connection, an unreadable reply or a cancellation the call may have been billed: the reservation stays spent.
    Usage that the service does not tell counts as reserved; usage above the reservation counts as it is.
    """

    __slots__ = ("budget", "price")

    def __init__(self, inner: Backend, budget: Budget, price: Price | None = None) -> None:
        super().__init__(inner)
        if budget.usd is not None and price is None:
            raise ConfigError(
                f"a budget of ${budget.usd:.6g} is set, but model {self.model!r} has no known price",
                hint="add its price to your price file, or bound the run by calls or tokens",
            )
        self.budget = budget
        self.price = price

    async def complete(self, request: Request) -> Completion:
        need = self._need(request)
        await self.budget.reserve(need)
        try:
            completion = await self.inner.complete(request)
        except _UNBILLED:
            self.budget.settle(need, 0, 0)
            raise
        except BaseException:
            self.budget.settle(need, need.tokens, need.money)
            raise
        self.budget.settle(need, *self._used(need, completion))
        return completion

    def _need(self, request: Request) -> Need:
        prompt = prompt_bound(request)
        reply = request.sampling.max_tokens if request.continuation is None else 1
        return Need(prompt + reply, _units(worst_case(self.price, prompt, reply)) if self.price is not None else 0)

    def _used(self, need: Need, completion: Completion) -> tuple[int, int]:
        prompt, reply = completion.prompt_tokens, completion.completion_tokens
        tokens = need.tokens if prompt is None or reply is None else prompt + reply
        usd = completion.cost_usd
        if usd is None and self.price is not None:
            usd = cost(self.price, completion)
        return tokens, need.money if usd is None else _units(usd)


def _units(usd: float) -> int:
    return round(usd * _UNITS_PER_USD)


class Timed(Wrapper):
    """Cuts a call, with its retries and waits, when the budget's seconds are over."""

    __slots__ = ("budget",)

    def __init__(self, inner: Backend, budget: Budget) -> None:
        super().__init__(inner)
        self.budget = budget

    async def complete(self, request: Request) -> Completion:
        left_s = self.budget.remaining_s()
        if left_s is None:
            return await self.inner.complete(request)
        if left_s > 0:
            try:
                async with asyncio.timeout(left_s) as clock:
                    return await self.inner.complete(request)
            except TimeoutError:
                if not clock.expired():
                    raise
        raise BudgetExceeded(
            f"the budget is used up: {self.budget.seconds:g} seconds are over",
            hint="raise the budget and resume the run",
        )
