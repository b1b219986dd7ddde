"""Rejection sampling: one right reply per question.

What the council decided, said by one of those who stand for it at the end, where that is right; else the best of the
right replies of any round: by reward where there are rewards, then the latest round, then a drawn one. The drawn order
knows no seats, so no member of the council is preferred.

Source: reasoning-enhanced SFT of AgentArk, Luo et al. 2026, arXiv 2602.03955; rejection sampling, Yuan et al. 2023,
arXiv 2308.01825.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pluribus.distil import NO_RIGHT, Found, Material
from pluribus.distil._choosing import LABEL_HINT, best_first, check_weight, demonstration, repeated, right

KIND = "demonstrations"
HINT = LABEL_HINT


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be varied."""

    corrective_weight: int = 1
    """How often a reply stands in the file whose seat was wrong before."""

    def __post_init__(self) -> None:
        check_weight(self.corrective_weight)


def examples(material: Material, settings: Settings) -> Found:
    """One demonstration of each question that has a right reply."""
    left_out, chosen, available = Counter[str](), [], []
    for case in material.cases:
        good = right(case, left_out)
        available += [one.text for one in good]
        if not good:
            left_out[NO_RIGHT] += 1
            continue
        chosen.append(demonstration(case, best_first(good, material.seed)[0]))
    return Found(repeated(chosen, settings.corrective_weight), +left_out, tuple(available))
