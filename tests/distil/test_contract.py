"""What holds for every view, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import pytest

from pluribus.distil import KINDS, Found
from pluribus.load import load, names
from pluribus.types import Demonstration, Key, Preference, StepMarks

Make = Callable[..., Any]
VIEWS = names("distil")
TYPES = {"demonstrations": Demonstration, "steps": StepMarks, "preferences": Preference}


def take(view: str, material: Any) -> Found:
    module = load("distil", view)
    found: Found = module.examples(material, module.Settings())
    return found


@pytest.fixture
def some(material: Make, case: Make, reply: Make) -> Any:
    marks = {0: True, 1: True}
    cases = [
        case(
            reply(0, "c 3. {final answer: 3}", correct=False, answer="3", marks={0: False, 1: False}),
            reply(1, "a 2. {final answer: 2}", marks=marks, decided=True),
            reply(2, "b 2. {final answer: 2}", marks=marks),
            id=id,
            key=Key(id, "2", solution="1 + 1 = 2."),
        )
        for id in ("q3", "q1", "q2")
    ]
    return material(*cases)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_says_what_it_is(view: str) -> None:
    module = load("distil", view)
    assert module.__doc__ and module.HINT
    assert module.KIND in KINDS
    assert is_dataclass(module.Settings) and module.Settings.__dataclass_params__.frozen  # type: ignore[attr-defined]
    module.Settings()


@pytest.mark.parametrize("view", VIEWS)
def test_examples_come_in_the_order_of_the_questions_and_are_of_the_kind(view: str, some: Any) -> None:
    found = take(view, some)
    assert found.examples
    assert all(isinstance(one, TYPES[load("distil", view).KIND]) for one in found.examples)
    ids = [one.question_id for one in found.examples]
    assert list(dict.fromkeys(ids)) == ["q3", "q1", "q2"]
    assert found.available


@pytest.mark.parametrize("view", VIEWS)
def test_the_same_material_gives_the_same_examples(view: str, some: Any) -> None:
    assert take(view, some) == take(view, some)


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_gives_nothing(view: str, material: Make) -> None:
    assert take(view, material()) == Found(())


@pytest.mark.parametrize("view", VIEWS)
def test_a_question_without_replies_and_key_gives_nothing_and_is_no_failure(
    view: str, material: Make, case: Make
) -> None:
    assert take(view, material(case(key=None))).examples == ()
