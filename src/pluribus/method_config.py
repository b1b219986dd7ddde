"""A method's own file, as the published codes keep it → entries of a council file.

`--method-config FILE` reads such a file as it is. A key is, in this order: a setting of the method; an entry of a
council file; a published code's word for one of these (`SYNONYMS`); or one of theirs that has no counterpart here
(`IDLE`): it is named, and changes nothing. Any other key is an error that lists what is known.

Source: the keys of `methods/NAME/configs/*.yaml` in AgentArk (arXiv 2602.03955) and MASLab (arXiv 2505.16988).
"""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pluribus.config import RunConfig, make_config, read_config
from pluribus.errors import ConfigError, UsageError
from pluribus.load import load, names
from pluribus.solve import make_settings

SYNONYMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("agents_num", "agent_num", "cnt_agents", "agents"), ("num_agents",)),
        **dict.fromkeys(("num_rounds", "rounds_num"), ("num_rounds", "rounds")),
        **dict.fromkeys(("max_turn", "max_turns"), ("max_turn", "max_turns")),
        **dict.fromkeys(("max_round", "max_rounds"), ("max_round", "max_rounds", "rounds")),
        "agent_roles": ("roles",),
        "code_execution": ("code_execute",),
        "iterations": ("iteration",),
        "n_max_verifiers": ("n_verifiers",),
        "option_number": ("option_num",),
        "parallel_num": ("parallel_num", "n"),
        "random_seed": ("seed",),
        "type": ("topology",),
        "with_critic_in_the_loop": ("with_critic",),
        **{f"model_{name}": (name,) for name in ("temperature", "top_p", "max_tokens")},
    }
)
"""Their key → ours, the first that there is: a setting of the method, else an entry of a council file."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A key of theirs without a counterpart."""

    why: str
    only: tuple[Any, ...] | None = None
    """The values with which nothing is lost; None: any."""


_ANY_TASK = "one program serves every kind of question"
_ORDERED = "nodes run in topological order, and each reads all that its parents gave"

IDLE: Mapping[str, Idle] = MappingProxyType(
    {
        "aggregate_retry_limit": Idle("the traffic layer retries; say --retries"),
        "aggregate_unit_num": Idle(_ORDERED),
        "debug": Idle("every turn is stored anyway"),
        "gui_design": Idle("what is written is a program that runs without a window"),
        "is_termination_msg": Idle("it is the word TERMINATE", ("TERMINATE",)),
        "judge_roles": Idle(_ANY_TASK),
        "language": Idle("programs are written in Python", ("python", "Python")),
        "mode": Idle(_ANY_TASK),
        "node_in_id": Idle(_ORDERED),
        "node_out_id": Idle(_ORDERED),
        "num_judges": Idle(_ANY_TASK),
        "num_players": Idle("two sides and a moderator", (3,)),
        "qtype": Idle(_ANY_TASK),
        "reverse": Idle("edges lead from parents to children", (False,)),
        "type": Idle(_ANY_TASK),
        "vera_temp": Idle("a seat samples alike whatever it says; give the verifiers seats of their own"),
    }
)

PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"camel": ("assistant_role", "user_role", "user_role", "critic_role")}
)
"""Keys that each give a part its role, in the order of the method's seats; together they are `roles`."""

_SAMPLING = ("temperature", "top_p", "max_tokens", "stop")
_TASK_AND_LIMITS = (
    "task", "data", "split", "limit", "skip_bad", "budget", "prices", "concurrency", "retries"
)  # fmt: skip
ENTRIES = frozenset(RunConfig.model_fields) - set(_TASK_AND_LIMITS)
"""What of a council file may stand in a method's file: all that is about the council."""


@dataclass(frozen=True, slots=True)
class MethodConfig:
    """What a method's file says."""

    entries: Mapping[str, Any]
    """Entries of a council file: `Council(models, **entries)` takes them."""
    idle: tuple[str, ...] = ()
    """The keys that change nothing, each with the reason."""


