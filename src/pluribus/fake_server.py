"""A model server that is not one: OpenAI's chat and embeddings on real HTTP, with chosen latency, answers and faults.

    with FakeServer(latency_s=0.2, faults={"429": 0.1}) as server:
        ...  # openai/any-name@{server.url}
        server.stats()

or, in a terminal: `python -m pluribus.fake_server --port 8000 --latency 0.2 --fault 429=0.1`.

It runs in a process of its own, so that it takes no time from what is measured against it. What it answers depends
on the request's content alone, never on the order of arrival: the same request gets the same answer, and the n-th
arrival of the same request the same fault, however many others are in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import dataclasses
import hashlib
import http.client
import json
import math
import os
import random
import re
import signal
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from pluribus.backends import Request
from pluribus.backends.scripted import SCRIPTS, Draws, heavy_tailed, likeliest, word_logprob
from pluribus.errors import ConfigError, UnknownName
from pluribus.types import Message, Sampling

FAULTS = ("429", "500", "slow", "cut", "garbage", "empty_choices", "no_text", "wrong_model")
ANSWERS = ("number", "keyed", "echo", "constant")
REASONING = ("none", "field", "think")
GUIDED = ("follows", "ignores", "refuses")

_DIMENSIONS = 64
_MOST_INPUTS = 2048
_MOST_WORDS = 8192

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the server behaves. Rates are in [0, 1], times in seconds."""

    latency_s: float = 0.0
    """Time to an answer; the median when `latency_sigma` is above 0."""
    latency_sigma: float = 0.0
    """Spread of a log-normal latency (sigma of its logarithm); 1.0 is heavy-tailed: 1 % take 10 times the median."""
    latencies: Mapping[str, float] = field(default_factory=dict)
    """Latency of single models, by name."""
    faults: Mapping[str, float] = field(default_factory=dict)
    """Fault → its rate; one of FAULTS."""
    capacity: int | None = None
    """More requests in flight than this are answered 429."""
    answers: str = "number"
    """A script of `pluribus.backends.scripted`: `number`, a digit drawn from the request; `keyed`, what stands behind
    `[key: …]` in the messages, right with probability `accuracy`; `echo`, the last message; `constant`, `text`."""
    accuracy: float = 0.6
    text: str = "{final answer: 42}"
    reasoning: str = "none"
    """Thinks aloud in the `reasoning_content` field (`field`) or in `<think>` tags (`think`)."""
    guided: str = "follows"
    """What becomes of a JSON schema in `response_format`: one of GUIDED."""
    logprobs: bool = True
    """Gives log-probabilities when asked: `logprobs` with `top_logprobs` as OpenAI, `prompt_logprobs` as vLLM."""
    rejecting: tuple[str, ...] = ()
    """Models that refuse `temperature`, `top_p` and `max_tokens`, as reasoning models do."""
    models: tuple[str, ...] = ()
    """The models there are; empty: any name is one."""
    api_key: str | None = None
    """Requests without this bearer token get a 401."""
    retry_after_s: float = 0.05
    slow_s: float = 30.0
    """What the fault `slow` adds to the latency."""
    seed: int = 0


def check(behaviour: Behaviour) -> None:
    """UsageError for a fault or kind of answer there is not, or rates that can not be."""
    for kind in behaviour.faults:
        if kind not in FAULTS:
            raise UnknownName("fault", kind, FAULTS)
    if any(rate < 0 for rate in behaviour.faults.values()) or sum(behaviour.faults.values()) > 1 + 1e-9:
        raise ConfigError(f"the fault rates {dict(behaviour.faults)} are not shares of all requests: at most 1 in sum")
    if behaviour.answers not in ANSWERS:
        raise UnknownName("kind of answer", behaviour.answers, ANSWERS)
    if behaviour.guided not in GUIDED:
        raise UnknownName("kind of guided decoding", behaviour.guided, GUIDED)
    if behaviour.reasoning not in REASONING:
        raise UnknownName("kind of reasoning", behaviour.reasoning, REASONING)


