"""A folder is the list: `load("methods", "debate")` imports `pluribus/methods/debate.py`.

Packages outside add members through the entry point group `pluribus.<area>`. A file whose name begins with an
underscore is shared by its neighbours and is no member.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from pluribus.errors import UnknownName

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
