"""Each wrapper alone, then all of them against a server that limits, fails and cuts."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pluribus.backends import Backend, Request, call_seed, connect, parse
from pluribus.backends._prices import Price, cost
from pluribus.backends.scripted import Scripted
from pluribus.errors import (
    BackendError,
    BadReply,
    BudgetExceeded,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    RateLimited,
    Refused,
    ServerError,
    WrongModel,
)
from pluribus.fake_server import FakeServer
from pluribus.traffic import (
    Budget,
    Budgeted,
    Cached,
    Counted,
    Flights,
    Limited,
    Limiter,
    Need,
    Retried,
    Tally,
    Timed,
    call_key,
    prompt_bound,
    unwrap,
    wrap,
)
from pluribus.types import Completion, Message, Sampling

PRICE = Price(input=2.0, output=8.0)


class Memory:
    """A store of calls that is a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, Completion] = {}

    def get(self, key: str) -> Completion | None:
        return self.kept.get(key)

    def put(self, key: str, request: Request, completion: Completion) -> None:
        self.kept[key] = completion


class Probe:
    """A backend that runs a coroutine of the test's own, and knows how many calls are inside it."""

    model = "test/probe"

    def __init__(self, body: Callable[[Request], object]) -> None:
        self.body = body
        self.sent = self.inside = self.peak = 0

    async def complete(self, request: Request) -> Completion:
        self.sent += 1
        self.inside += 1
        self.peak = max(self.peak, self.inside)
        try:
            said = self.body(request)
            said = await said if asyncio.iscoroutine(said) else said
        finally:
            self.inside -= 1
        if isinstance(said, Completion):
            return said
        return Completion(str(said), self.model)

    async def close(self) -> None:
        pass


def ask(text: str = "2 + 2?", max_tokens: int = 100, **fields: object) -> Request:
    return replace(Request((Message("user", text),), Sampling(max_tokens=max_tokens)), **fields)


def raising(*errors: BackendError) -> Callable[[Request], str]:
    """A reply that raises the errors one after the other and then answers."""
    left = list(errors)

    def reply(request: Request) -> str:
        if left:
            raise left.pop(0)
        return "4"

    return reply


# --- cached -----------------------------------------------------------------------------------------------------


def test_key_is_the_content_of_the_call() -> None:
    base = ask()
    same = [replace(base, question_id="q7"), replace(base, round=3), ask("2 + 2?")]
    other = [
        replace(base, sample=1),
        ask("2 + 2? "),
        ask(max_tokens=101),
        replace(base, sampling=replace(base.sampling, seed=1)),
        replace(base, sampling=replace(base.sampling, temperature=0.5)),
        replace(base, sampling=replace(base.sampling, stop=("\n",))),
        replace(base, messages=(Message("system", "2 + 2?"),)),
        replace(base, messages=(*base.messages, Message("assistant", ""))),
        replace(base, messages=(Message("user", "2 + 2?\0user\x001\0x"),)),
        replace(base, messages=(Message("user", "2 + 2?"), Message("user", "x"))),
    ]
    keys = [call_key("m", request) for request in other]
    assert {call_key("m", request) for request in same} == {call_key("m", base)}
    assert len({call_key("m", base), call_key("n", base), *keys}) == len(other) + 2


def test_keys_and_seeds_of_calls_that_ask_for_a_text_only_never_change() -> None:
    """Literal, because stores are full of them."""
    messages = (Message("system", "Be brief."), Message("user", "2 + 2?"))
    plain = Request(messages, Sampling(temperature=0.7, stop=("\n",), seed=3), sample=2)
    formed = Request(messages[1:], Sampling(), schema={"type": "object"})
    assert call_key("openai/m", plain) == "0c6ba8b7177deebdbded82c247ac10de"
    assert call_key("openai/m", formed) == "75b455988a76090a4ee077c4c84b2f5f"
    assert [call_seed(7, "openai/m", request) for request in (plain, formed)] == [890691454, 300006631]


