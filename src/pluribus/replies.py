"""Replies in a form: a rating, a verdict, a ranking, a choice, a JSON object.

A service with guided decoding is given the JSON schema. Whatever comes back is read: a JSON object that holds the
fields, else the tags `{field: value}`, else lines `Field: value`; the last that stands in the text counts. A reply
that can not be read is asked for once more with the reason; after that the parse failure stays in the turn
(`Turn.unread`) and there is no value: nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pluribus.agents import Agent
from pluribus.errors import BadForm
from pluribus.prompts import Peer
from pluribus.types import Message, Turn

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

REPAIR = "repair"
"""The prompt that shows an unreadable reply's problem and asks again."""

# bounded, so that no text takes long to read
_TAG = re.compile(r"\{\s{0,9}\"?([a-z][a-z _]{0,30}?)\"?\s{0,9}:([^{}]{0,2000})\}", re.IGNORECASE)
_LINE = re.compile(
    r"^[ \t>*#_-]{0,9}([a-z][a-z _]{0,30}?)[ \t*_]{0,9}:\s{0,9}([^\n]{1,2000})", re.IGNORECASE | re.MULTILINE
)
_NUMBER = re.compile(
    r"([-+−]?(?:\d+(?:\.\d+)?|\.\d+))(\s{0,9}%|\s{0,9}(?:/|(?:out\s{1,9})?of\b)\s{0,9}(\d+(?:\.\d+)?))?"
)
_GOES_ON = re.compile(r"\s{0,9}(?:[,–—/-]|to\b|or\b|and\b)?\s{0,9}\d|\w")
"""Behind a number that is only a part: of a range, a list, a decimal comma, a power of ten."""
_ESCAPE = re.compile(r"\\([\"\\/nrt]|u[0-9a-fA-F]{4}|[bf](?![a-z]))?")
_QUOTES = " \t\n\"'`*_"
_OPENED = re.compile(r"\{(?=\s{0,99}[\"}])")
_MOST_OPENED = 500
"""Braces that look like a JSON object and open none, after which no more are tried."""
_TRUE, _FALSE = frozenset({"true", "yes", "right", "correct"}), frozenset({"false", "no", "wrong", "incorrect"})
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How a reply is read, and the schema that guided decoding takes."""

    name: str
    """rating, verdict, choice, ranking, ratings, confidence or fields."""
    read: Callable[[str], T]
    """The value; raises BadForm."""
    schema: Mapping[str, Any] | None = None
    """None: the form stands inside free text, such as a solution with a confidence."""

    def problem(self, text: str) -> str | None:
        """Why the text is not in this form, or None."""
        try:
            self.read(text)
        except BadForm as problem:
            return str(problem)
        return None


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """What came of asking in a form: one turn, or two when it had to be asked again."""

    turns: tuple[Turn, ...]
    value: T | None
    """None: the call failed, or the reply could not be read twice."""

    @property
    def turn(self) -> Turn:
        """The last turn."""
        return self.turns[-1]


async def ask(
    agent: Agent,
    prompt: str,
    form: Form[T],
    *,
    role: str,
    round: int = 0,
    sample: int = 0,
    own: str | None = None,
    peers: Sequence[Peer] = (),
    after: Sequence[Message] = (),
    **fields: str,
) -> Reply[T]:
    """Asks in a form; once more, with the problem shown, when the reply can not be read.

    Args:
        prompt, round, sample, own, peers, after, fields: as in `Agent.speak`.
        form: what is read out of the reply.
        role: what the turns are in the transcript.
    """
    turn = await agent.speak(
        prompt, round=round, role=role, sample=sample, own=own, peers=peers, form=form, after=after,
        top_logprobs=0, continuation=None, **fields,
    )  # fmt: skip
    if not turn.ok or turn.unread is None:
        return Reply((turn,), form.read(turn.text) if turn.ok else None)
    heard = (*turn.messages, Message("assistant", turn.text))
    again = await agent.speak(
        REPAIR, round=round, role=role, sample=sample, form=form, after=heard, problem=turn.unread
    )
    readable = again.ok and again.unread is None
    return Reply((turn, again), form.read(again.text) if readable else None)


# --- the forms -------------------------------------------------------------------------------------------------------


def rating(name: str = "score", low: float = 0, high: float = 10) -> Form[float]:
    """A number from low to high under a name.

    >>> [rating().read(text) for text in ('{"reason": "sound", "score": 9}', "good. {score: 7.5}", "Score: 8/10")]
    [9.0, 7.5, 8.0]
    """
    schema = _object({"reason": {"type": "string"}, name: {"type": "number", "minimum": low, "maximum": high}})
    return Form("rating", lambda text: _number(name, _field(text, name), low, high), schema)


def verdict(name: str = "verdict") -> Form[bool]:
    """True or false.

    >>> verdict().read("5 + 5 is not 11. {verdict: false}"), verdict().read("**Verdict:** True")
    (False, True)
    """
    return Form(
        "verdict",
        lambda text: _boolean(name, _field(text, name)),
        _object({"reason": {"type": "string"}, name: {"type": "boolean"}}),
    )


def choice(names: Sequence[str], name: str = "choice") -> Form[str]:
    """One of the names.

    >>> choice(["1", "2"]).read("the second is sound. {choice: 2}")
    '2'
    """
    schema = _object({"reason": {"type": "string"}, name: {"type": "string", "enum": list(names)}})
    return Form("choice", lambda text: _one_of(name, str(_field(text, name)), names), schema)


def ranking(names: Sequence[str], name: str = "ranking") -> Form[tuple[str, ...]]:
    """All the names, best first.

    >>> ranking(["1", "2", "3"]).read("{ranking: 2, 3, 1}"), ranking(["1", "2"]).read('{"ranking": ["2", "1"]}')
    (('2', '3', '1'), ('2', '1'))
    """
    items = {"type": "array", "items": {"type": "string", "enum": list(names)}, "minItems": len(names)}
    schema = _object({"reason": {"type": "string"}, name: {**items, "maxItems": len(names)}})
    return Form("ranking", lambda text: _permutation(name, _list(_field(text, name)), names), schema)


def ratings(count: int, name: str = "ratings", low: float = 1, high: float = 5) -> Form[tuple[float, ...]]:
    """One number from low to high for each of `count` texts, in their order; it stands inside free text.

    >>> ratings(2).read("2 + 2 = 4. {final answer: 4} {ratings: 5, 1}")
    (5.0, 1.0)
    """
    return Form("ratings", lambda text: _numbers(name, _list(_field(text, name)), count, low, high))


def confidence(name: str = "confidence") -> Form[float]:
    """A probability in [0, 1]; a percentage is one too. It stands inside free text.

    >>> confidence().read("… {final answer: 4} {confidence: 0.8}"), confidence().read("Confidence: 85%")
    (0.8, 0.85)
    """
    return Form("confidence", lambda text: _probability(name, _field(text, name)))


def fields(model: type[M]) -> Form[M]:
    """A JSON object with the fields of a pydantic model.

    >>> class Plan(BaseModel):
    ...     steps: list[str]
    >>> fields(Plan).read('So: {"steps": ["add", "halve"]}').steps
    ['add', 'halve']
    """
    return Form("fields", lambda text: _validated(model, text), _closed(model.model_json_schema()))


# --- reading ---------------------------------------------------------------------------------------------------------


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a closed object whose fields are all required, reasons before verdicts."""
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def _closed(schema: Any) -> Any:
    """The schema with every object closed and all its fields required, as guided decoding wants it."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items() if key not in ("title", "default", "properties")}
    if "properties" in schema:
        parts = {name: _closed(part) for name, part in schema["properties"].items()}
        closed |= {"properties": parts, "required": list(parts), "additionalProperties": False}
    return closed


def objects(text: str) -> list[dict[str, Any]]:
    """The outermost JSON objects of a text, in order; line breaks and LaTeX's backslashes may stand bare in strings.

    >>> objects('a {"x": 1} b {y} {"z": {"w": 2}}')
    [{'x': 1}, {'z': {'w': 2}}]
    """
    return list(_objects(text))


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(strict=False)
    text = _ESCAPE.sub(lambda mark: mark[0] if mark[1] else r"\\", text)
    opened, tries = _OPENED.search(text), 0
    while opened and tries < _MOST_OPENED:
        end = opened.end()
        try:
            value, end = decoder.raw_decode(text, opened.start())
            yield value
        except (ValueError, RecursionError):
            tries += 1
        opened = _OPENED.search(text, end)


def _field(text: str, name: str) -> Any:
    """The last value given for a name."""
    text = _said(text)
    for found in reversed(objects(text)):
        value = {_plain(key): value for key, value in found.items()}.get(name)
        if value is not None:
            return value
    for pattern in (_TAG, _LINE):
        said = [match[2] for match in pattern.finditer(text) if _plain(match[1]) == name]
        if said:
            return said[-1].strip(_QUOTES).rstrip(".")
    raise BadForm(f"it does not say {name}; expected {{{name}: …}}")


def _said(text: str) -> str:
    """What stands behind the thoughts; thoughts that were cut off say nothing."""
    said = text.rpartition("</think>")[2]
    return "" if "<think>" in said else said


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")


def _number(name: str, value: Any, low: float, high: float) -> float:
    """The number that stands first, whole: no part of a range, of a list or of another scale."""
    text = str(value).strip(_QUOTES)
    found = None if isinstance(value, bool) else _NUMBER.match(text)
    expected = f"expected a number from {low:g} to {high:g}"
    if found is None or _GOES_ON.match(text, found.end()) or _scale(found) not in (None, high):
        raise BadForm(f"{name} is {_shown(value)}; {expected}")
    number = float(found[1].replace("−", "-"))
    if not low <= number <= high:
        raise BadForm(f"{name} is {number:g}; {expected}")
    return number


def _scale(found: re.Match[str]) -> float | None:
    """What the number is out of: 10 in 8/10, 100 in 80 %; None where it does not say."""
    if found[2] is None:
        return None
    return float(found[3]) if found[3] else 100


def _numbers(name: str, values: Sequence[Any], count: int, low: float, high: float) -> tuple[float, ...]:
    if len(values) != count:
        raise BadForm(f"{name} holds {len(values)} numbers; expected {count}, one for each text in its order")
    return tuple(_number(name, value, low, high) for value in values)


def _boolean(name: str, value: Any) -> bool:
    word = str(value).strip(" \t\"'`*.!").lower()
    if word not in _TRUE | _FALSE:
        raise BadForm(f"{name} is {_shown(value)}; expected true or false")
    return word in _TRUE


def _probability(name: str, value: Any) -> float:
    found = _NUMBER.match(str(value).strip(_QUOTES))
    if found and _scale(found) == 100:
        return _number(name, value, 0, 100) / 100
    return _number(name, value, 0, 1)


def _list(value: Any) -> list[Any]:
    """A JSON list, or what stands between commas and signs of order, or else between spaces."""
    if isinstance(value, list):
        return value
    text = str(value)
    parts = [part.strip(_QUOTES) for part in re.split(r"[,;>\[\]]", text)]
    filled = [part for part in parts if part]
    return filled if len(filled) > 1 else text.strip(_QUOTES + "[]").split()


def _one_of(name: str, value: str, names: Sequence[str]) -> str:
    bare = re.sub(r"^(?:answer|solution|candidate|option)\s+", "", value.strip(" .\"'`*()[]"), flags=re.IGNORECASE)
    if bare not in names:
        raise BadForm(f"{name} is {_shown(value)}; expected one of {', '.join(names)}")
    return bare


def _permutation(name: str, values: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    found = tuple(_one_of(name, str(value), names) for value in values)
    if sorted(found) != sorted(names):
        raise BadForm(f"{name} is {_shown(', '.join(found))}; expected each of {', '.join(names)} once")
    return found


def _validated(model: type[M], text: str) -> M:
    """The last JSON object that has the model's fields."""
    problem = f"there is no JSON object with the fields {', '.join(model.model_fields)}"
    for found in reversed(objects(_said(text))):
        if not set(found) & set(model.model_fields):
            continue
        try:
            return model.model_validate(found)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the object"
            problem = f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}"
    raise BadForm(problem)
