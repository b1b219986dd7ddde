"""Cells → tables: arithmetic on what is stored. Private to `distil.py`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _distil_cells import Cell, Cells
from pluribus.stats import Estimate, cluster_bootstrap, paired_difference

Floats = NDArray[np.float64]
NAMES: Mapping[str, str] = {
    "base": "base student", "novice": "novice", "answers": "answers alone", "gold": "worked solutions (ceiling)",
    "single": "single teacher", "rsft": "council, RSFT", "da": "council, DA",
    "x_gold": "worked solutions (ceiling)", "x_single": "single expert", "x_rsft": "council of experts, RSFT",
    "dpo_filtered": "RSFT, then DPO (variance-filtered)",
}  # fmt: skip
PLACES: Mapping[str, str] = {
    "base": "base.base", "answers": "answers.base", "gold": "gold.base", "single": "single.base", "rsft": "rsft.base",
    "da": "da.base", "dpo_filtered": "dpo_filtered.base", "novice": "base.novice", "x_gold": "x_gold.novice",
    "x_single": "x_single.novice", "x_rsft": "x_rsft.novice",
}  # fmt: skip
"""Arm → the cells of it."""
TITLES: Mapping[str, str] = {
    "sums": "the zoo's council and its weakest member", "experts": "a council of experts and a novice",
}  # fmt: skip
TESTS = ("sums", "longer", "mixed", "distracted", "logic")
PAIR_NAMES: Mapping[str, str] = {
    "unfiltered": "council, all pairs", "filtered": "council, variance-filtered", "random": "council, random part",
    "one_judge": "one judge", "gold": "labels",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm's verdicts on one test: seeds × questions, 1 right, 0 not."""

    right_S_Q: Floats

    @property
    def mean_Q(self) -> list[float]:
        """Share of the seeds that were right, per question."""
        return [float(x) for x in self.right_S_Q.mean(axis=0)]


def arm(cells: Cells, name: str, test: str = "sums", limit: int | None = None) -> Arm | None:
    """None: no seed of it is finished."""
    start = "eval" if test == "sums" else test
    found = [cell for one in cells.names(f"{start}.{name}.") if (cell := cells.get(one))]
    rows = [right((cell["tests"]["sums"] if test == "sums" else cell)["verdicts"]) for cell in found]
    return Arm(np.array(rows)[:, :limit]) if rows else None


def right(verdicts: str) -> list[float]:
    return [float(one == "1") for one in verdicts]


def report(cells: Cells, out: Path) -> str:
    """All tables as Markdown; written to out/distil.md with every number in out/distil.csv."""
    sheet = Sheet([])
    parts = [
        main_table(cells, sheet), experts_table(cells, sheet), general_table(cells, sheet),
        correction_table(cells, sheet), sizes_table(cells, sheet), pairs_table(cells, sheet), prm_table(cells, sheet),
    ]  # fmt: skip
    text = "\n\n".join(part for part in parts if part)
    out.mkdir(parents=True, exist_ok=True)
    (out / "distil.md").write_text(text + "\n", "utf-8")
    sheet.write(out / "distil.csv")
    return text


@dataclass(frozen=True, slots=True)
class Sheet:
    """Every estimate that a table shows, one a line."""

    rows: list[tuple[str, str, str, float, float, float]]

    def add(self, table: str, row: str, column: str, found: Estimate) -> Estimate:
        self.rows.append((table, row, column, found.value, found.low, found.high))
        return found

    def write(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("table", "row", "column", "value", "low", "high"))
            writer.writerows(self.rows)


# --- the arms -----------------------------------------------------------------------------------------------------


def main_table(cells: Cells, sheet: Sheet) -> str:
    names = {
        "base": "base.base", "answers": "answers.base", "gold": "gold.base", "single": "single.base",
        "rsft": "rsft.base", "da": "da.base", "dpo_filtered": "dpo_filtered.base",
    }  # fmt: skip
    found = {key: arm(cells, name) for key, name in names.items()}
    council = cells.get("council.zoo.test")
    return _arms("sums", found, council, ("single", "rsft", "da"), cells, sheet)


