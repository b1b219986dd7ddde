"""The first-error measure on replies that people marked step by step, where the shared data is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pluribus.metrics.first_error import NO_ERROR, first_error

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def steps() -> Iterator[ModuleType]:
    """The benchmark's readers; a benchmark is no package."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import _steps

        yield _steps
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("18 - 3 = 15 eggs, and $2 * 15 = $31.", [True, False]),
        ("20% of 50 = 10, so 50 - 10 = 40 = 8 × 5", [True, True, True]),
        (r"\( \frac{6}{4} = 1.5 \) and 1,200 \div 4 = 300", [True, True]),
        ("10 / 3 = 3.33; 10 / 3 = 3.34; 10/3 = 3", [True, False, False]),
        ("2x + 3 + 4 = 13. Ann's age - 4 = 6. x = 7. 7 = 7. 3 + 4 = 8y", []),
        ("1 / 0 = 5 and (3 + 4 = 9 and 2 ** 3 = 8", []),
        ("007 + 1 = 8; so: -10 - (-32) = 22", [True, True]),
    ],
)
def test_equations_between_numbers(steps: ModuleType, text: str, held: list[bool]) -> None:
    assert steps.equations(text) == held


def test_the_sets_are_read_whole(shared_data: Path, steps: ModuleType) -> None:
    sets = {one.name: one for one in steps.every(shared_data)}
    counts = {name: (len(one.replies), sum(r.first == NO_ERROR for r in one.replies)) for name, one in sets.items()}
    assert counts["ProcessBench gsm8k"] == (400, 193)
    assert counts["ProcessBench omnimath"] == (1000, 241)
    assert counts["BIG-Bench Mistake dyck_languages"] == (986, 336)
    assert sum(one.skipped for one in sets.values()) == 1
    assert all(NO_ERROR <= r.first < len(r.steps) for one in sets.values() for r in one.replies)


def test_constants_are_worth_nothing_and_arithmetic_something(shared_data: Path, steps: ModuleType) -> None:
    one = steps.mistake(shared_data, "multistep_arithmetic")
    truth = [reply.first for reply in one.replies]
    none = first_error(steps.always_none(one.replies), truth)
    assert (none.erroneous.value, none.correct.value, none.f1) == (0.0, 1.0, 0.0)
    found = first_error(steps.arithmetic(one.replies), truth)
    assert found.low is not None and found.low > 0.7
    assert steps.usual_place(one.replies, 1) == steps.usual_place(one.replies, 1)
