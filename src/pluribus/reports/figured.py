"""material → the figures of a report, as plots that are not drawn yet."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pluribus.compare import is_self_consistency
from pluribus.reports import tabulated, words
from pluribus.reports.material import Council
from pluribus.reports.plots import Axis, Curve, Plot, Point, Series, Style, room, widest

_LINES = 8
"""Lines one can tell apart in one figure; above, there are several figures on the same axes."""
_ROWS = 12
"""Councils in one figure of differences."""
_SEATED = 4
"""Councils whose seats are drawn; the table has all."""
_GREY = Style(-1, 0)
_DOT = " · "
"""Between the parts of a line's name: model set, personas, method."""
_ACCURACY = Axis("accuracy, % of questions", percent=True)
_AGENTS = Axis("agents (answers in the vote)", "counts")
_INTERVAL = "Bars are 95 % Wilson intervals."

Curves = Mapping[str, Curve]
"""Line → the curve fitted to it."""


def accuracy_by_agents(councils: Sequence[Council], curves: Curves) -> list[Plot]:
    """Accuracy against the number of agents; none where all councils are of one size."""
    lines = _lines(councils, lambda c: c.analysis.file.n_agents, _accuracy)
    if _distinct(lines) < 2:
        return []
    about = f"One line per model set, personas and method. {_INTERVAL} Points are moved sideways a little."
    return _multiples("accuracy-agents", "Accuracy against number of agents", _AGENTS, _ACCURACY, lines, curves, about)


def accuracy_by_tokens(councils: Sequence[Council], curves: Curves) -> list[Plot]:
    """Accuracy against what a question costs; councils whose tokens nobody counted are left out, which is said."""
    lines = _lines(councils, lambda c: tabulated.per_question(c, c.analysis.file.tokens) or None, _accuracy)
    if _distinct(lines) < 2:
        return []
    axis = Axis("tokens per question, prompt and completion (log scale)", "log")
    unknown = sum(not c.analysis.file.tokens for c in councils)
    left = f" Left out for want of token counts: {words.plural(unknown, 'council')}." if unknown else ""
    about = f"What accuracy costs: further left is cheaper. {_INTERVAL}{left}"
    return _multiples("accuracy-tokens", "Accuracy against tokens per question", axis, _ACCURACY, lines, curves, about)


def accuracy_by_kstar(councils: Sequence[Council], curve: Curve | None) -> list[Plot]:
    """Accuracy against K* per question, with the curve through all councils, and against K* of the agents' averages."""
    fitted = (Series("all councils, linear", (), _GREY, curve),) if curve else ()
    per_question = _by_kstar(
        councils, lambda c: c.analysis.file.Nstar_question, "kstar-accuracy",
        "Accuracy against effective diversity K* per question", "K* per question, effective number of different texts",
        "K* is the effective number of different texts on a question, mean over questions: 1 when all write the same.",
        fitted,
    )  # fmt: skip
    averages = _by_kstar(
        councils, lambda c: c.analysis.file.Nstar, "kstar-averages-accuracy",
        "Accuracy against K* of the agents' averages", "K* of the agents' mean texts, effective number of agents",
        "K* of each agent's mean embedding over the questions, as the paper has it: how far agents differ in manner, "
        "whatever the question.",
    )  # fmt: skip
    return [*per_question, *averages]


def _by_kstar(
    councils: Sequence[Council],
    x: Callable[[Council], float | None],
    name: str,
    title: str,
    axis: str,
    about: str,
    fitted: tuple[Series, ...] = (),
) -> list[Plot]:
    lines = _lines(councils, x, _accuracy)
    if _distinct(lines) < 2:
        return []
    series = _series(_Part("", lines), {}, list(lines))
    said = f"{about} {_INTERVAL} A relation here need not be a cause: larger councils may have more of both."
    whole = Plot(name, title, Axis(axis), _ACCURACY, (*series, *fitted), "cells", said)
    return [replace(whole, y=room(whole)[1])]


def all_wrong_by_agents(councils: Sequence[Council]) -> list[Plot]:
    def point(council: Council, x: float) -> Point | None:
        file = council.analysis.file
        if file.beta is None:
            return None
        return Point(x, file.beta, file.beta_low, file.beta_high, council.name, council.panel.source)

    lines = _lines(councils, lambda c: c.analysis.file.n_agents, point)
    if _distinct(lines) < 2:
        return []
    axis = Axis("all members wrong, % of questions", percent=True)
    about = "There no rule that picks one of the answers can be right. Bars are 95 % Clopper–Pearson intervals."
    return _multiples("all-wrong", "All-wrong rate against number of agents", _AGENTS, axis, lines, {}, about)


def _accuracy(council: Council, x: float) -> Point | None:
    file = council.analysis.file
    if file.accuracy is None:
        return None
    return Point(x, file.accuracy, file.accuracy_low, file.accuracy_high, council.name, council.panel.source)


_Lines = dict[str, tuple[Point, ...]]


