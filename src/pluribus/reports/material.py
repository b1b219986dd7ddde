"""What a report is made of: each panel measured, compared at equal spend, and put on its line of the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pluribus.analyze import Analysis, Embed, analyze
from pluribus.compare import Comparison, Verdict, compare, holm_adjusted, is_self_consistency, verdict
from pluribus.panel import Panel
from pluribus.reports import words
from pluribus.reports.trainings import Training

Coordinates = Mapping[str, Any]
"""Where a cell of a sweep lies: name of what is varied → its value there."""
COUNTS = ("agents", "num_agents", "agent_count", "n_agents")
"""Names of the coordinate that a line of the figures runs along."""
BASELINE_A, BASELINE_B = "neutral text for personas", "one persona for all"
PERSONAS = {"none": "no personas", "multi": "personas", "baseline_a": BASELINE_A, "baseline_b": BASELINE_B}
"""A sweep's word for its personas → a report's."""


@dataclass(frozen=True, slots=True)
class Council:
    """One panel of a report, measured."""

    analysis: Analysis
    condition: str
    """Model set, personas, method: the line of the figures it lies on."""
    comparisons: tuple[Comparison, ...]
    verdict: Verdict
    begun: float | None = None
    """Unix time, s; None: the source does not say."""

    @property
    def panel(self) -> Panel:
        return self.analysis.panel

    @property
    def name(self) -> str:
        return self.analysis.panel.name


@dataclass(frozen=True, slots=True)
class Scores:
    """A council's rewards: what its judges gave the candidates, and how far they disagreed."""

    run: str
    source: str
    rewards: tuple[float, ...]
    disagreements: tuple[float, ...]
    judges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Judge → its scores on the common scale, in [0, 1]; empty: not known, or a single judge."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Status → candidates; those without a reward are `unscored`."""
    threshold: float | None = None
    """Disagreement above which a candidate is not trained on."""
    null: tuple[float, float, float] | None = None
    """Mean disagreement if the judges scored without regard to the candidate: mean, low, high."""
    alpha: float | None = None
    """Krippendorff's α of the scores on the common scale."""


@dataclass(frozen=True, slots=True)
class Material:
    title: str
    councils: tuple[Council, ...] = ()
    embedder: str = ""
    source: str = ""
    """The sweep's name and id, where it is one."""
    scores: tuple[Scores, ...] = ()
    omitted: Mapping[str, int] = field(default_factory=dict)
    """Reason → cells or sources that could not be measured at all."""
    trainings: tuple[Training, ...] = ()
    """How models were taught; a report may be of these alone."""


def measure(
    panels: Sequence[Panel],
    embed: Embed,
    *,
    embedder: str,
    controls: Callable[[Panel], Sequence[Panel]] = lambda panel: (),
    coordinates: Mapping[str, Coordinates] | None = None,
    begun: Mapping[str, float] | None = None,
    sample: int | None = None,
    seed: int = 0,
    each: Callable[[str], None] = lambda name: None,
) -> tuple[Council, ...]:
    """Measures panels and compares each with what the same spend buys otherwise; no call is made.

    Args:
        controls: panel → panels that may stand for self-consistency beside it.
        coordinates: source of a panel → its place in a sweep; lines are then the sweep's own.
        begun: source of a panel → when it began, Unix time, s.
        sample: embed the texts of so many questions only; None: of all.
        seed: of the bootstrap and of the halves on which controls are chosen.
        each: told the name of each panel before it is measured.
    """
    lines = conditions(panels, coordinates or {})
    compared = []
    for panel in panels:
        each(panel.name)
        compared.append(_worth_it(panel, compare(panel, controls(panel), seed=seed), alone=len(panels) == 1))
    found = []
    for panel, line, comparisons, adjusted in zip(panels, lines, compared, _families(compared), strict=True):
        told = verdict(adjusted if len(panels) > 1 else comparisons)
        analysis = analyze(panel, embed, embedder=embedder, sample=sample, seed=seed)
        found.append(Council(analysis, line, adjusted, told, (begun or {}).get(panel.source)))
    order = list(dict.fromkeys(lines))
    return tuple(sorted(found, key=lambda c: (order.index(c.condition), len(c.panel.members))))


