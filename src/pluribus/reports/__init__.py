"""Reports: panels, measured and compared, and trainings, as one HTML file that needs nothing else, with PNG and CSV
beside it.

`material.measure` computes, `sections.page` arranges, `page.html` writes; `write` puts all of it into files.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pluribus.reports.grids import Grid
from pluribus.reports.material import Council, Material, Scores, measure
from pluribus.reports.trainings import Training
from pluribus.store.files import whole
from pluribus.tables import csv_cell

if TYPE_CHECKING:
    from pluribus.reports.page import Page

__all__ = ["Council", "Material", "Scores", "Training", "Written", "measure", "places", "write"]


@dataclass(frozen=True, slots=True)
class Written:
    """Where a report lies."""

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]


def places(out: Path) -> tuple[Path, Path]:
    """The page's file, and the folder of its figures and tables, for a folder or an HTML file.

    >>> [str(path) for path in places(Path("out"))], [str(path) for path in places(Path("out/gsm8k.html"))]
    (['out/report.html', 'out'], ['out/gsm8k.html', 'out/gsm8k-files'])
    """
    if out.suffix.lower() in (".html", ".htm"):
        return out, out.with_name(f"{out.stem}-files")
    return out / "report.html", out


def write(found: Material, out: Path, *, seed: int = 0) -> Written:
    """Draws and writes a report.

    Args:
        out: a folder, or an HTML file; then PNG and CSV lie in the folder `NAME-files` beside it.
        seed: of the intervals of fitted curves.

    Raises:
        MissingDependency: matplotlib is not installed.
        StoreError: a file can not be written.
    """
    from pluribus.reports.page import html
    from pluribus.reports.sections import page

    path, folder = places(out)
    made = page(found, "" if folder == path.parent else f"{folder.name}/", seed=seed)
    figures = tuple(_png(folder / "figures" / f"{one.plot.name}.png", one.png) for one in made.drawings)
    tables = _tables(made, folder)
    with whole(path) as part:
        part.write_text(html(made), "utf-8")
    return Written(path, figures, tables)


def _png(path: Path, content: bytes) -> Path:
    with whole(path) as part:
        part.write_bytes(content)
    return path


def _tables(made: Page, folder: Path) -> tuple[Path, ...]:
    """Every table, and the points of every figure, as CSV with all digits."""
    from pluribus.reports.page import points

    placed = [("tables", grid) for grid in made.grids] + [("figures", points(one.plot)) for one in made.drawings]
    return tuple(_csv(folder / where / f"{grid.name}.csv", grid) for where, grid in placed)


def _csv(path: Path, grid: Grid) -> Path:
    keys = [key for column in grid.used for key in column.keys]
    with whole(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(keys)
        out.writerows([csv_cell(row.get(key)) for key in keys] for row in grid.rows)
    return path
