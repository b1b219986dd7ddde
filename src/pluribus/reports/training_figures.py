"""Trainings of one kind → a figure of each measure by step, and a table of what was logged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pluribus.reports import trainings, words
from pluribus.reports.grids import SOURCE, Grid, Row, grid, number, word
from pluribus.reports.plots import Axis, Curve, Plot, Point, Rule, Series, Style, room
from pluribus.reports.training_views import REWARD, VIEWS, View
from pluribus.reports.trainings import Training, Value

_LINES = 8
"""Trainings one can tell apart in one figure."""
_RAW = 40
"""Values of a line that are joined as they are; of more there are dots, and a line through their means."""
_DOTS = 1000
"""Values in one figure that are drawn at most, shared by its lines; the means are over all."""
_ASIDE = 0.03
"""Room beside step 0 and the last step, in parts of the axis."""
_STEP = Axis("optimiser step", "steps")
_BOOKKEEPING = ("_runtime", "_per_second", "_num_tokens")
"""How names end that say nothing of the model."""


def figures(found: Sequence[Training]) -> list[Plot]:
    """The figures of trainings of one kind, in which something was logged at two steps at least."""
    return [plot for view in _views(found) for plot in _plots(view, found)]


def _views(found: Sequence[Training]) -> list[View]:
    views = VIEWS[found[0].kind]
    return [view for view in views if view is not REWARD or not _reward_is_accuracy(found)]


def _reward_is_accuracy(found: Sequence[Training]) -> bool:
    """Whether the reward has nothing to say that the accuracy does not."""
    return all(
        [(v.step, v.value) for v in trainings.values(one, "reward")]
        == [(v.step, v.value) for v in trainings.values(one, "accuracy")]
        for one in found
    )


def _plots(view: View, found: Sequence[Training]) -> list[Plot]:
    """All measures in one figure; of several trainings a figure of each measure."""
    if not any(trainings.values(one, next(iter(view.measures))) for one in found):
        return []
    if len(found) == 1:
        every = [(found[0], key, label) for key, label in view.measures.items()]
        return _heaps(view, _lines(every))
    plots = []
    for key, label in view.measures.items():
        lines = _lines([(one, key, one.name) for one in found])
        named = [label] * (len(view.measures) > 1) + [line.label for line in lines] * (len(lines) == 1)
        plots += _heaps(_of_measure(view, label, named), lines)
    return plots


def _of_measure(view: View, label: str, named: Sequence[str]) -> View:
    """One of its measures; the title says which, and whose where one training alone has it."""
    name = f"{view.name}-{words.slug(label)}" if len(view.measures) > 1 else view.name
    return replace(view, name=name, title=": ".join([view.title, *named]))


@dataclass(frozen=True, slots=True)
class _Line:
    """One measure of one training."""

    training: Training
    key: str
    label: str
    style: Style
    values: Sequence[Value]


def _lines(wanted: Sequence[tuple[Training, str, str]]) -> list[_Line]:
    """Those of which anything was logged; each looks the same in all figures of a section."""
    found = [
        (place, training, key, label, trainings.values(training, key))
        for place, (training, key, label) in enumerate(wanted)
    ]
    return [
        _Line(training, key, _with_k(label, those), Style(place, place), those)
        for place, training, key, label, those in found
        if those
    ]


def _with_k(label: str, found: Sequence[Value]) -> str:
    """
    >>> _with_k("pass@k", [Value(1, "pass@3", 0.5), Value(9, "pass@5", 0.5)])
    'pass@k, k = 3 to 5'
    >>> _with_k("student", [Value(1, "pass@3", 0.5)]), _with_k("entropy", [Value(1, "sample_entropy", 0.5)])
    ('student, k = 3', 'entropy')
    """
    ks = {trainings.k_of(value.name) for value in found} - {0}
    return f"{label}, k = {words.span(min(ks), max(ks))}" if ks else label


def _heaps(view: View, lines: Sequence[_Line]) -> list[Plot]:
    """One figure, or several on the same axis where there are too many lines; none where no line has two places."""
    if all(len({value.step for value in line.values}) < 2 for line in lines):
        return []
    heaps = [lines[at : at + _LINES] for at in range(0, len(lines), _LINES)]
    if len(heaps) == 1:
        plots = [_plot(view, lines)]
    else:
        plots = [
            _plot(replace(view, name=f"{view.name}-part-{i}", title=f"{view.title} ({i} of {len(heaps)})"), heap)
            for i, heap in enumerate(heaps, 1)
        ]
    every = Series("", tuple(point for plot in plots for one in plot.series for point in one.points))
    y = room(replace(plots[0], series=(every,)))[1]
    last = max(point.x for point in every.points)
    return [replace(plot, x=replace(plot.x, limits=(-_ASIDE * last, (1 + _ASIDE) * last)), y=y) for plot in plots]


def _plot(view: View, lines: Sequence[_Line]) -> Plot:
    kind = lines[0].training.kind
    smooth = not view.exact and max(len(line.values) for line in lines) > _RAW
    series = tuple(_series(line, smooth, _DOTS // len(lines)) for line in lines)
    about = view.about + (_SMOOTHED if smooth else "") + _unreal(lines)
    return Plot(
        f"{kind}-{view.name}", view.title, _STEP, view.y, series, f"logged-{kind}", about, joined=True,
        rules=tuple(_rules(view, lines)), cloud=smooth, zero="y" if view.zero else None,
    )  # fmt: skip


def _series(line: _Line, smooth: bool, most: int) -> Series:
    every = math.ceil(len(line.values) / most)
    name, source = line.training.name, line.training.source
    points = tuple(Point(v.step, v.value, v.low, v.high, name, source) for v in line.values[::every])
    thinned = f", 1 of {every} drawn" if every > 1 else ""
    if not smooth:
        return Series(line.label + thinned, points, line.style)
    width = _width(len(line.values))
    mean = f" (line: mean of {width})" if width > 1 else ""
    curve = Curve(tuple(float(v.step) for v in line.values), _means([v.value for v in line.values], width))
    return Series(line.label + mean + thinned, points, line.style, curve)


_SMOOTHED = (
    " Dots are the values as they were logged. Lines are means of neighbouring values, as many as the legend says and "
    "fewer at both ends."
)


def _rules(view: View, lines: Sequence[_Line]) -> Iterator[Rule]:
    those = {line.training.source: line.training for line in lines}
    for training in those.values():
        whose = f"{training.name}: " if len(those) > 1 else ""
        for step, name in training.alarms:
            if name == view.alarm:
                yield Rule("x", step, f"{whose}alarm at step {step:,}")


def _unreal(lines: Sequence[_Line]) -> str:
    number = sum(trainings.broken(line.training, line.key) for line in lines)
    return f" Not drawn, being no number: {words.plural(number, 'value')}." if number else ""


def _width(n: int) -> int:
    """Values that a mean is over: odd, so that it lies in their middle.

    >>> _width(41), _width(100), _width(1000), _width(12)
    (3, 7, 67, 1)
    """
    return 2 * (n // 30) + 1


def _means(values: Sequence[float], width: int) -> tuple[float, ...]:
    """Of each value and its neighbours on both sides, as far as there are any.

    >>> _means([0.0, 3.0, 6.0, 0.0], 3)
    (1.5, 3.0, 3.0, 3.0)
    """
    aside = width // 2
    return tuple(fmean(values[max(0, i - aside) : i + aside + 1]) for i in range(len(values)))


# --- table ------------------------------------------------------------------------------------------------------------


def table(found: Sequence[Training]) -> Grid | None:
    """What was logged, by measure: first, last, lowest and highest."""
    columns = (
        word("training", "run"), word("measure", "measure"), word("in the log", "key"), number("values", "n"),
        number("first", "first", words.general), number("last", "last", words.general),
        number("lowest", "lowest", words.general), number("highest", "highest", words.general),
        number("at step", "at", about="Of the first"),
        number("to step", "to", about="Of the last"), SOURCE,
    )  # fmt: skip
    rows = [row for one in found for key, label in _measures(one).items() if (row := _logged(one, key, label))]
    about = "As it was logged: shares are between 0 and 1."
    return grid(f"logged-{found[0].kind}", "What was logged", columns, rows, about)


def _measures(training: Training) -> dict[str, str]:
    """Those of the figures; of kinds whose measures are their own, everything about held-out rows."""
    named = {
        key: f"{view.title}: {label}" if len(view.measures) > 1 else view.title
        for view in VIEWS[training.kind]
        for key, label in view.measures.items()
    }
    if training.kind == "grpo":
        return named
    more = dict.fromkeys(name for entry in training.log for name in entry if name.startswith("eval_"))
    own = {
        name: f"Held out: {name.removeprefix('eval_').replace('_', ' ')}"
        for name in more
        if not name.endswith(_BOOKKEEPING)
    }
    return {**own, **named}


def _logged(training: Training, key: str, label: str) -> Row | None:
    found = trainings.values(training, key)
    if not found:
        return None
    numbers = [value.value for value in found]
    return {
        "run": training.name, "source": training.source, "measure": label,
        "key": f"{key}k" if key.endswith("@") else key,
        "n": len(found), "first": numbers[0], "last": numbers[-1], "lowest": min(numbers), "highest": max(numbers),
        "at": found[0].step, "to": found[-1].step,
    }  # fmt: skip
