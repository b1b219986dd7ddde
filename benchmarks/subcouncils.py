"""Does another agent help? Sub-councils of recorded real outputs: K* against accuracy, the best council against the
best model, the all-wrong rate, and how the plain majority grows with its members.

    python benchmarks/subcouncils.py [--data FOLDER] [--cache FOLDER] [--only NAME] [--quick] [--json FILE]

Reads `../shared/data/recorded` beside the checkout and does nothing where it is absent. Every model gave one answer to
each question. A council of n is the plain plurality of n models' answers, ties at their expectation; it takes n calls
where a model alone takes one, and no recorded model has the samples for self-consistency at the same calls, except the
one of `math100_8samples`. A missing output is no vote, and is left out of the accuracy of the model alone. Answers are
read by `pluribus.answers`; programs are not run: their recorded results stand for them. Intervals are 95 %, by
resampling questions. McNemar's test needs whole votes: there a tie goes to the member that was best on the other half.
With --cache, readings and vectors are kept: the first run embeds 8,000 long outputs, which takes most of its time, a
second one takes about four minutes. Prints Markdown.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluribus import answers as reading
from pluribus import stats
from pluribus.answers import canonical, read
from pluribus.consensus.subsets import codes, plurality_accuracy, plurality_credit
from pluribus.diversity.kstar import kstar_batch
from pluribus.diversity.mistakes import mean_error_correlation, oracle
from pluribus.embedders import open_embedder
from pluribus.panel import Item, Member, Panel, Word, answers, right_Q_A
from pluribus.stats import Estimate
from pluribus.store import Store
from pluribus.types import Question

RECORDED = Path(__file__).parents[2] / "shared" / "data"
PROGRAMS = ("_NL+SL", "_noNL")
POOLS = {
    "mmlu_pro_sample_29models": 100,
    "mmlu_pro_logic_medicine_29models": 80,
    "math_l5_43models": 40,
    "gsm8k_24runs": 80,
}
"""Folder → questions whose outputs are embedded, chosen by the hash of their ids."""
SIZES = (2, 4, 8, 16)
CHOSEN = (2, 4, 8)
RESAMPLES = 200
SEEDS = 5
EVERY = 30_000
"""Councils that are all counted; beyond, the best is searched."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pool:
    """What is measured: votes of all members, and whether they are right."""

    panel: Panel
    codes_Q_A: NDArray[np.int64]
    right_Q_A: Floats

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.panel.members]

    def credit(self, members_M_A: Bools) -> Floats:
        return plurality_credit(self.codes_Q_A, self.right_Q_A, members_M_A)

    def on(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
        return self.codes_Q_A[rows], self.right_Q_A[rows]


# --- reading ---------------------------------------------------------------------------------------------------------


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) as file:
        yield from (json.loads(line) for line in file)


def pool(folder: Path, cache: Path) -> Pool:
    panel = panel_of_folder(folder, cache)
    right = right_Q_A(panel)
    return Pool(panel, codes(answers(panel)), right)


def panel_of_folder(folder: Path, cache: Path) -> Panel:
    """Recorded outputs as a panel: one member per model, or per sample where one model answered several times."""
    rows = list(lines(folder / "outputs.jsonl.gz"))
    asked = {row["id"]: row for row in lines(folder / "questions.jsonl.gz")}
    said = read_all(folder.name, asked, rows, cache)
    keys = {id: canonical(question(folder.name, row), str(row["answer"])) for id, row in asked.items()}
    voices = sorted({(row["model"], row["sample"]) for row in rows})
    words = {
        (row["question_id"], row["model"], row["sample"]): word(row["text"], answer, keys[row["question_id"]])
        for row, answer in zip(rows, said, strict=True)
    }  # fmt: skip
    items = tuple(Item(id, keys[id], (tuple(words.get((id, *voice)) for voice in voices),), None, None) for id in asked)
    members = tuple(Member(name(model, sample, voices), model, seat=i) for i, (model, sample) in enumerate(voices))
    missing = len(asked) * len(voices) - len(rows)
    return Panel(folder.name, str(folder), folder.name, "vote", members, items, {}, {"missing outputs": missing})


