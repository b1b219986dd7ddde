"""Agreement between people, and between people and judges."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.review.desk import Planted, plant, rewarded, verdict

from pluribus.review.material import Material, gather
from pluribus.review.numbers import EVERYBODY, Agreement, preferred, statistics
from pluribus.types import Verdict
from pluribus.verdicts import standing

HIGH, LOW = (0.9, 0.1, 0.5), (0.2, 0.8, 0.5)
"""The teacher prefers the first, the critic the second, diversity neither; the council the first."""


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    """Eight pairs; in every second one the sides are exchanged."""
    home = tmp_path_factory.mktemp("numbers")
    scores = [(HIGH, LOW) if i % 2 else (LOW, HIGH) for i in range(8)]
    plant(home, [Planted(f"{i}?", [(f"x {i}", one), (f"y {i}", two)]) for i, (one, two) in enumerate(scores)])
    return gather(rewarded(home))


def as_teacher(material: Material, who: str, wrong: int = 0, ties: int = 0) -> list[Verdict]:
    """Says what the teacher says, but for the first pairs; the last ones are ties. At times shown flipped."""
    said = []
    for at, pair in enumerate(material.pairs):
        teacher = preferred(*(reply.reward.scores["teacher"] for reply in pair.replies))
        right = (teacher == "first") != (at < wrong)
        if at >= len(material.pairs) - ties:
            said.append(verdict(pair, "tie", who, float(at)))
        elif at % 3:
            said.append(verdict(pair, "first" if right else "second", who, float(at)))
        else:
            said.append(verdict(pair, "second" if right else "first", who, float(at), flip=True))
    return said


def row(rows: tuple[Agreement, ...], one: str, other: str) -> Agreement:
    return next(found for found in rows if (found.one, found.other) == (one, other))


def test_a_person_who_says_what_a_judge_says_agrees_with_it_wholly(material: Material) -> None:
    found = statistics(material, standing(as_teacher(material, "ada")))
    teacher, critic = (row(found.with_judges, "ada", judge) for judge in ("teacher", "critic"))
    assert (teacher.n, teacher.agreed, teacher.kappa, teacher.share) == (8, 8, 1.0, 1.0)
    assert (critic.n, critic.agreed, critic.kappa) == (8, 0, -1.0)
    assert row(found.with_judges, "ada", "council").agreed == 8
    even = row(found.with_judges, "ada", "diversity")
    assert (even.n, even.agreed, even.kappa, even.share, even.ties) == (0, 0, None, None, 8)
    assert {r.one for r in found.with_judges} == {"ada"}, "one person is no majority"


def test_ties_are_left_out_and_counted(material: Material) -> None:
    found = statistics(material, standing(as_teacher(material, "ada", ties=3)))
    teacher = row(found.with_judges, "ada", "teacher")
    assert (teacher.n, teacher.agreed, teacher.ties) == (5, 5, 3)
    assert (found.pairs, found.decided, found.first, found.ties) == (8, 8, 5, 3)


def test_two_people_and_their_majority(material: Material) -> None:
    events = as_teacher(material, "ada") + as_teacher(material, "bob", wrong=2)
    found = statistics(material, standing(events), votes=2)
    between = row(found.between, "ada", "bob")
    assert (between.n, between.agreed) == (8, 6)
    assert between.kappa == pytest.approx(2 * 6 / 8 - 1)
    crowd = row(found.with_judges, EVERYBODY, "teacher")
    assert (crowd.n, crowd.agreed, crowd.ties) == (6, 6, 2), "where they disagree it is a tie"
    assert found.decided == 8
    assert statistics(material, standing(events), votes=3).decided == 0


def test_people_are_counted_with_skips_and_the_time_they_took(material: Material) -> None:
    one, two, three = material.pairs[:3]
    said = [
        Verdict(*fields, seconds)  # type: ignore[arg-type]
        for fields, seconds in [
            ((one.id, one.question.id, *(r.item for r in one.replies), "first", "ada", 1.0), 4.0),
            ((two.id, two.question.id, *(r.item for r in two.replies), "tie", "ada", 2.0), 8.0),
            ((three.id, three.question.id, *(r.item for r in three.replies), "skip", "ada", 3.0), 99.0),
        ]
    ]
    found = statistics(material, standing(said))
    person = found.people[0]
    assert (person.name, person.decided, person.ties, person.skipped, person.seconds) == ("ada", 2, 1, 1, 6.0)
    assert found.skipped == 1 and found.decided == 2


def test_a_seat_that_always_wins_leaves_kappa_defined(tmp_path: Path) -> None:
    plant(tmp_path, [Planted(f"{i}?", [(f"x {i}", HIGH), (f"y {i}", LOW)]) for i in range(12)])
    material = gather(rewarded(tmp_path))
    found = statistics(material, standing([verdict(pair, "first") for pair in material.pairs]))
    assert row(found.with_judges, "ada", "teacher").kappa == 1.0
    assert row(found.with_judges, "ada", "critic").kappa == -1.0


def test_nobody_has_said_anything(material: Material) -> None:
    found = statistics(material, {})
    assert (found.people, found.between, found.with_judges, found.decided) == ((), (), (), 0)


def test_a_judge_without_a_score_is_not_compared(tmp_path: Path) -> None:
    plant(tmp_path, [Planted("?", [("x", (0.9, None, 0.1)), ("y", (0.2, 0.8, 0.5))])])
    material = gather(rewarded(tmp_path))
    found = statistics(material, standing([verdict(material.pairs[0], "first")]))
    critic = row(found.with_judges, "ada", "critic")
    assert (critic.n, critic.ties, critic.kappa) == (0, 0, None)
