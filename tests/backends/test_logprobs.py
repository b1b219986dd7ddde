"""Log-probabilities over real HTTP: of alternatives as OpenAI gives them, of given replies as vLLM does."""

import asyncio
import json
import math
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pluribus.backends import Backend, Request, connect, parse
from pluribus.backends._logprobs import UNREADABLE, alternatives, of_continuation, of_tokens, spelling
from pluribus.backends.scripted import word_logprob
from pluribus.errors import Refused
from pluribus.fake_server import FakeServer
from pluribus.store.workspace import Store
from pluribus.traffic import Tally, wrap
from pluribus.types import Completion, Message, Sampling


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer(answers="constant", text="True enough") as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made-up-key")


def asking(text: str = "Is it so?", **wishes: Any) -> Request:
    return Request((Message("user", text),), Sampling(), **wishes)


@asynccontextmanager
async def opened(model: str) -> AsyncIterator[Backend]:
    backend = connect(parse(model))
    try:
        yield backend
    finally:
        await backend.close()


async def asked(model: str, request: Request) -> Completion:
    async with opened(model) as backend:
        return await backend.complete(request)


# --- alternatives ----------------------------------------------------------------------------------------------------


async def test_alternatives_come_with_every_generated_token(server: FakeServer) -> None:
    told = await asked(f"openai/m@{server.url}", asking(top_logprobs=9))
    assert told.text == "True enough" and told.logprobs == (word_logprob("True"), word_logprob("enough"))
    assert told.top_logprobs is not None and len(told.top_logprobs) == 2
    first = told.top_logprobs[0]
    assert first["True"] == word_logprob("True") and {"Yes", "No"} < set(first)
    assert list(first.values()) == sorted(first.values(), reverse=True)
    assert sum(map(math.exp, first.values())) == pytest.approx(1.0)
    other = await asked(f"openai/m@{server.url}", asking("And so?", top_logprobs=9))
    assert other.top_logprobs is not None and other.top_logprobs[0] != first, "each prompt has its own"
    fewer = await asked(f"vllm/m@{server.url}", asking(top_logprobs=3))
    assert fewer.top_logprobs is not None and dict(fewer.top_logprobs[0]) == dict(list(first.items())[:3])


async def test_nothing_is_asked_for_by_default(server: FakeServer) -> None:
    plain = await asked(f"openai/m@{server.url}", asking())
    assert plain.logprobs is None and plain.top_logprobs is None


async def test_a_service_that_gives_none_leaves_none() -> None:
    with FakeServer(logprobs=False) as silent:
        told = await asked(f"openai/m@{silent.url}", asking(top_logprobs=5))
        assert told.text and told.logprobs is None and told.top_logprobs is None
        with pytest.raises(
            Refused, match=r"does not tell the log-probabilities of the given text; is it a vLLM server"
        ):
            await asked(f"vllm/m@{silent.url}", asking(continuation="so"))


@pytest.mark.parametrize("wanted", [-1, 21])
async def test_a_number_of_alternatives_that_can_not_be(wanted: int, server: FakeServer) -> None:
    with pytest.raises(Refused, match=f"top_logprobs is {wanted}"):
        await asked(f"openai/m@{server.url}", asking(top_logprobs=wanted))


@pytest.mark.parametrize(
    "held",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": ["x"]},
        {"content": [{"logprob": None}]},
        {"content": 3},
    ],
)
def test_log_probabilities_in_another_form_are_none(held: Any) -> None:
    assert of_tokens({"logprobs": held}) is None and alternatives({"logprobs": held}) is None


def test_alternatives_of_one_text_are_added_up_and_odd_ones_left_out() -> None:
    likeliest = [{"token": "a", "logprob": math.log(0.25)}, {"token": "a", "logprob": math.log(0.5)}, {"token": None}]
    found = alternatives({"logprobs": {"content": [{"top_logprobs": [*likeliest, 7]}]}})
    assert found is not None and found[0] == pytest.approx({"a": math.log(0.75)})


# --- replies that were begun -----------------------------------------------------------------------------------------


async def test_a_service_goes_on_with_a_reply_that_was_begun() -> None:
    with FakeServer(answers="number") as server:
        plain, begun, other = [
            await asked(f"vllm/m@{server.url}", asking(prefill=text)) for text in (None, "2 + 2 =", "2 + 2 is")
        ]
        assert len({plain.text, begun.text, other.text}) == 3
        assert "2 + 2" not in begun.text, "what was given does not come back"
        assert begun.prompt_tokens == (plain.prompt_tokens or 0) + 4
        assert (await asked(f"sglang/m@{server.url}", asking(prefill="2 + 2 ="))).text


async def test_what_is_sent_is_in_the_form_of_vllm(server: FakeServer) -> None:
    """The server refuses a prompt that both opens a new turn and goes on with the last one."""
    messages = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "It"}]
    body = {"model": "m", "messages": messages, "continue_final_message": True}
    request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode())
    with pytest.raises(urllib.error.HTTPError, match="400"):
        await asyncio.to_thread(urllib.request.urlopen, request)


async def test_a_service_that_can_not_go_on_refuses_before_anything_is_sent(server: FakeServer) -> None:
    before = server.stats()["requests"]
    for service in ("openai", "ollama"):
        with pytest.raises(Refused, match=f"{service}/m: this service does not go on with a reply") as caught:
            await asked(f"{service}/m@{server.url}", asking(prefill="so"))
        assert "vllm/" in str(caught.value.hint) and "local/" in str(caught.value.hint)
    with pytest.raises(Refused, match="the prefill is empty"):
        await asked(f"vllm/m@{server.url}", asking(prefill=""))
    assert server.stats()["requests"] == before


