"""The final answer alone: what is left of the council's data without its reasoning.

The same questions as `rsft`, and of each the answer that its reply gives, in the form that the seat's dialect asks for.
Where there is a key it is the key's answer as published.

Source: the control "answer-only SFT" of AgentArk, Luo et al. 2026, arXiv 2602.03955.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pluribus.distil import NO_RIGHT, Case, Found, Material, Trace
from pluribus.distil._choosing import LABEL_HINT, best_first, demonstration, right
from pluribus.distil._forms import answer_text

KIND = "demonstrations"
HINT = LABEL_HINT


@dataclass(frozen=True, slots=True)
class Settings:
    """There is nothing to vary."""


def examples(material: Material, settings: Settings) -> Found:
    """One demonstration of each question that has a right reply."""
    left_out, chosen = Counter[str](), []
    for case in material.cases:
        good = [one for one in right(case, left_out) if one.answer is not None]
        if not good:
            left_out[NO_RIGHT] += 1
            continue
        best = best_first(good, material.seed)[0]
        chosen.append(demonstration(case, best, answer_text(best.dialect, case.question, _answer(case, best))))
    return Found(tuple(chosen), +left_out, tuple(one.text for one in chosen))


def _answer(case: Case, one: Trace) -> str:
    published = case.key.answer if case.key and case.question.kind != "program" else None
    return published if published is not None else str(one.answer)
