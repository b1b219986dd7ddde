"""A folder is the list: `load("methods", "debate")` imports `pluribus/methods/debate.py`.

Packages outside add members through the entry point group `pluribus.<area>`. A file whose name begins with an
underscore is shared by its neighbours and is no member.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import typing
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType, UnionType
from typing import Any, Literal

from pluribus.errors import ConfigError, UnknownName

_WORD = re.compile(r"[a-z][a-z0-9_]*\Z")


def names(area: str) -> list[str]:
    """The members of an area, sorted.

    >>> "vote" in names("methods")
    True
    """
    package = importlib.import_module(f"pluribus.{area}")
    inside = {m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")}
    return sorted(inside | set(_outside(area)))


@cache
def load(area: str, name: str) -> ModuleType:
    """The module of one member; UnknownName lists what there is. Bare names only, never a path."""
    if _WORD.match(name) and name in names(area):
        outside = _outside(area).get(name)
        if outside is not None:
            module: ModuleType = outside.load()
            return module
        return importlib.import_module(f"pluribus.{area}.{name}")
    raise UnknownName(area.rstrip("s"), name, names(area))


@cache
def _outside(area: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"pluribus.{area}")}


def fill(cls: type[Any], what: str, values: Mapping[str, Any]) -> Any:
    """A member's settings from plain values; an unknown name or a wrong type is a ConfigError that lists the fields.

    Args:
        cls: the dataclass to fill.
        what: whose settings they are, for the complaint: `vote`, `judge score`, …
    """
    hints = typing.get_type_hints(cls)
    for name, value in values.items():
        if name not in hints:
            raise UnknownName(f"setting of {what}", name, hints)
        if not _fits(value, hints[name]):
            raise ConfigError(f"setting {name} of {what} is {value!r}", hint=f"expected {_words(hints[name])}")
    return cls(**values)


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is Literal:
        return value in typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin is tuple:
        return isinstance(value, list | tuple)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(str(option) for option in typing.get_args(hint))
    return getattr(hint, "__name__", str(hint))
