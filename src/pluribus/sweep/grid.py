"""A sweep file: one YAML mapping, strict. A base and grids of axes → the config of every cell.

    name: scaling
    base: {task: gsm8k, limit: 500}
    grids:
      - {models: {mixed: [vllm/a, vllm/b]}, num_agents: [2, 4, 8], persona: [none, multi], method: [vote]}
      - {base: {debate_rounds: 2}, models: {mixed: [vllm/a, vllm/b]}, num_agents: [2, 4], method: [debate]}

An axis is an entry of the council file or one of the short names; `settings.NAME` and `sampling.NAME` reach one entry
of these. `debate_rounds` and `topology` belong to the methods that have them and are left out for the others.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from pluribus.backends import parse
from pluribus.config import METHOD_ALIASES, BudgetConfig, RunConfig, make_config, read_config
from pluribus.errors import ConfigError
from pluribus.load import load
from pluribus.panel import short_name

PERSONAS: Mapping[str, Mapping[str, Any]] = {
    "none": {"personas": None, "roles": []},
    "multi": {"multi_persona": True},
    "baseline_a": {"baseline_a": True},
    "baseline_b": {"baseline_b": True},
}
"""Value of the axis `persona` → the council file's entries."""
ALWAYS = ("task", "method", "models", "num_agents", "persona")
"""The coordinates that every cell has."""
NAME = r"^[\w.-]+$"
"""What a sweep's name may look like."""
_FLAGS = {"multi_persona": False, "baseline_a": False, "baseline_b": False}
_SAMPLING = ("temperature", "top_p", "max_tokens")
_OF_METHOD = ("debate_rounds", "topology")
_TASK = ("task", "data", "split", "limit", "skip_bad")
_SHORT = ("persona", *_SAMPLING, *_OF_METHOD)
_ENTRIES = tuple(name for name in RunConfig.model_fields if name != "budget")


class SweepFile(BaseModel):
    """The file as it stands."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(pattern=NAME)
    base: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, Any] | None = None
    grids: list[dict[str, Any]] = Field(default_factory=list)
    controls: bool = True
    """Whether each model of a mixed set votes alone as well, with as many draws as the largest council has calls."""
    control_draws: int | None = Field(default=None, ge=1)
    """At most so many draws; None: as many as the largest council has calls."""
    budget: BudgetConfig = BudgetConfig()
    """Of the whole sweep."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One cell as the file describes it."""

    config: RunConfig
    said: Mapping[str, Any]
    """Axis → value, of the axes that the sweep names beside those that every cell has."""
    models: str
    """Name of the set of models."""


def read_sweep(path: Path) -> SweepFile:
    """The checked mapping of a sweep file; its cells are checked by `drafts`.

    Raises:
        ConfigError: not readable, not YAML, an unknown key, a wrong value.
    """
    values = read_config(path, "a sweep file")
    return make_sweep(values, str(path))


def make_sweep(values: Mapping[str, Any], place: str = "the sweep") -> SweepFile:
    """
    >>> make_sweep({"name": "s", "grid": {"num_agents": [2, 4]}}).controls
    True
    """
    try:
        file = SweepFile(**values)
    except ValidationError as problem:
        raise ConfigError(f"{place}: {_words(problem.errors()[0])}") from None
    if (file.grid is None) == (not file.grids):
        raise ConfigError(f"{place}: expected either 'grid', a mapping of axes, or 'grids', a list of such mappings")
    return file


def _words(error: ErrorDetails) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        of = BudgetConfig if len(error["loc"]) > 1 else SweepFile
        return _unknown("key", key, sorted(of.model_fields))
    if error["type"] == "missing":
        return f"there is no {key!r}"
    if error["type"] == "string_pattern_mismatch":
        return f"{key} is {error['input']!r}; expected letters, digits, '.', '-' and '_' only"
    return f"{key} is {error['input']!r}; {error['msg'][0].lower()}{error['msg'][1:]}"


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.rpartition(".")[2], known, n=1)
    return f"unknown {what} {name!r}; {f'did you mean {near[0]!r}? ' if near else ''}allowed: {', '.join(known)}"


# --- from blocks to drafts -------------------------------------------------------------------------------------------


def drafts(file: SweepFile, over: Mapping[str, Any] | None = None, place: str = "the sweep") -> list[Draft]:
    """Every cell of the file, block by block; the same cell may come twice.

    Args:
        over: entries of the council file that win over the file in every cell; another task drops the file's data
            and split.

    >>> file = make_sweep({"name": "s", "base": {"models": ["zoo/qwen"]}, "grid": {"num_agents": [2, 4]}})
    >>> [draft.config.num_agents for draft in drafts(file)]
    [2, 4]
    """
    blocks = [file.grid] if file.grid is not None else file.grids
    places = [f"{place}: grid"] if file.grid is not None else [f"{place}: grids[{n}]" for n in range(len(blocks))]
    axes = [_axes(block, where) for block, where in zip(blocks, places, strict=True)]
    named = {name for block, own in zip(blocks, axes, strict=True) for name in (*own, *_base(block))} - set(ALWAYS)
    sets = _named_sets(axes)
    found = []
    for block, own, where in zip(blocks, axes, places, strict=True):
        fixed = {**_checked(file.base, f"{place}: base"), **_checked(_base(block), f"{where}.base")}
        _check_used({**fixed, **own}, where)
        for point in _points(own):
            found.append(_draft({**fixed, **point}, over or {}, named, sets, where))
    return found


def _base(block: Mapping[str, Any]) -> Mapping[str, Any]:
    base = block.get("base", {})
    return base if isinstance(base, Mapping) else {}


