"""Seeded word problems about a changing heap of things: two to six steps, integer answers, some idle sentences.

Source: made by this module; there is no file. Question `i` of a split is a pure function of (split, i), the same on
every machine. Splits are disjoint by a hash of the sum itself (its start, steps and operands), so no sum that was
trained on comes back in other words. A question holds no solution: `problem(split, i)` gives the steps and
`equations(problem)` the worked solution to whoever may see them (the key, a step checker, the zoo's recipe).

Eight skills: add, subtract, multiply, half, third, groups (boxes of things), percent, remainder.

Tests of what was learned: `longer` has 7 and 8 steps and `distracted` three and four idle sentences, which no other
question has; `mixed` are the questions that hold both skills of one of the `PAIRS`, `unmixed` those that hold none of
them: who trains on `unmixed` alone has met every skill and never these together.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from pluribus.errors import UnknownName
from pluribus.tasks._worked import marks
from pluribus.types import Key, Question

SPLITS = ("train", "dev", "test")
DEFAULT_SPLIT = "test"
SUBSETS = ("2", "3", "4", "5", "6", "longer", "distracted", "mixed", "unmixed")
"""A number of steps, a stream of its own, or what is mixed; see above."""
FAMILY = "mathematics"
SIZES: Mapping[str, int] = {"train": 1 << 40, "dev": 2_000, "test": 5_000}
SKILLS = ("add", "subtract", "multiply", "half", "third", "groups", "percent", "remainder")

LARGEST = 250
"""No quantity on the way passes this."""
STEPS: Mapping[int, float] = {2: 0.10, 3: 0.20, 4: 0.30, 5: 0.25, 6: 0.15}
DISTRACTORS: Mapping[int, float] = {0: 0.60, 1: 0.28, 2: 0.12}
STREAMS: Mapping[str, tuple[Mapping[int, float], Mapping[int, float]]] = {
    "longer": ({7: 0.5, 8: 0.5}, DISTRACTORS),
    "distracted": (STEPS, {3: 0.5, 4: 0.5}),
}
"""Subsets that are drawn on their own: weights of the numbers of steps, and of idle sentences."""
PAIRS = (frozenset({"subtract", "percent"}), frozenset({"groups", "third"}), frozenset({"half", "remainder"}))
"""Skills that never meet in an `unmixed` question; 33 % of all questions are mixed."""
PERCENTS = (20, 25, 40, 60, 75, 80)

# A third is whole one time in three, a half one time in two: without these counterweights they would be rare.
COMMONNESS: Mapping[str, float] = {
    "add": 1.0, "subtract": 1.1, "multiply": 1.1, "half": 1.8,
    "third": 3.0, "groups": 0.9, "percent": 2.8, "remainder": 1.1,
}  # fmt: skip

_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "half": "/", "third": "/", "remainder": "mod"}
_BUCKETS: Mapping[str, range] = {"test": range(1), "dev": range(1, 2), "train": range(2, 8)}
_NAMES = (
    "Ann", "Ben", "Cara", "Dan", "Eve", "Finn", "Gina", "Hugo", "Ida", "Jack",
    "Kim", "Leo", "Mia", "Ned", "Olga", "Paul", "Rosa", "Sam", "Tom", "Uma",
)  # fmt: skip
_ITEMS = (
    "apples", "coins", "books", "pens", "stamps", "shells", "cards", "beads", "eggs", "marbles", "plums", "nuts",
)  # fmt: skip
_OPENINGS = ("{n} has {k} {i}.", "{n} starts with {k} {i}.", "There are {k} {i} on the table of {n}.")
_ENDINGS = ("How many {i} does {n} have now?", "How many {i} are left?", "How many {i} are there in the end?")
_IDLE = (
    "{o} has {k} {j}.",
    "{n} is {k} years old.",
    "{o} buys {k} {j}.",
    "The walk home takes {k} minutes.",
    "Each of the {i} weighs {k} grams.",
)
_WORDING: Mapping[str, tuple[str, ...]] = {
    "add": ("{n} buys {k} more.", "{n} finds {k} more {i}.", "A friend gives {n} {k} {i}.", "Then {k} {i} arrive."),
    "subtract": ("{n} loses {k}.", "{n} gives {k} {i} away.", "{n} sells {k} of them.", "Then {k} {i} break."),
    "multiply": (
        "The number of {i} grows to {k} times as many.",
        "{n} now makes it {k} times as many.",
        "Then there are {k} times as many.",
    ),
    "half": ("{n} gives half of the {i} away.", "Half of them break.", "{n} keeps only half."),
    "third": ("{n} keeps only a third.", "Only a third of the {i} stay.", "{n} keeps one of every three."),
    "groups": (
        "{n} gets {g} boxes of {k} {i}.",
        "Then {g} bags with {k} {i} each arrive.",
        "{n} buys {g} packs of {k}.",
    ),
    "percent": ("{n} keeps {k} percent of them.", "Only {k} percent of the {i} stay.", "Then {k} percent are kept."),
    "remainder": (
        "{n} packs them in boxes of {k} and keeps what is left over.",
        "Full crates of {k} are sent off, the rest stay.",
        "{n} shares them out evenly among {k} friends and keeps the rest.",
    ),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the heap."""

    skill: str
    number: int
    """The operand: 2 for `half`, 3 for `third`, the size of one group for `groups`."""
    groups: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its solution: for keys, step checkers and training text, never for a solver."""

    text: str
    start: int
    steps: tuple[Step, ...]
    distractors: tuple[int, ...]
    """Numbers that stand in the text and play no part."""

    @property
    def answer(self) -> int:
        return equations(self.start, self.steps)[-1].result


@dataclass(frozen=True, slots=True)
class Equation:
    """`left = result`, and which step it belongs to."""

    left: str
    result: int
    step: int

    def __str__(self) -> str:
        return f"{self.left} = {self.result}"


def load(split: str, *, data: Path | None = None, subset: str | None = None) -> Iterator[tuple[Question, Key]]:
    """Questions in order, made as they are asked for; `train` goes on for ever, take what is needed.

    Args:
        split: train, dev (2,000) or test (5,000).
        data: not used; there is no file.
        subset: only questions with this many steps, `"2"` to `"6"`, or one of the tests named above.

    >>> question, key = next(load("test"))
    >>> question.id, question.kind, key.answer == str(problem("test", 0).answer)
    ('sums/test/0', 'number', True)
    """
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    if subset is not None and subset not in SUBSETS:
        raise UnknownName("subset", subset, SUBSETS)
    return _load(split, subset)


@lru_cache(maxsize=1 << 14)
def problem(split: str, index: int, stream: str | None = None) -> Problem:
    """Question `index` of a split, or of the split of a stream such as `longer`, with its solution."""
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    if stream is not None and stream not in STREAMS:
        raise UnknownName("stream", stream, STREAMS)
    if not 0 <= index < SIZES[split]:
        raise IndexError(f"sums has {SIZES[split]} {split} questions, no number {index}")
    if stream is None:
        return draw(random.Random(seed_of("sums", split, index)), split)
    lengths, idle = STREAMS[stream]
    return draw(random.Random(seed_of("sums", stream, split, index)), split, None, lengths, idle)


def draw(
    rng: random.Random,
    split: str,
    rates: Mapping[str, float] | None = None,
    lengths: Mapping[int, float] = STEPS,
    idle: Mapping[int, float] = DISTRACTORS,
) -> Problem:
    """One problem of a split.

    Args:
        rng: where the randomness comes from.
        split: the split the sum must belong to.
        rates: how often each skill comes up, relative to its normal rate of 1.
        lengths: number of steps → its weight.
        idle: number of idle sentences → its weight.
    """
    skills = tuple(
        accumulate(COMMONNESS[skill] * (1.0 if rates is None else rates.get(skill, 1.0)) for skill in SKILLS)
    )
    counts, often = tuple(lengths), tuple(accumulate(lengths.values()))
    bucket = _BUCKETS[split]
    while True:
        start, steps = _structure(rng, skills, counts[_drawn(rng, often)])
        if _bucket(start, steps) in bucket:
            return _word(rng, start, steps, idle)


def check_steps(question: Question, key: Key, steps: Sequence[str]) -> list[bool | None]:
    """Whether all that is said up to the end of each step lies on the solution's path; after a slip nothing does.

    The equations of a reply must be those of the key's solution, in order, with their results. A factor or a summand
    may stand on the other side, and an equation may be said again. Behind "check:" any true equation may stand. A step
    without an equation is as good as what came before it, and a final answer must be the right one besides.

    Returns:
        One entry per step; None where it can not be said, such as behind an equation of another form.

    >>> question, key = next(load("test"))
    >>> key.solution
    '30 + 5 = 35. 35 + 41 = 76.'
    >>> check_steps(question, key, ("5 + 30 = 35.", "35 + 41 = 66.", "{final answer: 66}"))
    [True, False, False]
    """
    return marks(question, key, steps)


def is_mixed(steps: Sequence[Step]) -> bool:
    """Whether both skills of one of the `PAIRS` are needed."""
    skills = {step.skill for step in steps}
    return any(pair <= skills for pair in PAIRS)


def equations(start: int, steps: tuple[Step, ...]) -> tuple[Equation, ...]:
    """The worked solution; `groups` takes two equations, every other step one.

    >>> [str(e) for e in equations(12, (Step("add", 7), Step("groups", 4, 3), Step("percent", 25)))]
    ['12 + 7 = 19', '3 * 4 = 12', '19 + 12 = 31', '25% of 31 = 7']
    """
    out: list[Equation] = []
    value = start
    for index, step in enumerate(steps):
        if step.skill == "groups":
            out.append(Equation(f"{step.groups} * {step.number}", step.groups * step.number, index))
        left, value = _left(value, step), _result(value, step)
        out.append(Equation(left, value, index))
    return tuple(out)


def seed_of(*parts: object) -> int:
    """A seed that is the same on every machine, unlike `hash`.

    >>> seed_of("sums", "test", 0) == seed_of("sums", "test", 0) != seed_of("sums", "test", 1)
    True
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _load(split: str, subset: str | None) -> Iterator[tuple[Question, Key]]:
    stream = subset if subset in STREAMS else None
    place = f"sums/{split}" if stream is None else f"sums/{stream}/{split}"
    for index in range(SIZES[split]):
        found = problem(split, index, stream)
        if subset is None or _belongs(found, subset):
            yield _record(f"{place}/{index}", found)


