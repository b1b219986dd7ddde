"""Do learned weights pay, how many labels do they need, and how sure can one be of a decision? On recorded outputs of
real models, with the questions that teach and the questions that test apart.

    python benchmarks/reliability.py [--data FOLDER] [--cache FOLDER] [--only NAME] [--seeds N] [--crowd-kit]
        [--json FILE]

Reads `../shared/data` beside the checkout and does nothing where it is absent. Every voter answered every question
once; a missing output is no vote. Each seed halves the questions; weights and calibrations are learned on one half and
tested on the other, both ways round, so that each seed tests each question once. A question's credit is its mean over
the seeds, and the 95 % intervals resample questions. Ties count at their expectation. Weights from agreement see no
label, so they are learned once, on the votes of all questions. --crowd-kit also runs crowd-kit's MACE and GLAD at their
defaults, which takes a quarter of an hour; its Dawid–Skene always runs where crowd-kit is installed. Prints Markdown.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluribus import stats
from pluribus.consensus.confidence import KINDS, confidence, fit
from pluribus.consensus.reliability import dawid_skene, effective_options, from_agreement, from_labels
from pluribus.consensus.subsets import codes
from pluribus.metrics.calibration import abstain_below, brier, expected_calibration_error, risk_coverage
from pluribus.panel import answers
from subcouncils import panel_of_folder

DATA = Path(__file__).parents[2] / "shared" / "data"
POOLS = {
    "mmlu_pro_sample_29models": True,
    "mmlu_pro_logic_medicine_29models": True,
    "math_l5_43models": False,
    "gsm8k_24runs": False,
    "gsm8k_4models": False,
    "svamp_18runs": False,
    "aqua_30runs": True,
    "strategyqa_18runs": True,
    "math100_8samples": False,
}
"""Folder → whether its answers are labels of one closed set, as Dawid–Skene's confusion matrices need them."""
FEW = (20, 50, 100, 200)
TARGETS = (0.7, 0.8, 0.9, 0.95)
COVERAGES = (1.0, 0.8, 0.5)
PAIRS = (
    ("weights", "plain"),
    ("weights", "best"),
    ("weights", "agreement"),
    ("weights", "weights, K = 2"),
    ("weights", "weights, K counted"),
    ("agreement", "plain"),
    ("agreement", "best"),
    ("agreement", "DS"),
)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pool:
    name: str
    said: list[list[str | None]]
    keys: list[str]
    codes_Q_A: Ints
    """0: the right answer; −1: none."""
    closed: bool

    @property
    def n(self) -> int:
        return len(self.keys)

    @property
    def voters(self) -> int:
        return int(self.codes_Q_A.shape[1])


@dataclass
class Found:
    """Per question what each method got, summed over the seeds."""

    seeds: int
    credit: dict[str, Floats] = field(default_factory=dict)
    weights: list[tuple[float, ...]] = field(default_factory=list)
    """Learned on each half, in the order of the splits."""
    options: dict[str, list[float]] = field(default_factory=dict)

    def add(self, method: str, rows: Ints, credit: Floats, n: int) -> None:
        self.credit.setdefault(method, np.zeros(n))[rows] += credit / self.seeds


# --- reading ---------------------------------------------------------------------------------------------------------


def pools(data: Path, cache: Path, only: str) -> Iterator[Pool]:
    for name in (name for name in POOLS if only in name):
        if (folder := data / "recorded" / name).is_dir():
            panel = panel_of_folder(folder, cache)
            yield pool(name, answers(panel), [item.key for item in panel.items], POOLS[name])
    path = data / "judges" / "llmbar" / "llmbar_pairs_6judges.jsonl.gz"
    if only in "llmbar" and path.is_file():
        yield from judges(path)


def pool(name: str, said: list[list[str | None]], keys: Sequence[str | None], closed: bool) -> Pool:
    both = [(row, key) for row, key in zip(said, keys, strict=True) if key is not None]
    numbers = codes([(key, *row) for row, key in both])[:, 1:]
    return Pool(name, [row for row, _ in both], [key for _, key in both], numbers, closed)


