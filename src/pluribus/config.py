"""The council file: one YAML mapping, strict. An unknown key is an error that lists the keys."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from pluribus.errors import ConfigError

Tie = Literal["first", "random", "abstain", "fractional"]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0, le=1e9)]
"""Of a seat's vote. The bound keeps sums of weights finite."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "agentark": {"temperature": 0.5, "max_tokens": 4096},
    "agent-scaling": {"temperature": 1.0, "top_p": 0.9, "max_tokens": 512},
}
"""Sampling defaults of the two published codes, by name."""


CALIBRATION: Literal["pluribus-calibration"] = "pluribus-calibration"
"""What the file of `pluribus calibrate` calls itself."""


METHOD_ALIASES: Mapping[str, str] = {"vanilla": "single"}
"""Names that published codes use → the method's name here."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    PARTS: ClassVar[Mapping[str, type[BaseModel]]] = {}
    """Entries that are mappings of their own, or lists of such."""


class SamplingConfig(Strict):
    temperature: float | None = Field(default=None, ge=0, le=5)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    stop: list[str] | None = None

    def values(self) -> dict[str, Any]:
        """What was said of these, as Sampling takes it."""
        said = self.model_dump(include=set(SamplingConfig.model_fields), exclude_none=True)
        return said | ({"stop": tuple(said["stop"])} if "stop" in said else {})


class SeatConfig(SamplingConfig):
    """One seat of the council file."""

    model: str | dict[str, Any]
    name: str | None = None
    persona: str | None = None
    """Name of a persona of the council's set."""
    weight: Weight = 1.0
    prompts: str | None = None


class BudgetConfig(Strict):
    """Limits that no run exceeds; None: no limit."""

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    usd: float | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, gt=0)


class CalibratedSeat(Strict):
    """What a calibration knows of one seat."""

    model: str
    """Without its address."""
    persona: str | None = None
    accuracy: float | None = Field(default=None, ge=0, le=1)
    """Share right of its votes, shrunk; None: it had no vote."""
    weight: Weight
    answered: int = Field(ge=0)
    """Votes the accuracy rests on."""


class ConfidenceConfig(Strict):
    """Support of a vote → chance that it is right; see `pluribus.consensus.confidence`."""

    kind: Literal["isotonic", "platt"]
    points: list[Annotated[list[Share], Field(min_length=2, max_length=2)]] = Field(default_factory=list)
    slope: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    intercept: float | None = Field(default=None, allow_inf_nan=False)
    n: int = Field(ge=1)

    @model_validator(mode="after")
    def _whole(self) -> ConfidenceConfig:
        if self.kind == "platt" and (self.slope is None or self.intercept is None):
            raise ValueError("confidence: a platt map needs slope and intercept")
        if self.kind == "isotonic" and not self.points:
            raise ValueError("confidence: an isotonic map needs points")
        for (left, low), (right, high) in pairwise(self.points):
            if left >= right or low > high:
                raise ValueError(f"confidence: the points [{left}, {low}] and [{right}, {high}] do not ascend")
        return self


class CalibrationConfig(Strict):
    """What `pluribus calibrate` learned of a council: the file it writes."""

    PARTS = {"seats": CalibratedSeat, "confidence": ConfidenceConfig}

    format: Literal["pluribus-calibration"]
    version: Literal[1]
    task: str
    runs: list[str]
    """Names and ids of the runs it was learned from."""
    method: str
    settings: dict[str, Any]
    """Of the method: the confidence holds for these."""
    seats: list[CalibratedSeat] = Field(min_length=1)
    labels: bool
    """Whether the weights were learned from keys; else from agreement alone."""
    options: float = Field(gt=1, allow_inf_nan=False)
    """Answers a question has, as the weights count them."""
    rule: Literal["plurality", "weighted"]
    """plurality where all weights are equal."""
    confidence: ConfidenceConfig | None = None
    threshold: Share | None = None
    """The least confidence that reaches the accuracy that was asked for."""
    n: int = Field(ge=1)
    """Questions it was learned from."""

    @model_validator(mode="after")
    def _votes(self) -> CalibrationConfig:
        weights = [seat.weight for seat in self.seats]
        if not any(weights):
            raise ValueError("all weights of the seats are 0; at least one seat needs a vote")
        if self.rule != ("weighted" if len(set(weights)) > 1 else "plurality"):
            raise ValueError(f"the rule is {self.rule!r}, and the seats' weights are {weights}")
        return self


