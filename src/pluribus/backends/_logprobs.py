"""Log-probabilities as OpenAI's chat API and vLLM write them; plain functions on what a reply's JSON holds.

What is not there, or not in the form it should have, is None: the reply's text is an answer all the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pluribus.backends import add_up

UNREADABLE = "\ufffd"
"""What a token that is a part of a letter reads as."""


def of_tokens(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Log-probability of each generated token, nats.

    >>> of_tokens({"logprobs": {"content": [{"token": "4", "logprob": -0.5}]}}), of_tokens({"logprobs": None})
    ((-0.5,), None)
    """
    found = [_number(place) for place in _places(choice)]
    return None if not found else _complete(found)


def alternatives(choice: Mapping[str, Any]) -> tuple[Mapping[str, float], ...] | None:
    """For each generated token the likeliest tokens at its place: text → log-probability, nats.

    >>> likeliest = [{"token": "4", "logprob": -0.5}, {"token": "5", "logprob": -2.0}]
    >>> alternatives({"logprobs": {"content": [{"token": "4", "logprob": -0.5, "top_logprobs": likeliest}]}})
    ({'4': -0.5, '5': -2.0},)
    """
    found = [_alternatives(place) for place in _places(choice)]
    return None if not any(found) else tuple(found)


def of_continuation(places: Any, text: str) -> tuple[float, ...] | None:
    """Log-probabilities, nats, of the last tokens of a prompt, those that spell the text.

    Args:
        places: vLLM's `prompt_logprobs` with one alternative: for each token of the prompt a mapping from token id to
            `logprob`, `rank` and `decoded_token`; it holds the token itself and, where that is another, the likeliest.

    >>> start = {"7": {"logprob": -3.0, "rank": 9, "decoded_token": "<|assistant|>"}}
    >>> end = {"1": {"logprob": -0.1, "rank": 1, "decoded_token": "No"},
    ...        "2": {"logprob": -2.5, "rank": 4, "decoded_token": "Yes"}}
    >>> of_continuation([None, start, end], "Yes"), of_continuation([None, start, end], "No")
    ((-2.5,), None)
    """
    if not isinstance(places, list):
        return None
    tokens = [_itself(place) for place in places]
    pieces = [str(token.get("decoded_token") or "") for token in tokens]
    # a template may trim the text, and some tokenizers write a token alone without the space before it
    n = spelling(pieces, text) or spelling([_solid(piece) for piece in pieces], _solid(text))
    return _complete([_number(token) for token in tokens[-n:]]) if n else None


def _solid(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def _itself(place: Any) -> Mapping[str, Any]:
    """The prompt's own token: the likeliest has rank 1, so of two it is the one with the higher rank."""
    held = [one for one in place.values() if isinstance(one, dict)] if isinstance(place, dict) else []
    return max(held, key=lambda one: one["rank"] if isinstance(one.get("rank"), int) else math.inf, default={})


def spelling(pieces: Sequence[str], text: str) -> int | None:
    """How many of the last pieces spell the text; None: no number of them does.

    >>> spelling(["Yes", "<|im_start|>", "It", " is", " 4"], "It is 4")
    3
    >>> spelling(["a", "√"], "√"), spelling(["x", UNREADABLE, UNREADABLE, UNREADABLE, "2"], "√2")
    (1, 4)
    """
    joined = ""
    for n, piece in enumerate(reversed(pieces), 1):
        joined = piece + joined
        if _spells(joined, text) and not _goes_on(pieces[-n - 1 : -n], joined, text):
            return n
        if len(joined.replace(UNREADABLE, "")) > len(text):
            return None
    return None


def _goes_on(before: Sequence[str], joined: str, text: str) -> bool:
    """Whether the piece before is the first part of the text's first letter."""
    return bool(before) and before[0] == UNREADABLE and _spells(before[0] + joined, text)


def _spells(joined: str, text: str) -> bool:
    """Whether the pieces read as the text; a run of unreadable ones stands for letters that are not ASCII."""
    if UNREADABLE not in joined:
        return joined == text
    readable = len(joined.replace(UNREADABLE, ""))
    if not bool(text) or not readable < len(text) <= len(joined):
        return False
    parts = re.split(f"{UNREADABLE}+", joined)
    starts = text.startswith(parts[0]) if parts[0] else not text[0].isascii()
    if not (starts and text.endswith(parts[-1])):
        return False  # so nearly every start is ruled out before a long pattern is compiled
    return re.fullmatch(r"[^\x00-\x7f]+".join(map(re.escape, parts)), text) is not None


def _places(choice: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    held = choice.get("logprobs")
    places = held.get("content") if isinstance(held, dict) else None
    return [place for place in places if isinstance(place, dict)] if isinstance(places, list) else []


def _alternatives(place: Mapping[str, Any]) -> Mapping[str, float]:
    held = place.get("top_logprobs")
    likeliest = [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []
    numbers = ((one.get("token"), _number(one)) for one in likeliest)
    return add_up((token, number) for token, number in numbers if isinstance(token, str) and number is not None)


def _number(place: Mapping[str, Any]) -> float | None:
    value = place.get("logprob")
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good and value is not None else None


def _complete(found: Sequence[float | None]) -> tuple[float, ...] | None:
    """All of them, or none."""
    numbers = tuple(number for number in found if number is not None)
    return numbers if len(numbers) == len(found) else None