def judges(path: Path) -> Iterator[Pool]:
    """Judges of pairs of answers: natural pairs, and pairs built so that the worse answer looks the better one."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for name, sets in (("LLMBar natural", ("Natural",)), ("LLMBar adversarial", ("Adv_",))):
        some = [row for row in rows if row["set"].startswith(sets)]
        names = sorted(set.intersection(*(set(row["judgments"]) for row in some)))
        said = [[verdict(row["judgments"][judge]) for judge in names] for row in some]
        yield pool(name, said, [str(row["label"]) for row in some], True)


def verdict(judgment: Any) -> str | None:
    """The winner when the pair is shown as it stands."""
    first = (judgment["winner"] if isinstance(judgment, dict) else judgment)[0]
    return str(first) if str(first) in ("1", "2") else None


# --- votes -----------------------------------------------------------------------------------------------------------


def tally(codes_Q_A: Ints, weights: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    """Credit of the weighted plurality, ties at their expectation, and the leader's part of all weight; where all
    weights are 0, of the plain plurality."""
    weight_A = np.asarray(weights, dtype=np.float64)
    weight_A = weight_A if weight_A.any() else np.ones(len(weight_A))
    width = int(codes_Q_A.max(initial=0)) + 1
    hot_Q_A_C = codes_Q_A[:, :, None] == np.arange(width)
    sum_Q_C = np.einsum("qac,a->qc", hot_Q_A_C, weight_A)
    top_Q_1 = sum_Q_C.max(axis=1, keepdims=True)
    lead_Q_C = hot_Q_A_C.any(axis=1) & (sum_Q_C >= top_Q_1 * (1 - 1e-9))
    credit_Q = lead_Q_C[:, 0] / np.maximum(lead_Q_C.sum(axis=1), 1)
    return credit_Q, np.minimum(top_Q_1[:, 0] / weight_A.sum(), 1.0)


def splits(n: int, seeds: int) -> Iterator[tuple[Ints, Ints]]:
    """(learn, test) halves, both ways round, in random order."""
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(n)
        yield order[: n // 2], order[n // 2 :]
        yield order[n // 2 :], order[: n // 2]


def best_alone(found: Pool, learn: Ints) -> int:
    return int((found.codes_Q_A[learn] == 0).mean(axis=0).argmax())


def learned(found: Pool, rows: Ints, options: float | None = None) -> tuple[float, ...]:
    return from_labels([found.said[q] for q in rows], [found.keys[q] for q in rows], options=options).weights


# --- weights ---------------------------------------------------------------------------------------------------------


def weigh(found: Pool, seeds: int) -> Found:
    out = Found(seeds)
    for learn, test in splits(found.n, seeds):
        by_half(found, out, learn, test)
        for n in (n for n in FEW if n < len(learn)):
            one(found, out, test, f"weights {n}", learned(found, learn[:n]))
            alone(found, out, learn[:n], test, f"best {n}")
    blind = from_agreement(found.said)
    out.options["agreement"] = [blind.options]
    for name, weights in (("plain", [1.0] * found.voters), ("agreement", blind.weights)):
        out.credit[name] = tally(found.codes_Q_A, weights)[0]
    return out


def by_half(found: Pool, out: Found, learn: Ints, test: Ints) -> None:
    said, keys = [found.said[q] for q in learn], [found.keys[q] for q in learn]
    fitted, counted = from_labels(said, keys), effective_options(said, keys)
    out.options.setdefault("fitted", []).append(fitted.options)
    out.options.setdefault("counted", []).append(counted)
    out.weights.append(fitted.weights)
    one(found, out, test, "weights", fitted.weights)
    one(found, out, test, "weights, K = 2", learned(found, learn, 2.0))
    one(found, out, test, "weights, K counted", learned(found, learn, counted))
    alone(found, out, learn, test, "best")


def one(found: Pool, out: Found, test: Ints, name: str, weights: Sequence[float]) -> None:
    out.add(name, test, tally(found.codes_Q_A[test], weights)[0], found.n)


def alone(found: Pool, out: Found, learn: Ints, test: Ints, name: str) -> None:
    out.add(name, test, (found.codes_Q_A[test, best_alone(found, learn)] == 0).astype(np.float64), found.n)


def crowd_kit(found: Pool, slow: bool) -> dict[str, Floats]:
    """Credits of crowd-kit's aggregators, and how far its Dawid–Skene is from ours."""
    import pandas as pd
    from crowdkit.aggregation import GLAD, MACE, DawidSkene

    votes = [(q, a, said) for q, row in enumerate(found.said) for a, said in enumerate(row) if said is not None]
    frame = pd.DataFrame(votes, columns=["task", "worker", "label"])
    out = {}
    makers = {"DS": DawidSkene(n_iter=100, tol=-np.inf)}
    if slow:
        makers |= {"MACE": MACE(random_state=0), "GLAD": GLAD()}
    for name, maker in makers.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas warns of calls that crowd-kit still makes
            told = maker.fit_predict(frame)
        out[name] = np.array([float(told.get(q) == key) for q, key in enumerate(found.keys)])
    ours = dawid_skene(found.said, iterations=100, tolerance=-np.inf)
    theirs = makers["DS"].probas_.sort_index()
    apart = np.abs(theirs[list(ours.labels)].to_numpy() - ours.posterior_Q_K[theirs.index]).max()
    out["apart"] = np.array([apart])
    return out


