"""From a sweep file to cells that are ready: prepared, merged, completed by controls, ordered and forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluribus.backends import ModelSpec
from pluribus.backends._prices import price_of, read_prices, worst_case
from pluribus.codec import content_id
from pluribus.config import BudgetConfig, RunConfig, make_config
from pluribus.load import load
from pluribus.panel import short_name
from pluribus.run import Prepared, Table, prepare, questions
from pluribus.sweep.grid import ALWAYS, Draft, SweepFile, distinct, drafts, models_of, set_name
from pluribus.tasks import LoadedTask
from pluribus.types import Seat

_EVERY_SEAT = {"vote": "answer", "debate": "answer", "llm_debate": "answer"}
"""Methods in which every seat begins alone, with the same prompt → that prompt."""
_FIRST_SEAT = {"single": "answer", "cot": "cot", "self_consistency": "cot", "best_of_n": "cot"}
"""Methods in which the first seat begins, with as many draws of one prompt as it `asks` for → that prompt."""
_SEATING = frozenset(
    {"method", "settings", "models", "seats", "num_agents", "personas", "roles", "multi_persona", "baseline_a"}
    | {"baseline_b", "calibration", "abstain_below"}
)
FirstCall = tuple[Any, ...]
"""What makes a seat's first call the same for two cells, question by question."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One cell, ready to be run."""

    label: str
    coordinates: Mapping[str, Any]
    prepared: Prepared
    control: bool
    """Whether it is there to compare with only: no grid names it."""
    firsts: frozenset[FirstCall]
    """Its first calls, per question; empty where they are not known before."""

    @property
    def calls(self) -> int:
        """At most, when nothing is stored."""
        return self.prepared.forecast.most_calls

    @property
    def goes_on(self) -> bool:
        """Whether it makes calls that depend on what was said."""
        return self.calls > len(self.firsts) * self.prepared.forecast.questions

    @property
    def specs(self) -> tuple[ModelSpec, ...]:
        return self.prepared.table.specs


@dataclass(frozen=True, slots=True)
class SweepForecast:
    """What a sweep will take if nothing is stored yet."""

    cells: int
    controls: int
    """Of the cells, those that no grid names."""
    merged: int
    """Points of the grids that are the same run as another."""
    questions: int
    """Sum over cells."""
    least_calls: int
    most_calls: int
    """Sum over cells, as if each were alone."""
    shared_calls: int
    """At most, when what is known to be the same call is made once."""
    prompt_tokens: int
    """About, of the shared calls: the first prompts' length times the calls; later rounds carry more."""
    most_completion_tokens: int
    """Of the shared calls: every one to its max_tokens."""
    most_cost_usd: float
    """Of the shared calls to priced models, prompts as estimated."""
    unpriced: tuple[str, ...]
    """Models without a price; their cost is not in it."""


@dataclass(frozen=True, slots=True)
class Plan:
    id: str
    name: str
    file: SweepFile
    budget: BudgetConfig
    cells: tuple[Planned, ...]
    """In the order in which they are run: those that share calls together, the largest first."""
    forecast: SweepForecast


class Tasks:
    """Loads each set of questions once."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Any, ...], LoadedTask] = {}

    def prepared(self, config: RunConfig) -> Prepared:
        key = (config.task, config.split, config.data, config.limit, config.skip_bad)
        if key not in self._loaded:
            self._loaded[key] = questions(config)
        return prepare(config, self._loaded[key])


@dataclass(frozen=True, slots=True)
class _Point:
    draft: Draft
    prepared: Prepared
    control: bool = False


def make_plan(
    file: SweepFile,
    *,
    over: Mapping[str, Any] | None = None,
    budget: BudgetConfig | None = None,
    place: str = "the sweep",
) -> Plan:
    """Checks and prepares every cell; asks nobody.

    Args:
        over: entries of the council file that win over the sweep's in every cell.
        budget: of the whole sweep; None: the file's.
        place: how complaints name the file.

    Raises:
        UsageError: whatever is wrong with any cell.
    """
    tasks = Tasks()
    points = [_Point(draft, tasks.prepared(draft.config)) for draft in drafts(file, over, place)]
    asked = len(points)
    if file.controls:
        points += [_Point(d, tasks.prepared(d.config), True) for d in _controls(points, file.control_draws)]
    unique: dict[str, _Point] = {}
    for point in points:
        unique.setdefault(point.prepared.id, point)
    merged = asked - sum(not point.control for point in unique.values())
    cells = tuple(_ordered(_labelled(list(unique.values()))))
    identity = content_id({"name": file.name, "runs": sorted(cell.prepared.id for cell in cells)})[:12]
    return Plan(identity, file.name, file, budget or file.budget, cells, forecast(cells, merged))


# --- controls --------------------------------------------------------------------------------------------------------


def _controls(points: Sequence[_Point], most: int | None) -> list[Draft]:
    """Per model of a mixed set, and per what the cells have in common beside their council: a vote of that model alone,
    with as many draws as the largest council has calls per question."""
    draws: dict[str, int] = {}
    votes: dict[str, Mapping[str, Any]] = {}
    said: dict[str, Mapping[str, Any]] = {}
    for point in points:
        config = point.draft.config
        if len(distinct(models_of(config))) < 2:
            continue
        calls = point.prepared.forecast.most_calls // max(point.prepared.forecast.questions, 1)
        for values in _votes_alone(config):
            key = content_id(values)
            draws[key] = max(draws.get(key, 0), min(calls, most or calls))
            votes[key] = values
            said.setdefault(key, {name: v for name, v in point.draft.said.items() if not _of_council(name)})
    return [_control(values, draws[key], said[key]) for key, values in votes.items()]


def _of_council(axis: str) -> bool:
    return axis in _SEATING or axis.startswith("settings.") or axis in ("debate_rounds", "topology")


def _votes_alone(config: RunConfig) -> list[dict[str, Any]]:
    """The config's entries with each of its models alone at the table, without personas."""
    shared = {
        name: value
        for name, value in config.model_dump(mode="json", exclude_defaults=True).items()
        if name not in _SEATING
    }
    if config.models:
        return [{**shared, "models": [model]} for model in distinct(config.models)]
    plain = [
        seat.model_dump(mode="json", exclude_defaults=True, exclude={"name", "persona", "weight"})
        for seat in config.seats
    ]
    return [{**shared, "seats": [seat]} for seat in distinct(plain)]


