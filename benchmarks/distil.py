"""Does it pay to distil a council into one small model, and what do preferences and marked steps add.

    python benchmarks/distil.py [--stage NAME …] [--seeds N] [--quick] [--work DIR] [--out DIR]

Stages, in this order (all unless named); each says what it needs when that is missing:

- students: `base` is the zoo's weakest member, `small` one of 0.35 million parameters from nothing, and `novice`
  misreads four of the eight skills.
- council: the zoo's four members debate the training questions; its best member alone answers them as often.
- experts: four experts, each of whom misreads two skills of its own, do the same.
- grid: base student → answers alone, worked solutions, single teacher, RSFT.
- da: the council again, with a style word for each seat, and DA of it.
- experts_grid: novice → worked solutions, single expert, RSFT of the experts' council.
- dpo: the RSFT student → preferences of a council of judges: unfiltered, variance-filtered, a random part of them, one
  judge alone, labels.
- prm: process reward models with exact and with Monte-Carlo labels, taught into the student that writes the replies
  and into another member of the zoo; best of 8 against the majority of 8, and against plain likelihood.
- general: every student on longer chains, unseen mixes of skills, distractors and `logic`.
- sizes: both students × councils of 3, 5 and 9 agents against the single teacher at as many samples.
- table: all that is finished, as Markdown (printed, OUT/distil.md) and CSV (OUT/distil.csv). No model is asked.

A cell of the experiment is one JSON file in WORK/cells; what is finished is not done again, so a call after a kill goes
on. Hyper-parameters were chosen on dev questions; no test question was looked at before they were set.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

import _distil_measure as measure
import _distil_pairs as pairs
import _distil_prm as prm
import _distil_tables as tables
from _distil_cells import Cell, Cells
from _distil_pluribus import council, pluribus, trained
from _students import PAIRS, WORK, found
from pluribus.tasks import load_task

ZOO = ("zoo/gemma", "zoo/olmo", "zoo/phi", "zoo/qwen")
TRAIN = ("sums:unmixed", "train")
"""Some pairs of skills never meet in these: their mixes are a test."""
STUDENTS: Mapping[str, str] = {"base": "zoo/qwen", "small": "small", "novice": "novice"}
"""Size or kind → whose weights the student starts from. The base student sits on the zoo's council too."""
SIZES = ("novice", "small")
ARMS = ("answers", "gold", "single", "rsft", "da")
X_ARMS = ("x_single", "x_rsft", "x_gold")
PRIMARY = "rsft − single"
"""Named before any test result was looked at; da − single is secondary."""
AGENTS = (3, 5, 9)
PAIR_ARMS = ("unfiltered", "filtered", "random", "one_judge", "gold")
JUDGES = str(Path(__file__).parents[1] / "recipes" / "zoo_reward.yaml")
SAMPLES = 8
"""Replies of a question: four seats in two rounds, or eight draws of one teacher."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything."""

    train: int = 800
    """Training questions."""
    experts_train: int = 500
    styles_train: int = 400
    sizes_train: int = 250
    sizes_test: int = 500
    dev: int = 300
    experts_test: int = 500
    test: int = 1_000
    again: int = 300
    """Of these, whose answers the student is shown again."""
    other: int = 500
    """Questions of each further test."""
    logic: int = 200
    draws: int = 400
    """Test questions that are answered eight times."""
    pairs_from: int = 600
    """Questions whose replies are judged for pairs."""
    marks_from: int = 3_000
    """Training questions whose replies are cut into steps for the longer trainings."""
    rollouts_from: int = 120
    """Training questions whose steps are also rated by rollouts, which cost a call each."""
    rollouts: int = 4
    prm_steps: int = 800
    """Optimiser steps of these."""
    steps: int = 100
    """Optimiser steps of every supervised arm."""
    sizes_steps: int = 50
    pair_steps: int = 20
    course: int | None = None
    """Steps of the students' own courses; None: as written in `_students.py`."""

    @property
    def tests(self) -> Mapping[str, tuple[str, str, int]]:
        """Further tests: name → task, split, questions."""
        return {
            "longer": ("sums:longer", "test", self.other),
            "mixed": ("sums:mixed", "test", self.other),
            "distracted": ("sums:distracted", "test", self.other),
            "logic": ("logic", "test", self.logic),
        }