def experts_table(cells: Cells, sheet: Sheet) -> str:
    names = {
        "novice": "base.novice",
        "x_gold": "x_gold.novice",
        "x_single": "x_single.novice",
        "x_rsft": "x_rsft.novice",
    }
    found = {key: arm(cells, name) for key, name in names.items()}
    if found["x_rsft"] is None:
        return ""
    return _arms("experts", found, cells.get("council.experts.test"), ("x_single", "x_rsft"), cells, sheet)


def _arms(
    title: str, found: Mapping[str, Arm | None], council: Cell | None, told: Sequence[str], cells: Cells, sheet: Sheet
) -> str:
    single = found[told[0]]
    rows = []
    for key, one in found.items():
        if one is None:
            continue
        mean = sheet.add(title, key, "accuracy", _mean(one.mean_Q))
        beyond = _against(one, single) if single is not None and key != told[0] else None
        if beyond is not None:
            sheet.add(title, key, "minus single teacher", beyond)
        facts = cells.get(f"data.{key}") or {}
        rows.append([
            NAMES[key], span(mean), ", ".join(f"{x:.3f}" for x in one.right_S_Q.mean(axis=1)),
            signed(beyond) if beyond else "", _number(facts.get("tokens")), _number(facts.get("questions")),
            _tokens(cells, key),
        ])  # fmt: skip
    if council is not None:
        mean = sheet.add(title, "council", "accuracy", _mean(right(council["verdicts"])))
        each = council["tokens"] / council["questions"]
        rows.append(["the council itself", span(mean), "", "", "", "", f"{each:.0f}"])
    head = ["arm", "accuracy", "per seed", "minus single teacher", "trained tokens", "questions", "tokens per question"]
    lines = [f"**{TITLES[title]}**", markdown(head, rows)]
    base = found["novice" if "novice" in found else "base"]
    if council is not None and base is not None:
        for key in told:
            if (one := found[key]) is not None:
                kept = sheet.add(title, key, "share of the council's gain", _kept(one, base, council))
                lines.append(f"{NAMES[key]}: {span(kept)} of the council's gain over the base student kept.")
    return "\n\n".join(lines)


def _tokens(cells: Cells, key: str) -> str:
    """Tokens read and written per test question, of the first seed."""
    found = next(iter(cells.names(f"eval.{PLACES[key]}.")), None)
    cell = cells.get(found) if found else None
    if cell is None:
        return ""
    told = cell["tests"]["sums"]
    return f"{(told['prompt_tokens'] + told['completion_tokens']) / len(told['verdicts']):.0f}"


def _mean(values: Sequence[float]) -> Estimate:
    return cluster_bootstrap(values, list(range(len(values))))


def _against(first: Arm, second: Arm) -> Estimate:
    """Paired over questions, each question's credit the mean over seeds."""
    return paired_difference(first.mean_Q, second.mean_Q)


def _kept(student: Arm, base: Arm, council: Cell) -> Estimate:
    """(student − base) / (council − base), all three on the same resampled questions."""
    told_Q = np.array(right(council["verdicts"]))
    n = min(len(told_Q), student.right_S_Q.shape[1])
    gained_Q = np.array(student.mean_Q)[:n] - np.array(base.mean_Q)[:n]
    possible_Q = told_Q[:n] - np.array(base.mean_Q)[:n]
    drawn_B_Q = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=10_000)
    shares_B = (drawn_B_Q @ gained_Q) / (drawn_B_Q @ possible_Q)
    low, high = np.quantile(shares_B, [0.025, 0.975])
    return Estimate(float(gained_Q.sum() / possible_Q.sum()), float(low), float(high), float("nan"))


# --- what else a student can do -----------------------------------------------------------------------------------


def general_table(cells: Cells, sheet: Sheet) -> str:
    rows = []
    for key, name in PLACES.items():
        teacher = "x_single.novice" if name.endswith("novice") else "single.base"
        row = [NAMES[key]]
        for test in TESTS:
            one, single = arm(cells, name, test), arm(cells, teacher, test)
            row.append("" if one is None else span(sheet.add("tests", key, test, _mean(one.mean_Q))))
            if one is not None and single is not None and name != teacher and key not in ("base", "novice"):
                row[-1] += f" ({signed(sheet.add('tests', key, f'{test} minus single', _against(one, single)), False)})"
        if any(row[1:]):
            rows.append(row)
    return "**other tests** (in brackets: minus the single teacher's student)\n\n" + markdown(["arm", *TESTS], rows)