def differences(
    credit: Mapping[str, Floats], pairs: Sequence[tuple[str, str]]
) -> dict[str, tuple[float, float, float]]:
    """Mean and interval of each difference between two methods that were both measured."""
    out = {}
    for a, b in pairs:
        if a in credit and b in credit:
            found = stats.paired_difference(credit[a].tolist(), credit[b].tolist())
            out[f"{a} − {b}"] = (found.value, found.low, found.high)
    return out


# --- confidence ------------------------------------------------------------------------------------------------------


def sure(found: Pool, weighed: Found) -> dict[str, Any]:
    """Per vote (plain, weighted) and kind of confidence: errors over the splits, and what abstaining buys."""
    out: dict[str, Any] = {}
    for (learn, test), learned_A in zip(splits(found.n, weighed.seeds), weighed.weights, strict=True):
        for vote, weights in (("plain", np.ones(found.voters)), ("weighted", np.array(learned_A))):
            taught, asked = tally(found.codes_Q_A[learn], weights), tally(found.codes_Q_A[test], weights)
            errors(out.setdefault(vote, {}), taught, asked)
        errors(out.setdefault("weighted, crossed", {}), crossed(found, learn), asked)
    return out


def crossed(found: Pool, learn: Ints) -> tuple[Floats, Floats]:
    """Credit and support on the questions learned from, each under weights learned on the other half of them."""
    middle = len(learn) // 2
    parts = [tally(found.codes_Q_A[rows], learned(found, others))
             for rows, others in ((learn[:middle], learn[middle:]), (learn[middle:], learn[:middle]))]  # fmt: skip
    credit, support = (np.concatenate(both) for both in zip(*parts, strict=True))
    return credit, support


def errors(out: dict[str, Any], taught: tuple[Floats, Floats], asked: tuple[Floats, Floats]) -> None:
    (right_L, support_L), (right_T, support_T) = taught, asked
    note(out, "raw", support_T, right_T)
    for n in sorted({n for n in (50, 200) if n < len(right_L)} | {len(right_L)}):
        for kind in KINDS:
            fitted = fit(support_L[:n].tolist(), right_L[:n].tolist(), kind)
            chances = np.array([confidence(fitted, x) for x in support_T])
            label = f"{kind} {n if n < len(right_L) else 'half'}"
            note(out, label, chances, right_T)
            if label == "isotonic half":
                out.setdefault("chance error", []).append(by_chance(chances))
                fitted_L = np.array([confidence(fitted, x) for x in support_L])
                targets(out, (right_L, fitted_L), (right_T, chances))
    kept(out, support_T, right_T)


def note(out: dict[str, Any], name: str, chances: Floats, right: Floats) -> None:
    told = out.setdefault(name, {"ece": [], "brier": []})
    told["ece"].append(expected_calibration_error(chances.tolist(), right.tolist()))
    told["brier"].append(brier(chances.tolist(), right.tolist()))


def by_chance(chances: Floats) -> float:
    """The calibration error that true chances would have on as many questions: mean of 50 draws."""
    rng = np.random.default_rng(0)
    drawn = rng.random((50, len(chances))) < chances
    return float(np.mean([expected_calibration_error(chances.tolist(), row.astype(float).tolist()) for row in drawn]))


def kept(out: dict[str, Any], support: Floats, right: Floats) -> None:
    curve = risk_coverage(support.tolist(), right.tolist())
    out.setdefault("area", []).append(curve.area)
    gained = np.diff(np.array(curve.coverage) * (1 - np.array(curve.risk)), prepend=0.0)
    part = np.diff(np.array(curve.coverage), prepend=0.0)
    for coverage in COVERAGES:
        whole = np.clip(coverage - (np.array(curve.coverage) - part), 0, part) / part
        out.setdefault(f"at {coverage}", []).append(float((whole * gained).sum() / coverage))


def targets(out: dict[str, Any], taught: tuple[Floats, Floats], asked: tuple[Floats, Floats]) -> None:
    (right_L, chance_L), (right_T, chance_T) = taught, asked
    for target in TARGETS:
        least = abstain_below(chance_L.tolist(), right_L.tolist(), target)
        told = out.setdefault(f"target {target}", {"coverage": [], "accuracy": [], "none": 0})
        if least is None:
            told["none"] += 1
        else:
            keep = chance_T >= least
            told["coverage"].append(float(keep.mean()))
            told["accuracy"].append(float(right_T[keep].mean()) if keep.any() else None)


# --- printing --------------------------------------------------------------------------------------------------------


def points(value: float, low: float, high: float) -> str:
    return f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]".replace("-", "−")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    print("\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n", flush=True)


def spread(values: Sequence[float], digits: int = 3) -> str:
    if not values:
        return "–"
    low, high = min(values), max(values)
    return f"{np.mean(values):.{digits}f} ({low:.{digits}f} … {high:.{digits}f})"


