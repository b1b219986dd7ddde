"""plot → SVG for the page and PNG beside it, drawn once by matplotlib.

Colours are replaced by CSS variables, so the same drawing is right on a light and on a dark page; text stays text.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from pluribus.errors import MissingDependency
from pluribus.reports import words
from pluribus.reports.plots import Axis, Plot, Rule, Series, offsets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID = "#1b1f25", "#5d6673", "#e1e5ea"
COLOURS = ("#0067a5", "#c2480c", "#00805a", "#a23b78", "#866400", "#4a4fb0", "#7a5548", "#4f6471")
"""Of the series on a light page; told apart with every common colour blindness, and by marker besides."""
COLOURS_DARK = ("#5ab4ea", "#f7935a", "#3fcf9f", "#ea90c4", "#dfb53c", "#a5a9ff", "#caa193", "#a9bac6")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
VARIABLES: Mapping[str, str] = {
    INK: "--ink", MUTED: "--muted", GRID: "--rule", **{colour: f"--c{i}" for i, colour in enumerate(COLOURS)}
}  # fmt: skip
_WIDTH, _HEIGHT, _LINE, _DPI = 4.6, 3.1, 0.17, 200
"""Inches; narrow enough that the text is still readable on a phone."""
_TITLE, _LEGEND = 50, 62
"""Letters in a line of the title, and of the legend."""
_FAINT = 0.45
"""Of the bars in a cloud of points, which lie over each other."""
_BANDS = 3
"""Bands in one figure at most; the table has the intervals of all."""
_APART = 3.5
"""How much further series are moved apart between rows than between numbers."""
_MARKED = 20
"""Markers on a line that runs from point to point, at most."""
_SMALL = 2.6
"""Marker of a point in a cloud."""
Dash = Literal["--", ":", "-."]
_RULES: tuple[Dash, ...] = ("--", ":", "-.")
_STYLE = {
    "axes.formatter.useoffset": False,  # ticks say what they mean: 1.0013, not 0.0003 and far away "+1.001"
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9.5,
    "axes.labelsize": 9.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 5.5,
    "errorbar.capsize": 2.2,
}


@dataclass(frozen=True, slots=True)
class Drawing:
    plot: Plot
    svg: str
    """An `<svg>` element for the page."""
    png: bytes


def draw(plot: Plot) -> Drawing:
    """Draws a plot.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    matplotlib = plotting()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": plot.name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in another script, in the PNG alone
        figure = matplotlib.figure.Figure((_WIDTH, _height(plot)), layout="constrained")
        figure.suptitle(_title(plot), x=0.012, ha="left", fontsize=10.5, fontweight="bold")
        _fill(figure.subplots(), plot)
        _legend(figure, plot)
        figure.draw_without_rendering()  # lays out once, for both files
        figure.set_layout_engine("none")
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(svg, format="svg", transparent=True)
        figure.savefig(png, format="png", dpi=_DPI, facecolor="white")
    return Drawing(plot, _for_page(svg.getvalue(), plot), png.getvalue())


