"""What all services that speak OpenAI's chat API share: the request, the reply, the errors.

The SDK is used for what it knows: the first call goes through it, and its address and headers serve all that follow
on the same connection pool. Bodies are written and read here. What the SDK adds around each call (options, models of
request and reply) would take twice the time of the call itself.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pluribus.backends import ModelSpec, Request, check_wishes, services
from pluribus.backends._http_errors import broken_off, objection, retry_after_s, said, scrub, status_error
from pluribus.backends._logprobs import alternatives, of_continuation, of_tokens
from pluribus.backends._prices import price_of
from pluribus.backends._think import split_think
from pluribus.errors import BackendError, BadReply, CallTimeout, ConfigError, Refused, WrongModel
from pluribus.types import Completion, Message, Sampling

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

T = TypeVar("T")

COMMON_OPTIONS = ("api_key_env", "timeout_s", "extra_body", "logprobs", "guided", "context_length", "price")
"""The options of every service here; a service may have more."""

_CONNECTIONS = 10_000
_CONNECT_TIMEOUT_S = 15.0
_DEFAULT_TIMEOUT_S = 600.0
_IDLE_S = 30.0
_SEED_RANGE = 2**31
_OWN_FIELDS = frozenset({"model", "messages", "n", "stream"})


# --- from spec and environment to an endpoint ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how one model is asked."""

    model: str
    """The backend's identity, `service/name`."""
    asked: str
    """The name that is sent."""
    urls: tuple[str, ...]
    """Base URLs of replicas; requests go round."""
    key: str | None = field(repr=False)
    key_env: str | None
    checks_model: bool = True
    """The reply names its model, and it must be the one that was asked."""
    timeout_s: float = _DEFAULT_TIMEOUT_S
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    logprobs: bool = False
    guided: bool = False
    """The service takes a JSON schema for the reply."""
    continues: bool = False
    """The service tells the log-probabilities of a given reply."""
    prefills: bool = False
    """The service goes on with a reply that was begun."""
    context_length: int | None = None
    """Most tokens of prompt and completion together, where the user said."""


def option(spec: ModelSpec, name: str, kind: type[T], default: T) -> T:
    """An option of a spec, of one type; an integer is fine where a float is meant."""
    value = spec.options.get(name, default)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ConfigError(f"option {name} of {spec.model} is {value!r}; expected a {kind.__name__}")


def common(spec: ModelSpec) -> dict[str, Any]:
    """The options every service has, checked; the price is checked too, so that a typo shows before the run."""
    timeout_s = option(spec, "timeout_s", float, _DEFAULT_TIMEOUT_S)
    if timeout_s <= 0:
        raise ConfigError(f"option timeout_s of {spec.model} is {timeout_s:g}; expected seconds above 0")
    extra = option(spec, "extra_body", dict, {})
    for name in _OWN_FIELDS & set(extra):
        raise ConfigError(f"option extra_body of {spec.model} sets {name!r}, which is not yours to set here")
    price_of(spec)
    context_length = option(spec, "context_length", int, 0)
    if context_length < 0 or ("context_length" in spec.options and not context_length):
        raise ConfigError(f"option context_length of {spec.model} is {context_length}; expected tokens, from 1")
    return {
        "timeout_s": timeout_s,
        "extra_body": extra,
        "logprobs": option(spec, "logprobs", bool, False),
        "context_length": context_length or None,
        "guided": option(spec, "guided", bool, bool(services()[spec.service].get("guided"))),
        "continues": bool(services()[spec.service].get("continues")),
        "prefills": bool(services()[spec.service].get("prefills")),
    }


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def key_from(variable: str, what: str, *, optional: bool = False) -> str | None:
    """The key in an environment variable; the error names the variable and never shows what is in it."""
    if not _VARIABLE.match(variable):
        raise ConfigError(
            f"{what} must be the name of the environment variable that holds the key; what stands there is no such name"
        )
    key = os.environ.get(variable, "").strip()
    if not key and not optional:
        raise ConfigError(f"the environment variable {variable} is not set ({what})", hint=f"export {variable}=…")
    if any(not "!" <= letter <= "~" for letter in key):
        raise ConfigError(
            f"the key in {variable} has a space or a letter that no key has", hint=f"export {variable} again"
        )
    return key or None


