"""Where a text commits itself to an answer: the marks that all kinds share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Form = Literal["boxed", "hash", "line", "phrase", "quoted"]


@dataclass(frozen=True, slots=True)
class Span:
    """The words behind one mark."""

    start: int
    """Where the mark stands in the text, in characters."""
    text: str
    form: Form
    """`boxed` \\boxed{…}; `hash` a last line `#### …`; `line` `A: …` at the start of a line; `quoted` a JSON string or
    `{final answer: …}`;
    `phrase` all others."""


_BE = r"(?:is|was|are|(?:would|should|must|will|could|can\ only)\ be)\b"
_MARK = re.compile(
    rf"""
    (?P<boxed> \\(?:boxed|fbox)\s*(?=\{{) )
  | (?P<line> \nA: )
  | (?<![\w.]) (?P<phrase>
        (?:[Aa]nswer|ANSWER)s?[*_"'`\])]{{0,4}}
        (?: \s{{0,3}}[:=] | (?:\s+(?:to|for|of)\s[^.\n:=]{{0,60}}?)? \s+{_BE} | (?P<heading> [ \t]*(?=\n)) )
      | (?:[Cc]orrect|[Bb]est|[Rr]ight|[Ff]inal)\ (?:[Oo]ption|[Cc]hoice|[Rr]esult)[*_]{{0,3}}
        (?: \s{{0,2}}: | \s+{_BE} )
    )
    """,
    re.VERBOSE,
)
_BRACE = re.compile(r"\\?[{}]")
_WORD = re.compile(r"\w")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ALONE = re.compile(r"[\s#*_>{(\[-]*(?:(?:the|my|our|final|correct)\s+){0,3}\Z", re.IGNORECASE)
_OPENED = re.compile(r"\{\s*(?:(?:the|my|our|final|correct)\s+){0,3}\Z", re.IGNORECASE)
# An answer that the text reports rather than gives: a peer's, an earlier or a wrong one.
_OTHERS = re.compile(
    r"(?:\b(?:their|his|her|your|peer|peers|previous|earlier|initial|original|wrong|incorrect|other|another|possible"
    r"|agent\s\w+)|(?<!let)['’]s|s['’])(?:\s+\w+)?\s*\Z",
    re.IGNORECASE,
)
_NEXT_QUESTION = re.compile(r"\n(?:Question|Q):")
_TAIL = 1500
"""Characters looked at first: most texts commit themselves at their end."""
_MOST = 50
"""Marks looked at: a text that says "the answer is" without end commits itself to nothing."""
_LONGEST = 1000
"""Characters of an answer that are looked at."""


def committed(text: str) -> Iterator[Span]:
    r"""The spans behind all marks, last mark first.

    >>> [span.text for span in committed("The answer is 4. No: the final answer is $\\boxed{5}$.")]
    ['5', '$\\boxed{5}$.', '4. No: the final answer is $\\boxed{5}$.']
    """
    last = text[-_LONGEST:].rstrip().rpartition("\n")[2]
    if last.startswith("####") and (answer := last.lstrip("#").strip()):
        yield Span(text.rfind(last), answer, "hash")
    text = "\n" + text  # marks that stand at the start of a line
    middle = max(0, text.rfind("\n", 0, max(0, len(text) - _TAIL)))
    yield from _backwards(text, middle, len(text))
    yield from _backwards(text, 0, middle)


def tail(text: str) -> str:
    """The end of a text, from a whole word on: a bare mention further up is no answer."""
    return text if len(text) <= _TAIL else text[-_TAIL:].partition(" ")[2]


def own(text: str) -> str:
    """The text up to where it goes on with a question of its own, as base models do behind their answer.

    >>> own("The answer is 4.\\n\\nQ: What is 3 + 3?\\nA: 6")
    'The answer is 4.\\n'
    """
    if "\nQ" not in text or (mark := _MARK.search("\n" + text)) is None:
        return text
    question = _NEXT_QUESTION.search(text, mark.end() - 1)
    return text[: question.start()] if question else text


def _backwards(text: str, start: int, end: int) -> Iterator[Span]:
    for mark in reversed(list(_MARK.finditer(text, start, end))[-_MOST:]):
        yield from _behind(text, mark)


def _behind(text: str, mark: re.Match[str]) -> Iterator[Span]:
    if mark["boxed"] is not None:
        inside = braced(text, mark.end())
        return iter(() if inside is None else (Span(mark.start(), inside, "boxed"),))
    if mark["line"] is not None:
        line = text[mark.end() : mark.end() + _LONGEST].partition("\n")[0].strip()
        return iter((Span(mark.start(), line, "line"),))
    return _said(text, mark)


def _said(text: str, mark: re.Match[str]) -> Iterator[Span]:
    """What stands behind a phrase: the rest of its line, or the next line where the line only leads up to it."""
    line_start = text.rfind("\n", 0, mark.start()) + 1
    before = text[max(line_start, mark.start() - 40) : mark.start()]
    if _OTHERS.search(before) or (mark["heading"] is not None and not _ALONE.match(before)):
        return
    if (string := _enclosed(text, before, mark)) is not None:
        yield Span(mark.start(), string, "quoted")
        return
    lines = (line for line in text[mark.end() : mark.end() + _LONGEST].split("\n") if _WORD.search(line))
    first = next(lines, "").strip()
    if first and not first.endswith("?"):
        yield Span(mark.start(), first, "phrase")
    if first.endswith((":", "?", ":**")) and (second := next(lines, "").strip()):
        yield Span(mark.start(), second, "phrase")


def _enclosed(text: str, before: str, mark: re.Match[str]) -> str | None:
    """The answer in `{final answer: …}`, or the JSON string behind the mark."""
    if opened := _OPENED.search(before):
        start = mark.start() - len(opened[0])
        inside = braced(text, start)
        if inside is not None and (answer := text[mark.end() : start + 1 + len(inside)].strip()):
            return answer
    return _quoted(text, mark.end())


def _quoted(text: str, at: int) -> str | None:
    while at < len(text) and text[at] in " \t":
        at += 1
    found = _STRING.match(text, at, at + _LONGEST)
    return found[1] if found else None


def braced(text: str, at: int) -> str | None:
    r"""What the braces that open at `at` hold; None when they never close.

    >>> braced(r"\boxed{\frac{1}{2}} and {x}", 6)
    '\\frac{1}{2}'
    """
    depth = 0
    for brace in _BRACE.finditer(text, at, at + _LONGEST):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[at + 1 : brace.start()]
    return None


def sentence(line: str) -> str:
    """The first sentence of a line.

    >>> sentence("yes. No other bird does it.")
    'yes'
    """
    return _END.split(line, maxsplit=1)[0]


_END = re.compile(r"[.!?;](?:\s|\Z)|\n")