def correction_table(cells: Cells, sheet: Sheet) -> str:
    rows = []
    for key, place in PLACES.items():
        found = [cell for name in cells.names(f"eval.{place}.") if (cell := cells.get(name)) and "again" in cell]
        if not found:
            continue
        after_SQ = np.array([x for cell in found for x in right(cell["again"]["verdicts"])])
        n = len(found[0]["again"]["verdicts"])
        before_SQ = np.array([x for cell in found for x in right(cell["tests"]["sums"]["verdicts"][:n])])
        question = [i % n for i in range(len(after_SQ))]
        mended, spoilt = before_SQ == 0, before_SQ == 1
        rows.append([
            NAMES[key], f"{before_SQ.mean():.3f}",
            signed(sheet.add("self-correction", key, "gain",
                             cluster_bootstrap((after_SQ - before_SQ).tolist(), question))),
            _share(sheet, key, "wrong → right", after_SQ, mended, question),
            _share(sheet, key, "right → wrong", 1 - after_SQ, spoilt, question),
        ])  # fmt: skip
    head = ["arm", "first answer", "gain by revising", "wrong → right", "right → wrong"]
    return "**self-correction**\n\n" + markdown(head, rows) if rows else ""


def _share(sheet: Sheet, key: str, column: str, value_N: Floats, among_N: Any, question: Sequence[int]) -> str:
    if not among_N.any():
        return "–"
    chosen = [i for i, yes in enumerate(among_N) if yes]
    found = cluster_bootstrap([float(value_N[i]) for i in chosen], [question[i] for i in chosen])
    return span(sheet.add("self-correction", key, column, found))


def sizes_table(cells: Cells, sheet: Sheet) -> str:
    rows = []
    for size in ("small", "novice"):
        for n in (3, 5, 9):
            single, council = arm(cells, f"single{n}.{size}"), arm(cells, f"rsft{n}.{size}")
            if single is None or council is None:
                continue
            base = arm(cells, f"base.{size}", limit=single.right_S_Q.shape[1])
            row = f"{size} × {n}"
            beyond = sheet.add("sizes", row, "council minus single", _against(council, single))
            rows.append([
                size, str(n), f"{np.mean(base.mean_Q):.3f}" if base else "",
                span(sheet.add("sizes", row, "single", _mean(single.mean_Q))),
                span(sheet.add("sizes", row, "council", _mean(council.mean_Q))), signed(beyond),
            ])  # fmt: skip
    head = ["student", "agents", "base student", "single teacher", "council, RSFT", "difference"]
    return "**sizes × agents**\n\n" + markdown(head, rows) if rows else ""


# --- pairs and steps ------------------------------------------------------------------------------------------------


def pairs_table(cells: Cells, sheet: Sheet) -> str:
    start = arm(cells, "rsft.base")
    if start is None:
        return ""
    before = Arm(start.right_S_Q[:1])
    rows = []
    for key, name in PAIR_NAMES.items():
        one, facts = arm(cells, f"dpo_{key}.base"), cells.get(f"pairs.{key}")
        if one is None or facts is None:
            continue
        unfiltered = arm(cells, "dpo_unfiltered.base")
        beyond = _against(one, unfiltered) if unfiltered is not None and key != "unfiltered" else None
        gained = sheet.add("pairs", key, "minus its start", _against(one, Arm(before.right_S_Q)))
        if beyond is not None:
            sheet.add("pairs", key, "minus unfiltered", beyond)
        rows.append([
            name, str(facts["pairs"]), f"{facts['accuracy']:.3f} ({facts['told']})", f"{facts['snr']:.4f}",
            f"{facts['margin']:.3f}", span(sheet.add("pairs", key, "accuracy", _mean(one.mean_Q))), signed(gained),
            signed(beyond) if beyond else "",
        ])  # fmt: skip
    head = [
        "pairs", "number", "pair accuracy (decidable)", "gradient SNR", "mean margin", "accuracy", "minus its start",
        "minus unfiltered",
    ]  # fmt: skip
    title = f"**DPO** from the RSFT student of seed 0 ({np.mean(before.mean_Q):.3f})"
    return f"{title}\n\n{markdown(head, rows)}" if rows else ""


