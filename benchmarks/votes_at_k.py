"""What k samples of one model are worth: pass@k, majority@k and best-of-k over all k-subsets, exact.

    python benchmarks/votes_at_k.py [--data FOLDER] [--cache FOLDER] [--zoo HOME]

Reads recorded samples in `../shared/data` beside the checkout (MATH with the scores of a reward model; HumanEval by
behaviour, see `stopping.py`; the game of 24), and of --zoo the finished runs of self_consistency with --draws samples;
says what it skips. Nothing is asked of a model. Each number is the mean over questions of U_k with a 95 % bootstrap
interval over questions; the differences are paired.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from _behaviour import lines
from _panels import Votes, game24, of_panel, programs, runs
from pluribus.objectives import Group, value
from pluribus.stats import Estimate, paired_bootstrap
from subcouncils import panel_of_folder

KS = (1, 3, 5, 8, 9, 17, 33)
MATH = "math100_8samples"


@dataclass(frozen=True, slots=True)
class Samples:
    name: str
    groups: tuple[Group, ...]
    """One per question, with as many samples each."""

    @property
    def n(self) -> int:
        return len(self.groups[0].rewards)

    @property
    def ks(self) -> list[int]:
        """Where subsets of k differ enough to say something: up to a third of the samples, or all of a few."""
        return [k for k in KS if k <= max(8, self.n // 3) and k <= self.n]

    def at(self, objective: str, k: int) -> list[float]:
        return [value(group, objective, k) for group in self.groups]


def of_votes(found: Votes, scores: tuple[tuple[float, ...], ...] | None = None) -> Samples:
    groups = []
    for place, (codes, credit) in enumerate(zip(found.codes_Q_A.tolist(), found.credit_Q_C.tolist(), strict=True)):
        answers = [None if code < 0 else str(code) for code in codes]
        rewards = [0.0 if code < 0 else credit[code] for code in codes]
        groups.append(Group(rewards, answers, scores[place] if scores else None))
    return Samples(found.name, tuple(groups))


def table(found: Samples) -> Iterator[str]:
    scored = found.groups[0].scores is not None
    names = ["pass", "majority", *(["best_of"] if scored else [])]
    yield f"\n### {found.name}: {len(found.groups)} questions, {found.n} samples\n"
    heads = {"pass": "pass@k", "majority": "majority@k", "best_of": "best-of-k by the reward model"}
    yield f"| k | {' | '.join(heads[name] for name in names)} | majority@k over one sample, points |"
    yield "|" + "---|" * (len(names) + 2)
    one = found.at("majority", 1)
    for k in found.ks:
        columns = [found.at(name, k) for name in names]
        cells = [_cell(paired_bootstrap(column, [0.0] * len(column))) for column in columns]
        yield f"| {k} | {' | '.join(cells)} | {_points(paired_bootstrap(columns[1], one))} |"


def _cell(found: Estimate) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _points(found: Estimate) -> str:
    return f"{100 * found.value:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]".replace("-", "−")


def mathematics(data: Path, cache: Path) -> Samples:
    """Eight samples a question, each with a reward model's score."""
    folder = data / "recorded" / MATH
    panel = panel_of_folder(folder, cache)
    said = {(row["question_id"], row["sample"]): row["recorded_rm_score"] for row in lines(folder / "outputs.jsonl.gz")}
    scores = tuple(tuple(said[item.question_id, i] for i in range(len(panel.members))) for item in panel.items)
    return of_votes(of_panel(panel, "MATH 100, Qwen2.5-Math", "samples"), scores)


def sources(data: Path, cache: Path, zoo: Path | None, draws: int) -> Iterator[Samples]:
    if (data / "recorded" / MATH).is_dir():
        yield mathematics(data, cache)
    if (data / "samples").is_dir():
        found = [*programs(data, cache), *game24(data)]
        yield from (of_votes(votes) for votes in found if votes.voters == votes.codes_Q_A.shape[1])
    else:
        print(f"skipped: no samples in {data / 'samples'}")
    if zoo:
        yield from map(of_votes, runs(zoo, draws))
    else:
        print("skipped: the zoo; --zoo names the folder of a workspace with runs of self_consistency")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--cache", type=Path, help="where readings and classes of behaviour are kept; else nowhere")
    parser.add_argument("--zoo", type=Path, help="folder of a workspace with finished runs of self_consistency")
    parser.add_argument("--draws", type=int, default=40, help="samples a question that the runs of --zoo have")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        cache = given.cache or Path(scratch)
        cache.mkdir(parents=True, exist_ok=True)
        for found in sources(given.data, cache, given.zoo, given.draws):
            print("\n".join(table(found)), flush=True)


if __name__ == "__main__":
    main()