def _belongs(found: Problem, subset: str) -> bool:
    if subset in ("mixed", "unmixed"):
        return is_mixed(found.steps) == (subset == "mixed")
    return subset in STREAMS or len(found.steps) == int(subset)


def _record(id: str, found: Problem) -> tuple[Question, Key]:
    question = Question(
        id=id,
        task="sums",
        text=found.text,
        kind="number",
        metadata={
            "steps": len(found.steps),
            "skills": [step.skill for step in found.steps],
            "distractors": len(found.distractors),
        },
    )
    worked = " ".join(f"{equation}." for equation in equations(found.start, found.steps))
    return question, Key(question.id, str(found.answer), solution=worked)


def _result(value: int, step: Step) -> int:
    """Whole numbers throughout: a value that does not divide is rounded down, as happens only after somebody's earlier
    mistake."""
    k = step.number
    match step.skill:
        case "add":
            return value + k
        case "subtract":
            return max(value - k, 0)
        case "multiply":
            return value * k
        case "half" | "third":
            return value // (2 if step.skill == "half" else 3)
        case "groups":
            return value + step.groups * k
        case "percent":
            return value * k // 100
        case _:
            return value % k


def _left(value: int, step: Step) -> str:
    """Left side of a step's equation."""
    if step.skill == "groups":
        return f"{value} + {step.groups * step.number}"
    if step.skill == "percent":
        return f"{step.number}% of {value}"
    return f"{value} {_SIGNS[step.skill]} {step.number}"


