"""The words of every method, as data: one folder a dialect, one file a prompt.

A prompt file is blocks headed by `[system]`, `[user]` or `[assistant]`, with `$name` fields (string.Template; a
literal dollar is `$$`). Files without heads are fragments that the renderer puts into fields: `question`, `choice`,
`format_<kind>`, `peer`, `candidate`, `own`, `persona`, `neutral`. What one agent wrote reaches another only through
`peer`, `candidate` and `own`, between fences longer than any run of the fence's sign inside the text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import cast

from pluribus.errors import ConfigError, UnknownName
from pluribus.types import Message, Question, Role

_HEAD = re.compile(r"^\[(system|user|assistant)\]\n", re.MULTILINE)
_FENCE_RUN = re.compile(r"~{3,}")
_GAP = re.compile(r"\n{3,}")
STANDARD = "standard"


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One folder of prompts."""

    name: str
    texts: Mapping[str, str]


def dialects() -> list[str]:
    """Names of the embedded dialects."""
    return sorted(item.name for item in files(__package__).iterdir() if item.is_dir() and item.name[0] not in "_.")


@cache
def dialect(name: str) -> Dialect:
    """An embedded dialect by name, or a folder of the user's own, laid over `standard`.

    An embedded dialect takes the prompts it has no words for, not the fragments, from `standard`.

    >>> "answer" in dialect("standard").texts
    True
    """
    if name in dialects():
        return Dialect(name, _embedded(name) if name == STANDARD else {**_prompts(STANDARD), **_embedded(name)})
    path = Path(name)
    if not path.is_dir():
        raise ConfigError(
            f"no prompts at {name!r}",
            hint=f"give a folder of NAME.txt files or one of the embedded dialects: {', '.join(dialects())}",
        )
    own = {p.stem: p.read_text("utf-8") for p in sorted(path.glob("*.txt"))}
    if not own:
        raise ConfigError(f"prompts folder {name!r} holds no .txt file", hint="see `pluribus show prompt METHOD`")
    return Dialect(name, {**dialect(STANDARD).texts, **own})


def _embedded(name: str) -> dict[str, str]:
    folder = files(__package__) / name
    return {p.name[:-4]: p.read_text("utf-8") for p in folder.iterdir() if p.name.endswith(".txt")}


def _prompts(name: str) -> dict[str, str]:
    """The whole prompts of a dialect, without its fragments."""
    return {prompt: text for prompt, text in _embedded(name).items() if _HEAD.match(text)}


def fingerprint(words: Dialect, prompts: Iterable[str]) -> str:
    """Hash of the named prompts and of all fragments: it enters an attempt's id."""
    fragments = [name for name, text in words.texts.items() if not _HEAD.match(text) and name != "neutral"]
    digest = hashlib.sha256()
    for name in sorted({*prompts, *fragments} & set(words.texts)):
        digest.update(f"{name}\0{words.texts[name]}\0".encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Peer:
    """What another agent said, by the name the reader sees."""

    name: str
    text: str


def render(
    words: Dialect,
    prompt: str,
    question: Question,
    *,
    system: str | None = None,
    own: str | None = None,
    peers: Sequence[Peer] = (),
    **fields: str,
) -> tuple[Message, ...]:
    """The messages of one call.

    Args:
        system: the persona's words; they stand before the prompt's own system block.
        own: the reader's own last text.
        peers: the others' texts, in the order they are shown.
        fields: further fields of the prompt, already text.

    Raises:
        UnknownName: the dialect has no such prompt.
        ConfigError: the prompt names a field nobody filled.

    >>> question = Question("q", "t", "1 + 1?", "number")
    >>> render(dialect("zoo"), "answer", question)
    (Message(role='user', content='1 + 1?'),)
    """
    filled = {
        "question": _question(words, question),
        "format": _format(words, question),
        "own": "" if own is None else fragment(words, "own", text=own, fence=fence(own)),
        "peers": _shown(words, "peer", peers),
        "candidates": _shown(words, "candidate", peers),
        **fields,
    }
    if prompt not in words.texts:
        raise UnknownName(f"prompt of dialect {words.name}", prompt, words.texts)
    messages = [Message(role, _fill(words, prompt, body, filled)) for role, body in _blocks(words.texts[prompt])]
    return _with_system(messages, system)


def own_fields(words: Dialect, prompt: str) -> tuple[str, ...]:
    """The fields of a prompt that only its method fills.

    >>> own_fields(dialect("standard"), "score")
    ('criteria',)
    """
    shared = ("question", "format", "own", "peers", "candidates")
    return tuple(name for name in _template(words.texts[prompt]).get_identifiers() if name not in shared)


def _shown(words: Dialect, how: str, peers: Sequence[Peer]) -> str:
    return "\n".join(fragment(words, how, name=p.name, text=p.text, fence=fence(p.text)) for p in peers)


def fragment(words: Dialect, fragment_name: str, /, **fields: str) -> str:
    """A fragment filled; a dialect without that fragment gives the bare text."""
    if fragment_name not in words.texts:
        return fields.get("text", "")
    return _fill(words, fragment_name, words.texts[fragment_name], fields)


def fence(text: str) -> str:
    """A line of tildes longer than any run of tildes in the text, so that the text can not close it.

    >>> fence("a ~~~~ b")
    '~~~~~'
    """
    return "~" * max([3, *(len(run) + 1 for run in _FENCE_RUN.findall(text))])


@cache
def _blocks(text: str) -> tuple[tuple[Role, str], ...]:
    parts = _HEAD.split(text)
    return tuple((cast(Role, role), body) for role, body in zip(parts[1::2], parts[2::2], strict=True))


@cache
def _template(text: str) -> Template:
    return Template(text.rstrip("\n"))


def _fill(words: Dialect, prompt: str, body: str, fields: Mapping[str, str]) -> str:
    try:
        return _template(body).substitute(fields)
    except (KeyError, ValueError) as problem:
        raise ConfigError(
            f"prompt {prompt!r} of dialect {words.name!r}: field {problem} can not be filled",
            hint=f"it may use: {', '.join(f'${name}' for name in sorted(fields))}; write a literal dollar as $$",
        ) from None


def _with_system(messages: list[Message], system: str | None) -> tuple[Message, ...]:
    if not system:
        return tuple(messages)
    if messages and messages[0].role == "system":
        return (Message("system", f"{system}\n\n{messages[0].content}"), *messages[1:])
    return (Message("system", system), *messages)


def _question(words: Dialect, question: Question) -> str:
    choices = "\n".join(
        fragment(words, "choice", letter=chr(ord("A") + i), text=text) for i, text in enumerate(question.choices)
    )
    if "question" not in words.texts:
        return "\n".join(part for part in (question.context, question.text, choices) if part)
    text = fragment(words, "question", context=question.context or "", text=question.text, choices=choices)
    return _GAP.sub("\n\n", text).strip()


def _format(words: Dialect, question: Question) -> str:
    name = f"format_{question.kind}"
    return fragment(words, name, labels=", ".join(question.labels)) if name in words.texts else ""
