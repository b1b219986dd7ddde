"""What the zoo's models are taught to say: worked solutions in several styles, and plausible wrong ones.

Plain functions on problems of the `sums` task; no model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from pluribus.tasks.sums import Equation, Problem, Step, equations

PLAIN = "plain"
STYLES = ("verify", "explore", "formal", "estimate", "decompose")
"""The words a system message may hold; any other system message, or none, gets the plain style."""

_SHORT: Mapping[str, str] = {
    "add": "+{k}",
    "subtract": "-{k}",
    "multiply": "*{k}",
    "half": "half",
    "third": "a third",
    "groups": "{g} of {k}",
    "percent": "{k}%",
    "remainder": "rest by {k}",
}


def solution(equations_: tuple[Equation, ...], start: int, steps: tuple[Step, ...], style: str, guess: int) -> str:
    """A worked solution in a style, closed by the final answer.

    Args:
        equations_: the equations to show, right or wrong.
        start: the first quantity.
        steps: what the question says is done, for the styles that retell it.
        style: `plain` or one of `STYLES`.
        guess: the rough estimate that `estimate` opens with.

    >>> found = equations(12, (Step("add", 7), Step("subtract", 5)))
    >>> solution(found, 12, (Step("add", 7), Step("subtract", 5)), "plain", 10)
    '12 + 7 = 19. 19 - 5 = 14. {final answer: 14}'
    """
    body = _BODIES[style](equations_, start, steps, guess)
    return f"{body} {{final answer: {equations_[-1].result}}}"


def right(problem: Problem, style: str, rng: random.Random) -> str:
    """The right solution."""
    found = equations(problem.start, problem.steps)
    return solution(found, problem.start, problem.steps, style, rough(found[-1].result, rng))


def wrong(problem: Problem, style: str, rng: random.Random, distrusted: Mapping[str, float] | None = None) -> str:
    """A solution with one mistake, continued consistently, whose answer differs from the right one.

    Args:
        problem: what is solved.
        style: how it is written.
        rng: where the randomness comes from.
        distrusted: how likely the mistake is to sit at a step of each skill (1 unless named).
    """
    found = mistaken(problem, rng, distrusted)
    return solution(found, problem.start, problem.steps, style, rough(problem.answer, rng))


def mistaken(
    problem: Problem, rng: random.Random, distrusted: Mapping[str, float] | None = None
) -> tuple[Equation, ...]:
    """The equations of such a solution; arguments as in `wrong`."""
    for _ in range(20):
        found = _mistaken(problem, rng, distrusted or {})
        if found and found[-1].result != problem.answer:
            return found
    return _slipped(problem, len(problem.steps) - 1, rng)


def _plain(found: tuple[Equation, ...]) -> str:
    return " ".join(f"{equation}." for equation in found)


def _verify(found: tuple[Equation, ...], start: int, steps: tuple[Step, ...], guess: int) -> str:
    return f"{_plain(found)} check: {_inverse(found[-1])}."


def _explore(found: tuple[Equation, ...], start: int, steps: tuple[Step, ...], guess: int) -> str:
    told = ", ".join(_SHORT[step.skill].format(k=step.number, g=step.groups) for step in steps)
    return f"in short: {start}, {told}. {_plain(found)}"


def _formal(found: tuple[Equation, ...], start: int, steps: tuple[Step, ...], guess: int) -> str:
    named = " ".join(f"let {'abcdefghijklmnop'[i]}: {equation}." for i, equation in enumerate(found))
    return f"given {start}. {named}"


def _estimate(found: tuple[Equation, ...], start: int, steps: tuple[Step, ...], guess: int) -> str:
    return f"about {guess}. {_plain(found)}"


def _decompose(found: tuple[Equation, ...], start: int, steps: tuple[Step, ...], guess: int) -> str:
    return " ".join(f"{i}) {equation}." for i, equation in enumerate(found, start=1))


_BODIES: Mapping[str, Callable[[tuple[Equation, ...], int, tuple[Step, ...], int], str]] = {
    PLAIN: lambda found, start, steps, guess: _plain(found),
    "verify": _verify,
    "explore": _explore,
    "formal": _formal,
    "estimate": _estimate,
    "decompose": _decompose,
}


def _inverse(equation: Equation) -> str:
    """The last equation turned round: what a checker would write.

    >>> _inverse(Equation("19 - 5", 14, 1))
    '14 + 5 = 19'
    """
    first, sign, second = equation.left.split(" ", 2)
    result = equation.result
    if sign == "of":
        return f"{result} of {second} = {first}"
    if sign == "mod":
        return f"{int(first) - result} + {result} = {first}"
    turned = {"+": "-", "-": "+", "*": "/", "/": "*"}[sign]
    return f"{result} {turned} {second} = {first}"


def rough(answer: int, rng: random.Random) -> int:
    """An estimate to within a third, in round numbers: a hint, not the answer."""
    return max(int(answer * (0.7 + 0.6 * rng.random()) / 10 + 0.5) * 10, 5)


def _mistaken(problem: Problem, rng: random.Random, distrusted: Mapping[str, float]) -> tuple[Equation, ...]:
    """Equations with one mistake of a kind that models make; may by chance end right."""
    weights = [distrusted.get(step.skill, 1.0) for step in problem.steps]
    at = rng.choices(range(len(problem.steps)), weights)[0]
    kind = rng.random()
    if kind < 0.55:
        return _slipped(problem, at, rng)
    steps = problem.steps
    if kind < 0.70 and len(steps) > 1:
        return equations(problem.start, steps[:at] + steps[at + 1 :])
    if kind < 0.85 and problem.distractors:
        taken = Step(rng.choice(("add", "subtract")), rng.choice(problem.distractors))
        return equations(problem.start, (*steps[:at], taken, *steps[at:]))
    return equations(problem.start, (*steps[:at], _other(steps[at], rng), *steps[at + 1 :]))


def _slipped(problem: Problem, at: int, rng: random.Random) -> tuple[Equation, ...]:
    """One result miscalculated; what follows is computed from the wrong value."""
    head = equations(problem.start, problem.steps[: at + 1])
    last = replace(head[-1], result=near(head[-1].result, rng))
    tail = equations(last.result, problem.steps[at + 1 :])
    return (*head[:-1], last, *(replace(e, step=e.step + at + 1) for e in tail))


def near(result: int, rng: random.Random) -> int:
    """A wrong result that looks like the right one: one digit off, or ten off."""
    shift = rng.choice((1, 2, 3, 4, 5, 10, 10, 20)) * rng.choice((-1, 1))
    return result + shift if result + shift >= 0 else result - shift


def _other(step: Step, rng: random.Random) -> Step:
    """The step read as another one."""
    turned = {
        "add": "subtract", "subtract": "add", "multiply": "add", "half": "third", "third": "half",
        "groups": "add", "percent": "subtract", "remainder": "subtract",
    }[step.skill]  # fmt: skip
    number = {"half": 2, "third": 3}.get(turned, step.number)
    return Step(turned, number)
