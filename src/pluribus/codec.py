"""Records to canonical JSON and back, and ids that are the hash of content."""

from __future__ import annotations

import collections.abc
import dataclasses
import hashlib
import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
Maker = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """A record as dicts, lists and scalars; fields that are at their default of None or empty are left out.

    A field that is typed `float` is written as one, so `Sampling(temperature=1)` and `Sampling(temperature=1.0)`,
    which are equal, are also the same text. Raises TypeError for what is neither a record nor a plain value.
    """
    kind: Any = type(value)
    return _plainer(kind)(value)


def encode(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, UTF-8 kept; NaN and infinity are a ValueError.

    Half a surrogate pair, which UTF-8 can not hold, stays the escape it came as: the text always encodes.
    """
    return _escaped(_canonical(plain(value)))


def to_json(value: Any) -> str:
    """As `encode`, but mappings keep their order (votes are in the order first seen): for keeping, not for ids.

    >>> to_json({"b": 1, "a": 2})
    '{"b":1,"a":2}'
    """
    return _escaped(_ordered(plain(value)))


def _escaped(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def content_id(value: Any) -> str:
    """First 128 bits of the SHA-256 of the canonical JSON, as 32 hex digits.

    >>> content_id({"b": 1, "a": 2}) == content_id({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(encode(value).encode()).hexdigest()[:32]


def decode(cls: type[T], text: str | bytes) -> T:
    """The record of type `cls` that `encode` or `to_json` wrote; ValueError when it is not JSON, else as `build`.

    >>> from pluribus.types import Message
    >>> decode(Message, encode(Message("user", "hi")))
    Message(role='user', content='hi')
    """
    return build(cls, json.loads(text))


def build(cls: type[T], value: Any) -> T:
    """A record from its plain form; missing fields take the record's defaults.

    Raises TypeError for unknown fields, for missing ones that have no default, and for values of the wrong shape.
    """
    kind: Any = cls
    result: T = _builder(kind)(value)
    return result


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_ordered = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_SURROGATE = re.compile("[\ud800-\udfff]")
_SCALARS = (str, int, float, bool, type(None))


def _identity(value: Any) -> Any:
    return value


# Writing. What to do with a field is read from its type once per record class, because encoding is a hot path.


@cache
def _plainer(cls: type) -> Maker:
    """A function from a value of exactly this class to its plain form."""
    if issubclass(cls, _SCALARS):
        return _identity
    if dataclasses.is_dataclass(cls):
        return _record_plainer(cls)
    if issubclass(cls, Mapping):
        return _plain_mapping
    if issubclass(cls, tuple | list):
        return _plain_list
    return _refuse


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not a record or a plain value: {value!r}")


def _plain_list(values: Any) -> list[Any]:
    return [plain(value) for value in values]


def _plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    result = {str(key): plain(item) for key, item in value.items()}
    if len(result) != len(value):
        raise TypeError(f"two keys of a mapping are the same text: {list(value)!r}")
    return result


def _record_plainer(cls: type) -> Maker:
    hints = get_type_hints(cls)
    required = [(f.name, _field_plainer(hints[f.name])) for f in dataclasses.fields(cls) if not _omittable(f)]
    optional = [(f.name, _field_plainer(hints[f.name]), f.default) for f in dataclasses.fields(cls) if _omittable(f)]

    def flat(record: Any) -> dict[str, Any]:
        out = {name: maker(getattr(record, name)) for name, maker in required}
        for name, maker, default in optional:
            item = getattr(record, name)
            # an empty mapping is no default where the default is None: {} and None are not the same thing
            if item is not default and (default is None or item):
                out[name] = maker(item)
        return out

    return flat


def _omittable(field: dataclasses.Field[Any]) -> bool:
    """Whether the field's default is None or empty, so that leaving it out loses nothing."""
    return field.default is None or field.default == () or field.default_factory is dict


def _field_plainer(hint: Any) -> Maker:
    """What turns a field of this type plain; types that name no record or number need no look."""
    origin, args = get_origin(hint), _without_none(hint)
    if hint is float:
        return _number
    if hint in (str, int, bool) or origin is typing.Literal:
        return _identity
    if origin in (typing.Union, types.UnionType) and len(args) == 1:
        inner = _field_plainer(args[0])
        return _identity if inner is _identity else lambda value: None if value is None else inner(value)
    if origin is tuple and args[1:] == (Ellipsis,):
        inner = _field_plainer(args[0])
        return list if inner is _identity else lambda values: [inner(value) for value in values]
    if origin is collections.abc.Mapping and args[1] is float:
        return lambda value: {str(key): _number(item) for key, item in value.items()}
    return plain


def _without_none(hint: Any) -> tuple[Any, ...]:
    return tuple(arg for arg in get_args(hint) if arg is not type(None))


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


# Reading.


@cache
def _builder(kind: Any) -> Maker:
    """A function from plain value to `kind`, resolved once per type: decoding is a hot path."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record_builder(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional_builder(_without_none(kind))
    if origin is tuple:
        return _tuple_builder(args)
    if origin is collections.abc.Mapping:
        return _mapping_builder(args[1])
    return _identity


def _record_builder(kind: type) -> Maker:
    hints = get_type_hints(kind)
    makers = [(f.name, m) for f in dataclasses.fields(kind) if (m := _builder(hints[f.name])) is not _identity]

    def make(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{kind.__name__} is an object, not {type(value).__name__}: {value!r}")
        made = {name: maker(value[name]) for name, maker in makers if name in value}
        return kind(**(value | made if made else value))

    return make


def _optional_builder(args: tuple[Any, ...]) -> Maker:
    makers = [maker for arg in args if (maker := _builder(arg)) is not _identity]
    if not makers:
        return _identity
    if len(args) > 1:
        raise TypeError(f"a field that is one of several types can not be read back: {args!r}")
    maker = makers[0]
    return lambda value: None if value is None else maker(value)


def _tuple_builder(args: tuple[Any, ...]) -> Maker:
    if len(args) == 2 and args[1] is Ellipsis:
        maker = _builder(args[0])
        return lambda values: tuple(_items(values) if maker is _identity else map(maker, _items(values)))
    makers = [_builder(arg) for arg in args]
    return lambda values: tuple(maker(value) for maker, value in zip(makers, _items(values), strict=True))


def _items(values: Any) -> Any:
    """The list itself; a text, whose letters would pass for a list's items, is refused."""
    if not isinstance(values, list | tuple):
        raise TypeError(f"a list was expected, not {type(values).__name__}: {values!r}")
    return values


def _mapping_builder(item: Any) -> Maker:
    maker = _builder(item)
    return _identity if maker is _identity else lambda value: {key: maker(one) for key, one in value.items()}