def prm_table(cells: Cells, sheet: Sheet) -> str:
    lines = []
    labels = cells.get("prm.labels")
    if labels is not None:
        lines.append(
            f"Monte-Carlo marks against exact ones: AUROC {_auroc(labels['auroc'])} (of yes against no: the mean of "
            f"the shares of good and of bad steps that are marked so), {labels['accuracy']:.3f} agree, "
            f"{labels['wrongly_good']:.3f} of the bad steps called good, {labels['missed']:.3f} of the good ones "
            f"bad, on {labels['steps']:,} steps of {labels['replies']:,} replies."
        )
    rows = []
    for kind, name in _MARKS.items():
        one = cells.get(f"prm.{kind}.0")
        if one is not None:
            found = [_auroc(one[measure]) for measure in ("step_auroc", "same_place", "answer_auroc")]
            rows.append([name, *found, f"{one['steps']:,}"])
    if rows:
        head = ["taught", "step AUROC, held out", "the same question and place", "AUROC of right replies", "steps"]
        lines.append(markdown(head, rows))
    best = _best_of(cells, sheet)
    return "\n\n".join(["**PRM**", *lines, *best]) if lines or best else ""


def _auroc(found: Sequence[float]) -> str:
    return f"{found[0]:.3f} [{found[1]:.3f}, {found[2]:.3f}]"


def _best_of(cells: Cells, sheet: Sheet) -> list[str]:
    found = [cell for name in cells.names("prm.best_of.") if (cell := cells.get(name))]
    if not found:
        return []
    picked = {key: np.array([cell[key] for cell in found]).mean(axis=0).tolist() for key in found[0]["columns"]}
    rows = []
    for key, credit_Q in picked.items():
        mean = sheet.add("best of 8", key, "accuracy", _mean(credit_Q))
        beyond = paired_difference(credit_Q, picked["majority"]) if key != "majority" else None
        if beyond:
            sheet.add("best of 8", key, "minus majority", beyond)
        rows.append([_PICKS.get(key, key), span(mean), signed(beyond) if beyond else ""])
    return [
        f"The RSFT students' eight draws, {len(found)} seeds, {len(picked['majority'])} questions:",
        markdown(["what is picked", "accuracy", "minus majority of 8"], rows),
    ]


_MARKS: Mapping[str, str] = {
    "same": "exact marks of 120 questions' replies", "rollouts": "Monte-Carlo marks of the same",
    "own": "exact marks of 3,000 questions' replies, into the student itself", "other": "the same, into zoo/phi",
    "likelihood_own": "nothing: the student's own likelihood", "likelihood_other": "nothing: zoo/phi's likelihood",
}  # fmt: skip
_PICKS: Mapping[str, str] = {
    "one": "one draw",
    "majority": "majority of 8",
    "oracle": "any of 8 (pass@8)",
    "same": "best of 8 by the PRM (exact marks, few)",
    "rollouts": "best of 8 by the PRM (Monte-Carlo marks, few)",
    "own": "best of 8 by the PRM (exact marks, the student itself)",
    "other": "best of 8 by the PRM (exact marks, zoo/phi)",
    "likelihood_own": "best of 8 by the student's own likelihood",
    "likelihood_other": "best of 8 by zoo/phi's likelihood",
    "weighted": "vote weighted by the PRM (zoo/phi)",
}


# --- words ------------------------------------------------------------------------------------------------------------


def span(found: Estimate) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def signed(found: Estimate, interval: bool = True) -> str:
    return f"{found.value:+.3f}" + (f" [{found.low:+.3f}, {found.high:+.3f}]" if interval else "")


def _number(value: Any) -> str:
    return "" if value is None else f"{value:,}"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
