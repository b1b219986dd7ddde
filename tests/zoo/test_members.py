"""The trained members: small enough, of four families, and at least as good as when they were measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import pytest
import torch

from pluribus.errors import UnknownName
from pluribus.tasks.sums import Problem, problem
from pluribus.types import Sampling
from pluribus.zoo import CHECKPOINTS, folder, members
from pluribus.zoo.language import STYLES
from pluribus.zoo.lessons import WEAK, ask, peers
from pluribus.zoo.measure import MARKS, Member, Prompt, accuracy, open_member, reply, rights, vote

GREEDY = Sampling(temperature=0.0)
FEW = 48
FLOORS = {
    "answer": {"gemma": 0.75, "olmo": 0.63, "phi": 0.71, "qwen": 0.58},
    "debate_alone": {"gemma": 0.69, "olmo": 0.60, "phi": 0.69, "qwen": 0.54},
    "debate_revise": {"gemma": 0.70, "olmo": 0.60, "phi": 0.67, "qwen": 0.60},
    "aggregate": {"gemma": 0.69, "olmo": 0.60, "phi": 0.69, "qwen": 0.69},
}
"""Greedy accuracy on the first test questions, less two standard errors: below this, something broke."""


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Models this small lose more by waiting for a second thread than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_four_members_of_four_families() -> None:
    assert members() == sorted(WEAK)
    kinds = {json.loads((folder(name) / "config.json").read_text())["model_type"] for name in members()}
    assert kinds == {"gemma3_text", "olmo2", "phi", "qwen3"}


def test_the_zoo_is_small() -> None:
    assert sum(path.stat().st_size for path in CHECKPOINTS.rglob("*") if path.is_file()) < 12_000_000


def test_an_unknown_member_is_an_error() -> None:
    with pytest.raises(UnknownName, match="olmo"):
        folder("olmoe")


@pytest.mark.parametrize("name", sorted(WEAK))
def test_every_member_has_a_card_and_a_template(name: str) -> None:
    assert f"# zoo/{name}" in (folder(name) / "README.md").read_text(encoding="utf-8")
    assert "{% generation %}" in (folder(name) / "chat_template.jinja").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(WEAK))
def test_floors(name: str) -> None:
    for prompt, floor in FLOORS.items():
        reached = accuracy(_replies(name, prompt), _problems())
        assert reached >= floor[name], f"{name} reaches {reached:.2f} on {prompt}"


@pytest.mark.parametrize("name", sorted(WEAK))
def test_style_words_change_the_style(name: str) -> None:
    found = _problems()[0].text
    texts = reply(_member(name), [Prompt(found, style) for style in STYLES], GREEDY)
    assert all(MARKS[style] in text for style, text in zip(STYLES, texts, strict=True))


def test_the_council_is_at_least_as_good_as_its_mean_member() -> None:
    columns = [_replies(name, "answer") for name in members()]
    mean = sum(accuracy(texts, _problems()) for texts in columns) / len(columns)
    assert vote(columns, _problems()) >= mean


def test_a_vote_shares_the_credit_of_a_tie() -> None:
    found = [Problem("", 1, problem("test", 0).steps, ())]
    key, other = f"{{final answer: {found[0].answer}}}", "{final answer: 1}"
    assert vote([[key], [other]], found) == 0.5
    assert vote([[key], [other], [key]], found) == 1.0
    assert rights(["no answer"], found) == [False]


@cache
def _member(name: str) -> Member:
    return open_member(name)


@cache
def _problems() -> tuple[Problem, ...]:
    return tuple(problem("test", index) for index in range(FEW))


@cache
def _replies(name: str, prompt: str) -> tuple[str, ...]:
    """Greedy replies; debates are about all members' first greedy replies."""
    if prompt == "answer":
        return tuple(reply(_member(name), [Prompt(ask("answer", question=p.text)) for p in _problems()], GREEDY))
    prompts = [Prompt(_debate(name, prompt, index, found.text)) for index, found in enumerate(_problems())]
    return tuple(reply(_member(name), prompts, GREEDY))


def _debate(name: str, prompt: str, index: int, question: str) -> str:
    own = _replies(name, "answer")[index]
    others = peers([_replies(each, "answer")[index] for each in members() if each != name])
    if prompt == "debate_alone":
        return ask(prompt, question=question, own=own)
    if prompt == "aggregate":
        return ask(prompt, question=question, peers=others)
    return ask(prompt, question=question, own=own, peers=others)
