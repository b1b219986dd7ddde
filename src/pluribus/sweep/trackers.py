"""Reports each finished cell to an experiment tracker; these packages are imported only when one is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from typing import Any, Literal, get_args

from pluribus.errors import ConfigError, MissingDependency
from pluribus.sweep.plan import Plan
from pluribus.sweep.record import Outcome

Name = Literal["trackio", "wandb", "none"]
PROJECT = "pluribus"
_OFFLINE = {"wandb": "without an account, set WANDB_MODE=offline"}


class Tracker:
    """One run of a tracker with the interface of wandb; every cell is a step. What it prints goes to stderr.

    Raises:
        MissingDependency: the tracker is not installed.
        ConfigError: no such tracker, or it does not begin.
    """

    def __init__(self, name: str, plan: Plan) -> None:
        if name not in get_args(Name):
            raise ConfigError(f"--report-to is {name!r}; expected one of: {', '.join(get_args(Name))}")
        self._plan = plan
        self._steps = 0
        self._module = _module(name)
        if self._module is not None:
            _begin(self._module, name, plan)

    def log(self, outcome: Outcome) -> None:
        if self._module is not None:
            with redirect_stdout(sys.stderr):
                self._module.log(values(self._plan, outcome), step=self._steps)
            self._steps += 1

    def close(self) -> None:
        if self._module is not None:
            with redirect_stdout(sys.stderr):
                self._module.finish()


def _begin(module: Any, name: str, plan: Plan) -> None:
    config = plan.file.model_dump(mode="json", exclude_defaults=True)
    try:
        with redirect_stdout(sys.stderr):
            module.init(project=PROJECT, name=plan.name, config=config)
    except Exception as error:  # whatever a foreign library raises: nothing was asked yet, and the user must hear why
        raise ConfigError(f"{name} does not begin: {type(error).__name__}: {error}", hint=_OFFLINE.get(name)) from error


def _module(name: str) -> Any:
    if name == "none":
        return None
    if find_spec(name) is None:
        missing = MissingDependency(name, name)
        missing.hint = f"install it with: pip install {name}"
        raise missing
    return importlib.import_module(name)


def values(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """What one step holds: the cell's coordinates under `cell/`, accuracy with its interval, calls, tokens, cost."""
    cell = plan.cells[outcome.cell]
    place = {f"cell/{name}": _scalar(value) for name, value in cell.coordinates.items()}
    spent = {"calls_sent": outcome.sent, "calls_stored": outcome.known, "seconds": outcome.seconds}
    named = {"cell/run": cell.prepared.id, "cell/label": cell.label, "status": outcome.status}
    return {**place, **named, **spent, **_scored(outcome)}


def _scored(outcome: Outcome) -> Mapping[str, Any]:
    score = outcome.score
    if score is None:
        return {}
    low, high = score.interval or (None, None)
    told = {
        "accuracy": score.value, "accuracy_low": low, "accuracy_high": high, "questions": score.n,
        "failed": score.failed, "calls": score.calls, "tokens": score.tokens, "cost_usd": score.cost_usd,
    }  # fmt: skip
    return {name: value for name, value in told.items() if value is not None}


def _scalar(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else str(value)
