"""Flags over a method's own file over a council file → one checked RunConfig."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pluribus.backends import parse, services
from pluribus.cli import _screen
from pluribus.cli._flags import CouncilFlags, DecisionFlags, LimitFlags, SamplingFlags, TaskFlags, said
from pluribus.config import METHOD_ALIASES, RunConfig, make_config, read_config
from pluribus.errors import ConfigError
from pluribus.method_config import read_method_config, setting_hints

_CONTROLS = ("multi_persona", "baseline_a", "baseline_b")
_DEBATE = ("debate_rounds", "topology")
_SAMPLING = ("temperature", "top_p", "max_tokens")
_BITS = {"load_in_4bit": "4bit", "load_in_8bit": "8bit"}


def make(
    council: Path | None,
    *,
    task: TaskFlags | None = None,
    seats: CouncilFlags | None = None,
    sampling: SamplingFlags | None = None,
    decision: DecisionFlags | None = None,
    limits: LimitFlags | None = None,
) -> RunConfig:
    """The config of a council file, with the method's own file over it and the flags over both; a complaint names the
    file or the command line.

    Raises ConfigError and its kin for whatever is wrong in any of them.
    """
    values: dict[str, Any] = {}
    if council is not None:
        values = read_config(council)
        make_config(values, str(council))
        values = _seats_first(values)
    table = said(seats) if seats else {}
    values, idle = _over_method_file(values, table)
    for flags in (task, sampling, decision):
        values = _over(values, said(flags) if flags else {})
    values = _over_council(values, table)
    values = _over_limits(values, said(limits) if limits else {})
    if "method" in values:
        values["method"] = _method(values["method"])
    config = make_config(values)
    for line in idle:
        _screen.err().print(_screen.line(f"{table['method_config']}: {line}", "yellow"))
    return config


def more(config: RunConfig, limits: LimitFlags) -> RunConfig:
    """A stored run's config with other limits: what a resumed run may change."""
    return make_config(_over_limits(config.model_dump(mode="json", exclude_defaults=True), said(limits)))


def refuse_all(flags: Sequence[Any], why: str) -> None:
    """Raises ConfigError if any flag of these groups was given."""
    for group in flags:
        for name in said(group):
            raise ConfigError(f"--{name.replace('_', '-')} {why}")


def _seats_first(values: dict[str, Any]) -> dict[str, Any]:
    """A file's sampling serves its seats as their default; only a flag wins over what a seat says itself."""
    drawn, seats = values.get("sampling"), values.get("seats")
    if not drawn or not seats:
        return values
    rest = {name: value for name, value in values.items() if name != "sampling"}
    return rest | {"seats": [{**drawn, **seat} for seat in seats]}