def _lines(
    councils: Sequence[Council],
    x: Callable[[Council], float | None],
    point: Callable[[Council, float], Point | None],
) -> _Lines:
    """Line → its points from left to right; a council without one of the two numbers has no point."""
    found: dict[str, list[Point]] = {}
    for council in councils:
        place = x(council)
        made = None if place is None else point(council, place)
        if made is not None:
            found.setdefault(council.condition, []).append(made)
    return {line: tuple(sorted(points, key=lambda p: p.x)) for line, points in found.items()}


def _distinct(lines: _Lines) -> int:
    return len({point.x for points in lines.values() for point in points})


def _multiples(
    name: str,
    title: str,
    x: Axis,
    y: Axis,
    lines: _Lines,
    curves: Curves,
    about: str,
    *,
    joined: bool = True,
    table: str = "cells",
) -> list[Plot]:
    """One figure, or several on the same axes where one would hold too many lines."""
    every = Series("", tuple(point for points in lines.values() for point in points))
    parts = _parts(lines)
    drawn = [_series(part, curves, list(lines)) for part in parts]
    x, y = room(Plot(name, title, x, y, (every,), table), max(map(len, drawn)))
    return [
        Plot(
            name=name if len(parts) == 1 else f"{name}-{i}",
            title=f"{title}: {part.title}" if part.title else title,
            x=replace(x, limits=None) if x.scale == "rounds" else x,
            y=y,
            series=series,
            table=table,
            about=about,
            joined=joined,
        )
        for i, (part, series) in enumerate(zip(parts, drawn, strict=True), 1)
    ]


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines that share a figure."""

    title: str
    lines: _Lines
    places: tuple[int, ...] = ()
    """Which parts of a line's name the title says."""

    def label(self, line: str) -> str:
        return _DOT.join(word for place, word in enumerate(line.split(_DOT)) if place not in self.places)


def _series(part: _Part, curves: Curves, every: Sequence[str]) -> tuple[Series, ...]:
    """The lines of a figure as they look in all figures: colour by model set, marker by the rest of the name; where
    there are few lines in all, each has a colour and a marker of its own."""
    firsts = list(dict.fromkeys(_split(line)[0] for line in every))
    rests = list(dict.fromkeys(_split(part.label(line))[1] for line in every))
    few = len(every) <= _LINES or len(firsts) == 1
    found = []
    for line, points in part.lines.items():
        place = every.index(line)
        style = (
            Style(place, place)
            if few
            else Style(firsts.index(_split(line)[0]), rests.index(_split(part.label(line))[1]))
        )
        found.append(Series(part.label(line), points, style, curves.get(line)))
    return tuple(found)


def _split(line: str) -> tuple[str, str]:
    first, _, rest = line.partition(_DOT)
    return first, rest


def _parts(lines: _Lines) -> list[_Part]:
    """The coarsest split in which no figure has more than `_LINES`: by personas, else by method, else by both, else
    into heaps."""
    for places in ((), (1,), (2,), (1, 2)):
        found: dict[str, _Lines] = {}
        for line, points in lines.items():
            key = _DOT.join(word for place, word in enumerate(line.split(_DOT)) if place in places)
            found.setdefault(key, {})[line] = points
        if all(len(those) <= _LINES for those in found.values()):
            return [_Part(title, those, places) for title, those in found.items()]
    return [heap for title, those in found.items() for heap in _heaps(title, those, places)]


def _heaps(title: str, lines: _Lines, places: tuple[int, ...]) -> list[_Part]:
    items = list(lines.items())
    heaps = [dict(items[at : at + _LINES]) for at in range(0, len(items), _LINES)]
    if len(heaps) == 1:
        return [_Part(title, lines, places)]
    return [_Part(f"{title} ({i} of {len(heaps)})".strip(), heap, places) for i, heap in enumerate(heaps, 1)]


# --- differences, seats, rounds, rewards -----------------------------------------------------------------------------


def differences(councils: Sequence[Council]) -> list[Plot]:
    """Each council minus its controls, one row a council; 0 is "no difference"."""
    compared = [c for c in councils if c.comparisons and (len(councils) == 1 or not is_self_consistency(c.panel))]
    heaps = [compared[at : at + _ROWS] for at in range(0, len(compared), _ROWS)]
    if len(councils) == 1 and compared:
        return [_controls(compared[0])]
    plots = [_differences(heap) for heap in heaps]
    if len(plots) < 2:
        return plots
    every = Series("", tuple(point for plot in plots for series in plot.series for point in series.points))
    x = widest(plots[0].x, every.points)
    return [
        replace(plot, name=f"{plot.name}-{i}", title=f"{plot.title} ({i} of {len(plots)})", x=x)
        for i, plot in enumerate(plots, 1)
    ]


_DIFFERENCE = Axis("difference of accuracy, percentage points", percent=True)
_MEANING = (
    "Right of 0 the council is better than the control. Bars are 95 % paired bootstrap intervals, not corrected for "
    "their number; the table has Holm’s p, and says where a control had fewer calls than the council."
)


