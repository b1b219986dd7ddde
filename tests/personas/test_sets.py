"""The embedded persona sets: who is in them, and what their words may do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pluribus.personas import Persona, personas, sets

# What would change the form of the answer and not the way to it.
FORM = re.compile(
    r"final answer|\{|\}|boxed|json|reply with|respond with|answer in|\bformat\b|\bletter\b", re.IGNORECASE
)


def test_there_is_a_set_for_every_family() -> None:
    assert sets() == ["commonsense", "general", "logic", "market", "mathematics", "medicine", "programming"]


@pytest.mark.parametrize("name", sets())
def test_a_set_is_five_different_people(name: str) -> None:
    found = personas(name)
    assert len(found) == 5
    for values in (
        {p.name for p in found},
        {p.style for p in found},
        {(p.temperature, p.top_p) for p in found},
        {p.prompt for p in found},
    ):
        assert len(values) == 5


@pytest.mark.parametrize("persona", [p for name in sets() for p in personas(name)], ids=lambda p: p.name)
def test_a_persona_changes_the_way_and_not_the_form(persona: Persona) -> None:
    assert 60 <= len(persona.prompt.split()) <= 110
    assert re.fullmatch(r"[a-z]+", persona.style)
    assert persona.temperature is not None and 0.0 < persona.temperature <= 1.2
    assert persona.top_p is not None and 0.5 <= persona.top_p <= 1.0
    assert not FORM.search(persona.prompt)
    assert "$" not in persona.prompt and "\n" not in persona.prompt.strip()


def test_the_mathematics_set_has_the_styles_the_zoo_was_trained_on() -> None:
    assert [p.style for p in personas("mathematics")] == ["verify", "explore", "formal", "estimate", "decompose"]
    assert [p.name for p in personas("mathematics")] == [
        "conservative verifier",
        "creative explorer",
        "rigorous formalist",
        "intuitive estimator",
        "systematic decomposer",
    ]


def test_a_verifier_samples_cooler_than_an_explorer() -> None:
    by_style = {p.style: p.temperature or 0.0 for p in personas("mathematics")}
    assert by_style["verify"] == min(by_style.values())
    assert by_style["explore"] == max(by_style.values())


@pytest.mark.parametrize("name", sets())
def test_the_page_lists_each_persona_with_its_values(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "personas.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    assert row.split(" | ")[-1].removesuffix(" |") == " · ".join(
        f"{p.name} ({p.style}, {p.temperature}, {p.top_p})" for p in personas(name)
    )
