"""Figures: their colours, and what they are made of."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from pluribus.reports.drawing import COLOURS, COLOURS_DARK, MARKERS, draw
from pluribus.reports.plots import Axis, Curve, Plot, Point, Series, Style

BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""What is left of linear RGB at full severity: Machado, Oliveira and Fernandes 2009."""
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def lab(colour: str, seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE L*a*b* of a colour as somebody sees it."""
    srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    xyz = _XYZ @ np.clip(seen @ linear, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("palette", [COLOURS, COLOURS_DARK])
@pytest.mark.parametrize("kind", [None, *BLIND])
def test_the_first_colours_are_told_apart_by_everybody(palette: tuple[str, ...], kind: str | None) -> None:
    seen = np.array(BLIND[kind]) if kind else np.eye(3)
    pairs = combinations([lab(colour, seen) for colour in palette[:3]], 2)
    assert min(np.linalg.norm(a - b) for a, b in pairs) > 10, "2 is just noticed"


def test_no_two_lines_have_colour_and_marker_alike() -> None:
    looks = {(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in range(72)}
    assert len(looks) == 72


def plot(name: str = "p", label: str = "one", **entries: object) -> Plot:
    series = (
        Series(label, (Point(2, 0.5, 0.4, 0.6), Point(8, 0.7, 0.6, 0.8)), Style(0, 0), Curve((2, 8), (0.5, 0.7))),
        Series("two", (Point(2, 0.5, 0.4, 0.6),), Style(1, 1)),
    )
    whole = {"x": Axis("agents", "counts"), "y": Axis("accuracy, %", percent=True), "series": series, **entries}
    return Plot(name=name, title=f"Title of {name}", table="cells", **whole)  # type: ignore[arg-type]


def test_a_drawing_names_nothing_outside_itself() -> None:
    svg = draw(plot()).svg
    assert not re.findall(r"https?://(?!www\.w3\.org/)", svg)
    assert "<style" not in svg
    assert "<metadata" not in svg
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(id.startswith("p-") for id in ids)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    assert used <= set(ids)
    assert used


def test_colours_are_the_pages_own() -> None:
    svg = draw(plot()).svg
    assert set(re.findall(r"var\((--\w+)\)", svg)) == {"--ink", "--muted", "--rule", "--c0", "--c1"}
    assert not re.findall(r"(?:fill|stroke): #", svg)


def test_names_are_text_and_never_markup_or_mathematics() -> None:
    drawing = draw(plot(label='<script>alert("$x^2$")</script> & 模型'))
    assert "<script" not in drawing.svg
    assert "$x^2$" in drawing.svg
    assert "模型" in drawing.svg
    assert drawing.png.startswith(b"\x89PNG")


def test_the_same_plot_is_the_same_drawing() -> None:
    assert draw(plot()) == draw(plot())


def test_bars_with_names_and_with_heights() -> None:
    rows = plot(y=Axis("seat", names=("first seat", "second seat\nof two")), zero="x", x=Axis("ΔK*"))
    assert "second seat" in draw(rows).svg
    bars = plot(x=Axis("reward"), y=Axis("candidates, count"), bars=True)
    assert "candidates, count" in draw(bars).svg
