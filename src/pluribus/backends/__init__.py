"""One file per model service. A backend turns a Request into a Completion or raises a BackendError.

A member module has `OPTIONS`, the names of the options it accepts, and `connect(spec) -> Backend`. It does not
retry, cache, limit or count: `pluribus.traffic` wraps any backend with that.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from pluribus.backends._folders import model_digest
from pluribus.errors import ConfigError, Refused, UnknownName
from pluribus.load import load, names
from pluribus.types import Completion, Message, Sampling


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `question_id` and `round` serve recorded outputs only; every other backend ignores them."""

    messages: tuple[Message, ...]
    sampling: Sampling
    sample: int = 0
    """Which independent draw of the same request this is: 0, 1, …"""
    question_id: str | None = None
    round: int = 0
    schema: Mapping[str, Any] | None = None
    """JSON schema of the reply, for services with guided decoding; the others ignore it and the reply is parsed."""
    top_logprobs: int = 0
    """For so many of the likeliest tokens at each generated token's place the log-probability is wanted, at most
    MOST_TOP_LOGPROBS. A service that gives none leaves `top_logprobs` None."""
    continuation: str | None = None
    """Nothing is generated: the completion is this text, with the log-probabilities of its tokens as the assistant's
    turn that follows the messages. A backend that can not tell refuses."""
    prefill: str | None = None
    """The beginning of the assistant's turn, which is gone on with; the completion's text is what follows it. A text
    that ends in white space is gone on with badly, as most tokens begin with it. A backend that can not refuses."""


MOST_TOP_LOGPROBS = 20
"""What OpenAI and vLLM give at most."""


class Backend(Protocol):
    @property
    def model(self) -> str:
        """`service/name`: what identifies the answers of this backend, without address or key."""
        ...

    async def complete(self, request: Request) -> Completion: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model as the user names it, resolved."""

    service: str
    name: str
    base_url: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the service's backend accepts: quantization, adapter, api_key_env, …"""
    weights: str = ""
    """What lay in the model's folders when it was named, as hex digits; empty: it is no folder here."""

    @property
    def model(self) -> str:
        """Identity of the answers: service, name, every option but those that only say how to get there, and weights:
        a folder that was trained into again holds another model."""
        changed = [f"{key}={self.options[key]}" for key in sorted(self.options) if key not in _SILENT_OPTIONS]
        changed += [f"weights={self.weights}"] if self.weights else []
        return f"{self.service}/{self.name}" + (f"[{','.join(changed)}]" if changed else "")


_SILENT_OPTIONS = frozenset(
    {
        "api_key_env",
        "timeout_s",
        "price",
        "guided",
        "context_length",
        "organization",
        "device",
        "max_batch",
        "latency_s",
        "latency_sigma",
    }
)


@cache
def services() -> Mapping[str, Mapping[str, Any]]:
    """Every service a model spec may name → the backend file that serves it, and its defaults.

    A backend that the table does not name, such as another package's, is a service of its own name.
    """
    table: dict[str, Any] = tomllib.loads((files(__package__) / "_services.toml").read_text("utf-8"))
    plain = {name: {"backend": name} for name in names("backends")}
    services: dict[str, Mapping[str, Any]] = plain | table["services"]
    return services


@cache
def aliases() -> Mapping[str, str]:
    """Short model name → full spec; the one alias table."""
    table: dict[str, Any] = tomllib.loads((files(__package__) / "_services.toml").read_text("utf-8"))
    aliases: dict[str, str] = table["aliases"]
    return aliases


def layout_of(dialect: str | None) -> Mapping[str, str]:
    """How models of a dialect lay out the steps of a reply: `separator` and `join`, see `_loading.StepForm`; empty: as
    everybody does."""
    table: dict[str, Any] = tomllib.loads((files(__package__) / "_services.toml").read_text("utf-8"))
    layout: dict[str, str] = table["layouts"].get(dialect, {})
    return layout


def dialect_of(spec: ModelSpec) -> str | None:
    """The prompts a model was made for: its service's, or those a trained model's folder names; None: the usual ones.

    >>> dialect_of(ModelSpec("openai", "gpt-4o")), dialect_of(ModelSpec("zoo", "qwen"))
    (None, 'zoo')
    """
    service = services()[spec.service]
    if "dialect" in service:
        return str(service["dialect"])
    return trained_dialect(Path(spec.name)) if service["backend"] == "local" else None


