"""Sections → one HTML file that needs nothing else: no request, no framework, every text escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby

from pluribus.reports import words
from pluribus.reports.drawing import COLOURS, COLOURS_DARK, Drawing
from pluribus.reports.grids import RUN, SOURCE, Column, Grid, Row, number, word
from pluribus.reports.plots import Plot


@dataclass(frozen=True, slots=True)
class Lead:
    """A sentence that stands out: the verdict."""

    text: str
    tone: str = "open"
    """pays, loses or open."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values in a few words each."""

    pairs: tuple[tuple[str, str], ...]
    large: bool = False
    """Key numbers: the value stands out."""


@dataclass(frozen=True, slots=True)
class Items:
    """A list of sentences."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """What one may type."""

    text: str


_LONG = 36
"""Letters in a cell that are more than a line of it."""

Part = str | Lead | Code | Facts | Items | Grid | Drawing
"""Text is a paragraph, plain; nothing in it is markup."""


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    """Its anchor."""
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    subtitle: str
    sections: tuple[Section, ...]
    made_by: str
    folder: str
    """Relative to the page: where its figures and tables lie as PNG and CSV; empty: beside it."""

    @property
    def drawings(self) -> list[Drawing]:
        return [part for section in self.sections for part in section.parts if isinstance(part, Drawing)]

    @property
    def grids(self) -> list[Grid]:
        return [part for section in self.sections for part in section.parts if isinstance(part, Grid)]


def html(page: Page) -> str:
    """The whole file."""
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"{_POLICY} script-src 'sha256-{digest}'"
    links = "".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in page.sections)
    body = "\n".join(_section(section, page.folder) for section in page.sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="{escape(page.made_by)}">
<title>{_text(page.title)}</title>
<style>
{_colours()}{_asset("page.css")}</style>
</head>
<body>
<header>
<h1>{_text(page.title)}</h1>
<p class="subtitle">{_text(page.subtitle)}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
{body}
</main>
<footer><p>{_text(page.made_by)}</p></footer>
<script>{script}</script>
</body>
</html>
"""


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
"""Nothing is fetched from anywhere; of scripts the page's own alone may run, by its digest."""


@cache
def _asset(name: str) -> str:
    return (files("pluribus.reports") / name).read_text("utf-8")


def _colours() -> str:
    def block(colours: Sequence[str]) -> str:
        return " ".join(f"--c{i}: {colour};" for i, colour in enumerate(colours))

    return (
        f":root {{ {block(COLOURS)} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {block(COLOURS_DARK)} }} }}\n"
    )


def _text(said: str) -> str:
    """Text as it was said: nothing in it is markup, and no control character stays in it.

    >>> _text('<b onclick="x">\\x00')
    '&lt;b onclick=&quot;x&quot;&gt;\ufffd'
    """
    return escape(words.visible(said))


def _section(section: Section, folder: str) -> str:
    blocks = []
    for drawn, parts in groupby(section.parts, lambda part: isinstance(part, Drawing)):
        inner = "\n".join(_part(part, folder) for part in parts)
        blocks.append(f'<div class="figures">\n{inner}\n</div>' if drawn else inner)
    body = "\n".join(blocks)
    return f'<section id="{section.name}">\n<h2>{_text(section.title)}</h2>\n{body}\n</section>'


def _part(part: Part, folder: str) -> str:
    if isinstance(part, str):
        return f"<p>{_text(part)}</p>"
    if isinstance(part, Lead):
        return f'<p class="lead {part.tone}">{_text(part.text)}</p>'
    if isinstance(part, Code):
        return f'<pre tabindex="0"><code>{_text(part.text)}</code></pre>'
    if isinstance(part, Items):
        return f"<ul>{''.join(f'<li>{_text(text)}</li>' for text in part.texts)}</ul>"
    if isinstance(part, Facts):
        return _facts(part)
    return _figure(part, folder) if isinstance(part, Drawing) else _table(part, folder)


def _facts(facts: Facts) -> str:
    pairs = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.pairs)
    return f'<dl class="{"keys" if facts.large else "facts"}">{pairs}</dl>'


def _figure(drawing: Drawing, folder: str) -> str:
    plot = drawing.plot
    numbers = points(plot)
    table = f'<a href="#{plot.table}">table {_text(plot.table)}</a>'
    files = f'<a href="{folder}figures/{plot.name}.png">PNG</a>, <a href="{folder}figures/{plot.name}.csv">CSV</a>'
    return f"""<figure id="{plot.name}">
{drawing.svg}
<figcaption id="{plot.name}-about">{_text(plot.about)} Points: {table}; {files}.</figcaption>
<details><summary>Numbers in this figure</summary>{_box(numbers)}</details>
</figure>"""


def _table(grid: Grid, folder: str) -> str:
    about = f"<p>{_text(grid.about)}</p>" if grid.about else ""
    file = f'<p class="file"><a href="{folder}tables/{grid.name}.csv">CSV</a></p>'
    head = f"<h3>{_text(grid.title)}</h3>{about}"
    return f'<div class="table" id="{grid.name}">\n{head}\n{_box(grid)}{file}</div>'


def _box(grid: Grid) -> str:
    columns = grid.used
    heads = "".join(_head(column) for column in columns)
    rows = "\n".join(_row(columns, row) for row in grid.rows)
    tall = " tall" if grid.tall else ""
    label = f'role="region" aria-label="{_text(grid.title)}" tabindex="0"'
    return f"""<div class="box{tall}" {label}><table>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table></div>"""


def _head(column: Column) -> str:
    kind = ' class="n"' if column.number else ""
    about = f' title="{_text(column.about)}"' if column.about else ""
    return f'<th scope="col"{kind}><button type="button"{about}>{_text(column.head)}</button></th>'


def _row(columns: Sequence[Column], row: Row) -> str:
    first, *rest = columns
    cells = "".join(f"<td{_kind(column, row)}>{_shown(column, row)}</td>" for column in rest)
    return f'<tr><th scope="row"{_kind(first, row)}>{_shown(first, row)}</th>{cells}</tr>'


def _kind(column: Column, row: Row) -> str:
    if not column.number:
        return ' class="long"' if len(_shown(column, row)) > _LONG else ""
    value = row.get(column.keys[0])
    return f' class="n" data-sort="{"" if value is None else float(value)!r}"'


def _shown(column: Column, row: Row) -> str:
    return _text(column.show(*(row.get(key) for key in column.keys)))


def points(plot: Plot) -> Grid:
    """The numbers a figure shows, each with the run it comes from: the figure's text alternative, and its CSV file."""
    show = {True: words.percent, False: _number}
    columns = (
        word("line", "line"),
        word("place", "place"),
        number(plot.x.label, "x", show[plot.x.percent]),
        number(plot.y.label, "y", show[plot.y.percent]),
        number("low", "low", show[(plot.x if plot.y.names else plot.y).percent], "Low end of the 95 % interval"),
        number("high", "high", show[(plot.x if plot.y.names else plot.y).percent], "High end of the 95 % interval"),
        RUN,
        SOURCE,
    )
    return Grid(plot.name, f"{plot.title}: the numbers", columns, tuple(_points(plot)), tall=True)


def _points(plot: Plot) -> Iterator[Row]:
    for series in plot.series:
        for point in series.points:
            place = {"place": plot.y.names[round(point.y)]} if plot.y.names else {"y": point.y}
            ends = {"low": point.low, "high": point.high, "run": point.run, "source": point.source}
            yield {"line": series.label, "x": point.x, **place, **ends}


def _number(value: float | None) -> str:
    return words.NOTHING if value is None else f"{value:,.4g}".replace("-", "−")