# --- what is answered: plain functions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reply:
    kind: str
    """`ok`, a fault, `capacity` or the status of a refusal: what `/stats` counts."""
    status: int = 200
    body: bytes = b"{}"
    delay_s: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()
    works: bool = False
    """A model is busy with it until it is sent: it counts as in flight."""
    cut: float | None = None
    """Close the connection after this share of the bytes."""


def _fault(behaviour: Behaviour, draw: float) -> str:
    for kind, rate in behaviour.faults.items():
        draw -= rate
        if draw < 0:
            return kind
    return "ok"


def _text(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else json.dumps(content)


def _answer(behaviour: Behaviour, body: dict[str, Any], draws: Draws) -> str:
    """What the model says: a function of the messages and draws from the request."""
    texts, begun = [_text(message) for message in body["messages"]], None
    if body.get("continue_final_message") and not body.get("prompt_logprobs"):
        *texts, begun = texts
    messages = tuple(Message("user", text) for text in texts)
    schema = _schema(body) if behaviour.guided == "follows" else None
    request = Request(messages, Sampling(), schema=schema, prefill=begun)
    options = {"accuracy": behaviour.accuracy, "text": behaviour.text}
    return SCRIPTS[behaviour.answers](request, draws, options)


def _schema(body: dict[str, Any]) -> dict[str, Any] | None:
    """The JSON schema of `response_format`."""
    form = body.get("response_format")
    inner = form.get("json_schema") if isinstance(form, dict) else None
    schema = inner.get("schema") if isinstance(inner, dict) else None
    return schema if isinstance(schema, dict) else None


def _error(status: int, message: str, **fields: Any) -> _Reply:
    kind = "invalid_request_error" if status < 500 else "server_error"
    body = {"error": {"message": message, "type": kind, **fields}}
    return _Reply(str(status), status, json.dumps(body).encode())


def _objection(body: dict[str, Any]) -> _Reply | None:
    """The 400 of a reasoning model, in OpenAI's words."""
    for name in ("max_tokens", "temperature", "top_p"):
        if name in body:
            hint = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            message = f"Unsupported parameter: '{name}' is not supported with this model.{hint}"
            return _error(400, message, param=name, code="unsupported_parameter")
    return None


def _completion(behaviour: Behaviour, body: dict[str, Any], kind: str, draws: Draws) -> dict[str, Any]:
    answer = _answer(behaviour, body, draws)
    words = answer.split(" ")
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or len(words)
    message: dict[str, Any] = {"role": "assistant", "content": " ".join(words[:limit])}
    thoughts = "Let me see." if behaviour.reasoning != "none" else ""
    if behaviour.reasoning == "field":
        message["reasoning_content"] = thoughts
    if behaviour.reasoning == "think":
        message["content"] = f"<think>{thoughts}</think>\n{message['content']}"
    if kind == "no_text":
        message["content"] = None
    finish = "length" if limit < len(words) else "stop"
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish}
    if body.get("logprobs") and behaviour.logprobs:
        top, rng = int(body.get("top_logprobs") or 0), random.Random(json.dumps([body["model"], body["messages"]]))
        choice["logprobs"] = {"content": [_place(word, top, rng) for word in words[:limit]]}
    prompt_tokens = sum(_text(message).count(" ") + 1 for message in body["messages"])
    thought_tokens = len(thoughts.split())
    completion_tokens = min(limit, len(words)) + thought_tokens
    return {
        "id": f"chatcmpl-{draws.digest.hex()[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": "another-model" if kind == "wrong_model" else body["model"],
        "choices": [] if kind == "empty_choices" else [choice],
        "prompt_logprobs": _prompt_logprobs(behaviour, body),
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "completion_tokens_details": {"reasoning_tokens": thought_tokens},
        },
    }


def _place(word: str, top: int, rng: random.Random) -> dict[str, Any]:
    """A generated word and what might have stood there, as OpenAI writes it."""
    return {
        **_scored(word, word_logprob(word)),
        "top_logprobs": [_scored(*one) for one in likeliest(word, top, rng).items()],
    }


def _scored(word: str, logprob: float) -> dict[str, Any]:
    return {"token": word, "logprob": logprob, "bytes": list(word.encode())}


def _prompt_logprobs(behaviour: Behaviour, body: dict[str, Any]) -> list[dict[str, Any] | None] | None:
    """Every token of the prompt, the first without, as vLLM writes it: by id, and with the likeliest token where that
    is another one."""
    if not body.get("prompt_logprobs") or not behaviour.logprobs:
        return None
    *before, last = body["messages"]
    heads = [f"<|{message.get('role')}|>{_text(message)}<|end|>" for message in before]
    pieces = [*(piece for head in heads for piece in _pieces(head)), "<|assistant|>", *_pieces(_text(last))]
    if not body.get("continue_final_message"):
        pieces.append("<|end|>")
    return [None, *map(_prompt_place, pieces[1:])]


def _pieces(text: str) -> list[str]:
    """Words with the space before them."""
    return re.findall(r"\s*\S+|\s+", text)


def _prompt_place(piece: str) -> dict[str, Any]:
    logprob = word_logprob(piece.strip())
    first = logprob > -math.log(2)
    itself = {"logprob": logprob, "rank": 1 if first else 7, "decoded_token": piece}
    best = {"logprob": math.log1p(-math.exp(logprob)), "rank": 1, "decoded_token": " the"}
    return {str(len(piece)): itself} if first else {str(len(piece)): itself, "0": best}


