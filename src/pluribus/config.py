"""The council file: one YAML mapping, strict. An unknown key is an error that lists the keys."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from pluribus.errors import ConfigError

Tie = Literal["first", "random", "abstain", "fractional"]

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "agentark": {"temperature": 0.5, "max_tokens": 4096},
    "agent-scaling": {"temperature": 1.0, "top_p": 0.9, "max_tokens": 512},
}
"""Sampling defaults of the two published codes, by name."""


METHOD_ALIASES: Mapping[str, str] = {"vanilla": "single"}
"""Names that published codes use → the method's name here."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SamplingConfig(_Strict):
    temperature: float | None = Field(default=None, ge=0, le=5)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    stop: list[str] | None = None

    def values(self) -> dict[str, Any]:
        """What was said, as Sampling takes it."""
        said = self.model_dump(exclude_none=True)
        return said | ({"stop": tuple(said["stop"])} if "stop" in said else {})


class SeatConfig(SamplingConfig):
    """One seat of the council file."""

    model: str | dict[str, Any]
    name: str | None = None
    persona: str | None = None
    """Name of a persona of the council's set."""
    weight: float = Field(default=1.0, ge=0)
    prompts: str | None = None

    def sampling(self) -> dict[str, Any]:
        said = SamplingConfig(
            temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens, stop=self.stop
        )
        return said.values()


class BudgetConfig(_Strict):
    """Limits that no run exceeds; None: no limit."""

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, gt=0)


class RunConfig(_Strict):
    """Everything a run is made of; the command line's flags lie over the file."""

    task: str | None = None
    data: str | None = None
    split: str | None = None
    limit: int | None = Field(default=None, ge=1)
    skip_bad: bool = False

    method: str = "vote"
    settings: dict[str, Any] = Field(default_factory=dict)
    models: list[str | dict[str, Any]] = Field(default_factory=list)
    seats: list[SeatConfig] = Field(default_factory=list)
    num_agents: int | None = None
    personas: str | None = None
    """A set's name or a file; with `multi_persona` alone the task's own set is taken."""
    roles: list[str] = Field(default_factory=list)
    """Who sits there, one role a seat, cycled: a persona by its name, or a word such as Economist."""
    multi_persona: bool = False
    baseline_a: bool = False
    baseline_b: bool = False
    prompts: str | None = None
    preset: str | None = None
    sampling: SamplingConfig = SamplingConfig()

    rule: str = "plurality"
    tie: Tie = "first"
    seed: int = 0

    budget: BudgetConfig = BudgetConfig()
    allow_code_execution: bool | Literal["rlimit"] = False
    """Whether programs that models write may run: in a jail of bubblewrap, or (`rlimit`) with limits alone."""
    prices: str | None = None
    """A file of the user's own prices, laid over the embedded table."""
    concurrency: int = Field(default=256, ge=1)
    """Calls in flight per endpoint at most; fewer while the endpoint answers 429 or 5xx."""
    retries: int = Field(default=5, ge=1)
    """Tries per call at most."""

    @field_validator("method")
    @classmethod
    def _own_name(cls, method: str) -> str:
        return METHOD_ALIASES.get(method, method)

    @model_validator(mode="after")
    def _consistent(self) -> RunConfig:
        if self.num_agents is not None and self.num_agents < 1:
            raise ValueError(f"num_agents is {self.num_agents}; a council has at least 1 agent")
        controls = [name for name in ("multi_persona", "baseline_a", "baseline_b") if getattr(self, name)]
        if len(controls) > 1:
            raise ValueError(f"{' and '.join(controls)} exclude each other; a control replaces the personas")
        if self.preset is not None and self.preset not in PRESETS:
            raise ValueError(f"unknown preset {self.preset!r}; there are: {', '.join(sorted(PRESETS))}")
        if self.seats and self.models:
            raise ValueError("models and seats are both given; name each model inside its seat, or drop the seats")
        return self


def read_config(path: Path, what: str = "a council file") -> dict[str, Any]:
    """The mapping of a YAML file, not yet checked; `what` it should be, for the complaint."""
    hint = f"give the path of {what} (YAML)"
    try:
        value = yaml.safe_load(path.read_text("utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path}: {problem.strerror}", hint=hint) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text in UTF-8", hint=hint) from None
    except yaml.YAMLError as problem:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(problem).split())}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a mapping of settings, found {type(value).__name__}")
    return value


def make_config(values: Mapping[str, Any], place: str = "the command line") -> RunConfig:
    """Checks plain values; raises ConfigError with one line that names key, value and what was expected.

    >>> make_config({"method": "debate", "num_agents": 4}).tie
    'first'
    """
    try:
        return RunConfig(**values)
    except ValidationError as problem:
        raise ConfigError(f"{place}: {_words(problem.errors()[0])}") from None


def _words(error: ErrorDetails) -> str:
    key = ".".join(str(part) for part in error["loc"] if not str(part).startswith(("str", "dict", "function")))
    if error["type"] == "extra_forbidden":
        known = _keys(error["loc"])
        near = difflib.get_close_matches(str(error["loc"][-1]), known, n=1)
        return f"unknown key {key!r}; {f'did you mean {near[0]!r}? ' if near else ''}allowed: {', '.join(known)}"
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    message = error["msg"][0].lower() + error["msg"][1:]
    return f"{key} is {error['input']!r}; {message}"


def _keys(location: tuple[int | str, ...]) -> list[str]:
    owners: dict[str, type[BaseModel]] = {"sampling": SamplingConfig, "seats": SeatConfig, "budget": BudgetConfig}
    owner = owners.get(str(location[0]), RunConfig) if len(location) > 1 else RunConfig
    return sorted(owner.model_fields)
