"""A council of judges as an HTTP service: prompts and completions in, rewards out.

    POST /reward {"prompts": [...], "completions": [...]}
      → {"rewards": [0.8, null], "details": [{"value": 0.8, "disagreement": …, "status": …, "scores": …, …}, …]}
    GET /health → {"status": "ok", "judges": [...]}

The numbers are those of `pluribus.judging.CouncilReward` in Python. `null` is no verdict, never 0.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pluribus.errors import BudgetExceeded, ConfigError, MissingDependency, PluribusError
from pluribus.judging import CouncilReward
from pluribus.types import Reward

try:
    import uvicorn
    from fastapi import Depends, FastAPI, HTTPException
    from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
    from starlette.middleware.trustedhost import TrustedHostMiddleware
except ModuleNotFoundError as missing:
    raise MissingDependency(missing.name or "fastapi", "serve") from None

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_TEXTS = 4096
"""Completions of one request at most."""
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

    async def allowed(said: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> None:
        if token is not None and not hmac.compare_digest((said.credentials if said else "").encode(), token.encode()):
            raise HTTPException(401, "the token is missing or wrong; send Authorization: Bearer TOKEN")

    service = FastAPI(title="pluribus reward", docs_url=None, redoc_url=None, lifespan=open_)
    service.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))

    async def health() -> dict[str, Any]:
        return {"status": "ok", "judges": [one.name for one in council.bench.judges]}

    async def reward(batch: Batch) -> Rewards:
        try:
            found = await council.rewards(_plain(batch.prompts), _plain(batch.completions))
        except BudgetExceeded as error:
            raise HTTPException(429, str(error)) from None
        except PluribusError as error:
            raise HTTPException(502, str(error)) from None
        return Rewards(rewards=[council.usable(one) for one in found], details=[_detail(one) for one in found])

    service.get("/health")(health)
    service.post("/reward", dependencies=[Depends(allowed)])(reward)
    return service


def _plain(texts: list[Text]) -> list[str | list[dict[str, Any]]]:
    return [text if isinstance(text, str) else [one.model_dump() for one in text] for text in texts]


def _detail(reward: Reward) -> Detail:
    return Detail(
        value=reward.value, disagreement=reward.disagreement, status=reward.status, rounds=reward.rounds,
        scores=dict(reward.scores), normalised=dict(reward.normalised),
    )  # fmt: skip


def serve(path: Path, host: str = "127.0.0.1", port: int = 8770, token: str | None = None, **options: Any) -> None:
    """Serves a rewarder file until it is told to stop.

    Args:
        path: what `pluribus reward RUN --save FILE` wrote.
        token: needed beyond loopback.
        options: of `CouncilReward`: home, drop_disputed.

    Raises:
        ConfigError: no rewarder, or an address beyond this machine without a token.
    """
    if host not in LOOPBACK and not token:
        raise ConfigError(f"--host is {host}, which others can reach, and there is no token", hint="say --token TOKEN")
    council = CouncilReward.load(path, **options)
    hosts = (*LOOPBACK, "[::1]") if host in LOOPBACK else ("*",)
    uvicorn.run(app(council, token, hosts), host=host, port=port, log_level="warning", access_log=False)
