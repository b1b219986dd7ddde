"""Curves fitted to the lines of the figures, and small councils against large ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluribus.panel import Panel, credits
from pluribus.reports import tabulated, words
from pluribus.reports.grids import SOURCE, Grid, grid, number, word
from pluribus.reports.material import Council
from pluribus.reports.plots import Curve
from pluribus.scaling import Fit, Form, Match, fit, matches, rank_correlation
from pluribus.stats import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST = 3
"""Different places on the x axis that a curve needs; through two a line always goes."""
_BENT = 4
"""Different places that a saturating curve needs: it has three parameters."""
_CLEARLY = 0.05
"""Of R²: so much more must a curve with one more parameter explain."""
_NARROW = 0.05
"""Where all K* are as near each other as this, a slope per unit of K* says nothing."""


_FORMS = (
    "log2: accuracy = a + b log₂ x; linear: a + b x; saturating: a − b x^(−c), where the councils settle it and it "
    "explains more, or the logarithm would leave 0 to 100 % between them."
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The curve of one line."""

    line: str
    against: str
    unit: str
    """What its gain is counted per."""
    fit: Fit
    councils: tuple[Council, ...]

    @property
    def curve(self) -> Curve:
        return Curve(self.fit.grid_x, self.fit.grid_accuracy, self.fit.grid_low, self.fit.grid_high)


def fitted(councils: Sequence[Council], *, seed: int = 0) -> dict[str, tuple[Fitted, ...]]:
    """agents, tokens or K* → fitted curves: of each line that has places enough, and against K* of all councils.

    Intervals resample questions, one draw for all councils of a curve.
    """

    def each(against: str, x: Callable[[Council], float | None]) -> tuple[Fitted, ...]:
        found = [
            _fitted(line, those, against, f"doubling of {against}", "log2", x, seed)
            for line, those in lines(councils).items()
        ]
        return tuple(one for one in found if one is not None)

    diverse = _fitted(
        "all councils", councils, "K*", "unit of K*", "linear", lambda c: c.analysis.file.Nstar_question, seed
    )
    return {
        "agents": each("agents", lambda c: c.analysis.file.n_agents),
        "tokens": each("tokens", lambda c: tabulated.per_question(c, c.analysis.file.tokens) or None),
        "K*": (diverse,) if diverse else (),
    }


def _kstar(council: Council) -> float | None:
    return council.analysis.file.Nstar_question


def lines(councils: Sequence[Council]) -> dict[str, list[Council]]:
    """Line of the figures → its councils."""
    found: dict[str, list[Council]] = {}
    for council in councils:
        found.setdefault(council.condition, []).append(council)
    return found


def _fitted(
    line: str,
    councils: Sequence[Council],
    against: str,
    unit: str,
    form: Form,
    x: Callable[[Council], float | None],
    seed: int,
) -> Fitted | None:
    known = [(place, c) for c in councils if (place := x(c)) is not None and c.analysis.file.accuracy is not None]
    places = {place for place, _ in known}
    if len(places) < _LEAST or len({c.panel.task for _, c in known}) > 1 or max(places) - min(places) < _NARROW:
        return None
    table = aligned([council.panel for _, council in known])
    curve = _within([p for p, _ in known], table, form, seed)
    return Fitted(line, against, unit, curve, tuple(c for _, c in known))


def _within(x_C: Sequence[float], credit_Q_C: NDArray[np.float64], form: Form, seed: int) -> Fit:
    """The curve of that form; in the place of a logarithm a saturating one, if the councils settle it, where that
    explains clearly more of their variance or the logarithm leaves [0, 1] between them."""
    found = fit(x_C, credit_Q_C, form, seed=seed)
    if form != "log2" or len(set(x_C)) < _BENT:
        return found
    bent = fit(x_C, credit_Q_C, "saturating", seed=seed)
    better = (bent.r2 or 0) > (found.r2 or 0) + _CLEARLY or not all(0 <= y <= 1 for y in found.grid_accuracy)
    return bent if bent.identified and better else found


def aligned(panels: Sequence[Panel]) -> NDArray[np.float64]:
    """(questions, panels): each panel's credits on every question that one of them was asked; NaN: it has none."""
    import numpy as np

    ids = {id: row for row, id in enumerate(dict.fromkeys(item.question_id for p in panels for item in p.items))}
    table = np.full((len(ids), len(panels)), math.nan)
    for column, panel in enumerate(panels):
        table[[ids[item.question_id] for item in panel.items], column] = credits(panel)
    return table


def curves(found: Sequence[Fitted]) -> Mapping[str, Curve]:
    return {one.line: one.curve for one in found}


