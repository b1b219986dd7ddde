"""What `pluribus doctor` does."""

from __future__ import annotations

import asyncio
import json as jsonlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from pluribus import cli
from pluribus.backends import Backend, ModelSpec, Request, connect
from pluribus.backends._prices import FREE, Price, cost, price_of, read_prices
from pluribus.cli import _screen
from pluribus.config import RunConfig
from pluribus.engines.asyncio import block
from pluribus.errors import PluribusError
from pluribus.run import seat_table
from pluribus.types import Completion, Message, Sampling

QUESTION = "Reply with the one word: ready"
MAX_TOKENS = 256
"""Enough for a word, and for most of what a reasoning model thinks before it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One model of the council, asked once."""

    seats: tuple[int, ...]
    """From 1."""
    model: str
    ok: bool
    answered_by: str | None = None
    """The name in the reply."""
    latency_s: float | None = None
    price: str | None = None
    """Per million tokens in and out; None: unpriced."""
    cost_usd: float | None = None
    problem: str | None = None
    reply: str | None = None


def go(config: RunConfig, *, json: bool) -> int:
    """Asks every distinct model once, prints what was found, and returns the exit code."""
    prices = read_prices(Path(config.prices)) if config.prices else None
    with _screen.err().status("asking every model once …"):
        found = block(_check_all(config, prices))
    if json:
        print(jsonlib.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))
    else:
        _print(_screen.out(), found)
    return cli.OK if all(one.ok for one in found) else cli.FAILED


async def _check_all(config: RunConfig, prices: Mapping[str, Price] | None) -> list[Finding]:
    table = seat_table(config)
    places: dict[str, list[int]] = {}
    models: dict[str, tuple[ModelSpec, Sampling]] = {}
    for seat, spec in zip(table.seats, table.specs, strict=True):
        places.setdefault(repr(spec), []).append(seat.index + 1)
        models.setdefault(repr(spec), (spec, seat.sampling))
    checks = (_check(spec, drawn, tuple(places[key]), prices) for key, (spec, drawn) in models.items())
    return list(await asyncio.gather(*checks))


async def _check(
    spec: ModelSpec, sampling: Sampling, seats: tuple[int, ...], prices: Mapping[str, Price] | None
) -> Finding:
    name = _screen.model(spec.model) + (f"@{spec.base_url}" if spec.base_url else "")
    try:
        price = price_of(spec, prices)
        backend = connect(spec)
        try:
            said = await _ask(backend, sampling)
        finally:
            await backend.close()
    except PluribusError as error:
        return Finding(seats, name, False, problem=str(error))
    told = None if price is None else "free" if price == FREE else f"${price.input:g} in, ${price.output:g} out"
    if said is None:
        return Finding(seats, name, True, None, None, told, reply="recorded: no call")
    spent = said.cost_usd if said.cost_usd is not None else cost(price, said) if price else None
    return Finding(seats, name, True, said.model, said.latency_s, told, spent, reply=said.text.strip())


async def _ask(backend: Backend, sampling: Sampling) -> Completion | None:
    """One completion; None for recorded outputs, which were read when they were opened."""
    if hasattr(backend, "ensure"):
        return None
    limit = min(sampling.max_tokens, MAX_TOKENS)
    return await backend.complete(Request((Message("user", QUESTION),), replace(sampling, max_tokens=limit)))


def _print(console: Console, found: list[Finding]) -> None:
    table = _screen.table()
    for name in ("seats", "model", "state", "latency", "answered by", "price per M tokens"):
        table.add_column(name, justify="right" if name == "latency" else "left", no_wrap=name in ("state", "latency"))
    for one in found:
        state = _screen.cell("ok", "green") if one.ok else _screen.cell("failed", "red")
        latency = _screen.NOTHING if one.latency_s is None else _screen.seconds(one.latency_s)
        price = (one.price or "unpriced") if one.ok else _screen.NOTHING
        named = "as asked" if one.answered_by == one.model else one.answered_by
        who = _screen.cell(named or one.reply or _screen.NOTHING)
        table.add_row(_places(one.seats), _screen.cell(one.model), state, latency, who, _screen.cell(price))
    console.print(table)
    for one in found:
        if one.problem:
            problem = " ".join(one.problem.split())
            console.print(f"seat {_places(one.seats)}: {problem}", style="red", markup=False, soft_wrap=True)


def _places(seats: tuple[int, ...]) -> str:
    return ", ".join(map(str, seats[:4])) + (f", … ({len(seats)})" if len(seats) > 4 else "")
