"""Models behind `/v1/embeddings`: OpenAI's, and every server that speaks that API: `openai/MODEL@http://…`.

The key and the address are read from the environment when texts are embedded, so what the cache holds needs neither.
Texts go in batches, several at once; what may succeed when asked again is asked again. A text that may be longer than
the model's window is sent in several pieces.

Options: `dimensions` (shorter vectors, where the model offers them), `window` (tokens the model reads at once),
`batch` (texts of one request), `concurrency`, `attempts`, `timeout_s`, `api_key_env`, `base_url`, `encoding`
(base64 or float).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import os
import random
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pluribus.backends._chat import checked_url, http_client, key_from, on_loopback, same_model
from pluribus.backends._http_errors import broken_off, retry_after_s, said, scrub, status_error
from pluribus.embedders import at_least_one, option
from pluribus.embedders._windows import embed_windows
from pluribus.errors import (
    BackendError,
    BadReply,
    CallTimeout,
    ConfigError,
    RateLimited,
    ServerError,
    WrongModel,
)

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    from numpy.typing import NDArray
    from openai import AsyncOpenAI

T = TypeVar("T")

FORM = "openai/MODEL"
OPTIONS = (
    "api_key_env",
    "attempts",
    "base_url",
    "batch",
    "concurrency",
    "dimensions",
    "encoding",
    "timeout_s",
    "window",
)

_ADDRESS = "https://api.openai.com/v1"
_ADDRESS_ENV, _KEY_ENV = "OPENAI_BASE_URL", "OPENAI_API_KEY"
_NO_KEY = "none"
"""Sent where a server wants none: the SDK insists on one."""
_BYTES_PER_TOKEN = 3
"""A cautious guess: English has about 4.5, code and formulas 3."""
_REQUEST_TOKENS = 200_000
"""OpenAI takes 300,000 in one request; the rest is for the guess."""
_BASE_S, _CAP_S, _PATIENCE_S = 0.5, 30.0, 300.0
"""Backoff: its first step, its longest, and the longest Retry-After that is waited for."""


@dataclass(frozen=True, slots=True)
class Settings:
    model: str
    base_url: str
    """Empty: the environment's, else OpenAI's."""
    api_key_env: str
    dimensions: int
    """0: as many as the model gives."""
    window: int
    batch: int
    concurrency: int
    attempts: int
    """Tries of one request, the first included."""
    timeout_s: float
    encoding: str


def open(rest: str, options: Mapping[str, str]) -> OpenAI:
    """Opens it; nothing is sent and no key is read.

    Raises:
        ConfigError: no model named, an option of the wrong type, an address that is none.
    """
    if not rest:
        raise ConfigError("embedder 'openai' names no model", hint="write openai/text-embedding-3-small")
    encoding = option(options, "encoding", str, "base64")
    if encoding not in ("base64", "float"):
        raise ConfigError(f"embedder option encoding is {encoding!r}; expected base64 or float")
    timeout_s = option(options, "timeout_s", float, 120.0)
    if timeout_s <= 0:
        raise ConfigError(f"embedder option timeout_s is {timeout_s:g}; expected seconds above 0")
    address = option(options, "base_url", str, "")
    return OpenAI(
        Settings(
            model=rest,
            base_url=checked_url(address, f"the address of openai/{rest}") if address else "",
            api_key_env=option(options, "api_key_env", str, ""),
            dimensions=at_least_one(options, "dimensions", 1) if "dimensions" in options else 0,
            window=max(3, at_least_one(options, "window", 8000)),
            batch=at_least_one(options, "batch", 256),
            concurrency=at_least_one(options, "concurrency", 8),
            attempts=at_least_one(options, "attempts", 5),
            timeout_s=timeout_s,
            encoding=encoding,
        )
    )


class OpenAI:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.dimension = settings.dimensions or None
        self.chunk = settings.batch * settings.concurrency
        self.windowed = 0
        self.tokens = 0
        """What the service counted so far."""
        how = [f"dimensions={settings.dimensions}"] if settings.dimensions else []
        how += [f"window={settings.window}"] if settings.window != 8000 else []
        self.name = f"openai/{settings.model}" + (f"[{','.join(how)}]" if how else "")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        line = _line(self.settings)
        vectors_B_D, windowed = embed_windows(
            texts, _guess_tokens, self.settings.window, lambda pieces: self._asked(line, pieces)
        )
        self.windowed += windowed
        self.dimension = vectors_B_D.shape[1]
        return vectors_B_D

    def _asked(self, line: Line, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        replies = _block(_all_asked(line, list(_batches(texts, self.settings.batch))))
        self.tokens += sum(tokens for _, tokens in replies)
        vectors = [vector for vectors, _ in replies for vector in vectors]
        if len({len(vector) for vector in vectors}) != 1:
            raise BadReply(f"{line.where}: the vectors are not of one length")
        return np.stack(vectors)


def _guess_tokens(texts: Sequence[str]) -> list[int]:
    return [len(text.encode()) // _BYTES_PER_TOKEN + 1 for text in texts]


def _batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """In order, at most `most` texts and about 200,000 tokens at a time.

    >>> [len(batch) for batch in _batches(["x"] * 5, 2)]
    [2, 2, 1]
    """
    batch: list[str] = []
    size = 0
    for text, tokens in zip(texts, _guess_tokens(texts), strict=True):
        if batch and (len(batch) == most or size + tokens > _REQUEST_TOKENS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += tokens
    yield batch


# --- the way to the service ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """Where and how the model is asked; the key stands in no message."""

    settings: Settings
    url: str
    key: str | None = field(repr=False)
    key_env: str

    @property
    def where(self) -> str:
        return f"openai/{self.settings.model} at {scrub(self.url.partition('?')[0], self.key)}"


def _line(settings: Settings) -> Line:
    inherited = os.environ.get(_ADDRESS_ENV, "").split(",")[0].strip()
    url = settings.base_url or checked_url(inherited or _ADDRESS, f"the environment variable {_ADDRESS_ENV}")
    variable = settings.api_key_env or _KEY_ENV
    what = "the option api_key_env" if settings.api_key_env else "the key of openai"
    return Line(
        settings, url, key_from(variable, what, optional=on_loopback(url) and not settings.api_key_env), variable
    )


Reply = tuple[list["NDArray[np.float32]"], int]
"""Vectors in the order of the texts, and the tokens the service counted."""


async def _all_asked(line: Line, batches: Sequence[Sequence[str]]) -> list[Reply]:
    """Every batch's reply, some at once; the first error ends them all."""
    import openai

    gate = asyncio.Semaphore(line.settings.concurrency)

    async def one(number: int, batch: Sequence[str]) -> Reply:
        async with gate:
            return await _patiently(client, line, batch, random.Random(number))

    async with openai.AsyncOpenAI(
        base_url=line.url,
        api_key=line.key or _NO_KEY,
        max_retries=0,
        timeout=line.settings.timeout_s,
        http_client=http_client(line.url, line.settings.timeout_s),
    ) as client:
        tasks = [asyncio.ensure_future(one(number, batch)) for number, batch in enumerate(batches)]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _patiently(client: AsyncOpenAI, line: Line, batch: Sequence[str], jitter: random.Random) -> Reply:
    """The reply, asked for again where that may help: exponential backoff with jitter, never sooner than asked for."""
    tries = 0
    while True:
        tries += 1
        try:
            return _read(line, await _post(client, line, batch), len(batch))
        except BackendError as error:
            asked_s = (error.retry_after_s or 0.0) if isinstance(error, RateLimited | ServerError) else 0.0
            if not error.retryable or tries >= line.settings.attempts or asked_s > _PATIENCE_S:
                error.args = (f"{error.args[0]} (gave up after {tries} tries)" if tries > 1 else error.args[0],)
                raise
        await asyncio.sleep(asked_s + jitter.uniform(0.0, min(_CAP_S, _BASE_S * 2.0 ** (tries - 1))))


