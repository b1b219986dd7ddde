"""A council of judges as an HTTP service: prompts and completions in, rewards out.

    POST /reward {"prompts": [...], "completions": [...]}
      → {"rewards": [0.8, null], "details": [{"value": 0.8, "disagreement": …, "status": …, "scores": …, …}, …]}
    GET /health → {"status": "ok", "judges": [...]}

The numbers are those of `pluribus.judging.CouncilReward` in Python. `null` is no verdict, never 0.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pluribus.errors import BudgetExceeded, ConfigError, MissingDependency, PluribusError
from pluribus.judging import CouncilReward
from pluribus.review.guard import is_loopback
from pluribus.server import listening
from pluribus.types import Reward

try:
    from fastapi import Depends, FastAPI, HTTPException, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ModuleNotFoundError as missing:
    raise MissingDependency(missing.name or "fastapi", "serve") from None

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_TEXTS, MOST_BYTES = 4096, 64 * 2**20
"""Completions of one request, and its length, at most."""
_BEARER = HTTPBearer(auto_error=False)


class Spoken(BaseModel):
    """One message."""

    model_config = ConfigDict(extra="ignore")
    role: str
    content: str


Text = str | Annotated[list[Spoken], Field(min_length=1)]


class Batch(BaseModel):
    """What is to be rewarded."""

    model_config = ConfigDict(extra="forbid")
    prompts: list[Text] = Field(max_length=MOST_TEXTS)
    completions: list[Text] = Field(max_length=MOST_TEXTS)

    @model_validator(mode="after")
    def _paired(self) -> Batch:
        if len(self.prompts) != len(self.completions):
            raise ValueError(f"{len(self.prompts)} prompts and {len(self.completions)} completions; give one for one")
        return self


class Detail(BaseModel):
    """One reward, whole."""

    value: float | None
    disagreement: float | None
    status: Literal["agreed", "disputed", "adjudicated", "alone", "unscored"]
    rounds: int
    scores: dict[str, float | None]
    normalised: dict[str, float | None]


class Rewards(BaseModel):
    """The answer: one reward per completion, in their order."""

    rewards: list[float | None]
    details: list[Detail]


def app(council: CouncilReward, token: str | None = None, hosts: tuple[str, ...] = LOOPBACK) -> FastAPI:
    """The service around a council.

    Args:
        token: what `Authorization: Bearer …` has to say; None: nobody is asked.
        hosts: names a request may address, against pages that rebind a name to this machine; `*`: any.
    """

    @asynccontextmanager
    async def open_(_: FastAPI) -> AsyncIterator[None]:
        yield
        await council.aclose()

    async def allowed(request: Request, said: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> None:
        if _of_another_site(request):
            raise HTTPException(403, "a page of another site may not ask")
        if token is not None and not hmac.compare_digest((said.credentials if said else "").encode(), token.encode()):
            raise HTTPException(401, "the token is missing or wrong; send Authorization: Bearer TOKEN")

    service = FastAPI(title="pluribus reward", docs_url=None, redoc_url=None, lifespan=open_)
    service.add_middleware(_Bounded)
    service.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    service.exception_handler(RequestValidationError)(_unfit)

    async def health() -> dict[str, Any]:
        return {"status": "ok", "judges": [one.name for one in council.bench.judges]}

    async def reward(batch: Batch) -> Rewards:
        try:
            found = await council.rewards(_plain(batch.prompts), _plain(batch.completions))
        except BudgetExceeded as error:
            raise HTTPException(429, str(error)) from None
        except PluribusError as error:
            raise HTTPException(502, str(error)) from None
        except asyncio.CancelledError:  # the service ends, and the judges are not done in time
            raise HTTPException(503, "the service was stopped") from None
        return Rewards(rewards=[council.usable(one) for one in found], details=[_detail(one) for one in found])

    service.get("/health")(health)
    service.post("/reward", dependencies=[Depends(allowed)])(reward)
    return service


async def _unfit(request: Request, error: Exception) -> JSONResponse:
    """Where a body is wrong, and how. What it holds is not sent back: it may be long, and NaN is no JSON."""
    assert isinstance(error, RequestValidationError)
    return JSONResponse(
        {"detail": [{name: one[name] for name in ("type", "loc", "msg")} for one in error.errors()]}, 422
    )


def _of_another_site(request: Request) -> bool:
    """Whether a browser sends this for a page that is not of this address; trainers say no origin."""
    origin = request.headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != request.headers.get("host")
    except ValueError:
        return True


class _Bounded:
    """Refuses a body that is longer than any batch, before all of it is in memory."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        come = 0

        async def counted() -> Message:
            nonlocal come
            message = await receive()
            come += len(message.get("body", b""))
            if come > MOST_BYTES:
                raise HTTPException(413, f"a request has at most {MOST_BYTES:,} bytes; send smaller batches")
            return message

        await self.app(scope, counted, send)


def _plain(texts: list[Text]) -> list[str | list[dict[str, Any]]]:
    return [text if isinstance(text, str) else [one.model_dump() for one in text] for text in texts]


def _detail(reward: Reward) -> Detail:
    return Detail(
        value=reward.value, disagreement=reward.disagreement, status=reward.status, rounds=reward.rounds,
        scores=dict(reward.scores), normalised=dict(reward.normalised),
    )  # fmt: skip


def serve(
    path: Path,
    host: str = "127.0.0.1",
    port: int = 8770,
    token: str | None = None,
    ready: Callable[[str], None] = lambda url: None,
    **options: Any,
) -> None:
    """Serves a rewarder file until it is told to stop.

    Args:
        path: what `pluribus reward RUN --save FILE` wrote.
        port: 0: any that is free.
        token: needed beyond loopback.
        ready: is told the address that is now open.
        options: of `CouncilReward`: home, drop_disputed.

    Raises:
        ConfigError: no rewarder, an address that can not be used, or one beyond this machine without a token.
    """
    here = is_loopback(host)
    if not here and not token:
        raise ConfigError(f"--host is {host}, which others can reach, and there is no token", hint="say --token TOKEN")
    if token is not None and not (token.strip() and token.isascii() and token.isprintable()):
        raise ConfigError("--token is empty, or not what a header can hold", hint="give letters and digits")
    council = CouncilReward.load(path, **options)
    with listening.listen(host, port) as door:
        ready(listening.address(host, door))
        listening.serve(app(council, token, (*LOOPBACK, "[::1]", host) if here else ("*",)), door)