def _embeddings(behaviour: Behaviour, body: dict[str, Any], kind: str, draws: Draws) -> dict[str, Any]:
    """Vectors of the texts: texts that share words are near each other, and a text's vector is always the same."""
    texts = _inputs(body)
    vectors = [_vector(text, int(body.get("dimensions") or _DIMENSIONS)) for text in texts]
    packed = body.get("encoding_format") == "base64"
    rows: list[dict[str, Any]] = [
        {"object": "embedding", "index": i, "embedding": _base64(vector) if packed else vector}
        for i, vector in enumerate(vectors)
    ]
    if kind == "no_text":
        rows[0]["embedding"] = None
    tokens = sum(text.count(" ") + 1 for text in texts)
    return {
        "object": "list",
        "data": [] if kind == "empty_choices" else rows[::-1],  # the index counts, not the order
        "model": "another-model" if kind == "wrong_model" else body["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _inputs(body: dict[str, Any]) -> list[str]:
    texts = body["input"]
    return [texts] if isinstance(texts, str) else texts


def _vector(text: str, dimensions: int) -> list[float]:
    """Each word adds 1 or −1 at three places that its hash chooses."""
    vector = [0.0] * dimensions
    for word in text.split() or [text]:
        for number in struct.unpack("<3Q", hashlib.blake2b(word.encode(), digest_size=24).digest()):
            vector[number % dimensions] += 1.0 if number >> 63 else -1.0
    length = sum(x * x for x in vector) ** 0.5
    return [x / length for x in vector] if length else [1.0, *vector[1:]]


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _inputs_objection(body: dict[str, Any]) -> _Reply | None:
    """The 400 of inputs that OpenAI does not take."""
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    if not texts or len(texts) > _MOST_INPUTS or not all(isinstance(text, str) and text for text in texts):
        return _error(400, f"'$.input' is invalid: 1 to {_MOST_INPUTS} texts are expected, none of them empty.")
    longest = max(text.count(" ") + 1 for text in texts)
    if longest > _MOST_WORDS:
        message = (
            f"This model's maximum context length is {_MOST_WORDS} tokens, however you requested {longest} tokens."
        )
        return _error(400, message)
    return None


def _too_many(behaviour: Behaviour, kind: str) -> _Reply:
    body = _error(429, "Rate limit reached, slow down.", code="rate_limit_exceeded").body
    return _Reply(kind, 429, body, headers=(("Retry-After", f"{behaviour.retry_after_s:g}"),))


Say = Callable[[Behaviour, dict[str, Any], str, Draws], dict[str, Any]]
"""(behaviour, body of the request, fault, draws) → body of the reply."""


class Desk:
    """Answers requests and keeps count; no sockets here."""

    def __init__(self, behaviour: Behaviour) -> None:
        check(behaviour)
        self.behaviour = behaviour
        self.in_flight = 0
        self.peak = 0
        self.kinds: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.paths: Counter[str] = Counter()
        self._arrivals: Counter[bytes] = Counter()
        self._salt = behaviour.seed.to_bytes(8, "big", signed=True)

    def stats(self) -> dict[str, Any]:
        return {
            "requests": sum(self.kinds.values()),
            "distinct": len(self._arrivals),
            "kinds": dict(self.kinds),
            "models": dict(self.models),
            "paths": dict(self.paths),
            "in_flight": self.in_flight,
            "peak": self.peak,
        }

    def answer(self, method: str, path: str, authorization: str, body: bytes) -> _Reply:
        route = method, path.partition("?")[0].rstrip("/").rpartition("/")[2]
        if route == ("GET", "stats"):
            return _Reply("", body=json.dumps(self.stats()).encode())
        if route == ("GET", "models"):
            return _Reply("", body=self._listing())
        if route in (("POST", "completions"), ("POST", "embeddings")):
            self.paths[path] += 1
            reply = (self._chat if route[1] == "completions" else self._embeddings)(authorization, body)
            self.kinds[reply.kind] += 1
            return reply
        return _error(404, f"Unknown request URL: {method} {path}.")

    def _listing(self) -> bytes:
        rows = [{"id": name, "object": "model", "owned_by": "pluribus"} for name in self.behaviour.models]
        return json.dumps({"object": "list", "data": rows}).encode()

    def _chat(self, authorization: str, raw: bytes) -> _Reply:
        try:
            body = json.loads(raw)
            model, messages = body["model"], body["messages"]
        except (ValueError, KeyError, TypeError):
            return _error(400, "The body is not a chat completion request.")
        refusal = self._stranger(authorization, model) or self._refusal(model, messages, body)
        return refusal or self._served(authorization, model, body, raw, _completion)

    def _embeddings(self, authorization: str, raw: bytes) -> _Reply:
        try:
            body = json.loads(raw)
            model = body["model"]
            objection = _inputs_objection(body)
        except (ValueError, KeyError, TypeError):
            return _error(400, "The body is not an embeddings request.")
        refusal = self._stranger(authorization, model) or objection
        return refusal or self._served(authorization, model, body, raw, _embeddings)

    def _stranger(self, authorization: str, model: Any) -> _Reply | None:
        """The refusal of a wrong key or an unknown model."""
        wanted = self.behaviour.api_key
        if wanted is not None and authorization not in (f"Bearer {wanted}", wanted):
            return _error(401, f"Incorrect API key provided: {authorization}.", code="invalid_api_key")
        if self.behaviour.models and model not in self.behaviour.models:
            return _error(404, f"The model `{model}` does not exist.", code="model_not_found")
        return None if isinstance(model, str) else _error(400, "'model' must be a string.")

    def _refusal(self, model: str, messages: Any, body: dict[str, Any]) -> _Reply | None:
        if not isinstance(messages, list) or not messages:
            return _error(400, "'messages' must be a list that is not empty.")
        if body.get("continue_final_message") and body.get("add_generation_prompt", True):
            return _error(400, "Cannot set both 'add_generation_prompt' and 'continue_final_message' to True.")
        if self.behaviour.guided == "refuses" and "response_format" in body:
            return _error(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported.")
        return _objection(body) if model in self.behaviour.rejecting else None

    def _served(self, authorization: str, model: str, body: dict[str, Any], raw: bytes, say: Say) -> _Reply:
        self.models[model] += 1
        content = Draws(raw, self._salt)
        self._arrivals[content.digest] += 1
        luck = Draws(content.digest, self._arrivals[content.digest].to_bytes(8, "big"))
        if self.behaviour.capacity is not None and self.in_flight >= self.behaviour.capacity:
            return _too_many(self.behaviour, "capacity")
        kind = _fault(self.behaviour, luck.number(0))
        if kind == "429":
            return _too_many(self.behaviour, kind)
        median_s = self.behaviour.latencies.get(model, self.behaviour.latency_s)
        delay_s = heavy_tailed(median_s, self.behaviour.latency_sigma, luck.number(1))
        if kind == "500":  # a rude server quotes the key it was sent
            broken = _error(500, f"The server had an error while serving {authorization or 'nobody'}.")
            return dataclasses.replace(broken, delay_s=delay_s, works=True)
        if kind == "garbage":
            return _Reply(kind, body=b"<html><body>It works!</body></html>", delay_s=delay_s, works=True)
        said = json.dumps(say(self.behaviour, body, kind, content)).encode()
        cut = (0.0 if luck.number(2) < 0.5 else 0.5) if kind == "cut" else None
        delay_s += self.behaviour.slow_s if kind == "slow" else 0.0
        return _Reply(kind, body=said, delay_s=delay_s, works=True, cut=cut)


# --- HTTP/1.1, the part that OpenAI's clients speak ------------------------------------------------------------------


def _wire(reply: _Reply) -> bytes:
    head = [f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, 'Error')}", "Content-Type: application/json"]
    head += [f"{name}: {value}" for name, value in reply.headers]
    head.append(f"Content-Length: {len(reply.body)}\r\n\r\n")
    return "\r\n".join(head).encode() + reply.body


class _Connection(asyncio.Protocol):
    """One keep-alive connection: a request is read whole, answered after its delay, then the next is read."""

    def __init__(self, desk: Desk, loop: asyncio.AbstractEventLoop) -> None:
        self.desk = desk
        self.loop = loop
        self.buffer = b""
        self.pending: asyncio.TimerHandle | None = None
        self.works = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self.pending is not None:
            self.pending.cancel()
            self._done()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.pending is None:
            self._read()

    def _read(self) -> None:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].decode("latin-1")
        length = _content_length(head)
        if len(self.buffer) < end + 4 + length:
            return
        body, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
        method, path, _ = head.split("\r\n", 1)[0].split(" ", 2)
        self._answer(self.desk.answer(method, path, _authorization(head), body))

    def _answer(self, reply: _Reply) -> None:
        self.works = reply.works
        self.desk.in_flight += reply.works
        self.desk.peak = max(self.desk.peak, self.desk.in_flight)
        self.pending = self.loop.call_later(reply.delay_s, self._send, reply)

    def _done(self) -> None:
        self.pending = None
        self.desk.in_flight -= self.works

    def _send(self, reply: _Reply) -> None:
        self._done()
        wire = _wire(reply)
        if reply.cut is not None:
            self.transport.write(wire[: int(len(wire) * reply.cut)])
            self.transport.close()
            return
        self.transport.write(wire)
        if self.buffer:
            self._read()


def _content_length(head: str) -> int:
    found = re.search(r"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return int(found[1]) if found else 0


def _authorization(head: str) -> str:
    """The key as it was sent: `Authorization` of OpenAI, `api-key` of Azure."""
    found = re.search(r"\r\n(?:authorization|api-key): ([^\r]*)", head, re.IGNORECASE)
    return found[1] if found else ""


async def serve(behaviour: Behaviour, host: str = "127.0.0.1", port: int = 0, until_stdin_closes: bool = False) -> None:
    """Serves until SIGTERM, SIGINT or, when asked for, until standard input closes; prints its base URL first."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    desk = Desk(behaviour)
    server = await loop.create_server(lambda: _Connection(desk, loop), host, port, backlog=2048)
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    if until_stdin_closes:
        threading.Thread(target=_watch_stdin, args=(loop, stop), daemon=True).start()
    sys.stdout.write(f"http://{host}:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await stop.wait()
    server.close()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """The parent's end of the pipe closes when the parent ends, however it ends."""
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(stop.set)


# --- the door for tests and benchmarks -------------------------------------------------------------------------------


class FakeServer:
    """The server in a process of its own, on a free port; ends with the `with` block, or with this process.

    Takes the fields of `Behaviour`. `url` is the base URL, ending in `/v1`.
    """

    def __init__(self, **behaviour: Any) -> None:
        known = [f.name for f in dataclasses.fields(Behaviour)]
        for name in behaviour:
            if name not in known:
                raise UnknownName("setting of the fake server", name, known)
        self.behaviour = Behaviour(**behaviour)
        check(self.behaviour)
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "pluribus.fake_server", "--until-stdin-closes", "--settings"]
        self._process = subprocess.Popen(  # noqa: S603 - this very module, no shell
            [*command, json.dumps(dataclasses.asdict(self.behaviour))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.url = _first_line(self._process)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the server for sure; a second call does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin and process.stdout
        process.stdin.close()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def stats(self) -> dict[str, Any]:
        """Requests so far, in all, distinct, by kind of reply and by model; requests in flight now and at most."""
        host = self.url.split("/")[2]
        connection = http.client.HTTPConnection(host, timeout=10)
        try:
            connection.request("GET", "/stats")
            stats: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return stats


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """What the server prints when it listens: its URL."""
    assert process.stdout
    watchdog = threading.Timer(_START_TIMEOUT_S, process.kill)
    watchdog.start()
    line = process.stdout.readline().decode().strip()
    watchdog.cancel()
    if not line:
        raise RuntimeError(f"the fake server did not start within {_START_TIMEOUT_S:g} s")
    return line


def _pairs(values: list[str]) -> dict[str, float]:
    """`["429=0.1"]` → `{"429": 0.1}`."""
    return {name: float(number) for name, _, number in (value.rpartition("=") for value in values)}


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m pluribus.fake_server", description="An OpenAI-compatible test server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any free port")
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--latency-sigma", type=float, default=0.0, help="above 0: log-normal, 1 is heavy-tailed")
    parser.add_argument("--latency-of", action="append", default=[], metavar="MODEL=SECONDS")
    parser.add_argument("--fault", action="append", default=[], metavar="KIND=RATE", help=", ".join(FAULTS))
    parser.add_argument("--capacity", type=int, metavar="N", help="429 above N requests in flight")
    parser.add_argument("--answers", choices=ANSWERS, default="number")
    parser.add_argument("--accuracy", type=float, default=0.6)
    parser.add_argument("--reasoning", choices=REASONING, default="none")
    parser.add_argument("--guided", choices=GUIDED, default="follows", help="what becomes of a JSON schema")
    parser.add_argument("--rejecting", action="append", default=[], metavar="MODEL")
    parser.add_argument("--model", action="append", default=[], help="the models there are; default: any name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settings", help=argparse.SUPPRESS)
    parser.add_argument("--until-stdin-closes", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _behaviour(flags: argparse.Namespace) -> Behaviour:
    return Behaviour(
        latency_s=flags.latency,
        latency_sigma=flags.latency_sigma,
        latencies=_pairs(flags.latency_of),
        faults=_pairs(flags.fault),
        capacity=flags.capacity,
        answers=flags.answers,
        accuracy=flags.accuracy,
        reasoning=flags.reasoning,
        guided=flags.guided,
        rejecting=tuple(flags.rejecting),
        models=tuple(flags.model),
        seed=flags.seed,
    )


def main(argv: list[str] | None = None) -> None:
    flags = _arguments(argv)
    if flags.settings:
        asyncio.run(serve(Behaviour(**json.loads(flags.settings)), until_stdin_closes=flags.until_stdin_closes))
    else:
        asyncio.run(serve(_behaviour(flags), flags.host, flags.port))


if __name__ == "__main__":
    main()