def test_what_else_is_asked_for_is_another_call() -> None:
    wishes = [{"top_logprobs": 1}, {"top_logprobs": 11}, {"continuation": ""}, {"continuation": "4"}]
    wishes += [{"top_logprobs": 1, "continuation": "4"}, {"continuation": "4\0top_logprobs\x001"}]
    requests = [ask(), *(ask(**one) for one in wishes), ask(schema={}), ask(schema={}, top_logprobs=1)]
    assert len({call_key("m", request) for request in requests}) == len(requests)
    assert len({call_seed(0, "m", request) for request in requests}) == len(requests)


def test_key_takes_any_text_and_reads_1_as_1_0() -> None:
    assert call_key("m", ask("\ud800")) != call_key("m", ask("\ud801"))
    whole, real = Sampling(temperature=1, top_p=1), Sampling(temperature=1.0, top_p=1.0)
    assert call_key("m", ask(sampling=whole)) == call_key("m", ask(sampling=real))


async def test_a_finished_call_is_not_made_again() -> None:
    inner, store, tally = Scripted(lambda r: "4"), Memory(), Tally()
    first = await Cached(inner, store).complete(ask())
    again = await Cached(inner, store, tally=tally).complete(ask())
    assert first == again
    assert len(inner.seen) == 1
    assert tally.hits == 1


async def test_identical_calls_under_way_are_made_once() -> None:
    probe = Probe(lambda r: asyncio.sleep(0.01, "4"))
    backend = Cached(probe, Memory())
    replies = await asyncio.gather(*(backend.complete(ask(sample=i % 3)) for i in range(30)))
    assert {reply.text for reply in replies} == {"4"}
    assert probe.sent == 3


async def test_backends_of_one_model_share_calls_under_way() -> None:
    probe, store = Probe(lambda r: asyncio.sleep(0.01, "4")), Memory()
    flights: Flights = {}
    two = [Cached(probe, store, flights=flights) for _ in range(2)]
    await asyncio.gather(*(backend.complete(ask()) for backend in two))
    assert probe.sent == 1
    assert not flights


async def test_one_cancelled_waiter_leaves_the_call_to_the_others() -> None:
    gate = asyncio.Event()

    async def body() -> str:
        await gate.wait()
        return "4"

    probe = Probe(lambda r: body())
    backend = Cached(probe, Memory())
    first, second = (asyncio.create_task(backend.complete(ask())) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    gate.set()
    assert (await second).text == "4"
    assert first.cancelled()
    assert probe.sent == 1


async def test_the_last_waiter_to_leave_cancels_the_call_and_newcomers_share_another() -> None:
    async def body() -> str:
        if probe.sent == 1:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.01)  # closing a connection takes its time
        return await asyncio.sleep(0.05, "4")

    probe = Probe(lambda r: body())
    backend = Cached(probe, Memory())
    waiters = [asyncio.create_task(backend.complete(ask())) for _ in range(2)]
    await asyncio.sleep(0.01)
    for waiter in waiters:
        waiter.cancel()
    await asyncio.sleep(0)
    newcomers = [asyncio.create_task(backend.complete(ask()))]
    await asyncio.sleep(0.03)
    newcomers.append(asyncio.create_task(backend.complete(ask())))
    assert [reply.text for reply in await asyncio.gather(*newcomers)] == ["4", "4"]
    assert (probe.sent, probe.inside) == (2, 0)
    assert not backend.flights