class RunConfig(Strict):
    """Everything a run is made of; the command line's flags lie over the file."""

    PARTS = {"sampling": SamplingConfig, "seats": SeatConfig, "budget": BudgetConfig}

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
    calibration: str | CalibrationConfig | None = None
    """A file of `pluribus calibrate`, or what is in it: the seats' weights and how sure a decision is."""
    abstain_below: Share | None = None
    """With less confidence than this the decision has no answer."""

    budget: BudgetConfig = BudgetConfig()
    allow_code_execution: bool | Literal["rlimit"] = False
    """Whether programs that models write may run: in a jail of bubblewrap, or (`rlimit`) with limits alone."""
    prices: str | None = None
    """A file of the user's own prices, laid over the embedded table."""
    concurrency: int = Field(default=256, ge=1)
    """Calls in flight per endpoint at most; fewer while the endpoint answers 429 or 5xx."""
    retries: int = Field(default=5, ge=1)
    """Tries per call at most."""

    @field_validator("calibration", mode="before")
    @classmethod
    def _inline(cls, value: Any) -> Any:
        return make_calibration(value, "calibration") if isinstance(value, Mapping) else value

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
        if self.abstain_below is not None and self.calibration is None:
            raise ValueError(
                f"abstain_below is {self.abstain_below:g}, but nothing gives a confidence; say --calibration FILE"
            )
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
        raise ConfigError(f"{place}: {words(problem.errors()[0])}") from None


def read_calibration(path: Path) -> CalibrationConfig:
    """The file of `pluribus calibrate`; ConfigError with one line for anything that is not one."""
    hint = "give a file that `pluribus calibrate RUN --out FILE` wrote"
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path}: {problem.strerror}", hint=hint) from None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, nested without end
        raise ConfigError(f"{path}: not JSON", hint=hint) from None
    return make_calibration(value, str(path))


def make_calibration(value: Any, place: str) -> CalibrationConfig:
    """Checks plain values; raises ConfigError with one line that names key, value and what was expected."""
    if not isinstance(value, Mapping) or value.get("format") != CALIBRATION:
        raise ConfigError(f"{place}: not a calibration", hint="write one with `pluribus calibrate RUN --out FILE`")
    if value.get("version") != 1:
        raise ConfigError(f"{place}: version {value.get('version')!r} of a calibration; this pluribus reads 1")
    try:
        return CalibrationConfig(**value)
    except ValidationError as problem:
        raise ConfigError(f"{place}: {words(problem.errors()[0], CalibrationConfig)}") from None


def words(error: ErrorDetails, root: type[BaseModel] = RunConfig) -> str:
    """A complaint of pydantic as one line: the key, the value, what was expected."""
    key = ".".join(str(part) for part in error["loc"] if not str(part).startswith(("str", "dict", "function")))
    if error["type"] == "extra_forbidden":
        known = _keys(error["loc"], root)
        near = difflib.get_close_matches(str(error["loc"][-1]), known, n=1)
        return f"unknown key {key!r}; {f'did you mean {near[0]!r}? ' if near else ''}allowed: {', '.join(known)}"
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{key} is missing"
    message = error["msg"][0].lower() + error["msg"][1:]
    return f"{key} is {error['input']!r}; {message}"


def _keys(location: tuple[int | str, ...], root: type[BaseModel]) -> list[str]:
    parts: Mapping[str, type[BaseModel]] = getattr(root, "PARTS", {})
    owner = parts.get(str(location[0]), root) if len(location) > 1 else root
    return sorted(owner.model_fields)
