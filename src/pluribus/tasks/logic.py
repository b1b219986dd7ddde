"""Seeded puzzles of two kinds with four options: chains of syllogisms, and truth values through gates.

Source: made by this module; there is no file. Question `i` of a split is a pure function of (split, i), the same on
every machine. Splits are disjoint by a hash of the rules and what is given (or gates and values), not of their wording.
Exactly one option follows; of a syllogism's others, each is false or can not be known. `problem(split, i)` gives the
solution to whoever may see it (the key, a step checker, the zoo's recipe).

Eight skills: the rules all, only, no and back (from "not a B" and "all A are B" to "not an A"), and the gates and, or,
xor and if; `not` belongs to everybody.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pluribus.errors import UnknownName
from pluribus.tasks._seeded import SPLITS, belongs, seed_of
from pluribus.types import Key, Question

DEFAULT_SPLIT = "test"
SUBSETS = ("syllogism", "gates")
FAMILY = "logic"
SIZES: Mapping[str, int] = {"train": 1 << 40, "dev": 2_000, "test": 5_000}
SKILLS = ("all", "only", "no", "back", "and", "or", "xor", "if")

RULES = SKILLS[:4]
GATES = (*SKILLS[4:], "not")
LENGTHS: Mapping[int, float] = {2: 0.25, 3: 0.35, 4: 0.25, 5: 0.15}
"""Rules or gates that the solution takes."""
LETTERS = "ABCD"

_NOUNS = (
    "wug", "zorp", "blick", "frim", "gorp", "mip", "plon", "trell", "dorn", "vask",
    "poet", "baker", "sailor", "dancer", "farmer", "singer", "painter", "runner",
)  # fmt: skip
_NAMES = ("Tom", "Kim", "Sam", "Mia", "Leo", "Rosa", "Ben", "Ida")
_WORDING: Mapping[str, tuple[str, ...]] = {
    "all": ("All {a}s are {b}s.", "Every {a} is a {b}."),
    "only": ("Only {b}s are {a}s.",),
    "no": ("No {a}s are {b}s.", "No {a} is a {b}."),
}
_TRUTH: Mapping[str, frozenset[tuple[bool, bool]]] = {
    "and": frozenset({(True, True)}),
    "or": frozenset({(True, True), (True, False), (False, True)}),
    "xor": frozenset({(True, False), (False, True)}),
    "if": frozenset({(True, True), (False, True), (False, False)}),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of somebody: that they are, or are not, one of a kind."""

    noun: str
    holds: bool = True

    def __str__(self) -> str:
        return self.noun if self.holds else f"not {self.noun}"


@dataclass(frozen=True, slots=True)
class Gate:
    """`name = left gate right`; `not` has no right side."""

    name: str
    gate: str
    left: str
    right: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {expression(self.gate, self.left, self.right)}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its solution: for keys, step checkers and training text, never for a solver."""

    text: str
    choices: tuple[str, ...]
    right: int
    """The place of the option that follows."""
    skills: tuple[str, ...]
    """One a step of the solution."""
    steps: tuple[str, ...]
    """The worked solution, line by line; a syllogism's first line is what is given."""
    slips: tuple[tuple[str, ...], ...]
    """For each option, the working that ends there: `steps` at the right one, else one with a typical mistake."""

    @property
    def answer(self) -> str:
        return LETTERS[self.right]

    @property
    def kind(self) -> str:
        return "syllogism" if self.skills[0] in RULES else "gates"


def expression(gate: str, left: str, right: str) -> str:
    """
    >>> expression("if", "p", "q"), expression("not", "p", ""), expression("xor", "p", "q")
    ('if p then q', 'not p', 'p xor q')
    """
    if gate == "not":
        return f"not {left}"
    return f"if {left} then {right}" if gate == "if" else f"{left} {gate} {right}"


def load(split: str, *, data: Path | None = None, subset: str | None = None) -> Iterator[tuple[Question, Key]]:
    """Questions in order, made as they are asked for; `train` goes on for ever, take what is needed.

    Args:
        split: train, dev (2,000) or test (5,000).
        data: not used; there is no file.
        subset: only `syllogism` or only `gates`.

    >>> question, key = next(load("test"))
    >>> question.id, question.kind, len(question.choices), key.answer == problem("test", 0).answer
    ('logic/test/0', 'choice', 4, True)
    """
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    if subset is not None and subset not in SUBSETS:
        raise UnknownName("subset", subset, SUBSETS)
    return _load(split, subset)