async def test_an_error_reaches_all_who_wait_and_is_not_stored() -> None:
    async def fail_first() -> str:
        await asyncio.sleep(0.01)
        if probe.sent == 1:
            raise Refused("no")
        return "4"

    probe, store = Probe(lambda r: fail_first()), Memory()
    backend = Cached(probe, store)
    said = await asyncio.gather(*(backend.complete(ask()) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in said] == [Refused] * 3
    assert not store.kept
    assert (await backend.complete(ask())).text == "4"


# --- retried ----------------------------------------------------------------------------------------------------


async def test_a_retryable_error_is_tried_again() -> None:
    probe, tally = Probe(raising(ServerError("boom"), BadReply("mud"), CallTimeout("slow"))), Tally()
    reply = await Retried(probe, base_s=0.001, tally=tally).complete(ask())
    assert reply.text == "4"
    assert (probe.sent, tally.retries) == (4, 3)


async def test_the_last_error_says_how_often_it_was_tried() -> None:
    probe = Probe(raising(*(ServerError(f"boom {i}", hint="wait") for i in range(9))))
    with pytest.raises(ServerError, match=r"^boom 2 \(gave up after 3 tries\); wait$"):
        await Retried(probe, attempts=3, base_s=0.001).complete(ask())
    assert probe.sent == 3


async def test_what_can_not_help_is_not_tried_again() -> None:
    probe = Probe(raising(Refused("no such model")))
    with pytest.raises(Refused, match=r"^no such model$"):
        await Retried(probe).complete(ask())
    assert probe.sent == 1


async def test_retry_after_is_waited_for() -> None:
    probe = Probe(raising(RateLimited("slow down", retry_after_s=0.2)))
    start = asyncio.get_running_loop().time()
    await Retried(probe, base_s=0.001).complete(ask())
    assert 0.2 <= asyncio.get_running_loop().time() - start < 1


async def test_retry_after_of_an_hour_is_given_up() -> None:
    probe = Probe(raising(RateLimited("quota", retry_after_s=3600)))
    with pytest.raises(RateLimited, match="asks to wait 3600 s"):
        await asyncio.wait_for(Retried(probe).complete(ask()), 1)


def test_backoff_doubles_up_to_the_cap_and_is_seeded() -> None:
    def pauses(seed: int) -> list[float]:
        backend = Retried(Probe(str), attempts=12, base_s=0.5, cap_s=4.0, seed=seed)
        return [backend._pause_s(ServerError("x"), tries) for tries in range(1, 12)]

    drawn = [pauses(seed) for seed in range(300)]
    longest = [max(column) for column in zip(*drawn, strict=True)]
    ceilings = [min(4.0, 0.5 * 2**i) for i in range(11)]
    assert all(0.9 * top < most <= top for most, top in zip(longest, ceilings, strict=True))
    assert pauses(7) == drawn[7] != drawn[8]


# --- limited ----------------------------------------------------------------------------------------------------


async def test_never_more_at_once_than_the_limit_and_first_come_first_served() -> None:
    order: list[str] = []

    async def body(request: Request) -> str:
        order.append(request.messages[0].content)
        await asyncio.sleep(0.001)
        return "4"

    probe = Probe(body)
    backend = Limited(probe, Limiter(4))
    await asyncio.gather(*(backend.complete(ask(str(i))) for i in range(40)))
    assert probe.peak == 4
    assert order == [str(i) for i in range(40)]


async def test_two_backends_of_one_endpoint_share_the_limit() -> None:
    probe, limiter = Probe(lambda r: asyncio.sleep(0.001, "4")), Limiter(3)
    two = [Limited(probe, limiter), Limited(probe, limiter)]
    await asyncio.gather(*(two[i % 2].complete(ask()) for i in range(20)))
    assert probe.peak == 3


async def test_cancelled_waiters_leave_no_place_behind() -> None:
    probe, limiter = Probe(lambda r: asyncio.sleep(0.005, "4")), Limiter(2)
    backend, rng = Limited(probe, limiter), random.Random(0)
    tasks = [asyncio.create_task(backend.complete(ask())) for _ in range(100)]
    while not all(task.done() for task in tasks):
        rng.choice(tasks).cancel()
        await asyncio.sleep(0.001 * rng.random())
    assert limiter.in_flight == 0
    assert probe.peak <= 2
    assert (await asyncio.wait_for(backend.complete(ask()), 1)).text == "4"


async def test_a_place_given_to_one_who_is_cancelled_goes_on() -> None:
    limiter = Limiter(1)
    number = await limiter.enter()
    waiting = asyncio.create_task(limiter.enter())
    await asyncio.sleep(0)
    limiter.leave(number, None)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    assert limiter.in_flight == 0


async def leave_all(limiter: Limiter, n: int, errors: int, error: BackendError) -> None:
    """One round trip: `n` calls are sent together, then `errors` of them fail."""
    numbers = [await limiter.enter() for _ in range(n)]
    for i, number in enumerate(numbers):
        limiter.leave(number, error if i < errors else None)


async def test_a_storm_halves_the_limit_once_a_round_trip() -> None:
    limiter = Limiter(64)
    for expected in (32, 16, 8, 4, 2, 1, 1):
        await leave_all(limiter, int(limiter.limit), int(limiter.limit), RateLimited("429"))
        assert limiter.limit == expected


async def test_stray_faults_hardly_shrink_it_and_success_grows_it_back() -> None:
    limiter = Limiter(100)
    for _ in range(50):
        await leave_all(limiter, int(limiter.limit), 1, ServerError("500"))
    assert limiter.limit == 100
    limiter.limit = 50.0
    for _ in range(40):
        await leave_all(limiter, int(limiter.limit), 0, ServerError("500"))
    assert limiter.limit == 100


@pytest.mark.parametrize("error", [ConnectionLost("cut"), CallTimeout("slow"), BadReply("mud"), Refused("no")])
async def test_only_429_and_5xx_shrink_it(error: BackendError) -> None:
    limiter = Limiter(8)
    for _ in range(3):
        await leave_all(limiter, 8, 8, error)
    assert limiter.limit == 8


async def test_retry_after_holds_the_whole_endpoint_back() -> None:
    loop = asyncio.get_running_loop()
    limiter = Limiter(8)
    backend = Limited(Probe(raising(RateLimited("429", retry_after_s=0.15))), limiter)
    with pytest.raises(RateLimited):
        await backend.complete(ask())
    start = loop.time()
    await asyncio.gather(*(backend.complete(ask()) for _ in range(3)))
    assert 0.14 <= loop.time() - start < 1


async def test_it_finds_the_capacity_of_a_server() -> None:
    capacity = 20

    async def body() -> str:
        if probe.inside > capacity:
            raise RateLimited("429")
        await asyncio.sleep(0.005)
        return "4"

    probe, limiter, tally = Probe(lambda r: body()), Limiter(100), Tally()
    backend = Retried(Limited(probe, limiter), attempts=20, base_s=0.001, cap_s=0.01, tally=tally)
    await asyncio.gather(*(backend.complete(ask()) for _ in range(2000)))
    assert 0.5 * capacity < limiter.limit < 1.5 * capacity
    assert tally.retries < 0.35 * 2000


# --- budgeted ---------------------------------------------------------------------------------------------------


async def test_the_call_after_the_last_is_not_sent() -> None:
    probe, budget = Probe(lambda r: asyncio.sleep(0.001, "4")), Budget(calls=50)
    backend = Budgeted(probe, budget)
    said = await asyncio.gather(*(backend.complete(ask()) for _ in range(200)), return_exceptions=True)
    assert probe.sent == 50
    assert sum(isinstance(one, BudgetExceeded) for one in said) == 150
    assert "50 of 50 calls" in str(said[-1])


async def test_a_failed_request_is_a_call_but_takes_no_tokens() -> None:
    budget = Budget(calls=3, tokens=10_000)
    backend = Retried(Budgeted(Probe(raising(*(ServerError("boom") for _ in range(9)))), budget), base_s=0.001)
    with pytest.raises(BudgetExceeded):
        await backend.complete(ask())
    assert (budget.spent_calls, budget.spent_tokens, budget.reserved_tokens) == (3, 0, 0)


@pytest.mark.parametrize("error", [CallTimeout("slow"), ConnectionLost("cut"), BadReply("mud")])
async def test_what_may_have_been_billed_stays_spent(error: BackendError) -> None:
    budget = Budget(tokens=10_000)
    with pytest.raises(type(error)):
        await Budgeted(Probe(raising(error)), budget).complete(ask())
    assert budget.spent_tokens == prompt_bound(ask()) + 100


async def test_a_cancelled_call_stays_spent_and_a_cancelled_wait_does_not() -> None:
    one = prompt_bound(ask()) + 100
    budget = Budget(tokens=one)
    backend = Budgeted(Probe(lambda r: asyncio.sleep(60)), budget)
    sent, waiting = (asyncio.create_task(backend.complete(ask())) for _ in range(2))
    await asyncio.sleep(0.001)
    waiting.cancel()
    await asyncio.sleep(0)
    assert (budget.spent_tokens, budget.reserved_tokens, budget.spent_calls) == (0, one, 1)
    sent.cancel()
    await asyncio.gather(sent, waiting, return_exceptions=True)
    assert (budget.spent_tokens, budget.reserved_tokens) == (one, 0)


async def test_a_reservation_made_for_one_who_is_cancelled_comes_back() -> None:
    budget, need = Budget(calls=2, tokens=10), Need(10, 0)
    await budget.reserve(need)
    waiting = asyncio.create_task(budget.reserve(need))
    await asyncio.sleep(0)
    budget.settle(need, 0, 0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    assert (budget.reserved_tokens, budget.spent_calls) == (0, 1)
    await budget.reserve(need)


async def test_who_needs_little_does_not_overtake_who_needs_much() -> None:
    budget, order = Budget(tokens=10), []

    async def take(name: str, tokens: int) -> None:
        await budget.reserve(Need(tokens, 0))
        order.append(name)
        await asyncio.sleep(0.001)
        budget.settle(Need(tokens, 0), 0, 0)

    await asyncio.gather(take("first", 6), take("much", 9), take("little", 1))
    assert order == ["first", "much", "little"]


async def test_a_worst_case_that_does_not_fit_now_waits_for_room() -> None:
    """Room for one worst case of 4,096 tokens at a time, but for 100 real calls of 100 tokens."""
    probe = Probe(lambda r: asyncio.sleep(0.0001, Completion("4", "m", prompt_tokens=50, completion_tokens=50)))
    budget = Budget(tokens=14_500)
    backend = Budgeted(probe, budget)
    await asyncio.gather(*(backend.complete(ask(max_tokens=4096)) for _ in range(100)))
    assert budget.spent_tokens == 10_000


async def test_a_call_that_could_never_fit_is_refused_at_once() -> None:
    budget = Budget(tokens=4_000)
    with pytest.raises(BudgetExceeded, match=r"0 of 4000 tokens are used and the next call may take"):
        await Budgeted(Probe(str), budget).complete(ask(max_tokens=4096))


async def test_usage_above_the_reservation_is_counted() -> None:
    budget = Budget(tokens=10_000)
    probe = Probe(lambda r: Completion("4", "m", prompt_tokens=9_000, completion_tokens=2_000))
    await Budgeted(probe, budget).complete(ask())
    assert budget.spent_tokens == 11_000
    with pytest.raises(BudgetExceeded):
        await Budgeted(probe, budget).complete(ask())


async def test_a_given_reply_is_part_of_the_prompt_and_nothing_is_reserved_for_another() -> None:
    budget = Budget(tokens=300)
    probe = Probe(lambda r: Completion("4", "m", prompt_tokens=100, completion_tokens=1))
    with pytest.raises(BudgetExceeded, match="may take 451"):
        await Budgeted(probe, budget).complete(ask(continuation="4" * 300))
    await Budgeted(probe, budget).complete(ask(continuation="4" * 100, max_tokens=4096))
    assert (probe.sent, budget.spent_tokens) == (1, 101)


async def test_usage_that_is_not_told_counts_as_reserved() -> None:
    budget, most = Budget(tokens=10_000), prompt_bound(ask()) + 100
    await Budgeted(Probe(lambda r: Completion("4", "m", prompt_tokens=5)), budget, PRICE).complete(ask())
    assert budget.spent_tokens == most
    assert budget.spent_usd == pytest.approx((prompt_bound(ask()) * 2.0 + 100 * 8.0) / 1e6)


async def test_dollars_add_up_exactly() -> None:
    """Ten calls of ten cents fit into one dollar; in binary fractions they would not."""
    probe = Probe(lambda r: Completion("4", "m", prompt_tokens=0, completion_tokens=100))
    price = Price(input=0.0, output=1000.0)
    budget = Budget(usd=1.0)
    backend = Budgeted(probe, budget, price)
    for _ in range(10):
        await backend.complete(ask(max_tokens=100))
    with pytest.raises(BudgetExceeded, match=r"\$1 of \$1 are spent and the next call may cost \$0.1"):
        await backend.complete(ask(max_tokens=100))
    assert budget.spent_usd == 1.0


def test_dollars_without_a_price_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"model 'test/probe' has no known price"):
        wrap(Probe(str), budget=Budget(usd=1.0))
    wrap(Probe(str), budget=Budget(calls=1))


@pytest.mark.parametrize("bound", ["calls", "tokens", "usd", "seconds"])
def test_a_negative_budget_is_refused(bound: str) -> None:
    with pytest.raises(ConfigError, match=f"budget {bound} is -1"):
        Budget(**{bound: -1})


FAULTS = (
    RateLimited("429"),
    ServerError("500"),
    Refused("400"),
    CallTimeout("t"),
    ConnectionLost("cut"),
    BadReply("b"),
)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bound", ["calls", "tokens", "usd"])
async def test_no_budget_is_passed_at_200_at_once(bound: str, seed: int) -> None:
    """Random prompts, lengths, usage, faults and cancellations; what the service bills never passes the budget."""
    rng = random.Random(seed)
    billed: Counter[str] = Counter()
    budget = Budget(**{bound: {"calls": 150, "tokens": 200_000, "usd": 0.8}[bound]})

    async def body(request: Request) -> Completion:
        billed["calls"] += 1
        fault = rng.choice(FAULTS) if rng.random() < 0.3 else None
        if isinstance(fault, RateLimited | ServerError | Refused):
            raise fault
        prompt, reply = len(request.messages[0].content) // 4, rng.randint(0, request.sampling.max_tokens)
        done = Completion("x", "m", prompt_tokens=prompt, completion_tokens=reply)
        billed["tokens"] += prompt + reply
        billed["usd"] += cost(PRICE, done) or 0
        await asyncio.sleep(rng.random() * 0.004)
        if fault is not None:
            raise fault
        return done if rng.random() < 0.9 else replace(done, prompt_tokens=None, completion_tokens=None)

    backend = Retried(Limited(Budgeted(Probe(body), budget, PRICE), Limiter(200)), base_s=0.001, cap_s=0.002)
    requests = [ask("a" * rng.randint(1, 2000), rng.randint(1, 4096)) for _ in range(600)]
    tasks = [asyncio.create_task(backend.complete(request)) for request in requests]
    for victim in rng.sample(tasks, 60):
        asyncio.get_running_loop().call_later(rng.random() * 0.05, victim.cancel)
    said = await asyncio.gather(*tasks, return_exceptions=True)
    most = getattr(budget, bound)
    assert billed[bound] <= most
    assert billed[bound] > 0.1 * most
    assert any(isinstance(one, BudgetExceeded) for one in said)
    assert (budget.reserved_tokens, budget.reserved_money) == (0, 0)
    assert not budget._queue


async def test_nothing_goes_on_after_the_seconds() -> None:
    probe, loop = Probe(lambda r: asyncio.sleep(60)), asyncio.get_running_loop()
    backend = Timed(probe, Budget(seconds=0.05))
    start = loop.time()
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match=r"0.05 seconds are over"):
            await backend.complete(ask())
    assert loop.time() - start < 1
    assert probe.sent == 1