def _pick(rng: random.Random, low: int, high: int) -> int | None:
    """A whole number from low to high, both included; None when there is none."""
    return low + int(rng.random() * (high - low + 1)) if high >= low else None


def _change(rng: random.Random, skill: str, value: int) -> int | None:
    """An operand for this skill at this value; None when there is none."""
    if skill == "add":
        return _pick(rng, 3, min(60, LARGEST - value))
    if skill == "subtract":
        return _pick(rng, 2, min(60, value - 2))
    if skill == "multiply":
        return _pick(rng, 2, min(5, LARGEST // value))
    return _division(rng, skill, value)


def _division(rng: random.Random, skill: str, value: int) -> int | None:
    if skill == "half":
        return 2 if value % 2 == 0 and value >= 16 else None
    if skill == "third":
        return 3 if value % 3 == 0 and value >= 21 else None
    if skill == "percent":
        whole = [percent for percent in PERCENTS if value * percent % 100 == 0 and value >= 20]
        return whole[int(rng.random() * len(whole))] if whole else None
    size = _pick(rng, 5, min(12, value - 2))
    return size if size is not None and value % size >= 2 else None


def _step(rng: random.Random, skill: str, value: int) -> Step | None:
    if skill == "groups":
        groups = 2 + int(rng.random() * 8)
        size = _pick(rng, 2, min(9, (LARGEST - value) // groups))
        return Step(skill, size, groups) if size is not None else None
    number = _change(rng, skill, value)
    return Step(skill, number) if number is not None else None


def _drawn(rng: random.Random, sums: Sequence[float]) -> int:
    """A place, drawn by weights whose running sums these are; what `random.choices` draws, without its set-up."""
    return bisect(sums, rng.random() * (sums[-1] + 0.0), 0, len(sums) - 1)


def _structure(rng: random.Random, skills: Sequence[float], count: int) -> tuple[int, tuple[Step, ...]]:
    start = value = 6 + int(rng.random() * 94)
    steps: list[Step] = []
    while len(steps) < count:
        step = _step(rng, SKILLS[_drawn(rng, skills)], value)
        if step is not None:
            steps.append(step)
            value = _result(value, step)
    return start, tuple(steps)


def _bucket(start: int, steps: tuple[Step, ...]) -> int:
    return seed_of(start, *((step.skill, step.number, step.groups) for step in steps)) % 8


def _word(rng: random.Random, start: int, steps: tuple[Step, ...], amounts: Mapping[int, float]) -> Problem:
    name, other = rng.sample(_NAMES, 2)
    item, thing = rng.sample(_ITEMS, 2)
    idle = rng.choices(list(amounts), list(amounts.values()))[0]
    words = {"n": name, "o": other, "i": item, "j": thing}
    sentences = [_say(rng, _WORDING[step.skill], words, step.number, step.groups) for step in steps]
    numbers = tuple(2 + int(rng.random() * 88) for _ in range(idle))
    for number in numbers:
        sentences.insert(int(rng.random() * (len(sentences) + 1)), _say(rng, _IDLE, words, number))
    opening = _say(rng, _OPENINGS, words, start)
    ending = _say(rng, _ENDINGS, words, start)
    return Problem(" ".join((opening, *sentences, ending)), start, steps, numbers)


def _say(rng: random.Random, forms: tuple[str, ...], words: Mapping[str, str], number: int, groups: int = 1) -> str:
    return forms[int(rng.random() * len(forms))].format(k=number, g=groups, **words)
