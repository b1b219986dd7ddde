"""A test double that ships with the package: answers by rule, in this process, for nothing.

`scripted/NAME` in a model spec runs one of SCRIPTS; in Python, `Scripted(reply)` wraps any function and remembers
what it was asked. Every draw comes from the request's content, so the same request gets the same answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
import re
import time
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any

from pluribus.backends import ModelSpec, Request, check_wishes, extras
from pluribus.errors import BackendError, ConfigError, ServerError, UnknownName
from pluribus.types import Completion

OPTIONS = ("text", "accuracy", "latency_s", "latency_sigma")

_KEY = re.compile(r"\[key: ([^\]]+)\]")
_NORMAL = NormalDist()


class Draws:
    """Uniform numbers in [0, 1) that depend on a request's content and a salt only.

    >>> Draws(b"the request").number(0) == Draws(b"the request").number(0)
    True
    """

    def __init__(self, content: bytes, salt: bytes = b"") -> None:
        self.digest = hashlib.blake2b(content, digest_size=32, key=salt).digest()

    def number(self, index: int) -> float:
        """The draw at `index`, 0 to 7."""
        return int.from_bytes(self.digest[4 * index : 4 * index + 4], "big") / 2**32


def heavy_tailed(median_s: float, sigma: float, draw: float) -> float:
    """Log-normal latency in seconds; `sigma` of 1 makes 1 % of the calls take ten times the median.

    >>> heavy_tailed(0.2, 0.0, 0.99), round(heavy_tailed(0.2, 1.0, 0.99), 2)
    (0.2, 2.05)
    """
    if not sigma:
        return median_s
    return median_s * math.exp(sigma * _NORMAL.inv_cdf(min(max(draw, 1e-9), 1 - 1e-9)))


# --- the scripts -----------------------------------------------------------------------------------------------------


def _echo(request: Request, draws: Draws, options: Mapping[str, Any]) -> str:
    """The last message."""
    return request.messages[-1].content


def _constant(request: Request, draws: Draws, options: Mapping[str, Any]) -> str:
    """The option `text`."""
    return str(options.get("text", "{final answer: 42}"))


def _number(request: Request, draws: Draws, options: Mapping[str, Any]) -> str:
    """A digit drawn from the request; where a form is asked for, a reply in that form."""
    return _worked(str(int(10 * draws.number(0))), draws, request)


def _keyed(request: Request, draws: Draws, options: Mapping[str, Any]) -> str:
    """What stands behind `[key: …]` in the messages, right with probability `accuracy`; else a wrong number."""
    key = next((found[1] for m in request.messages if (found := _KEY.search(m.content))), None)
    right = key is not None and draws.number(1) < float(options.get("accuracy", 0.6))
    return _worked(key if key is not None and right else f"{int(10 * draws.number(0))}01", draws, request)


def _broken(request: Request, draws: Draws, options: Mapping[str, Any]) -> str:
    """Never answers."""
    raise ServerError("scripted/broken: 500: it never answers")


def _worked(answer: str, draws: Draws, request: Request) -> str:
    """A short solution; where a form is asked for, in that form."""
    if request.schema is not None:
        return json.dumps(instance(request.schema, random.Random(draws.digest), answer))
    tags = _tags(request.messages[-1].content, random.Random(draws.digest))
    said = f"{int(90 * draws.number(2))} and {int(90 * draws.number(3))} make it plain. {{final answer: {answer}}}"
    return " ".join((said, *tags))


def _tags(prompt: str, rng: random.Random) -> list[str]:
    """The tags a prompt asks for beside the answer, filled."""
    texts = len(re.findall(r"^Answer \S+:$", prompt, re.MULTILINE))
    given = {"confidence": f"{rng.random():.2f}", "ratings": ", ".join(str(rng.randint(1, 5)) for _ in range(texts))}
    return [f"{{{name}: {value}}}" for name, value in given.items() if f"{{{name}:" in prompt]


def instance(schema: Mapping[str, Any], rng: random.Random, text: str, defs: Mapping[str, Any] | None = None) -> Any:
    """A value that keeps to a JSON schema, drawn at random; strings without an `enum` are `text`.

    >>> instance({"type": "array", "items": {"enum": ["2"]}, "minItems": 1}, random.Random(0), "")
    ['2']
    """
    defs = defs or schema.get("$defs", {})
    if "$ref" in schema:
        return instance(defs[schema["$ref"].rpartition("/")[2]], rng, text, defs)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return instance(rng.choice(schema["anyOf"]), rng, text, defs)
    return _MAKERS[schema.get("type", "string")](schema, rng, text, defs)


def _made_object(schema: Mapping[str, Any], rng: random.Random, text: str, defs: Mapping[str, Any]) -> Any:
    return {name: instance(part, rng, text, defs) for name, part in schema.get("properties", {}).items()}


def _made_array(schema: Mapping[str, Any], rng: random.Random, text: str, defs: Mapping[str, Any]) -> Any:
    """Different items where there are enough of them, as in a ranking."""
    items, count = schema.get("items", {}), max(int(schema.get("minItems", 1)), 1)
    if len(items.get("enum", ())) >= count:
        return rng.sample(items["enum"], count)
    return [instance(items, rng, text, defs) for _ in range(count)]


def _made_number(schema: Mapping[str, Any], rng: random.Random, text: str, defs: Mapping[str, Any]) -> Any:
    low = int(schema.get("minimum", 0))
    return rng.randint(low, max(low, int(schema.get("maximum", 10))))


_MAKERS: Mapping[str, Callable[[Mapping[str, Any], random.Random, str, Mapping[str, Any]], Any]] = {
    "object": _made_object,
    "array": _made_array,
    "number": _made_number,
    "integer": _made_number,
    "boolean": lambda schema, rng, text, defs: rng.random() < 0.5,
    "string": lambda schema, rng, text, defs: text,
    "null": lambda schema, rng, text, defs: None,
}


Script = Callable[[Request, Draws, Mapping[str, Any]], str]
SCRIPTS: Mapping[str, Script] = {
    "echo": _echo,
    "constant": _constant,
    "number": _number,
    "keyed": _keyed,
    "broken": _broken,
}


# --- log-probabilities ----------------------------------------------------------------------------------------------

_OTHERS = ("Yes", "No", "True", "False", "A", "B", "1", "0")


def word_logprob(word: str) -> float:
    """Log-probability of a word, nats: long words are unlikely.

    >>> word_logprob("four"), word_logprob("4")
    (-0.5, -0.125)
    """
    return -max(len(word), 1) / 8


def likeliest(word: str, n: int, rng: random.Random) -> dict[str, float]:
    """The `n` likeliest words at the place of a word: text → log-probability, nats. Other words share what the word
    leaves, in parts drawn evenly from all there are; with enough of them the probabilities add up to 1.

    >>> found = likeliest("4", 20, random.Random(0))
    >>> found["4"], len(found), round(sum(map(math.exp, found.values())), 9)
    (-0.125, 9, 1.0)
    """
    weights = {other: max(rng.expovariate(1.0), 1e-9) for other in _OTHERS if other != word}
    left = math.log1p(-math.exp(word_logprob(word))) - math.log(math.fsum(weights.values()))
    found = {word: word_logprob(word), **{other: left + math.log(weight) for other, weight in weights.items()}}
    return dict(sorted(found.items(), key=lambda pair: -pair[1])[:n])


# --- the backend -----------------------------------------------------------------------------------------------------


class Scripted:
    """A backend around one function; `seen` lists the requests in the order in which they came.

    Args:
        reply: the text of the answer, or a whole completion; a BackendError returned or raised is raised.
        model: the name it goes by.
        latency_s: seconds before the reply, or a function from the request to that.

    >>> backend = Scripted(lambda request: request.messages[-1].content.upper())
    >>> from pluribus.types import Message, Sampling
    >>> asyncio.run(backend.complete(Request((Message("user", "hello"),), Sampling()))).text
    'HELLO'
    """

    def __init__(
        self,
        reply: Callable[[Request], str | Completion | BackendError],
        *,
        model: str = "scripted/function",
        latency_s: float | Callable[[Request], float] = 0.0,
    ) -> None:
        self.model = model
        self.seen: list[Request] = []
        self._reply = reply
        self._latency_s = latency_s

    async def complete(self, request: Request) -> Completion:
        self.seen.append(request)
        check_wishes(request)
        started = time.perf_counter()
        wait_s = self._latency_s(request) if callable(self._latency_s) else self._latency_s
        if wait_s:
            await asyncio.sleep(wait_s)
        if request.continuation is not None:
            return _continuation(request, request.continuation, self.model, time.perf_counter() - started)
        text = self._reply(request)
        if isinstance(text, BackendError):
            raise text
        if isinstance(text, Completion):
            return text
        return _completion(text, request, self.model, time.perf_counter() - started)

    async def close(self) -> None:
        return None


def _completion(text: str, request: Request, model: str, latency_s: float) -> Completion:
    """Words stand for tokens; what passes `max_tokens` is cut off."""
    words = text.split(" ")
    limit, top = request.sampling.max_tokens, request.top_logprobs
    rng = random.Random(repr((model, request.messages)))  # a distribution depends on nothing else
    return Completion(
        text=" ".join(words[:limit]),
        model=model,
        finish_reason="length" if len(words) > limit else "stop",
        prompt_tokens=_words(request),
        completion_tokens=min(len(words), limit),
        logprobs=tuple(map(word_logprob, words[:limit])) if top else None,
        latency_s=latency_s,
        top_logprobs=tuple(likeliest(word, top, rng) for word in words[:limit]) if top else None,
    )


def _said(request: Request) -> tuple[str, ...]:
    """All that a model reads: the messages, and the beginning of its own turn."""
    return (*(message.content for message in request.messages), request.prefill or "")


def _continuation(request: Request, text: str, model: str, latency_s: float) -> Completion:
    logprobs = tuple(map(word_logprob, text.split(" ")))
    read = _words(request) + len(logprobs)
    return Completion(text, model, prompt_tokens=read, completion_tokens=0, logprobs=logprobs, latency_s=latency_s)


def _words(request: Request) -> int:
    return sum(len(text.split()) for text in _said(request))


def connect(spec: ModelSpec) -> Scripted:
    if spec.name not in SCRIPTS:
        raise UnknownName("script", spec.name, SCRIPTS)
    script, median_s, sigma = SCRIPTS[spec.name], _seconds(spec, "latency_s"), _seconds(spec, "latency_sigma")

    def reply(request: Request) -> str:
        return script(request, _draws(spec, request), spec.options)

    def latency_s(request: Request) -> float:
        return heavy_tailed(median_s, sigma, _draws(spec, request).number(4))

    return Scripted(reply, model=spec.model, latency_s=latency_s)


def _seconds(spec: ModelSpec, name: str) -> float:
    value = spec.options.get(name, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ConfigError(f"option {name} of {spec.model} is {value!r}; expected a number of 0 or more")
    return float(value)


def _draws(spec: ModelSpec, request: Request) -> Draws:
    content = repr((spec.name, request.messages, request.sampling, request.sample))
    return Draws(content.encode() + extras(request))