def _families(compared: Sequence[Sequence[Comparison]]) -> list[tuple[Comparison, ...]]:
    """Each panel's comparisons with Holm's p; those at the same kind of spend are one family, over all panels."""
    spends = {one.spend for comparisons in compared for one in comparisons}
    adjusted = {
        spend: iter(holm_adjusted([one for comparisons in compared for one in comparisons if one.spend == spend]))
        for spend in spends
    }
    return [tuple(next(adjusted[one.spend]) for one in comparisons) for comparisons in compared]


def _worth_it(panel: Panel, comparisons: list[Comparison], *, alone: bool) -> list[Comparison]:
    """Among several panels, self-consistency is a control: it is compared with one call, not with its own kind."""
    if alone or not is_self_consistency(panel):
        return comparisons
    return [one for one in comparisons if one.spend == "one call"]


# --- lines -----------------------------------------------------------------------------------------------------------


def conditions(panels: Sequence[Panel], coordinates: Mapping[str, Coordinates]) -> list[str]:
    """Each panel's line: model set, personas, method, and those settings in which the panels differ."""
    varied = _varied(panels)
    several_tasks = len({panel.task for panel in panels}) > 1
    found = []
    for panel in panels:
        place = coordinates.get(panel.source)
        parts = _own(panel, varied) if place is None else _of_sweep(panel, place, list(coordinates.values()))
        found.append(" · ".join([*parts, panel.task] if several_tasks else parts))
    return found


def _varied(panels: Sequence[Panel]) -> dict[str, set[str]]:
    """Method → its settings that are not the same in all of its panels, sizes and places apart."""
    seen: dict[str, dict[str, set[str]]] = {}
    for panel in panels:
        for name, value in panel.settings.items():
            seen.setdefault(panel.method, {}).setdefault(name, set()).add(repr(value))
    apart = {*COUNTS, "parallel_num", "agent_num", "cnt_agents", "n", "num_path", "files"}
    return {
        method: {name for name, values in settings.items() if len(values) > 1 and name not in apart}
        for method, settings in seen.items()
    }


def _own(panel: Panel, varied: Mapping[str, set[str]]) -> list[str]:
    settings = [f"{name} {panel.settings.get(name)}" for name in sorted(varied.get(panel.method, ()))]
    return [models(panel), personas(panel), ", ".join([method(panel), *settings])]


def _of_sweep(panel: Panel, place: Coordinates, all_places: Sequence[Coordinates]) -> list[str]:
    """The sweep's own names of its models and personas, and whatever else varies in it."""
    who = str(place.get("models") or models(panel))
    persona = place.get("persona")
    told = {"task", "method", "models", "persona", "debate_rounds", *COUNTS}
    others = [name for name in place if name not in told and len({repr(p.get(name)) for p in all_places}) > 1]
    how = [f"{name.rpartition('.')[2]} {_plain(place[name])}" for name in others]
    return [who, PERSONAS.get(str(persona)) or personas(panel), ", ".join([method(panel), *how])]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " + ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def models(panel: Panel) -> str:
    """The models that sit in it, each once."""
    seen = dict.fromkeys(words.short_model(member.model) for member in panel.members)
    return words.listed([words.text(name) for name in seen], 5).replace(" and ", " + ").replace(", ", " + ")


def personas(panel: Panel) -> str:
    seated = {member.seat: member.persona for member in panel.members}
    names = Counter(name for name in seated.values() if name)
    if not names:
        return "no personas"
    if set(names) == {"neutral"}:
        return BASELINE_A
    return BASELINE_B if len(names) == 1 and len(seated) > 1 else "personas"


def method(panel: Panel) -> str:
    rounds = f", {words.plural(panel.rounds, 'round')}" if panel.rounds > 1 else ""
    return (panel.method or "recorded") + rounds