def checked_url(url: str, what: str) -> str:
    """The URL, when it is one.

    >>> checked_url("http://127.0.0.1:8000/v1/", "the base URL")
    'http://127.0.0.1:8000/v1'
    """
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{what} is {scrub(url)!r}, which is no address", hint="write http://HOST:PORT/v1")
    return url.strip().rstrip("/")


def on_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


# --- the backend -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Line:
    """An open way to one address: the SDK's client, its connection pool, and the form of its requests."""

    sdk: AsyncOpenAI
    pool: httpx2.AsyncClient
    form: httpx2.Request | None = None
    """A request as the SDK makes it, once one was answered."""

    async def post(self, body: Mapping[str, Any]) -> httpx2.Response:
        """The response, whatever its status."""
        import httpx2
        import openai

        if self.form is not None:
            return await self.pool.send(_like(self.form, body))
        try:
            response = await self.sdk.post("/chat/completions", cast_to=httpx2.Response, body=body)
        except openai.APIStatusError as error:
            response = error.response
        self.form = response.request
        return response


def _like(form: httpx2.Request, body: Mapping[str, Any]) -> httpx2.Request:
    import httpx2

    headers = [(name, value) for name, value in form.headers.raw if name.lower() != b"content-length"]
    content = json.dumps(body).encode()
    return httpx2.Request(form.method, form.url, headers=headers, content=content, extensions=dict(form.extensions))


OpenClient = Callable[[Endpoint, str, "httpx2.AsyncClient"], "AsyncOpenAI"]