def word(text: str, answer: str | None, key: str | None) -> Word:
    return Word(text, answer, float(answer == key))


def name(model: str, sample: int, voices: Sequence[tuple[str, int]]) -> str:
    return model if sum(other == model for other, _ in voices) == 1 else f"{model} #{sample + 1}"


def question(task: str, row: dict[str, Any]) -> Question:
    return Question(row["id"], task, row["question"], row["kind"], tuple(row.get("choices", ())))


def read_all(task: str, asked: dict[str, Any], rows: Sequence[dict[str, Any]], cache: Path) -> list[str | None]:
    """Every output's answer; kept under a name that changes with the outputs and with the way we read."""
    how = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(Path(reading.__file__).parent.glob("*.py"))))
    how.update("".join(row["text"] for row in rows).encode("utf-8", "surrogatepass"))
    kept = cache / f"{task}-{how.hexdigest()[:16]}.json"
    if kept.is_file():
        return list(json.loads(kept.read_text("utf-8")))
    with ProcessPoolExecutor(2) as workers:
        pairs = ((question(task, asked[row["question_id"]]), row) for row in rows)
        said = list(workers.map(answer_of, pairs, chunksize=500))
    kept.write_text(json.dumps(said), "utf-8")
    return said


def answer_of(pair: tuple[Question, dict[str, Any]]) -> str | None:
    asked, row = pair
    if row["model"].endswith(PROGRAMS):
        result = row["recorded_answer"]
        return None if result is None else canonical(asked, str(result))
    return read(asked, row["text"])


# --- statistics ------------------------------------------------------------------------------------------------------


def first_by_hash(ids: Sequence[str], n: int, seed: int) -> NDArray[np.int64]:
    """n of the questions, always the same for a seed, whatever their order."""
    order = sorted(range(len(ids)), key=lambda i: hashlib.sha256(f"{seed}:{ids[i]}".encode()).hexdigest())
    return np.array(sorted(order[:n]), dtype=np.int64)


def ranks(values: Floats) -> Floats:
    """Mean ranks along the last axis; equal values share theirs."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1), dtype=np.float64)


def spearman(x: Floats, y: Floats, given: Sequence[Floats] = ()) -> float:
    """Rank correlation; with `given`, of what is left of both ranks after a linear fit on the ranks of those."""
    rx, ry = ranks(x), ranks(y)
    if given:
        base = np.column_stack([np.ones(len(rx)), *map(ranks, given)])
        rx, ry = (r - base @ np.linalg.lstsq(base, r, rcond=None)[0] for r in (rx, ry))
    spread = float(np.std(rx) * np.std(ry))
    return float(np.mean((rx - rx.mean()) * (ry - ry.mean())) / spread) if spread else math.nan


def weights(n: int, resamples: int, seed: int) -> Floats:
    """(resamples, n): how often each question is drawn; the first row is the sample itself."""
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    return np.vstack([np.ones(n), drawn]).astype(np.float64)


def weighted_means(values_M_Q: Floats, weights_B_Q: Floats) -> Floats:
    """(resamples, rows): means over the questions that are known."""
    known = ~np.isnan(values_M_Q)
    return (weights_B_Q @ np.nan_to_num(values_M_Q).T) / np.maximum(weights_B_Q @ known.T, 1e-12)


def interval(drawn: Sequence[float] | Floats) -> tuple[float, float, float]:
    """Value (the first), and the 95 % percentile interval of the others."""
    low, high = np.nanquantile(np.asarray(drawn)[1:], [0.025, 0.975])
    return float(drawn[0]), float(low), float(high)


# --- sub-councils ----------------------------------------------------------------------------------------------------


def councils(n: int, size: int, count: int, seed: int) -> Bools:
    """Different random councils of one size; all of them where there are no more than `count`."""
    if math.comb(n, size) <= count:
        chosen = list(itertools.combinations(range(n), size))
    else:
        rng = np.random.default_rng([seed, size])
        found: set[tuple[int, ...]] = set()
        while len(found) < count:
            found.add(tuple(sorted(rng.choice(n, size, replace=False).tolist())))
        chosen = sorted(found)
    return masks(chosen, n)


def masks(chosen: Sequence[Sequence[int]], n: int) -> Bools:
    members = np.zeros((len(chosen), n), dtype=np.bool_)
    for row, seats in zip(members, chosen, strict=True):
        row[list(seats)] = True
    return members


def council_kstar(vectors_Q_A_D: Floats, said_Q_A: Bools, members_M_A: Bools) -> Floats:
    """(councils, questions) K* of the members' texts; NaN where fewer than two of them said anything."""
    out = np.empty((len(members_M_A), len(vectors_Q_A_D)))
    for row, sits in zip(out, members_M_A, strict=True):
        said = said_Q_A[:, sits]
        row[:] = np.where(said.sum(axis=1) > 1, kstar_batch(vectors_Q_A_D[:, sits], said), np.nan)
    return out