def _axes(block: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """Axis → label → value."""
    if not isinstance(block.get("base", {}), Mapping):
        raise ConfigError(f"{where}: base is {block['base']!r}; expected a mapping of the council file's entries")
    axes = {name: values for name, values in block.items() if name != "base"}
    _checked(axes, where)
    return {name: _values(name, values, where) for name, values in axes.items()}


def _checked(entries: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The entries, all of them known names."""
    for name in entries:
        head, dot, rest = str(name).partition(".")
        if name == "budget":
            raise ConfigError(f"{where}: the budget bounds the whole sweep", hint="write it beside 'name' and 'base'")
        if not (name in _ENTRIES or name in _SHORT or (dot and rest and head in ("settings", "sampling"))):
            raise ConfigError(f"{where}: {_unknown('entry', str(name), sorted({*_ENTRIES, *_SHORT}))}")
    return entries


def _values(name: str, values: Any, where: str) -> dict[str, Any]:
    if name == "models":
        return _model_sets(values, where)
    if not isinstance(values, list) or not values:
        such = "" if isinstance(values, list | dict) or values is None else f", such as [{values}]"
        raise ConfigError(f"{where}: axis {name} is {values!r}; expected a list of values{such}")
    if name == "persona":
        for value in values:
            _persona(value, where)
    return {str(place): value for place, value in enumerate(values)}


def _model_sets(values: Any, where: str) -> dict[str, Any]:
    """Name of a set → its models."""
    if isinstance(values, list) and all(map(_is_set, values)):
        values = _by_name(values, where)
    if not isinstance(values, Mapping) or not values or not all(map(_is_set, values.values())):
        raise ConfigError(
            f"{where}: axis models is {values!r}; expected a mapping of names to lists of models, or a list of lists",
            hint="one set of two models is models: {mixed: [zoo/qwen, zoo/olmo]}",
        )
    return {str(name): models for name, models in values.items()}


def _by_name(sets: Sequence[Any], where: str) -> dict[str, Any]:
    """Two folders of one name, say, are two sets, and neither is to be lost."""
    found: dict[str, Any] = {}
    for models in sets:
        name = set_name(models)
        if found.setdefault(name, models) != models:
            raise ConfigError(
                f"{where}: axis models has two sets that read {name}",
                hint=f"give them names: models: {{one: {found[name]}, two: {models}}}",
            )
    return found


def _is_set(models: Any) -> bool:
    return isinstance(models, list) and bool(models) and all(isinstance(model, str | dict) for model in models)


def set_name(models: Sequence[Any]) -> str:
    """A set of models in words, each once.

    >>> set_name(["zoo/qwen", "zoo/olmo", "zoo/qwen"])
    'zoo/qwen + zoo/olmo'
    """
    return " + ".join(short_name(parse(model).model) for model in distinct(models))


def distinct(models: Iterable[Any]) -> list[Any]:
    """The models, each once, in the order of their first coming."""
    return list({repr(model): model for model in models}.values())


def _named_sets(axes: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, str]:
    """repr of a list of models → the name that the file gives it."""
    given = [pair for own in axes for pair in own.get("models", {}).items()]
    return {repr(models): name for name, models in given if name != set_name(models)}


def _persona(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, str) or value not in PERSONAS:
        raise ConfigError(f"{where}: persona is {value!r}; expected one of: {', '.join(PERSONAS)}")
    return PERSONAS[value]


def _points(axes: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The product of the axes."""
    for values in product(*(own.values() for own in axes.values())):
        yield dict(zip(axes, values, strict=True))


def _check_used(entries: Mapping[str, Any], where: str) -> None:
    """A setting that no method of the block has would change nothing."""
    said = entries.get("method", "vote")
    methods = list(said.values()) if isinstance(said, Mapping) else [said]
    for name in _OF_METHOD:
        if name in entries and not any(_has(method, name) for method in methods):
            raise ConfigError(f"{where}: {name} is a setting of none of its methods: {', '.join(map(str, methods))}")


def _has(method: Any, setting: str) -> bool:
    module = load("methods", METHOD_ALIASES.get(str(method), str(method)))
    return setting in {field.name for field in fields(module.Settings)}


def _draft(
    said: Mapping[str, Any], over: Mapping[str, Any], named: set[str], sets: Mapping[str, str], where: str
) -> Draft:
    kept = {
        name: value for name, value in said.items() if name not in _OF_METHOD or _has(said.get("method", "vote"), name)
    }
    values: dict[str, Any] = {}
    for name, value in kept.items():
        values = _with(values, name, value, where)
    values = _over(values, over)
    point = {name: value for name, value in kept.items() if name in named and name not in over}
    config = make_config(values, where)
    models = models_of(config)
    if not models:
        raise ConfigError(f"{where}: no models are named", hint="add the axis models, or models to base")
    return Draft(config, point, sets.get(repr(models)) or set_name(models))


def models_of(config: RunConfig) -> list[Any]:
    """The models of a config, as they are named there."""
    return list(config.models) or [seat.model for seat in config.seats]


def _with(values: Mapping[str, Any], name: str, value: Any, where: str) -> dict[str, Any]:
    """The values with one entry more, whatever it replaces taken away."""
    head, dot, rest = name.partition(".")
    if name == "persona":
        return {**values, **_FLAGS, **_persona(value, where)}
    if name in _SAMPLING:
        head, dot, rest = "sampling", ".", name
    elif name in _OF_METHOD:
        head, dot, rest = "settings", ".", name
    if dot:
        value, name = {rest: value}, head
    if name in ("settings", "sampling") and isinstance(value, Mapping):
        return {**values, name: {**(values.get(name) or {}), **value}}
    if name == "task" and isinstance(value, Mapping):
        return {**values, **_task(value, where)}
    if name in ("models", "seats"):
        values = {key: kept for key, kept in values.items() if key not in ("models", "seats")}
    return {**values, name: value}


def _task(value: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    for name in value:
        if name not in _TASK:
            raise ConfigError(f"{where}: {_unknown('entry of a task', str(name), _TASK)}")
    return value


def _over(values: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    dropped = {"data", "split"} if "task" in over else set()
    return {**{name: value for name, value in values.items() if name not in dropped}, **over}
