"""How accuracy grows with agents, diversity or tokens: curves fitted over the cells of a sweep, all on the same
questions, with intervals that resample the questions, one draw for all cells.

Accuracies are shares in [0, 1]; gains are in points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pluribus.compare import calls, per_question, points
from pluribus.panel import Panel, credits
from pluribus.stats import Estimate, paired_difference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Form = Literal["log2", "linear", "saturating"]
FORMS: tuple[Form, ...] = ("log2", "linear", "saturating")
_EXPONENTS = tuple(0.05 * 1.08**i for i in range(60))
"""c of a − b x^(−c): 0.05 to 4.7, 8 % apart."""
_LEAST_R2 = 0.5
"""A saturating curve that explains less is not told from a straight one."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the curve."""

    x: float
    accuracy: float
    low: float
    high: float
    """95 % bootstrap interval over questions."""
    n: int
    """Questions with a credit."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A curve through the cells."""

    form: Form
    cells: tuple[Cell, ...]
    n_questions: int
    parameters: tuple[tuple[str, Estimate], ...]
    """log2: intercept (accuracy at x = 1), slope (per doubling); linear: intercept (at x = 0), slope (per unit);
    saturating: ceiling a, drop b, exponent c. As shares; Estimate.p tests that it is 0."""
    r2: float | None
    """Share of the cells' variance that the curve explains; None: the cells are all equal."""
    grid_x: tuple[float, ...]
    grid_accuracy: tuple[float, ...]
    grid_low: tuple[float, ...]
    grid_high: tuple[float, ...]
    """95 % band of the curve over `grid_x`."""
    identified: bool = True
    """False: the cells do not settle the parameters, see `note`; do not report the curve."""
    note: str | None = None

    @property
    def gain(self) -> Estimate | None:
        """Points per doubling of x (log2) or per unit of x (linear) with interval; None for a saturating curve."""
        slope = dict(self.parameters).get("slope")
        return None if slope is None else Estimate(100 * slope.value, 100 * slope.low, 100 * slope.high, slope.p)


def fit(x_C: Sequence[float], credit_Q_C: Floats, form: Form = "log2", *, resamples: int = 2000, seed: int = 0) -> Fit:
    """Least squares of the cells' accuracies on x, with intervals by resampling questions.

    log2: accuracy = a + b log₂ x; linear: a + b x; saturating: a − b x^(−c), c by grid, a and b by least squares.
    The intervals hold for these cells and questions like these: x is taken as known, and seeds are not resampled.

    >>> import numpy as np
    >>> credit_Q_C = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=float)
    >>> found = fit([1, 2, 4], credit_Q_C, "log2")
    >>> found.gain.value, found.r2
    (25.0, 1.0)

    Args:
        x_C: agents, K*, tokens, … of each cell; above 0 for log2 and saturating.
        credit_Q_C: (questions, cells), credits in [0, 1]; NaN: that cell has none for that question. Each question is
            one cluster: its credits in all cells are drawn together.
        form: log2, linear or saturating.

    Raises:
        ValueError: fewer than two different x, an x that the form does not take, a cell without credits.

    Source: cluster bootstrap, Davison and Hinkley 1997, Bootstrap Methods and their Application, section 3.8.
    """
    import numpy as np

    x, credit = _checked(x_C, credit_Q_C, form)
    means = _resampled(credit, resamples, seed)
    solve, curve = _solvers(form)
    values_P, drawn_B_P = solve(x, means[:1])[0], solve(x, means[1:])
    grid = np.geomspace(x.min(), x.max(), 41) if form != "linear" else np.linspace(x.min(), x.max(), 41)
    band = np.quantile(curve(drawn_B_P, grid), [0.025, 0.975], axis=0)
    names = ("ceiling", "drop", "exponent") if form == "saturating" else ("intercept", "slope")
    r2 = _r2(means[0], curve(values_P[None], x)[0])
    why = _unsettled(x, values_P, drawn_B_P, r2) if form == "saturating" else None
    return Fit(
        form=form,
        cells=_cells(x, credit, means),
        n_questions=len(credit),
        parameters=tuple((name, _estimate(values_P[i], drawn_B_P[:, i])) for i, name in enumerate(names)),
        r2=r2,
        grid_x=tuple(grid.tolist()),
        grid_accuracy=tuple(curve(values_P[None], grid)[0].tolist()),
        grid_low=tuple(band[0].tolist()),
        grid_high=tuple(band[1].tolist()),
        identified=why is None,
        note=why,
    )


