"""What is a council of judges worth as a reward? On recorded judges of pairs with people's verdicts, and on recorded
samples with a reward model's scores.

    python benchmarks/judges_recorded.py [--data FOLDER] [--cache FOLDER] [--only PART] [--seeds N]
    python benchmarks/judges_recorded.py --zoo HOME --run RUN --judges FILE…

Reads `../shared/data` beside the checkout and does nothing where it is absent; nothing is asked of a model. The pairs
are LLMBar's, natural and adversarial, judged by six models with eight prompts or more, and pairs of MT-Bench, FairEval
and LLMEval², judged by four of the models with two prompts (Zeng et al. 2023, arXiv 2310.07641). A judge that compares
gives a reply the share of the two orders it wins; one that rates, its rating. Scores are put on the common scale per
pool, rewards and disagreement are `pluribus.consensus.rewards`'. A pair is right where the better reply has the higher
reward, half right where the rewards are equal. Learned weights are tested on the half of the pairs they did not see,
both ways round, mean over the seeds. Roles are given in the order of STRENGTH, the models' standing at the time.
Intervals are 95 %: Wilson's of a share, else by resampling pairs (questions for the samples); bold is Holm's p below
0.05 over a whole column. Of --zoo a workspace's run is judged by each council and measured; what was judged before
costs no call. Prints Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from _judges_measure import (
    Found,
    Ranged,
    alone,
    area_gain,
    auroc,
    by_best,
    by_labels,
    crossed,
    curve,
    found,
    kept_at,
    mean_credit,
    normalised,
    taught,
    threshold_for,
)
from _judges_pairs import LLMBAR, Bools, Floats, Ints, Pairs, llmbar
from _judges_samples import FOLDER as SAMPLES
from _judges_samples import Samples, best_of, by_question, contest_credit, doubt_of_best, math100, values
from _judges_zoo import (
    Judged,
    clustered_auroc,
    contest,
    contests,
    formed_pairs,
    judged,
    normalised_by,
    reweighed,
    separates,
)
from pluribus import stats
from pluribus.consensus.rewards import (
    NORMALISE,
    Normalise,
    fit_scale,
    krippendorff_alpha,
    leave_one_out,
    pair_votes,
    permutation_null,
)
from pluribus.judge_config import ROLE_WEIGHTS, THRESHOLD

DATA = Path(__file__).parents[2] / "shared" / "data"
STRENGTH = ("GPT-4", "ChatGPT", "PaLM2", "LLaMA2", "ChatGPT-0301", "Falcon")
PROMPTS = {"plain": "Vanilla_NoRules", "metrics and reference": "Metrics_Reference"}
"""The two prompts that every pool has."""
ROLES = tuple(ROLE_WEIGHTS.values())
COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
KEEP = 0.8
SHARE_OF_CHANCE = 0.6
LEAST_MARGIN = 0.2
"""On the zscore scale; below it no two of three judges that compare decide the same way."""


@dataclass(frozen=True, slots=True)
class Council:
    name: str
    judges: tuple[str, ...]
    """`judge|prompt`, strongest first."""


@dataclass(frozen=True, slots=True)
class Bench:
    pairs: Pairs
    council: Council
    prompt: str

    @property
    def scores_J_N(self) -> Floats:
        return self.pairs.scores_J_N(self.council.judges)

    @property
    def head(self) -> list[str]:
        return [f"{self.pairs.name}, {self.pairs.n}", self.prompt, self.council.name]

    def scaled(self, how: Normalise = "zscore") -> Floats:
        return normalised(self.scores_J_N, how)

    def uniform(self, how: Normalise = "zscore") -> Found:
        return found(self.pairs, self.scaled(how), [1.0] * len(self.council.judges))

    def roles(self, how: Normalise = "zscore") -> Found | None:
        return found(self.pairs, self.scaled(how), ROLES) if len(self.council.judges) == len(ROLES) else None


def councils(pairs: Pairs, prompt: str) -> Iterator[Council]:
    """Every three of the four judges that all pools have, and all judges; where there are more, also three weak ones,
    one model under three prompts, and raters."""
    there = [name for name in STRENGTH if f"{name}|{PROMPTS[prompt]}" in pairs.asked]
    chosen = [*itertools.combinations(there[:4], 3), tuple(there[:4])]
    chosen += [("ChatGPT", "LLaMA2", "Falcon"), tuple(there)] if len(there) > 4 else []
    for names in chosen:
        title = ", ".join(names) if len(names) < 4 else f"all {len(names)}"
        yield Council(title, tuple(f"{name}|{PROMPTS[prompt]}" for name in names))
    if len(there) > 4 and prompt == "plain":
        same = ("Vanilla", "CoT", "Metrics_Reference")
        yield Council("GPT-4 under three prompts", tuple(f"GPT-4|{one}" for one in same))
        yield Council("two raters and PaLM2", ("GPT-4|Rating", "ChatGPT|Rating", "PaLM2|Vanilla"))


def benches(pools: Mapping[str, Pairs]) -> Iterator[Bench]:
    for pairs in pools.values():
        for prompt in PROMPTS:
            yield from (Bench(pairs, council, prompt) for council in councils(pairs, prompt))


# --- printing --------------------------------------------------------------------------------------------------------


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"### {title}\n\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    print("\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n", flush=True)


def ranged(told: Ranged, digits: int = 2, sign: str = "") -> str:
    if np.isnan(told.value):
        return "–"
    value, low, high = (f"{x:{sign}.{digits}f}".replace("-", "−") for x in told)
    return f"{value} [{low}, {high}]"


def share(credit_P: Floats) -> str:
    low, high = stats.wilson(float(credit_P.sum()), len(credit_P))
    return ranged(Ranged(float(credit_P.mean()), low, high), 3)


def points(told: stats.Estimate) -> str:
    return ranged(Ranged(100 * told.value, 100 * told.low, 100 * told.high), 1, "+")


def over(first_P: Floats, second_P: Floats) -> stats.Estimate:
    return stats.paired_difference(first_P.tolist(), second_P.tolist())


def starred(told: Sequence[stats.Estimate]) -> list[str]:
    """Points, in bold where Holm's p over the whole column is below 0.05."""
    adjusted = stats.holm([one.p for one in told])
    return [f"**{points(one)}**" if p < 0.05 else points(one) for one, p in zip(told, adjusted, strict=True)]


