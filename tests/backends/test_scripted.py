"""The test double: its scripts, its memory, its latency."""

import time

import pytest

from pluribus.backends import Request, connect, parse
from pluribus.backends.scripted import SCRIPTS, Scripted, heavy_tailed
from pluribus.errors import ConfigError, RateLimited, ServerError, UnknownName
from pluribus.types import Message, Sampling


def asking(text: str, **sampling: int) -> Request:
    return Request((Message("user", text),), Sampling(**sampling))


async def test_scripts_answer_by_the_request_alone() -> None:
    backend = connect(parse("scripted/number"))
    first = await backend.complete(asking("a", seed=1))
    assert (await connect(parse("scripted/number")).complete(asking("a", seed=1))).text == first.text
    assert len({(await backend.complete(asking("a", seed=seed))).text for seed in range(9)}) > 1


async def test_echo_constant_and_broken() -> None:
    assert (await connect(parse("scripted/echo")).complete(asking("to be"))).text == "to be"
    constant = connect(parse({"model": "scripted/constant", "text": "not to be"}))
    assert (await constant.complete(asking("to be"))).text == "not to be"
    with pytest.raises(ServerError):
        await connect(parse("scripted/broken")).complete(asking("to be"))


async def test_keyed_is_right_at_its_accuracy() -> None:
    backend = connect(parse({"model": "scripted/keyed", "accuracy": 0.8}))
    texts = [(await backend.complete(asking("[key: 7]", seed=seed))).text for seed in range(400)]
    assert 290 < sum("{final answer: 7}" in text for text in texts) < 350


async def test_a_function_is_a_backend_that_remembers() -> None:
    backend = Scripted(lambda request: "yes" if request.sampling.seed else RateLimited("later", retry_after_s=2))
    assert (await backend.complete(asking("a", seed=1))).text == "yes"
    with pytest.raises(RateLimited) as caught:
        await backend.complete(asking("b"))
    assert caught.value.retry_after_s == 2
    assert [request.messages[0].content for request in backend.seen] == ["a", "b"]
    await backend.close()


async def test_tokens_are_words_and_max_tokens_cuts() -> None:
    completion = await connect(parse("scripted/echo")).complete(asking("one two three four", max_tokens=2))
    assert (completion.text, completion.finish_reason) == ("one two", "length")
    assert (completion.prompt_tokens, completion.completion_tokens) == (4, 2)
    assert completion.cost_usd is None


async def test_latency_is_waited_for_and_reported() -> None:
    backend = connect(parse({"model": "scripted/echo", "latency_s": 0.05}))
    started = time.perf_counter()
    completion = await backend.complete(asking("a"))
    assert completion.latency_s is not None and 0.05 <= completion.latency_s <= time.perf_counter() - started


def test_heavy_tails_keep_the_median() -> None:
    draws = [(i + 0.5) / 1000 for i in range(1000)]
    times = sorted(heavy_tailed(0.2, 1.0, draw) for draw in draws)
    assert times[499] < 0.2 < times[500] and times[990] > 2.0


def test_what_it_does_not_know() -> None:
    with pytest.raises(UnknownName, match=f"there are: {', '.join(sorted(SCRIPTS))}"):
        connect(parse("scripted/shout"))
    with pytest.raises(ConfigError, match="latency_s"):
        connect(parse({"model": "scripted/echo", "latency_s": "long"}))
    with pytest.raises(UnknownName, match="option of scripted 'speed'"):
        parse({"model": "scripted/echo", "speed": 1})