def trained_dialect(folder: Path) -> str | None:
    """What `training.json` in a folder says of it; None where there is none."""
    try:
        found = json.loads((folder.expanduser() / TRAINED).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    named = found.get("dialect") if isinstance(found, dict) else None
    return named if isinstance(named, str) else None


TRAINED = "training.json"
"""Beside the weights of a model that was trained here: what it was trained on."""


def parse(model: str | Mapping[str, Any]) -> ModelSpec:
    """Reads `service/model`, `service/model@http://…`, an alias, or a mapping with `model` and options.

    >>> parse("vllm/Qwen/Qwen3-8B@http://127.0.0.1:8001/v1").base_url
    'http://127.0.0.1:8001/v1'
    >>> parse("gpt-4o").model
    'openai/gpt-4o'
    """
    if isinstance(model, str):
        return _parse_text(model, {})
    options = dict(model)
    text = options.pop("model", None)
    if not isinstance(text, str):
        raise ConfigError(f"model {dict(model)!r} has no 'model' entry", hint="write model: service/name")
    return _parse_text(text, options)


def _parse_text(text: str, options: dict[str, Any]) -> ModelSpec:
    head, at, address = text.strip().rpartition("@http")
    name, url = (head, f"http{address}") if at else (text.strip(), None)
    url = options.pop("base_url", url)
    short, name = name, aliases().get(name, name)
    if url is not None and short != name:
        name = re.sub(r"\Alocal/", "vllm/", name)  # a short name with an address: the open model is asked there
    service, slash, rest = name.partition("/")
    if not slash or not rest:
        raise ConfigError(
            f"model {text!r} is neither 'service/model' nor a known short name",
            hint="see `pluribus list backends`; a hub model runs here as local/ORG/NAME, on a server as vllm/ORG/NAME",
        )
    if service not in services():
        raise UnknownName("model service", service, services())
    if url is not None and "key_env" not in services()[service]:
        raise ConfigError(
            f"model {text!r} has an address, but {service}/ runs in this process",
            hint="on a server it is vllm/NAME@URL",
        )
    known = load("backends", services()[service]["backend"]).OPTIONS
    for key in options:
        if key not in known:
            raise UnknownName(f"option of {service}", key, known)
    return ModelSpec(service, rest, url, options, _weights(service, rest, options.get("adapter")))


def _weights(service: str, name: str, adapter: Any) -> str:
    """What lies in a model's folder, and in its adapter's; a library's members stay as they are."""
    if services()[service]["backend"] != "local":
        return ""
    named = [name if "library" not in services()[service] else None, adapter]
    folders = [Path(str(one)).expanduser() for one in named if one is not None]
    return "-".join(filter(None, map(model_digest, folders)))


def call_seed(run_seed: int, model: str, request: Request) -> int:
    """A call's own seed in [0, 2³¹): the hash of run seed, model, messages, sampling, sample and form of the reply.

    It does not depend on the attempt, so councils of different sizes share their calls.
    """
    sampling = request.sampling
    digest = hashlib.blake2b(digest_size=8)
    digest.update(
        repr(
            (run_seed, model, request.sample, sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.stop)
        ).encode()
    )
    for message in request.messages:
        digest.update(repr((message.role, message.content)).encode("utf-8", "surrogatepass"))
    if request.schema is not None:
        digest.update(json.dumps(request.schema, sort_keys=True).encode())
    digest.update(extras(request))
    return int.from_bytes(digest.digest(), "big") >> 33


def extras(request: Request) -> bytes:
    """What a request asks for beyond a text, as bytes for a hash; none for one that asks for a text only, so that
    calls made before there were other wishes keep their names.

    >>> extras(Request((), Sampling())), extras(Request((), Sampling(), top_logprobs=5))
    (b'', b'\\x00top_logprobs\\x005')
    """
    wanted = f"\0top_logprobs\0{request.top_logprobs}" if request.top_logprobs else ""
    if request.continuation is not None:
        wanted += f"\0continuation\0{request.continuation}"
    if request.prefill is not None:
        wanted += f"\0prefill\0{request.prefill}"
    return wanted.encode("utf-8", "surrogatepass")


def add_up(logprobs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Text → log-probability, nats, likeliest first; tokens of the same text are added up.

    >>> both = add_up([("no", math.log(0.3)), ("yes", math.log(0.2)), ("yes", math.log(0.2))])
    >>> {text: round(math.exp(logprob), 9) for text, logprob in both.items()}
    {'yes': 0.4, 'no': 0.3}
    """
    found: dict[str, float] = {}
    for text, logprob in logprobs:
        found[text] = _log_sum(found[text], logprob) if text in found else logprob
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _log_sum(a: float, b: float) -> float:
    """log(exp a + exp b), without overflow."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def check_wishes(request: Request) -> None:
    """Raises Refused for a number of alternatives that can not be, or a beginning that is none."""
    if not 0 <= request.top_logprobs <= MOST_TOP_LOGPROBS:
        raise Refused(f"top_logprobs is {request.top_logprobs}", hint=f"write 0 to {MOST_TOP_LOGPROBS}")
    if request.prefill == "":
        raise Refused("the prefill is empty", hint="leave it out")
    if request.prefill is not None and request.continuation is not None:
        raise Refused("a prefill is gone on with, and a continuation is only read", hint="ask for one of them")


def connect(spec: ModelSpec) -> Backend:
    """Opens the backend of a spec; nothing is sent yet."""
    backend: Backend = load("backends", services()[spec.service]["backend"]).connect(spec)
    return backend
