"""Figures and tables of a council's rewards: every number they show is the one that was given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pluribus.reports import Scores
from pluribus.reports import rewards as charts
from pluribus.reports.drawing import draw

TEACHER = (0.1, 0.35, 0.5, 1.0, 0.0)
CRITIC = (0.2, 0.3, 0.9)
SCORES = Scores(
    "vote-sums", "run abc", (0.15, 0.3, 0.6, 0.9, 0.05), (0.0, 0.04, 0.01, 0.03),
    {"teacher": TEACHER, "critic": CRITIC, "silent": ()}, {"agreed": 2, "disputed": 2, "alone": 1, "unscored": 3},
    0.02, (0.05, 0.04, 0.06), 0.7,
)  # fmt: skip


def test_the_distribution_has_a_line_for_each_judge_that_spoke() -> None:
    plot = charts.distribution(SCORES)
    assert plot is not None
    assert [series.label for series in plot.series] == [
        "consensus (5 scores)", "teacher (5 scores)", "critic (3 scores)",
    ]  # fmt: skip
    for series in plot.series:
        assert sum(point.y for point in series.points) == pytest.approx(1.0)
    (middle,) = plot.rules
    assert middle.at == pytest.approx(0.4) and "mean reward 0.400" in middle.label


def test_every_score_lies_in_the_class_it_is_drawn_in() -> None:
    plot = charts.distribution(SCORES)
    assert plot is not None
    teacher = plot.series[1]
    assert [(int(point.x * 10), point.y) for point in teacher.points] == [
        (0, 0.2), (1, 0.2), (3, 0.2), (5, 0.2), (9, 0.2),
    ]  # fmt: skip


def test_the_variance_runs_to_its_mean_beside_chance_and_threshold() -> None:
    plot = charts.disagreement(SCORES)
    assert plot is not None
    dots, so_far, chance = plot.series
    assert [point.y for point in dots.points] == list(SCORES.disagreements)
    assert so_far.curve is not None and so_far.curve.y[-1] == pytest.approx(0.02)
    assert chance.curve is not None and (chance.curve.low[0], chance.curve.high[0]) == (0.04, 0.06)
    (threshold,) = plot.rules
    assert threshold.at == 0.02 and "above it 2 of 4" in threshold.label
    assert plot.y.limits is not None and plot.y.limits[1] > 0.06


def test_the_axis_and_the_legend_say_what_is_drawn() -> None:
    plot = charts.disagreement(SCORES)
    assert plot is not None and plot.x.label == "candidate, in order"
    assert plot.series[0].label == "one candidate (4)"


def test_of_many_candidates_some_are_drawn_and_all_count() -> None:
    many = replace(SCORES, disagreements=(0.0,) * 4999 + (1.0,))
    plot = charts.disagreement(many)
    assert plot is not None
    dots, so_far, _ = plot.series
    assert len(dots.points) <= 2000 and dots.label == "one candidate (5,000, one in 3 drawn)"
    assert so_far.curve is not None and so_far.curve.y[-1] == pytest.approx(1 / 5000)


def test_nothing_given_is_nothing_drawn() -> None:
    empty = Scores("r", "run r", (), ())
    assert charts.distribution(empty) is None and charts.disagreement(empty) is None
    assert charts.figures([empty]) == []


def test_both_charts_are_drawn_with_their_legends_below() -> None:
    for plot in charts.figures([SCORES]):
        drawing = draw(plot)
        assert drawing.png.startswith(b"\x89PNG")
        labels = [series.label for series in plot.series] + [rule.label for rule in plot.rules]
        assert all(label in drawing.svg for label in labels)


def test_all_judges_agree_exactly() -> None:
    plot = charts.disagreement(replace(SCORES, disagreements=(0.0, 0.0), null=None, threshold=None))
    assert plot is not None and plot.y.limits == (0.0, 1.0)
    assert draw(plot).png


def test_the_table_counts_what_has_no_reward() -> None:
    table = charts.table([SCORES])
    assert table is not None
    (row,) = table.rows
    assert (row["n"], row["unscored"], row["disputed"], row["adjudicated"]) == (5, 3, 2, 0)
    assert row["disagreement"] == pytest.approx(0.02) and row["alpha"] == 0.7
    judges = charts.judges([SCORES])
    assert judges is not None and [(one["judge"], one["n"]) for one in judges.rows] == [
        ("teacher", 5), ("critic", 3), ("silent", 0),
    ]  # fmt: skip
    assert "mean" not in judges.rows[2]
