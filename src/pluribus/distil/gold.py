"""The worked solutions published with the task, of every question asked: the ceiling a council is held against.

A solution that does not end in the final answer is closed by it, in the form the first seat's dialect asks for. What
the council said plays no part.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pluribus.distil import Found, Material
from pluribus.distil._forms import solution_text
from pluribus.types import Demonstration

KIND = "demonstrations"
HINT = "take a task that publishes worked solutions"
NO_SOLUTION = "questions without a worked solution"


@dataclass(frozen=True, slots=True)
class Settings:
    """There is nothing to vary."""


def examples(material: Material, settings: Settings) -> Found:
    """One demonstration of each question whose key has a solution."""
    left_out, chosen = Counter[str](), []
    for case in material.cases:
        text = solution_text(case.dialect, case.question, case.key) if case.key else None
        if text is None:
            left_out[NO_SOLUTION] += 1
        else:
            chosen.append(Demonstration(case.question.id, text, correct=True))
    return Found(tuple(chosen), +left_out, tuple(one.text for one in chosen))