def compressed(vectors_Q_A_D: Floats) -> Floats:
    """As many dimensions as members, with the same inner products, so the same K*."""
    gram = np.einsum("qad,qbd->qab", vectors_Q_A_D, vectors_Q_A_D)
    values, basis = np.linalg.eigh(gram)
    return np.asarray(basis * np.sqrt(np.maximum(values, 0))[:, None, :], dtype=np.float64)


def embedded(found: Pool, rows: NDArray[np.int64], embed: Callable[[Sequence[str]], Floats]) -> tuple[Floats, Bools]:
    items = [found.panel.items[q] for q in rows]
    texts = [[word.text if word else "" for word in item.words[0]] for item in items]
    vectors = embed([text for row in texts for text in row]).reshape(len(rows), len(found.names), -1)
    return compressed(vectors), np.array([[bool(text.strip()) for text in row] for row in texts])


@dataclass(frozen=True, slots=True)
class Sample:
    """Random councils of one size with all that is known of them."""

    size: int
    members_M_A: Bools
    credit_M_Q: Floats
    kstar_M_R: dict[str, Floats]
    """By embedder, over the embedded questions."""


def diversity(found: Pool, samples: Sequence[Sample], rows: NDArray[np.int64], seed: int) -> list[dict[str, Any]]:
    """K* against accuracy over the councils of each size and of all sizes together."""
    draws = weights(len(found.right_Q_A), RESAMPLES, seed)
    alone_B_A = weighted_means(found.right_Q_A.T, draws)
    out = []
    for some in ([sample] for sample in samples):
        out.append(correlations(f"{some[0].size}", some, draws, alone_B_A, rows))
    out.append(correlations("all sizes", samples, draws, alone_B_A, rows))
    return out


def correlations(
    label: str, samples: Sequence[Sample], draws_B_Q: Floats, alone_B_A: Floats, rows: NDArray[np.int64]
) -> dict[str, Any]:
    members = np.vstack([sample.members_M_A for sample in samples])
    accuracy_B_M = np.hstack([weighted_means(sample.credit_M_Q, draws_B_Q) for sample in samples])
    mean_B_M = (alone_B_A @ members.T) / members.sum(axis=1)
    size_M = members.sum(axis=1).astype(np.float64)
    fixed = [size_M] if len(samples) > 1 else []
    kstar = {
        name: np.hstack([weighted_means(sample.kstar_M_R[name], draws_B_Q[:, rows]) for sample in samples])
        for name in samples[0].kstar_M_R
    }
    found: dict[str, Any] = {"size": label, "councils": len(members)}
    found["mean member, accuracy"] = interval([spearman(m, a) for m, a in zip(mean_B_M, accuracy_B_M, strict=True)])
    for name, k_B_M in kstar.items():
        triples = list(zip(k_B_M, accuracy_B_M, mean_B_M, strict=True))
        found[f"K* {name}, accuracy"] = interval([spearman(k, a) for k, a, _ in triples])
        found[f"K* {name}, accuracy, given mean member"] = interval(
            [spearman(k, a, [m, *fixed]) for k, a, m in triples]
        )
        if len(samples) == 1:
            found[f"tenth with most K* {name}, points over all"] = interval([most(k, a) for k, a, _ in triples])
        found[f"K* {name}, leave one model out"] = without_one(members, k_B_M[0], accuracy_B_M[0], mean_B_M[0], fixed)
    if len(kstar) == 2:
        one, other = kstar.values()
        found["K* of both embedders"] = interval([spearman(k, h) for k, h in zip(one, other, strict=True)])
    return found


