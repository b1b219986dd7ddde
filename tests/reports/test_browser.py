"""The page in a real browser: it asks for nothing, complains of nothing, can be read, sorted, and seen in the dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.reports.chromium import PROGRAM, opened

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no chromium on this machine")

FIGURES = """[...document.querySelectorAll("figure")].map(figure => {
  const svg = figure.querySelector("svg");
  const told = svg.getAttribute("aria-labelledby").split(" ").map(id => document.getElementById(id));
  return {
    name: figure.id, role: svg.getAttribute("role"), told: told.map(one => one && one.textContent),
    texts: [...svg.querySelectorAll("text")].map(text => text.textContent),
    rows: figure.querySelectorAll("details tbody tr").length,
    points: [...figure.querySelectorAll("figcaption a")].map(a => a.getAttribute("href")),
    table: !!document.querySelector(figure.querySelector("figcaption a").getAttribute("href") + " table"),
    width: svg.getBoundingClientRect().width,
  };
})"""
UNITS = {
    "agents (answers in the vote)",
    "tokens per question, prompt and completion (log scale)", "accuracy, % of questions",
    "K* per question, effective number of different texts",
    "K* of the agents' mean texts, effective number of agents", "K*, effective number of agents", "round",
    "Fleiss’ κ, −1 to 1",
    "mean accuracy of members, %", "all members wrong, % of questions", "difference of accuracy, percentage points",
    "council", "seat", "ΔK*, effective agents lost without the seat",
}  # fmt: skip
"""Every name of an axis, with its unit where it has one."""
COLUMN = """[...document.querySelectorAll("#cells tbody tr")].map(row => parseFloat(row.cells[%d].dataset.sort))"""
STATE = """[...document.querySelectorAll("#cells thead th")].map(head => head.getAttribute("aria-sort"))"""
CONTRAST = """(() => {
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const paper = light(getComputedStyle(document.documentElement).backgroundColor);
  const of = (selector, what) => [...document.querySelectorAll(selector)].map(e => getComputedStyle(e)[what])
    .filter(c => c.startsWith("rgb(")).map(c => ratio(light(c), paper));
  return { paper, text: Math.min(...of("h1, p, td, th, a, figcaption, .lead", "color"), ...of("svg text", "fill")),
           marks: Math.min(...of("svg [style*='--c'] , svg use[style*='--c']", "stroke")) };
})()"""


async def test_it_asks_for_nothing_and_complains_of_nothing(swept: Path, tmp_path: Path) -> None:
    async with opened(swept, tmp_path) as tab:
        assert await tab.evaluate("document.readyState") == "complete"
        assert await tab.evaluate("document.querySelectorAll('table').length") > 5
        assert tab.requests == [swept.as_uri()]
        assert tab.complaints == []


async def test_each_figure_has_title_axes_with_units_and_its_numbers_in_words(swept: Path, tmp_path: Path) -> None:
    async with opened(swept, tmp_path) as tab:
        figures = await tab.evaluate(FIGURES)
    names = {figure["name"] for figure in figures}
    wanted = {"accuracy-agents", "accuracy-tokens", "kstar-accuracy", "delta-kstar", "differences", "round-accuracy"}
    assert all(any(name.startswith(one) for name in names) for one in wanted), names
    for figure in figures:
        title, about = figure["told"]
        assert figure["role"] == "img"
        assert title
        assert len(about) > 40, figure
        assert title.split()[0] in " ".join(figure["texts"])
        assert len(UNITS & set(figure["texts"])) == 2, figure["texts"]
        assert figure["rows"] >= 2, figure
        assert figure["table"], figure["points"]


async def test_a_table_is_sorted_from_the_keyboard(swept: Path, tmp_path: Path) -> None:
    async with opened(swept, tmp_path) as tab:
        heads = await tab.evaluate("[...document.querySelectorAll('#cells thead th')].map(h => h.textContent)")
        place = heads.index("accuracy, %")
        await tab.evaluate(f"document.querySelectorAll('#cells thead th button')[{place}].focus()")
        before = await tab.evaluate(COLUMN % place)
        await tab.press("Enter")
        assert await tab.evaluate(COLUMN % place) == sorted(before)
        assert (await tab.evaluate(STATE))[place] == "ascending"
        await tab.press("Enter")
        assert await tab.evaluate(COLUMN % place) == sorted(before, reverse=True)
        states = await tab.evaluate(STATE)
    assert (states[place], {*states[:place], *states[place + 1 :]}) == ("descending", {"none"})
    assert len(set(before)) > 2


@pytest.mark.parametrize("width", [360, 390, 1280])
async def test_the_page_never_scrolls_sideways(swept: Path, tmp_path: Path, width: int) -> None:
    async with opened(swept, tmp_path) as tab:
        await tab.look(width)
        assert await tab.evaluate("document.documentElement.scrollWidth") <= width
        wide = "[...document.querySelectorAll('.box')].filter(box => box.scrollWidth > box.clientWidth).length"
        assert (await tab.evaluate(wide) > 0) or width > 1000, "wide tables scroll inside their boxes"


async def test_it_can_be_read_by_day_and_by_night(swept: Path, tmp_path: Path) -> None:
    async with opened(swept, tmp_path) as tab:
        await tab.look(1280)
        day = await tab.evaluate(CONTRAST)
        await tab.look(1280, dark=True)
        night = await tab.evaluate(CONTRAST)
    assert day["paper"] > 0.8 > 0.1 > night["paper"]
    for seen in (day, night):
        assert seen["text"] >= 4.5, "WCAG 2.2 AA for text"
        assert seen["marks"] >= 3.0, "and for graphical objects"