async def test_the_seconds_cut_a_wait_between_tries() -> None:
    probe = Probe(raising(RateLimited("429", retry_after_s=60)))
    backend = wrap(probe, budget=Budget(seconds=0.05), limiter=Limiter(1))
    with pytest.raises(BudgetExceeded):
        await asyncio.wait_for(backend.complete(ask()), 1)


# --- counted, and all together ------------------------------------------------------------------------------------


async def test_the_tally_counts_what_was_sent_and_what_came_back() -> None:
    done = Completion("4", "m", prompt_tokens=1_000_000, completion_tokens=500_000)
    replies = iter([RateLimited("429"), done, Completion("5", "m"), Refused("no")])

    def body(request: Request) -> Completion:
        reply = next(replies)
        if isinstance(reply, BackendError):
            raise reply
        return reply

    tally, store = Tally(), Memory()
    backend = wrap(Probe(body), calls=store, price=PRICE, tally=tally)
    assert isinstance(backend, Cached)
    inner = backend.inner
    assert isinstance(inner, Retried)
    inner.base_s = 0.001
    assert (await backend.complete(ask("a"))).cost_usd == pytest.approx(6.0)
    await backend.complete(ask("a"))
    await backend.complete(ask("b"))
    with pytest.raises(Refused):
        await backend.complete(ask("c"))
    assert (tally.calls, tally.hits, tally.retries, tally.in_flight) == (4, 1, 1, 0)
    assert (tally.prompt_tokens, tally.completion_tokens, tally.unmetered) == (1_000_000, 500_000, 1)
    assert (tally.cost_usd, tally.unpriced) == (pytest.approx(6.0), 1)
    assert tally.errors == {"rate_limited": 1, "refused": 1}


