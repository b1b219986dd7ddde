"""Councils to report on: small ones with everything a report can show, and a sweep of scripted models."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from pluribus.cli import main
from pluribus.embedders import open_embedder
from pluribus.evaluate import Usage
from pluribus.panel import Item, Member, Panel, Word
from pluribus.reports import Council, measure

Said = Sequence[Sequence[str | None]]
"""said[round][member]: answers; None: silent."""


@pytest.fixture
def panel() -> Callable[..., Panel]:
    """A panel whose members say these answers; the key of question i is `i`, and the last round's plurality decides."""

    def make(
        said_Q: Sequence[Said],
        *,
        name: str = "council",
        models: Sequence[str] | None = None,
        personas: Sequence[str | None] | None = None,
        **entries: Any,
    ) -> Panel:
        n = len(said_Q[0][0])
        seated = zip(models or ["vllm/m"] * n, personas or [None] * n, strict=True)
        members = tuple(Member(f"agent {i + 1}", model, persona, i) for i, (model, persona) in enumerate(seated))
        items = tuple(_item(str(q), said) for q, said in enumerate(said_Q))
        whole = {"source": f"run {name}", "task": "sums", "method": "vote", **entries}
        return Panel(name=name, members=members, items=items, **whole)

    return make


def _item(key: str, said: Said) -> Item:
    words = tuple(tuple(None if a is None else _word(a, key, place) for place, a in enumerate(row)) for row in said)
    standing = [a for a in said[-1] if a is not None]
    decided = max(standing, key=standing.count)
    calls = sum(a is not None for row in said for a in row)
    usage = Usage(calls, 30 * calls, 10 * calls, 0.001 * calls)
    return Item(f"q{key}", key, words, decided, float(decided == key), usage)


def _word(answer: str, key: str, place: int) -> Word:
    ways = ("count them one by one", "draw a table of the parts", "guess, then check", "work backwards")
    return Word(f"{ways[place % 4]}: {answer}", answer, float(answer == key), 30, 10, 0.001)


@pytest.fixture
def measured() -> Callable[..., tuple[Council, ...]]:
    """Measures panels with the hashing embedder; each may serve the others as control."""

    def make(*panels: Panel, **options: Any) -> tuple[Council, ...]:
        embed = open_embedder("hashing[dimensions=64]")
        return measure(panels, embed, embedder=embed.name, controls=lambda panel: panels, **options)

    return make


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a sweep: votes of 2, 4 and 8 with and without personas, and a debate, of scripted models."""
    folder = tmp_path_factory.mktemp("swept")
    data = folder / "questions.jsonl"
    asked = [{"id": f"q{i}", "question": f"{i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(30)]
    data.write_text("".join(json.dumps(line) + "\n" for line in asked), "utf-8")
    mixed = [{"model": "scripted/keyed", "accuracy": 0.8}, {"model": "scripted/number"}]
    grids = [
        {"models": {"mixed <b>&": mixed, "one": mixed[:1]}, "num_agents": [2, 4, 8], "persona": ["none", "multi"]},
        {"models": {"mixed <b>&": mixed}, "num_agents": [2], "method": ["debate"], "base": {"debate_rounds": 1}},
    ]
    file = folder / "sweep.yaml"
    file.write_text(
        yaml.safe_dump({"name": "try", "base": {"task": "jsonl", "data": str(data)}, "grids": grids}), "utf-8"
    )
    home, out = str(folder / "home"), folder / "report"
    assert main(["sweep", str(file), "--home", home]) == 0
    assert main(["report", "try", "--home", home, "--out", str(out), "--embedder", "hashing"]) == 0
    return (out / "report.html").resolve()
