"""What a call costs: a dated table in `_prices.toml`, under the user's own file, under the option `price` of a spec.

A model without a price is unpriced, which is None and never 0; only what runs in this process costs a true 0.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pluribus.backends import ModelSpec, services
from pluribus.errors import ConfigError, DataError
from pluribus.types import Completion

_FIELDS = ("input", "cached_input", "output")
_HERE = frozenset({"local", "replay", "scripted"})
_DATED = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)\Z")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, each 0 or more."""

    input: float
    output: float
    cached_input: float | None = None
    """Prompt tokens that the service had in its cache; None: no discount."""


FREE = Price(0.0, 0.0, 0.0)


def price_of(spec: ModelSpec, overrides: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model, or None when none is known.

    The table holds for a service's own address: the same name behind another `base_url` is another seller.

    Args:
        spec: its option `price` comes before everything else.
        overrides: `service/name` or `service/*` → price, as `read_prices` returns them.

    >>> from pluribus.backends import parse
    >>> price_of(parse("openai/gpt-4o-2024-11-20"))
    Price(input=2.5, output=10.0, cached_input=1.25)
    >>> price_of(parse("openai/gpt-4o@http://127.0.0.1:8000/v1")) is None
    True
    """
    if "price" in spec.options:
        return _price(spec.options["price"], f"the option 'price' of {spec.model}")
    own = overrides or {}
    for name in (f"{spec.service}/{spec.name}", f"{spec.service}/*"):
        if name in own:
            return own[name]
    if services()[spec.service]["backend"] in _HERE:
        return FREE
    if _elsewhere(spec):
        return None
    return _listed(spec.service, spec.name)


def cost(price: Price, completion: Completion) -> float | None:
    """US dollars of one completion; None when the service did not say how many tokens it was.

    prompt · input + completion · output; cached prompt tokens at their own price, reasoning tokens are completion
    tokens.

    >>> cost(Price(2.0, 8.0, 0.5), Completion("", "m", prompt_tokens=1000, cached_tokens=400, completion_tokens=100))
    0.0022
    """
    if price == FREE:
        return 0.0
    prompt, generated = completion.prompt_tokens, completion.completion_tokens
    if prompt is None or generated is None:
        return None
    cached = min(completion.cached_tokens or 0, prompt)
    cached_price = price.input if price.cached_input is None else price.cached_input
    return ((prompt - cached) * price.input + cached * cached_price + generated * price.output) / 1e6


def worst_case(price: Price, prompt_tokens: int, max_tokens: int) -> float:
    """The most one call can cost, in US dollars: nothing cached, every token used."""
    dearest = max(price.input, price.cached_input or 0.0)
    return (prompt_tokens * dearest + max_tokens * price.output) / 1e6


def read_prices(path: Path) -> dict[str, Price]:
    """The user's own prices: TOML, one table per model.

        ["openai/gpt-4o"]
        input = 2.5
        cached_input = 1.25
        output = 10.0

    Raises:
        DataError: not TOML, not `service/model`, a field that is unknown, missing or no price.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise DataError(str(path), f"can not read the prices: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"not TOML: {error}") from None
    return {name: _own_price(path, name, table) for name, table in tables.items()}


def _own_price(path: Path, name: str, table: Any) -> Price:
    service, slash, rest = name.partition("/")
    if not slash or not rest or service not in services():
        known = ", ".join(sorted(services()))
        raise DataError(str(path), f'{name!r} is not a model; write ["service/model"] with one of: {known}')
    try:
        return _price(table, f"{name!r}")
    except ConfigError as error:
        raise DataError(str(path), str(error)) from None


def _price(table: Any, what: str) -> Price:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{what} is {table!r}; expected a mapping of {', '.join(_FIELDS)} in USD per million tokens")
    for name in table:
        if name not in _FIELDS:
            raise ConfigError(f"{what} has an unknown entry {name!r}; there are: {', '.join(_FIELDS)}")
    for name in ("input", "output"):
        if name not in table:
            raise ConfigError(f"{what} has no {name!r}; a price needs input and output, in USD per million tokens")
    return Price(**{name: _amount(value, f"{name!r} of {what}") for name, value in table.items()})


def _amount(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ConfigError(f"{what} is {value!r}; expected USD per million tokens, 0 or more")
    return float(value)


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((files(__package__) / "_prices.toml").read_text("utf-8"))


def _listed(service: str, name: str) -> Price | None:
    """The table's price of a name, or of the name without its date."""
    models = _table().get(service, {}).get("models", {})
    for known in (name, _DATED.sub("", name)):
        if known in models:
            return Price(**models[known])
    return None


def _elsewhere(spec: ModelSpec) -> bool:
    """Whether the spec or the environment leads to another address than the service's own."""
    service = services()[spec.service]
    address = spec.base_url or os.environ.get(service.get("base_url_env", ""), "").strip()
    return bool(address) and address.rstrip("/").lower() != service.get("base_url", "").rstrip("/").lower()
