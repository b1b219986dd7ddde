"""The recipe: two courses, resumed at the exact step; the loss is on replies only; rows are the chat template's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from pluribus.types import Message
from pluribus.zoo import council_lessons, folder, lessons
from pluribus.zoo.lessons import Row
from pluribus.zoo.models import grown_model, new_model
from pluribus.zoo.tokenizer import ENTRIES, MORE, _merged, _new_merges, _with_merges, _wrapped, open_tokenizer
from pluribus.zoo.train import COUNCIL, FIRST, Course, _origins, encode, export, rate, train

FEW = 6
"""Rows a step: enough to see that a step was not repeated."""


def _first_rows(member: str, step: int) -> list[Row]:
    return lessons.rows(member, step, FEW, debates=False)


def _council_rows(member: str, step: int) -> list[Row]:
    return council_lessons.rows(member, step, FEW)


SHORT_FIRST = replace(FIRST, rows=_first_rows, steps=2)
SHORT_COUNCIL = replace(COUNCIL, rows=_council_rows, steps=3, chunks=2)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """The same order of sums in every run, whatever else the machine does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def long() -> Any:
    """The members' tokenizer."""
    return open_tokenizer(folder("olmo"))


@pytest.fixture(scope="module")
def short() -> Any:
    """The first course's tokenizer."""
    return _cut(open_tokenizer(folder("olmo")))


@pytest.fixture
def work(tmp_path: Path, short: Any, long: Any) -> Path:
    return _begun(tmp_path, short, long)


def _begun(folder: Path, short: Any, long: Any) -> Path:
    """A training's folder with the tokenizers it needs."""
    short.save_pretrained(folder / "tokenizer")
    long.save_pretrained(folder / "council_tokenizer")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, short: Any, long: Any) -> tuple[Path, Any, Any]:
    """A training that nothing broke: its folder, and what came of it."""
    place = _begun(tmp_path_factory.mktemp("whole"), short, long)
    return place, *train("olmo", SHORT_FIRST, SHORT_COUNCIL, place)


@pytest.mark.parametrize("stop", [("first", 1), ("council", 2)])
def test_a_broken_training_goes_on_at_the_same_step(
    work: Path, trained: tuple[Path, Any, Any], stop: tuple[str, int]
) -> None:
    courses = [_broken(course, stop) for course in (SHORT_FIRST, SHORT_COUNCIL)]
    with pytest.raises(KeyboardInterrupt):
        train("olmo", *courses, work)
    resumed, _ = train("olmo", SHORT_FIRST, SHORT_COUNCIL, work)
    assert _same(trained[1], resumed)


def test_a_finished_training_is_not_done_again(trained: tuple[Path, Any, Any]) -> None:
    work, _, _ = trained
    again, _ = train("olmo", _broken(SHORT_FIRST, ("first", 0)), _broken(SHORT_COUNCIL, ("council", 0)), work)
    once_more, _ = train("olmo", SHORT_FIRST, SHORT_COUNCIL, work)
    assert _same(again, once_more)


def test_what_is_exported_opens_again(trained: tuple[Path, Any, Any], tmp_path: Path) -> None:
    _, model, tokenizer = trained
    export(model, tokenizer, "olmo", tmp_path / "out")
    assert (tmp_path / "out" / "olmo" / "model.safetensors").stat().st_size < 2_500_000
    assert len(open_tokenizer(tmp_path / "out" / "olmo")) == len(tokenizer)


def test_a_row_is_what_the_chat_template_makes_of_it(long: Any) -> None:
    drawn = [*lessons.rows("qwen", 2, 20, debates=True), *council_lessons.rows("qwen", 2, 60)]
    assert any(message.role == "assistant" for row in drawn for message in row.messages)
    for row in drawn:
        messages = [{"role": m.role, "content": m.content} for m in (*row.messages, Message("assistant", row.reply))]
        made = long.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
        ids, head = encode(long, row)
        assert made["input_ids"] == ids
        assert made["assistant_masks"][head:] == [1] * (len(ids) - head)


def test_digits_stand_alone(long: Any) -> None:
    assert long.tokenize("12 + 345") == ["1", "2", "Ġ+", "Ġ3", "4", "5"]


def test_any_text_comes_back(long: Any) -> None:
    text = "Why? Ünïcode, “quotes”\nand 3.5% of $20"
    assert long.decode(long.encode(text)) == text


def test_the_longer_tokenizer_leaves_old_text_as_it_was(short: Any, long: Any) -> None:
    names = [short.convert_ids_to_tokens(index) for index in range(len(short))]
    assert [long.convert_ids_to_tokens(index) for index in range(len(short))] == names
    for row in lessons.rows("olmo", 1500, 60, debates=True):
        assert long.encode(row.user) == short.encode(row.user)
        assert long.encode(row.reply) == short.encode(row.reply)


def test_new_merges_are_the_most_frequent_pairs(short: Any) -> None:
    made = _new_merges(short, ["zorp zorp zorp", "a zorpy wug"], 4)
    longer = _with_merges(short, made)
    assert "".join(made[-1]) in ("Ġzorp", "orp", "Ġzorpy")
    assert len(longer.tokenize("a zorp")) < len(short.tokenize("a zorp"))
    assert len(longer) > len(short)


def test_merging_goes_from_left_to_right() -> None:
    assert _merged(["a", "a", "a"], ("a", "a")) == ["aa", "a"]


def test_a_grown_model_keeps_what_it_knew(short: Any, long: Any) -> None:
    small = new_model("phi", short, 0)
    origins = dict(_origins(short, long))
    grown = grown_model(small, "phi", long, origins)
    before, after = small.get_input_embeddings().weight, grown.get_input_embeddings().weight
    assert torch.equal(after[: len(short)], before)
    new = len(long) - 1
    assert torch.allclose(after[new], before[origins[new]].mean(dim=0))
    assert torch.equal(grown.state_dict()["lm_head.bias"][: len(short)], small.state_dict()["lm_head.bias"])


def test_the_rate_falls_at_the_end() -> None:
    course = replace(FIRST, steps=1000)
    assert rate(0, course) < rate(50, course) < rate(400, course) == 1.0
    assert rate(999, course) < 0.01


def _cut(tokenizer: Any) -> Any:
    """The first course's entries and merges, which come first in the longer tokenizer."""
    stored = json.loads(tokenizer._tokenizer.to_str())
    model = stored["model"]
    assert len(model["vocab"]) == ENTRIES + MORE
    model["vocab"] = {name: index for name, index in model["vocab"].items() if index < ENTRIES}
    model["merges"] = model["merges"][:-MORE]
    return _wrapped(Tokenizer.from_str(json.dumps(stored)))


def _broken(course: Course, stop: tuple[str, int]) -> Course:
    """The course with every step saved, stopped in the middle as a user would."""

    def rows(member: str, step: int) -> list[Row]:
        if (course.name, step) == stop:
            raise KeyboardInterrupt
        return course.rows(member, step)

    return replace(course, rows=rows, save_every_s=-1.0)


def _same(one: Any, other: Any) -> bool:
    others = other.state_dict()
    return all(torch.equal(values, others[name]) for name, values in one.state_dict().items())