def test_wrap_puts_the_wrappers_in_order() -> None:
    probe = Probe(str)
    backend = wrap(probe, calls=Memory(), limiter=Limiter(1), budget=Budget(seconds=9))
    order = []
    walk = backend
    while walk is not probe:
        order.append(type(walk))
        walk = walk.inner  # type: ignore[attr-defined]  # the walk ends at the probe
    assert order == [Cached, Timed, Retried, Limited, Budgeted, Counted]
    assert unwrap(backend) is probe
    assert backend.model == probe.model


def test_recorded_outputs_are_only_counted() -> None:
    probe = Probe(str)
    probe.recorded = True  # type: ignore[attr-defined]  # what a replay backend says of itself
    assert isinstance(wrap(probe, calls=Memory(), limiter=Limiter(1), budget=Budget(usd=0)), Counted)


# --- over HTTP ----------------------------------------------------------------------------------------------------


def connected(server: FakeServer, timeout_s: float = 60.0, **traffic: Any) -> Backend:
    return wrap(connect(parse({"model": "vllm/fake", "base_url": server.url, "timeout_s": timeout_s})), **traffic)


async def ask_all(backend: Backend, n: int) -> list[Completion | BaseException]:
    try:
        return await asyncio.gather(*(backend.complete(ask(f"{i}?")) for i in range(n)), return_exceptions=True)
    finally:
        await backend.close()


