"""The product's doors that the benchmark goes through: commands, councils, trainings. Private to `distil.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pluribus.council import Council
from pluribus.training import train
from pluribus.training.config import make_training

MAX_TOKENS = 160


def pluribus(*words: str, home: Path) -> Any:
    """One command with `--json`; what it prints on stdout, read. SystemExit with its words where it fails."""
    line = [sys.executable, "-m", "pluribus", *words, "--home", str(home), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"pluribus {' '.join(words)} ended with {done.returncode}: {done.stderr[-800:]}")
    return json.loads(done.stdout)


def council(
    home: Path, models: Sequence[str], task: str, split: str, limit: int, *, rounds: int = 1, agents: int | None = None,
    personas: str | None = None, seed: int = 0, data: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A run of a council, or with no rounds of independent draws; what is stored costs nothing."""
    method: dict[str, Any] = {"method": "debate", "settings": {"debate_rounds": rounds}} if rounds else {}
    options = {"num_agents": agents, "personas": personas, "multi_persona": True if personas else None}
    said = {name: value for name, value in options.items() if value is not None}
    asked = Council(
        list(models), home=home, prompts="zoo", sampling={"max_tokens": MAX_TOKENS}, seed=seed, **method, **said
    ).run(task, split=split, limit=limit, data=data)
    score, alone = asked.score, asked.seat_scores()
    return {
        "run": asked.id,
        "accuracy": score.value,
        "verdicts": "".join(_mark(row.credit) for row in asked.rows),
        "seats": [alone[seat].value for seat in sorted(alone)],
        "questions": score.n,
        "calls": score.calls,
        "tokens": score.tokens,
    }


def _mark(credit: float | None) -> str:
    return "-" if credit is None else "1" if credit >= 1 else "0"


def trained(kind: str, model: Path | str, data: Path, out: Path, **settings: Any) -> dict[str, Any]:
    """One training; what came of it, without the folder."""
    made = make_training({"kind": kind, "model": str(model), "data": str(data), "out": str(out), **settings})
    done = train(made)
    facts: Mapping[str, Any] = {"steps": done.steps, "rows": done.rows, "loss": done.loss}
    return {**facts, "settings": settings}