def _checked(x_C: Sequence[float], credit_Q_C: Floats, form: Form) -> tuple[Floats, Floats]:
    import numpy as np

    x, credit = np.asarray(x_C, dtype=np.float64), np.asarray(credit_Q_C, dtype=np.float64)
    if form not in FORMS:
        raise ValueError(f"form is {form!r}; expected {', '.join(FORMS)}")
    if credit.ndim != 2 or credit.shape[1] != len(x) or len(credit) == 0:
        raise ValueError(f"credits have shape {credit.shape} for {len(x)} cells; expected (questions, cells)")
    if not np.isfinite(x).all() or (form != "linear" and (x <= 0).any()):
        raise ValueError(f"x is {x.tolist()}; expected numbers{'' if form == 'linear' else ' above 0'}")
    if len(np.unique(x)) < 2:
        raise ValueError(f"all cells have x = {x[0]:g}; a curve needs two different x" if len(x) else "no cell")
    empty = np.flatnonzero(np.isnan(credit).all(axis=0))
    if len(empty):
        raise ValueError(f"cell {empty[0]} (x = {x[empty[0]]:g}) has no credit for any question; leave it out")
    return x, credit


def _resampled(credit_Q_C: Floats, resamples: int, seed: int) -> Floats:
    """(1 + resamples, cells): accuracies as they are, then of each resample; one draw of questions for all cells."""
    import numpy as np

    n = len(credit_Q_C)
    known = ~np.isnan(credit_Q_C)
    kinds, back = np.unique(np.nan_to_num(credit_Q_C, nan=-1.0), axis=0, return_inverse=True)
    times = np.bincount(back.ravel(), minlength=len(kinds))
    right, there = np.where(kinds < 0, 0.0, kinds), (kinds >= 0).astype(np.float64)
    drawn = np.random.default_rng(seed).multinomial(n, times / n, size=resamples).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (drawn @ right) / (drawn @ there)
    whole = np.nansum(credit_Q_C, axis=0) / known.sum(axis=0)
    means = means[np.isfinite(means).all(axis=1)]
    return np.concatenate([whole[None], means])


_Solve = Callable[["Floats", "Floats"], "Floats"]


def _solvers(form: Form) -> tuple[_Solve, _Solve]:
    """(x, accuracies of R draws) → (R, parameters), and (parameters, x) → (R, x)."""
    import numpy as np

    if form == "saturating":
        return _saturating, lambda p, x: p[:, :1] - p[:, 1:2] * x[None] ** -p[:, 2:]
    scale: Callable[[Floats], Floats] = np.log2 if form == "log2" else lambda x: x

    def solve(x: Floats, y_R_C: Floats) -> Floats:
        design = np.column_stack([np.ones(len(x)), scale(x)])
        return y_R_C @ np.linalg.pinv(design).T

    return solve, lambda p, x: p[:, :1] + p[:, 1:2] * scale(x)[None]


def _saturating(x: Floats, y_R_C: Floats) -> Floats:
    """Of all exponents of the grid the one with the least squares, for each row."""
    import numpy as np

    best = np.full(len(y_R_C), np.inf)
    found = np.zeros((len(y_R_C), 3))
    for exponent in _EXPONENTS:
        design = np.column_stack([np.ones(len(x)), -(x**-exponent)])
        solved = y_R_C @ np.linalg.pinv(design).T
        error = ((solved @ design.T - y_R_C) ** 2).sum(axis=1)
        better = error < best - 1e-15
        best = np.where(better, error, best)
        found[better] = np.column_stack([solved, np.full(len(solved), exponent)])[better]
    return found


def _unsettled(x: Floats, values: Floats, drawn: Floats, r2: float | None) -> str | None:
    """Why the saturating curve is not settled by these cells; None: it is."""
    import numpy as np

    edges = (_EXPONENTS[0], _EXPONENTS[-1])
    low, high = np.quantile(drawn[:, 2], [0.025, 0.975])
    reasons = [
        (len(np.unique(x)) < 4, f"{len(np.unique(x))} different x; three parameters need at least 4"),
        (r2 is None or r2 < _LEAST_R2, f"it explains {100 * (r2 or 0):.0f} % of the cells' variance"),
        (values[2] in edges, f"the best exponent, {values[2]:.2g}, lies at the end of the range searched"),
        (low <= edges[0] or high >= edges[1], f"exponents from {low:.2g} to {high:.2g} fit about as well"),
        (not 0 <= values[0] <= 1, f"its ceiling, {values[0]:.2f}, is no accuracy"),
    ]
    return next((f"not identified: {why}" for wrong, why in reasons if wrong), None)


def _r2(y: Floats, fitted: Floats) -> float | None:
    spread = float(((y - y.mean()) ** 2).sum())
    return None if spread < 1e-18 else round(1 - float(((y - fitted) ** 2).sum()) / spread, 12)


def _estimate(value: float, drawn: Floats) -> Estimate:
    """Percentile interval, and the p-value with the resampled values moved to the null hypothesis."""
    import numpy as np

    low, high = np.quantile(drawn, [0.025, 0.975])
    extreme = int(np.count_nonzero(np.abs(drawn - value) >= abs(value) - 1e-12))
    return Estimate(round(float(value), 15), float(low), float(high), (1 + extreme) / (1 + len(drawn)))


