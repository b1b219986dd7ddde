"""Azure OpenAI: `azure/DEPLOYMENT`, where the deployment is what you named it, whatever model stands behind it.

Reads AZURE_OPENAI_ENDPOINT, OPENAI_API_VERSION and AZURE_OPENAI_API_KEY, or the variable that
AZURE_OPENAI_API_KEY_ENV names, when a backend is opened.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from pluribus.backends import ModelSpec, services
from pluribus.backends._chat import (
    COMMON_OPTIONS,
    ChatBackend,
    Endpoint,
    checked_url,
    common,
    key_from,
    option,
)
from pluribus.errors import ConfigError

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

OPTIONS = (*COMMON_OPTIONS, "api_version")

_ENDPOINT = "AZURE_OPENAI_ENDPOINT"
_VERSION = "OPENAI_API_VERSION"
_KEY_NAME = "AZURE_OPENAI_API_KEY_ENV"


def connect(spec: ModelSpec) -> ChatBackend:
    """Opens a backend.

    Raises:
        ConfigError: endpoint, API version or key are missing.
    """
    version = option(spec, "api_version", str, os.environ.get(_VERSION, ""))
    if not version:
        raise ConfigError(
            f"the environment variable {_VERSION} is not set, and {spec.model} has no option api_version",
            hint=f"export {_VERSION}=2024-10-21",
        )
    key, key_env = _key(spec)
    endpoint = Endpoint(
        model=spec.model,
        asked=spec.name,
        urls=(_address(spec),),
        key=key,
        key_env=key_env,
        checks_model=False,
        **common(spec),
    )
    return ChatBackend(endpoint, partial(_client, version))


def _client(version: str, endpoint: Endpoint, url: str, pool: httpx2.AsyncClient) -> AsyncOpenAI:
    import openai

    return openai.AsyncAzureOpenAI(
        azure_endpoint=url,
        api_key=endpoint.key,
        api_version=version,
        max_retries=0,
        timeout=endpoint.timeout_s,
        http_client=pool,
    )


def _address(spec: ModelSpec) -> str:
    if spec.base_url is not None:
        return checked_url(spec.base_url, f"the address of {spec.model}")
    url = os.environ.get(_ENDPOINT, "").strip()
    if not url:
        raise ConfigError(
            f"the environment variable {_ENDPOINT} is not set, and {spec.model} needs the address it holds",
            hint=f"export {_ENDPOINT}=https://RESOURCE.openai.azure.com",
        )
    return checked_url(url, f"the environment variable {_ENDPOINT}")


def _key(spec: ModelSpec) -> tuple[str | None, str]:
    """The key and the name of the variable that holds it: the option's, else AZURE_OPENAI_API_KEY_ENV's, else
    AZURE_OPENAI_API_KEY."""
    if "api_key_env" in spec.options:
        name, what = option(spec, "api_key_env", str, ""), "the option api_key_env"
    elif pointed := os.environ.get(_KEY_NAME, "").strip():
        name, what = pointed, f"what {_KEY_NAME} holds"
    else:
        name, what = str(services()[spec.service]["key_env"]), "the key of azure"
    return _present(name, what), name


def _present(name: str, what: str) -> str | None:
    """The key in the variable. A pointer that leads nowhere is not printed: people put the key itself there."""
    if not what.startswith("the key") and name not in os.environ:
        raise ConfigError(
            f"{what} must be the name of the environment variable that holds the key, and no variable has that name",
            hint="name the variable there, not the key itself",
        )
    return key_from(name, what)