FULL = Scale()
QUICK = Scale(
    train=40, experts_train=24, styles_train=24, sizes_train=24, sizes_test=12, dev=20, experts_test=12, test=30,
    again=10, other=12, logic=8, draws=10, pairs_from=48, marks_from=12, rollouts_from=6, rollouts=2,
    prm_steps=3, steps=3, sizes_steps=2, pair_steps=2, course=3,
)  # fmt: skip
SFT = {"batch_size": 16, "learning_rate": 1e-3, "warmup_ratio": 0.1, "scheduler": "cosine"}
DPO = {"batch_size": 16, "learning_rate": 1e-4, "warmup_ratio": 0.1, "dpo": {"beta": 0.1}}
LAYOUT = {"separator": "", "join": " "}
"""As the zoo writes: a student's folder does not say it."""
PRM = {"batch_size": 16, "epochs": 2.0, "learning_rate": 1e-3, "warmup_ratio": 0.1, "prm": LAYOUT}
LONG_PRM = {
    "batch_size": 32, "learning_rate": 1.2e-3, "warmup_ratio": 0.05, "scheduler": "cosine",
    "weight_decay": 0.1, "adam_beta2": 0.95, "save_steps": 100, "prm": {**LAYOUT, "contrast": 0.0},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bench:
    work: Path
    scale: Scale
    seeds: int
    cells: Cells
    out: Path

    @property
    def home(self) -> Path:
        return self.work / "home"

    def student(self, name: str) -> Path:
        return found(STUDENTS.get(name, name), self.work, self.scale.course).resolve()

    def model(self, name: str) -> Path:
        return self.work / "models" / name

    def data(self, name: str) -> Path:
        return self.work / "data" / f"{name}.jsonl"

    def evaluated(self, name: str, folder: Path, limit: int | None = None) -> None:
        """Cells of a student: the test, greedily, and what it makes of its own answers."""
        self.cells.make(f"eval.{name}", lambda: self._evaluate(folder, limit))

    def _evaluate(self, folder: Path, limit: int | None) -> Cell:
        pairs = measure.questions("sums", "test", limit or self.scale.test)
        asked = measure.alone(f"local/{folder}", pairs)
        some = pairs[: self.scale.again]
        again = measure.revised(f"local/{folder}", some, asked.texts[: len(some)])
        return {"tests": {"sums": _cell(asked)}, "again": _cell(again)}

    def generalised(self, name: str, folder: Path) -> None:
        """A cell for each further test."""
        for test, asked in self.scale.tests.items():
            self.cells.make(f"{test}.{name}", partial(self._ask, folder, asked))

    def _ask(self, folder: Path, asked: tuple[str, str, int]) -> Cell:
        return _cell(measure.alone(f"local/{folder}", measure.questions(*asked)))


def _cell(asked: measure.Asked) -> Cell:
    return {
        "verdicts": asked.verdicts, "prompt_tokens": asked.prompt_tokens, "completion_tokens": asked.completion_tokens,
    }  # fmt: skip


# --- stages -------------------------------------------------------------------------------------------------------


def students(bench: Bench) -> None:
    for name in STUDENTS:
        folder = bench.student(name)
        bench.cells.make(f"dev.{name}", partial(_on_dev, bench, folder))
        bench.evaluated(f"base.{name}.0", folder)


def _on_dev(bench: Bench, folder: Path) -> Cell:
    return _cell(measure.alone(f"local/{folder}", measure.questions("sums", "dev", bench.scale.dev)))


def council_of_the_zoo(bench: Bench) -> None:
    """Teacher: the member that is best alone on dev."""
    seats = bench.cells.make("council.zoo.dev", lambda: council(bench.home, ZOO, "sums", "dev", bench.scale.dev))
    teacher = _best(seats, ZOO)
    bench.cells.make("council.zoo.test", lambda: council(bench.home, ZOO, "sums", "test", bench.scale.test))
    _taught(bench, "zoo", ZOO, teacher, bench.scale.train)


def _taught(bench: Bench, name: str, models: Sequence[str], teacher: str, n: int) -> None:
    """Council and teacher on the training questions, as many replies of each."""
    bench.cells.make(f"council.{name}.train", lambda: council(bench.home, models, *TRAIN, n))
    bench.cells.make(
        f"council.{name}.single",
        lambda: {"teacher": teacher, **council(bench.home, [teacher], *TRAIN, n, rounds=0, agents=SAMPLES)},
    )


def _best(seats: Cell, models: Sequence[str]) -> str:
    return max(zip(models, seats["seats"], strict=True), key=lambda pair: float(pair[1]))[0]


def experts(bench: Bench) -> None:
    """Experts, their council, and the expert that is best alone on dev."""
    names = [f"expert_{name}" for name in PAIRS]
    models = [f"local/{bench.student(name)}" for name in names]
    seats = bench.cells.make("council.experts.dev", lambda: council(bench.home, models, "sums", "dev", bench.scale.dev))
    bench.cells.make(
        "council.experts.test", lambda: council(bench.home, models, "sums", "test", bench.scale.experts_test)
    )
    _taught(bench, "experts", models, _best(seats, models), bench.scale.experts_train)


def grid(bench: Bench) -> None:
    """Every arm × seed on the base student: equal steps and batches, and equal trained tokens of whole replies."""
    tokens = _least_tokens(bench, {"single": ("zoo.single",), "rsft": ("zoo.train",), "gold": ("zoo.train",)})
    for arm, source, view in (
        ("single", "zoo.single", "rsft"), ("rsft", "zoo.train", "rsft"), ("gold", "zoo.train", "gold"),
    ):  # fmt: skip
        _demonstrations(bench, arm, [source], view, tokens)
    _demonstrations(bench, "answers", ["zoo.train"], "answers", None)
    for seed in range(bench.seeds):
        for arm in ("single", "rsft", "gold", "answers"):
            _arm(bench, f"{arm}.base", "base", bench.data(arm), seed)


def da(bench: Bench) -> None:
    """The zoo's members say the same thing in the same words; with style words as personas they do not."""
    n = bench.scale.styles_train
    bench.cells.make("council.styles.train", lambda: council(bench.home, ZOO, *TRAIN, n, personas="mathematics"))
    tokens = int((bench.cells.get("data.rsft") or {})["tokens"])
    _demonstrations(bench, "da", ["styles.train"], "da", tokens)
    for seed in range(bench.seeds):
        _arm(bench, "da.base", "base", bench.data("da"), seed)


def experts_grid(bench: Bench) -> None:
    tokens = _least_tokens(bench, {"x_single": ("experts.single",), "x_rsft": ("experts.train",)})
    for arm, source, view in (
        ("x_single", "experts.single", "rsft"), ("x_rsft", "experts.train", "rsft"),
        ("x_gold", "experts.train", "gold"),
    ):  # fmt: skip
        _demonstrations(bench, arm, [source], view, tokens)
    for seed in range(bench.seeds):
        for arm in X_ARMS:
            _arm(bench, f"{arm}.novice", "novice", bench.data(arm), seed)


def _least_tokens(bench: Bench, arms: Mapping[str, Sequence[str]]) -> int:
    """Tokens of the arm that has fewest, uncut."""
    found = []
    for arm, sources in arms.items():
        view = "gold" if arm == "gold" else "rsft"
        found.append(int(_demonstrations(bench, f"{arm}_uncut", sources, view, None)["tokens"]))
    return min(found)


def _demonstrations(bench: Bench, name: str, sources: Sequence[str], view: str, tokens: int | None) -> Cell:
    def make() -> Cell:
        runs = [_run(bench, source) for source in sources]
        flags = ["--max-tokens", str(tokens), "--tokenizer", "zoo/qwen"] if tokens is not None else []
        bench.data(name).parent.mkdir(parents=True, exist_ok=True)
        bench.data(name).unlink(missing_ok=True)
        out = str(bench.data(name))
        pluribus("distil", *runs, "--view", view, "--out", out, "--check-against", "sums", *flags, home=bench.home)
        return _counted(bench.data(name))

    return bench.cells.make(f"data.{name}", make)


def _run(bench: Bench, source: str) -> str:
    cell = bench.cells.get(f"council.{source}")
    if cell is None:
        raise SystemExit(f"there is no cell council.{source} in {bench.work}: run its stage first (--stage council)")
    return str(cell["run"])


def _counted(path: Path) -> Cell:
    """Rows, different questions, and tokens to be learned, with the end of each reply."""
    from pluribus.zoo import folder
    from pluribus.zoo.tokenizer import open_tokenizer

    tokenizer = open_tokenizer(folder("qwen"))
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    learned = sum(len(tokenizer.encode(row["completion"][0]["content"])) + 1 for row in rows)
    return {"rows": len(rows), "questions": len({row["question_id"] for row in rows}), "tokens": learned}


def _arm(
    bench: Bench, name: str, size: str, data: Path, seed: int, steps: int | None = None, test: int | None = None
) -> None:
    """One student: as many optimiser steps as in every other arm, whatever rows there are."""
    out = bench.model(f"{name}.{seed}")
    settings = {**SFT, "max_steps": steps or bench.scale.steps}
    bench.cells.make(
        f"train.{name}.{seed}", lambda: trained("sft", bench.student(size), data, out, seed=seed, **settings)
    )
    bench.evaluated(f"{name}.{seed}", out, test)


def general(bench: Bench) -> None:
    """The further tests of the students there are, seed by seed, so that what is cut short holds all arms."""
    for student in ("base", "novice"):
        bench.generalised(f"base.{student}.0", bench.student(student))
    for seed in range(bench.seeds):
        for name in (*(f"{arm}.base" for arm in (*ARMS, "dpo_filtered")), *(f"{arm}.novice" for arm in X_ARMS)):
            if bench.cells.get(f"train.{name}.{seed}") is not None:
                bench.generalised(f"{name}.{seed}", bench.model(f"{name}.{seed}"))


# --- pairs --------------------------------------------------------------------------------------------------------


def dpo(bench: Bench) -> None:
    """Pairs of the RSFT student's own replies to new questions, judged by a council; the student goes on from seed 0's
    weights, so that the arms differ by their pairs and the seeds by the order (and by which part is drawn)."""
    start = bench.model("rsft.base.0")
    run = _replies_to_judge(bench, start)
    whole = {
        "unfiltered": _judged(bench, run, "council", "--by", "reward", "--max-disagreement", "1"),
        "filtered": _judged(bench, run, "council", "--by", "reward"),
        "one_judge": _judged(bench, run, "one", "--by", "reward"),
        "gold": _judged(bench, run, "council", "--by", "label"),
    }
    n = min(len(whole[arm]) for arm in ("filtered", "one_judge", "gold"))
    for seed in range(bench.seeds):
        for arm in PAIR_ARMS:
            rows = whole["unfiltered" if arm == "random" else arm]
            drawn = rows if arm == "unfiltered" else random.Random(seed).sample(rows, n)
            _from_pairs(bench, arm, seed, drawn, start)


def _from_pairs(bench: Bench, arm: str, seed: int, drawn: Sequence[pairs.Row], start: Path) -> None:
    data, name = bench.data(f"pairs_{arm}.{seed}"), f"dpo_{arm}.base.{seed}"
    out, settings = bench.model(name), {**DPO, "seed": seed, "max_steps": bench.scale.pair_steps}
    pairs.write_pairs(data, drawn)
    if seed == 0:
        bench.cells.make(f"pairs.{arm}", lambda: pairs.facts(drawn, start))
    bench.cells.make(f"train.{name}", lambda: trained("dpo", start, data, out, **settings))
    bench.evaluated(name, out)


def _replies_to_judge(bench: Bench, start: Path) -> str:
    """Four replies each to questions that no student was trained on."""
    file = bench.data("pair_questions")
    first, n = bench.scale.train, bench.scale.pairs_from
    new = load_task(*TRAIN, limit=first + n).pairs[first:]
    pairs.write_pairs(file, [
        {"id": question.id.replace("/", "-"), "question": question.text, "answer": key.answer, "kind": "number"}
        for question, key in new if key is not None
    ])  # fmt: skip
    return str(bench.cells.make("council.pairs.samples", lambda: council(
        bench.home, [f"local/{start}"], "jsonl", "all", n, rounds=0, agents=4, data=file))["run"])  # fmt: skip


def _judged(bench: Bench, run: str, who: str, *flags: str) -> list[dict[str, Any]]:
    """Pairs by one council of judges; the rewards of a run are those made last, so each is made before its pairs."""
    name = f"judged_{who}{''.join(flags)}".replace("--", "_").replace(" ", "")
    out = bench.data(name)

    def make() -> Cell:
        judges = ["--judges", JUDGES] if who == "council" else ["--judge", "zoo/phi"]
        pluribus("reward", run, *judges, "--out", str(bench.work / "rewards" / who), home=bench.home)
        out.unlink(missing_ok=True)
        pluribus("prefer", run, *flags, "--out", str(out), home=bench.home)
        return {"pairs": len(pairs.read_pairs(out))}

    bench.cells.make(f"data.{name}", make)
    return pairs.read_pairs(out)


# --- steps ----------------------------------------------------------------------------------------------------------


def prm_stage(bench: Bench) -> None:
    """The base student's replies to training questions, cut into steps: exact marks of all, rollouts of some."""
    model = f"local/{bench.student('base')}"
    for name, n in (("rollouts", bench.scale.rollouts_from), ("many", bench.scale.marks_from)):
        bench.cells.make(f"council.prm.{name}", partial(council, bench.home, [model], *TRAIN, n, rounds=0, agents=4))
    _marked(bench, "same", "rollouts", "checker")
    _marked(bench, "rollouts", "rollouts", "rollouts")
    bench.cells.make("prm.labels", lambda: prm.compared(bench.data("prm_rollouts"), bench.data("prm_same")))
    _marked(bench, "many", "many", "checker")
    own, other, longer = bench.model("rsft.base.0"), "zoo/phi", {**LONG_PRM, "max_steps": bench.scale.prm_steps}
    for kind, data, trunk, settings in (
        ("same", "same", own, PRM), ("rollouts", "rollouts", own, PRM), ("other", "many", other, longer),
        ("own", "many", own, longer),
    ):  # fmt: skip
        bench.cells.make(f"train.prm_{kind}", partial(
            trained, "prm", trunk, bench.data(f"prm_{data}"), bench.model(f"prm_{kind}"), seed=0, **settings
        ))  # fmt: skip
    some = measure.questions("sums", "test", bench.scale.draws)
    for seed in range(bench.seeds):
        _judged_draws(bench, some, seed)


def _judged_draws(bench: Bench, some: Sequence[measure.Pair], seed: int) -> None:
    """What the process reward models say of a student's draws; how likely the student and zoo/phi find the same."""
    draws = _draws(bench, some, seed)
    scores = {}
    for kind in ("same", "rollouts", "other", "own"):
        folder = f"local/{bench.model(f'prm_{kind}')}"
        scores[kind] = bench.cells.make(f"prm.{kind}.{seed}", partial(prm.quality, folder, some, draws))["scores"]
    for kind, model in (("own", f"local/{bench.model(f'rsft.base.{seed}')}"), ("other", "zoo/phi")):
        name = f"likelihood_{kind}"
        scores[name] = bench.cells.make(f"prm.{name}.{seed}", partial(prm.likelihood, model, some, draws))["scores"]
    bench.cells.make(f"prm.best_of.{seed}", partial(prm.best_of, some, draws, scores))


def _marked(bench: Bench, kind: str, source: str, by: str) -> None:
    out = bench.data(f"prm_{kind}")

    def make() -> Cell:
        run = _run(bench, f"prm.{source}")
        rollouts = ["--rollouts", str(bench.scale.rollouts), "--rollout-model", "zoo/gemma"] if by == "rollouts" else []
        pluribus("label", run, "--steps", by, *rollouts, home=bench.home)
        out.unlink(missing_ok=True)
        pluribus("distil", run, "--view", "steps", "--step-labels", by, "--check-against", "sums", "--out", str(out),
                 home=bench.home)  # fmt: skip
        rows = pairs.read_pairs(out)
        marks = [mark for row in rows for mark in row["labels"]]
        return {"rows": len(rows), "steps": len(marks), "good": sum(marks) / len(marks)}

    bench.cells.make(f"data.prm_{kind}", make)


def _draws(bench: Bench, some: Sequence[measure.Pair], seed: int) -> list[measure.Asked]:
    model = f"local/{bench.model(f'rsft.base.{seed}')}"
    cell = bench.cells.make(f"draws.{seed}", lambda: {
        "draws": [[list(one.texts), one.verdicts] for one in measure.several(model, some, SAMPLES, seed)]
    })  # fmt: skip
    return [measure.Asked(tuple(texts), verdicts, 0, 0) for texts, verdicts in cell["draws"]]


# --- sizes ----------------------------------------------------------------------------------------------------------


def sizes(bench: Bench) -> None:
    """One seed: both students, councils of experts with one round of debate, the single expert as often."""
    models = [f"local/{bench.student(f'expert_{name}')}" for name in PAIRS]
    teacher = str((bench.cells.get("council.experts.single") or {})["teacher"])
    n = bench.scale.sizes_train
    for agents in AGENTS:
        bench.cells.make(f"council.sizes{agents}.train", lambda agents=agents: council(
            bench.home, models, *TRAIN, n, agents=agents))  # fmt: skip
        bench.cells.make(f"council.sizes{agents}.single", lambda agents=agents: council(
            bench.home, [teacher], *TRAIN, n, rounds=0, agents=2 * agents))  # fmt: skip
        sources = {f"rsft{agents}": [f"sizes{agents}.train"], f"single{agents}": [f"sizes{agents}.single"]}
        tokens = _least_tokens(bench, sources)
        for arm, source in sources.items():
            _demonstrations(bench, arm, source, "rsft", tokens)
            for size in SIZES:
                _arm(bench, f"{arm}.{size}", size, bench.data(arm), 0, bench.scale.sizes_steps, bench.scale.sizes_test)


# --- the command ----------------------------------------------------------------------------------------------------


def table(bench: Bench) -> None:
    print(tables.report(bench.cells, bench.out))


def main() -> int:
    stages: Mapping[str, Callable[[Bench], None]] = {
        "students": students, "council": council_of_the_zoo, "experts": experts, "grid": grid, "da": da,
        "experts_grid": experts_grid, "dpo": dpo, "prm": prm_stage,
        "sizes": sizes, "general": general, "table": table,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", action="append", choices=list(stages), help="may be repeated; all unless named")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a walk through everything on a handful of questions")
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--out", type=Path, help="where the tables go; WORK unless given")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    bench = Bench(
        given.work, QUICK if given.quick else FULL, given.seeds, Cells(given.work / "cells"), given.out or given.work
    )
    for name in given.stage or stages:
        stages[name](bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
