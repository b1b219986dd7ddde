"""How well is the first wrong step found without any model? On recorded solutions that people marked step by step.

    python benchmarks/steps_recorded.py [--data FOLDER] [--seed N]

Reads `../shared/data` beside the checkout and does nothing where it is absent; nothing is asked of a model. The
measure is ProcessBench's (`pluribus.metrics.first_error`). `none` calls every step right, `first` the first one wrong,
`random` draws a step or none, `usual` says where most errors of the set's other half are, `arithmetic` the first step
with a false equation between numbers. Steps are also ranked by whether they hold one: AUROC over the steps up to the
first wrong one. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from _steps import FOLDER, Reply, Set, always_none, arithmetic, at_random, equations, every, first_step, usual_place
from pluribus.metrics.first_error import NO_ERROR, FirstError, Share, auroc, first_error

DATA = Path(__file__).parents[2] / "shared" / "data"
Guess = Callable[[Sequence[Reply]], list[int]]


def guesses(seed: int) -> Mapping[str, Guess]:
    return {
        "none": always_none,
        "first": first_step,
        "random": lambda replies: at_random(replies, seed),
        "usual": lambda replies: usual_place(replies, seed),
        "arithmetic": arithmetic,
    }


def shown(share: Share) -> str:
    if share.value is None:
        return "–"
    return f"{100 * share.value:.1f} [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def f1(found: FirstError) -> str:
    if found.f1 is None or found.low is None or found.high is None:
        return "–"
    return f"{100 * found.f1:.1f} [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def ranked(replies: Sequence[Reply]) -> float | None:
    """AUROC of "holds no false equation" for good steps, over the steps up to the first wrong one."""
    scores, good = [], []
    for reply in replies:
        last = len(reply.steps) if reply.first == NO_ERROR else reply.first + 1
        for place, step in enumerate(reply.steps[:last]):
            scores.append(0.0 if False in equations(step) else 1.0)
            good.append(place != reply.first)
    return auroc(scores, good)


def row(one: Set, seed: int) -> str:
    truth = [reply.first for reply in one.replies]
    found = {name: first_error(say(one.replies), truth) for name, say in guesses(seed).items()}
    area = ranked(one.replies)
    cells = [
        one.name,
        f"{len(truth):,}",
        f"{sum(first != NO_ERROR for first in truth):,}",
        *(shown(found[name].erroneous) for name in ("first", "usual")),
        *(f1(found[name]) for name in ("none", "random")),
        shown(found["arithmetic"].erroneous),
        shown(found["arithmetic"].correct),
        f1(found["arithmetic"]),
        "–" if area is None else f"{area:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    if not (flags.data / FOLDER).is_dir():
        print(f"no folder {flags.data / FOLDER}: nothing to measure")
        return
    print(
        "| set | replies | with an error | `first`: exact | `usual`: exact | `none`: F1 | `random`: F1 "
        "| `arithmetic`: exact | `arithmetic`: none, rightly | `arithmetic`: F1 | AUROC |"
    )
    print(f"|{'---|' * 11}")
    skipped = 0
    for one in every(flags.data):
        print(row(one, flags.seed), flush=True)
        skipped += one.skipped
    print(f"\nRows left out, whose first wrong step is no number of a step: {skipped}.")


if __name__ == "__main__":
    main()
