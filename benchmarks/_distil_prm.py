"""How good a process reward model is: its steps against exact ones, and what it picks. Private to `distil.py`."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _distil_measure import Asked, Pair, step_scores
from pluribus.answers import read
from pluribus.steps import split_steps
from pluribus.tasks import load_task
from pluribus.tasks.sums import check_steps, problem
from pluribus.zoo import language

Floats = NDArray[np.float64]


def auroc(score_N: Floats, good_N: NDArray[np.bool_], cluster_N: NDArray[np.int64], seed: int = 0) -> list[float]:
    """Chance that a good one stands above a bad one, ties half; with its interval by resampling questions."""
    order = np.argsort(score_N, kind="stable")
    score_N, good_N, cluster_N = score_N[order], good_N[order], cluster_N[order]
    starts = np.flatnonzero(np.r_[True, np.diff(score_N) > 0])
    n = int(cluster_N.max()) + 1
    drawn_B_Q = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=1_000)
    weights = [np.ones(len(score_N)), *(one[cluster_N] for one in drawn_B_Q)]
    values = np.array([_weighted_auroc(weight.astype(np.float64), good_N, starts) for weight in weights])
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return [float(values[0]), float(low), float(high)]


def _weighted_auroc(weight_N: Floats, good_N: NDArray[np.bool_], starts: NDArray[np.int64]) -> float:
    good_G = np.add.reduceat(weight_N * good_N, starts)
    bad_G = np.add.reduceat(weight_N * ~good_N, starts)
    below_G = np.cumsum(bad_G) - bad_G
    whole = good_G.sum() * bad_G.sum()
    return float((good_G * (below_G + bad_G / 2)).sum() / whole) if whole else float("nan")


def quality(model: str, pairs: Sequence[Pair], draws: Sequence[Asked]) -> dict[str, Any]:
    """A model's marks of replies to held-out questions, against the task's own checker of steps."""
    asked = [(at, draw.texts[at]) for draw in draws for at in range(len(pairs))]
    scores = step_scores(model, [(pairs[at][0], text) for at, text in asked])
    step_score, step_good, step_question = list[float](), list[bool](), list[int]()
    for (at, text), said in zip(asked, scores, strict=True):
        question, key = pairs[at]
        steps = split_steps(text)
        exact = check_steps(question, key, steps)
        if len(steps) != sum(name.startswith("step ") for name in said):
            continue
        for number, good in enumerate(exact, 1):
            if good is not None:
                step_score.append(said[f"step {number}"])
                step_good.append(good)
                step_question.append(at)
    right = [draw.verdicts[at] == "1" for draw in draws for at in range(len(pairs))]
    least = [said.get("min", float("nan")) for said in scores]
    known = [i for i, value in enumerate(least) if value == value]
    return {
        "step_auroc": auroc(np.array(step_score), np.array(step_good), np.array(step_question)),
        "answer_auroc": auroc(
            np.array(least)[known], np.array(right)[known], np.array([at for at, _ in asked])[known]
        ),
        "steps": len(step_score),
        "good": float(np.mean(step_good)),
        "unmarked": len(asked) - len(known),
        "scores": [[round(least[d * len(pairs) + q], 5) for q in range(len(pairs))] for d in range(len(draws))],
    }  # fmt: skip


def compared(told: Path, exact: Path) -> dict[str, Any]:
    """Monte-Carlo marks of steps against exact ones of the same replies; the AUROC of a yes or no is the mean of the
    shares of good and of bad steps that are marked so."""
    marks = {(row["attempt"], row["turn"]): row for row in _rows(exact)}
    found = [(row["labels"], marks[row["attempt"], row["turn"]]) for row in _rows(told)
             if (row["attempt"], row["turn"]) in marks]  # fmt: skip
    same = [(said, row) for said, row in found if len(said) == len(row["labels"])]
    said_N = np.array([one for said, _ in same for one in said], dtype=np.float64)
    good_N = np.array([one for _, row in same for one in row["labels"]], dtype=bool)
    names = {name: i for i, name in enumerate(dict.fromkeys(row["question_id"] for _, row in same))}
    question_N = np.array([names[row["question_id"]] for _, row in same for _ in row["labels"]])
    return {
        "auroc": auroc(said_N, good_N, question_N), "accuracy": float((said_N == good_N).mean()),
        "steps": len(said_N), "replies": len(same), "called_good": float(said_N.mean()), "good": float(good_N.mean()),
        "missed": float(1 - said_N[good_N].mean()), "wrongly_good": float(said_N[~good_N].mean()),
    }  # fmt: skip


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def write_planted(out: Path, exact: Path, train: tuple[str, str], first: int, n: int, seed: int = 0) -> int:
    """Rows of `exact` and, in a drawn order with them, a right and a mistaken solution to each of n new questions."""
    rng = random.Random(seed)
    rows = [{name: row[name] for name in _COLUMNS} for row in _rows(exact)]
    for question, key in load_task(train[0], train[1], limit=first + n).pairs[first:]:
        found = problem(train[1], int(question.id.rpartition("/")[2]))
        for text in (language.right(found, language.PLAIN, rng), language.wrong(found, language.PLAIN, rng)):
            steps = split_steps(text)
            marks = check_steps(question, key, steps) if key is not None else [None]
            if None not in marks:
                rows.append({
                    "prompt": question.text, "completions": list(steps), "labels": marks,
                    "question_id": question.id, "task": "sums", "correct": marks[-1],
                })  # fmt: skip
    rng.shuffle(rows)
    out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return len(rows)


_COLUMNS = ("prompt", "completions", "labels", "question_id", "task", "correct")


def best_of(
    pairs: Sequence[Pair], draws: Sequence[Asked], scores: Mapping[str, Sequence[Sequence[float]]]
) -> dict[str, Any]:
    """Credit per question of one draw, the majority (ties shared), each model's best, its weighted vote, and any."""
    right_K_Q = np.array([[mark == "1" for mark in draw.verdicts] for draw in draws], dtype=np.float64)
    answers = [[read(question, draw.texts[at]) for draw in draws] for at, (question, _) in enumerate(pairs)]
    found: dict[str, list[float]] = {
        "one": right_K_Q.mean(axis=0).tolist(),
        "majority": [_vote(said, right_K_Q[:, at], np.ones(len(draws))) for at, said in enumerate(answers)],
        "oracle": right_K_Q.max(axis=0).tolist(),
    }
    for name, score_K_Q in scores.items():
        score = np.nan_to_num(np.array(score_K_Q), nan=-1.0)
        found[name] = [float(right_K_Q[score[:, at] == score[:, at].max(), at].mean()) for at in range(len(pairs))]
    if "exact" in scores:
        weight = np.nan_to_num(np.array(scores["exact"]), nan=0.0)
        found["weighted"] = [_vote(said, right_K_Q[:, at], weight[:, at]) for at, said in enumerate(answers)]
    return {"columns": list(found), **found}


def _vote(said: Sequence[str | None], right_K: Floats, weight_K: Floats) -> float:
    """Credit of the heaviest answer; several as heavy share it; no answer at all is wrong."""
    votes: Counter[str] = Counter()
    for answer, weight in zip(said, weight_K, strict=True):
        if answer is not None:
            votes[answer] += float(weight)
    if not votes:
        return 0.0
    top = max(votes.values())
    leaders = [answer for answer, count in votes.items() if count >= top - 1e-12]
    credit = {answer: good for answer, good in zip(said, right_K, strict=True) if answer is not None}
    return float(np.mean([credit[answer] for answer in leaders]))