def _controls(council: Council) -> Plot:
    """One council minus each of its controls."""
    every = council.comparisons
    names = tuple(_wrapped(f"{one.control}, {one.spend}" if one.spend != "one call" else one.control) for one in every)
    points = tuple(
        Point(one.difference.value, row, one.difference.low, one.difference.high, council.name, council.panel.source)
        for row, one in enumerate(every)
    )
    rows, series = Axis("control", names=names), (Series("difference", points),)
    return Plot("differences", "Council minus control", _DIFFERENCE, rows, series, "comparisons", _MEANING, zero="x")


def _differences(councils: Sequence[Council]) -> Plot:
    spends = dict.fromkeys(one.spend for council in councils for one in council.comparisons)
    names = tuple(_wrapped(label) for label in _shortened([tabulated.label(c) for c in councils]))
    series = tuple(
        Series(
            "best member alone, at one call" if spend == "one call" else f"self-consistency at {spend}",
            tuple(
                Point(one.difference.value, row, one.difference.low, one.difference.high, c.name, c.panel.source)
                for row, c in enumerate(councils)
                for one in c.comparisons
                if one.spend == spend
            ),
            Style(i, i),
        )
        for i, spend in enumerate(spends)
    )
    rows = Axis("council", names=names)
    return Plot("differences", "Council minus control", _DIFFERENCE, rows, series, "comparisons", _MEANING, zero="x")


def seat_deltas(councils: Sequence[Council]) -> list[Plot]:
    """Delta K* per seat, of the largest council of each line; councils of several models or personas first."""
    largest: dict[str, Council] = {}
    for council in councils:
        before = largest.get(council.condition)
        if before is None or council.analysis.file.n_agents > before.analysis.file.n_agents:
            largest[council.condition] = council
    chosen = sorted(largest.values(), key=lambda council: is_self_consistency(council.panel))[:_SEATED]
    plots = [_seat_delta(i, council, len(councils)) for i, council in enumerate(chosen, 1)]
    return [plot for plot in plots if plot is not None]


def _seat_delta(i: int, council: Council, of: int) -> Plot | None:
    rows = [(n, agent) for n, agent in enumerate(council.analysis.agents, 1) if agent.delta_Nstar is not None]
    if len(rows) < 2:
        return None
    names = [
        f"{n} · {words.brief(words.short_model(a.model), 26)}" + (f" · {a.persona}" if a.persona else "")
        for n, a in rows
    ]
    points = tuple(
        Point(agent.delta_Nstar or 0.0, row, agent.low, agent.high, council.name, council.panel.source)
        for row, (_, agent) in enumerate(rows)
    )
    axis, seats = Axis("ΔK*, effective agents lost without the seat"), Axis("seat", names=tuple(map(_wrapped, names)))
    title = "ΔK* per seat" + (f": {tabulated.label(council)}" if of > 1 else "")
    about = "Near 0: the others already write what this seat writes. Bars are 95 % bootstrap intervals over questions."
    return Plot(f"delta-kstar-{i}", title, axis, seats, (Series("seat", points),), "seats", about, zero="x")


def by_round(councils: Sequence[Council]) -> list[Plot]:
    """Accuracy, agreement and K* by round, of those councils in which the members spoke more than once."""
    debates = tabulated.debates(councils)
    measures = (
        ("acc", "round-accuracy", "Members' accuracy by round", Axis("mean accuracy of members, %", percent=True)),
        ("agreement", "round-agreement", "Agreement by round", Axis("Fleiss’ κ, −1 to 1")),
        ("Nstar", "round-kstar", "Effective diversity by round", Axis("K*, effective number of agents")),
    )
    about = "Round 1 is the first answers. Rising agreement without rising accuracy is conformity."
    return [
        plot
        for key, name, title, axis in measures
        if (lines := _round_lines(debates, key))
        for plot in _multiples(name, title, Axis("round", "rounds"), axis, lines, {}, about, table="rounds")
    ]


def _round_lines(councils: Sequence[Council], key: str) -> _Lines:
    found: _Lines = {}
    for council in councils:
        values = [(one.round + 1, getattr(one, key)) for one in council.analysis.rounds]
        points = tuple(
            Point(at, value, run=council.name, source=council.panel.source) for at, value in values if value is not None
        )
        if points:
            found[_unused(tabulated.label(council), found)] = points
    return dict(zip(_shortened(list(found)), found.values(), strict=True))


def _unused(label: str, taken: _Lines) -> str:
    again = sum(name == label or name.startswith(f"{label} #") for name in taken)
    return f"{label} #{again + 1}" if again else label


# --- labels ----------------------------------------------------------------------------------------------------------


def _shortened(labels: Sequence[str]) -> list[str]:
    """Labels without the parts they all share.

    >>> _shortened(["a · x · vote", "b · x · vote"]), _shortened(["a · x"])
    (['a', 'b'], ['a · x'])
    """
    parts = [label.split(_DOT) for label in labels]
    if len(labels) < 2 or len({len(part) for part in parts}) != 1:
        return list(labels)
    differ = [i for i in range(len(parts[0])) if len({part[i] for part in parts}) > 1]
    return [_DOT.join(part[i] for i in differ) or label for part, label in zip(parts, labels, strict=True)]


def _wrapped(label: str) -> str:
    lines = textwrap.wrap(label, 30)
    return "\n".join(lines[:3]) + ("…" if len(lines) > 3 else "")
