"""How good a process reward model is: its steps against exact ones, and what it picks. Private to `distil.py`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _distil_measure import Asked, Pair, least_logprobs, step_scores
from pluribus.answers import read
from pluribus.steps import split_steps
from pluribus.tasks.sums import check_steps

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
    asked = _asked(pairs, draws)
    scores = step_scores(model, [(pairs[at][0], text) for at, text in asked])
    steps = [[value for name, value in said.items() if name.startswith("step ")] for said in scores]
    return _against_exact(pairs, draws, steps, [said.get("min", float("nan")) for said in scores])


def likelihood(model: str, pairs: Sequence[Pair], draws: Sequence[Asked]) -> dict[str, Any]:
    """The same of the least log-probability of a token so far, by a model that was taught no marks."""
    asked = _asked(pairs, draws)
    steps = least_logprobs(model, [(pairs[at][0], text) for at, text in asked])
    return _against_exact(pairs, draws, steps, [said[-1] if said else float("nan") for said in steps])


def _asked(pairs: Sequence[Pair], draws: Sequence[Asked]) -> list[tuple[int, str]]:
    return [(at, draw.texts[at]) for draw in draws for at in range(len(pairs))]


def _against_exact(
    pairs: Sequence[Pair], draws: Sequence[Asked], steps: Sequence[Sequence[float]], least: Sequence[float]
) -> dict[str, Any]:
    """Args:
    steps: for each draw and question a score of each step; a reply with another number of them is left out.
    least: for each a score of the whole; NaN: none.
    """
    asked = _asked(pairs, draws)
    score, good, question, place = list[float](), list[bool](), list[int](), list[int]()
    for (at, text), said in zip(asked, steps, strict=True):
        exact = check_steps(*pairs[at], split_steps(text))
        if len(exact) != len(said):
            continue
        for number, (value, is_good) in enumerate(zip(said, exact, strict=True)):
            if is_good is not None:
                score.append(value)
                good.append(is_good)
                question.append(at)
                place.append(number)
    right = [draw.verdicts[at] == "1" for draw in draws for at in range(len(pairs))]
    known = [i for i, value in enumerate(least) if value == value]
    return {
        "step_auroc": auroc(np.array(score), np.array(good), np.array(question)),
        "same_place": same_place(np.array(score), np.array(good), np.array(question), np.array(place)),
        "answer_auroc": auroc(
            np.array(least)[known], np.array(right)[known], np.array([at for at, _ in asked])[known]
        ),
        "steps": len(score),
        "good": float(np.mean(good)),
        "unmarked": len(asked) - len(known),
        "scores": [[round(least[d * len(pairs) + q], 5) for q in range(len(pairs))] for d in range(len(draws))],
    }  # fmt: skip


def same_place(
    score_N: Floats, good_N: NDArray[np.bool_], question_N: NDArray[np.int64], place_N: NDArray[np.int64], seed: int = 0
) -> list[float]:
    """Chance that a good step stands above a bad one in the same place of another reply to the same question, ties
    half: what tells replies apart, where `auroc` also sees which questions are hard and which steps are late."""
    n = int(question_N.max()) + 1
    ahead_Q, pairs_Q = np.zeros(n), np.zeros(n)
    for key in set(zip(question_N.tolist(), place_N.tolist(), strict=True)):
        at = (question_N == key[0]) & (place_N == key[1])
        apart = score_N[at & good_N][:, None] - score_N[at & ~good_N]
        ahead_Q[key[0]] += (apart > 0).sum() + (apart == 0).sum() / 2
        pairs_Q[key[0]] += apart.size
    drawn_B_Q = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=1_000)
    low, high = np.nanquantile((drawn_B_Q @ ahead_Q) / (drawn_B_Q @ pairs_Q), [0.025, 0.975])
    return [float(ahead_Q.sum() / pairs_Q.sum()), float(low), float(high)]


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
        score = np.nan_to_num(np.array(score_K_Q), nan=-np.inf, neginf=-np.inf)
        found[name] = [float(right_K_Q[score[:, at] == score[:, at].max(), at].mean()) for at in range(len(pairs))]
    if "other" in scores:
        weight = np.nan_to_num(np.array(scores["other"]), nan=0.0)
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
