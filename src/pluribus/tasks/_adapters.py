"""The form of the LLM-Adapters collection, in which several datasets are passed around: the options stand in the text.

`{"instruction": "Please choose …: QUESTION\\n\\nAnswer1: … Answer2: … Answer format: answer1/answer2",
"answer": "answer2"}`

Source: Hu et al. 2023, LLM-Adapters, arXiv 2304.01933.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pluribus.tasks._files import BadRow, Form, Item, has, letter, text

_OPTION = re.compile(r"(?:^|\s)(Answer|Solution|Option|Ending)(\d): ")
_LEAD = re.compile(r"Please choose the correct [a-z ]+: ")


def adapters(ask: Callable[[str], str]) -> Form:
    """The form, for a dataset that puts its question the way `ask` does."""
    return Form("LLM-Adapters JSON", has("instruction", "answer"), lambda row: _read(row, ask))


def _read(row: Mapping[str, Any], ask: Callable[[str], str]) -> Item:
    body, marked, wanted = text(row, "instruction").partition("Answer format:")
    lead = _LEAD.match(body)
    stem, *parts = _OPTION.split(body)
    if lead is None or not marked or len(parts) < 6:
        raise BadRow("'instruction' must be 'Please choose …: QUESTION', then 'Answer1: …', then 'Answer format: …'")
    choices = tuple(part.strip() for part in parts[2::3])
    if parts[1::3] != [str(n) for n in range(1, wanted.count("/") + 2)] or not all(choices):
        raise BadRow(f"the options of 'instruction' can not be told apart; they should be {wanted.strip()}")
    return Item(ask(stem[lead.end() :].strip()), "choice", _answer(text(row, "answer"), choices), choices)


def _answer(said: str, choices: tuple[str, ...]) -> str:
    found = re.fullmatch(r"(?:answer|solution|option|ending)(\d)", said)
    if found is None:
        raise BadRow(f"field 'answer' must be like 'answer1', found {said!r}")
    return letter(int(found[1]) - 1, choices)
