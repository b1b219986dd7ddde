"""One view of the three tasks for lessons and measurements: a question, its working, right and wrong replies.

A `Case` is a drawn problem of `sums`, `logic` or `briefs`. Its replies are worked lines closed by the final answer; a
wrong one holds one mistake of a kind that models make and is consistent after it. Plain functions; no model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pluribus.prompts import dialect, fragment
from pluribus.tasks import briefs, logic, sums
from pluribus.zoo import language

TASKS = ("sums", "logic", "briefs")
STYLES: Mapping[str, tuple[str, ...]] = {
    "sums": language.STYLES,
    "logic": ("formal", "criticise", "eliminate"),
    "briefs": ("risk", "trend", "macro"),
}
"""The words of a system message that change how a task is written down; any other leaves it plain."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A worked reply, right or wrong."""

    text: str
    answer: str
    share: float
    """Leading steps that are right, of all steps of the right solution, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question with everything a lesson says about it."""

    task: str
    question: str
    """As the dialect shows it, options included."""
    answer: str
    skills: tuple[str, ...]
    """One a step of the solution."""
    working: str
    """The right solution in the plain style, without the final answer."""
    write: Callable[[str, random.Random], str]
    """The right reply in a style."""
    mistake: Callable[[str, random.Random, Mapping[str, float]], Reply]
    """A wrong reply in a style, its mistake rather at the skills with a large weight (1 unless named)."""

    def right(self, style: str, rng: random.Random) -> Reply:
        return Reply(self.write(style, rng), self.answer, 1.0)


def case(task: str, problem: sums.Problem | logic.Problem | briefs.Problem) -> Case:
    """The case of a task's problem.

    >>> found = case("sums", sums.problem("test", 0))
    >>> found.right("plain", random.Random(0)).text == f"{found.working} {{final answer: {found.answer}}}"
    True
    """
    if isinstance(problem, sums.Problem):
        return _sums(problem)
    return _logic(problem) if isinstance(problem, logic.Problem) else _briefs(problem)


def draw(
    rng: random.Random, task: str, rates: Mapping[str, float], sums_lengths: Mapping[int, float] = sums.STEPS
) -> Case:
    """A training case of a task; `rates` as in the task's own `draw`."""
    if task == "sums":
        return _sums(sums.draw(rng, "train", rates, sums_lengths))
    if task == "logic":
        return _logic(logic.draw(rng, "train", rates))
    return _briefs(briefs.draw(rng, "train", rates))


def take(task: str, split: str, index: int) -> Case:
    """Question `index` of a task's split as a case."""
    module = {"sums": sums, "logic": logic, "briefs": briefs}[task]
    return case(task, module.problem(split, index))


def closed(body: str, answer: str) -> str:
    """
    >>> closed("1 + 1 = 2.", "2")
    '1 + 1 = 2. {final answer: 2}'
    """
    return f"{body} {{final answer: {answer}}}"


def leading(found: Sequence[object], right: Sequence[object]) -> float:
    """Share of the right lines that a working begins with, in [0, 1].

    >>> leading(["a", "b", "x"], ["a", "b", "c", "d"])
    0.5
    """
    count = 0
    for mine, theirs in zip(found, right, strict=False):
        if mine != theirs:
            break
        count += 1
    return count / len(right)


def _sums(problem: sums.Problem) -> Case:
    right = sums.equations(problem.start, problem.steps)

    def mistake(style: str, rng: random.Random, distrusted: Mapping[str, float]) -> Reply:
        found = language.mistaken(problem, rng, distrusted)
        text = language.solution(found, problem.start, problem.steps, style, language.rough(problem.answer, rng))
        return Reply(text, str(found[-1].result), leading([str(e) for e in found], [str(e) for e in right]))

    return Case(
        task="sums",
        question=problem.text,
        answer=str(problem.answer),
        skills=tuple(step.skill for step in problem.steps),
        working=" ".join(f"{equation}." for equation in right),
        write=lambda style, rng: language.right(problem, style, rng),
        mistake=mistake,
    )


def _logic(problem: logic.Problem) -> Case:
    words = dialect("zoo")
    options = (
        fragment(words, "choice", letter=letter, text=text)
        for letter, text in zip(logic.LETTERS, problem.choices, strict=True)
    )

    def mistake(style: str, rng: random.Random, distrusted: Mapping[str, float]) -> Reply:
        wrong = rng.choice([i for i in range(len(problem.choices)) if i != problem.right])
        # one time in six the thought is right and the letter is not
        steps = problem.steps if rng.random() < 1 / 6 else problem.slips[wrong]
        text = _reason(problem, steps, wrong, style)
        return Reply(text, logic.LETTERS[wrong], min(leading(steps, problem.steps), 0.8))

    return Case(
        task="logic",
        question="\n".join((problem.text, *options)),
        answer=problem.answer,
        skills=problem.skills,
        working=_lines(problem, problem.steps, problem.right),
        write=lambda style, rng: _reason(problem, problem.steps, problem.right, style),
        mistake=mistake,
    )


