"""The arithmetic of the zoo's measurements: plain functions on replies and keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pluribus.tasks import sums
from pluribus.zoo.cases import Case
from pluribus.zoo.play import tag

Texts = Sequence[str]


def rights(texts: Texts, cases: Sequence[Case]) -> list[bool]:
    """Whose final answer is right; a reply without one is not right."""
    return [tag(text, "final answer") == case.answer for text, case in zip(texts, cases, strict=True)]


def accuracy(texts: Texts, cases: Sequence[Case]) -> float:
    """Share of replies whose final answer is right, in [0, 1]."""
    return sum(rights(texts, cases)) / len(cases)


def share(marks: Sequence[bool]) -> float | None:
    """Share of true marks, in [0, 1]; None when there is none to judge by.

    >>> share([True, False]), share([])
    (0.5, None)
    """
    return sum(marks) / len(marks) if marks else None


def unread(texts: Texts, name: str) -> float:
    """Share of replies without `{name: …}`, in [0, 1]."""
    return sum(tag(text, name) is None for text in texts) / len(texts)


def vote(columns: Sequence[Texts], cases: Sequence[Case]) -> float:
    """Accuracy of the plurality over one reply of each column; a shared lead gives 1/t credit when the key is in it."""
    rows = zip(*columns, strict=True)
    return sum(_credit(row, case.answer) for row, case in zip(rows, cases, strict=True)) / len(cases)


def any_right(columns: Sequence[Texts], cases: Sequence[Case]) -> float:
    """Share of questions with a right reply in some column, in [0, 1]."""
    marks = zip(*(rights(texts, cases) for texts in columns), strict=True)
    return sum(any(row) for row in marks) / len(cases)


def balanced(said: Sequence[bool | None], true: Sequence[bool]) -> float:
    """Mean of the shares judged rightly among the true and among the false, in [0, 1]; no verdict counts as wrong.

    >>> balanced([True, True, None], [True, False, False])
    0.5
    """
    parts = [[s is t for s, t in zip(said, true, strict=True) if t is kind] for kind in (True, False)]
    return sum(sum(part) / len(part) for part in parts if part) / sum(bool(part) for part in parts)


def auc(values: Sequence[float | None], true: Sequence[bool]) -> float | None:
    """Chance that a true one's value is above a false one's, ties half, in [0, 1]; None without both kinds.

    Values of None are left out.

    >>> auc([0.9, 0.4, 0.4], [True, True, False])
    0.75
    """
    known = [(value, mark) for value, mark in zip(values, true, strict=True) if value is not None]
    high, low = ([value for value, mark in known if mark is kind] for kind in (True, False))
    if not high or not low:
        return None
    return sum((h > w) + 0.5 * (h == w) for h in high for w in low) / (len(high) * len(low))


def per_skill(texts: Texts, cases: Sequence[Case], problems: Sequence[sums.Problem]) -> dict[str, float]:
    """Share of the steps of sums done right by skill, over those reached without a mistake, in [0, 1]."""
    asked: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for text, problem in zip(texts, problems, strict=True):
        for skill, is_right in _marks(text, problem):
            asked[skill] += 1
            good[skill] += is_right
    return {skill: good[skill] / asked[skill] for skill in sums.SKILLS if asked[skill]}


def _marks(text: str, problem: sums.Problem) -> list[tuple[str, bool]]:
    """(skill, is its closing equation there) for each step, up to and with the first that is not."""
    closing = {e.step: str(e) for e in sums.equations(problem.start, problem.steps)}
    marks = []
    for index, line in closing.items():
        marks.append((problem.steps[index].skill, f" {line}." in f" {text}"))
        if not marks[-1][1]:
            break
    return marks


def _credit(row: Texts, key: str) -> float:
    votes = Counter(found for text in row if (found := tag(text, "final answer")) is not None)
    lead = [each for each, count in votes.items() if count == max(votes.values())]
    return (key in lead) / len(lead) if lead else 0.0
