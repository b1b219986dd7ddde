"""OpenAI and every service or server that speaks its chat API: vLLM, Ollama, OpenRouter, Anthropic, Gemini, …

`_services.toml` names them; each is a base URL and the name of the variable with the key. The environment is read
when a backend is opened, never at import.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pluribus.backends import ModelSpec, services
from pluribus.backends._chat import (
    COMMON_OPTIONS,
    ChatBackend,
    Endpoint,
    checked_url,
    common,
    key_from,
    on_loopback,
    option,
)

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

OPTIONS = (*COMMON_OPTIONS, "name_on_server")

_NO_KEY = "none"
"""Sent where a server wants none: the SDK insists on one."""


def connect(spec: ModelSpec) -> ChatBackend:
    """Opens a backend.

    Raises:
        ConfigError: the key's variable is missing, an address is none, an option has the wrong type.
    """
    urls = _addresses(spec)
    endpoint = Endpoint(
        model=spec.model,
        asked=option(spec, "name_on_server", str, spec.name),
        urls=urls,
        key=_key(spec, urls),
        key_env=_key_env(spec),
        **common(spec),
    )
    return ChatBackend(endpoint, _client)


def _client(endpoint: Endpoint, url: str, pool: httpx2.AsyncClient) -> AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(
        base_url=url,
        api_key=endpoint.key or _NO_KEY,
        max_retries=0,
        timeout=endpoint.timeout_s,
        http_client=pool,
    )


def _addresses(spec: ModelSpec) -> tuple[str, ...]:
    """The spec's own address, else the environment's (several, with commas between, are replicas), else the default."""
    service = services()[spec.service]
    variable = service.get("base_url_env", "")
    inherited = os.environ.get(variable, "").strip() if variable else ""
    what = f"the address of {spec.model}" if spec.base_url or not inherited else f"the environment variable {variable}"
    text = spec.base_url or inherited or service["base_url"]
    return tuple(checked_url(url, what) for url in text.split(",") if url.strip())


def _key_env(spec: ModelSpec) -> str:
    return option(spec, "api_key_env", str, str(services()[spec.service]["key_env"]))


def _key(spec: ModelSpec, urls: tuple[str, ...]) -> str | None:
    """A server on this machine may do without a key, unless one was named."""
    optional = bool(services()[spec.service].get("key_optional")) or all(map(on_loopback, urls))
    named = "api_key_env" in spec.options
    what = "the option api_key_env" if named else f"the key of {spec.service}"
    return key_from(_key_env(spec), what, optional=optional and not named)
