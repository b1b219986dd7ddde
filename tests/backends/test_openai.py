"""The chat backend against real HTTP on loopback: requests, replies, every fault, and no key in any of it."""

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pluribus.backends import Backend, Request, connect, parse
from pluribus.backends._chat import ChatBackend, same_model
from pluribus.backends._http_errors import objection, retry_after_s, said, scrub, status_error
from pluribus.errors import (
    BackendError,
    BadReply,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    RateLimited,
    Refused,
    ServerError,
    WrongModel,
    failure,
)
from pluribus.fake_server import FakeServer
from pluribus.types import Completion, Message, Sampling

KEY = "made-up-key-0123456789"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "VLLM_BASE_URLS", "VLLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def asking(text: str = "how many are 2 and 2?", **sampling: Any) -> Request:
    return Request((Message("user", text),), Sampling(**sampling))


@asynccontextmanager
async def opened(model: Any) -> AsyncIterator[Backend]:
    backend = connect(parse(model))
    try:
        yield backend
    finally:
        await backend.close()


async def asked(model: Any, request: Request | None = None) -> Completion:
    async with opened(model) as backend:
        return await backend.complete(request or asking())


async def trouble(model: Any) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await asked(model)
    return caught.value


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Reply = Callable[[dict[str, Any]], tuple[str, bytes]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[str]:
    """A server on raw sockets that waits for its last connection; yields its base URL."""
    running: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def whole() -> None:
            await serve(reader, writer)
            writer.close()

        running.add(asyncio.create_task(whole()))

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    await asyncio.gather(*running)


@asynccontextmanager
async def canned(reply: Reply, seen: list[dict[str, Any]] | None = None) -> AsyncIterator[str]:
    """A server that hands each request's body to a function and sends what it returns: status line, body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = json.loads(await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0])))
        if seen is not None:
            seen.append(body)
        status, content = reply(body)
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n".encode())
        writer.write(content)
        await writer.drain()

    async with listening(serve) as url:
        yield url


def answering(**changes: Any) -> Reply:
    """A good reply with parts changed: `message`, `usage`, `finish_reason`, or any field at the top."""
    choice = {
        "message": {"content": "4", **changes.pop("message", {})},
        "finish_reason": changes.pop("finish_reason", "stop"),
        "logprobs": changes.pop("logprobs", None),
    }
    return lambda body: ("200 OK", json.dumps({"model": body["model"], "choices": [choice], **changes}).encode())


def refusing(status: str, **body: Any) -> Reply:
    return lambda _: (status, json.dumps(body).encode())


# --- what is sent and what comes back --------------------------------------------------------------------------------


async def test_a_completion_has_text_usage_model_and_latency(server: FakeServer) -> None:
    completion = await asked(f"openai/gpt-4o@{server.url}", asking(seed=3))
    assert "final answer" in completion.text
    assert (completion.model, completion.finish_reason) == ("openai/gpt-4o", "stop")
    assert completion.prompt_tokens == 6 and completion.completion_tokens == len(completion.text.split(" "))
    assert completion.latency_s is not None and 0 < completion.latency_s < 60
    assert completion.cost_usd is None and completion.logprobs is None and completion.cached_tokens is None


async def test_exactly_the_sampling_is_sent() -> None:
    seen: list[dict[str, Any]] = []
    request = Request(
        (Message("system", "Be brief."), Message("user", "2+2?")),
        Sampling(temperature=0.5, top_p=0.8, max_tokens=7, stop=("END",), seed=11),
        sample=4,
        question_id="q1",
    )
    async with canned(answering(), seen) as url:
        await asked({"model": f"openai/m@{url}", "extra_body": {"top_k": 5}, "name_on_server": "served"}, request)
        await asked(f"openai/m@{url}", asking())
    assert seen[0] == {
        "model": "served",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}],
        "temperature": 0.5,
        "top_p": 0.8,
        "max_tokens": 7,
        "stop": ["END"],
        "seed": 11,
        "top_k": 5,
    }
    assert set(seen[1]) == {"model", "messages", "temperature", "top_p", "max_tokens"}


@pytest.mark.parametrize("form", ["field", "think"])
async def test_reasoning_is_kept_apart(form: str) -> None:
    with FakeServer(reasoning=form) as server:
        completion = await asked(f"openai/m@{server.url}")
    assert completion.reasoning == "Let me see." and completion.reasoning_tokens == 3
    assert "Let me see" not in completion.text and completion.text.endswith("}")


async def test_content_in_parts_and_reasoning_by_its_other_name() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "two twos"}]},
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "4."},
    ]
    async with canned(answering(message={"content": parts})) as url:
        completion = await asked(f"openai/m@{url}")
    assert (completion.text, completion.reasoning) == ("It is 4.", "two twos")
    async with canned(answering(message={"reasoning": "two twos"})) as url:
        assert (await asked(f"openai/m@{url}")).reasoning == "two twos"


async def test_usage_of_every_kind() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    async with canned(answering(usage=usage)) as url:
        completion = await asked(f"openai/m@{url}")
    assert (completion.prompt_tokens, completion.cached_tokens, completion.reasoning_tokens) == (100, 64, 30)
    assert completion.completion_tokens == 50, "reasoning that was counted apart is generated too"
    async with canned(answering()) as url:
        completion = await asked(f"openai/m@{url}")
    assert completion.prompt_tokens is None and completion.completion_tokens is None


async def test_logprobs_when_asked_for(server: FakeServer) -> None:
    completion = await asked({"model": f"openai/m@{server.url}", "logprobs": True})
    assert completion.logprobs is not None
    assert len(completion.logprobs) == completion.completion_tokens and max(completion.logprobs) < 0


async def test_running_out_of_tokens_while_thinking_is_an_empty_text() -> None:
    async with canned(answering(message={"content": None}, finish_reason="length")) as url:
        completion = await asked(f"openai/m@{url}")
    assert (completion.text, completion.finish_reason) == ("", "length")


async def test_replicas_are_asked_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer() as one, FakeServer() as other:
        monkeypatch.setenv("VLLM_BASE_URLS", f"{one.url}, {other.url}/")
        async with opened("vllm/m") as backend:
            await asyncio.gather(*(backend.complete(asking(seed=seed)) for seed in range(10)))
        assert one.stats()["requests"] == other.stats()["requests"] == 5


async def test_more_calls_are_in_flight_than_the_transport_allows_by_itself() -> None:
    with FakeServer(latency_s=2.0) as server:
        async with opened(f"openai/m@{server.url}") as backend:
            await asyncio.gather(*(backend.complete(asking(seed=seed)) for seed in range(150)))
        assert server.stats()["peak"] > 110


def test_a_backend_outlives_its_event_loop(server: FakeServer) -> None:
    backend = connect(parse(f"openai/m@{server.url}"))

    async def once() -> str:
        text = (await backend.complete(asking(seed=1))).text
        await backend.close()
        return text

    assert asyncio.run(once()) == asyncio.run(once())


# --- models that refuse parameters -----------------------------------------------------------------------------------


async def test_refused_parameters_are_dropped_or_renamed_once_and_remembered() -> None:
    with FakeServer(rejecting=("o3",)) as server:
        async with opened(f"openai/o3@{server.url}") as backend:
            completion = await backend.complete(asking(max_tokens=3))
            assert completion.finish_reason == "length", "the limit went out under its other name"
            assert server.stats()["kinds"] == {"400": 3, "ok": 1}
            await backend.complete(asking(max_tokens=3, seed=5))
            assert server.stats()["kinds"] == {"400": 3, "ok": 2}
            assert isinstance(backend, ChatBackend)
            assert backend.adjusted == {"max_tokens": "max_completion_tokens", "temperature": None, "top_p": None}


async def test_a_stop_that_is_refused_is_applied_here() -> None:
    def reply(body: dict[str, Any]) -> tuple[str, bytes]:
        if "stop" in body:
            return refusing("400 Bad", error={"message": "Unsupported parameter: 'stop'"})(body)
        return answering(message={"content": "4. END of it"})(body)

    async with canned(reply) as url:
        assert (await asked(f"openai/m@{url}", asking(stop=("END",)))).text == "4. "


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Unsupported value: 'temperature' does not support 0.7 with this model.", ("temperature", None)),
        ('{"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"]}]}', ("seed", None)),
        ("`temperature` and `top_p` cannot both be specified for this model.", ("top_p", None)),
        ("temperature must be between 0 and 1", None),
        ("this model's maximum context length is 8192 tokens", None),
        ("Unsupported parameter: 'max_tokens'", None),
        ("Unknown parameter: 'reseeding'", None),
    ],
)
def test_only_an_objection_to_a_parameter_is_one(text: str, found: tuple[str, None] | None) -> None:
    sent = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 5, "seed": 1}
    assert objection(text, sent) == found


# --- faults ----------------------------------------------------------------------------------------------------------

FAULTS = {
    "429": (RateLimited, True),
    "500": (ServerError, True),
    "slow": (CallTimeout, True),
    "cut": (ConnectionLost, True),
    "garbage": (BadReply, True),
    "empty_choices": (BadReply, True),
    "no_text": (BadReply, True),
    "wrong_model": (WrongModel, False),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_is_its_error_and_shows_no_key(fault: str) -> None:
    kind, retryable = FAULTS[fault]
    with FakeServer(faults={fault: 1.0}, retry_after_s=1.5) as server:
        timeout_s = 0.3 if fault == "slow" else 60
        async with opened({"model": f"openai/m@{server.url}", "timeout_s": timeout_s}) as backend:
            for seed in range(4):
                with pytest.raises(BackendError) as caught:
                    await backend.complete(asking(seed=seed))
                error = caught.value
                assert type(error) is kind and error.retryable is retryable
                shown = "".join(traceback.format_exception(error)) + repr(error) + repr(failure(error))
                assert KEY not in shown and "openai/m" in str(error)
    if isinstance(error, RateLimited):
        assert error.retry_after_s == 1.5


async def test_a_wrong_key_is_refused_and_not_shown() -> None:
    with FakeServer(api_key="another") as server:
        error = await trouble(f"openai/m@{server.url}")
    assert type(error) is Refused and "OPENAI_API_KEY" in str(error) and KEY not in str(error)


async def test_nobody_listens() -> None:
    with FakeServer() as server:
        pass
    assert type(await trouble(f"openai/m@{server.url}")) is ConnectionLost


async def test_what_does_not_speak_http() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        await writer.drain()

    async with listening(serve) as url:
        assert type(await trouble(f"openai/m@{url}")) is BadReply


async def test_a_reply_that_drips_is_timed_out() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(15):
            writer.write(b" ")
            await asyncio.sleep(0.1)

    async with listening(serve) as url:
        error = await trouble({"model": f"openai/m@{url}", "timeout_s": 0.5})
    assert type(error) is CallTimeout


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusing("404 Not Found", error={"message": "The model `m` does not exist"}), WrongModel),
        (refusing("404 Not Found", detail="Not Found"), Refused),
        (refusing("400 Bad Request", error={"message": "maximum context length is 10 tokens"}), Refused),
        (refusing("429 Slow Down", error={"message": "You exceeded your current quota"}), Refused),
        (refusing("503 Busy", message="overloaded"), ServerError),
        (refusing("200 OK", error={"message": "upstream is down", "code": 429}), RateLimited),
        (refusing("200 OK", error="upstream is down"), ServerError),
        (refusing("200 OK", choices="none"), BadReply),
        (lambda _: ("200 OK", b"[]"), BadReply),
        (lambda _: ("200 OK", b'{"choices": [{"message": null}]}'), BadReply),
        (answering(message={"content": None, "refusal": "I will not"}), Refused),
        (answering(message={"content": ""}, finish_reason="content_filter"), Refused),
    ],
)
async def test_replies_that_are_no_answer(reply: Reply, kind: type[BackendError]) -> None:
    async with canned(reply) as url:
        assert type(await trouble(f"openai/m@{url}")) is kind


def test_retry_after_in_every_form() -> None:
    assert retry_after_s({}, 0) is None
    assert retry_after_s({"retry-after": "soon"}, 0) is None
    assert retry_after_s({"retry-after-ms": "1500", "retry-after": "9"}, 0) == 1.5
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 1445412470.0) == 10.0
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 2e9) == 0.0
    wait = status_error(503, "busy", 2.0, "m")
    assert isinstance(wait, ServerError) and wait.retry_after_s == 2.0


def test_what_services_say_and_what_is_scrubbed() -> None:
    assert said('[{"error": {"code": 400, "message": "API key not valid"}}]') == "API key not valid"
    assert said('{"detail": [{"msg": "field required"}]}') == "field required"
    assert said("") == "no reason given"
    assert scrub("at http://user:pass@host/v1") == "at http://***host/v1"
    assert len(scrub("word " * 500)) == 300


@pytest.mark.parametrize(
    ("asked_for", "answered", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-11-20", True),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-11-20", False),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("gpt-3.5-turbo", "gpt-3.5-turbo-0125", True),
        ("folder/of/model", "folder/of/model@main", True),
        ("Qwen/Qwen3-8B", "qwen3-8b", True),
        ("Qwen/Qwen3-8B", "other/Qwen3-8B", False),
        ("llama3.2", "llama3.2:latest", True),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1", True),
        ("gemini-2.5-flash", "models/gemini-2.5-flash", True),
    ],
)
def test_which_names_are_the_same_model(asked_for: str, answered: str, same: bool) -> None:
    assert same_model(asked_for, answered) is same


# --- keys, addresses, options ----------------------------------------------------------------------------------------


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        connect(parse("openai/gpt-4o"))
    with pytest.raises(ConfigError, match="MINE is not set"):
        connect(parse({"model": "vllm/m", "api_key_env": "MINE"}))
    connect(parse("vllm/m"))
    connect(parse("openai/m@http://127.0.0.1:9/v1"))


def test_a_key_where_a_name_belongs_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="name of the environment variable") as caught:
        connect(parse({"model": "openai/m", "api_key_env": "sk-proj-secret"}))
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", "two words")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY has a space") as caught:
        connect(parse("openai/m"))
    assert "two" not in str(caught.value)


def test_the_key_is_not_in_what_a_backend_shows() -> None:
    backend = connect(parse("openai/m"))
    assert isinstance(backend, ChatBackend)
    assert KEY not in repr(backend) + repr(backend.endpoint) and backend.endpoint.key == KEY


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"base_url": "127.0.0.1:8000/v1"}, "which is no address"),
        ({"timeout_s": 0}, "seconds above 0"),
        ({"timeout_s": "long"}, "expected a float"),
        ({"timeout_s": True}, "expected a float"),
        ({"logprobs": 1}, "expected a bool"),
        ({"extra_body": {"n": 4}}, "'n'"),
        ({"price": {"input": 1}}, "no 'output'"),
    ],
)
def test_options_that_can_not_be(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(parse({"model": "openai/m", **options}))
    assert complaint in str(caught.value)


def test_the_environment_is_read_when_a_backend_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere/v1/")
    backend = connect(parse("openai/m"))
    assert isinstance(backend, ChatBackend) and backend.endpoint.urls == ("http://elsewhere/v1",)
    monkeypatch.setenv("OPENAI_BASE_URL", "elsewhere")
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        connect(parse("openai/m"))
