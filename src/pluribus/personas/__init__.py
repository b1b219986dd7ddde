"""Named sets of personas, as data files; a persona changes the words and the sampling of a seat, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from pluribus.errors import ConfigError, DataError, UnknownName


@dataclass(frozen=True, slots=True)
class Persona:
    name: str
    prompt: str
    style: str
    """One word; dialects of small models use it in place of the prompt."""
    temperature: float | None = None
    top_p: float | None = None


def sets() -> list[str]:
    """Names of the embedded sets.

    >>> "mathematics" in sets()
    True
    """
    return sorted(item.name[:-5] for item in files(__package__).iterdir() if item.name.endswith(".yaml"))


@cache
def personas(name: str) -> tuple[Persona, ...]:
    """The personas of an embedded set, or of the user's own YAML file, in file order."""
    if name in sets():
        return _read(name, (files(__package__) / f"{name}.yaml").read_text("utf-8"))
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise ConfigError(f"no persona file at {name!r}", hint="give an existing YAML file or a set's name")
        return _read(name, path.read_text("utf-8"))
    raise UnknownName("persona set", name, sets())


def in_roles(roles: Sequence[str], set_name: str) -> tuple[Persona, ...]:
    """A persona for each role: the one of that name, of the named set before the others; else one made of the word.

    >>> [one.style for one in in_roles(["Rigorous Formalist", "Economist"], "general")]
    ['formal', 'economist']
    """
    people = {one.name.lower(): one for name in (*reversed(sets()), set_name) for one in personas(name)}
    return tuple(people.get(role.strip().lower()) or _made_of(role) for role in roles)


def _made_of(role: str) -> Persona:
    if not role.strip():
        raise ConfigError("a role is empty", hint="name a persona, or a word such as Economist")
    word = " ".join(role.split())
    prompt = f"You take part as: {word}. Go about the question as somebody in this role would, with what they know."
    return Persona(word, prompt, word.split()[0].lower())


def _read(place: str, text: str) -> tuple[Persona, ...]:
    try:
        rows = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise DataError(place, f"not YAML: {' '.join(str(problem).split())}") from None
    if not isinstance(rows, list) or not rows:
        raise DataError(place, "expected a list of personas", hint="each with name, prompt and style")
    return tuple(_persona(f"{place}: persona {number}", row) for number, row in enumerate(rows, 1))


_FIELDS = {"name": str, "prompt": str, "style": str, "temperature": (int, float), "top_p": (int, float)}


def _persona(place: str, row: Any) -> Persona:
    if not isinstance(row, dict):
        raise DataError(place, f"expected a mapping, found {row!r}")
    for key, value in row.items():
        if key not in _FIELDS:
            raise DataError(place, f"unknown key {key!r}", hint=f"allowed: {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[key]):  # type: ignore[arg-type]  # a dict of types widens to object
            raise DataError(place, f"{key} is {value!r}, of the wrong type")
    missing = [key for key in ("name", "prompt") if not row.get(key)]
    if missing:
        raise DataError(place, f"lacks {', '.join(missing)}")
    return Persona(**{"style": row["name"].split()[0].lower(), **row})