def plotting() -> Any:
    """matplotlib, imported when it is first needed.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise MissingDependency("matplotlib", "report") from None
    return matplotlib


def _height(plot: Plot) -> float:
    rows = sum(max(1.6, 1.05 * (1 + name.count("\n"))) for name in plot.y.names)
    body = max(_HEIGHT, 0.9 + _LINE * rows) if rows else _HEIGHT
    named = len(plot.series) + len(plot.rules) if _named(plot) else 0
    return body + _LINE * (named + _title(plot).count("\n"))


def _title(plot: Plot) -> str:
    return "\n".join(textwrap.wrap(plot.title.replace(" · ", "\N{NO-BREAK SPACE}· "), _TITLE))


def _named(plot: Plot) -> bool:
    return len(plot.series) > 1 or bool(plot.rules) or any(series.curve for series in plot.series)


def _legend(figure: Figure, plot: Plot) -> None:
    """Below the axes, never on the data."""
    from matplotlib.lines import Line2D

    if not _named(plot):
        return
    handles = [
        Line2D([], [], color=_colour(s), marker=_marker(s) if s.points else "", linestyle=_dash(plot, s))
        for s in plot.series
    ]
    handles += [Line2D([], [], color=INK, linewidth=1.2, linestyle=_rule_dash(plot, rule)) for rule in plot.rules]
    labels = [
        words.brief(label, _LEGEND) for label in (*(s.label for s in plot.series), *(r.label for r in plot.rules))
    ]
    figure.legend(handles, labels, loc="outside lower left", ncols=1, borderaxespad=0.2, labelspacing=0.3)


def _colour(series: Series) -> str:
    return MUTED if series.style.colour < 0 else COLOURS[series.style.colour % len(COLOURS)]


def _marker(series: Series) -> str:
    return MARKERS[series.style.marker % len(MARKERS)]


def _dash(plot: Plot, series: Series) -> Literal["-", "none"]:
    return "-" if series.curve or (plot.joined and len(series.points) > 1) else "none"


def _rule_dash(plot: Plot, rule: Rule) -> Dash:
    return _RULES[plot.rules.index(rule) % len(_RULES)]


def _fill(axes: Axes, plot: Plot) -> None:
    # beside names the axes are narrow, and their label may be wider than they are: it reaches under the names
    axes.set_xlabel(plot.x.label, loc="right" if plot.y.names else "center")
    axes.set_ylabel(plot.y.label)
    _scale(axes, plot, "x", plot.x)
    _scale(axes, plot, "y", plot.y)
    if plot.zero:
        (axes.axvline if plot.zero == "x" else axes.axhline)(0, color=MUTED, linewidth=1.0, zorder=1)
    for series, shift in zip(plot.series, offsets(len(plot.series)), strict=True):
        if plot.bars:
            _bars(axes, series)
        else:
            _series(axes, plot, series, shift if len(plot.series) > 1 else 0.0)
    for rule in plot.rules:
        line = axes.axvline if rule.axis == "x" else axes.axhline
        line(rule.at, color=INK, linewidth=1.2, linestyle=_rule_dash(plot, rule), zorder=4)
    if plot.bars:
        axes.set_ylim(bottom=0)


def _scale(axes: Axes, plot: Plot, which: str, axis: Axis) -> None:
    from matplotlib import ticker

    its = axes.xaxis if which == "x" else axes.yaxis
    if axis.names:
        axes.set_yticks(range(len(axis.names)), axis.names)
        axes.set_ylim(len(axis.names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(ticker.MaxNLocator(5))
    elif axis.scale == "counts":
        axes.set_xscale("log", base=2)
        axes.set_xticks(_ticks(sorted({point.x for series in plot.series for point in series.points})))
        its.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        its.set_minor_locator(ticker.NullLocator())
    elif axis.scale == "log":
        axes.set_xscale("log")
        its.set_major_locator(ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
        its.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
        its.set_minor_locator(ticker.NullLocator())
    elif axis.scale in ("rounds", "steps"):
        its.set_major_locator(ticker.MaxNLocator(integer=True, steps=[1, 2, 5, 10] if axis.scale == "steps" else None))
        its.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    elif axis.percent:
        its.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{100 * value:g}".replace("-", "−")))
    if axis.limits and not axis.names:
        (axes.set_xlim if which == "x" else axes.set_ylim)(*axis.limits)


def _ticks(values: list[float]) -> list[float]:
    """Those counts whose numbers do not run into each other on a logarithmic axis.

    >>> _ticks([2, 4, 8, 12, 16]), _ticks([1, 2, 3]), _ticks([15, 16])
    ([2, 4, 8, 12, 16], [1, 2, 3], [15])
    """
    kept: list[float] = []
    least = (values[-1] / values[0]) ** (1 / 16) if values and values[0] > 0 else 1.0
    for value in values:
        if not kept or value / kept[-1] > max(least, 1.1):
            kept.append(value)
    return kept


def _series(axes: Axes, plot: Plot, series: Series, shift: float) -> None:
    colour, sideways = _colour(series), bool(plot.y.names)
    xs = [point.x if sideways else _shifted(point.x, shift, plot) for point in series.points]
    ys = [point.y + _APART * shift if sideways else point.y for point in series.points]
    known = any(point.low is not None for point in series.points)
    middles = [point.x if sideways else point.y for point in series.points]
    errors = [_errors(middle, point.low, point.high) for middle, point in zip(middles, series.points, strict=True)]
    bars = list(zip(*errors, strict=True)) if known else None
    axes.errorbar(
        xs, ys, xerr=bars if sideways else None, yerr=None if sideways else bars, color=colour, marker=_marker(series),
        linestyle="none" if series.curve else _dash(plot, series), elinewidth=1.0, zorder=3,
        markersize=_SMALL if plot.cloud else None, alpha=_FAINT if plot.cloud else None, markevery=_every(plot, series),
        ecolor=colour if plot.joined or sideways else (colour, _FAINT),
    )  # fmt: skip
    if series.curve:
        axes.plot(series.curve.x, series.curve.y, color=colour, linewidth=1.4, zorder=2)
        if series.curve.low and sum(bool(o.curve and o.curve.low) for o in plot.series) <= _BANDS:
            axes.fill_between(
                series.curve.x, series.curve.low, series.curve.high, color=colour, alpha=0.13, linewidth=0, zorder=1
            )


def _every(plot: Plot, series: Series) -> int | None:
    """Every how manieth point of a line has a marker; None: all."""
    crowded = plot.joined and not plot.cloud and len(series.points) > _MARKED
    return math.ceil(len(series.points) / _MARKED) if crowded else None


def _errors(middle: float, low: float | None, high: float | None) -> tuple[float, float]:
    return (0.0 if low is None else max(0.0, middle - low)), (0.0 if high is None else max(0.0, high - middle))


def _shifted(x: float, shift: float, plot: Plot) -> float:
    """Only where many points share an x, and by a few parts of a hundred: a measured x stays where it is.

    A step is a doubling on an axis of counts, and a sixth of the axis where it is logarithmic, or where intervals of
    several trainings stand at one step.
    """
    if plot.x.scale == "counts":
        return float(x * 2**shift)
    if plot.x.scale == "steps" and any(point.low is not None for series in plot.series for point in series.points):
        steps = [point.x for series in plot.series for point in series.points]
        return x + shift / 6 * (max(steps) - min(steps))
    if plot.x.scale != "log":
        return x
    xs = [point.x for series in plot.series for point in series.points]
    low, high = plot.x.limits or (min(xs), max(xs))
    return float(x * (high / low) ** (shift / 6))


def _bars(axes: Axes, series: Series) -> None:
    xs = [point.x for point in series.points]
    width = min((b - a for a, b in pairwise(xs)), default=1.0)
    axes.bar(xs, [point.y for point in series.points], width * 0.92, color=_colour(series))


# --- into the page ---------------------------------------------------------------------------------------------------


def _for_page(svg: str, plot: Plot) -> str:
    """The drawing as an element of the page: no prologue, its own ids, the page's colours and font."""
    body = words.visible(svg[svg.index("<svg") :])
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"\bid=\"([^\"]+)\"", rf'id="{plot.name}-\1"', body)
    body = re.sub(r"(xlink:href=\"|url\()#", rf"\1#{plot.name}-", body)
    body = re.sub(r"font-family: [^;\"]+;? ?|(?<=font: )", "", body)
    body = re.sub(r"#[0-9a-f]{6}", lambda found: _variable(found.group()), body)
    body = re.sub(r"\n\s*", "\n", body)
    head, rest = body[4 : body.index(">")], body[body.index(">") + 1 :]
    box = re.search(r'viewBox="[^"]+"', head)
    label = f'role="img" aria-labelledby="{plot.name}-title {plot.name}-about"'
    told = f'<title id="{plot.name}-title">{escape(words.visible(plot.title))}</title>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box.group() if box else ""} {label}>{told}{rest}'.strip()


def _variable(colour: str) -> str:
    return f"var({VARIABLES[colour]})" if colour in VARIABLES else colour