def problem(split: str, index: int) -> Problem:
    """Question `index` of a split with its solution."""
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    if not 0 <= index < SIZES[split]:
        raise IndexError(f"logic has {SIZES[split]} {split} questions, no number {index}")
    return draw(random.Random(seed_of("logic", split, index)), split)


def draw(
    rng: random.Random, split: str, rates: Mapping[str, float] | None = None, lengths: Mapping[int, float] = LENGTHS
) -> Problem:
    """One problem of a split.

    Args:
        rng: where the randomness comes from.
        split: the split the puzzle must belong to.
        rates: how often each skill comes up, relative to its normal rate of 1.
        lengths: number of steps → its weight.
    """
    made = _syllogism if rng.random() < 0.5 else _gates
    while True:
        count = rng.choices(list(lengths), list(lengths.values()))[0]
        found = made(rng, split, rates or {}, count)
        if found is not None:
            return found


def _load(split: str, subset: str | None) -> Iterator[tuple[Question, Key]]:
    for index in range(SIZES[split]):
        found = problem(split, index)
        if subset in (None, found.kind):
            yield _record(split, index, found)


def _record(split: str, index: int, found: Problem) -> tuple[Question, Key]:
    question = Question(
        id=f"logic/{split}/{index}",
        task="logic",
        text=found.text,
        kind="choice",
        choices=found.choices,
        metadata={"form": found.kind, "steps": len(found.skills), "skills": list(found.skills)},
    )
    return question, Key(question.id, found.answer)


def _syllogism(rng: random.Random, split: str, rates: Mapping[str, float], count: int) -> Problem | None:
    """A walk from what somebody is, rule by rule, to the last thing that follows."""
    nouns = rng.sample(_NOUNS, count + 2)
    first = Fact(nouns[0], rng.random() >= 0.2)
    facts, skills, rules = [first], [], []
    for noun in nouns[1 : count + 1]:
        skill = _rule(rng, facts[-1].holds, rates)
        skills.append(skill)
        rules.append(("all", noun, facts[-1].noun) if skill == "back" else (skill, facts[-1].noun, noun))
        facts.append(Fact(noun, skill in ("all", "only")))
    if not belongs(split, "syllogism", first, tuple(rules)):
        return None
    name, other = rng.sample(_NAMES, 2)
    # a converse that nobody may use: it leads into the chain, not out of it
    trap = ("all", nouns[-1], facts[rng.randrange(len(facts) - 1)].noun)
    said = [_say(rng, rule) for rule in (*rules, trap) if rule is not trap or _idle(facts, trap)]
    rng.shuffle(said)
    told = [*said, _is(name, first) + "."]
    if rng.random() < 0.3:
        told.insert(rng.randrange(len(told) + 1), _is(other, Fact(nouns[-1])) + ".")
    options = _endings(rng, facts, nouns[-1])
    order = rng.sample(range(4), 4)
    slips = tuple(tuple(map(str, options[i])) for i in order)
    return Problem(
        text=f"{' '.join(told)} Which of these must be true?",
        choices=tuple(_is(name, options[i][-1]) for i in order),
        right=order.index(0),
        skills=tuple(skills),
        steps=slips[order.index(0)],
        slips=slips,
    )


def _rule(rng: random.Random, holds: bool, rates: Mapping[str, float]) -> str:
    """From "is not" only `back` leads on, so that the chain is one chain."""
    if not holds:
        return "back"
    open_ = ("all", "only", "no")
    return rng.choices(open_, [rate * rates.get(skill, 1.0) for skill, rate in zip(open_, (1, 1, 0.7), strict=True)])[0]


def _idle(facts: list[Fact], trap: tuple[str, str, str]) -> bool:
    """A trap at a denied noun would be a further step back, not a trap."""
    return next(fact for fact in facts if fact.noun == trap[2]).holds


def _say(rng: random.Random, rule: tuple[str, str, str]) -> str:
    forms = _WORDING[rule[0]]
    return forms[int(rng.random() * len(forms))].format(a=rule[1], b=rule[2])