def fit_table(found: Mapping[str, Sequence[Fitted]]) -> Grid | None:
    """What the curves say; none where no line has places enough."""
    columns = (
        word("line", "line"), word("accuracy against", "against"), word("form", "form"),
        number("gain, points", "gain low high", lambda *v: words.points(*(None if x is None else x / 100 for x in v)),
               "Of accuracy; 95 % interval by resampling questions"),
        word("per", "unit"),
        number("ceiling, %", "ceiling ceiling_low ceiling_high", words.percent_between, "Of a saturating curve"),
        number("p", "p", words.probability, "That the gain is 0, not corrected"),
        number("R²", "r2", words.decimal, "Share of the councils' variance that the curve explains"),
        number("councils", "n_cells"), number("questions", "n_questions"), word("runs", "runs", show=_several),
        word("sources", "source", show=_several),
    )  # fmt: skip
    rows = []
    for one in (each for those in found.values() for each in those):
        gain, ceiling = one.fit.gain, dict(one.fit.parameters).get("ceiling")
        rows.append({
            "line": one.line, "against": one.against, "form": one.fit.form, "unit": one.unit, "r2": one.fit.r2,
            "gain": gain and gain.value, "low": gain and gain.low, "high": gain and gain.high, "p": gain and gain.p,
            "ceiling": ceiling and ceiling.value, "ceiling_low": ceiling and ceiling.low,
            "ceiling_high": ceiling and ceiling.high, "n_cells": len(one.councils), "n_questions": one.fit.n_questions,
            "runs": "; ".join(c.name for c in one.councils),
            "source": "; ".join(c.panel.source for c in one.councils),
        })  # fmt: skip
    return grid("fits", "Fitted curves", columns, rows, _FORMS)


def _several(names: str) -> str:
    """The first few of many names; the CSV file has all."""
    return words.listed(names.split("; "), 2)


def diversity_rank(councils: Sequence[Council], *, seed: int = 0) -> Estimate | None:
    """Spearman's correlation of K* per question with accuracy over the councils; None where fewer than three rank."""
    known = [c for c in councils if _kstar(c) is not None and c.analysis.file.accuracy is not None]
    places = [_kstar(c) or 0.0 for c in known]
    if len(set(places)) < _LEAST:
        return None
    return rank_correlation(places, aligned([c.panel for c in known]), seed=seed)


def few_against_many(councils: Sequence[Council], *, seed: int = 0) -> list[Match]:
    """The smallest councils of several models against the largest of one, on the same task, by the same method and with
    personas alike; where the smallest does not match, also the smallest of its line that does."""
    mixed = [c for c in councils if _models(c.panel) > 1]
    equal = [c for c in councils if _models(c.panel) == 1]
    fewest = min((len(c.panel.members) for c in mixed), default=0)
    most = max((len(c.panel.members) for c in equal), default=0)
    if not fewest or most <= fewest:
        return []
    found: list[Match] = []
    for line in lines(mixed).values():
        for large in (c for c in equal if len(c.panel.members) == most):
            found += _first_match([c.panel for c in line], large.panel, fewest, seed)
    return found


def _first_match(line: Sequence[Panel], large: Panel, fewest: int, seed: int) -> list[Match]:
    smaller = [p for p in line if len(p.members) < len(large.members) and _comparable(p, large)]
    found: list[Match] = []
    for small in sorted(smaller, key=lambda p: len(p.members)):
        if found and found[-1].matches:
            break
        one = matches(small, large, seed=seed)
        if one.matches or len(small.members) == fewest:
            found.append(one)
    return found


def match_table(found: Sequence[Match], councils: Sequence[Council]) -> Grid | None:
    """Each small council beside each large one."""
    columns = (
        word("few, diverse", "few"), word("many, equal", "many"), number("questions", "n"),
        number("few minus many, points", "difference low high", words.points, "95 % paired bootstrap interval"),
        number("margin, points", "margin", words.percent, "The loss that does not matter"),
        word("match", "match", "yes: the whole interval lies above −margin; no: below it"),
        word("run, few", "small"), word("run, many", "large"), SOURCE,
    )  # fmt: skip
    named = {council.name: council for council in councils}
    rows = [
        {
            "few": tabulated.label(named[one.small]), "many": tabulated.label(named[one.large]),
            "small": one.small, "large": one.large, "n": one.n, "margin": one.margin,
            "difference": one.difference.value, "low": one.difference.low, "high": one.difference.high,
            "match": {True: "yes", False: "no", None: "not settled"}[one.matches],
            "source": f"{named[one.small].panel.source}, {named[one.large].panel.source}",
        }
        for one in found
    ]  # fmt: skip
    about = "Of each line the smallest council, and where that does not match, the smallest that does."
    return grid("few-many", "Few diverse agents against many equal ones", columns, rows, about)


def _models(panel: Panel) -> int:
    return len({member.model for member in panel.members})


def _comparable(a: Panel, b: Panel) -> bool:
    def known(panel: Panel) -> set[str]:
        return {item.question_id for item in panel.items if item.credit is not None}

    same = (a.task, a.method, _personas(a)) == (b.task, b.method, _personas(b))
    return same and bool(known(a) & known(b))


def _personas(panel: Panel) -> str:
    """No personas, one for all, or several."""
    found = {member.persona for member in panel.members} - {None}
    return "none" if not found else "one" if len(found) == 1 else "several"
