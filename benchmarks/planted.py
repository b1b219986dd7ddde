"""Do the intervals hold? Recorded outputs from a known process, many times over.

    python benchmarks/planted.py [--seeds 200] [--questions 300] [--walked 3]

For each process: how often the 95 % intervals of the all-wrong rate (Clopper–Pearson), of the mean error correlation
and of the council's difference to its best member and to self-consistency (bootstrap over questions) hold the true
value, and how often the verdict says that the council pays. The first few seeds of each process take the whole walk
(files, replay seats, vote, store); the rest make the same table of answers directly, which is checked on these.
True rates are integrals; true differences come from 200,000 further questions, and the first model, the best by plan,
stands for the best member.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.planted import Process, Truth, panels, store, true_differences

from pluribus.compare import against_best_single, against_self_consistency, compare, short_name, verdict
from pluribus.controls import controls_of
from pluribus.diversity.mistakes import mean_error_correlation, oracle
from pluribus.panel import Panel, right_Q_A
from pluribus.run import panel as stored_panel
from pluribus.store import Store

PROCESSES = {
    "independent": Process((0.8, 0.6, 0.6, 0.6, 0.6), tau=0.8, samples=5),
    "correlated": Process((0.8, 0.6, 0.6, 0.6, 0.6), rho=0.4, tau=0.3, samples=5),
    "strongly correlated": Process((0.8, 0.6, 0.6, 0.6, 0.6), rho=0.8, tau=0.1, samples=5, wrong="shared"),
    "copies": Process((0.65,) * 5, copies=True, tau=1.0, samples=5),
}


def walked(process: Process) -> tuple[Panel, list[Panel]]:
    """Through files, replay seats, votes and the store."""
    with tempfile.TemporaryDirectory() as folder:
        names = store(Path(folder) / "home", process, Path(folder) / "files")
        with Store.open(Path(folder) / "home") as workspace:
            council = stored_panel(workspace, names.council)
            return council, controls_of(workspace, council)


def same(a: Panel, b: Panel) -> bool:
    """Whether two panels hold the same answers and credits."""
    rows = [[(i.question_id, i.decided, i.credit, [w and (w.answer, w.correct) for w in i.words[0]]) for i in p.items]
            for p in (a, b)]  # fmt: skip
    return rows[0] == rows[1]


def check(process: Process) -> None:
    """The short way gives what the long way gives."""
    council, controls = walked(process)
    ours, theirs = panels(process)
    by_model = {short_name(control.members[0].model): control for control in controls}
    if not same(council, ours) or not all(same(by_model[short_name(c.members[0].model)], c) for c in theirs):
        sys.exit(f"seed {process.seed}: the walk and the short way differ")


def within(found: Any, truth: float) -> bool:
    return found.low - 1e-9 <= truth <= found.high + 1e-9


def measure(process: Process, truth: Truth, seeds: int, walks: int) -> dict[str, float]:
    held: Counter[str] = Counter()
    for seed in range(seeds):
        now = dataclasses.replace(process, seed=seed)
        if seed < walks:
            check(now)
        council, controls = panels(now)
        right = right_Q_A(council)
        alone, votes = against_best_single(council), against_self_consistency(council, controls[:1])
        held["beta"] += within(oracle(right), process.beta)
        held["correlation"] += within(mean_error_correlation(right), process.phi)
        held["best member"] += within(alone.difference, truth.best_single)
        held["self-consistency"] += within(votes.difference, truth.self_consistency)
        held["pays"] += verdict(compare(council, controls)).pays is True
    return {name: count / seeds for name, count in held.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--walked", type=int, default=3)
    flags = parser.parse_args()
    print(f"{flags.seeds} seeds, {flags.questions} questions, 5 models; share of 95 % intervals that hold the truth")
    print("| process | beta | phi | council − best | council − SC | beta | correlation | best | SC | says it pays |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, process in PROCESSES.items():
        start, planned = time.process_time(), dataclasses.replace(process, questions=flags.questions)
        truth = true_differences(planned)
        found = measure(planned, truth, flags.seeds, flags.walked)
        true = f"{planned.beta:.3f} | {planned.phi:.3f} | {truth.best_single:+.3f} | {truth.self_consistency:+.3f}"
        print(f"| {name} | {true} | {' | '.join(f'{share:.3f}' for share in found.values())} |", flush=True)
        print(f"  {time.process_time() - start:.0f} s of processor time", file=sys.stderr)


if __name__ == "__main__":
    main()