def _control(values: Mapping[str, Any], draws: int, said: Mapping[str, Any]) -> Draft:
    config = make_config({**values, "method": "vote", "num_agents": draws}, "a control")
    return Draft(config, said, set_name(models_of(config)))


# --- names -----------------------------------------------------------------------------------------------------------


def _labelled(points: Sequence[_Point]) -> list[Planned]:
    named = {
        repr(models_of(p.draft.config)): p.draft.models for p in reversed(points) if not p.control
    }  # a control of a model that a grid names as a set has that set's name
    places = [_coordinates(p, named.get(repr(models_of(p.draft.config)), p.draft.models)) for p in points]
    varied = _varied(places)
    seen: Counter[str] = Counter()
    cells = []
    for point, place in zip(points, places, strict=True):
        label = _label(place, varied)
        seen[label] += 1
        label = f"{label} #{seen[label]}" if seen[label] > 1 else label
        cells.append(Planned(label, place, point.prepared, point.control, _firsts(point.prepared)))
    return cells


def _coordinates(point: _Point, models: str) -> dict[str, Any]:
    prepared, table = point.prepared, point.prepared.table
    always = (prepared.task.task, table.method, models, len(table.seats), _persona(point.draft.config))
    return {**dict(zip(ALWAYS, always, strict=True)), **point.draft.said}


def _persona(config: RunConfig) -> str:
    """
    >>> _persona(make_config({"multi_persona": True})), _persona(make_config({}))
    ('multi', 'none')
    """
    for control in ("baseline_a", "baseline_b"):
        if getattr(config, control):
            return control
    own = any(seat.persona for seat in config.seats)
    return "multi" if config.multi_persona or config.personas or config.roles or own else "none"


def _varied(places: Sequence[Mapping[str, Any]]) -> list[str]:
    """The coordinates in which cells differ, the same for all first."""
    names = list(dict.fromkeys(name for place in places for name in place))
    return [name for name in names if len({repr(place[name]) for place in places if name in place}) > 1]


def _label(place: Mapping[str, Any], varied: Sequence[str]) -> str:
    """What makes this cell another than its neighbours.

    >>> _label({"models": "mixed", "num_agents": 4, "persona": "none", "seed": 1}, ["models", "num_agents", "seed"])
    'mixed · 4 agents · seed 1'
    """
    parts = [_part(name, place[name]) for name in varied if name in place]
    return " · ".join(parts) or str(place["models"])


def _part(name: str, value: Any) -> str:
    if name == "num_agents":
        return f"{value} agent" if value == 1 else f"{value} agents"
    if name == "persona":
        return f"persona {value}" if value in ("multi", "none") else str(value)
    return str(value) if name in ALWAYS else f"{name.removeprefix('settings.')} {value}"


# --- what is shared --------------------------------------------------------------------------------------------------


def _firsts(prepared: Prepared) -> frozenset[FirstCall]:
    """What the cell asks before anybody has heard anything; empty for a method of which it is not known."""
    table, config = prepared.table, prepared.config
    asked = (prepared.task.task, prepared.task.split, config.data, config.seed)
    if table.method in _EVERY_SEAT:
        prompt = _EVERY_SEAT[table.method]
        return frozenset((*asked, prompt, *_voice(seat), seat.sample) for seat in table.seats)
    if table.method not in _FIRST_SEAT:
        return frozenset()
    seat, prompt = table.seats[0], _FIRST_SEAT[table.method]
    return frozenset((*asked, prompt, *_voice(seat), seat.sample + draw) for draw in range(_draws(table)))


def _draws(table: Table) -> int:
    asks: Callable[[Any], tuple[int, int]] = getattr(load("methods", table.method), "asks", lambda settings: (1, 1))
    return asks(table.settings)[0]