def _lines(problem: logic.Problem, steps: Sequence[str], option: int) -> str:
    """The steps, what they come to in the words of an option, and the letter that stands behind those words."""
    found = f"{_conclusion(problem, steps[-2:])}: {logic.LETTERS[option]}."
    if problem.kind == "syllogism":
        return f"is {', '.join(steps)}. {found}"
    return f"{'. '.join(steps)}. {found}"


def _conclusion(problem: logic.Problem, last: Sequence[str]) -> str:
    if problem.kind == "syllogism":
        noun = last[-1].removeprefix("not ")
        return f"{problem.choices[0].split()[0]} is {'not ' if noun != last[-1] else ''}a {noun}"
    return ", ".join(f"{step.split(':')[0]} {step.rpartition(' ')[2]}" for step in last)


def _reason(problem: logic.Problem, steps: Sequence[str], option: int, style: str) -> str:
    letter = logic.LETTERS[option]
    body = _lines(problem, steps, option)
    if style == "formal":
        numbered = " ".join(f"{i}) {step}." for i, step in enumerate(steps, start=1))
        body = f"{numbered} {_conclusion(problem, steps[-2:])}: {letter}."
    if style == "criticise":
        body = f"{body} check: {steps[-1]}."
    if style == "eliminate":
        body = f"{body} not {', '.join(other for other in logic.LETTERS if other != letter)}."
    return closed(body, letter)


def _briefs(problem: briefs.Problem) -> Case:
    right = _entries([(s.noun, s.points) for s in problem.signals])

    def mistake(style: str, rng: random.Random, distrusted: Mapping[str, float]) -> Reply:
        for _ in range(20):
            entries = _misread(problem, rng, distrusted)
            answer = briefs.label(entries[-1][2]) if entries else problem.answer
            if answer != problem.answer:
                break
        else:
            entries, answer = right, rng.choice([label for label in briefs.LABELS if label != problem.answer])
        return Reply(_sum_up(entries, answer, style), answer, min(leading(entries, right), 0.8))

    return Case(
        task="briefs",
        question=problem.text,
        answer=problem.answer,
        skills=tuple(signal.noun for signal in problem.signals),
        working=_tally(right),
        write=lambda style, rng: _sum_up(right, problem.answer, style),
        mistake=mistake,
    )


Entry = tuple[str, int, int]
"""A noun, its points, the sum so far."""


def _entries(points: Sequence[tuple[str, int]], slip_at: int | None = None, slip: int = 0) -> list[Entry]:
    total = 0
    out = []
    for index, (noun, value) in enumerate(points):
        total += value + (slip if index == slip_at else 0)
        out.append((noun, value, total))
    return out


def _misread(problem: briefs.Problem, rng: random.Random, distrusted: Mapping[str, float]) -> list[Entry]:
    """One signal taken the wrong way round, left out, or added up wrongly; the label may by chance be right."""
    points = [(s.noun, s.points) for s in problem.signals]
    at = rng.choices(range(len(points)), [distrusted.get(noun, 1.0) for noun, _ in points])[0]
    kind = rng.random()
    if kind < 0.6:
        return _entries([(noun, -value if i == at else value) for i, (noun, value) in enumerate(points)])
    if kind < 0.75:
        return _entries(points[:at] + points[at + 1 :])
    return _entries(points, at, rng.choice((-6, -4, -3, -2, -1, 1, 2, 3, 4, 6)))


def _tally(entries: Sequence[Entry]) -> str:
    return " ".join(f"{noun} {value:+d}: {total}." for noun, value, total in entries)


def _sum_up(entries: Sequence[Entry], answer: str, style: str) -> str:
    body = _tally(entries)
    if style == "risk":
        bad = ", ".join(noun for noun, value, _ in entries if value < 0)
        body = f"bad: {bad or 'none'}. {body}"
    if style == "trend":
        good = sum(value > 0 for _, value, _ in entries)
        body = f"up {good}, down {len(entries) - good}. {body}"
    if style == "macro":
        body = " ".join(f"{i}) {noun} {value:+d}: {total}." for i, (noun, value, total) in enumerate(entries, start=1))
    return closed(body, answer)
