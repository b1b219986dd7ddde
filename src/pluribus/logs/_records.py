"""What a log holds, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pluribus.evaluate import Usage
from pluribus.types import Key, Question


@dataclass(frozen=True, slots=True)
class Output:
    """One recorded text with what the source made of it."""

    question_id: str
    agent: str
    text: str
    round: int = 0
    sample: int = 0
    answer: str | None = None
    """As the source read it; None: it read none, or does not say."""
    correct: bool | None = None
    """The source's verdict; None: it gave none."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    unanswered: bool = False
    """The source looked for an answer in the text and found none; then nobody looks again."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What one file holds about one council, or one model, on one task."""

    name: str
    source: str
    """Path of the file."""
    task: str
    pairs: tuple[tuple[Question, Key | None], ...]
    agents: tuple[str, ...]
    outputs: tuple[Output, ...]
    decided: Mapping[str, str | None] = field(default_factory=dict)
    """Question id → the council's answer as the source decided it; empty: the source decides nothing."""
    decided_correct: Mapping[str, bool | None] = field(default_factory=dict)
    personas: Mapping[str, str] = field(default_factory=dict)
    """Agent → its persona, where the source says so."""
    omitted: Mapping[str, int] = field(default_factory=dict)
    """Reason → how many lines, rounds or texts were left out, or stand with something missing."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Agent → its model, where the agent has a name of its own."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """Question id → what the whole attempt took, where the source counts more than single outputs."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """What the source says about how it was made: method, solver, topology, …"""