def rivals(a: Planned, b: Planned, made: AbstractSet[FirstCall] = frozenset()) -> bool:
    """Whether the two may ask the same, so that two processes must not run them at the same time.

    Args:
        made: first calls that finished cells have made.
    """
    common = a.firsts & b.firsts
    if common - made:
        return True
    both_go_on = a.goes_on and b.goes_on
    if not a.firsts or not b.firsts:  # what one of them asks is not known before
        return _same_questions(a, b) and not set(map(repr, a.specs)).isdisjoint(map(repr, b.specs))
    return both_go_on and bool(common) and not _hear_others(a, b)


def _same_questions(a: Planned, b: Planned) -> bool:
    return (a.prepared.task.task, a.prepared.config.seed) == (b.prepared.task.task, b.prepared.config.seed)


def _hear_others(a: Planned, b: Planned) -> bool:
    """Whether no later prompt of the two can be the same: everybody reads everybody, of unequal numbers."""
    tables = a.prepared.table, b.prepared.table
    whole = all(getattr(table.settings, "topology", None) == "decentralized" for table in tables)
    return whole and len(tables[0].seats) != len(tables[1].seats)


def _voice(seat: Seat) -> tuple[Any, ...]:
    drawn = seat.sampling
    how = (drawn.temperature, drawn.top_p, drawn.max_tokens, drawn.stop)
    return seat.model, seat.system, *how, seat.dialect


def _ordered(cells: Sequence[Planned]) -> list[Planned]:
    """Those that share first calls together, the largest group first, in a group the largest cell first; of equals the
    one with the fewest models, which many others share calls with."""
    groups = sorted(_groups(cells), key=lambda group: -sum(cell.calls for cell in group))
    return [cell for group in groups for cell in sorted(group, key=_size)]


def _size(cell: Planned) -> tuple[int, int]:
    return -cell.calls, len(all_specs([cell]))


def _groups(cells: Sequence[Planned]) -> list[list[Planned]]:
    """Cells that are connected by shared first calls."""
    groups: list[tuple[set[FirstCall], list[Planned]]] = []
    for cell in cells:
        near = [group for group in groups if group[0] & cell.firsts]
        far = [group for group in groups if not group[0] & cell.firsts]
        calls = set(cell.firsts).union(*(group[0] for group in near))
        groups = [*far, (calls, [*(other for group in near for other in group[1]), cell])]
    return [members for _, members in groups]


def forecast(cells: Sequence[Planned], merged: int = 0) -> SweepForecast:
    """Calls, tokens and dollars of all cells: alone, and with the calls they are known to share made once."""
    seen: dict[FirstCall, int] = {}
    attempts: set[str] = set()
    calls = prompts = completions = 0
    usd, unpriced = 0.0, set[str]()
    for cell in cells:
        told = cell.prepared.forecast
        if cell.prepared.attempts[0].id in attempts:  # decided by another rule: the same attempts
            continue
        attempts.add(cell.prepared.attempts[0].id)
        new = told.most_calls - _known(cell, seen)
        calls += new
        share = new / max(told.most_calls, 1)
        prompts += round(told.prompt_tokens * share)
        completions += round(told.most_completion_tokens * share)
        cost, without = _cost(cell, share)
        usd += cost
        unpriced |= without
    told_all = [cell.prepared.forecast for cell in cells]
    return SweepForecast(
        len(cells), sum(cell.control for cell in cells), merged, sum(told.questions for told in told_all),
        sum(told.least_calls for told in told_all), sum(told.most_calls for told in told_all),
        calls, prompts, completions, usd, tuple(sorted(unpriced)),
    )  # fmt: skip


def _known(cell: Planned, seen: dict[FirstCall, int]) -> int:
    """How many of a cell's calls an earlier cell makes; notes those it adds."""
    n = cell.prepared.forecast.questions
    known = sum(min(n, seen.get(call, 0)) for call in cell.firsts)
    seen.update({call: max(n, seen.get(call, 0)) for call in cell.firsts})
    return known


def _cost(cell: Planned, share: float) -> tuple[float, set[str]]:
    """The most the seats' calls can cost, each seat with an equal part of them; models without a price."""
    config, told = cell.prepared.config, cell.prepared.forecast
    own = read_prices(Path(config.prices)) if config.prices else None
    usd, unpriced = 0.0, set[str]()
    for spec in cell.specs:
        price = price_of(spec, own)
        if price is None:
            unpriced.add(short_name(spec.model))
        else:
            usd += worst_case(price, told.prompt_tokens, told.most_completion_tokens) * share / len(cell.specs)
    return usd, unpriced


def limited(budget: BudgetConfig, share: int) -> BudgetConfig:
    """The part of a budget that one of `share` processes may take; the seconds are the same for all."""
    limits = budget.model_dump(exclude_none=True)
    parts = {name: value / share if name == "usd" else value // share for name, value in limits.items()}
    return budget.model_copy(update={**parts, "seconds": budget.seconds})


def all_specs(cells: Iterable[Planned]) -> list[ModelSpec]:
    """The models of these cells, each once."""
    return list({repr(spec): spec for cell in cells for spec in cell.specs}.values())
