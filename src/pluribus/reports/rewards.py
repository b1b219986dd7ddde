"""What judges gave and how far they disagreed: figures and tables of a council's rewards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from pluribus.reports import words
from pluribus.reports.grids import SOURCE, Grid, Row, grid, number, word
from pluribus.reports.material import Scores
from pluribus.reports.plots import Axis, Curve, Plot, Point, Rule, Series, Style

_BINS = 20
"""Of a histogram, …"""
_FEW, _MANY, _FROM = 10, 20, 2000
"""… and of stairs: few, and many from so many candidates on."""
_POINTS = 2000
"""Candidates in one figure at most; of more, every k-th is drawn. All are in the means."""
_ROOM = 1.12
"""How far the axis of the variance reaches above what is on it."""


def figures(scores: Sequence[Scores]) -> list[Plot]:
    """What each council gave and how far it disagreed; as histograms where nothing is known of its judges."""
    found: list[Plot] = []
    for i, one in enumerate(scores, 1):
        found += [_of_judges(one, f"reward-{i}")] if one.judges else _histograms(one, f"reward-{i}", one.rewards)
        more = disagreement(one, f"disagreement-{i}") if one.null else None
        found += [more] if more else _histograms(one, f"disagreement-{i}", one.disagreements)
    return found


# --- the distribution ------------------------------------------------------------------------------------------------


def distribution(scores: Scores, name: str = "reward_distribution") -> Plot | None:
    """Each judge's scores on the common scale, the consensus over them, and its mean; None without a reward."""
    return _of_judges(scores, name) if scores.rewards else None


def _of_judges(scores: Scores, name: str) -> Plot:
    every = {"consensus": scores.rewards, **{judge: values for judge, values in scores.judges.items() if values}}
    bins = _MANY if len(scores.rewards) >= _FROM else _FEW
    series = [
        _line(line, values, scores, Style(place, place), (bins, (place + 1) / (len(every) + 1)))
        for place, (line, values) in enumerate(every.items())
    ]
    top = max(y for one in series if one.curve for y in one.curve.y) * _ROOM
    middle = _mean(scores.rewards)
    about = (
        f"Shares of each judge's scores, and of the consensus, in {bins} classes of equal width. Where the lines lie "
        "on each other the judges use the scale alike; whether they agree on a candidate, the other figure says. The "
        "marks of a class stand side by side."
    )
    return Plot(
        name, f"Rewards: {scores.run}", Axis("score on the common scale, 0 to 1", limits=(0.0, 1.0)),
        Axis("share of the scores, %", percent=True, limits=(0.0, top)), tuple(series), "scores", about,
        rules=(Rule("x", middle, f"consensus point: mean reward {middle:.3f}"),),
    )  # fmt: skip


def _line(line: str, values: Sequence[float], scores: Scores, style: Style, classes: tuple[int, float]) -> Series:
    """Stairs, with a mark on each; those of the consensus, which come first, are filled.

    Args:
        classes: how many there are, and where in a class the mark stands, in (0, 1).
    """
    bins, at = classes
    shares = _shares(values, bins)
    points = tuple(
        Point((i + at) / bins, share, run=scores.run, source=scores.source) for i, share in enumerate(shares) if share
    )
    xs = tuple(end / bins for i in range(bins) for end in (i, i + 1))
    ys = tuple(share for share in shares for _ in range(2))
    stairs = Curve(xs, ys) if style.colour else Curve(xs, ys, (0.0,) * len(xs), ys)
    return Series(f"{line} ({words.plural(len(values), 'score')})", points, style, stairs)


def _shares(values: Sequence[float], bins: int) -> list[float]:
    """Share of the values in each class of [0, 1]; 1 belongs to the last.

    >>> _shares([0.0, 0.01, 0.5, 1.0], 4)
    [0.5, 0.0, 0.25, 0.25]
    """
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, math.floor(value * bins))] += 1
    return [count / len(values) for count in counts]


# --- the disagreement ------------------------------------------------------------------------------------------------


def disagreement(scores: Scores, name: str = "consensus_variance") -> Plot | None:
    """The consensus variance of each candidate in order, its mean so far, the threshold, and what it would be if nobody
    looked at the candidate; None where nothing has two verdicts."""
    values = scores.disagreements
    if not values:
        return None
    step = math.ceil(len(values) / _POINTS)
    every = f", one in {step} drawn" if step > 1 else ""
    dots = tuple(
        Point(i, value, run=scores.run, source=scores.source)
        for i, value in enumerate(values, 1)
        if (i - 1) % step == 0
    )
    series = [
        Series(f"one candidate ({len(values):,}{every})", dots, Style(-1, 0)),
        Series(f"mean so far; at the end {_mean(values):.4f}", (), Style(0, 0), _so_far(values, step)),
    ]
    if scores.null is not None:
        series.append(_without_regard(scores.null, len(values)))
    rules = [] if scores.threshold is None else [Rule("y", scores.threshold, _above(values, scores.threshold))]
    top = max(*values, *(scores.null or ()), scores.threshold or 0.0) * _ROOM or 1.0
    about = (
        "Weighted variance of the judges' scores on the common scale, each judge judging alone: 0 where all agree, "
        "0.25 at most. The band is "
        "the mean variance that the same scores have when each judge's are dealt to the candidates at random (95 %): "
        "judges that agree lie clearly below it, whatever the absolute number."
    )
    return Plot(
        name, f"Disagreement: {scores.run}", Axis("candidate, in order", limits=(0.0, len(values) + 1.0)),
        Axis("consensus variance", limits=(0.0, top)), tuple(series), "scores", about, rules=tuple(rules), cloud=True,
    )  # fmt: skip