def read_method_config(path: Path, method: str | None = None, fallback: str | None = None) -> MethodConfig:
    """Reads a method's file.

    Args:
        method: whose settings they are, where the caller knows; the file may name it as `method`, and else the
            folder does: `methods/dylan/configs/config_main.yaml`.
        fallback: the method when nothing of that says it.

    Raises ConfigError naming the file, the key and what is known.
    """
    values = read_config(path)
    method = _method(path, values.get("method"), method) or fallback
    if method is None:
        raise ConfigError(f"{path}: whose settings these are is not said", hint="say --method NAME")
    load("methods", method)
    try:
        entries, idle = translated(method, values)
        make_settings(method, entries.get("settings", {}))
    except UsageError as problem:
        raise ConfigError(f"{path}: {problem}") from None
    entries = {**entries, "method": method}
    make_config(entries, str(path))
    return MethodConfig(entries, idle)


def _method(path: Path, written: Any, wanted: str | None) -> str | None:
    """The caller's word, the file's, or its folder's."""
    if not isinstance(written, str | None):
        raise ConfigError(f"{path}: method is {written!r}", hint="expected the name of a method")
    if wanted is not None and written not in (None, wanted):
        raise ConfigError(f"{path}: it is for the method {written!r}, not for {wanted!r}", hint="drop one of them")
    folder = path.absolute().parent.parent.name
    return wanted or written or (folder if folder in names("methods") else None)


def translated(method: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A method file's keys as entries of a council file, and what changes nothing.

    >>> translated("debate", {"agents_num": 3, "random_seed": 7, "debate_rounds": 2, "debug": False})[0]
    {'num_agents': 3, 'seed': 7, 'settings': {'debate_rounds': 2}}
    """
    own = setting_hints(method)
    values = _cast(PARTS.get(method, ()), values)
    entries: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    idle: list[str] = []
    for key, value in values.items():
        ours = _ours(method, key, value, own, values)
        if ours is None:
            idle.append(_idle(method, key, value, own))
        else:
            _put(entries, settings if ours in own else entries, ours, value)
    if "roles" in entries and isinstance(entries["roles"], list):
        entries.setdefault("num_agents", len(entries["roles"]))
    if settings:
        entries["settings"] = {**entries.get("settings", {}), **settings}
    return entries, tuple(idle)


def _cast(parts: Sequence[str], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The roles of single parts as one list; a part that the file does not cast keeps its name."""
    if not set(parts) & set(values):
        return values
    rest = {key: value for key, value in values.items() if key not in parts}
    return {**rest, "roles": [values.get(part, part.removesuffix("_role").capitalize()) for part in parts]}


def setting_hints(method: str) -> Mapping[str, Any]:
    """The settings of a method with their types."""
    cls = load("methods", method).Settings
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _ours(method: str, key: str, value: Any, own: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """The setting or entry a key stands for, or None."""
    if key in own or key in ENTRIES or key in _SAMPLING:
        return key
    if key == "type" and not ("topology" not in given and value in typing.get_args(own.get("topology"))):
        return None  # in a file with a topology it is the kind of question
    known = (*own, *ENTRIES, *_SAMPLING)
    return next((name for name in SYNONYMS.get(key, ()) if name in known), None)


def _put(entries: dict[str, Any], where: dict[str, Any], key: str, value: Any) -> None:
    if where is entries and key in _SAMPLING:
        entries["sampling"] = {**entries.get("sampling", {}), key: value}
    else:
        where[key] = value


def _idle(method: str, key: str, value: Any, own: Iterable[str]) -> str:
    """Why a key changes nothing; ConfigError where it is unknown or asks for what there is not."""
    if key not in IDLE:
        known = sorted({*own, *ENTRIES, *SYNONYMS, *IDLE, *_SAMPLING, *PARTS.get(method, ())})
        near = difflib.get_close_matches(str(key), known, n=1)
        raise ConfigError(
            f"unknown key {key!r} for the method {method}",
            hint=f"{f'did you mean {near[0]!r}? ' if near else ''}known: {', '.join(known)}",
        )
    found = IDLE[key]
    if found.only is not None and value not in found.only:
        raise ConfigError(f"{key} is {value!r}", hint=f"it can only be {found.only[0]!r} here: {found.why}")
    return f"{key} changes nothing: {found.why}"
