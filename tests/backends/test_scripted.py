"""The test double: its scripts, its memory, its latency."""

import time
from dataclasses import replace

import pytest

from pluribus.backends import Request, connect, parse
from pluribus.backends.scripted import SCRIPTS, Scripted, heavy_tailed
from pluribus.errors import ConfigError, RateLimited, Refused, ServerError, UnknownName
from pluribus.types import Completion, Message, Sampling


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


async def test_a_function_may_give_a_whole_completion() -> None:
    whole = Completion("True", "m", top_logprobs=({"True": -0.1, "False": -2.4},), reasoning="it is")
    assert await Scripted(lambda request: whole).complete(asking("a")) is whole


async def test_log_probabilities_are_made_up_and_always_the_same() -> None:
    backend = connect(parse({"model": "scripted/constant", "text": "Yes 42"}))
    (request,) = (replace(asking(text), top_logprobs=20) for text in ("a",))
    told = await backend.complete(request)
    assert told.top_logprobs is not None and len(told.top_logprobs) == told.completion_tokens == 2
    assert told.logprobs == (told.top_logprobs[0]["Yes"], told.top_logprobs[1]["42"])
    assert replace(await backend.complete(request), latency_s=None) == replace(told, latency_s=None)
    others = [await backend.complete(replace(asking(text), top_logprobs=20)) for text in "bcdefghi"]
    assert len({one.top_logprobs[0]["No"] for one in others if one.top_logprobs}) > 1
    assert (await backend.complete(asking("a"))).logprobs is None


async def test_a_given_reply_is_read_and_no_script_runs() -> None:
    read = await connect(parse("scripted/broken")).complete(replace(asking("one two"), continuation="a long reply"))
    assert (read.text, read.logprobs) == ("a long reply", (-0.125, -0.5, -0.625))
    assert (read.prompt_tokens, read.completion_tokens) == (5, 0)


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


async def test_a_beginning_is_read_and_draws_anew() -> None:
    backend = connect(parse("scripted/number"))
    plain = asking("one two", seed=1)
    told = [await backend.complete(replace(plain, prefill=text)) for text in (None, "three", "four")]
    assert [one.prompt_tokens for one in told] == [2, 3, 3]
    assert len({one.text for one in told}) == 3
    with pytest.raises(Refused, match="the prefill is empty"):
        await backend.complete(replace(plain, prefill=""))
