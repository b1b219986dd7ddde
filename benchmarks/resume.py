"""A finished run started again: 0 calls, and how long it takes to re-read 10,000 attempts.

    python benchmarks/resume.py [--quick]

Prints seconds of the re-run and its part of the first run, in one run on one machine. Wanted: under 3 s for 10,000.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from pluribus.config import RunConfig, make_config
from pluribus.run import RunResult, prepare, run
from pluribus.store import Store

SEATS = 5
WANTED_S = 3.0


def main() -> int:
    n = 1_000 if "--quick" in sys.argv else 10_000
    with tempfile.TemporaryDirectory() as folder:
        config = _config(_questions(Path(folder) / "questions.jsonl", n))
        first, first_s = _timed(config, Path(folder))
        again, again_s = _timed(config, Path(folder))
    assert again.rows == first.rows
    assert again.tally.calls == 0
    per_ten_thousand = again_s * 10_000 / n
    print(f"first run: {n:,} attempts of {SEATS} seats, {first.tally.calls:,} calls, {first_s:.2f} s")
    print(f"again: 0 calls, {again_s:.2f} s = {again_s / first_s:.3f} of the first; "
          f"{per_ten_thousand:.2f} s per 10,000 attempts (wanted < {WANTED_S:.0f})")  # fmt: skip
    return int(per_ten_thousand >= WANTED_S)


def _questions(path: Path, n: int) -> Path:
    lines = (
        {"id": f"q{i}", "question": f"How much is {i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(n)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def _config(data: Path) -> RunConfig:
    model = {"model": "scripted/keyed", "accuracy": 0.6}
    return make_config({"task": "jsonl", "data": str(data), "models": [model], "num_agents": SEATS})


def _timed(config: RunConfig, home: Path) -> tuple[RunResult, float]:
    """The run with the opening of its store; loading and naming the questions is timed too."""
    started = time.perf_counter()
    with Store.open(home) as store:
        result = run(prepare(config), store)
    return result, time.perf_counter() - started


if __name__ == "__main__":
    raise SystemExit(main())
