"""What a figure shows, as plain values: axes, series of points with intervals, fitted curves, rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Scale = Literal["linear", "log", "counts", "rounds", "steps"]
"""`counts`: logarithmic to base 2, with a tick at every value there is; `rounds`: whole numbers;
`steps`: the same, of which there are many."""


@dataclass(frozen=True, slots=True)
class Axis:
    label: str
    """With the unit behind a comma or in brackets."""
    scale: Scale = "linear"
    limits: tuple[float, float] | None = None
    percent: bool = False
    """The values are shares; the axis shows them times 100."""
    names: tuple[str, ...] = ()
    """Of the places 0, 1, … of an axis that has no numbers."""


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    """Ends of the interval: of y, or of x where the y axis has names."""
    run: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """A fitted curve and its band."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Style:
    """Numbers of a colour and of a marker; equal ones look equal in every figure of a report."""

    colour: int = 0
    """−1: grey."""
    marker: int = 0


@dataclass(frozen=True, slots=True)
class Series:
    label: str
    points: tuple[Point, ...]
    style: Style = Style()
    curve: Curve | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line at one value, named in the legend."""

    axis: Literal["x", "y"]
    """The axis on which the value lies."""
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    name: str
    """Of the files and the anchor."""
    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    table: str
    """Anchor of the table that the points come from."""
    about: str = ""
    """What to read out of it, in one or two sentences."""
    joined: bool = False
    """Whether the points of a series are joined by a line."""
    bars: bool = False
    zero: Literal["x", "y"] | None = None
    """The axis on which 0 means "no difference" and gets a rule."""
    rules: tuple[Rule, ...] = ()
    cloud: bool = False
    """Whether there are so many points that they are small and lie over each other."""


def offsets(n: int) -> list[float]:
    """Small shifts that keep the error bars of n series apart, symmetric around 0, in parts of a step.

    >>> offsets(3), offsets(1)
    ([-0.06, 0.0, 0.06], [0.0])
    """
    width = min(0.06, 0.5 / max(1, n))
    return [round(width * (i - (n - 1) / 2), 6) for i in range(n)]


def room(plot: Plot, side_by_side: int = 1) -> tuple[Axis, Axis]:
    """The plot's axes with limits that hold every point and interval, so that parts of it can be compared.

    Args:
        side_by_side: series that one part holds at most; their points are moved sideways, also those at the ends.

    >>> points = (Point(2, 0.5, 0.4, 0.6), Point(8, 0.7))
    >>> x, y = room(Plot("p", "P", Axis("n", "counts"), Axis("%"), (Series("s", points),), "cells"))
    >>> [round(end, 3) for end in (*x.limits, *y.limits)]
    [1.741, 9.19, 0.385, 0.715]
    """
    points = [point for series in plot.series for point in series.points]
    ys = [end for p in points for end in (p.y, p.low, p.high) if end is not None]
    aside = 2 ** max(offsets(side_by_side)) if plot.x.scale == "counts" else 1.0
    xs = [end for point in points for end in (point.x / aside, point.x * aside)]
    return _limited(plot.x, xs, 0.1), _limited(plot.y, ys, 0.05)


def widest(axis: Axis, points: Sequence[Point]) -> Axis:
    """An x axis whose limits hold points with intervals that lie sideways."""
    ends = [end for point in points for end in (point.x, point.low, point.high, 0.0) if end is not None]
    return _limited(axis, ends, 0.05)


def _limited(axis: Axis, values: Sequence[float], margin: float) -> Axis:
    low, high = min(values), max(values)
    if axis.scale in ("log", "counts"):
        wide = max((high / low) ** margin, 1.05)
        return replace(axis, limits=(low / wide, high * wide))
    wide = (high - low) * margin or 0.05
    if axis.percent and low >= 0:  # shares: nothing lies above 100 %
        return replace(axis, limits=(max(low - wide, -0.02), min(high + wide, 1.02)))
    return replace(axis, limits=(low - wide, high + wide))