async def _post(client: AsyncOpenAI, line: Line, batch: Sequence[str]) -> bytes:
    """The body of a 2xx response; a BackendError for anything else."""
    import aiohttp
    import httpx2
    import openai

    settings = line.settings
    body: dict[str, Any] = {"model": settings.model, "input": list(batch), "encoding_format": settings.encoding}
    if settings.dimensions:
        body["dimensions"] = settings.dimensions
    try:
        async with asyncio.timeout(settings.timeout_s):
            response = await client.post("/embeddings", cast_to=httpx2.Response, body=body)
            return response.content
    except openai.APIStatusError as error:
        raise _refusal(line, error.response) from None
    except TimeoutError:
        raise CallTimeout(f"{line.where}: no answer in {settings.timeout_s:g} s") from None
    except (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
        raise broken_off(error, line.where, line.key) from None


def _refusal(line: Line, response: httpx2.Response) -> BackendError:
    reason = scrub(said(response.text), line.key)
    wait_s = retry_after_s(response.headers, time.time(), response.text)
    return status_error(response.status_code, reason, wait_s, line.where, line.key_env)


def _read(line: Line, content: bytes, count: int) -> Reply:
    """Vectors out of the body of a 2xx response.

    Raises:
        BadReply: not JSON, not one vector for each text.
        WrongModel: another model answered.
    """
    try:
        reply = json.loads(content)
        rows = {row["index"]: _vector(row["embedding"]) for row in reply["data"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        start = scrub(content[:80].decode("utf-8", "replace"), line.key)
        raise BadReply(f"{line.where}: the reply holds no vectors: {start!r}") from None
    if sorted(rows) != list(range(count)):
        raise BadReply(f"{line.where}: {len(rows)} vectors came for {count} texts")
    answered = reply.get("model")
    if isinstance(answered, str) and answered and not same_model(line.settings.model, answered):
        raise WrongModel(
            f"{line.where}: asked for {line.settings.model!r}, {scrub(answered, line.key)!r} answered",
            hint="name the model as the server does",
        )
    usage = reply.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return [rows[i] for i in range(count)], tokens if isinstance(tokens, int) else 0


def _vector(embedding: Any) -> NDArray[np.float32]:
    """A list of numbers, or the same as little-endian float32 in base64. ValueError for anything else."""
    import numpy as np

    if isinstance(embedding, str):
        with contextlib.suppress(binascii.Error):
            return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
        raise ValueError("not base64")
    vector = np.asarray(embedding, np.float32)
    if vector.ndim != 1 or not vector.size:
        raise ValueError("no vector")
    return vector


def _block(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end; inside a running loop (a notebook) in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        inside = False
    else:
        inside = True
    if not inside:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
