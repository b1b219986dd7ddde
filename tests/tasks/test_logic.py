"""The made-up puzzles: exactly one option follows, by a check of all worlds that shares no code with the generator."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import islice, product

import pytest

from pluribus.errors import UnknownName
from pluribus.tasks import load_task, logic
from pluribus.tasks.logic import LETTERS, SKILLS, SPLITS, Problem, draw, load, problem

GATES = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
    "if": lambda a, b: b or not a,
}


def test_question_zero_is_the_same_on_every_machine() -> None:
    question, key = next(load("test"))
    assert question.id == "logic/test/0"
    assert question.text.startswith("Every dorn is a trell. No baker is a sailor. All plons are sailors.")
    assert question.choices[1] == "Tom is not a plon"
    assert key.answer == "B"


def test_load_twice_gives_the_same() -> None:
    assert list(islice(load("dev"), 30)) == list(islice(load("dev"), 30))


@pytest.mark.parametrize("index", range(0, 200, 40))
def test_exactly_one_option_follows(index: int) -> None:
    for found in (problem("test", index + k) for k in range(40)):
        follows = _syllogism(found) if found.kind == "syllogism" else _gates(found)
        assert [LETTERS[i] for i, holds in enumerate(follows) if holds] == [found.answer], found.text


def test_every_wrong_working_ends_at_its_own_option() -> None:
    for found in (problem("dev", index) for index in range(200)):
        assert found.slips[found.right] == found.steps
        assert len(set(found.slips)) == 4
        for slip, choice in zip(found.slips, found.choices, strict=True):
            assert _ending(found, slip) == choice


def test_splits_share_no_puzzle() -> None:
    seen = {split: {_form(problem(split, index)) for index in range(1500)} for split in SPLITS}
    assert not seen["test"] & seen["train"]
    assert not seen["test"] & seen["dev"]
    assert not seen["dev"] & seen["train"]


def test_answers_and_skills_are_spread() -> None:
    found = [problem("test", index) for index in range(600)]
    letters = Counter(each.answer for each in found)
    assert min(letters.values()) > 100
    assert set(SKILLS) <= {skill for each in found for skill in each.skills}
    assert 0.4 < sum(each.kind == "gates" for each in found) / 600 < 0.6


def test_a_rare_skill_is_rare() -> None:
    rng = random.Random(0)
    found = [draw(rng, "train", {"xor": 0.0, "only": 0.0}) for _ in range(300)]
    assert not {"xor", "only"} & {skill for each in found for skill in each.skills}


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_split_ends(split: str) -> None:
    with pytest.raises(IndexError):
        problem(split, logic.SIZES[split])


def test_unknown_split_and_subset_are_errors() -> None:
    with pytest.raises(UnknownName, match="dev"):
        load("validation")
    with pytest.raises(UnknownName, match="gates"):
        load("test", subset="gate")


def test_a_subset_holds_its_form_only() -> None:
    found = load_task("logic:gates", limit=20)
    assert {question.metadata["form"] for question, _ in found.pairs} == {"gates"}
    assert found.family == "logic"


def test_the_question_does_not_hold_the_solution() -> None:
    for question, _ in islice(load("test"), 50):
        assert set(question.metadata) == {"form", "steps", "skills"}


def _syllogism(found: Problem) -> list[bool]:
    """Which options hold in every world that the sentences allow."""
    subject = found.choices[0].split()[0]
    sentences = re.findall(r"[^.?]+", found.text)[:-1]
    nouns = [noun for noun in logic._NOUNS if re.search(rf"\b{noun}s?\b", " ".join((found.text, *found.choices)))]
    worlds = [dict(zip(nouns, held, strict=True)) for held in product((True, False), repeat=len(nouns))]
    worlds = [w for w in worlds if all(_holds(s.strip(), subject, w) for s in sentences)]
    assert worlds
    return [all(_holds(choice, subject, world) for world in worlds) for choice in found.choices]


def _holds(sentence: str, subject: str, world: dict[str, bool]) -> bool:
    """Whether a sentence is true of the subject in a world; what is said of others is."""
    if found := re.fullmatch(r"(\w+) is (not )?a (\w+)", sentence):
        name, denied, noun = found.groups()
        if name in ("Every", "No"):
            raise AssertionError(sentence)
        return name != subject or world[noun] is (denied is None)
    found = re.fullmatch(r"(All|Every|Only|No) (\w+?)s? (?:is a|are) (\w+?)s?", sentence)
    assert found, sentence
    word, first, second = found.groups()
    if word == "No":
        return not (world[first] and world[second])
    if word == "Only":
        first, second = second, first
    return world[second] or not world[first]


def _gates(found: Problem) -> list[bool]:
    values = {name: word == "true" for name, word in re.findall(r"([pq]) is (true|false)", found.text)}
    for name, said in re.findall(r"([r-v]) = ([^.]+)\.", found.text):
        words = said.split()
        if words[0] == "not":
            values[name] = not values[words[1]]
        elif words[0] == "if":
            values[name] = GATES["if"](values[words[1]], values[words[3]])
        else:
            values[name] = GATES[words[1]](values[words[0]], values[words[2]])
    return [
        all(values[name] is (word == "true") for name, word in re.findall(r"([r-v]) (true|false)", choice))
        for choice in found.choices
    ]


def _ending(found: Problem, steps: tuple[str, ...]) -> str:
    if found.kind == "gates":
        return ", ".join(f"{step[0]} {step.rpartition(' ')[2]}" for step in steps[-2:])
    noun = steps[-1].removeprefix("not ")
    return f"{found.choices[0].split()[0]} is {'not ' if steps[-1] != noun else ''}a {noun}"


def _form(found: Problem) -> object:
    """What the hash of a split is taken from: the rules in the order of the walk, or the gates and what is given."""
    if found.kind == "gates":
        return found.text
    return (found.steps, found.skills)