async def test_a_server_with_a_capacity_answers_everybody() -> None:
    tally, limiter = Tally(), Limiter(100)
    with FakeServer(latency_s=0.02, capacity=16, retry_after_s=0.01) as server:
        said = await ask_all(connected(server, limiter=limiter, tally=tally, attempts=12), 300)
        stats = server.stats()
    assert [one for one in said if not isinstance(one, Completion)] == []
    assert stats["kinds"]["ok"] == 300
    assert stats["requests"] == tally.calls == 300 + tally.retries
    assert 0 < tally.errors["rate_limited"] < 200
    assert limiter.limit < 50


async def test_every_fault_ends_in_an_answer_or_a_failure_with_its_reason() -> None:
    faults = dict.fromkeys(("429", "500", "slow", "cut", "garbage", "empty_choices", "no_text", "wrong_model"), 0.06)
    tally = Tally()
    with FakeServer(faults=faults, retry_after_s=0.01, slow_s=60.0) as server:
        backend = connected(server, timeout_s=3.0, limiter=Limiter(50), tally=tally, attempts=2)
        said = await ask_all(backend, 200)
        stats = server.stats()
    failed = Counter(type(one) for one in said if not isinstance(one, Completion))
    assert set(failed) <= {RateLimited, ServerError, CallTimeout, ConnectionLost, BadReply, WrongModel}
    assert failed[WrongModel] > 0, "it is not tried again, so some stay"
    assert 100 < sum(isinstance(one, Completion) for one in said) < 200
    assert set(tally.errors) == {
        "rate_limited", "server_error", "call_timeout", "connection_lost", "bad_reply", "wrong_model",
    }  # fmt: skip
    assert tally.calls == stats["requests"]


@pytest.mark.parametrize("bound", [{"calls": 100}, {"usd": 0.05}])
async def test_a_server_never_sees_more_than_the_budget(bound: dict[str, float]) -> None:
    """Every answer costs what the fake server says it used; 200 at once, one request in five fails."""
    tally, budget = Tally(), Budget(**bound)  # type: ignore[arg-type]  # the keys are parameters of its own
    faults = {"429": 0.05, "500": 0.05, "cut": 0.05, "garbage": 0.05}
    with FakeServer(latency_s=0.01, faults=faults, retry_after_s=0.01) as server:
        traffic = {"limiter": Limiter(200), "budget": budget, "price": Price(100.0, 100.0), "tally": tally}
        said = await ask_all(connected(server, **traffic), 400)
        stats = server.stats()
    assert any(isinstance(one, BudgetExceeded) for one in said)
    assert any(isinstance(one, Completion) for one in said)
    assert stats["requests"] == budget.spent_calls <= bound.get("calls", 2000)
    assert tally.cost_usd <= budget.spent_usd <= bound.get("usd", 100)
