"""What a model service says when it does not answer, as this package's errors; no secret gets through.

Plain functions on status, text and headers: every service that speaks HTTP can use them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from pluribus.errors import (
    BackendError,
    BadReply,
    CallTimeout,
    ConnectionLost,
    RateLimited,
    Refused,
    ServerError,
    WrongModel,
)

_LONGEST_MESSAGE = 300
_SECRET = re.compile(r"\b(?:sk|gsk|xai|hf|pk|api)[-_][\w*.-]{6,}|(?<=[Bb]earer )[^\s(),]+|(?<=//)[^/\s@]+@")
_NO_SUCH_MODEL = re.compile(r"model|deployment", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit balance", re.IGNORECASE)


def scrub(text: str, *secrets: str | None) -> str:
    """The text in one line, at most 300 characters, without the secrets and what looks like one.

    >>> scrub("wrong key: sk-abc12345678\\n (Bearer s3cret)", "s3cret")
    'wrong key: *** (Bearer ***)'
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    text = " ".join(_SECRET.sub("***", text).split())
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"


def said(text: str) -> str:
    """What an error's body says, out of the forms services use; HTML loses its tags.

    >>> said('{"error": {"message": "slow down", "type": "x"}}'), said("<h1>Bad Gateway</h1>")
    ('slow down', 'Bad Gateway')
    """
    try:
        found = _message(json.loads(text))
    except ValueError:
        found = re.sub(r"<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL).strip()
    return found or "no reason given"


def _message(body: Any) -> str:
    if isinstance(body, list) and body:
        return _message(body[0])
    if not isinstance(body, dict):
        return str(body)
    for name in ("error", "message", "detail", "msg"):
        if body.get(name):
            inner = body[name]
            return inner if isinstance(inner, str) else _message(inner)
    return json.dumps(body)


_WAIT_IN_BODY = re.compile(r"(?:retryDelay\W+|try again in )(\d+(?:\.\d+)?)(ms|s)\b")


def retry_after_s(headers: Mapping[str, str], now: float, body: str = "") -> float | None:
    """Seconds to wait, from `retry-after-ms`, from `retry-after` as seconds or as an HTTP date, or from the body as
    OpenAI and Google write it; None: not said.

    Args:
        headers: names in any case when the mapping looks them up so, else in lower case.
        now: seconds since the epoch.
        body: the reply's.

    >>> retry_after_s({"retry-after": "1.5"}, 0.0), retry_after_s({"retry-after-ms": "20"}, 0.0)
    (1.5, 0.02)
    >>> retry_after_s({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 10.0)
    20.0
    >>> retry_after_s({}, 0.0, "Please try again in 120ms."), retry_after_s({}, 0.0, '"retryDelay": "34s"')
    (0.12, 34.0)
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is not None and re.fullmatch(r"\d+(\.\d+)?", value.strip()):
            return float(value) * unit_s
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except ValueError:
        found = _WAIT_IN_BODY.search(body)
        return float(found[1]) * (0.001 if found[2] == "ms" else 1.0) if found else None


def status_error(
    status: int, reason: str, wait_s: float | None, where: str, key_env: str | None = None
) -> BackendError:
    """The error of a reply whose status is not 2xx.

    Args:
        status: HTTP status, 400 to 599 (others are treated as server errors).
        reason: what the service said, scrubbed of secrets.
        wait_s: what `retry_after_s` found.
        where: the model and the address, for the message.
        key_env: the variable that holds the key, for the hint.
    """
    message = f"{where}: {status}: {reason}"
    if status == 429 and _QUOTA.search(reason):
        return Refused(message, hint="the account has no credit left; asking again does not help")
    if status == 429:
        return RateLimited(message, retry_after_s=wait_s)
    if status == 408:
        return CallTimeout(message)
    if status in (401, 403):
        return Refused(message, hint=f"check the key in {key_env}" if key_env else "check the key")
    if status == 404 and _NO_SUCH_MODEL.search(reason):
        return WrongModel(message, hint="name a model that this address serves")
    if status == 404:
        return Refused(message, hint="is the address right? it usually ends in /v1")
    if 400 <= status < 500 and status not in (409, 425):
        return Refused(message)
    return ServerError(message, retry_after_s=wait_s)


_REJECTION = re.compile(
    r"unsupported|not support|does not support|cannot both|can't both|deprecated|unknown|unrecognized|unexpected"
    r"|extra inputs|extra_forbidden|not permitted|not allowed|no such parameter",
    re.IGNORECASE,
)
_SCHEMA = re.compile(r"response_format|json_schema|guided|structured.?output", re.IGNORECASE)
_OPTIONAL = ("max_tokens", "temperature", "top_p", "seed", "stop")


def objection(text: str, sent: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """The parameter a 400 or 422 objects to and the name to send it under, None to drop it; None: something else.

    Reasoning models take no `temperature` and call `max_tokens` `max_completion_tokens`; some models take
    `temperature` or `top_p`, not both; some take no schema for the reply. A value out of range is no such objection.

    >>> objection("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {"max_tokens": 9})
    ('max_tokens', 'max_completion_tokens')
    >>> objection("`temperature` and `top_p` cannot both be specified", {"temperature": 1, "top_p": 1})
    ('top_p', None)
    >>> objection("Invalid schema for response_format 'reply'", {"response_format": {}})
    ('response_format', None)
    >>> objection("max_tokens is too large: 100000", {"max_tokens": 100000}) is None
    True
    """
    if "response_format" in sent and _SCHEMA.search(text):
        return "response_format", None
    if not _REJECTION.search(text):
        return None
    if "max_tokens" in sent and "max_tokens" in text and "max_completion_tokens" in text:
        return "max_tokens", "max_completion_tokens"
    named = [name for name in _OPTIONAL[1:] if name in sent and re.search(rf"\b{name}\b", text)]
    return (named[-1] if "both" in text else named[0], None) if named else None


def broken_off(error: BaseException, where: str, key: str | None) -> BackendError:
    """Timeout or lost connection, told apart by the first cause: the transport calls both a timeout."""
    import aiohttp
    import openai

    causes = _causes(error)
    reason = scrub(str(causes[-1]) or type(causes[-1]).__name__, key)
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return CallTimeout(f"{where}: {reason}")
    if any(isinstance(cause, aiohttp.ClientResponseError) for cause in causes):
        return BadReply(f"{where}: this is no HTTP reply: {reason}")
    if isinstance(error, openai.OpenAIError) and not isinstance(error, openai.APIConnectionError):
        return Refused(f"{where}: {reason}")
    return ConnectionLost(f"{where}: connection lost: {reason}")


def _causes(error: BaseException | None) -> list[BaseException]:
    """The error, what it was raised from, and so on."""
    chain = []
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain
