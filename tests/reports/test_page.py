"""The file: safe whatever names models and personas have, complete, and written with its figures and tables."""

from __future__ import annotations

import base64
import csv
import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pluribus.panel import Panel
from pluribus.reports import Material, Scores, write
from pluribus.reports.page import html
from pluribus.reports.sections import page

Make = Callable[..., Any]
NASTY = '"><script>alert(1)</script><img src=x onerror=alert(1)> \x00\u202e${7*7}'
DEBATE = [[["0", "1"], ["0", "0"]], [["1", "1"], ["1", "1"]], [["5", "2"], ["2", "2"]], [["3", "4"], ["4", "4"]]]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.fixture
def nasty(panel: Callable[..., Panel], measured: Make) -> Material:
    first = panel(DEBATE, name=NASTY, models=[NASTY, "vllm/b"], personas=[NASTY, None], task=NASTY, method=NASTY)
    second = panel(DEBATE, name="plain", models=["vllm/a", "vllm/b"], task=NASTY, omitted={NASTY: 2})
    return Material(NASTY, measured(first, second), "hashing")


def test_no_name_becomes_markup(nasty: Material) -> None:
    text = html(page(nasty))
    tags = Tags()
    tags.feed(text)
    names = {tag for tag, _ in tags.seen}
    assert names.isdisjoint({"img", "iframe", "object", "link", "base", "form", "foreignobject", "image"})
    assert [tag for tag, _ in tags.seen].count("script") == 1
    assert not [key for _, attributes in tags.seen for key in attributes if key.startswith("on")]
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_policy_lets_the_pages_own_script_run_and_nothing_else(nasty: Material) -> None:
    text = html(page(nasty))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
    assert policy
    assert script
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert policy[1].startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert "http" not in policy[1]


def test_links_lead_into_the_page_or_beside_it(nasty: Material, tmp_path: Path) -> None:
    written = write(nasty, tmp_path / "out.html")
    tags = Tags()
    tags.feed(written.page.read_text("utf-8"))
    ids = {attributes.get("id") for _, attributes in tags.seen}
    links = [attributes["href"] or "" for tag, attributes in tags.seen if tag == "a"]
    assert len(links) > 20
    for link in links:
        assert (link[1:] in ids) if link.startswith("#") else (tmp_path / link).is_file(), link
    assert all(path.parent.parent == tmp_path / "out-files" for path in (*written.figures, *written.tables))


def test_no_id_is_given_twice(nasty: Material) -> None:
    ids = re.findall(r'\sid="([^"]+)"', html(page(nasty)))
    assert len(ids) == len(set(ids))


def test_each_row_of_each_table_and_each_point_names_its_run(nasty: Material, tmp_path: Path) -> None:
    written = write(nasty, tmp_path)
    for path in written.tables:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows
        for row in rows:
            assert any("plain" in value or "onerror" in value for value in row.values()), path


def test_the_same_material_is_the_same_file(nasty: Material) -> None:
    assert html(page(nasty)) == html(page(nasty))


def test_rewards_come_in_when_there_are_any(panel: Callable[..., Panel], measured: Make) -> None:
    councils = measured(panel(DEBATE))
    without = page(Material("t", councils, "hashing"))
    assert "rewards" not in {section.name for section in without.sections}
    scores = Scores("council", "run council", (0.1, 0.5, 0.9, 0.9), (0.01, 0.2, 0.0, 0.03))
    made = page(Material("t", councils, "hashing", scores=(scores,)))
    drawn = {one.plot.name: one.plot for one in made.drawings}
    assert sum(point.y for point in drawn["reward-1"].series[0].points) == 4
    assert drawn["disagreement-1"].title == "Judges' disagreement: council"
    assert "scores" in {grid.name for grid in made.grids}