def _over(values: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Sampling flags go into the entry `sampling`, the others stand beside it."""
    drawn = {name: value for name, value in flags.items() if name in _SAMPLING}
    merged = {**values, **{name: value for name, value in flags.items() if name not in _SAMPLING}}
    return merged | {"sampling": {**(merged.get("sampling") or {}), **drawn}} if drawn else merged


def _over_limits(values: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    budget = {name.removeprefix("budget_"): value for name, value in flags.items() if name.startswith("budget_")}
    merged = {**values, **{name: value for name, value in flags.items() if not name.startswith("budget_")}}
    if flags.get("allow_code_execution") == "bubblewrap":
        merged["allow_code_execution"] = True
    return merged | {"budget": {**(merged.get("budget") or {}), **budget}} if budget else merged


def _over_method_file(values: dict[str, Any], flags: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the method's own file says over the council file, and the keys of it that change nothing."""
    if "method_config" not in flags:
        return values, ()
    before = _method(values.get("method"))
    found = read_method_config(flags["method_config"], _method(flags.get("method")), before)
    entries = dict(found.entries)
    settings = entries.pop("settings", {})
    drawn = entries.pop("sampling", {})
    kept = values.get("settings") or {} if entries["method"] == before else {}
    merged = {**_without_rivals(values, entries), **entries, "settings": {**kept, **settings}}
    return _over(merged, drawn), found.idle


def _without_rivals(values: Mapping[str, Any], entries: Mapping[str, Any]) -> dict[str, Any]:
    """The council file's values without those that the entries stand in the place of."""
    kept = dict(values)
    for name, rival in (("models", "seats"), ("seats", "models")):
        if name in entries:
            kept.pop(rival, None)
    if "roles" in entries and kept.get("seats"):
        kept["seats"] = [{name: said for name, said in seat.items() if name != "persona"} for seat in kept["seats"]]
    return kept


def _method(name: str | None) -> Any:
    return METHOD_ALIASES.get(name, name) if name is not None else None


def _over_council(values: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for name in ("method", "num_agents", "personas", "prompts"):
        if name in flags:
            merged[name] = flags[name]
    if _method(merged.get("method")) != _method(values.get("method")):
        merged.pop("settings", None)  # they belong to the file's method
    if "agent_models" in flags:
        merged.pop("seats", None)
        merged["models"] = models(flags["agent_models"])
    if any(name in flags for name in _CONTROLS):
        merged |= {name: flags.get(name, False) for name in _CONTROLS}
    merged = _with_settings(merged, flags)
    return _quantized(merged, [_BITS[name] for name in _BITS if flags.get(name)])


def models(words: Sequence[str]) -> list[str]:
    """The models of `--agent-models`; `#name` alone is another model of the recorded file named before it.

    >>> models(["local/a,local/b"]), models(["replay/a.jsonl#x,#y"])
    (['local/a', 'local/b'], ['replay/a.jsonl#x', 'replay/a.jsonl#y'])
    """
    found: list[str] = []
    for word in (part.strip() for text in words for part in text.split(",")):
        if not word:
            raise ConfigError(f"--agent-models {','.join(words)!r} names an empty model", hint="drop the extra comma")
        shared = found[-1].partition("#")[0] if found and word.startswith("#") else ""
        found.append(shared + word)
    return found


def _with_settings(values: dict[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    method = _method(values.get("method", "vote"))
    named = {name: flags[name] for name in _DEBATE if name in flags}
    for name in named:
        _check_has(method, name)
    own = {**named, **dict(_setting(text) for text in flags.get("set", []))}
    if "num_agents" in own and "num_agents" not in setting_hints(method):
        values = _sized(values, own.pop("num_agents"), flags.get("num_agents"))
    return values | {"settings": {**(values.get("settings") or {}), **own}} if own else values


def _sized(values: dict[str, Any], size: Any, flag: int | None) -> dict[str, Any]:
    """`--set num_agents=N` is `--num-agents N` for a method that has no setting of that name."""
    if flag not in (None, size):
        raise ConfigError(f"--set num_agents={size} and --num-agents {flag} differ", hint="give one of them")
    return values | {"num_agents": size}


def _check_has(method: str, name: str) -> None:
    """`--debate-rounds` on a method without rounds is most likely a forgotten `--method debate`."""
    from pluribus.load import load

    if name not in load("methods", method).Settings.__dataclass_fields__:
        raise ConfigError(
            f"--{name.replace('_', '-')} is no setting of the method {method}", hint="say --method debate"
        )


def _setting(text: str) -> tuple[str, Any]:
    """`key=value`, the value read as YAML does.

    >>> _setting("rounds=2"), _setting("keep=true"), _setting("aspects=[a, b]")
    (('rounds', 2), ('keep', True), ('aspects', ['a', 'b']))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set {text!r} is not KEY=VALUE", hint="write for example --set debate_rounds=2")
    try:
        return name.strip().replace("-", "_"), yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"--set {text!r}: the value is not YAML", hint="put it in quotes") from None


def _quantized(values: dict[str, Any], bits: Sequence[str]) -> dict[str, Any]:
    """Adds the option `quantization` to every model that runs in this process."""
    if not bits:
        return values
    if len(bits) > 1:
        raise ConfigError("--load-in-4bit and --load-in-8bit exclude each other", hint="give one of them")
    named = [_with_bits(model, bits[0]) for model in values.get("models", [])]
    seats = [{**seat, "model": _with_bits(seat["model"], bits[0])} for seat in values.get("seats", [])]
    changed = {"models": named, "seats": seats}
    if all(values.get(key, []) == new for key, new in changed.items()):
        flag = next(name for name, value in _BITS.items() if value == bits[0]).replace("_", "-")
        raise ConfigError(f"--{flag}: no model of this council runs here", hint="it is for local/… models")
    return values | {key: new for key, new in changed.items() if new}


def _with_bits(model: str | Mapping[str, Any], bits: str) -> str | dict[str, Any]:
    if services()[parse(model).service]["backend"] != "local":
        return model if isinstance(model, str) else dict(model)
    options = {"model": model} if isinstance(model, str) else dict(model)
    return {**options, "quantization": bits}
