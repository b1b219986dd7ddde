"""Every record goes through JSON and back unchanged, and equal records are equal text."""

from __future__ import annotations

import dataclasses
import json
import types as pytypes
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus import types
from pluribus.codec import build, content_id, decode, encode, plain, to_json
from pluribus.types import Completion, Decision, Message, Question, Sampling, Seat, Turn

RECORDS = [value for value in vars(types).values() if dataclasses.is_dataclass(value) and isinstance(value, type)]
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=20),
    int: st.integers(),
    float: NUMBERS,
    bool: st.booleans(),
    type(None): st.none(),
    Any: PLAIN,
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (typing.Union, pytypes.UnionType):
        return st.one_of([values(arg) for arg in args])
    if origin is tuple and args[1:] == (Ellipsis,):
        return st.lists(values(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, args))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(values(args[0]), values(args[1]), max_size=2)
    return records(hint) if dataclasses.is_dataclass(hint) else SCALARS[hint]


def records(cls: Any) -> st.SearchStrategy[Any]:
    return st.builds(cls, **{name: values(hint) for name, hint in typing.get_type_hints(cls).items()})


def test_all_records_are_found() -> None:
    assert {cls.__name__ for cls in RECORDS} >= {"Question", "Key", "Transcript", "Decision", "Label", "Score"}


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
@settings(max_examples=25, deadline=None)  # a deadline would measure the machine's other work
@given(data=st.data())
def test_round_trip(cls: type, data: st.DataObject) -> None:
    record = data.draw(records(cls))
    for write in (encode, to_json):
        again = decode(cls, write(record))
        assert again == record
        assert type(again) is cls
        assert write(again) == write(record)


@settings(deadline=None)  # likewise
@given(record=records(Turn))
def test_the_text_is_canonical_json(record: Turn) -> None:
    text = encode(record)
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@settings(deadline=None)  # likewise
@given(value=PLAIN)
def test_plain_values_pass_through(value: Any) -> None:
    assert plain(value) == value


def test_the_format_is_fixed() -> None:
    """Ids of stored records rest on these texts: a change here needs a migration."""
    completion = Completion("é", "m", prompt_tokens=0, cost_usd=1, logprobs=(0, -1.5))
    assert encode(completion) == '{"cost_usd":1.0,"logprobs":[0.0,-1.5],"model":"m","prompt_tokens":0,"text":"é"}'
    assert encode(Sampling()) == '{"max_tokens":4096,"temperature":1.0,"top_p":0.9}'
    assert content_id(Sampling()) == "83d18956dcc0048a453408724e29c846"


def test_only_ids_need_sorted_keys() -> None:
    decision = Decision("a", "plurality", "z", {"z": 1.0, "a": 1.0}, 0.5, 0.0)
    assert list(decode(Decision, to_json(decision)).votes) == ["z", "a"], "in the order first seen"
    assert list(decode(Decision, encode(decision)).votes) == ["a", "z"]


def test_equal_records_are_equal_text() -> None:
    assert encode(Sampling(temperature=1, top_p=1)) == encode(Sampling(temperature=1.0, top_p=1.0))
    assert encode(Decision("a", "r", None, {"x": 2}, 1, 0)) == encode(Decision("a", "r", None, {"x": 2.0}, 1.0, 0.0))
    assert content_id({"a": 1, "b": (Message("user", "x"),)}) == content_id({"b": [Message("user", "x")], "a": 1})


@pytest.mark.parametrize(
    "record", [Completion("", "m", logprobs=(), scores={}), Completion("", "m", cost_usd=0.0, prompt_tokens=0)]
)
def test_empty_and_zero_are_not_none(record: Completion) -> None:
    assert decode(Completion, encode(record)) == record
    assert encode(record) != encode(Completion("", "m"))


def test_half_a_surrogate_pair_survives() -> None:
    """Models cut off in the middle of an emoji send these; UTF-8 can not hold them."""
    message = Message("user", "cut \ud83d")
    assert encode(message).encode("utf-8") == b'{"content":"cut \\ud83d","role":"user"}'
    assert decode(Message, encode(message)) == message
    assert content_id(message) != content_id(Message("user", "cut \\ud83d"))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_a_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(Completion("", "m", latency_s=bad))


@pytest.mark.parametrize("bad", [Path("x"), {1, 2}, b"x", object(), Message])
def test_what_is_not_plain_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError):
        encode({"value": bad})
    with pytest.raises(TypeError):
        encode(Message("user", bad))


def test_keys_that_become_the_same_text_are_refused() -> None:
    assert plain({1: "a"}) == {"1": "a"}
    with pytest.raises(TypeError, match="same text"):
        plain({1: "a", "1": "b"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"role": "user", "content": "x", "extra": 1}, "extra"),
        ({"role": "user"}, "content"),
        (["user", "x"], "Message is an object, not list"),
        ("user", "Message is an object, not str"),
    ],
)
def test_a_value_of_another_shape_is_refused(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build(Message, value)


def test_a_text_is_no_list() -> None:
    with pytest.raises(TypeError, match="a list was expected, not str"):
        build(Question, {"id": "q", "task": "t", "text": "x", "kind": "choice", "choices": "abc"})


def test_a_field_of_several_record_types_is_refused() -> None:
    cls = dataclasses.make_dataclass("Either", [("one", Message | Sampling)], frozen=True)
    with pytest.raises(TypeError, match="several types"):
        build(cls, {"one": {}})


def test_building_leaves_its_input_alone() -> None:
    value = {"index": 0, "name": "a", "model": "m", "sampling": {"stop": ["x"]}}
    assert build(Seat, value).sampling.stop == ("x",)
    assert value["sampling"] == {"stop": ["x"]}