async def test_a_beginning_is_another_call_for_the_store(server: FakeServer, tmp_path: Any) -> None:
    tally = Tally()
    with Store.open(tmp_path) as store:
        async with opened(f"vllm/m@{server.url}") as raw:
            backend = wrap(raw, calls=store.calls, tally=tally)
            for prefill in (None, "so", "so", "then"):
                await backend.complete(asking(prefill=prefill))
    assert (tally.calls, tally.hits) == (3, 1)


# --- continuations ---------------------------------------------------------------------------------------------------


async def test_the_log_probabilities_of_a_given_reply(server: FakeServer) -> None:
    told = await asked(f"vllm/m@{server.url}", asking(continuation="a perhaps surprising\nend"))
    words = ("a", "perhaps", "surprising", "end")
    assert told.text == "a perhaps surprising\nend"
    assert told.logprobs == tuple(map(word_logprob, words)), "each is the token's own, not the likeliest one's"
    assert told.top_logprobs is None and told.finish_reason is None
    assert told.prompt_tokens is not None and told.latency_s is not None


async def test_a_service_without_them_refuses_before_anything_is_sent(server: FakeServer) -> None:
    before = server.stats()["requests"]
    for service in ("openai", "ollama", "sglang"):
        with pytest.raises(Refused, match=f"{service}/m: this service does not tell") as caught:
            await asked(f"{service}/m@{server.url}", asking(continuation="so"))
        assert "vllm/" in str(caught.value.hint) and "local/" in str(caught.value.hint)
    with pytest.raises(Refused, match="the continuation is empty"):
        await asked(f"vllm/m@{server.url}", asking(continuation=""))
    assert server.stats()["requests"] == before


def place(own: str, logprob: float, rank: int | None = 1, **best: float) -> dict[str, Any]:
    """A token of the prompt, and the likeliest one before it where that is another."""
    found = {f"top {text}": {"logprob": number, "rank": 1, "decoded_token": text} for text, number in best.items()}
    return {**found, "own": {"logprob": logprob, "rank": rank, "decoded_token": own}}


def test_a_tokens_own_log_probability_is_that_of_the_higher_rank_in_any_order() -> None:
    injected = place("b", -4.0, None, the=-0.1)
    places = [None, place("<|assistant|>", -9.0), place("a", -0.2), place("b", -3.0, 12, the=-0.1), injected]
    assert of_continuation(places, "abb") == (-0.2, -3.0, -4.0)
    assert of_continuation([None, dict(reversed(places[3].items()))], "b") == (-3.0,)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "pieces, text, n",
    [
        (["\n", "Yes"], "Yes", 1),
        (["\n", "Yes"], " Yes", 1),  # the template trimmed it
        (["x", "It", "is", "so"], "It is so", 3),  # a tokenizer that writes tokens alone without the space
        (["x", " ", "Yes"], " Yes", 2),
        (["\n", UNREADABLE, UNREADABLE, "2", " ", UNREADABLE], "√2 √", 5),
        ([UNREADABLE, "", "√", "2"], "√2", 2),
        (["x", "No"], "Yes", None),
        (["x", "es"], "Yes", None),
        ([], "Yes", None),
    ],
)
def test_which_tokens_spell_the_text(pieces: list[str], text: str, n: int | None) -> None:
    found = of_continuation([place(piece, -float(i)) for i, piece in enumerate(pieces)], text)
    expected = None if n is None else tuple(-float(i) for i in range(len(pieces) - n, len(pieces)))
    assert found == expected


def test_spelling_a_long_text_of_many_scripts() -> None:
    text = "".join(f"wörd{i} ≤ 数 " for i in range(200))
    pieces = [*("the", " question"), *("".join(letter if letter.isascii() else UNREADABLE * 2) for letter in text)]
    assert spelling(pieces, text) == len(text)


@pytest.mark.parametrize("held", [None, "x", [None], [None, 3], [None, {"1": {}}], [None, {"1": {"rank": 1}}]])
def test_prompt_log_probabilities_in_another_form_are_none(held: Any) -> None:
    assert of_continuation(held, "Yes") is None


async def test_a_prompt_that_does_not_end_with_the_text_is_refused(server: FakeServer) -> None:
    async with opened(f"vllm/m@{server.url}") as backend:
        backend.endpoint.extra_body["continue_final_message"] = False  # type: ignore[attr-defined]
        with pytest.raises(Refused, match="the prompt's tokens do not end with it"):
            await backend.complete(asking(continuation="so"))


# --- kept ------------------------------------------------------------------------------------------------------------


async def test_both_come_back_from_the_store(server: FakeServer, tmp_path: Any) -> None:
    wishes = (asking(), asking(top_logprobs=4), asking(top_logprobs=5), asking(continuation="so"))
    with Store.open(tmp_path) as store:
        async with opened(f"vllm/m@{server.url}") as backend:
            first = [await wrap(backend, calls=store.calls).complete(request) for request in wishes]
    with Store.open(tmp_path) as store:
        async with opened("vllm/m@http://127.0.0.1:9/v1") as backend:  # nobody listens
            tally = Tally()
            again = [await wrap(backend, calls=store.calls, tally=tally).complete(request) for request in wishes]
    assert again == first and tally.hits == 4 and tally.calls == 0
    assert [len(one.top_logprobs[0]) if one.top_logprobs else None for one in again] == [None, 4, 5, None]
    assert json.dumps(dict(again[2].top_logprobs[0])) == json.dumps(dict(first[2].top_logprobs[0]))  # type: ignore[index]