def _is(name: str, fact: Fact) -> str:
    return f"{name} is {'' if fact.holds else 'not '}a {fact.noun}"


def _endings(rng: random.Random, facts: list[Fact], stranger: str) -> tuple[list[Fact], ...]:
    """Four lines of thought: the right one, a "not" turned round at the end and on the way, a converse."""
    lost = [*facts[:-1], Fact(facts[-1].noun, not facts[-1].holds)]
    at = rng.randrange(len(facts) - 1)
    on_the_way = [*facts[:at], Fact(facts[at].noun, not facts[at].holds)]
    return facts, lost, on_the_way, [*facts[: rng.randrange(1, len(facts))], Fact(stranger, rng.random() < 0.7)]


def _gates(rng: random.Random, split: str, rates: Mapping[str, float], count: int) -> Problem | None:
    """Two truth values through gates; asked for are the last two results together."""
    values = {"p": rng.random() < 0.5, "q": rng.random() < 0.5}
    given = dict(values)
    gates: list[Gate] = []
    for name in "rstuv"[:count]:
        gate = _gate(rng, name, list(values), rates)
        gates.append(gate)
        values[name] = _value(gate, values)
    if not {*SKILLS} & {gate.gate for gate in gates} or not belongs(split, "gates", tuple(given.items()), tuple(gates)):
        return None
    two = [gate.name for gate in gates[-2:]]
    wanted = (values[two[0]], values[two[1]])
    order = rng.sample([(a, b) for a in (True, False) for b in (True, False)], 4)
    told = " ".join(f"{name} is {_word(value)}." for name, value in given.items())
    steps = _worked(gates, given, None)
    slips = tuple(steps if pair == wanted else _slip(gates, given, values, pair) for pair in order)
    return Problem(
        text=f"{told} {' '.join(f'{gate}.' for gate in gates)} Which is right?",
        choices=tuple(f"{two[0]} {_word(a)}, {two[1]} {_word(b)}" for a, b in order),
        right=order.index(wanted),
        skills=tuple(gate.gate for gate in gates),
        steps=steps,
        slips=slips,
    )


def _gate(rng: random.Random, name: str, known: list[str], rates: Mapping[str, float]) -> Gate:
    """A gate on the latest value, so that the chain is one chain, and on an earlier one."""
    kind = rng.choices(GATES, [*(rates.get(gate, 1.0) for gate in GATES[:-1]), 0.7])[0]
    latest, earlier = known[-1], rng.choice(known[:-1])
    if kind == "not":
        return Gate(name, kind, latest)
    return Gate(name, kind, *((latest, earlier) if rng.random() < 0.5 else (earlier, latest)))


def _value(gate: Gate, values: Mapping[str, bool]) -> bool:
    if gate.gate == "not":
        return not values[gate.left]
    return (values[gate.left], values[gate.right]) in _TRUTH[gate.gate]


def _word(value: bool) -> str:
    return "true" if value else "false"


def _worked(gates: list[Gate], given: Mapping[str, bool], flipped: str | None) -> tuple[str, ...]:
    """The lines of the solution, with one result turned round and what follows from it."""
    values = dict(given)
    lines = []
    for gate in gates:
        values[gate.name] = _value(gate, values) ^ (gate.name == flipped)
        shown = expression(gate.gate, _word(values[gate.left]), _word(values[gate.right]) if gate.right else "")
        lines.append(f"{gate.name}: {shown}, {_word(values[gate.name])}")
    return tuple(lines)


def _slip(
    gates: list[Gate], given: Mapping[str, bool], values: Mapping[str, bool], wanted: tuple[bool, bool]
) -> tuple[str, ...]:
    """A working with one result turned round that reaches the wanted pair; else two turned round at the end."""
    for gate in gates:
        lines = _worked(gates, given, gate.name)
        if tuple(line.endswith("true") for line in lines[-2:]) == wanted:
            return lines
    lines = _worked(gates, given, None)
    ends = (f"{line.rpartition(' ')[0]} {_word(value)}" for line, value in zip(lines[-2:], wanted, strict=True))
    return (*lines[:-2], *ends)