def show(measured: Mapping[str, Mapping[str, Any]]) -> None:
    print("## Weights learned on one half, tested on the other\n")
    names = ("plain", "best", "weights", "weights, K = 2", "weights, K counted", "agreement", "DS", "MACE", "GLAD")
    table(
        ("accuracy", "n", "voters", *names, "K fitted", "K counted"), [accuracies(m, names) for m in measured.values()]
    )
    contest("differences", measured)
    print("## How many labels\n")
    contest("few", measured)
    sizes = [f"{what} {n}" for n in FEW for what in ("weights", "best")]
    table(("accuracy", *sizes), [[m["name"], *(mean(m, size) for size in sizes)] for m in measured.values()])
    print("## Confidence: calibration error and Brier score on the other half\n")
    for vote in ("plain", "weighted", "weighted, crossed"):
        calibrations(vote, measured)


def accuracies(m: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    fitted, counted = (spread(m["options"][how], 1) for how in ("fitted", "counted"))
    return [m["name"], f"{m['n']:,}", str(m["voters"]), *(mean(m, name) for name in names), fitted, counted]


def mean(m: Mapping[str, Any], name: str) -> str:
    return f"{m['accuracy'][name]:.3f}" if name in m["accuracy"] else "–"


def contest(what: str, measured: Mapping[str, Mapping[str, Any]]) -> None:
    pairs = list(dict.fromkeys(pair for m in measured.values() for pair in m[what]))
    rows = [[m["name"], *(points(*m[what][pair]) if pair in m[what] else "–" for pair in pairs)]
            for m in measured.values()]  # fmt: skip
    table(("points", *pairs), rows)


def calibrations(vote: str, measured: Mapping[str, Mapping[str, Any]]) -> None:
    kinds = ["raw", *(f"{kind} {n}" for kind in KINDS for n in (50, 200, "half"))]
    rows = [(m["name"], m["sure"][vote]) for m in measured.values()]
    for what in ("ece", "brier"):
        told = [[name, *(spread(s[k][what]) if k in s else "–" for k in kinds), spread(s["chance error"])]
                for name, s in rows]  # fmt: skip
        table((f"{vote} vote: {what}", *kinds, "ece by chance"), told)
    table((f"{vote} vote: accuracy at coverage", *map(str, COVERAGES), "area"),
          [[name, *(spread(s[f"at {c}"]) for c in COVERAGES), spread(s["area"])] for name, s in rows])  # fmt: skip
    heads = [f"{target}" for target in TARGETS]
    table((f"{vote} vote: target", *heads), [[name, *(promise(s, t) for t in TARGETS)] for name, s in rows])


def promise(s: Mapping[str, Any], target: float) -> str:
    told = s[f"target {target}"]
    values = [x for x in told["accuracy"] if x is not None]
    if not values:
        return "never"
    kept = sum(x >= target for x in values)
    return (
        f"{np.mean(values):.3f} of {np.mean(told['coverage']):.2f}; holds {kept} of {len(values)}, none {told['none']}"
    )


# --- all -------------------------------------------------------------------------------------------------------------


def measure(found: Pool, seeds: int, slow: bool) -> dict[str, Any]:
    weighed = weigh(found, seeds)
    credit = weighed.credit
    out: dict[str, Any] = {"name": found.name, "n": found.n, "voters": found.voters, "options": weighed.options}
    if found.closed and importlib.util.find_spec("crowdkit"):
        extra = crowd_kit(found, slow)
        out["apart"] = float(extra.pop("apart")[0])
        credit |= extra
    out["differences"] = differences(credit, PAIRS)
    few = [(f"weights {n}", other) for n in FEW for other in ("plain", "agreement", f"best {n}")]
    out["few"] = differences(credit, few)
    out["accuracy"] = {name: float(values.mean()) for name, values in credit.items()}
    out["sure"] = sure(found, weighed)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds recorded/ and judges/")
    parser.add_argument("--cache", type=Path, help="where readings are kept; else nowhere")
    parser.add_argument("--only", default="", help="part of a pool's name")
    parser.add_argument("--seeds", type=int, default=5, help="ways to halve the questions")
    parser.add_argument("--crowd-kit", action="store_true", help="also MACE and GLAD")
    parser.add_argument("--json", type=Path, help="also write all numbers to this file")
    flags = parser.parse_args()
    if not flags.data.is_dir():
        print(f"skipped: no recorded outputs in {flags.data}")
        return 0
    measured: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        cache = flags.cache or Path(scratch)
        cache.mkdir(parents=True, exist_ok=True)
        for found in pools(flags.data, cache, flags.only):
            started = time.perf_counter()
            measured[found.name] = measure(found, flags.seeds, flags.crowd_kit)
            print(f"{found.name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    show(measured)
    if flags.json:
        flags.json.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