class ChatBackend:
    """Asks one model of one service. Nothing is sent before the first `complete`.

    `adjusted` holds what the model was found to refuse: parameter → the name it is sent under, or None: not sent.
    """

    def __init__(self, endpoint: Endpoint, open_client: OpenClient) -> None:
        self.endpoint = endpoint
        self.model = endpoint.model
        self.context_length = endpoint.context_length
        self.adjusted: dict[str, str | None] = {}
        self._open_client = open_client
        self._urls = itertools.cycle(endpoint.urls)
        self._lines: dict[str, Line] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def complete(self, request: Request) -> Completion:
        url = next(self._urls)
        line = self._line(url)  # the first one imports the SDK, which is no part of the call's latency
        body = _body(self.endpoint, request)
        started = time.perf_counter()
        content = await self._answered(line, url, body)
        latency_s = time.perf_counter() - started
        if request.continuation is not None:
            return _continuation(self.endpoint, url, content, latency_s, request.continuation)
        stop = request.sampling.stop if "stop" in self.adjusted else ()
        return _completion(self.endpoint, url, content, latency_s, stop, request.top_logprobs)

    async def close(self) -> None:
        lines, self._lines = self._lines, {}
        for line in lines.values():
            await line.sdk.close()

    async def _answered(self, line: Line, url: str, body: dict[str, Any]) -> bytes:
        """The body of the answer. A parameter the model objects to is dropped or renamed, and it is asked again."""
        while True:
            sent = _adjust(body, self.adjusted)
            response = await self._post(line, url, sent)
            if response.status_code < 300:
                return response.content
            found = objection(response.text, sent) if response.status_code in (400, 422) else None
            if found is None:
                raise _refusal(self.endpoint, url, response)
            self.adjusted[found[0]] = found[1]

    async def _post(self, line: Line, url: str, body: dict[str, Any]) -> httpx2.Response:
        """The response, whatever its status."""
        import aiohttp
        import httpx2
        import openai

        try:
            async with asyncio.timeout(self.endpoint.timeout_s):
                return await line.post(body)
        except TimeoutError:
            raise CallTimeout(f"{_where(self.endpoint, url)}: no answer in {self.endpoint.timeout_s:g} s") from None
        except (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
            raise broken_off(error, _where(self.endpoint, url), self.endpoint.key) from None

    def _line(self, url: str) -> Line:
        """One client and connection pool per address and event loop: a pool can not move to another loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._lines, self._loop = {}, loop
        if url not in self._lines:
            pool = http_client(url, self.endpoint.timeout_s)
            self._lines[url] = Line(self._open_client(self.endpoint, url, pool), pool)
        return self._lines[url]


def http_client(url: str, timeout_s: float) -> httpx2.AsyncClient:
    """The SDK's aiohttp client: wide open, because `pluribus.traffic` does the limiting."""
    import httpx2
    import openai

    return openai.DefaultAioHttpClient(
        limits=httpx2.Limits(
            max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS, keepalive_expiry=_IDLE_S
        ),
        timeout=httpx2.Timeout(timeout_s, connect=min(_CONNECT_TIMEOUT_S, timeout_s)),
        verify=_ssl_context(),
        trust_env=not on_loopback(url),
    )


@cache
def _ssl_context() -> ssl.SSLContext:
    """Reading the certificates takes longer than a call, so it is done once."""
    import httpx2

    return httpx2.create_ssl_context()


# --- request ---------------------------------------------------------------------------------------------------------


def _body(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    check_wishes(request)
    if request.continuation is not None:
        return _continued(endpoint, request, request.continuation)
    body: dict[str, Any] = {
        "model": endpoint.asked,
        "messages": [_message(message) for message in request.messages],
        **_sampling(request.sampling),
    }
    if endpoint.logprobs or request.top_logprobs:
        body["logprobs"] = True
    if request.top_logprobs:
        body["top_logprobs"] = request.top_logprobs
    if endpoint.guided and request.schema is not None:
        body["response_format"] = _response_format(request.schema)
    if request.prefill is not None:
        body.update(_begun(endpoint, request, request.prefill))
    body.update(endpoint.extra_body)
    return body


def _begun(endpoint: Endpoint, request: Request, text: str) -> dict[str, Any]:
    """What has the service go on with a reply, in the form of vLLM and SGLang."""
    if not endpoint.prefills:
        raise Refused(
            f"{endpoint.model}: this service does not go on with a reply that was begun",
            hint="ask the model on a vLLM server, vllm/NAME@URL, or in this process, local/NAME",
        )
    return {
        "messages": [_message(message) for message in (*request.messages, Message("assistant", text))],
        "continue_final_message": True,
        "add_generation_prompt": False,
    }


def _continued(endpoint: Endpoint, request: Request, text: str) -> dict[str, Any]:
    """The text as the beginning of a reply that is to be gone on with, and the prompt's log-probabilities with it.

    vLLM takes 0 alternatives for none in some versions, and generates at least 1 token.
    """
    if not endpoint.continues:
        raise Refused(
            f"{endpoint.model}: this service does not tell the log-probabilities of a given text",
            hint="ask the model on a vLLM server, vllm/NAME@URL, or in this process, local/NAME",
        )
    if not text:
        raise Refused("the continuation is empty")
    messages = (*request.messages, Message("assistant", text))
    return {
        "model": endpoint.asked,
        "messages": [_message(message) for message in messages],
        "max_tokens": 1,
        "prompt_logprobs": 1,
        "continue_final_message": True,
        "add_generation_prompt": False,
        **endpoint.extra_body,
    }


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": dict(schema)}}


def _message(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.content}


def _sampling(sampling: Sampling) -> dict[str, Any]:
    """Only what is set; the seed within 31 bits, which every service can read."""
    fields: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
    }
    if sampling.stop:
        fields["stop"] = list(sampling.stop)
    if sampling.seed is not None:
        fields["seed"] = sampling.seed % _SEED_RANGE
    return fields


def _adjust(body: dict[str, Any], adjusted: Mapping[str, str | None]) -> dict[str, Any]:
    """The body with parameters renamed, or dropped where the new name is None."""
    if not adjusted:
        return body
    return {new: value for name, value in body.items() if (new := adjusted.get(name, name)) is not None}


# --- reply -----------------------------------------------------------------------------------------------------------


def _completion(
    endpoint: Endpoint, url: str, content: bytes, latency_s: float, stop: tuple[str, ...], top_logprobs: int
) -> Completion:
    """A completion out of the body of a 2xx reply.

    Raises:
        BadReply: not JSON, no choices, no text.
        WrongModel: another model answered.
        BackendError: an error in the body, as gateways send it under status 200.
    """
    reply = _object(endpoint, url, content)
    choice = _first_choice(endpoint, url, reply)
    answered = _answering_model(endpoint, url, reply)
    text, reasoning = _said(endpoint, url, choice)
    prompt, completion, cached, thought = _usage(reply.get("usage"))
    return Completion(
        text=_cut(text, stop),
        model=f"{endpoint.model.partition('/')[0]}/{answered}",
        finish_reason=choice.get("finish_reason"),
        reasoning=reasoning,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        reasoning_tokens=thought,
        logprobs=of_tokens(choice) if endpoint.logprobs or top_logprobs else None,
        latency_s=latency_s,
        top_logprobs=alternatives(choice) if top_logprobs else None,
    )


def _continuation(endpoint: Endpoint, url: str, content: bytes, latency_s: float, text: str) -> Completion:
    """The log-probabilities of the text's tokens out of the body of a 2xx reply; what was generated is left out.

    Raises:
        Refused: they are not there, or which of the prompt's tokens are the text can not be told.
    """
    reply = _object(endpoint, url, content)
    answered = _answering_model(endpoint, url, reply)
    logprobs = of_continuation(reply.get("prompt_logprobs"), text)
    if logprobs is None:
        known = reply.get("prompt_logprobs") is not None
        raise Refused(
            f"{_where(endpoint, url)}: the reply does not tell the log-probabilities of the given text"
            + (": the prompt's tokens do not end with it" if known else ""),
            hint="the chat template may change the text; ask in this process, local/NAME" if known
            else "is it a vLLM server? ask in this process otherwise, local/NAME",
        )  # fmt: skip
    prompt, completion, cached, _ = _usage(reply.get("usage"))
    return Completion(
        text=text,
        model=f"{endpoint.model.partition('/')[0]}/{answered}",
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        logprobs=logprobs,
        latency_s=latency_s,
    )


def _object(endpoint: Endpoint, url: str, content: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(content)
    except ValueError:
        start = scrub(content[:80].decode("utf-8", "replace"), endpoint.key)
        raise BadReply(f"{_where(endpoint, url)}: the reply is not JSON: {start!r}") from None
    if not isinstance(reply, dict):
        raise BadReply(f"{_where(endpoint, url)}: the reply is a JSON {type(reply).__name__}, not an object")
    if reply.get("error"):
        raise _error_in_body(endpoint, url, reply["error"])
    return reply


def _error_in_body(endpoint: Endpoint, url: str, error: Any) -> BackendError:
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    reason = scrub(said(json.dumps(error)), endpoint.key)
    return status_error(status, reason, None, _where(endpoint, url), endpoint.key_env)


def _first_choice(endpoint: Endpoint, url: str, reply: dict[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise BadReply(f"{_where(endpoint, url)}: the reply has no choices")
    first: dict[str, Any] = choices[0]
    return first


def _answering_model(endpoint: Endpoint, url: str, reply: dict[str, Any]) -> str:
    answered = reply.get("model")
    if not isinstance(answered, str) or not answered:
        return endpoint.asked
    if endpoint.checks_model and not same_model(endpoint.asked, answered):
        raise WrongModel(
            f"{_where(endpoint, url)}: asked for {endpoint.asked!r}, {scrub(answered, endpoint.key)!r} answered",
            hint="name the model as the server does, or give the server's name in the option name_on_server",
        )
    return answered


def _said(endpoint: Endpoint, url: str, choice: dict[str, Any]) -> tuple[str, str | None]:
    """Text and reasoning of a choice; a model that ran out of tokens while thinking said nothing, which is a text."""
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text, parts_thought = _flat(message.get("content"))
    thought = message.get("reasoning_content") or message.get("reasoning") or parts_thought
    if message.get("refusal") or (not text and choice.get("finish_reason") == "content_filter"):
        reason = scrub(str(message.get("refusal") or "its content filter"), endpoint.key)
        raise Refused(f"{_where(endpoint, url)}: the model refused to answer: {reason}")
    if text is None and choice.get("finish_reason") != "length":
        raise BadReply(f"{_where(endpoint, url)}: the reply has no text")
    text, inline = split_think(text or "")
    return text, thought if isinstance(thought, str) and thought else inline


def _flat(content: Any) -> tuple[str | None, str | None]:
    """Content that comes in parts, as one text, and what its thinking parts hold."""
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return None, None
    parts = [part for part in content if isinstance(part, dict)]
    said = "".join(str(part["text"]) for part in parts if part.get("type") == "text" and "text" in part)
    thought = "".join(_flat(part.get("thinking"))[0] or "" for part in parts if part.get("type") == "thinking")
    return said, thought or None


def _cut(text: str, stop: tuple[str, ...]) -> str:
    """The text up to the first stop string, for services that take none.

    >>> _cut("one. two. three.", (". t",))
    'one'
    """
    ends = [at for word in stop if (at := text.find(word)) >= 0]
    return text[: min(ends)] if ends else text


def _usage(usage: Any) -> tuple[int | None, int | None, int | None, int | None]:
    """Prompt, completion, cached and reasoning tokens. Where a service counts reasoning apart from the completion,
    the total tells, and it is added: completion tokens are all generated tokens."""
    if not isinstance(usage, dict):
        return None, None, None, None
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    total = _count(usage, "total_tokens")
    if prompt is not None and completion is not None and total is not None:
        completion = max(completion, total - prompt)
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens")
    thought = _count(usage.get("completion_tokens_details"), "reasoning_tokens")
    return prompt, completion, cached, thought


def _count(table: Any, name: str) -> int | None:
    value = table.get(name) if isinstance(table, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# --- names and errors ------------------------------------------------------------------------------------------------

_VERSION = re.compile(r"(?:[-@:](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{3,4}|latest|main|preview|free))+\Z")


def same_model(asked: str, answered: str) -> bool:
    """Whether a reply's model is the one asked for; dates, revisions, case and path prefixes are no difference.

    >>> same_model("gpt-4o", "gpt-4o-2024-11-20"), same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    >>> same_model("a/b", "a/b@main"), same_model("gemini-2.5-flash", "models/gemini-2.5-flash")
    (True, True)
    """
    one, other = _plain(asked), _plain(answered)
    if one == other or "latest" in one or one.endswith("/auto"):
        return True
    if _family(one) != _family(other) and not _same_tail(_family(one), _family(other)):
        return False
    dates = {re.sub(r"\D", "", match[0]) for name in (one, other) if (match := _VERSION.search(name))} - {""}
    return len(dates) < 2


def _plain(name: str) -> str:
    return name.lower().removeprefix("models/").rstrip("/")


def _family(name: str) -> str:
    """The name without date and revision."""
    return _VERSION.sub("", name)


def _same_tail(one: str, other: str) -> bool:
    """One of the two leaves out the organisation or the folder."""
    return ("/" in one) != ("/" in other) and one.rpartition("/")[2] == other.rpartition("/")[2]


def _where(endpoint: Endpoint, url: str) -> str:
    return f"{endpoint.model} at {scrub(url.partition('?')[0], endpoint.key)}"


def _refusal(endpoint: Endpoint, url: str, response: httpx2.Response) -> BackendError:
    reason = scrub(said(response.text), endpoint.key)
    wait_s = retry_after_s(response.headers, time.time(), response.text)
    return status_error(response.status_code, reason, wait_s, _where(endpoint, url), endpoint.key_env)