# --- 1: how right ----------------------------------------------------------------------------------------------------


def judges_alone(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Each judge alone, by set."""
    whole = pools["all"]
    rows = []
    for prompt, name in itertools.product(PROMPTS, STRENGTH):
        judge, cells = f"{name}|{PROMPTS[prompt]}", []
        for some in sets_of(pools):
            cells.append(share(alone(some, some.scores_N(judge))) if judge in some.asked else "–")
        rows.append([prompt, name, *cells])
    heads = [f"{some.name}, {some.n}" for some in sets_of(pools)]
    table(f"Each judge alone ({whole.n} pairs)", ["prompt", "judge", *heads], rows)


def sets_of(pools: Mapping[str, Pairs]) -> list[Pairs]:
    """Each set as a pool of its own."""
    return [pairs.only(name) for key in ("natural", "adversarial", "chats") if (pairs := pools[key])
            for name in dict.fromkeys(pairs.set_P.tolist())]  # fmt: skip


def agreement(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Council against its members, by weights."""
    rows, gains = [], []
    for bench in benches(pools):
        one = Weighed.of(bench, seeds)
        cells = [f"{x:.3f}" if x is not None else "–" for x in one.accuracies()]
        rows.append([*bench.head, *cells])
        gains.append(one.gains())
    columns = [starred(column) for column in zip(*gains, strict=True)]
    rows = [[*row, *cells] for row, *cells in zip(rows, *columns, strict=True)]
    heads = ["best alone", "median", "worst", "equal weights", "roles", "roles, mean of all orders", "labels",
             "no labels", "equal − best, points", "roles − best", "labels − best", "no labels − equal"]  # fmt: skip
    table("Councils and their members, zscore", ["pool", "prompt", "council", *heads], rows)


def by_set(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Each set as a run of its own: the council against the judge that was named its teacher."""
    rows, gains = [], []
    for pairs, prompt in itertools.product(sets_of(pools), PROMPTS):
        for council in itertools.islice(councils(pairs, prompt), 4):
            bench = Bench(pairs, council, prompt)
            teacher, equal, roles = alone(pairs, bench.scores_J_N[0]), bench.uniform(), bench.roles() or bench.uniform()
            labels = by_labels(pairs, bench.scores_J_N, "zscore")
            learned = mean_credit([crossed(pairs, seed, labels) for seed in range(seeds)])
            cells = [f"{x.mean():.3f}" for x in (teacher, equal.credit_P, roles.credit_P, learned)]
            rows.append([*bench.head, *cells])
            gains.append([over(x, teacher) for x in (equal.credit_P, roles.credit_P, learned)])
    columns = [starred(column) for column in zip(*gains, strict=True)]
    rows = [[*row, *cells] for row, *cells in zip(rows, *columns, strict=True)]
    heads = ["teacher alone", "equal", "roles", "labels", "equal − teacher, points", "roles − teacher",
             "labels − teacher"]  # fmt: skip
    table("Set by set, zscore", ["set", "prompt", "council, teacher first", *heads], rows)


@dataclass(frozen=True, slots=True)
class Weighed:
    members_J_P: Floats
    best_P: Floats
    equal_P: Floats
    roles_P: Floats | None
    orders: tuple[float, ...]
    labels_P: Floats
    blind_P: Floats

    @classmethod
    def of(cls, bench: Bench, seeds: int, how: Normalise = "zscore") -> Weighed:
        pairs, scores, scaled, roles = bench.pairs, bench.scores_J_N, bench.scaled(how), bench.roles(how)
        best, labels = by_best(pairs, scores), by_labels(pairs, scores, how)
        blind = taught(pair_votes(scores, pairs.pairs_P_2), None)
        orders = itertools.permutations(ROLES) if roles else ()
        return cls(
            np.stack([alone(pairs, scores_N) for scores_N in scores]),
            mean_credit([crossed(pairs, seed, best) for seed in range(seeds)]),
            bench.uniform(how).credit_P,
            roles.credit_P if roles else None,
            tuple(found(pairs, scaled, weights).accuracy for weights in orders),
            mean_credit([crossed(pairs, seed, labels) for seed in range(seeds)]),
            found(pairs, scaled, blind).credit_P,
        )

    def accuracies(self) -> list[float | None]:
        members = self.members_J_P.mean(axis=1)
        roles = float(self.roles_P.mean()) if self.roles_P is not None else None
        mean = float(np.mean(self.orders)) if self.orders else None
        return [float(self.best_P.mean()), median(members), float(members.min()), float(self.equal_P.mean()), roles,
                mean, float(self.labels_P.mean()), float(self.blind_P.mean())]  # fmt: skip

    def gains(self) -> list[stats.Estimate]:
        roles = self.equal_P if self.roles_P is None else self.roles_P
        return [over(self.equal_P, self.best_P), over(roles, self.best_P), over(self.labels_P, self.best_P),
                over(self.blind_P, self.equal_P)]  # fmt: skip


def scales(pools: Mapping[str, Pairs], seeds: int) -> None:
    """What normalisation does to the accuracy, equal weights."""
    rows, gains = [], []
    for bench in benches(pools):
        told = {how: bench.uniform(how) for how in NORMALISE if how != "none" or comparable(bench)}
        rows.append([*bench.head, *(f"{told[how].accuracy:.3f}" if how in told else "–" for how in NORMALISE)])
        gains.append(over(told["zscore"].credit_P, told["minmax"].credit_P))
    rows = [[*row, cell] for row, cell in zip(rows, starred(gains), strict=True)]
    table("Accuracy by normalisation, equal weights",
          ["pool", "prompt", "council", *NORMALISE, "zscore − minmax, points"], rows)  # fmt: skip


def comparable(bench: Bench) -> bool:
    """Whether the scores lie in [0, 1] as they are."""
    return not set(bench.council.judges) & set(bench.pairs.rated)


def every_three(pools: Mapping[str, Pairs], seeds: int) -> None:
    """All councils of three judges that there are, not only the named ones."""
    rows = []
    for pairs, prompt in itertools.product((pools[name] for name in pools), PROMPTS):
        there = [f"{name}|{PROMPTS[prompt]}" for name in STRENGTH if f"{name}|{PROMPTS[prompt]}" in pairs.asked]
        told = [over(bench.uniform().credit_P, by_best(pairs, bench.scores_J_N)(np.arange(pairs.n)).credit_P)
                for judges in itertools.combinations(there, 3)
                if (bench := Bench(pairs, Council("", judges), prompt))]  # fmt: skip
        ahead, behind = sum(one.low > 0 for one in told), sum(one.high < 0 for one in told)
        values = [100 * one.value for one in told]
        cells = [f"{x:+.1f}".replace("-", "−") for x in (max(values), median(values), min(values))]
        rows.append([f"{pairs.name}, {pairs.n}", prompt, str(len(told)), *cells, str(ahead), str(behind)])
    heads = ["pool", "prompt", "councils", "best, points", "median", "worst", "ahead", "behind"]
    table("Every three judges, equal weights, over their best member (chosen afterwards)", heads, rows)


def few_labels(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Weights from few labels, and from another pool."""
    rows = []
    for bench in benches({name: pools[name] for name in ("natural", "adversarial")}):
        cells = []
        for labels in (20, 50, None):
            judged = by_labels(bench.pairs, bench.scores_J_N, "zscore", labels)
            cells.append(f"{mean_credit([crossed(bench.pairs, s, judged) for s in range(seeds)]).mean():.3f}")
        other = pools["adversarial" if bench.pairs.name == "natural" else "natural"]
        said = pair_votes(other.scores_J_N(bench.council.judges), other.pairs_P_2)
        moved = found(bench.pairs, bench.scaled(), taught(said, other.gold_P))
        gain = over(moved.credit_P, bench.uniform().credit_P)
        rows.append([*bench.head, f"{bench.uniform().accuracy:.3f}", *cells, f"{moved.accuracy:.3f}", points(gain)])
    heads = ["equal", "20 labels", "50 labels", "half", "weights of the other pool", "these − equal, points"]
    table("How many labels, and do weights travel", ["pool", "prompt", "council", *heads], rows)


# --- 2: does disagreement say where it is wrong ----------------------------------------------------------------------


def formed(told: Found) -> Found:
    """Only pairs that can be trained on and filtered: unequal rewards, and verdicts of two judges or more."""
    there = ~np.isnan(told.disagreement_P) & (told.margin_P > 0)
    return Found(told.credit_P[there], told.margin_P[there], told.disagreement_P[there])


def filters(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Area under the ROC curve and under risk over coverage: variance, margin, neither."""
    rows = []
    for bench in benches(pools):
        for weights, told in (("equal", bench.uniform()), ("roles", bench.roles())):
            if told is not None:
                rows.append([*bench.head, weights, *doubts(formed(told))])
    heads = ["n", "accuracy", "AUROC of variance", "AUROC of −margin", "variance over −margin", "area: variance",
             "area: margin", "area: random order", "area: variance − margin"]  # fmt: skip
    table("Does it say where it is wrong, zscore", ["pool", "prompt", "council", "weights", *heads], rows)


def doubts(told: Found) -> list[str]:
    variance, narrow = told.disagreement_P, 1 - told.margin_P
    by_variance, by_margin = auroc(variance, told.credit_P), auroc(narrow, told.credit_P)
    gain = auroc(variance, told.credit_P, narrow)
    areas = [curve(doubt, told.credit_P).area for doubt in (variance, narrow)]
    return [str(len(variance)), f"{told.accuracy:.3f}", ranged(by_variance), ranged(by_margin),
            ranged(gain, 2, "+"), *(f"{area:.3f}" for area in (*areas, 1 - told.accuracy)),
            ranged(area_gain(variance, narrow, told.credit_P), 3, "+")]  # fmt: skip


def coverages(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Accuracy of the part that is kept, by the variance and by the margin."""
    rows = []
    for bench in benches(pools):
        told = formed(bench.uniform())
        for name, doubt in (("variance", told.disagreement_P), ("−margin", 1 - told.margin_P)):
            risk = curve(doubt, told.credit_P)
            cells = [kept_cell(kept_at(risk, part), part * len(doubt)) for part in COVERAGES]
            rows.append([*bench.head, name, *cells])
    heads = [f"{100 * part:.0f} %" for part in COVERAGES]
    table("Accuracy of what is kept, equal weights, zscore", ["pool", "prompt", "council", "by", *heads], rows)


def kept_cell(accuracy: float, n: float) -> str:
    kept = max(1, round(n))
    low, high = stats.wilson(min(accuracy, 1.0) * kept, kept)
    return f"{accuracy:.2f} [{low:.2f}, {high:.2f}]"


def undecided(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Pairs on which the judges agree to say nothing: no variance and no margin."""
    rows = []
    for bench in benches(pools):
        told = bench.uniform("minmax")
        calm, even = told.disagreement_P == 0, told.margin_P == 0
        cells = [f"{100 * x.mean():.1f} %" for x in (calm, calm & even, even)]
        sure = told.credit_P[calm & ~even]
        rows.append([*bench.head, *cells, share(sure) if len(sure) else "–"])
    heads = ["no variance", "no variance and no margin", "no margin", "accuracy without variance, with margin"]
    table("Where the judges agree to say nothing (minmax, equal weights)", ["pool", "prompt", "council", *heads], rows)


def thresholds(pools: Mapping[str, Pairs], seeds: int) -> None:
    """What an absolute threshold keeps on each scale, and which threshold keeps a share."""
    rows = []
    for bench in benches(pools):
        for how in NORMALISE:
            if how != "none" or comparable(bench):
                told, chance = formed(bench.uniform(how)), by_chance(bench, how)
                at, kept = threshold_for(told.disagreement_P, KEEP)
                rows.append([*bench.head, how, f"{chance:.4f}", *sides(told, THRESHOLD),
                             *sides(told, SHARE_OF_CHANCE * chance), f"{at:.4f}", f"{100 * kept:.0f} %",
                             half(told.credit_P, told.disagreement_P <= at)])  # fmt: skip
    heads = ["by chance"]
    for name in (str(THRESHOLD), f"{SHARE_OF_CHANCE} of chance"):
        heads += [f"kept at {name}", "right among them", "right among the rest"]
    heads += [f"keeps {100 * KEEP:.0f} %", "does keep", "right among these"]
    table("Thresholds, equal weights", ["pool", "prompt", "council", "normalise", *heads], rows)


def by_chance(bench: Bench, how: Normalise) -> float:
    null = permutation_null(bench.scaled(how), [1.0] * len(bench.council.judges), draws=50)
    return null.mean if null else float("nan")


def sides(told: Found, threshold: float) -> list[str]:
    keep = told.disagreement_P <= threshold
    return [f"{100 * keep.mean():.0f} %", half(told.credit_P, keep), half(told.credit_P, ~keep)]


def half(credit_P: Floats, rows: Bools) -> str:
    return share(credit_P[rows]) if rows.any() else "–"


def both_filters(pools: Mapping[str, Pairs], seeds: int) -> None:
    """At the share that the threshold keeps: by variance, by margin, and with a least margin as well."""
    rows = []
    for bench in benches(pools):
        told = formed(bench.uniform())
        calm = told.disagreement_P <= THRESHOLD
        sure = calm & (told.margin_P >= LEAST_MARGIN)
        narrow = curve(1 - told.margin_P, told.credit_P)
        variance = curve(told.disagreement_P, told.credit_P)
        cells = [f"{told.accuracy:.3f}", f"{100 * calm.mean():.0f} %", share(told.credit_P[calm]),
                 f"{kept_at(narrow, calm.mean()):.3f}", f"{100 * sure.mean():.0f} %", share(told.credit_P[sure]),
                 f"{kept_at(variance, sure.mean()):.3f}", f"{kept_at(narrow, sure.mean()):.3f}"]  # fmt: skip
        rows.append([*bench.head, *cells])
    heads = ["all", f"v ≤ {THRESHOLD}", "right", "as many by margin", f"and margin ≥ {LEAST_MARGIN}", "right",
             "as many by variance", "as many by margin"]  # fmt: skip
    table("Variance, margin, or both (zscore, equal weights)", ["pool", "prompt", "council", *heads], rows)


# --- 3: what a variance means ----------------------------------------------------------------------------------------


def variances(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Mean variance of the candidates beside that of judges who have nothing in common, and alpha."""
    rows = []
    for bench in benches(pools):
        for how in NORMALISE:
            if how == "none" and not comparable(bench):
                continue
            rows.append([*bench.head, how, *variance_cells(bench, how)])
    heads = ["variance", "by chance", "of it", "variance, roles", "by chance", "of it", "alpha"]
    table("Variance and what it would be by chance", ["pool", "prompt", "council", "normalise", *heads], rows)


def variance_cells(bench: Bench, how: Normalise) -> list[str]:
    scaled, cells = bench.scaled(how), []
    for weights, told in (([1.0] * len(scaled), bench.uniform(how)), (list(ROLES), bench.roles(how))):
        if told is None:
            cells += ["–"] * 3
            continue
        cells += chance_cells(scaled, weights, told.disagreement_P)
    return [*cells, f"{krippendorff_alpha(scaled):.2f}"]


def chance_cells(scaled_J_N: Floats, weights: Sequence[float], disagreement_N: Floats) -> list[str]:
    """Mean variance, what it would be by chance, and the one over the other."""
    null, mean = permutation_null(scaled_J_N, weights), float(np.nanmean(disagreement_N))
    if null is None:
        return ["–"] * 3
    return [f"{mean:.4f}", ranged(Ranged(null.mean, null.low, null.high), 4), f"{mean / null.mean:.2f}"]


# --- 4: order --------------------------------------------------------------------------------------------------------


def orders(pools: Mapping[str, Pairs], seeds: int) -> None:
    """How often a verdict turns with the order, and which side it falls to."""
    rows = []
    for prompt, name in itertools.product(PROMPTS, STRENGTH):
        judge = f"{name}|{PROMPTS[prompt]}"
        for pairs in (pools["natural"], pools["adversarial"], pools["chats"]):
            if judge in pairs.asked:
                rows.append([name, prompt, f"{pairs.name}, {pairs.n}", *order_cells(pairs, pairs.asked[judge])])
    heads = ["both orders read", "turns", "to the first place", "one order", "decided", "right where decided",
             "points over one order"]  # fmt: skip
    table("Order", ["judge", "prompt", "pool", *heads], rows)


def orders_by_prompt(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Share of the verdicts that turn with the order, over the natural and the adversarial pairs, every prompt."""
    asked = [pools[name].asked for name in ("natural", "adversarial")]
    prompts = sorted({judge.partition("|")[2] for judge in asked[0]})
    rows = []
    for prompt in prompts:
        judges = [f"{name}|{prompt}" for name in STRENGTH]
        rows.append([prompt, *(turning(asked, judge) if judge in asked[0] else "–" for judge in judges)])
    table("Verdicts that turn with the order, natural; adversarial", ["prompt", *STRENGTH], rows)


def turning(asked: Sequence[Mapping[str, Floats]], judge: str) -> str:
    tables = [won[~np.isnan(won).any(axis=1)] for won in (pool[judge] for pool in asked)]
    return "; ".join(f"{(won[:, 0] != won[:, 1]).mean():.2f}" for won in tables)


def order_cells(pairs: Pairs, won_P_2: Floats) -> list[str]:
    read = ~np.isnan(won_P_2).any(axis=1)
    won, first = won_P_2[read], pairs.first_P[read, None]
    right, turns = (won == first).astype(float), won[:, 0] != won[:, 1]
    front = np.stack([won[:, 0], 1 - won[:, 1]], axis=1).mean(axis=1)
    decided = ~turns
    gain = decided_gain(right, decided)
    return [str(int(read.sum())), share(turns.astype(float)), mean_cell(front), mean_cell(right.mean(axis=1)),
            f"{100 * decided.mean():.0f} %", share(right[decided, 0]), ranged(gain, 1, "+")]  # fmt: skip


def mean_cell(values_P: Floats) -> str:
    told = stats.paired_bootstrap(values_P.tolist(), [0.0] * len(values_P), resamples=2000)
    return ranged(Ranged(told.value, told.low, told.high), 3)


def decided_gain(right_P_2: Floats, decided_P: Bools) -> Ranged:
    """Points that the pairs on which both orders agree are more often right than a single order is on all."""
    rng, n = np.random.default_rng(0), len(decided_P)

    def gain(rows: Ints) -> float:
        kept = rows[decided_P[rows]]
        return 100 * float(right_P_2[kept, 0].mean() - right_P_2[rows].mean())

    low, high = np.quantile([gain(rng.integers(n, size=n)) for _ in range(2000)], [0.025, 0.975])
    return Ranged(gain(np.arange(n)), float(low), float(high))


def one_order(pools: Mapping[str, Pairs], seeds: int) -> None:
    """A council whose judges see one order each, over all ways to give them one, and both orders."""
    rows, gains = [], []
    for bench in benches(pools):
        if comparable(bench):
            once, both = ways(bench), bench.uniform("minmax")
            gains.append(over(both.credit_P, mean_credit(once)))
            doubts_once = [auroc(one.disagreement_P, one.credit_P).value for one in map(formed, once[:8])]
            doubt = auroc(formed(both).disagreement_P, formed(both).credit_P)
            accuracy = [f"{mean_credit(once).mean():.3f}", f"{both.accuracy:.3f}"]
            rows.append([*bench.head, *accuracy, f"{np.mean(doubts_once):.2f}", ranged(doubt)])
    rows = [[*row[:5], cell, *row[5:]] for row, cell in zip(rows, starred(gains), strict=True)]
    heads = ["one order each", "both orders", "gain, points", "AUROC of variance, one order", "both orders"]
    table("One order or both, equal weights, minmax", ["pool", "prompt", "council", *heads], rows)


def ways(bench: Bench) -> list[Found]:
    """The council under every way to show each judge one of the orders."""
    return [single(bench, way) for way in itertools.product((0, 1), repeat=len(bench.council.judges))]


def single(bench: Bench, way: Sequence[int]) -> Found:
    scores = np.stack([bench.pairs.scores_N(judge, (order,))
                       for judge, order in zip(bench.council.judges, way, strict=True)])  # fmt: skip
    return found(bench.pairs, normalised(scores, "minmax"), [1.0] * len(scores))


def equal_calls(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Six judges with one order each against three with both: six calls a pair."""
    rows = []
    for pairs, prompt in itertools.product((pools["natural"], pools["adversarial"]), PROMPTS):
        judges = tuple(f"{name}|{PROMPTS[prompt]}" for name in STRENGTH)
        six = mean_credit(ways(Bench(pairs, Council("", judges), prompt)))
        threes = [Bench(pairs, Council("", some), prompt) for some in itertools.combinations(judges, 3)]
        three = mean_credit([bench.uniform("minmax") for bench in threes])
        rows.append([f"{pairs.name}, {pairs.n}", prompt, f"{six.mean():.3f}", f"{three.mean():.3f}",
                     points(over(three, six))])  # fmt: skip
    heads = ["six judges, one order each", "three judges, both orders", "points"]
    table("Six calls a pair (mean over all councils and orders)", ["pool", "prompt", *heads], rows)


# --- 5: standing -----------------------------------------------------------------------------------------------------


def standings(pools: Mapping[str, Pairs], seeds: int) -> None:
    """What is seen of a judge without labels, beside how right it is."""
    rows = []
    for pairs, prompt in itertools.product((pools["natural"], pools["adversarial"], pools["chats"]), PROMPTS):
        judges = [f"{name}|{PROMPTS[prompt]}" for name in STRENGTH if f"{name}|{PROMPTS[prompt]}" in pairs.asked]
        scaled = normalised(pairs.scores_J_N(judges), "zscore")
        blind = taught(pair_votes(pairs.scores_J_N(judges), pairs.pairs_P_2), None)
        for judge, told, weight in zip(judges, leave_one_out(scaled, [1.0] * len(judges)), blind, strict=True):
            right = share(alone(pairs, pairs.scores_N(judge)))
            rows.append([f"{pairs.name}, {pairs.n}", prompt, judge.partition("|")[0], right, f"{told.spread:.2f}",
                         f"{told.correlation:.2f}", f"{told.rank_correlation:.2f}", f"{weight:.2f}"])  # fmt: skip
    heads = ["right", "spread", "correlation with the others", "rank correlation", "weight from agreement"]
    table("Standing without labels, zscore, equal weights", ["pool", "prompt", "judge", *heads], rows)


def finds(pools: Mapping[str, Pairs], seeds: int) -> None:
    """Rank correlation of standing and accuracy over all judges of a pool, by resampling pairs."""
    rows = []
    for some in [*(pools[name] for name in ("natural", "adversarial", "chats")), *sets_of(pools)]:
        for prompt in (*PROMPTS, "all judges and prompts"):
            judges = [j for j in some.asked if prompt not in PROMPTS or j.endswith("|" + PROMPTS[prompt])]
            if len(judges) > 3:
                rows.append([f"{some.name}, {some.n}", prompt, str(len(judges)), *find_cells(some, judges)])
    heads = ["judges", "rank correlation of standing and accuracy", "mean accuracy", "errors' mean correlation"]
    table("Does the standing find the bad judges", ["pool", "prompt", *heads], rows)


def find_cells(pairs: Pairs, judges: Sequence[str]) -> list[str]:
    scores = pairs.scores_J_N(judges)
    credits = np.stack([alone(pairs, scores_N) for scores_N in scores])

    def measure(rows: Ints) -> float:
        some = scores.reshape(len(judges), -1, 2)[:, rows].reshape(len(judges), -1)
        told = leave_one_out(normalised(some, "zscore"), [1.0] * len(judges))
        return rank_correlation([one.correlation for one in told], credits[:, rows].mean(axis=1).tolist())

    rng = np.random.default_rng(0)
    low, high = np.nanquantile([measure(rng.integers(pairs.n, size=pairs.n)) for _ in range(200)], [0.025, 0.975])
    together = np.atleast_2d(np.corrcoef(credits))[np.triu_indices(len(judges), 1)].mean()
    value = Ranged(measure(np.arange(pairs.n)), float(low), float(high))
    return [ranged(value, 2, "+"), f"{credits.mean():.3f}", f"{together:.2f}"]


def rank_correlation(first: Sequence[float | None], second: Sequence[float | None]) -> float:
    values = np.array([first, second], dtype=np.float64)
    values = values[:, ~np.isnan(values).any(axis=0)]
    ranks = [np.array([(row < x).sum() + (row == x).sum() / 2 for x in row]) for row in values]
    return float(np.corrcoef(ranks)[0, 1])


# --- 6: samples of one model -----------------------------------------------------------------------------------------


def samples_of_mathematics(data: Path, cache: Path) -> None:
    """Eight samples a question under a reward model, the votes, and both."""
    samples = math100(data, cache)
    plain = samples.right_N.reshape(-1, samples.k).mean(axis=1)
    rows, alone_Q = [], {}
    for name, how, weights in PAIRED:
        value_N, doubt_N = values(samples, how, weights)
        best_Q, ahead_P = best_of(samples, value_N), contest_credit(samples, value_N)
        alone_Q[name] = best_Q
        doubt_Q = doubt_of_best(samples, value_N, doubt_N)
        cells = [ranged(auroc(doubt_Q, best_Q))] if all(weights) else ["–"]
        gains = [points(over(best_Q, plain)), points(over(best_Q, alone_Q["reward model"]))]
        right = [share(best_Q), ranged(by_question(samples, ahead_P), 3)]
        rows.append([name, how, *right, *gains, *cells, *null_cells(samples, how, weights)])
    heads = ["best of 8", "right over wrong", "best of 8 over a random sample, points", "over the reward model's",
             "AUROC of variance for a wrong best", "variance", "by chance", "of it", "alpha"]  # fmt: skip
    contests = samples.contests_P_2
    title = f"MATH 100: {len(plain)} questions, {len(contests)} pairs of right and wrong on "
    title += f"{len(set(samples.question_N[contests[:, 0]].tolist()))} of them"
    table(title, ["judges", "normalise", *heads], rows)
    kept_of_samples(samples)


PAIRED: tuple[tuple[str, Normalise, tuple[float, float]], ...] = (
    ("reward model", "zscore", (1.0, 0.0)),
    ("votes", "zscore", (0.0, 1.0)),
    *((f"both, {how}", how, (1.0, 1.0)) for how in NORMALISE[:3]),
    ("both, 3 to 1", "zscore", (3.0, 1.0)),
    ("both, 1 to 3", "zscore", (1.0, 3.0)),
)


def null_cells(samples: Samples, how: Normalise, weights: Sequence[float]) -> list[str]:
    if not all(weights):
        return ["–"] * 4
    scaled = normalised(samples.scores_J_N, how)
    chance = chance_cells(scaled, weights, values(samples, how, weights)[1])
    return [*chance, f"{krippendorff_alpha(scaled):.2f}"]


def kept_of_samples(samples: Samples) -> None:
    """Best of 8 where the two judges agree on it, and which share of the candidates is right where they agree."""
    value_N, doubt_N = values(samples, "zscore", (1.0, 1.0))
    best_Q, doubt_Q = best_of(samples, value_N), doubt_of_best(samples, value_N, doubt_N)
    rows = []
    for name, doubt, credit in (
        ("best of 8", doubt_Q, best_Q),
        ("every candidate", doubt_N[~np.isnan(doubt_N)], samples.right_N[~np.isnan(doubt_N)].astype(float)),
    ):
        keep, told = doubt <= THRESHOLD, curve(doubt, credit)
        cells = [f"{kept_at(told, part):.3f}" for part in (0.9, 0.8, 0.5)]
        rows.append(
            [name, share(credit), f"{100 * keep.mean():.0f} %", half(credit, keep), half(credit, ~keep), *cells]
        )
    heads = ["all", f"kept at {THRESHOLD}", "right among them", "among the rest", "surest 90 %", "80 %", "50 %"]
    table("MATH 100: where reward model and votes agree (zscore, equal weights)", ["what", *heads], rows)


# --- 7: the zoo ------------------------------------------------------------------------------------------------------


def zoo_council(home: Path, run: str, files: list[Path]) -> None:
    alone_rows, rows, pair_rows = [], [], []
    for told in judged(home, run, files):
        alone_rows += [
            [told.name, judge, f"{(~np.isnan(scores_N)).mean():.3f}", f"{np.nanstd(scores_N):.2f}",
             ranged(separates(told, scores_N), 3), ranged(contest(told, scores_N), 3)]
            for judge, scores_N in zip(told.judges, told.first_J_N, strict=True)
        ]  # fmt: skip
        for name, some in zoo_variants(told):
            rows.append([told.name, name, *zoo_cells(some, again="again" in name)])
            pair_rows += [[told.name, name, *cells] for cells in zoo_pairs(some)]
    n, right = len(told.right_N), int(told.right_N.sum())
    print(f"{n:,} replies to {int(told.question_N.max()) + 1} questions, {right} right\n")
    heads = ["council", "judge", "read", "spread", "AUROC for right", "right over wrong"]
    table("The zoo: each judge alone, round 0", heads, alone_rows)
    heads = ["variance", "by chance", "of it", "alpha", f"kept at {THRESHOLD}", "AUROC for right", "right over wrong",
             "over the best member in round 0, points", "AUROC of variance for a pair in the wrong order"]  # fmt: skip
    table("The zoo: councils", ["council", "weights and rounds", *heads], rows)
    heads = [
        "limit",
        "pairs",
        "right over wrong",
        "wrong over right",
        "both right or both wrong",
        "right of the decided",
    ]
    table("The zoo: one pair a question, formed by reward", ["council", "weights and rounds", *heads], pair_rows)


def zoo_variants(told: Judged) -> Iterator[tuple[str, Judged]]:
    equal = [1.0] * len(told.judges)
    yield "roles", reweighed(told, told.weights, again=False)
    yield "roles, again where disputed", told
    yield "equal", reweighed(told, equal, again=False)
    yield "equal, again where disputed", reweighed(told, equal)


def zoo_cells(told: Judged, *, again: bool) -> list[str]:
    scales = [fit_scale(scores_N, "zscore") for scores_N in told.first_J_N]
    scaled = normalised_by(scales, told.scores_J_N if again else told.first_J_N)
    agreeing = [f"{krippendorff_alpha(scaled):.2f}", f"{100 * (told.disagreement_N <= THRESHOLD).mean():.0f} %"]
    contests_P_2, credit_P = contests(told, told.value_N)
    doubt_P = told.disagreement_N[contests_P_2].mean(axis=1)
    decided = credit_P != 0.5
    doubt = clustered_auroc(doubt_P[decided], credit_P[decided], told.question_N[contests_P_2[decided, 0]])
    ahead = over_best(told)
    right = [ranged(separates(told, told.value_N), 3), ranged(contest(told, told.value_N), 3), ahead, ranged(doubt)]
    return [*chance_cells(scaled, told.weights, told.disagreement_N), *agreeing, *right]


def over_best(told: Judged) -> str:
    """Right over wrong, the council's minus the best member's, by resampling questions."""
    best = max((contests(told, scores_N)[1] for scores_N in told.first_J_N), key=np.mean)
    contests_P_2, credit_P = contests(told, told.value_N)
    gain = stats.cluster_bootstrap((credit_P - best).tolist(), told.question_N[contests_P_2[:, 0]].tolist())
    return points(gain)


def zoo_pairs(told: Judged) -> Iterator[list[str]]:
    for limit in (None, THRESHOLD):
        one = formed_pairs(told, limit)
        decided = one.right_over_wrong + one.wrong_over_right
        low, high = stats.wilson(one.right_over_wrong, max(1, decided))
        counts = [str(n) for n in (one.n, one.right_over_wrong, one.wrong_over_right, one.neither)]
        yield ["–" if limit is None else str(limit), *counts, ranged(Ranged(one.accuracy, low, high), 3)]


# --- all -------------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[Mapping[str, Pairs], int], None]] = {
    "judges": judges_alone,
    "agreement": agreement,
    "by_set": by_set,
    "scales": scales,
    "every": every_three,
    "labels": few_labels,
    "filters": filters,
    "coverages": coverages,
    "undecided": undecided,
    "thresholds": thresholds,
    "both": both_filters,
    "variances": variances,
    "orders": orders,
    "orders_by_prompt": orders_by_prompt,
    "one_order": one_order,
    "equal_calls": equal_calls,
    "standings": standings,
    "finds": finds,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that holds judges/ and recorded/")
    parser.add_argument("--cache", type=Path, help="where readings of answers are kept; else nowhere")
    parser.add_argument("--only", default="", help="part of a table's name: " + ", ".join([*PARTS, "mathematics"]))
    parser.add_argument("--seeds", type=int, default=10, help="ways to halve the pairs")
    parser.add_argument("--zoo", type=Path, metavar="HOME", help="workspace with a judged run, and only that")
    parser.add_argument("--run", default="", help="the run; of --zoo")
    parser.add_argument("--judges", type=Path, nargs="+", default=[], help="its judges' files; of --zoo")
    given = parser.parse_args()
    if given.zoo:
        zoo_council(given.zoo, given.run, given.judges)
        return 0
    if not (given.data / LLMBAR).is_file():
        print(f"nothing measured: {given.data / LLMBAR} is absent")
        return 0
    pools = llmbar(given.data)
    for name, part in PARTS.items():
        if given.only in name:
            part(pools, given.seeds)
    if given.only in "mathematics" and (given.data / SAMPLES).is_dir():
        with tempfile.TemporaryDirectory() as scratch:
            samples_of_mathematics(given.data, given.cache or Path(scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