def most(kstar_M: Floats, accuracy_M: Floats) -> float:
    """What is gained by taking the tenth of the councils that is most diverse, in percentage points."""
    tenth = np.argsort(-kstar_M, kind="stable")[: max(1, len(kstar_M) // 10)]
    return 100 * float(accuracy_M[tenth].mean() - accuracy_M.mean())


def without_one(
    members_M_A: Bools, kstar_M: Floats, accuracy_M: Floats, mean_M: Floats, fixed: Sequence[Floats]
) -> tuple[float, float]:
    """Least and largest partial correlation over the councils that do without one of the models."""
    out = []
    for sits_M in members_M_A.T:
        if (~sits_M).sum() > 20:
            controls = [mean_M[~sits_M], *(f[~sits_M] for f in fixed)]
            out.append(spearman(kstar_M[~sits_M], accuracy_M[~sits_M], controls))
    return min(out, default=math.nan), max(out, default=math.nan)


# --- the best council against the best model -------------------------------------------------------------------------


def best_council(found: Pool, rows: NDArray[np.int64], size: int) -> tuple[int, ...]:
    """The most accurate council on some questions: of all where they are few, else grown from one of half the size."""
    votes, right = found.on(rows)
    n = votes.shape[1]
    if math.comb(n, size) <= EVERY:
        every = list(itertools.combinations(range(n), size))
        return every[int(np.nanargmax(plurality_accuracy(votes, right, masks(every, n))))]
    seats = list(best_council(found, rows, size // 2))
    while len(seats) < size:
        steps = [[*seats, other] for other in range(n) if other not in seats]
        seats = steps[int(np.nanargmax(plurality_accuracy(votes, right, masks(steps, n))))]
    return swapped(votes, right, seats)


def swapped(votes: NDArray[np.int64], right: Floats, seats: list[int]) -> tuple[int, ...]:
    """Exchanges one seat at a time while that helps."""
    n = votes.shape[1]
    best = float(plurality_accuracy(votes, right, masks([seats], n))[0])
    while True:
        steps = [
            [*seats[:i], other, *seats[i + 1 :]] for i in range(len(seats)) for other in range(n) if other not in seats
        ]
        accuracy = plurality_accuracy(votes, right, masks(steps, n))
        if np.nanmax(accuracy) <= best + 1e-12:
            return tuple(sorted(seats))
        seats, best = steps[int(np.nanargmax(accuracy))], float(np.nanmax(accuracy))


Chooser = Callable[[Pool, NDArray[np.int64]], tuple[int, ...]]


def best_single(found: Pool, rows: NDArray[np.int64]) -> tuple[int, ...]:
    return (int(np.nanargmax(np.nanmean(found.right_Q_A[rows], axis=0))),)


def top(size: int, found: Pool, rows: NDArray[np.int64]) -> tuple[int, ...]:
    """The models that are best alone."""
    return tuple(sorted(np.argsort(-np.nanmean(found.right_Q_A[rows], axis=0), kind="stable")[:size].tolist()))


def everybody(found: Pool, rows: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(range(len(found.names)))


def halves(found: Pool, seed: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(chosen on, tested on), both ways round."""
    n = len(found.panel.items)
    half = first_by_hash([item.question_id for item in found.panel.items], n // 2, seed)
    other = np.setdiff1d(np.arange(n), half)
    return [(half, other), (other, half)]


def held_out(found: Pool, choose: Chooser, seed: int) -> Floats:
    """(2, questions) credit of what was chosen on the half that a question is not in: ties shared, ties to the best."""
    credit = np.empty((2, len(found.panel.items)))
    for chosen_on, tested_on in halves(found, seed):
        alone = np.nanmean(found.right_Q_A[chosen_on], axis=0)
        seats = sorted(choose(found, chosen_on), key=lambda seat: -alone[seat])
        votes, right = found.codes_Q_A[tested_on][:, seats], found.right_Q_A[tested_on][:, seats]
        for row, tie in zip(credit, ("fractional", "first"), strict=True):
            row[tested_on] = plurality_credit(votes, right, np.ones((1, len(seats)), np.bool_), tie)[0]
    return credit


def weighted_all(found: Pool, many: bool, seed: int) -> Floats:
    """(2, questions) credit of all models, each weighted by the log odds of its accuracy on the other half."""
    out = np.empty(len(found.panel.items))
    for chosen_on, tested_on in halves(found, seed):
        share = np.clip(np.nanmean(found.right_Q_A[chosen_on], axis=0), 0.01, 0.99)
        out[tested_on] = [weighted_vote(found, q, share / (1 - share), many) for q in tested_on]
    return np.array([out, out])


def weighted_vote(found: Pool, q: int, odds_A: Floats, many: bool) -> float:
    """Weights log odds, at least 0; with `many` log (odds × (K − 1)), where wrong votes spread over K − 1 answers."""
    votes, right = found.codes_Q_A[q], np.nan_to_num(found.right_Q_A[q])
    weight_A = np.maximum(np.log(odds_A * (max(1, votes.max()) if many else 1)), 0.0)
    sums = [weight_A[votes == code].sum() for code in range(votes.max() + 1)]
    return float(right[votes == int(np.argmax(sums))].max()) if sums else 0.0


def contest(found: Pool, size: int | str, choose: Chooser) -> dict[str, Any]:
    """A council against the best model, both chosen on one half and tested on the other, both ways round."""
    gaps = [pair(held_out(found, choose, seed), held_out(found, best_single, seed)) for seed in range(SEEDS)]
    return row_of(size, gaps, spoke(found))


def pair(council: Floats, single: Floats) -> tuple[Floats, Floats]:
    """Both; NaN on the questions that either failed."""
    failed = np.isnan(council[0]) | np.isnan(single[0])
    return np.where(failed, np.nan, council), np.where(failed, np.nan, single)


def spoke(found: Pool) -> Bools:
    """(questions,): whether the recorded output of the best model, chosen on the other half, holds any text."""
    out = np.zeros(len(found.panel.items), dtype=np.bool_)
    for chosen_on, tested_on in halves(found, 0):
        (best,) = best_single(found, chosen_on)
        words = [found.panel.items[q].words[0][best] for q in tested_on]
        out[tested_on] = [word is not None and bool(word.text.strip()) for word in words]
    return out


def row_of(size: int | str, gaps: Sequence[tuple[Floats, Floats]], spoke_Q: Bools) -> dict[str, Any]:
    council, single = gaps[0]
    answered = ~np.isnan(single[0])
    both = council[:, answered], single[:, answered]
    test = stats.mcnemar(both[0][1].tolist(), both[1][1].tolist())
    others = [float(np.nanmean(c[0] - s[0])) for c, s in gaps]
    said = answered & spoke_Q
    return {
        "council": size, "n": int(answered.sum()), "council_accuracy": float(both[0][0].mean()),
        "single_accuracy": float(both[1][0].mean()),
        "difference": triple(stats.paired_bootstrap(both[0][0].tolist(), both[1][0].tolist())),
        "mcnemar": (test.only_first, test.only_second, test.p), "splits": (min(others), max(others)),
        "n_said": int(said.sum()),
        "difference_said": triple(stats.paired_bootstrap(council[0][said].tolist(), single[0][said].tolist())),
    }  # fmt: skip


def contests(found: Pool) -> list[dict[str, Any]]:
    rows = [contest(found, f"best {size} together", partial(choose_council, size)) for size in CHOSEN]
    rows += [contest(found, f"{size} best alone", partial(top, size)) for size in CHOSEN]
    rows.append(contest(found, f"all {len(found.names)}", everybody))
    for label, many in (("log odds", False), ("log odds of K answers", True)):
        gaps = [pair(weighted_all(found, many, seed), held_out(found, best_single, seed)) for seed in range(SEEDS)]
        rows.append(row_of(f"all {len(found.names)}, weighted by {label}", gaps, spoke(found)))
    return rows


def choose_council(size: int, found: Pool, rows: NDArray[np.int64]) -> tuple[int, ...]:
    return best_council(found, rows, size)


# --- other tables ----------------------------------------------------------------------------------------------------


def facts(found: Pool) -> dict[str, Any]:
    alone = np.nanmean(found.right_Q_A, axis=0)
    wrong, correlation = oracle(found.right_Q_A), mean_error_correlation(found.right_Q_A)
    assert wrong is not None
    best = int(np.argmax(alone))
    return {
        "pool": found.panel.name, "n": len(found.panel.items), "members": len(found.names),
        "missing": found.panel.omitted["missing outputs"], "mean": float(alone.mean()),
        "best": (found.names[best], float(alone[best])), "worst": float(alone.min()),
        "majority": float(np.nanmean(found.credit(np.ones((1, len(found.names)), bool))[0])),
        "oracle": wrong.oracle, "beta": (wrong.beta, wrong.low, wrong.high),
        "error_correlation": None if correlation is None else (correlation.value, correlation.low, correlation.high),
    }  # fmt: skip


def growth(found: Pool, samples: Sequence[Sample], seed: int) -> list[dict[str, Any]]:
    """Mean accuracy of random councils of each size, with intervals over questions."""
    n = len(found.names)
    draws = weights(len(found.panel.items), 1000, seed)
    credits = {1: found.credit(np.eye(n, dtype=np.bool_))}
    credits |= {sample.size: sample.credit_M_Q for sample in samples}
    credits[n] = found.credit(np.ones((1, n), bool))
    return [{"size": size, "accuracy": interval(weighted_means(credit, draws).mean(axis=1))}
            for size, credit in sorted(credits.items())]  # fmt: skip


def families(found: Pool) -> list[dict[str, Any]]:
    """GSM8K: four prompt styles of one model against four models in one style, by their gain over their own mean."""
    split = [name.rpartition("_") for name in found.names]
    models, styles = sorted({model for model, _, _ in split}), sorted({style for _, _, style in split})
    place = {(model, style): i for i, (model, _, style) in enumerate(split)}
    same = [[place[model, style] for style in styles] for model in models]
    other = [[place[model, style] for model in some] for some in itertools.combinations(models, 4) for style in styles]
    two = [[place[model, style] for model in some] for some in itertools.combinations(models, 2) for style in styles]
    named = (("4 prompt styles of one model", same), ("4 models, one style", other), ("2 models, one style", two))
    return [{"councils": name, **gain(found, chosen)} for name, chosen in named]


def gain(found: Pool, chosen: Sequence[Sequence[int]]) -> dict[str, Any]:
    members = masks(chosen, len(found.names))
    draws = weights(len(found.panel.items), 1000, 0)
    council_B_M = weighted_means(found.credit(members), draws)
    alone_B_A = weighted_means(found.right_Q_A.T, draws)
    mean_B_M = (alone_B_A @ members.T) / members.sum(axis=1)
    best_B_M = np.stack([alone_B_A[:, sits].max(axis=1) for sits in members], axis=1)
    return {
        "n": len(chosen), "accuracy": interval(council_B_M.mean(axis=1)),
        "over mean member": interval((council_B_M - mean_B_M).mean(axis=1)),
        "over best member": interval((council_B_M - best_B_M).mean(axis=1)),
    }  # fmt: skip


def samples_of_one(folder: Path, cache: Path) -> dict[str, Any]:
    """Eight samples of one model: maj@k and pass@k over all subsets of k, and best-of-8 by the recorded reward."""
    found = pool(folder, cache)
    n = len(found.names)
    rows = lines(folder / "outputs.jsonl.gz")
    scores = {(row["question_id"], row["sample"]): row["recorded_rm_score"] for row in rows}
    credit, curve = {}, []
    for k in range(1, n + 1):
        members = masks(list(itertools.combinations(range(n), k)), n)
        credit[k] = found.credit(members).mean(axis=0)
        any_right = np.stack([found.right_Q_A[:, sits].max(axis=1) for sits in members]).mean()
        curve.append({"k": k, "maj@k": wilson(credit[k]), "pass@k": float(any_right)})
    picked = [max(range(n), key=lambda s: scores[item.question_id, s]) for item in found.panel.items]
    best_of = found.right_Q_A[np.arange(len(picked)), picked]
    return {
        "n": len(found.panel.items), "curve": curve, "best of 8 by reward": wilson(best_of),
        "maj@8 - one sample": triple(stats.paired_bootstrap(credit[n].tolist(), credit[1].tolist())),
        "maj@4 - one sample": triple(stats.paired_bootstrap(credit[4].tolist(), credit[1].tolist())),
        "best of 8 - maj@8": triple(stats.paired_bootstrap(best_of.tolist(), credit[n].tolist())),
    }  # fmt: skip


def wilson(credit: Floats) -> tuple[float, float, float]:
    return (float(credit.mean()), *stats.wilson(float(credit.sum()), len(credit)))


def triple(found: Estimate) -> tuple[float, float, float]:
    return found.value, found.low, found.high


# --- a pool from start to end ----------------------------------------------------------------------------------------


def measure(folder: Path, cache: Path, count: int, embedders: Sequence[str], seed: int) -> dict[str, Any]:
    found = pool(folder, cache)
    rows = first_by_hash([item.question_id for item in found.panel.items], POOLS[folder.name], seed)
    with Store.open(cache) as store:
        texts = {name: embedded(found, rows, open_embedder(name, cache=store.vectors, progress=told(name)))
                 for name in embedders}  # fmt: skip
    samples = []
    for size in SIZES:
        members = councils(len(found.names), size, count, seed)
        kstar = {name: council_kstar(*texts[name], members) for name in embedders}
        samples.append(Sample(size, members, found.credit(members), kstar))
    return {
        "facts": facts(found), "contests": contests(found), "growth": growth(found, samples, seed),
        "diversity": diversity(found, samples, rows, seed), "embedded questions": len(rows),
        "families": families(found) if folder.name == "gsm8k_24runs" else [],
    }  # fmt: skip


def told(name: str) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        print(f"\r{name}: {done:,} of {total:,} texts", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return tell


# --- printing --------------------------------------------------------------------------------------------------------


def points(three: Sequence[float]) -> str:
    value, low, high = (f"{100 * x:+.1f}".replace("-", "−") for x in three)
    return f"{value} [{low}, {high}]"


def share(three: Sequence[float], digits: int = 3) -> str:
    value, low, high = (f"{x:.{digits}f}".replace("-", "−") for x in three)
    return f"{value} [{low}, {high}]"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def show(found: dict[str, Any]) -> None:
    told = found["facts"]
    best, accuracy = told["best"]
    print(f"## {told['pool']}: {told['n']:,} questions, {told['members']} members, {told['missing']} outputs missing")
    print(f"\nAlone: mean {told['mean']:.3f}, worst {told['worst']:.3f}, best {accuracy:.3f} ({best}). Majority of all "
          f"{told['majority']:.3f}. Any right {told['oracle']:.3f}; all wrong {share(told['beta'], 4)}. "
          f"Mean error correlation {share(told['error_correlation'])}.")  # fmt: skip
    # an empty output is a wrong answer to the source, and any second voice makes up for it
    heads = ("council, chosen on the other half", "n", "council", "best model", "difference, points",
             "only council, only model right; McNemar p", f"{SEEDS} splits",
             "where the model's output is not empty")  # fmt: skip
    table(heads, [contest_row(row) for row in found["contests"]])
    table(("random councils of", *(str(row["size"]) for row in found["growth"])),
          [("mean accuracy", *(share(row["accuracy"]) for row in found["growth"]))])  # fmt: skip
    rows = [head for head in found["diversity"][0] if head not in ("size", "councils")]
    print(f"Rank correlations over random councils; K* is the mean over {found['embedded questions']} questions.")
    table(("", *(f"{row['size']} ({row['councils']:,})" for row in found["diversity"])),
          [(head, *(rank_cell(row.get(head, ())) for row in found["diversity"])) for head in rows])  # fmt: skip
    if found["families"]:
        table(("councils", "how many", "accuracy", "over mean member, points", "over best member, points"),
              [(row["councils"], str(row["n"]), share(row["accuracy"]), points(row["over mean member"]),
                points(row["over best member"])) for row in found["families"]])  # fmt: skip


def contest_row(row: dict[str, Any]) -> list[str]:
    first, second, p = row["mcnemar"]
    low, high = (f"{100 * x:+.1f}".replace("-", "−") for x in row["splits"])
    said = f"{points(row['difference_said'])}, n = {row['n_said']:,}"
    return [str(row["council"]), f"{row['n']:,}", f"{row['council_accuracy']:.3f}", f"{row['single_accuracy']:.3f}",
            points(row["difference"]), f"{first}, {second}; {p:.2g}", f"{low} … {high}", said]  # fmt: skip


def rank_cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return share(values, 2) if len(values) == 3 else " … ".join(f"{x:.2f}".replace("-", "−") for x in values)


def show_samples(found: dict[str, Any]) -> None:
    print(f"## math100_8samples: {found['n']} questions, 8 samples of one model")
    table(("k", *(str(row["k"]) for row in found["curve"])),
          [("maj@k", *(share(row["maj@k"], 2) for row in found["curve"])),
           ("pass@k", *(f"{row['pass@k']:.3f}" for row in found["curve"]))])  # fmt: skip
    print(f"maj@4 − one sample {points(found['maj@4 - one sample'])}; maj@8 − one sample "
          f"{points(found['maj@8 - one sample'])}; best of 8 by reward {share(found['best of 8 by reward'], 2)}, "
          f"minus maj@8 {points(found['best of 8 - maj@8'])} points.\n")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=RECORDED, help="folder that holds recorded/")
    parser.add_argument("--cache", type=Path, help="where readings and vectors are kept; else nowhere")
    parser.add_argument("--only", default="", help="part of a pool's name")
    parser.add_argument("--councils", type=int, default=1000, help="random councils of each size, at most")
    parser.add_argument("--embedders", default="minilm,hashing", help="with commas between")
    parser.add_argument("--quick", action="store_true", help="hashing alone and 200 councils of each size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write all numbers to this file")
    flags = parser.parse_args()
    recorded = flags.data / "recorded"
    if not recorded.is_dir():
        print(f"skipped: no recorded outputs in {recorded}")
        return 0
    return run(flags, recorded)


def run(flags: argparse.Namespace, recorded: Path) -> int:
    count, names = (200, ["hashing"]) if flags.quick else (flags.councils, flags.embedders.split(","))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        cache = flags.cache or Path(scratch)
        cache.mkdir(parents=True, exist_ok=True)
        for pool_name in (name for name in POOLS if flags.only in name):
            started = time.perf_counter()
            found[pool_name] = measure(recorded / pool_name, cache, count, names, flags.seed)
            show(found[pool_name])
            print(f"{time.perf_counter() - started:.0f} s\n", flush=True)
        if flags.only in "math100_8samples":
            found["math100_8samples"] = samples_of_one(recorded / "math100_8samples", cache)
            show_samples(found["math100_8samples"])
    if flags.json:
        flags.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