def _cells(x: Floats, credit: Floats, means: Floats) -> tuple[Cell, ...]:
    import numpy as np

    low, high = np.quantile(means[1:], [0.025, 0.975], axis=0)
    known = (~np.isnan(credit)).sum(axis=0)
    columns = (x, means[0], low, high, known)
    return tuple(Cell(*row) for row in zip(*(column.tolist() for column in columns), strict=True))


# --- rank correlation ------------------------------------------------------------------------------------------------


def rank_correlation(
    x_C: Sequence[float], credit_Q_C: Floats, *, resamples: int = 2000, seed: int = 0
) -> Estimate | None:
    """Spearman's rank correlation of x with the cells' accuracy, with an interval by resampling questions.

    ρ = Pearson correlation of the ranks; tied values share their mean rank.

    >>> import numpy as np
    >>> credit_Q_C = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=float)
    >>> rank_correlation([1.2, 2.5, 3.1], credit_Q_C).value
    1.0

    Args: as for `fit`; any finite x.

    Returns: None where fewer than three cells are there, or all accuracies are equal.

    Source: Spearman 1904, Am. J. Psychol. 15, 72–101.
    """
    import numpy as np

    x, credit = _checked(x_C, credit_Q_C, "linear")
    means = _resampled(credit, resamples, seed)
    rho = _correlations(_ranks(x[None])[0], _ranks(means.round(12)))
    if len(x) < 3 or math.isnan(rho[0]):
        return None
    return _estimate(float(rho[0]), rho[1:][~np.isnan(rho[1:])])


def _ranks(values_R_C: Floats) -> Floats:
    """Mean ranks along the rows, from 0."""
    below = (values_R_C[:, :, None] > values_R_C[:, None, :]).sum(axis=2)
    same = (values_R_C[:, :, None] == values_R_C[:, None, :]).sum(axis=2)
    ranks: Floats = below + (same - 1) / 2
    return ranks


def _correlations(a_C: Floats, b_R_C: Floats) -> Floats:
    import numpy as np

    a, b = a_C - a_C.mean(), b_R_C - b_R_C.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho: Floats = (b @ a) / np.sqrt((a @ a) * (b * b).sum(axis=1))
    return rho.round(12)


# --- few against many ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a small council does as well as a large one."""

    small: str
    large: str
    n: int
    """Questions that neither failed."""
    difference: Estimate
    """Small's minus large's accuracy, in [−1, 1]; `stats.paired_difference`."""
    margin: float
    """The loss that does not matter, a share."""
    matches: bool | None
    """True: the whole interval lies above −margin; False: below it; None: these questions do not settle it."""
    words: str
    left_out: int
    """Questions that either failed or was not asked."""


def matches(small: Panel, large: Panel, margin: float = 0.01, *, seed: int = 0) -> Match:
    """Whether the small panel's accuracy is not inferior to the large one's, on the same questions.

    Small matches large where the 95 % interval of (small − large) lies above −margin; with too few questions that is
    never so, however alike the two are: 1 point takes about 370 questions without a difference.

    Args:
        margin: the loss that does not matter, a share in (0, 1).

    Raises:
        ValueError: no question that both answered, or a margin outside (0, 1).

    Source: non-inferiority by confidence interval, Piaggio et al. 2012, JAMA 308, 2594–2604.
    """
    if not 0 < margin < 1:
        raise ValueError(f"margin is {margin}; expected a share in (0, 1), such as 0.01 for 1 point")
    theirs = dict(zip([item.question_id for item in large.items], credits(large).tolist(), strict=True))
    ids = [item.question_id for item in small.items]
    pairs = [(a, theirs.get(id, math.nan)) for id, a in zip(ids, credits(small).tolist(), strict=True)]
    both = [(a, b) for a, b in pairs if not math.isnan(a + b)]
    if not both:
        raise ValueError(f"{small.name} and {large.name} share no question that both answered and that has a key")
    difference = paired_difference([a for a, _ in both], [b for _, b in both], seed=seed)
    verdict = True if difference.low > -margin else False if difference.high < -margin else None
    words = _match_words(small, large, difference, margin, verdict, len(both))
    left_out = len(set(ids) | set(theirs)) - len(both)
    return Match(small.name, large.name, len(both), difference, margin, verdict, words, left_out)


def _match_words(small: Panel, large: Panel, difference: Estimate, margin: float, verdict: bool | None, n: int) -> str:
    does = {True: "match", False: "do not match", None: "are not shown to match"}[verdict]
    few, many = (per_question(panel, calls) for panel in (small, large))
    return (
        f"{_who(small)} {does} {_who(large)}: {points(difference)} (margin {100 * margin:g}; {few or 0:.3g} against "
        f"{many or 0:.3g} calls; n = {n:,})"
    )


def _who(panel: Panel) -> str:
    models = len({member.model for member in panel.members})
    kind = "of one model" if models == 1 else f"of {models} models"
    return f"{len(panel.members)} agents {kind} ({panel.name})"
