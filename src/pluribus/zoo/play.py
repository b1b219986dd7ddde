"""Members at work: open one, put prompts to it, read what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pluribus.types import Message, Sampling
from pluribus.zoo import folder
from pluribus.zoo.models import open_model
from pluribus.zoo.tokenizer import ASSISTANT, END, open_tokenizer

LONGEST = 160
"""Tokens a reply may take."""
BATCH = 100

Conversation = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A trained model, ready to answer."""

    name: str
    model: Any
    tokenizer: Any


def open_member(name: str, path: Path | None = None) -> Member:
    where = path or folder(name)
    return Member(name, open_model(where), open_tokenizer(where))


def asked(user: str, system: str | None = None) -> Conversation:
    """
    >>> asked("1 + 1?", "verify")[0].role, asked("1 + 1?")[0].role
    ('system', 'user')
    """
    head = () if system is None else (Message("system", system),)
    return (*head, Message("user", user))


def reply(member: Member, prompts: Sequence[Conversation], sampling: Sampling) -> list[str]:
    """One reply to each prompt; greedy at temperature 0. The same seed gives the same replies."""
    torch.manual_seed(sampling.seed or 0)
    texts = [spelled(prompt) for prompt in prompts]
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    out = [""] * len(texts)
    for first in range(0, len(order), BATCH):
        part = order[first : first + BATCH]
        for index, text in zip(part, _generate(member, [texts[i] for i in part], sampling), strict=True):
            out[index] = text
    return out


def spelled(prompt: Conversation) -> str:
    """A conversation as the chat template writes it, up to where the reply begins.

    >>> spelled(asked("1 + 1?", "verify"))
    '<|system|>verify<|user|>1 + 1?<|assistant|>'
    """
    said = (f"<|{m.role}|>{m.content}{END if m.role == 'assistant' else ''}" for m in prompt)
    return f"{''.join(said)}{ASSISTANT}"


def tag(text: str, name: str) -> str | None:
    """What stands in the last `{name: …}`; None when there is none.

    >>> tag("1 + 1 = 2. {final answer: 2}", "final answer"), tag("1 + 1", "final answer")
    ('2', None)
    """
    found = re.findall(rf"\{{{name}: ([^{{}}]+)\}}", text)
    return found[-1] if found else None


def _generate(member: Member, texts: list[str], sampling: Sampling) -> list[str]:
    sent = member.tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", return_token_type_ids=False)
    drawn: dict[str, Any] = {"do_sample": False}
    if sampling.temperature:
        drawn = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
    with torch.inference_mode():
        made = member.model.generate(**sent, max_new_tokens=min(sampling.max_tokens, LONGEST), **drawn)
    return list(member.tokenizer.batch_decode(made[:, sent["input_ids"].shape[1] :], skip_special_tokens=True))