def _so_far(values: Sequence[float], step: int) -> Curve:
    """Mean of the first, of the first two, …

    >>> _so_far([1.0, 2.0, 6.0], 2).y
    (1.0, 3.0)
    """
    sums = list(itertools.accumulate(values))
    kept = sorted({*range(0, len(values), step), len(values) - 1})
    return Curve(tuple(i + 1.0 for i in kept), tuple(sums[i] / (i + 1) for i in kept))


def _without_regard(null: tuple[float, float, float], n: int) -> Series:
    mean, low, high = null
    band = Curve((0.0, n + 1.0), (mean,) * 2, (low,) * 2, (high,) * 2)
    return Series(f"dealt at random, all candidates: {mean:.4f}, 95 % [{low:.4f}, {high:.4f}]", (), Style(1, 0), band)


def _above(values: Sequence[float], threshold: float) -> str:
    return f"threshold {threshold:g}; above it {sum(value > threshold for value in values):,} of {len(values):,}"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# --- where only the numbers are known --------------------------------------------------------------------------------


_TITLES = {
    "reward": ("Council reward", "reward of a candidate, 0 to 1"),
    "disagreement": ("Judges' disagreement", "weighted variance of the judges' scores"),
}


def _histograms(one: Scores, name: str, values: Sequence[float]) -> list[Plot]:
    if not values:
        return []
    title, label = _TITLES[name.partition("-")[0]]
    about = f"{words.plural(len(values), 'value')}, mean {words.decimal(_mean(values))}."
    series = Series("candidates", _histogram(values, one))
    axes = Axis(label), Axis("candidates, count")
    return [Plot(name, f"{title}: {one.run}", *axes, (series,), "scores", about, bars=True)]


def _histogram(values: Sequence[float], scores: Scores) -> tuple[Point, ...]:
    low, high = min(values), max(values)
    width = (high - low) / _BINS or 1.0
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, math.floor((value - low) / width))] += 1
    return tuple(Point(low + (i + 0.5) * width, n, run=scores.run, source=scores.source) for i, n in enumerate(counts))


# --- tables ----------------------------------------------------------------------------------------------------------


def table(scores: Sequence[Scores]) -> Grid | None:
    """A row for each council; what has no reward is counted, not averaged."""
    columns = (
        word("run", "run"), number("rewards", "n"), number("mean reward", "reward", words.decimal),
        number("unscored", "unscored", about="Candidates without any verdict: they have no reward, which is not 0"),
        number("disagreements", "m"), number("mean disagreement", "disagreement", words.decimal),
        number("dealt at random", "null null_low null_high", words.decimal,
               "Mean disagreement if each judge's scores were dealt to the candidates at random; 95 %"),
        number("Krippendorff's α", "alpha", words.decimal, "1: the judges agree; 0: as by chance"),
        number("threshold", "threshold", words.decimal), number("agreed", "agreed"), number("disputed", "disputed"),
        number("adjudicated", "adjudicated", about="A person decided"),
        number("alone", "alone", about="One verdict of several judges: nobody knows whether they agree"), SOURCE,
    )  # fmt: skip
    about = "Disagreement is the weighted variance of the judges' scores on the common scale."
    return grid("scores", "Rewards", columns, [_row(one) for one in scores], about)


def _row(one: Scores) -> Row:
    null = one.null or (None, None, None)
    return {
        "run": one.run, "source": one.source, "n": len(one.rewards), "m": len(one.disagreements),
        "reward": _mean(one.rewards) if one.rewards else None,
        "disagreement": _mean(one.disagreements) if one.disagreements else None,
        "null": null[0], "null_low": null[1], "null_high": null[2],
        "alpha": one.alpha, "threshold": one.threshold, **_counted(one.counts),
    }  # fmt: skip


def _counted(counts: Mapping[str, int]) -> Mapping[str, int]:
    known = ("agreed", "disputed", "adjudicated", "alone", "unscored")
    return {status: counts.get(status, 0) for status in known} if counts else {}


def judges(scores: Sequence[Scores]) -> Grid | None:
    """A row for each judge of each council."""
    columns = (
        word("run", "run"), word("judge", "judge"), number("scores", "n"),
        number("mean score", "mean", words.decimal, "On the common scale, 0 to 1"),
        number("spread", "spread", words.decimal, "Standard deviation of the same; 0: the judge tells nothing apart"),
        SOURCE,
    )  # fmt: skip
    return grid("judges", "Judges", columns, list(_judge_rows(scores)))


def _judge_rows(scores: Sequence[Scores]) -> Iterator[Row]:
    for one in scores:
        for judge, values in one.judges.items():
            known = {"mean": _mean(values), "spread": _spread(values)} if values else {}
            yield {"run": one.run, "source": one.source, "judge": judge, "n": len(values), **known}


def _spread(values: Sequence[float]) -> float:
    middle = _mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / len(values))
